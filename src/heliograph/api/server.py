"""The REST server of a process: uvicorn on a thread of its own, on one or more listeners.

Sockets are bound before the thread starts, so a port that is taken is told at once, and port 0 has its number when
`start` returns. `stop` lets requests under way finish for a few seconds. Plain and https listeners are two servers of
one event loop, since a server of uvicorn's has one way to speak.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from typing import TYPE_CHECKING, Self

import uvicorn

from heliograph.api.protocol import RestProtocol
from heliograph.errors import HeliographError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from starlette.types import ASGIApp

    from heliograph.config.listeners import Listener

_log = logging.getLogger(__name__)
_GRACE_S = 5
_IDLE_S = 30  # as Connect's; clients that keep connections count on it
_START_TIMEOUT_S = 30.0
_BACKLOG = 128
_LARGEST_HEADERS_BYTES = 32 << 10


class RestServer:
    """Serves an app until it is stopped; also a context manager. `tls` is needed where a listener is https."""

    def __init__(self, app: ASGIApp, listeners: Sequence[Listener], tls: ssl.SSLContext | None = None) -> None:
        if tls is None and any(listener.is_https for listener in listeners):
            raise HeliographError("An https listener needs a TLS context.")
        self._wanted = tuple(listeners)
        self.listeners: tuple[Listener, ...] = ()
        self._servers = {
            is_https: _server(app, tls if is_https else None) for is_https in {each.is_https for each in listeners}
        }
        self._thread: threading.Thread | None = None
        self._sockets: list[socket.socket] = []

    @property
    def url(self) -> str:
        """Address of the first listener."""
        return self.listeners[0].url

    def start(self) -> None:
        """Bind all listeners and serve; raises if one cannot be bound."""
        try:
            for listener in self._wanted:
                self._sockets.append(_bound(listener))
        except HeliographError:
            self._close_sockets()
            raise
        self.listeners = tuple(
            listener._replace(port=bound.getsockname()[1])
            for listener, bound in zip(self._wanted, self._sockets, strict=True)
        )
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="rest", daemon=True)
        self._thread.start()
        self._wait_until_serving()

    def stop(self) -> None:
        """Take no more requests, finish those under way, and release the ports."""
        if self._thread is None:
            return
        for server in self._servers.values():
            server.should_exit = True
        self._thread.join(2 * _GRACE_S)
        if self._thread.is_alive():
            _log.warning("The REST server did not stop within %d s; it is left behind.", 2 * _GRACE_S)
        self._thread = None
        self._close_sockets()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    async def _serve(self) -> None:
        await asyncio.gather(*(server.serve(self._sockets_of(kind)) for kind, server in self._servers.items()))

    def _sockets_of(self, is_https: bool) -> list[socket.socket]:
        pairs = zip(self._wanted, self._sockets, strict=True)
        return [bound for listener, bound in pairs if listener.is_https is is_https]

    def _wait_until_serving(self) -> None:
        assert self._thread is not None
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not all(server.started for server in self._servers.values()):
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.stop()
                raise HeliographError("The REST server did not start; the log above says why.")
            time.sleep(0.01)

    def _close_sockets(self) -> None:
        for bound in self._sockets:
            bound.close()
        self._sockets.clear()


def _server(app: ASGIApp, tls: ssl.SSLContext | None) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=RestProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_GRACE_S,
        h11_max_incomplete_event_size=_LARGEST_HEADERS_BYTES,
    )
    config.load()
    config.ssl = tls
    return uvicorn.Server(config)


def _bound(listener: Listener) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise HeliographError(
            f"The REST server cannot listen on {listener.url} ({error.strerror or error});"
            " name another address in `listeners`."
        ) from error

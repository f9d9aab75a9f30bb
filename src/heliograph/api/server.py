"""The REST server of a process: uvicorn on a thread of its own, on one or more listeners.

Sockets are bound before the thread starts, so a port that is taken is told at once, and port 0 has its number when
`start` returns. `stop` lets requests under way finish for a few seconds. Plain and https listeners are two servers of
one event loop, since a server of uvicorn's has one way to speak.
"""

from __future__ import annotations

import asyncio
import ctypes
import ipaddress
import logging
import socket
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import uvicorn

from heliograph.api.connections import ACCEPTED_AT_ONCE, Connections, CountedListener
from heliograph.api.hosts import Place
from heliograph.api.protocol import CONNECTIONS, PLACE, RestProtocol
from heliograph.errors import HeliographError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from starlette.types import ASGIApp

    from heliograph.config.listeners import Listener

_log = logging.getLogger(__name__)
_GRACE_S = 5
_IDLE_S = 30  # as Connect's; clients that keep connections count on it
_HANDSHAKE_S = 10.0
_START_TIMEOUT_S = 30.0
# `/health` waits for each busy thread once or more often, and Python's own interval is 5 ms.
_THREAD_SWITCH_INTERVAL_S = 0.001
# glibc gives each new thread a heap of its own, and hardly ever returns what a large request left in one of them.
_M_ARENA_MAX = -8
_MOST_HEAPS = 2
_set_malloc_option = getattr(ctypes.CDLL(None), "mallopt", lambda _option, _value: 0)


class RestServer:
    """Serves an app until it is stopped; also a context manager. `tls` is needed where a listener is https."""

    def __init__(self, app: ASGIApp, listeners: Sequence[Listener], tls: ssl.SSLContext | None = None) -> None:
        if tls is None and any(listener.is_https for listener in listeners):
            raise HeliographError("An https listener needs a TLS context.")
        self._wanted = tuple(listeners)
        self.listeners: tuple[Listener, ...] = ()
        self._connections = Connections()
        self._servers = {
            is_https: _Server(_config(app, tls if is_https else None), self._connections)
            for is_https in {each.is_https for each in listeners}
        }
        self._thread: threading.Thread | None = None
        self._sockets: list[_Listening] = []

    @property
    def url(self) -> str:
        """Address of the first listener."""
        return self.listeners[0].url

    def start(self) -> None:
        """Bind all listeners and serve; raises if one cannot be bound. Adapts the process to many short requests."""
        sys.setswitchinterval(min(sys.getswitchinterval(), _THREAD_SWITCH_INTERVAL_S))
        _set_malloc_option(_M_ARENA_MAX, _MOST_HEAPS)
        try:
            for listener in self._wanted:
                self._sockets.append(_Listening(listener, self._connections))
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
        asyncio.get_running_loop().set_exception_handler(self._report)
        await asyncio.gather(*(server.serve(self._sockets_of(kind)) for kind, server in self._servers.items()))

    def _sockets_of(self, is_https: bool) -> list[socket.socket]:
        return [bound for bound in self._sockets if bound.listener.is_https is is_https]

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and "socket" in context:  # so asyncio reports a failed accept()
            self._connections.report_exhausted(error)
        else:
            loop.default_exception_handler(context)

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


class _Listening(CountedListener):
    """The socket of a listener; one that cannot be bound raises a sentence."""

    def __init__(self, listener: Listener, connections: Connections) -> None:
        super().__init__(_bound(listener), connections)
        self.listener = listener
        address = ipaddress.ip_address(self.getsockname()[0])
        self.place = Place(listener.host, address.is_loopback)


class _Server(uvicorn.Server):
    """uvicorn's, with a limit to the handshake, and whose requests know their listener."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._counted = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(
                partial(
                    RestProtocol,
                    config=self.config,
                    server_state=self.server_state,
                    app_state={CONNECTIONS: self._counted, PLACE: bound.place},
                ),
                sock=bound,
                ssl=self.config.ssl,
                backlog=ACCEPTED_AT_ONCE,
                ssl_handshake_timeout=_HANDSHAKE_S if self.config.ssl else None,
            )
            for bound in sockets or ()
            if isinstance(bound, _Listening)
        ]
        self.started = True


def _config(app: ASGIApp, tls: ssl.SSLContext | None) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=RestProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # its warnings are one line for each request that is no HTTP, as many as anybody sends
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    config.load()
    config.ssl = tls
    return config


def _bound(listener: Listener) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise HeliographError(
            f"The REST server cannot listen on {listener.url} ({error.strerror or error});"
            " name another address in `listeners`."
        ) from error

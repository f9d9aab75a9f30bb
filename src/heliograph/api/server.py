"""The REST server of a process: uvicorn on a thread of its own, on one or more listeners.

Sockets are bound before the thread starts, so a port that is taken is told at once, and port 0 has its number when
`start` returns. `stop` lets requests under way finish for a few seconds.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import TYPE_CHECKING, Self

import uvicorn

from heliograph.config.listeners import Listener
from heliograph.errors import HeliographError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp

_log = logging.getLogger(__name__)
_GRACE_S = 5
_IDLE_S = 30  # as Connect's; clients that keep connections count on it
_START_TIMEOUT_S = 30.0
_BACKLOG = 128


class RestServer:
    """Serves an app until it is stopped; also a context manager."""

    def __init__(self, app: ASGIApp, listeners: Sequence[Listener]) -> None:
        self._wanted = tuple(listeners)
        self.listeners: tuple[Listener, ...] = ()
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=_GRACE_S,
        )
        self._server = uvicorn.Server(config)
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
            Listener(listener.host, bound.getsockname()[1])
            for listener, bound in zip(self._wanted, self._sockets, strict=True)
        )
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": self._sockets}, name="rest", daemon=True
        )
        self._thread.start()
        self._wait_until_serving()

    def stop(self) -> None:
        """Take no more requests, finish those under way, and release the ports."""
        if self._thread is None:
            return
        self._server.should_exit = True
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

    def _wait_until_serving(self) -> None:
        assert self._thread is not None
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.stop()
                raise HeliographError("The REST server did not start; the log above says why.")
            time.sleep(0.01)

    def _close_sockets(self) -> None:
        for bound in self._sockets:
            bound.close()
        self._sockets.clear()


def _bound(listener: Listener) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise HeliographError(
            f"The REST server cannot listen on {listener.url} ({error.strerror or error});"
            " name another address in `listeners`."
        ) from error

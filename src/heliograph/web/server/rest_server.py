"""The REST server of a process: uvicorn on a thread of its own, on one or more listeners.

Sockets are bound before the thread starts, so a port in use is reported at once, and port 0 has its number when `start`
returns. `stop` gives requests under way a few seconds to finish. Plain and https listeners are two servers on one event
loop, since a server of uvicorn has either TLS or none.

uvicorn by itself waits forever for a request whose headers come byte by byte, and for a client that does not read its
response. Here headers have a time limit. A chunk of a body costs the event loop the same time however small it is, also
from a caller that is refused, so small chunks are limited in number. `app` limits the time of bodies and handlers,
`connections` the number of connections.
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

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from heliograph.errors import HeliographError
from heliograph.web.access.allowed_hosts import ListenerAddress
from heliograph.web.server.connections import ACCEPTED_AT_ONCE, Connections, CountedListener

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from starlette.types import ASGIApp

    from heliograph.config.effective.rest_config import RestListener
    from heliograph.web.server.connections import RestConnection


_log = logging.getLogger(__name__)

HEADERS_TIMEOUT_S = 30.0
_GRACE_S = 5
_IDLE_S = 30  # as in Connect; clients that keep connections rely on it
_HANDSHAKE_S = 10.0
_START_TIMEOUT_S = 30.0
_LARGEST_HEADERS_BYTES = 32 << 10
_MOST_CHUNKS = 1_000
_BYTES_PER_FURTHER_CHUNK = 256
# `/health` waits for each busy thread once or more often, and Python's own interval is 5 ms.
_THREAD_SWITCH_INTERVAL_S = 0.001
# glibc gives each new thread a heap of its own, and hardly ever returns what a large request left in one of them.
_M_ARENA_MAX = -8
_MOST_HEAPS = 2
_set_malloc_option = getattr(ctypes.CDLL(None), "mallopt", lambda _option, _value: 0)

# Names in the state of a request (or of a server's requests).
ABORT = "abort"  # to be called to close the connection at once
CERTIFICATE = "client_certificate"  # the client's certificate, as DER
CONNECTIONS = "connections"  # the server's `Connections`
LISTENER = "listener"  # the `ListenerAddress` of the request's listener
ON_ADMITTED = "on_admitted"  # to be called when the caller of the request is admitted


class RestServer:
    """Serves an app until it is stopped; also a context manager. An https listener needs `tls`.

    In messages the server is called `what`, and its listeners are those of `key`.
    """

    def __init__(
        self,
        app: ASGIApp,
        listeners: Sequence[RestListener],
        tls: ssl.SSLContext | None = None,
        *,
        what: str = "REST server",
        key: str = "listeners",
    ) -> None:
        if tls is None and any(listener.is_https for listener in listeners):
            raise HeliographError("An https listener needs a TLS context.")
        self._what, self._key = what, key
        self._wanted = tuple(listeners)
        self.listeners: tuple[RestListener, ...] = ()
        self._connections = Connections()
        self._servers = {
            is_https: _Server(_config(app, tls if is_https else None), self._connections)
            for is_https in {each.is_https for each in listeners}
        }
        self._thread: threading.Thread | None = None
        self._sockets: list[_Listening] = []

    @property
    def url(self) -> str:
        """The address of the first listener."""
        return self.listeners[0].url

    def start(self) -> None:
        """Bind all listeners and serve; raises if one cannot be bound. Adapts the process to many short requests."""
        sys.setswitchinterval(min(sys.getswitchinterval(), _THREAD_SWITCH_INTERVAL_S))
        _set_malloc_option(_M_ARENA_MAX, _MOST_HEAPS)
        try:
            for listener in self._wanted:
                self._sockets.append(_Listening(self._bound(listener), listener, self._connections))
        except HeliographError:
            self._close_sockets()
            raise
        self.listeners = tuple(
            listener._replace(port=bound.getsockname()[1])
            for listener, bound in zip(self._wanted, self._sockets, strict=True)
        )
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name=self._what, daemon=True)
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
            _log.warning("The %s did not stop within %d s; its thread is abandoned.", self._what, 2 * _GRACE_S)
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
                raise HeliographError(f"The {self._what} did not start; the log above says why.")
            time.sleep(0.01)

    def _bound(self, listener: RestListener) -> socket.socket:
        try:
            family, _, _, _, address = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)[0]
            return socket.create_server(address[:2], family=family)
        except OSError as error:
            raise HeliographError(
                f"The {self._what} cannot listen on {listener.url} ({error.strerror or error});"
                f" name another address in `{self._key}`."
            ) from error

    def _close_sockets(self) -> None:
        for bound in self._sockets:
            bound.close()
        self._sockets.clear()


class _Server(uvicorn.Server):
    """uvicorn's server, with a time limit for the TLS handshake, and whose requests know their listener."""

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
                    app_state={CONNECTIONS: self._counted, LISTENER: bound.address},
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
        log_level="error",  # it would warn of every request that is not HTTP, as often as anybody sends one
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    config.load()
    config.ssl = tls
    return config


class _Listening(CountedListener):
    """The socket of a listener."""

    def __init__(self, bound: socket.socket, listener: RestListener, connections: Connections) -> None:
        super().__init__(bound, connections)
        self.listener = listener
        address = ipaddress.ip_address(self.getsockname()[0])
        self.address = ListenerAddress(listener.host, address.is_loopback)


class _TooManyChunksError(Exception):
    """A body in very small chunks."""


class _CountedChunks(h11.Connection):
    """A connection that raises if the body of a request has too many chunks for its length."""

    _chunks = _bytes = 0

    def next_event(self) -> Any:
        """Return the next event."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_end  # a body without chunks comes in pieces of the network's making
            self._bytes += len(event.data)
            if self._chunks > _MOST_CHUNKS + self._bytes // _BYTES_PER_FURTHER_CHUNK:
                raise _TooManyChunksError
        return event


class RestProtocol(H11Protocol):
    """One connection to REST: uvicorn's, with time limits, and with the certificate of its client."""

    headers_timeout_s = HEADERS_TIMEOUT_S
    _headers_due: asyncio.TimerHandle | None = None
    _connection: RestConnection | None = None

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = _CountedChunks(h11.SERVER, _LARGEST_HEADERS_BYTES)

    def handle_events(self) -> None:
        """Handle what was received; a body in too many chunks ends the connection."""
        try:
            super().handle_events()
        except _TooManyChunksError:
            self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._connection = self.app_state[CONNECTIONS].get(transport.get_extra_info("socket").fileno())
        if self._connection is None:
            transport.abort()
            return
        secured: Any = transport.get_extra_info("ssl_object")
        certificate = secured.getpeercert(True) if secured is not None else None
        served = {CERTIFICATE: certificate, ON_ADMITTED: self._connection.serve, ABORT: transport.abort}
        self.app_state = {**self.app_state, **served}
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Continue with a request, or start to wait for the next one."""
        super().data_received(data)
        is_serving = self.cycle is not None and not self.cycle.response_complete
        if is_serving:
            self._stop_waiting()
        elif self._headers_due is None and not self.transport.is_closing():
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if self._connection is not None:
            self._connection.rest()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle; abort one whose client does not read its response."""
        super().timeout_keep_alive_handler()
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _await_headers(self) -> None:
        self._headers_due = self.loop.call_later(self.headers_timeout_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None

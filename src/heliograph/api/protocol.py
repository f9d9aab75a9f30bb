"""One connection to REST: uvicorn's, with patience that ends, and with the certificate its client has shown.

Left to itself uvicorn waits for ever for a request whose headers come byte by byte, and for a client that does not
take its answer. Here headers have `HEADERS_TIMEOUT_S`. Each chunk of a body takes the event loop as long, however small
it is, also of a caller that is refused; so small ones are counted. The time of a body is kept where it is read
(`body_reader.py`), the time of the work by the table of routes, and the number of connections by `connections.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from heliograph.api.connections import Connection

HEADERS_TIMEOUT_S = 30.0
_LARGEST_HEADERS_BYTES = 32 << 10
CERTIFICATE = "client_certificate"
"""The name in a request's state under which its client's certificate is found, as DER."""
CONNECTIONS = "connections"
"""The name in the state of a server's requests under which its `Connections` are found."""
PLACE = "place"
"""The name under which a request's state has the `Place` of its listener."""
LET_IN = "let_in"
"""The name under which a request's state has what is to be called when its caller is let in."""


_MOST_CHUNKS = 1_000
_BYTES_PER_FURTHER_CHUNK = 256


class _TooManyChunksError(Exception):
    """A body in very small pieces."""


class _CountedChunks(h11.Connection):
    """A connection that raises where the body of a request comes in too many pieces for its length."""

    _chunks = _bytes = 0

    def next_event(self) -> Any:
        """The next event."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_end  # of a body without chunks, pieces are what the network makes of it
            self._bytes += len(event.data)
            if self._chunks > _MOST_CHUNKS + self._bytes // _BYTES_PER_FURTHER_CHUNK:
                raise _TooManyChunksError
        return event


class RestProtocol(H11Protocol):
    """A connection."""

    headers_timeout_s = HEADERS_TIMEOUT_S
    _headers_due: asyncio.TimerHandle | None = None
    _connection: Connection | None = None

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = _CountedChunks(h11.SERVER, _LARGEST_HEADERS_BYTES)

    def handle_events(self) -> None:
        """Go through what has come; a body in too many pieces ends the connection."""
        try:
            super().handle_events()
        except _TooManyChunksError:
            self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._connection = self.app_state[CONNECTIONS].get(transport.get_extra_info("socket").fileno())
        if self._connection is None:
            transport.abort()
            return
        secured: Any = transport.get_extra_info("ssl_object")
        certificate = secured.getpeercert(True) if secured is not None else None
        self.app_state = {**self.app_state, CERTIFICATE: certificate, LET_IN: self._connection.serve}
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Go on with a request, or begin with the next one."""
        super().data_received(data)
        is_serving = self.cycle is not None and not self.cycle.response_complete
        if is_serving:
            self._stop_waiting()
        elif self._headers_due is None and not self.transport.is_closing():
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if self._connection is not None:
            self._connection.rest()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle; one that does not take its answer is cut off."""
        super().timeout_keep_alive_handler()
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _await_headers(self) -> None:
        self._headers_due = self.loop.call_later(self.headers_timeout_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None

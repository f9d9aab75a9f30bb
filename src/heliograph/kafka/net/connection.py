"""One connection to one broker: opened and authenticated blocking, then used without blocking.

Requests are pipelined; a broker answers in order, so responses are matched by position and checked by correlation id.
The body of a response is read straight into one buffer (`recv_into`), and a request is sent as a list of buffers
(`sendmsg`): no byte of a batch is copied in Python. kafka-python's transport is not used because it reads in 4 KiB
pieces (measured: 3 s CPU per GB against 1.3 s). Over TLS OpenSSL reads straight from the socket into the response's
buffer and writes full records; letting it work on memory and moving larger pieces through the socket ourselves costs
more (measured: 1.0 s CPU per GB received either way, 0.6 against 0.9 s sent).

Nothing that a broker sends is trusted (`response_decoder`): an invalid length, correlation id or body is a lost
connection.

Invariant: after `ConnectionLost` every pending request has been returned through `abandon`, exactly once.
"""

from __future__ import annotations

import math
import socket
import ssl
import struct
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.sasl import SaslAuthenticateRequest

from heliograph.errors import BrokerError, UnreachableError
from heliograph.kafka.error_codes import NO_ERROR, UNKNOWN_SERVER_ERROR, UNSUPPORTED_VERSION
from heliograph.kafka.net.buffers import Buffer, room_for
from heliograph.kafka.net.response_decoder import (
    MAX_FETCH_RESPONSE_BYTES,
    MAX_HANDSHAKE_RESPONSE_BYTES,
    MAX_RESPONSE_BYTES,
    decode_response,
    max_response_bytes,
)
from heliograph.kafka.security.sasl import NEWEST_AUTHENTICATE, Session, log_in
from heliograph.kafka.security.tls import handshake_error, wrap
from heliograph.wire.messages.fetch_response import MalformedResponseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heliograph.kafka.net.buffers import BufferPool
    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import Address


_SIZE = struct.Struct(">i")
_CORRELATION = struct.Struct(">i")
_MAX_IOVECS = 512
_MIN_RESPONSE_BYTES = 5  # a correlation id and anything
_TLS_RECORD_BYTES = 16 << 10
_MIN_MOVED_BYTES, _STALLED_S = 16 << 10, 10.0  # fewer bytes in this time count as a stalled connection
_MIN_BYTES_PER_S = 16 << 10  # of a response that takes longer than its time-out


class ConnectionLost(Exception):  # noqa: N818  (an event of the loop, not an error for users)
    """The socket is closed or broken, or a response took too long or is invalid."""


@dataclass(slots=True)
class Pending:
    """A request whose response is awaited."""

    correlation_id: int
    decode: Callable[[memoryview, int], Any]
    version: int
    is_flexible: bool
    on_response: Callable[[Any, Buffer], None]
    on_lost: Callable[[str], None]
    deadline: float
    pooled: bool
    api: str = ""
    wait_s: float = 0.0  # for which the broker may wait by the request itself
    sent_at: float = 0.0


class Connection:
    """A ready connection. Not thread-safe: it belongs to one loop."""

    def __init__(
        self,
        sock: socket.socket,
        address: Address,
        client_id: str,
        versions: dict[int, tuple[int, int]],
        features: dict[str, int] | None = None,
    ) -> None:
        self.sock = sock
        self.address = address
        self.client_id = client_id
        self.pending: deque[Pending] = deque()
        self.features = features or {}
        self.round_trip_s = 0.0
        self.session: Session | None = None
        self.is_holding = False
        self._held: list[tuple[list[Any], Pending]] = []
        self._versions = versions
        self._outbox: deque[memoryview] = deque()
        self._correlation_id = 0
        self._size_view = memoryview(bytearray(4))
        self._filled = 0
        self._body: Buffer | None = None
        self._body_size = 0
        self.received_bytes = self.sent_bytes = 0  # since the handshake
        self._noted_bytes = 0
        self._moved_at = -math.inf
        self._answered_at = -math.inf
        self.throttled_until = -math.inf  # by a quota: until then the broker reads no request

    def version_of(self, request_class: Any, newest: int, oldest: int = 0) -> int:
        """Return the newest version of an API that both sides support."""
        low, high = self._versions.get(request_class.API_KEY, (-1, -1))
        version = min(high, newest)
        if version < max(low, oldest):
            raise BrokerError(
                f"the broker {self.address} does not support {request_class.__name__} {oldest} to {newest}",
                UNSUPPORTED_VERSION,
            )
        return version

    def supports(self, request_class: Any) -> bool:
        """Return whether the broker supports an API in any version."""
        return request_class.API_KEY in self._versions

    def next_correlation_id(self) -> int:
        """Return the correlation id of the next request."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def request(
        self,
        request: Any,
        response_class: Any,
        on_response: Callable[[Any, Buffer], None],
        on_lost: Callable[[str], None],
        deadline: float,
        *,
        decode: Callable[[memoryview, int], Any] | None = None,
        pooled: bool = False,
        wait_s: float = 0.0,
    ) -> None:
        """Queue a request built from kafka-python's schemas."""
        correlation_id = self.next_correlation_id()
        request.with_header(correlation_id, self.client_id)
        encoded = request.encode(header=True, framed=True)
        self.send(
            [encoded],
            Pending(
                correlation_id,
                decode or _schema_decoder(response_class),
                request.API_VERSION,
                response_class.flexible_version_q(request.API_VERSION),
                on_response,
                on_lost,
                deadline,
                pooled,
                type(request).__name__.removesuffix("Request"),
                wait_s,
            ),
        )

    def send(self, parts: list[Any], pending: Pending) -> None:
        """Queue a framed request, which `flush` sends; hold it during re-authentication, when a broker rejects it."""
        if self.is_holding:
            self._held.append((parts, pending))
            return
        pending.sent_at = time.monotonic()
        self.pending.append(pending)
        self._outbox.extend(memoryview(part) for part in parts if len(part))

    def stop_holding(self) -> None:
        """Queue the requests held during re-authentication."""
        self.is_holding = False
        held, self._held = self._held, []
        for parts, pending in held:
            self.send(parts, pending)

    @property
    def wants_write(self) -> bool:
        """Return whether bytes wait to be sent."""
        return bool(self._outbox)

    def flush(self) -> None:
        """Send as much as the socket takes."""
        try:
            while self._outbox:
                sent = self._send_some()
                self._drop_sent(sent)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return
        except OSError as error:
            raise ConnectionLost(_reason(error)) from None

    def _send_some(self) -> int:
        if isinstance(self.sock, ssl.SSLSocket):
            self._fill_tls_record()
            return self.sock.send(self._outbox[0])
        if len(self._outbox) <= _MAX_IOVECS:
            return self.sock.sendmsg(self._outbox)
        return self.sock.sendmsg([self._outbox[i] for i in range(_MAX_IOVECS)])

    def _fill_tls_record(self) -> None:
        """Join small parts: each would cost a TLS record of its own, and a system call.

        The joined bytes stay in front until they are sent, as OpenSSL wants the same bytes again after a full socket.
        """
        if len(self._outbox) == 1 or len(self._outbox[0]) >= _TLS_RECORD_BYTES:
            return
        joined = bytearray()
        while self._outbox and len(joined) < _TLS_RECORD_BYTES:
            part = self._outbox.popleft()
            room = _TLS_RECORD_BYTES - len(joined)
            joined += part[:room]
            if len(part) > room:
                self._outbox.appendleft(part[room:])
        self._outbox.appendleft(memoryview(joined))

    def _drop_sent(self, sent: int) -> None:
        self.sent_bytes += sent
        while sent:
            first = self._outbox[0]
            if len(first) > sent:
                self._outbox[0] = first[sent:]
                return
            sent -= len(first)
            self._outbox.popleft()

    def receive(self, pool: BufferPool) -> Iterator[tuple[Pending, Any, Buffer]]:
        """Yield the complete responses that have arrived, decoded; each buffer is held once for the caller."""
        try:
            while True:
                if self._body is None:
                    if not self._fill(self._size_view, 4):
                        return
                    self._begin_body(pool)
                assert self._body is not None
                if not self._fill(self._body.view, self._body_size):
                    return
                buffer, self._body, self._filled = self._body, None, 0
                yield self._decode(buffer)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as error:
            raise ConnectionLost(_reason(error)) from None

    def _fill(self, view: memoryview, wanted: int) -> bool:
        while self._filled < wanted:
            received = self.sock.recv_into(view[self._filled : wanted])
            if received == 0:
                raise ConnectionLost("the broker closed the connection")
            self._filled += received
            self.received_bytes += received
        return True

    def _begin_body(self, pool: BufferPool) -> None:
        (size,) = _SIZE.unpack(self._size_view)
        if not self.pending:
            raise ConnectionLost("the broker sent a response without a request")
        pooled = self.pending[0].pooled
        if not _MIN_RESPONSE_BYTES <= size <= (MAX_FETCH_RESPONSE_BYTES if pooled else MAX_RESPONSE_BYTES):
            raise ConnectionLost(f"invalid response size {size}")
        self._body = pool.take(size) if pooled else Buffer(room_for(size))
        self._body.hold()
        self._body_size, self._filled = size, 0

    def _decode(self, buffer: Buffer) -> tuple[Pending, Any, Buffer]:
        """Decode a response; if it is invalid, release its buffer and leave the request for `abandon`."""
        pending = self.pending[0]
        if _CORRELATION.unpack_from(buffer.view)[0] != pending.correlation_id:
            buffer.release()
            raise ConnectionLost("the broker's response has the correlation id of another request")
        start = 5 if pending.is_flexible else 4
        try:
            response = pending.decode(buffer.view[start : self._body_size], pending.version)
        except MalformedResponseError as error:
            buffer.release()
            raise ConnectionLost(str(error)) from None
        self.pending.popleft()
        self._answered_at = time.monotonic()
        return pending, response, buffer

    @property
    def is_awaited(self) -> bool:
        """Return whether a caller waits for a response."""
        return bool(self.pending or self._held)

    def unanswered_api(self, now: float, after_s: float) -> str | None:
        """Return the API of the oldest request if it has waited for so long, and nothing moves; None otherwise.

        Until the request before it was answered the broker may not have looked at it, nor while it throttles.
        """
        if not self.pending or now - self._moved_at < after_s:
            return None
        oldest = self.pending[0]
        began = max(oldest.sent_at, self._answered_at, self.throttled_until)
        return oldest.api if now - began - oldest.wait_s >= after_s else None

    def is_moving(self, now: float) -> bool:
        """Return whether enough bytes arrive or leave, although a response is late; to be called about once a second.

        On a slow high-latency link a large response takes longer than any deadline, and would take as long again. A
        broker that sends a byte now and then does not count as moving, so every response ends.
        """
        moved_bytes = self.received_bytes + self.sent_bytes
        if moved_bytes - self._noted_bytes >= _MIN_MOVED_BYTES:
            self._noted_bytes, self._moved_at = moved_bytes, now
        return now - self._moved_at < _STALLED_S

    def abandon(self, why: str) -> None:
        """Close, and call `on_lost` of every pending request."""
        self.stop_holding()
        self.sock.close()
        self._outbox.clear()
        if self._body is not None:
            self._body.release()
            self._body = None
        while self.pending:
            self.pending.popleft().on_lost(why)


def _schema_decoder(response_class: Any) -> Callable[[memoryview, int], Any]:
    return lambda view, version: decode_response(response_class, view, version)


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def open_connection(
    address: Address, security: Security, client_id: str, timeout_s: float, *, has_worked: bool = False
) -> Connection:
    """Connect, wrap in TLS, request API versions, authenticate; blocking, each step within `timeout_s`.

    `has_worked`: an earlier connection to this address was usable, so a failure is not the settings' fault.
    """
    try:
        sock = socket.create_connection((address.host, address.port), timeout=timeout_s)
    except OSError as error:
        raise UnreachableError(f"{address} cannot be reached: {_reason(error)}") from None
    except (ValueError, OverflowError):  # such as a label of a host name that is too long
        raise UnreachableError(f"{address!r} cannot be reached: it is not an address") from None
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if security.uses_tls:
            sock = wrap(sock, address, security)
        connection = _handshake(sock, address, security, client_id, has_worked=has_worked)
    except BaseException:
        sock.close()
        raise
    sock.setblocking(False)
    return connection


def _handshake(
    sock: socket.socket, address: Address, security: Security, client_id: str, *, has_worked: bool
) -> Connection:
    connection = Connection(sock, address, client_id, {})
    try:
        connection = _introduce(connection)
        if security.uses_sasl:
            _authenticate(connection, security)
    except ssl.SSLError as error:  # with TLS 1.3 a broker refuses our certificate after the handshake
        raise handshake_error(error, address, security) from None
    except TimeoutError as error:
        if has_worked:
            raise UnreachableError(f"{address} accepts connections and does not answer") from None
        raise UnreachableError(
            f"{address} accepts connections and does not answer ({error}){_hint(security)}"
        ) from None
    except (OSError, ConnectionLost) as error:
        hint = "" if has_worked else _hint(security)
        raise UnreachableError(f"{address} closed the connection before it answered ({error}){hint}") from None
    return connection


def _hint(security: Security) -> str:
    """Return which setting may be wrong if a broker does not answer a connection that has never worked."""
    if not security.uses_tls:
        return "; does the listener want TLS or SASL?"
    return "" if security.has_key else "; does the listener want a client certificate?"


def _introduce(connection: Connection) -> Connection:
    """Return a connection that knows the broker's API versions and its round-trip time."""
    response = None
    round_trip_s = 0.0
    for version in (3, 0):  # a broker that does not support version 3 responds with an error in version 0
        request = ApiVersionsRequest(version=version, client_software_name="heliograph", client_software_version="0")
        sent_at = time.monotonic()
        response = _ask(connection, request, ApiVersionsResponse, flexible_header=False)
        round_trip_s = time.monotonic() - sent_at
        if response.error_code == NO_ERROR:
            break
    if response is None or response.error_code:
        code = response.error_code if response else UNKNOWN_SERVER_ERROR
        raise BrokerError(f"{connection.address} did not return its API versions", code)
    versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    features = {feature.name: feature.max_version_level for feature in response.finalized_features or ()}
    introduced = Connection(connection.sock, connection.address, connection.client_id, versions, features)
    introduced.round_trip_s = round_trip_s
    return introduced


def _authenticate(connection: Connection, security: Security) -> None:
    version = connection.version_of(SaslAuthenticateRequest, NEWEST_AUTHENTICATE)
    steps = log_in(security, connection.address, version)
    step = next(steps)
    session = Session(security)
    try:
        while True:
            step = steps.send(_ask(connection, step.request, step.response_class))
    except StopIteration as end:
        session.set_lifetime(end.value, time.monotonic())
    connection.session = session


def ask(connection: Connection, request: Any, response_class: Any, *, timeout_s: float) -> Any:
    """Send one request on a connection without other users and return its response; blocks for up to `timeout_s`.

    A large response on a slow line may take longer, as long as it keeps a minimum rate.
    """
    connection.sock.settimeout(timeout_s)
    return _ask(connection, request, response_class, max_bytes=max_response_bytes(response_class))


def _ask(
    connection: Connection,
    request: Any,
    response_class: Any,
    *,
    flexible_header: bool = True,
    max_bytes: int = MAX_HANDSHAKE_RESPONSE_BYTES,
) -> Any:
    correlation_id = connection.next_correlation_id()
    request.with_header(correlation_id, connection.client_id)
    connection.sock.sendall(request.encode(header=True, framed=True))
    (size,) = _SIZE.unpack(_read_exactly(connection.sock, 4))
    if not _MIN_RESPONSE_BYTES <= size <= max_bytes:
        raise ConnectionLost("the response is not Kafka's")
    body = _read_exactly(connection.sock, size)
    if _CORRELATION.unpack_from(body)[0] != correlation_id:
        raise ConnectionLost("the broker's response has the correlation id of another request")
    version = request.API_VERSION
    if response_class is ApiVersionsResponse and bytes(body[4:6]) != b"\0\0":
        version = 0  # an error, such as an unsupported version, comes in the oldest format
    flexible = flexible_header and response_class.flexible_version_q(version)
    try:
        return decode_response(response_class, body[5 if flexible else 4 :], version)
    except MalformedResponseError as error:
        raise ConnectionLost(str(error)) from None


def _read_exactly(sock: socket.socket, size: int) -> memoryview:
    """Read within the socket's time-out, extended by the time that a slow line takes at the minimum rate."""
    view, filled = room_for(size), 0
    timeout_s = sock.gettimeout() or _STALLED_S
    deadline = time.monotonic() + timeout_s
    try:
        while filled < size:
            left_s = deadline + filled / _MIN_BYTES_PER_S - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("timed out")
            sock.settimeout(left_s)
            received = sock.recv_into(view[filled:])
            if received == 0:
                raise ConnectionLost("end of stream")
            filled += received
    finally:
        sock.settimeout(timeout_s)
    return view

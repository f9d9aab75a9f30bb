"""The lease between the driver and its tasks: its messages, and the authenticated channel that carries them.

One TCP connection per task, one JSON line each way about once a second. A task sends its report; the driver answers:
continue, continue with these partitions, or stop. A task that gets no answer for the lease's time ends itself, so a
partition never has two writers for longer than that. If the driver's port refuses the connection, the driver is gone,
and the task ends at once: a restarted driver must not meet the tasks of its predecessor. The same holds if another
process answers at that port.

Both ends know a token that never crosses the wire. Each sends a random number, and from the token and both numbers each
direction gets a key of its own. Every line begins with the code (HMAC-SHA256) of its number in the stream and its
text: none can be forged, repeated, left out or reordered. The task's first line is its proof to the driver, the
driver's answer to it is the proof to the task.

Invariant: no byte of an unauthenticated peer is parsed. Until its code has been checked, the length of a line and the
time for it are bounded. Lines are not encrypted: reports and assignments hold names and offsets, never a secret.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from heliograph.executor.contract.task_spec import PartitionSpec

if TYPE_CHECKING:
    import socket

    from heliograph.executor.contract.task_report import TaskReport


_NONCE_BYTES = 32
_MAX_STRANGER_BYTES = 16 << 10
_MAX_LINE_BYTES = 64 << 20
_READ_BYTES = 64 << 10


class NotOurPeerError(Exception):
    """The peer does not know the token, or lines were changed in transit."""


class Channel:
    """One end of an authenticated connection. Not thread-safe."""

    def __init__(self, lines: _Lines, sent_key: bytes, received_key: bytes) -> None:
        self._lines = lines
        self._sent_key, self._received_key = sent_key, received_key
        self._sent_count = self._received_count = 0

    def send(self, message: dict[str, Any]) -> None:
        """Send one object."""
        text = json.dumps(message).encode()
        self._lines.write(_code(self._sent_key, self._sent_count, text) + b" " + text)
        self._sent_count += 1

    def receive(self, max_bytes: int = _MAX_LINE_BYTES, deadline: float | None = None) -> dict[str, Any]:
        """Return the next object; raises OSError if the connection has ended."""
        code, _, text = self._lines.read(max_bytes, deadline).partition(b" ")
        if not hmac.compare_digest(code, _code(self._received_key, self._received_count, text)):
            raise NotOurPeerError
        self._received_count += 1
        return dict(json.loads(text))


def welcome(sock: socket.socket, token: str, within_s: float) -> tuple[Channel, dict[str, Any]]:
    """Return the driver's channel to a task that proves in time that it knows the token, and its first message."""
    deadline = time.monotonic() + within_s
    lines = _Lines(sock)
    own = _nonce()
    lines.write(own)
    theirs = lines.read(_MAX_STRANGER_BYTES, deadline)
    driver_key, task_key = _keys(token, own, theirs)
    channel = Channel(lines, driver_key, task_key)
    hello = channel.receive(_MAX_STRANGER_BYTES, deadline)
    channel.send({"welcome": True})
    sock.settimeout(None)
    return channel, hello


def introduce(sock: socket.socket, token: str, hello: dict[str, Any]) -> Channel:
    """Return the task's channel to a driver that proves, within the socket's time-out, that it knows the token."""
    lines = _Lines(sock)
    theirs = lines.read(_MAX_STRANGER_BYTES)
    own = _nonce()
    lines.write(own)
    driver_key, task_key = _keys(token, theirs, own)
    channel = Channel(lines, task_key, driver_key)
    channel.send(hello)
    channel.receive(_MAX_STRANGER_BYTES)
    return channel


class _Lines:
    """The lines of a socket, of bounded length."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()

    def write(self, line: bytes) -> None:
        self._sock.sendall(line + b"\n")

    def read(self, max_bytes: int, deadline: float | None = None) -> bytes:
        """Return the next line without its end; raises if it does not end in time, or within so many bytes."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > max_bytes:
                raise NotOurPeerError
            if deadline is not None:
                self._sock.settimeout(max(0.001, deadline - time.monotonic()))
            received = self._sock.recv(_READ_BYTES)
            if not received:
                raise ConnectionResetError
            self._buffer += received
        if end > max_bytes:
            raise NotOurPeerError
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


def _nonce() -> bytes:
    return secrets.token_hex(_NONCE_BYTES).encode()


def _keys(token: str, driver_nonce: bytes, task_nonce: bytes) -> tuple[bytes, bytes]:
    """Return the key of the driver's lines and that of the task's."""
    both = driver_nonce + b"|" + task_nonce
    return (
        hmac.digest(token.encode(), b"driver|" + both, "sha256"),
        hmac.digest(token.encode(), b"task|" + both, "sha256"),
    )


def _code(key: bytes, number: int, text: bytes) -> bytes:
    return hmac.digest(key, number.to_bytes(8, "big") + text, "sha256").hex().encode()


class TaskAssignment(NamedTuple):
    """The partitions of a task and its share of the flow's rate limit (0: none).

    Number 0 is the assignment of its start; the newest has the highest number.
    """

    number: int
    partitions: tuple[PartitionSpec, ...]
    bytes_per_s: int = 0


def encode_assignment(assignment: TaskAssignment) -> list[Any]:
    """Return an assignment as JSON values."""
    return [assignment.number, [partition.to_json() for partition in assignment.partitions], assignment.bytes_per_s]


def decode_assignment(values: list[Any]) -> TaskAssignment:
    """Return the assignment that `encode_assignment` encoded."""
    number, rows, bytes_per_s = values
    return TaskAssignment(number, tuple(PartitionSpec.from_json(row) for row in rows), bytes_per_s)


class TaskLease(Protocol):
    """The driver, as the loop of a task sees it."""

    def report(self, report: TaskReport) -> None:
        """Send a report; does not block."""

    def await_losses(self) -> None:
        """Wait until the driver has the losses of all reports; raises LeaseLostError if it is gone, or does not answer
        for the lease's time. Returns at once if there are none.
        """

    def take_assignment(self) -> TaskAssignment | None:
        """Return the assignment that the driver has sent since the last call, if any."""

    @property
    def stop_reason(self) -> str | None:
        """Return why the driver wants the task to end, or None."""

    def check(self) -> None:
        """Raise LeaseLostError if the driver is gone."""

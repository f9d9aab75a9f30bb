"""The wire of a lease: lines of JSON over TCP, each sealed with a code that only the driver and its tasks can make.

Both ends know a token; it never crosses the wire. Each sends a random number, and from the token and both numbers each
direction gets a key of its own. Every line then begins with the code (HMAC-SHA256) of its place in the stream and its
text: nothing can be forged, repeated, left out or put elsewhere. The task's first line is its proof to the driver, the
driver's answer to it is the proof to the task.

Invariant: no byte of a stranger is parsed. Before its code has been checked a line is bounded, and so is the time in
which it must come. What is said is not hidden: reports and assignments hold names and offsets, never a secret.


The lease between the driver and its tasks: one TCP connection per task, one JSON line each way about once a second.

A task says where it stands; the answer says go on, go on with these partitions, or stop. A task that hears nothing
for the lease's time ends itself, so a partition never has two writers for longer than that. Where the driver's port
refuses the connection the driver is gone, and the task ends at once: a restarted process must not meet the tasks of
its predecessor. The same holds where somebody answers at that port who is not the driver: `lease_channel` has each
end prove to the other that it knows the token that only the driver and the task's payload have.

What a task tells its driver about once a second, as plain JSON: counters since the task began, states as they are.

Counters only grow, so a lost report loses nothing.
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
    """Whoever is at the other end does not know the token, or the lines were changed on their way."""


class Channel:
    """One end of an authenticated connection. Not thread-safe."""

    def __init__(self, lines: _Lines, sent_key: bytes, heard_key: bytes) -> None:
        self._lines = lines
        self._sent_key, self._heard_key = sent_key, heard_key
        self._sent_count = self._heard_count = 0

    def send(self, message: dict[str, Any]) -> None:
        """One object."""
        text = json.dumps(message).encode()
        self._lines.write(_code(self._sent_key, self._sent_count, text) + b" " + text)
        self._sent_count += 1

    def receive(self, max_bytes: int = _MAX_LINE_BYTES, deadline: float | None = None) -> dict[str, Any]:
        """The next object; OSError where the connection has ended."""
        code, _, text = self._lines.read(max_bytes, deadline).partition(b" ")
        if not hmac.compare_digest(code, _code(self._heard_key, self._heard_count, text)):
            raise NotOurPeerError
        self._heard_count += 1
        return dict(json.loads(text))


def welcome(sock: socket.socket, token: str, within_s: float) -> tuple[Channel, dict[str, Any]]:
    """The driver's side: a channel to whoever proves within the time that it knows the token, and its first words."""
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
    """The task's side: a channel to the driver, once it has proved that it is ours; within the socket's time-out."""
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
    """Lines of a socket, bounded."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()

    def write(self, line: bytes) -> None:
        self._sock.sendall(line + b"\n")

    def read(self, max_bytes: int, deadline: float | None = None) -> bytes:
        """The next line without its end. What does not end in time, or in so many bytes, is not awaited any more."""
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
    """The key of the driver's lines and that of the task's."""
    both = driver_nonce + b"|" + task_nonce
    return (
        hmac.digest(token.encode(), b"driver|" + both, "sha256"),
        hmac.digest(token.encode(), b"task|" + both, "sha256"),
    )


def _code(key: bytes, place: int, text: bytes) -> bytes:
    return hmac.digest(key, place.to_bytes(8, "big") + text, "sha256").hex().encode()


class TaskAssignment(NamedTuple):
    """The partitions of a task and its share of the flow's limit (0: none). Number 0 is what it is started with; the
    newest has the highest number.
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
    """The driver's side of a task, as the loop sees it."""

    def report(self, report: TaskReport) -> None:
        """Hand a report on; does not block."""

    def take_assignment(self) -> TaskAssignment | None:
        """Other partitions or another share of the limit, if the driver has sent one since the last call."""

    @property
    def stop_reason(self) -> str | None:
        """Why the driver wants the task to end, or None."""

    def check(self) -> None:
        """Raise LeaseLostError if the driver is gone."""

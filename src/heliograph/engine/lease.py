"""The lease between the driver and its tasks: one TCP connection per task, one JSON line each way about once a second.

A task says where it stands; the answer says go on, go on with these partitions, or stop. A task that hears nothing
for the lease's time ends itself, so a partition never has two writers for longer than that. Where the driver's port
refuses the connection the driver is gone, and the task ends at once: a restarted process must not meet the tasks of
its predecessor. The same holds where somebody answers at that port who is not the driver: `lease_channel` has each
end prove to the other that it knows the token that only the driver and the task's payload have.
"""

from __future__ import annotations

import queue
import secrets
import socket
import socketserver
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID

from heliograph.engine.lease_channel import NotOurPeerError, introduce, welcome
from heliograph.engine.report import TaskReport
from heliograph.engine.spec import LeaseSpec, PartitionSpec
from heliograph.errors import LeaseLostError
from heliograph.model import Address, SourceOffset, TopicPartition

if TYPE_CHECKING:
    from heliograph.engine.lease_channel import Channel
    from heliograph.engine.lease_place import LeasePlace

_RECONNECT_PAUSE_S = 0.2
_PROOF_S = 5.0
_MOST_STRANGERS = 256  # connections that have not proved anything yet


class Caller(NamedTuple):
    """Who reports. A task that connects again keeps its run id; the same task run a second time has another."""

    task_id: str
    attempt: int
    run_id: str


class Answer(Protocol):
    """What the driver decides about a task when it reports."""

    def __call__(self, caller: Caller, report: TaskReport) -> dict[str, Any]:
        """The answer line: `{"go": true}`, with `assignment` where it changed; `{"stop": why}`; `{"gone": why}`."""


class Assignment(NamedTuple):
    """The partitions of a task and its share of the flow's limit (0: none). Number 0 is what it is started with; the
    newest has the highest number.
    """

    number: int
    partitions: tuple[PartitionSpec, ...]
    bytes_per_s: int = 0


def encode_assignment(assignment: Assignment) -> list[Any]:
    """An assignment as plain values."""
    rows = [
        [p.tp.topic, p.tp.partition, p.remote_topic, _encode_progress(p.progress), p.stop_offset]
        for p in assignment.partitions
    ]
    return [assignment.number, rows, assignment.bytes_per_s]


def _encode_progress(progress: SourceOffset | None) -> list[Any] | None:
    if progress is None:
        return None
    topic_id = None if progress.topic_id is None else str(progress.topic_id)
    return [progress.offset, progress.target_end, topic_id, [list(known) for known in progress.epochs]]


def decode_assignment(values: list[Any]) -> Assignment:
    """The assignment an answer carries."""
    number, rows, bytes_per_s = values
    partitions = tuple(_decode_partition(TopicPartition(topic, p), *rest) for topic, p, *rest in rows)
    return Assignment(number, partitions, bytes_per_s)


def _decode_partition(
    tp: TopicPartition, remote_topic: str, progress: list[Any] | None, stop_offset: int | None
) -> PartitionSpec:
    if progress is None:
        return PartitionSpec(tp, remote_topic, None, stop_offset)
    offset, target_end, topic_id, epochs = progress
    known = SourceOffset(
        tp,
        offset,
        target_end,
        None if topic_id is None else UUID(topic_id),
        epochs=tuple((epoch, start) for epoch, start in epochs),
    )
    return PartitionSpec(tp, remote_topic, known, stop_offset)


class LeaseServer:
    """The driver's end: listens, hears only those who know the token, asks `answer` what to say."""

    def __init__(self, place: LeasePlace, answer: Answer) -> None:
        """Raises OSError where it cannot listen there."""
        self.token = secrets.token_hex(32)
        outer = self
        families = {each[0] for each in socket.getaddrinfo(place.bind_address, place.port, type=socket.SOCK_STREAM)}

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            address_family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6

        self._answer = answer
        self._strangers: dict[socket.socket, None] = {}
        self._meeting = threading.Lock()
        self._server = Server((place.bind_address, place.port), Handler)
        self.address = Address(place.host, int(self._server.server_address[1]))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="leases", daemon=True)
        self._thread.start()

    def _serve(self, sock: socket.socket) -> None:
        # Whoever cannot prove itself is left without a word, and so is a task whose connection breaks: it comes again.
        with suppress(OSError, NotOurPeerError):
            channel, hello = self._meet(sock)
            caller = Caller(str(hello["task"]), int(hello["attempt"]), str(hello["run"]))
            while True:
                report = TaskReport.from_json(channel.receive())
                channel.send(self._answer(caller, report))

    def _meet(self, sock: socket.socket) -> tuple[Channel, dict[str, Any]]:
        with self._meeting:
            self._strangers[sock] = None
            if len(self._strangers) > _MOST_STRANGERS:  # the one that has kept us waiting longest gives way
                with suppress(OSError):
                    next(iter(self._strangers)).shutdown(socket.SHUT_RDWR)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return welcome(sock, self.token, _PROOF_S)
        finally:
            with self._meeting:
                self._strangers.pop(sock, None)

    def close(self) -> None:
        """Stop listening; tasks that are still there end themselves."""
        self._server.shutdown()
        self._server.server_close()


class LeaseClient:
    """The task's end: a thread that reports and listens, so that the copy loop never waits for the driver."""

    def __init__(self, spec: LeaseSpec, task_id: str, attempt: int) -> None:
        self._spec = spec
        self._hello = {"task": task_id, "attempt": attempt, "run": secrets.token_hex(16)}
        self._reports: queue.SimpleQueue[TaskReport | None] = queue.SimpleQueue()
        self._assignments: queue.SimpleQueue[Assignment] = queue.SimpleQueue()
        self._taken_number = 0
        self._unsent: TaskReport | None = None
        self._stop_reason: str | None = None
        self._lost: str | None = None
        self._heard_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    @property
    def stop_reason(self) -> str | None:
        """Why the driver wants the task to end, or None."""
        return self._stop_reason

    def report(self, report: TaskReport) -> None:
        """Queue a report for the driver."""
        self._reports.put(replace(report, assignment=self._taken_number))

    def take_assignment(self) -> Assignment | None:
        """The newest assignment, where it has not been taken yet; reports then tell of it."""
        newest = None
        while not self._assignments.empty():
            assignment = self._assignments.get()
            if assignment.number > self._taken_number:
                self._taken_number, newest = assignment.number, assignment
        return newest

    def check(self) -> None:
        """Raise where the lease has ended without a word."""
        if self._lost is not None:
            raise LeaseLostError(self._lost)
        silent_s = time.monotonic() - self._heard_at
        if silent_s * 1000 > self._spec.timeout_ms:
            raise LeaseLostError(f"the driver has been silent for {silent_s:.0f} s; the task ends itself.")

    def close(self) -> None:
        """End the thread."""
        self._reports.put(None)
        self._thread.join(timeout=2)

    def _run(self) -> None:
        while self._lost is None:
            try:
                with socket.create_connection(self._spec.address, timeout=self._spec.timeout_ms / 2000) as sock:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._talk(sock)
                    return
            except ConnectionRefusedError:
                self._lost = "the driver is gone; the task ends itself."
            except NotOurPeerError:
                self._lost = "somebody else answers in the driver's place; the task ends itself."
            except OSError:
                time.sleep(_RECONNECT_PAUSE_S)

    def _talk(self, sock: socket.socket) -> None:
        """Report and listen until `close`; raises OSError where the connection breaks; keeps what was not answered."""
        channel = introduce(sock, self._spec.token, self._hello)
        while (report := self._unsent or self._reports.get()) is not None:
            self._unsent = report = self._newest(report)
            channel.send(report.to_json())
            answer = channel.receive()
            self._unsent = None
            self._hear(answer)

    def _newest(self, report: TaskReport) -> TaskReport:
        """The last of the reports that wait, with the events of all: the others tell nothing that it does not."""
        while not self._reports.empty():
            newer = self._reports.get()
            if newer is None:
                self._reports.put(None)  # the end comes after what is still to be said
                return report
            report = replace(newer, events=report.events + newer.events)
        return report

    def _hear(self, answer: dict[str, Any]) -> None:
        self._heard_at = time.monotonic()
        if "assignment" in answer:
            self._assignments.put(decode_assignment(answer["assignment"]))
        if "gone" in answer:
            self._lost = str(answer["gone"])
        if "stop" in answer:
            self._stop_reason = str(answer["stop"])

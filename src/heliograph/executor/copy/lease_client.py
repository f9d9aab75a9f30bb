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
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from heliograph.errors import LeaseLostError
from heliograph.executor.contract.lease import NotOurPeerError, TaskAssignment, decode_assignment, introduce

if TYPE_CHECKING:
    from heliograph.executor.contract.task_report import TaskReport
    from heliograph.executor.contract.task_spec import LeaseSpec


_RECONNECT_PAUSE_S = 0.2


class LeaseClient:
    """The task's end: a thread that reports and listens, so that the copy loop never waits for the driver."""

    def __init__(self, spec: LeaseSpec, task_id: str, attempt: int) -> None:
        self._spec = spec
        self._hello = {"task": task_id, "attempt": attempt, "run": secrets.token_hex(16)}
        self._reports: queue.SimpleQueue[TaskReport | None] = queue.SimpleQueue()
        self._assignments: queue.SimpleQueue[TaskAssignment] = queue.SimpleQueue()
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

    def take_assignment(self) -> TaskAssignment | None:
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

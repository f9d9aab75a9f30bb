"""The task's end of the lease (`executor/contract/lease`): a thread that sends reports and reads the answers."""

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
_ANSWER_PAUSE_S = 0.005


class LeaseClient:
    """Reports in a thread of its own, so that the copy loop never waits for the driver."""

    def __init__(self, spec: LeaseSpec, task_id: str, attempt: int) -> None:
        self._spec = spec
        self._hello = {"task": task_id, "attempt": attempt, "run": secrets.token_hex(16)}
        self._reports: queue.SimpleQueue[TaskReport | None] = queue.SimpleQueue()
        self._assignments: queue.SimpleQueue[TaskAssignment] = queue.SimpleQueue()
        self._taken_number = 0
        self._unsent: TaskReport | None = None
        self._reported_losses = self._taken_losses = 0  # each is counted by one thread
        self._stop_reason: str | None = None
        self._lost: str | None = None
        self._answered_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    @property
    def stop_reason(self) -> str | None:
        """Return why the driver wants the task to end, or None."""
        return self._stop_reason

    def report(self, report: TaskReport) -> None:
        """Queue a report for the driver."""
        self._reported_losses += len(report.losses)
        self._reports.put(replace(report, assignment=self._taken_number))

    def await_losses(self) -> None:
        """Wait until the driver has the losses of all reports; raises LeaseLostError if it is gone, or does not answer
        for the lease's time. Returns at once if there are none.
        """
        while self._taken_losses < self._reported_losses:
            self.check()
            time.sleep(_ANSWER_PAUSE_S)

    def take_assignment(self) -> TaskAssignment | None:
        """Return the newest assignment if it was not taken yet; later reports name its number."""
        newest = None
        while not self._assignments.empty():
            assignment = self._assignments.get()
            if assignment.number > self._taken_number:
                self._taken_number, newest = assignment.number, assignment
        return newest

    def check(self) -> None:
        """Raise LeaseLostError if the driver is gone or has not answered for the lease's time."""
        if self._lost is not None:
            raise LeaseLostError(self._lost)
        silent_s = time.monotonic() - self._answered_at
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
                    self._exchange(sock)
                    return
            except ConnectionRefusedError:
                self._lost = "the driver is gone; the task ends itself."
            except NotOurPeerError:
                self._lost = "another process answers at the driver's address; the task ends itself."
            except OSError:
                time.sleep(_RECONNECT_PAUSE_S)

    def _exchange(self, sock: socket.socket) -> None:
        """Send reports and read answers until `close`; raises OSError, and keeps a report that was not answered."""
        channel = introduce(sock, self._spec.token, self._hello)
        while (report := self._unsent or self._reports.get()) is not None:
            self._unsent = report = self._newest(report)
            channel.send(report.to_json())
            answer = channel.receive()
            self._unsent = None
            self._follow(answer)
            if "gone" not in answer:
                self._taken_losses += len(report.losses)

    def _newest(self, report: TaskReport) -> TaskReport:
        """Return the newest report in the queue, with the events and losses of all."""
        while not self._reports.empty():
            newer = self._reports.get()
            if newer is None:
                self._reports.put(None)  # the end comes after the last report
                return report
            report = report.followed_by(newer)
        return report

    def _follow(self, answer: dict[str, Any]) -> None:
        self._answered_at = time.monotonic()
        if "assignment" in answer:
            self._assignments.put(decode_assignment(answer["assignment"]))
        if "gone" in answer:
            self._lost = str(answer["gone"])
        if "stop" in answer:
            self._stop_reason = str(answer["stop"])

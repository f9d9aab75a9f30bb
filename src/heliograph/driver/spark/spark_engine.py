"""Runs copy tasks as Spark jobs of one long-lived task each, and keeps their leases.

`SparkEngine` is the only place that knows both Spark and leases. A task's end, whatever its cause, is reported exactly
once through `on_end`; if a Python worker is killed, its Spark job ends with an error. Of each start only one run is
accepted, the first that reports: Spark may run a task again, and the answer to such a run is to end itself.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.driver.spark.lease_server import OWN_MACHINE, LeaseServer, lease_endpoint
from heliograph.driver.spark.secret_transport import REFUSAL, carries_secrets
from heliograph.driver.spark.spark_errors import spark_error_line
from heliograph.driver.spark.spark_jobs import SparkJobs
from heliograph.errors import EngineError
from heliograph.executor.contract.lease import TaskAssignment, encode_assignment
from heliograph.executor.contract.task_report import TaskReport
from heliograph.executor.contract.task_spec import LeaseSpec, PartitionSpec, TaskSpec
from heliograph.executor.copy.copy_task import STARTED_TWICE
from heliograph.status.process_snapshot import EngineSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.driver.spark.lease_server import TaskIdentity
    from heliograph.driver.spark.spark_session import SparkDriver


_SILENCE_S = 3.0  # a task that has a slot reports earlier
_LOST_LEASES = 3  # after one lease a silent task has ended itself; Spark gets two more to notice


class LaunchOptions(NamedTuple):
    """Settings of a flow for the runs of its tasks."""

    lease_timeout_ms: int = 10_000
    allows_unencrypted_secrets: bool = False  # the user states that the network is safe


_DEFAULT_LAUNCH = LaunchOptions()


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The end of a run: with a last report, or with the reason of its failure.

    `is_lost`: its executor is presumed lost, or was killed; the task itself has not failed.
    """

    spec: TaskSpec
    report: TaskReport | None = None
    error: str | None = None
    trace: str | None = None
    is_fenced: bool = False
    is_lost: bool = False


class RunningTask:
    """One run of a task as the engine sees it."""

    def __init__(
        self, spec: TaskSpec, on_report: Callable[[TaskSpec, TaskReport], None], lease_timeout_ms: int = 10_000
    ) -> None:
        self.spec = spec
        self.on_report = on_report
        self.lease_timeout_ms = lease_timeout_ms
        self.stop_reason: str | None = None
        self.run_id: str | None = None
        self.heard_at = 0.0
        self.is_cancelled = False
        self.is_lost = False
        self.executor_id: str | None = None  # once it was asked for
        self.assignment = TaskAssignment(0, spec.partitions, spec.bytes_per_s)


class SparkEngine:
    """Starts tasks, answers their reports, reports their ends.

    `launch` holds for tasks that are started without options of their own. `shared_slots` is the number of slots that
    flows share, if Spark has more: the rest is for flows that are added later.
    """

    def __init__(self, driver: SparkDriver, launch: LaunchOptions = _DEFAULT_LAUNCH) -> None:
        self.driver = driver
        self._jobs = SparkJobs(driver)
        self.shared_slots: int | None = None
        self._default_launch = launch
        self._lock = threading.Lock()
        self._attempts = itertools.count(1)
        self._tasks: dict[tuple[str, int], RunningTask] = {}
        self._leases: LeaseServer | None = None

    @property
    def slots(self) -> int:
        """The number of tasks that flows may run at the same time."""
        slots = self.driver.slots
        return slots if self.shared_slots is None else min(slots, self.shared_slots)

    @property
    def grows_for_tasks(self) -> bool:
        """Return whether Spark adds executors for tasks that wait for a slot, so that `slots` is no limit."""
        return self.driver.executors.grows_for_tasks

    def snapshot(self) -> EngineSnapshot:
        """Return Spark's slots and tasks at this moment.

        Waits neither for Spark nor for the lock, which is held while Spark starts.
        """
        samples = self.driver.samples
        jvm = None if samples is None else samples.latest
        slots = None if jvm is None else self.driver.executors.slots
        if slots is not None and self.shared_slots is not None:
            slots = min(slots, self.shared_slots)
        tasks = list(self._tasks.values())
        running = sum(task.run_id is not None for task in tasks)
        return EngineSnapshot(slots, running, len(tasks) - running, jvm)

    def start(
        self,
        spec: TaskSpec,
        on_report: Callable[[TaskSpec, TaskReport], None],
        on_end: Callable[[TaskEnd], None],
        launch: LaunchOptions | None = None,
    ) -> RunningTask:
        """Start a task in the background; `on_report` and `on_end` (once) are called from other threads.

        Raises EngineError if the task's secrets would travel unencrypted, or the driver cannot listen for it.
        """
        options = launch or self._default_launch
        if carries_secrets(spec) and not (options.allows_unencrypted_secrets or self.driver.encrypts_secrets):
            raise EngineError(REFUSAL)
        leases = self._lease_server()
        lease = LeaseSpec(leases.address, leases.token, options.lease_timeout_ms)
        leased = replace(spec, attempt=next(self._attempts), lease=lease)
        task = RunningTask(leased, on_report, options.lease_timeout_ms)
        key = (spec.task_id, leased.attempt)
        with self._lock:
            self._tasks[key] = task

        def run() -> None:
            end = _end_of(task, self._jobs)
            with self._lock:
                self._tasks.pop(key, None)
            on_end(end)

        threading.Thread(target=run, name=f"task-{spec.task_id}", daemon=True).start()
        return task

    def stop(self, task: RunningTask, reason: str) -> None:
        """Ask a task to flush, commit and end: the answer to its next report says so. A task that waits for a slot of
        Spark reports nothing: its job is cancelled.
        """
        task.stop_reason = reason
        if task.run_id is None:
            _later(self._cancel_silent, task)

    def abort(self, task: RunningTask) -> None:
        """End a task at once, without a flush: another process may be about to run it."""
        task.is_cancelled = True
        self._jobs.cancel(task.spec)
        _later(self._cancel_silent, task)

    def is_leaving(self, task: RunningTask) -> bool:
        """Return whether the executor of a task is decommissioned: the task should end soon and start elsewhere."""
        leaving = self.driver.executors.leaving
        if leaving:
            task.executor_id = task.executor_id or self._jobs.executor_of(task.spec)
        return task.executor_id in leaving

    def _cancel_silent(self, task: RunningTask) -> None:
        with self._lock:
            is_there = (task.spec.task_id, task.spec.attempt) in self._tasks
            task.is_cancelled |= is_there and task.run_id is None
        if is_there and task.is_cancelled:
            self._jobs.cancel(task.spec)
            _later(self._cancel_silent, task)  # its thread may be about to submit the job

    def take_back_if_lost(self, task: RunningTask) -> None:
        """Cancel a task that has reported and then been silent for three lease periods: its executor is presumed lost.
        Spark would run it again, and without a free slot keep it waiting for ever without a message.
        """
        with self._lock:
            silent_s = time.monotonic() - task.heard_at
            if task.run_id is None or silent_s < _LOST_LEASES * task.lease_timeout_ms / 1000:
                return
            task.is_lost = True  # the job is cancelled at each call, in case Spark missed one
        self._jobs.cancel(task.spec)

    def assign(self, task: RunningTask, partitions: tuple[PartitionSpec, ...]) -> int:
        """Give a running task another set of partitions; return the number of the assignment."""
        with self._lock:
            task.assignment = task.assignment._replace(number=task.assignment.number + 1, partitions=partitions)
            return task.assignment.number

    def share(self, task: RunningTask, bytes_per_s: int) -> None:
        """Set the bytes per second that a running task may read (0: no limit)."""
        with self._lock:
            if task.assignment.bytes_per_s != bytes_per_s:
                number = task.assignment.number + 1
                task.assignment = task.assignment._replace(number=number, bytes_per_s=bytes_per_s)

    def close(self) -> None:
        """End all leases and stop Spark."""
        if self._leases is not None:
            self._leases.close()
        self.driver.stop()

    def _lease_server(self) -> LeaseServer:
        with self._lock:
            if self._leases is None:
                is_local = self.driver.settings.is_local
                endpoint = OWN_MACHINE if is_local else lease_endpoint(self.driver.context().getConf().get)
                try:
                    self._leases = LeaseServer(endpoint, self._answer)
                except OSError as error:
                    raise endpoint.refusal(error) from error
            return self._leases

    def _answer(self, caller: TaskIdentity, report: TaskReport) -> dict[str, Any]:
        with self._lock:
            task = self._tasks.get((caller.task_id, caller.attempt))
            if task is None:
                return {"gone": "the driver does not know this task any more; the task ends itself."}
            task.run_id = task.run_id or caller.run_id
            if task.run_id != caller.run_id:
                return {"gone": STARTED_TWICE}
            if not task.is_lost:
                task.heard_at = time.monotonic()
        if task.is_cancelled or task.is_lost:
            return {"gone": "the driver has taken this task back; the task ends itself."}
        task.on_report(task.spec, report)
        if task.stop_reason is not None:
            return {"stop": task.stop_reason}
        with self._lock:
            assignment = task.assignment
        if report.assignment == assignment.number:
            return {"go": True}
        # Sent again until a report confirms it: an answer can be lost with its connection, and a task that is just
        # beginning takes it later.
        return {"go": True, "assignment": encode_assignment(assignment)}


def _end_of(task: RunningTask, jobs: SparkJobs) -> TaskEnd:
    """Run a task to its end, whatever ends it."""
    spec = task.spec
    try:
        outcome = jobs.run(spec, lambda: task.is_cancelled)
    except Exception as error:  # noqa: BLE001  (Spark may raise anything; the task has ended in any case)
        if task.is_cancelled:
            return TaskEnd(spec)
        if task.is_lost:
            return TaskEnd(spec, error="no report for three lease periods; executor presumed lost.", is_lost=True)
        return TaskEnd(spec, error=f"Spark lost the task: {spark_error_line(error)}", is_lost=True)
    if outcome is None or ("error" in outcome and task.is_cancelled):
        return TaskEnd(spec)
    if "error" in outcome:
        is_fenced = bool(outcome.get("fenced"))
        is_lost = outcome["error"] == STARTED_TWICE
        return TaskEnd(spec, None, outcome["error"], outcome.get("trace"), is_fenced=is_fenced, is_lost=is_lost)
    return TaskEnd(spec, report=TaskReport.from_json(outcome["report"]))


def _later(action: Callable[[RunningTask], None], task: RunningTask) -> None:
    timer = threading.Timer(_SILENCE_S, action, (task,))
    timer.daemon = True
    timer.start()

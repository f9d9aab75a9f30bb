"""An engine whose tasks are threads of this process: a flow's whole loop against real brokers, without Spark."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import cast
from unittest.mock import Mock

from heliograph.driver.spark.spark_engine import LaunchOptions, RunningTask, SparkEngine, TaskEnd
from heliograph.errors import HeliographError
from heliograph.executor.contract.lease import TaskAssignment
from heliograph.executor.contract.task_report import TaskReport
from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
from heliograph.executor.copy.copy_loop import CopyLoop
from heliograph.model import TopicPartition
from heliograph.status.process_snapshot import EngineSnapshot
from tests.support.runs.copying import HandLease, KilledError


class ThreadEngine:
    """Runs each task in a thread."""

    def __init__(self, slots: int = 4) -> None:
        self.slots = slots
        self.driver = Mock()  # of Spark; there is none
        self.started: list[TaskSpec] = []
        self.openings: Counter[TopicPartition] = Counter()  # how often a running task had to begin again with each
        self._leases: dict[RunningTask, HandLease] = {}

    def start(
        self,
        spec: TaskSpec,
        on_report: Callable[[TaskSpec, TaskReport], None],
        on_end: Callable[[TaskEnd], None],
        _launch: LaunchOptions | None = None,
    ) -> RunningTask:
        self.started.append(spec)
        task = RunningTask(spec, on_report)
        lease = self._leases[task] = HandLease(lambda report: on_report(spec, report))

        def run() -> None:
            try:
                on_end(TaskEnd(spec, report=CopyLoop(spec, lease).run()))
            except HeliographError as error:
                on_end(TaskEnd(spec, error=str(error)))
            except KilledError:
                on_end(TaskEnd(spec, error="it was killed."))

        threading.Thread(target=run, daemon=True).start()
        return task

    def snapshot(self) -> EngineSnapshot:
        return EngineSnapshot(self.slots, len(self._leases), 0)

    def stop(self, task: RunningTask, reason: str) -> None:
        self._leases[task].stop_reason = reason

    def kill(self, task: RunningTask) -> None:
        self._leases[task].is_killed = True

    grows_for_tasks = False

    def is_leaving(self, _task: RunningTask) -> bool:
        """A thread has no executor."""
        return False

    def abort(self, task: RunningTask) -> None:
        self._leases[task].lost = "it is aborted"

    def take_back_if_lost(self, task: RunningTask) -> None:
        """A thread is never lost."""

    def assign(self, task: RunningTask, partitions: tuple[PartitionSpec, ...]) -> int:
        self.openings |= Counter({partition.tp: partition.opening for partition in partitions})
        number = task.assignment.number + 1
        task.assignment = self._leases[task].numbered = TaskAssignment(number, partitions, task.spec.bytes_per_s)
        return number

    def share(self, task: RunningTask, bytes_per_s: int) -> None:
        """No flow of these tests has a limit, so it is never another one."""
        assert bytes_per_s == task.spec.bytes_per_s


def thread_engine(slots: int = 4) -> SparkEngine:
    """For parts that want the real one by name."""
    return cast("SparkEngine", ThreadEngine(slots))

"""The state of a flow as the driver knows it: its partitions, rates, issues, and log lines.

`FlowStatus` collects what the flow's thread, its tasks and the look-ups of log ends report, and may be read from any
thread: by the screen of `run`, REST and the log, which all read its `FlowSnapshot`. `ProgressLines` logs the state of
a flow now and then, for readers of a log.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from heliograph.driver.flow.state.flow_sums import FlowSums
from heliograph.driver.flow.state.partition_rows import PartitionRows, TaskRun
from heliograph.driver.flow.state.task_reports import TaskReports, TaskShare
from heliograph.driver.steps.issues import StepIssues, brief
from heliograph.model import counted
from heliograph.status.flow_snapshot import FlowSnapshot, Lag, stall_reasons
from heliograph.status.partition_status import PartitionState
from heliograph.status.progress_log import LineKind, ProgressLog
from heliograph.status.task_status import RestartReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from heliograph.driver.flow.tasks.flow_task import TaskState
    from heliograph.driver.steps.issues import Change
    from heliograph.executor.contract.task_report import PartitionReport, TaskReport
    from heliograph.executor.contract.task_spec import PartitionSpec
    from heliograph.model import Flow, TopicPartition
    from heliograph.status.flow_snapshot import Counts, LossTotal, Rates
    from heliograph.status.losses import Loss, LossCause
    from heliograph.status.partition_status import PartitionStatus


log = logging.getLogger(__name__)

_TASK_STEP = "task "
_LOOK_INTERVAL_S = 5.0  # of the log; a look walks all partitions
_STARTING = "STARTING"
_LOOPS = ("checkpoints", "heartbeats")
_SHARED_S = 0.5  # a snapshot of ten thousand partitions takes about 0.1 s


class SourceStep(StrEnum):
    """The steps of a source connector."""

    START = "start"
    TOPICS = "topics"
    ACLS = "ACLs"
    CONFIGS = "configs"
    SYNCS = "offset syncs"
    RESTARTS = "restarts"


def task_step(number: int) -> str:
    """Return the name under which the issues of a task that was given up are kept."""
    return f"{_TASK_STEP}{number}"


def loop_name(flow: Flow, what: str) -> str:
    """Return the name of the `checkpoints` or `heartbeats` of a flow, with which the names of their steps begin."""
    return f"{flow} {what}"


def prevents_copying(step: str) -> bool:
    """Return whether records are not copied while a step has issues: topics do not exist, or a task was given up."""
    return step == SourceStep.TOPICS or step.startswith(_TASK_STEP)


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic of a flow on the screen."""

    flow: str
    topic: str
    partitions: int
    failed_partitions: int
    records: int
    bytes: int
    records_per_s: float
    bytes_per_s: float
    lag: Lag
    latency_ms: float | None

    @classmethod
    def of(cls, flow: Flow, topic: str, partitions: list[PartitionStatus], rates: Rates) -> TopicRow:
        """Return the sums over the partitions of a topic."""
        return cls(
            flow=str(flow),
            topic=topic,
            partitions=len(partitions),
            failed_partitions=sum(each.state is PartitionState.FAILED for each in partitions),
            records=sum(each.records for each in partitions),
            bytes=sum(each.bytes for each in partitions),
            records_per_s=rates.records_per_s,
            bytes_per_s=rates.bytes_per_s,
            lag=Lag.of(partitions),
            latency_ms=rates.latency_ms,
        )


class FlowStatus:
    """Collects what is known about one flow; safe to use from any thread. Counts survive the restart of a task.

    `partitions` and `tasks` have what tasks report, `sums` the sums over partitions. `losses` and `loss_totals` are
    those that the last run of the flow knew when it ended; `throttle_bytes_per_s` and `heartbeat_paths` are the newest.
    """

    def __init__(self, flow: Flow, clock: Callable[[], float] = time.monotonic) -> None:
        self.flow = flow
        self.partitions = PartitionRows(clock)
        self.tasks = TaskReports(flow, clock)
        self.sums = FlowSums(self.partitions, clock)
        self.losses: tuple[Loss, ...] = ()
        self.loss_totals: Mapping[LossCause, LossTotal] = {}
        self.throttle_bytes_per_s = 0
        self.heartbeat_paths: Mapping[str, tuple[str, ...]] = {}
        self._clock = clock
        self._state, self._state_since = _STARTING, clock()
        self._step_issues = StepIssues()
        self._taking = threading.Lock()  # a report is taken as a whole, or not at all after the end of its run
        self._ended_attempts: dict[str, int] = {}
        self._sharing = threading.Lock()
        self._shared: FlowSnapshot | None = None
        self._shared_at = 0.0

    # --- what the flow's thread reports -------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state of the flow, in Connect's words."""
        return self._state

    @state.setter
    def state(self, state: str) -> None:
        if state != self._state:
            self._state, self._state_since = state, self._clock()

    def note(self, step: str, issues: Iterable[str]) -> Change:
        """Keep the issues of a step until its next success; return what has changed."""
        return self._step_issues.note(step, issues)

    def take(self, task_id: str, report: TaskReport, attempt: int = 0) -> None:
        """Keep a task's newest report as it arrives, unless its run has ended; the flow's thread may be busy."""
        with self._taking:
            if attempt and attempt <= self._ended_attempts.get(task_id, 0):
                return
            share = TaskShare.of(report)
            growth = self.partitions.take(
                TaskRun(task_id, attempt), report.partitions, share.task_issue, share.unavailable
            )
            self.tasks.take(task_id, report, share, growth)
            self.sums.sample_if_due()

    def task_ended(self, task_id: str, tps: Iterable[TopicPartition], attempt: int = 0) -> None:
        """Keep the counts of a task that has ended: the next run counts from zero, and a late report changes none."""
        with self._taking:
            self._ended_attempts[task_id] = attempt
            self.tasks.task_ended(task_id)
            self.partitions.task_ended(TaskRun(task_id, attempt), tps)

    def restart(self) -> None:
        """Forget all of a run that has ended but its counts and losses: the next run reports into the same status."""
        for step in self.issues:
            if step in list(SourceStep) or step.startswith(_TASK_STEP):
                self.note(step, ())
        self.partitions.restart()
        self.tasks.restart(RestartReason.FAILED if self._state == "FAILED" else RestartReason.CHANGED)
        self.sums.restart()
        self.state = _STARTING
        with self._sharing:
            self._shared = None

    # --- for readers --------------------------------------------------------------------------------------------------

    @property
    def issue(self) -> str | None:
        """The first issues of this moment, of steps and of tasks, as one text; None if there is none."""
        return brief(self._all_issues()) or None

    @property
    def issues(self) -> dict[str, tuple[str, ...]]:
        """The issues of each step that has any."""
        return self._step_issues.issues

    @property
    def failures(self) -> list[str]:
        """The sentence of each failed partition."""
        return self.partitions.failures()

    @property
    def counts(self) -> Counts:
        """The counters of all partitions, also of those that are no longer replicated."""
        return self.sums.counts

    def snapshot(
        self, name: str, connector: str, tasks: Sequence[TaskState], suspended_as: str | None = None
    ) -> FlowSnapshot:
        """Return the whole flow at this moment. One that is suspended on request is shown as that, and is ready."""
        has_found_partitions = self.partitions.are_found  # before they are read: they may be found in between
        partitions = self.partitions.statuses()
        now, wall = self._clock(), time.time()
        lag = Lag.of(partitions) if has_found_partitions else Lag.unknown()
        return FlowSnapshot(
            name=name,
            connector=connector,
            flow=self.flow,
            state=suspended_as or self._state,
            since=wall - (now - self._state_since),
            at=wall,
            issues=tuple(self._all_issues(without=tuple(loop_name(self.flow, what) for what in _LOOPS))),
            unready=() if suspended_as else _unready(self, partitions, wall),
            partitions=partitions,
            tasks=tuple(self.tasks.row(*task) for task in tasks),
            counts=self.counts,
            rates=self.sums.rates,
            losses=self.losses,
            task_issues=self.tasks.shared_issues,
            loss_totals=self.loss_totals,
            latency=self.tasks.latency,
            catch_up_seconds=self.sums.catch_up_seconds(lag),
            throttle_bytes_per_s=self.throttle_bytes_per_s,
            heartbeat_paths=self.heartbeat_paths,
            has_found_partitions=has_found_partitions,
        )

    def shared_snapshot(
        self,
        name: str,
        connector: str,
        tasks: Callable[[], Sequence[TaskState]] = tuple,
        suspended_as: str | None = None,
    ) -> FlowSnapshot:
        """Return a snapshot that callers within a short time share.

        Many requests for ten thousand partitions must not occupy a core.
        """
        with self._sharing:
            now, shared = time.monotonic(), self._shared
            if shared is None or now - self._shared_at > _SHARED_S or shared.connector != connector:
                shared = self._shared = self.snapshot(name, connector, tasks(), suspended_as)
                self._shared_at = now
            return shared

    def rows(self) -> list[TopicRow]:
        """Return one row per topic."""
        by_topic: dict[str, list[PartitionStatus]] = {}
        for partition in self.partitions.statuses():
            by_topic.setdefault(partition.tp.topic, []).append(partition)
        rates = self.sums.rates_of(by_topic)
        return [TopicRow.of(self.flow, topic, rows, rates[topic]) for topic, rows in by_topic.items()]

    def _all_issues(self, without: tuple[str, ...] = ()) -> list[str]:
        steps = [issues for step, issues in self.issues.items() if not step.startswith(without)]
        return [*(issue for issues in steps for issue in issues), *self.tasks.issues]


def _unready(status: FlowStatus, partitions: Sequence[PartitionStatus], now: float) -> tuple[str, ...]:
    """Return why a flow that was not suspended is not ready."""
    if status.state not in ("RUNNING", "STOPPING", "STOPPED", "DONE"):
        issues = status.issues.get(SourceStep.START, ())
        return issues or (f"the flow is {status.state}",)
    if unavailable := status.tasks.unavailable_clusters:
        return tuple(unavailable)
    return stall_reasons(partitions, now) if partitions else status.issues.get(SourceStep.TOPICS, ())


class ProgressLines:
    """Logs the state of a flow now and then, for readers of a log; there is no screen beside it."""

    def __init__(self, name: str, status: FlowStatus, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._status, self._clock = name, status, clock
        self._lines = ProgressLog(clock(), status.counts)
        self._look_at = clock() + _LOOK_INTERVAL_S
        self._fields = {"flow": name}

    def report(self) -> None:
        """Log the lines that are due; to be called often."""
        now = self._clock()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_INTERVAL_S
        for kind, text, topic, partition in self._lines.lines(self._status.snapshot(self._name, "", ()), now):
            level = logging.WARNING if kind is LineKind.BEGINS else logging.INFO
            fields = {**self._fields, "topic": topic, "partition": partition}
            log.log(level, "%s: %s", self._name, text, extra=fields)


def resume_summary(partitions: Iterable[PartitionSpec], rows: Iterable[PartitionReport]) -> str:
    """Return where the partitions of a task resume: by their specs, and by what the task found on the target."""
    positions = [partition.position for partition in partitions]
    committed = sum(position is not None for position in positions)
    parts = [f"{committed} after the committed offset"] if committed else []
    if committed < len(positions):
        parts.append(f"{len(positions) - committed} without source offsets")
    text = f"begins with {counted(len(positions), 'partition')}: {', '.join(parts)}"
    already_there = sum(row.already_there for row in rows)
    if not already_there:
        return text
    return f"{text}; {counted(already_there, 'record')} after that found on the target, not copied again"

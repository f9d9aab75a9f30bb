"""One task of a flow as the driver sees it: its partitions, its phase, and when it is started again.

Nothing here starts or stops anything; `task_supervisor` does. A task that failed is shown as FAILED, with the reason,
until its next run has reported: users who watch states must see the failure.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from heliograph.driver.steps.restart_policy import RestartLimits, Restarts
from heliograph.states import StateMachine
from heliograph.status.task_status import RestartReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from heliograph.driver.spark.spark_engine import RunningTask
    from heliograph.executor.contract.task_report import PartitionReport, TaskReport
    from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
    from heliograph.model import ChangeActions, SourceOffset, TopicPartition
    from heliograph.wire.records.connect_status import State


NO_SLOT = (
    "waiting for a Spark slot for over a minute: all are busy, or no executor starts. Raise --master, or add executors."
)
_SLOT_WAIT_S = 60.0
_SILENT_S = 5.0  # a task reports once a second
FEW_SLOTS_WAIT_S = 10.0  # in which an executor that was killed is usually back
_RECOVERED_AFTER_S = 5.0
_MOST_FAILURES = 20  # a status is a record, and its topic refuses one of a megabyte


class TaskPhase(Enum):
    """The phases of a task."""

    NEW = auto()  # never started
    WAITING_FOR_SLOT = auto()  # started; Spark has not run it yet, or it has not reported yet
    RUNNING = auto()
    RESTARTING = auto()  # asked to end, to be started again afterwards
    BACKING_OFF = auto()  # has ended; started again at `restart_at`
    GIVEN_UP = auto()  # failed as often as the limit allows; only a request or another limit starts it again
    DONE = auto()  # ended for good: the flow stops, or has copied everything once


TASK_PHASES = StateMachine(
    TaskPhase.NEW,
    {
        TaskPhase.NEW: {TaskPhase.WAITING_FOR_SLOT, TaskPhase.BACKING_OFF},
        TaskPhase.WAITING_FOR_SLOT: {
            TaskPhase.RUNNING,
            TaskPhase.RESTARTING,
            TaskPhase.BACKING_OFF,
            TaskPhase.GIVEN_UP,
            TaskPhase.DONE,
        },
        TaskPhase.RUNNING: {TaskPhase.RESTARTING, TaskPhase.BACKING_OFF, TaskPhase.GIVEN_UP, TaskPhase.DONE},
        TaskPhase.RESTARTING: {TaskPhase.BACKING_OFF, TaskPhase.GIVEN_UP, TaskPhase.DONE},
        TaskPhase.BACKING_OFF: {TaskPhase.WAITING_FOR_SLOT, TaskPhase.BACKING_OFF, TaskPhase.GIVEN_UP},
        TaskPhase.GIVEN_UP: {TaskPhase.BACKING_OFF},
        TaskPhase.DONE: (),
    },
)


class Departure(NamedTuple):
    """A partition that was taken away from a running task by the assignment of a number."""

    number: int
    deadline: float


class TaskState(NamedTuple):
    """The state of a task in Connect's terms; `trace` is why it does not run, or its lasting issue."""

    number: int
    state: State
    trace: str | None
    tps: frozenset[TopicPartition]


@dataclass(slots=True)
class FlowTask:
    """One of the connector's tasks. Changed only in the flow's thread; `state` may be read from any."""

    number: int
    restarts: Restarts
    partition_restarts: Restarts
    phase: TaskPhase = TASK_PHASES.initial
    tps: frozenset[TopicPartition] = frozenset()
    departed: dict[TopicPartition, Departure] = field(default_factory=dict)  # that the current run may still hold
    unfenced: frozenset[TopicPartition] = frozenset()  # in the last transaction of its ended run, maybe
    is_leaving: bool = False  # other tasks copy its partitions: it was asked to end
    running: RunningTask | None = None
    specs: tuple[PartitionSpec, ...] = ()  # of its partitions, as they were last assigned
    openings: dict[TopicPartition, int] = field(default_factory=dict)  # of all partitions of the flow
    moves: dict[TopicPartition, SourceOffset] = field(default_factory=dict)  # of the flow, by a user, not committed yet
    restart_reason: RestartReason | None = None  # of its next start
    restarts_for_partitions: bool = True  # or its run begins with a failed partition again
    started_at: float = 0.0
    tried_at: float = 0.0  # its partitions: at its start, or later
    reported_at: float = 0.0
    restart_at: float | None = None
    retry_partitions_at: float | None = None
    trace: str | None = None  # why the last run failed, until the next one has reported
    has_logged_start: bool = False
    logged_start: str = ""
    logged_failure: str | None = None  # until it has run for a while again
    has_logged_waiting: bool = False

    @classmethod
    def new(
        cls,
        number: int,
        limits: RestartLimits,
        openings: dict[TopicPartition, int] | None = None,
        moves: dict[TopicPartition, SourceOffset] | None = None,
        *,
        restarts_for_partitions: bool = True,
    ) -> FlowTask:
        """Return a task without partitions."""
        return cls(
            number,
            Restarts(limits),
            Restarts.of_partitions(limits, pauses_others=restarts_for_partitions),
            openings={} if openings is None else openings,
            moves={} if moves is None else moves,
            restarts_for_partitions=restarts_for_partitions,
        )

    @property
    def task_id(self) -> str:
        """The id of the current run; empty if there is none."""
        running = self.running  # read from another thread
        return "" if running is None else running.spec.task_id

    def runs(self, spec: TaskSpec) -> bool:
        """Return whether the current run is that of the spec: reports of earlier runs may arrive late."""
        running = self.running
        return running is not None and running.spec.task_id == spec.task_id and running.spec.attempt == spec.attempt

    def state(self, failures: Sequence[str], issue: str | None = None) -> TaskState:
        """Return the state to show, given the failures of its partitions and its lasting issue."""
        phase, trace = self.phase, self.trace
        word: State
        match phase:
            case TaskPhase.RUNNING if failures:
                more = [f"and {len(failures) - _MOST_FAILURES} more"] if len(failures) > _MOST_FAILURES else []
                word, trace = "FAILED", "\n".join([*failures[:_MOST_FAILURES], *more])
            case TaskPhase.RUNNING:
                word, trace = "RUNNING", issue
            case TaskPhase.RESTARTING:
                word = "RESTARTING"
            case TaskPhase.WAITING_FOR_SLOT if trace:
                word = "RESTARTING"
            case TaskPhase.WAITING_FOR_SLOT:
                word, trace = "UNASSIGNED", NO_SLOT if self._is_waiting_long else None
            case TaskPhase.BACKING_OFF if not trace:
                word = "RESTARTING"
            case _:
                word = "FAILED" if trace else "UNASSIGNED"
        return TaskState(self.number, word, trace, self.tps)

    def set_limits(self, limits: RestartLimits) -> None:
        """Change the limits of restarts; a task that was given up is tried again."""
        self.restarts = Restarts(limits)
        self.partition_restarts = Restarts.of_partitions(limits, pauses_others=self.restarts_for_partitions)
        self.retry_partitions_at = None
        if self.phase is TaskPhase.GIVEN_UP:
            self.restart_by_hand(RestartReason.CHANGED)

    def take_over(self, tps: frozenset[TopicPartition], number: int, deadline: float) -> None:
        """Set the partitions of the current run, by an assignment of this number: it is to release the others."""
        departures = dict.fromkeys(self.tps - tps, Departure(number, deadline))
        self.departed = {tp: each for tp, each in (self.departed | departures).items() if tp not in tps}
        self.tps = tps

    def take_released(self, report: TaskReport) -> frozenset[TopicPartition]:
        """Return the partitions that the current run has released by this report, once."""
        held = set(report.releasing)
        released = frozenset(
            tp for tp, each in self.departed.items() if each.number <= report.assignment and tp not in held
        )
        self.departed = {tp: each for tp, each in self.departed.items() if tp not in released}
        return released

    def ended(self, *, may_be_in_transaction: bool) -> None:
        """Note that the current run has ended, however: it holds no partition any more."""
        self.running = None
        if may_be_in_transaction:
            self.unfenced |= self.tps | self.departed.keys()
        self.departed = {}

    def begin(self) -> RestartReason | None:
        """Note that it is started; return why it is started again, None the first time."""
        self._enter(TaskPhase.WAITING_FOR_SLOT)
        self.has_logged_start = False
        self.restart_at = None
        reason, self.restart_reason = self.restart_reason if self.started_at else None, None
        self.started_at = self.tried_at = time.monotonic()
        return reason

    def assigned(self, specs: Iterable[PartitionSpec]) -> tuple[PartitionSpec, ...]:
        """Return specs of its partitions with the number of each opening, and where a user has moved it."""
        self.specs = tuple(
            replace(
                spec,
                opening=self.openings.get(spec.tp, 0),
                source_offsets=self.moves.get(spec.tp, spec.source_offsets),
                is_moved=spec.tp in self.moves,
            )
            for spec in specs
        )
        return self.specs

    def open_again(self, tps: Iterable[TopicPartition]) -> tuple[PartitionSpec, ...]:
        """Return the specs that make the current run begin again with some partitions."""
        for tp in tps:
            self.openings[tp] = self.openings.get(tp, 0) + 1
        self.tried_at = time.monotonic()
        self.retry_partitions_at = None
        return self.assigned(self.specs)

    def change_actions(self, actions: Mapping[str, ChangeActions]) -> bool:
        """Give its partitions the actions of their topics; return whether any of them had others."""
        if all(actions.get(spec.tp.topic, spec.actions) == spec.actions for spec in self.specs):
            return False
        self.assigned([replace(spec, actions=actions.get(spec.tp.topic, spec.actions)) for spec in self.specs])
        return True

    def note_committed(self, rows: Iterable[PartitionReport]) -> None:
        """Forget the moves that the current run has committed; an earlier opening's offset is not the moved one."""
        for row in rows if self.moves else ():
            if row.committed_offset is not None and row.opening >= self.openings.get(row.tp, 0):
                self.moves.pop(row.tp, None)

    def reported(self) -> None:
        """Note that the current run has reported."""
        self.trace = None
        self.reported_at = time.monotonic()
        if self.phase is TaskPhase.WAITING_FOR_SLOT:
            self._enter(TaskPhase.RUNNING)

    def failed(self, reason: str, *, is_lost: bool = False) -> float | None:
        """Note a failure, or a lost executor; return the pause before the next start, None if the task is given up."""
        now = time.monotonic()
        self.restart_reason = RestartReason.LOST if is_lost else RestartReason.FAILED
        self.trace = reason
        pause_s = self.restarts.pause_s(now - self.started_at)
        self._enter(TaskPhase.GIVEN_UP if pause_s is None else TaskPhase.BACKING_OFF)
        self.restart_at = None if pause_s is None else now + pause_s
        return pause_s

    def postpone(self, pause_s: float) -> None:
        """Delay the next start; not a failure of the task."""
        self._enter(TaskPhase.BACKING_OFF)
        self.restart_at = time.monotonic() + pause_s

    def ended_as_requested(self) -> None:
        """Note that the run has ended to be started again: at once."""
        self.trace = None
        self.postpone(0.0)

    def suspend(self) -> None:
        """Note that the run has ended, and is started again only on a user's request."""
        self.trace = None
        self._enter(TaskPhase.BACKING_OFF)
        self.restart_at = None

    def finish(self) -> None:
        """Note that the run has ended for good."""
        self._enter(TaskPhase.DONE)

    def restart_by_hand(self, reason: RestartReason = RestartReason.REQUESTED) -> None:
        """Start again, by default on a user's request: earlier failures no longer count."""
        self.forget_failures()
        self.request_restart(reason)

    def forget_failures(self) -> None:
        """Count failures from now on: a user has requested another try."""
        self.restarts.reset_failures()
        self.partition_restarts.reset_failures()
        self.retry_partitions_at = None

    def request_restart(self, reason: RestartReason = RestartReason.REQUESTED) -> None:
        """Start again: at once if it does not run, otherwise as soon as it has ended."""
        if self.phase in (TaskPhase.RESTARTING, TaskPhase.DONE):
            return
        self.restart_reason = reason
        if self.phase in (TaskPhase.WAITING_FOR_SLOT, TaskPhase.RUNNING):
            self._enter(TaskPhase.RESTARTING)
        else:
            self.ended_as_requested()

    @property
    def is_silent(self) -> bool:
        """Return whether it runs, but has not reported for some seconds: its machine may be lost."""
        return self.phase is TaskPhase.RUNNING and time.monotonic() - self.reported_at > _SILENT_S

    @property
    def is_gone(self) -> bool:
        """Return whether it has neither a run nor a partition."""
        return self.running is None and not self.tps

    @property
    def is_due(self) -> bool:
        """Return whether to start it now."""
        return self.restart_at is not None and self.restart_at <= time.monotonic()

    @property
    def is_over(self) -> bool:
        """Return whether it will not run again by itself."""
        return self.phase in (TaskPhase.DONE, TaskPhase.GIVEN_UP)

    def has_recovered(self) -> bool:
        """Return whether its current run has lasted, after runs that failed; true only once."""
        if self.logged_failure is None or time.monotonic() - self.started_at < _RECOVERED_AFTER_S:
            return False
        self.logged_failure = None
        return True

    def newly_waiting_for_slot(self) -> bool:
        """Return whether it has waited long for a slot since its last start; true only once for each start."""
        was_logged, self.has_logged_waiting = self.has_logged_waiting, self._is_waiting_long
        return self.has_logged_waiting and not was_logged

    @property
    def _is_waiting_long(self) -> bool:
        is_waiting = self.phase is TaskPhase.WAITING_FOR_SLOT
        return is_waiting and time.monotonic() - self.started_at >= _SLOT_WAIT_S

    def lacks_slot(self, *, are_slots_few: bool) -> bool:
        """Return whether it waits for a slot and others should copy its partitions; soon if there are too few slots."""
        is_waiting = self.phase is TaskPhase.WAITING_FOR_SLOT
        waited_s = time.monotonic() - self.started_at
        return is_waiting and waited_s >= (FEW_SLOTS_WAIT_S if are_slots_few else _SLOT_WAIT_S)

    def is_due_for_failed_partitions(self, failed: Sequence[TopicPartition]) -> bool:
        """Return whether to try partitions that have failed again; called repeatedly."""
        if self.phase is not TaskPhase.RUNNING:
            return False
        now = time.monotonic()
        if not failed:
            self.retry_partitions_at = None
        elif self.retry_partitions_at is None:
            pause_s = self.partition_restarts.pause_s(now - self.tried_at)
            self.retry_partitions_at = float("inf") if pause_s is None else now + pause_s
        elif now >= self.retry_partitions_at:
            self.retry_partitions_at = None
            return True
        return False

    def _enter(self, phase: TaskPhase) -> None:
        self.phase = TASK_PHASES.step(self.phase, phase)


class FlowTasks(list[FlowTask]):
    """The tasks of a flow, by number."""

    def of_run(self, spec: TaskSpec) -> FlowTask | None:
        """Return the task whose current run is that of the spec."""
        return next((task for task in self if task.runs(spec)), None)

    @property
    def shares(self) -> tuple[frozenset[TopicPartition], ...]:
        """The partitions of each task."""
        return tuple(task.tps for task in self)

    @property
    def held(self) -> frozenset[TopicPartition]:
        """The partitions that a run has, or may still have."""
        return frozenset(tp for task in self if task.running is not None for tp in (*task.tps, *task.departed))

    @property
    def are_settled(self) -> bool:
        """Return whether no partition is being released, and no task is leaving."""
        return not any(task.departed or (task.is_leaving and task.running is not None) for task in self)

    def without_slot(self, *, are_slots_few: bool) -> frozenset[int]:
        """Return the numbers of the tasks that have waited too long for a slot."""
        return frozenset(task.number for task in self if task.lacks_slot(are_slots_few=are_slots_few))

    @property
    def due(self) -> list[FlowTask]:
        """The tasks to start now."""
        return [task for task in self if task.is_due]

    @property
    def next_start_at(self) -> float | None:
        """The time when the next task is due."""
        return min((task.restart_at for task in self if task.restart_at is not None), default=None)

    @property
    def are_running(self) -> bool:
        """Return whether any task runs."""
        return any(task.running is not None for task in self)

    @property
    def are_over(self) -> bool:
        """Return whether no task will run again by itself."""
        return all(task.is_over for task in self)

    @property
    def any_given_up(self) -> bool:
        """Return whether a task has failed as often as the limit allows."""
        return any(task.phase is TaskPhase.GIVEN_UP for task in self)

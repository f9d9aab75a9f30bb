"""Supervises the tasks of one flow: assigns partitions, starts, restarts and stops tasks, divides the rate limit.

Used only in the flow's thread; `states` may be read from any. Tasks run elsewhere: what they report, and how they end,
arrives as events of the flow. A task that ended is started again with back-off, from the offsets committed on the
target. A new topic or partition is given to a running task; the others notice nothing.

Invariant: a partition is in at most one running task, and a task is started again only after its last run has ended.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from heliograph.config import keys
from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.diagnostics import note, problem, warning
from heliograph.driver.flow.flow_status import resume_summary, task_step
from heliograph.driver.flow.task_spec_builder import partition_specs, task_spec
from heliograph.driver.flow.tasks.flow_balance import FlowBalance
from heliograph.driver.flow.tasks.flow_task import NO_SLOT, FlowTask, FlowTasks, TaskPhase
from heliograph.driver.flow.tasks.rebalancing import RELEASE_TIMEOUT_S, Rebalancing
from heliograph.driver.flow.tasks.task_plan import TaskPlan
from heliograph.driver.flow.user_moves import UserMoves
from heliograph.driver.steps.restart_policy import RestartLimits
from heliograph.errors import AuthenticationError, ConnectError, EngineError, FencedError, HeliographError
from heliograph.mirror.topics.task_assignment import rate_share, task_count
from heliograph.mirror.topics.task_scaling import TaskLimits
from heliograph.model import RestartedPartition, counted
from heliograph.status.task_status import RestartReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.driver.flow.flow_steps import FlowSteps
    from heliograph.driver.flow.tasks.flow_task import TaskState
    from heliograph.driver.spark.spark_engine import LaunchOptions, RunningTask, SparkEngine, TaskEnd
    from heliograph.executor.contract.source_offsets import SourceOffsets
    from heliograph.executor.contract.task_report import TaskReport
    from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
    from heliograph.model import RestartRequest, TopicPartition


log = logging.getLogger(__name__)

_LATE_BATCHES_S = 1.0  # in which a broker appends what a killed run has sent
_MOST_LOGGED = 10
_BAD_REQUEST, _NOT_FOUND = 400, 404

Suspension = Literal["PAUSED", "STOPPED"]
"""The state of a connector whose tasks do not run, on request."""


@dataclass(frozen=True, slots=True)
class TaskLauncher:
    """The engine as one flow uses it; `on_report` and `on_end` are called from other threads."""

    engine: SparkEngine
    options: LaunchOptions | None
    on_report: Callable[[TaskSpec, TaskReport], None]
    on_end: Callable[[TaskEnd], None]

    def start(self, spec: TaskSpec) -> RunningTask:
        """Start a task."""
        return self.engine.start(spec, self.on_report, self.on_end, self.options)


class TaskSupervisor:
    """The tasks of one flow."""

    def __init__(
        self,
        config: MirrorConfig,
        steps: FlowSteps,
        status: FlowStatus,
        launcher: TaskLauncher,
        *,
        flow_count: int,
        once: bool,
    ) -> None:
        self.tasks = FlowTasks()
        self._openings: dict[TopicPartition, int] = {}
        self._moves = UserMoves(steps, status, self.tasks, config.label(status.flow))
        self._plan = TaskPlan()
        balance = FlowBalance(status.partitions, status.sums)
        self.rebalancing = Rebalancing(str(status.flow), balance, self.tasks, self._plan)
        self._settle_at: float | None = None
        self._settle_not_before = 0.0
        self._slots = 0  # of Spark, as last known
        self.suspended_as: Suspension | None = None
        self._flow = status.flow
        self._steps = steps
        self._status = status
        self._launcher = launcher
        self._engine = launcher.engine
        self._flow_count = flow_count
        self._once = once
        self._configure(config)

    def _configure(self, config: MirrorConfig) -> None:
        self._config = config
        self._settings = config.settings(self._flow)
        self._limits = RestartLimits.of(self._settings)
        self._status.throttle_bytes_per_s = self._settings[keys.THROTTLE_BYTES_PER_SECOND]
        # A transaction has one producer id, and a partition that begins again needs another.
        self._is_exactly_once = self._settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled"

    def adopt(self, config: MirrorConfig) -> None:
        """Continue with another configuration, and with its limits."""
        self._configure(config)
        for task in self.tasks:
            task.set_limits(self._limits)

    @property
    def states(self) -> tuple[TaskState, ...]:
        """The states of all tasks; may be read from any thread."""
        failures, issue = self._status.partitions.failures, self._status.tasks.issue_of
        return tuple(task.state(failures(task.tps), issue(task.task_id)) for task in list(self.tasks))

    # --- partitions ---------------------------------------------------------------------------------------------------

    def assign_if_changed(self) -> None:
        """Assign the partitions of the flow if they have changed.

        A running task that keeps its partitions gets their actions, if these have changed.
        """
        if self.suspended_as is None and self._plan.partitions != frozenset(self._steps.replicated.partitions):
            self.assign()
        for task in self.tasks:
            if task.running is not None and task.change_actions(self._steps.replicated.actions):
                self._engine.assign(task.running, task.specs)

    def assign(self) -> None:
        """Plan a task for every partition; start tasks that are new, update those whose partitions have changed.

        A flow that begins suspended has its tasks, too; `resume` starts them.
        """
        partitions = self._steps.replicated.partitions
        if not partitions and not self.tasks:
            return
        tasks_max = self._settings[keys.TASKS_MAX]
        self._slots = self._slots or self._engine.slots
        count, slots = task_count(
            partitions=len(partitions),
            tasks_max=tasks_max,
            slots=self._slots,
            flows=self._flow_count,
            running=self._plan.count,
            grows=self._engine.grows_for_tasks,
        )
        if slots is not None:
            share = counted(slots, "slot")
            log.info(
                "%s: tasks.max=%d, but Spark has %s for this flow", self._flow, tasks_max, share, extra=self._about()
            )
        if self._slots < self._flow_count and not self._engine.grows_for_tasks:
            log.warning(
                "%s: Spark has %s for %s; tasks without a slot wait for one. Raise --master, or add executors.",
                self._flow,
                counted(self._slots, "slot"),
                counted(self._flow_count, "flow"),
                extra=self._about(),
            )
        if not self._once:
            count = max(self._plan.count, min(count, self._settings[keys.TASKS_MIN] or count))
        if len(self.tasks) <= self._plan.count:  # or a task that is leaving has the number
            self._plan.count = count
        self._plan.assign(partitions, self.rebalancing.balance.bytes_per_s)
        self.settle()

    def settle(self) -> tuple[str, ...]:
        """Give each task what it is to have, as far as no other holds it; a step of the flow."""
        self._settle_at = time.monotonic() + self._limits.try_again_s  # unless it succeeds
        for number in range(len(self.tasks), self._plan.count):
            self.tasks.append(
                FlowTask.new(
                    number, self._limits, self._openings, self._moves, restarts_for_partitions=self._is_exactly_once
                )
            )
        shares = self._plan.next_shares(self.tasks)
        changed = [task for task in self.tasks if task.number in shares or task.phase is TaskPhase.NEW]
        if changed:
            self._free(shares)
            source_offsets = self._steps.read_source_offsets()
            for task in changed:
                self._change(task, shares.get(task.number, task.tps), source_offsets)
        self._let_leave()
        self._settle_at = None
        return ()

    def _free(self, shares: Mapping[int, frozenset[TopicPartition]]) -> None:
        """Prepare partitions for other tasks: end the transactions of their last runs, write where a user moved them.

        A run that was killed may have left a transaction, or its commit may still be under way.
        """
        for task in self.tasks:
            others = [share for number, share in shares.items() if number != task.number]
            if task.running is None and task.unfenced & frozenset().union(*others):
                self._steps.fence_tasks([task.number])
                task.unfenced = frozenset()
        before = {tp for task in self.tasks for tp in task.tps}
        self._moves.write({tp for share in shares.values() for tp in share if tp not in before})

    def _change(self, task: FlowTask, tps: frozenset[TopicPartition], source_offsets: SourceOffsets) -> None:
        """Give a task other partitions."""
        if task.running is not None:
            gone, before = task.tps - tps, task.tps
            task.tps = tps
            number = self._engine.assign(task.running, self._partition_specs(task, source_offsets))
            task.tps = before
            task.take_over(tps, number, time.monotonic() + RELEASE_TIMEOUT_S)
            self._status.partitions.hold(gone, note(f"task {task.number} releases it"))
            is_wanted = any(self._plan.task_of(tp) is not None for tp in gone)
            if is_wanted and task.phase is TaskPhase.WAITING_FOR_SLOT:  # it may never report a release
                task.request_restart(RestartReason.CHANGED)
                self._stop_for_restart(task)
            return
        task.tps = tps
        if self.suspended_as is not None:
            self._suspended(task)
        elif task.phase is TaskPhase.NEW:
            self._start(task, source_offsets)

    def _let_leave(self) -> None:
        """End the tasks that are no longer needed, once they hold no partition."""
        for task in self.tasks[self._plan.count :]:
            if task.running is not None and not (task.tps or task.departed or task.is_leaving):
                task.is_leaving = True
                self._engine.stop(task.running, "its partitions are copied by other tasks")
        while len(self.tasks) > self._plan.count and self.tasks[-1].is_gone:
            self._status.note(task_step(self.tasks.pop().number), ())

    def divide_limit(self) -> None:
        """Divide the flow's rate limit among the tasks that copy; each was started with the share of all tasks."""
        copying = [task.running for task in self.tasks if task.running is not None and task.tps]
        for running in copying:
            share = rate_share(self._settings[keys.THROTTLE_BYTES_PER_SECOND], len(copying))
            self._engine.share(running, share)

    def _partition_specs(self, task: FlowTask, source_offsets: SourceOffsets) -> tuple[PartitionSpec, ...]:
        replicated, stop_offsets = self._steps.replicated, self._steps.stop_offsets
        return task.assigned(partition_specs(task.tps, replicated, source_offsets, stop_offsets))

    # --- starts and restarts ------------------------------------------------------------------------------------------

    def start_due(self) -> tuple[str, ...]:
        """Start the tasks whose pause is over; a step of the flow."""
        due = self.tasks.due
        try:
            self._steps.fence_tasks(task.number for task in due)
            for task in due:
                task.unfenced = frozenset()
                task.tps &= self._plan.share(task.number)  # the rest may have been planned for others meanwhile
            self._moves.write({tp for task in due for tp in task.tps})
            source_offsets = self._steps.read_source_offsets()
        except AuthenticationError as error:  # unlike a broker that is unavailable, it rarely clears by itself
            for task in due:
                self._failed(task, str(error))
            return ()
        except Exception:  # whatever it is, tasks that stay due would be tried again without a pause
            for task in due:
                task.postpone(self._limits.try_again_s)
            raise
        for task in due:
            self._start(task, source_offsets)
        return ()

    def restart(self, number: int) -> None:
        """Restart a task on a user's request, unless it is stopped; its run first commits what it has written."""
        for task in self.tasks[number : number + 1] if self.suspended_as is None else ():
            task.restart_by_hand()
            self._stop_for_restart(task)

    def suspend(self, state: Suspension) -> None:
        """Stop all tasks until `resume`; the flow itself continues to look at its topics."""
        self.suspended_as = state
        for task in self.tasks:
            if task.running is not None:
                self._engine.stop(task.running, "it is stopped on request")
            else:
                self._suspended(task)

    def _suspended(self, task: FlowTask) -> None:
        self._moves.keep(task.tps)
        for tp in task.tps:  # a user may change the source offsets from now on
            self._moves.pop(tp, None)
        if task.phase is not TaskPhase.NEW:
            task.suspend()
        self._status.partitions.hold(task.tps, note("the connector is stopped on request"))

    def resume(self) -> None:
        """Start all tasks again."""
        if self.suspended_as is not None:
            self.suspended_as = None
            for task in self.tasks:
                task.restart_by_hand()
            self.assign_if_changed()

    def restart_partitions(self, request: RestartRequest) -> tuple[RestartedPartition, ...]:
        """Restart partitions on a user's request, moved if the request says so; raises ConnectError if it cannot be.

        A task that runs begins with them again, and its others continue; with exactly-once, and if the request names no
        topic, tasks are restarted.
        """
        if self.suspended_as is not None:
            raise ConnectError(
                _BAD_REQUEST, f"The flow {self._flow} is {self.suspended_as}; resume its connector first"
            )
        tps = sorted(tp for tp in self._steps.replicated.partitions if request.covers(tp))
        if not tps and request.topic is not None:
            number = "" if request.partition is None else f" partition {request.partition} of"
            raise ConnectError(_NOT_FOUND, f"The flow {self._flow} does not replicate{number} {request.topic}")
        moved = self._steps.positions(tps, request.start)
        self._moves.add(moved)
        unassigned = [tp for tp in tps if not any(tp in task.tps for task in self.tasks)]
        for tp in unassigned:  # it is moving between tasks: the next one begins with it there
            self._openings[tp] = self._openings.get(tp, 0) + 1
        for task in self.tasks:
            own = [tp for tp in tps if tp in task.tps]
            if not own:
                continue
            if task.phase is TaskPhase.RUNNING and request.topic is not None and not self._is_exactly_once:
                task.forget_failures()
                self._open_again(task, own, is_requested=True)
            else:
                task.open_again(own)  # or the last reports of the current run would be taken for those of the next
                again = note(f"task {task.number} is started again")
                self._status.partitions.open_again({tp: self._openings[tp] for tp in own}, again, is_requested=True)
                self.restart(task.number)
        return self._moves.restarted(tps, moved)

    def keep_moves(self) -> None:
        """Write what a user has moved and no task has committed, before the flow ends."""
        self._moves.keep(self._moves)

    def look_after(self) -> tuple[str, ...]:
        """Find tasks that are lost, wait for a slot, or have failed partitions to retry; a step of the flow."""
        for task in self.tasks:
            if task.running:
                self._engine.take_back_if_lost(task.running)
            if task.newly_waiting_for_slot():
                log.warning("%s: task %d: %s", self._flow, task.number, NO_SLOT, extra=self._about(task))
            failed = self._status.partitions.failed_of(task.tps)
            if task.is_due_for_failed_partitions(failed):
                self._retry(task, failed)
        if self.suspended_as is None and not self._once and self.tasks:
            self._rebalance()
        return ()

    def _rebalance(self) -> None:
        """Plan other tasks, or others for some partitions, if that is due."""
        now, settings = time.monotonic(), self._settings
        self._slots = self._engine.snapshot().slots or self._slots  # without waiting, unlike `slots` itself
        limits = TaskLimits.of(
            partitions=len(self._steps.replicated.partitions),
            tasks_min=settings[keys.TASKS_MIN],
            tasks_max=settings[keys.TASKS_MAX],
            slots=self._slots,
            flows=self._flow_count,
            grows=self._engine.grows_for_tasks,
        )
        are_planned = self._leave_executors(now, limits) or self.rebalancing.keep_stuck(now)
        if are_planned or (self._settle_at is None and self.rebalancing.look(now, limits)):
            self._settle_at = now

    def _leave_executors(self, now: float, limits: TaskLimits) -> bool:
        """End tasks cleanly whose executors are decommissioned; return whether others are to copy their partitions.

        They start again on other executors. If these have too few slots, they wait there without partitions.
        """
        leaving = [
            task
            for task in self.tasks
            if task.phase is TaskPhase.RUNNING and task.running is not None and self._engine.is_leaving(task.running)
        ]
        for task in leaving:
            text = "its executor is being decommissioned; it commits and starts on another one"
            log.info("%s: task %d: %s", self._flow, task.number, text, extra=self._about(task))
            task.request_restart(RestartReason.LOST)
            self._stop_for_restart(task)
        if not leaving or limits.most >= self._plan.count:
            return False
        idle = {task.number for task in leaving}
        return self.rebalancing.hand_over(now, idle, "leave their executors, and there are too few slots")

    def _retry(self, task: FlowTask, tps: Sequence[TopicPartition]) -> None:
        if self._is_exactly_once:
            log.info(
                "%s: task %d is restarted to try its failed partitions again",
                self._flow,
                task.number,
                extra=self._about(task),
            )
            task.request_restart(RestartReason.PARTITION)
            self._stop_for_restart(task)
        else:
            failed = counted(len(tps), "failed partition")
            log.debug("%s: task %d tries %s again", self._flow, task.number, failed, extra=self._about(task))
            self._open_again(task, tps, is_requested=False)

    def _open_again(self, task: FlowTask, tps: Sequence[TopicPartition], *, is_requested: bool) -> None:
        """Let a running task begin again with some partitions; its others continue."""
        assert task.running is not None
        specs = task.open_again(tps)
        reason = RestartReason.REQUESTED if is_requested else RestartReason.PARTITION
        self._status.tasks.note_partition_restarts(task.number, reason, len(tps))
        again = note(f"task {task.number} begins with it again")
        self._status.partitions.open_again({tp: self._openings[tp] for tp in tps}, again, is_requested=is_requested)
        self._engine.assign(task.running, specs)

    def stop_all(self, *, drains: bool = True) -> None:
        """Ask every running task to flush, commit and end; or end it at once, which any thread may do."""
        for running in [task.running for task in list(self.tasks)]:
            if running is not None and drains:
                self._engine.stop(running, "heliograph is stopping")
            elif running is not None:
                self._engine.abort(running)

    def _start(self, task: FlowTask, source_offsets: SourceOffsets) -> None:
        self._status.tasks.note_start(task.number, task.begin())
        self._status.partitions.hold(task.tps, note(f"task {task.number} waits for a Spark slot"))
        self._status.note(task_step(task.number), ())
        self._status.partitions.retry(task.tps)
        task.tps &= frozenset(self._steps.replicated.partitions)  # a topic may be gone, and its assignment have failed
        offsets_topic = self._steps.offsets_topic
        assert offsets_topic is not None
        try:  # secrets are resolved here, at each start
            partitions = self._partition_specs(task, source_offsets)
            spec = task_spec(self._config, self._flow, task.number, partitions, offsets_topic, len(self.tasks))
            task.running = self._launcher.start(spec)
        except EngineError:
            raise
        except HeliographError as error:
            self._failed(task, str(error))
        except Exception as error:  # noqa: BLE001  (a task that was not started ends nowhere: nothing else starts it)
            log.debug("%s", trace_of(error))
            self._failed(task, unexpected(error))

    def _stop_for_restart(self, task: FlowTask) -> None:
        if task.running is not None:
            self._engine.stop(task.running, "it is restarted")

    @property
    def next_at(self) -> float | None:
        """The time when a task is due, or partitions are to be given to tasks."""
        settle_at = None if self._settle_at is None else max(self._settle_at, self._settle_not_before)
        return min((at for at in (self.tasks.next_start_at, settle_at) if at is not None), default=None)

    @property
    def is_settling_due(self) -> bool:
        """Return whether tasks are to have other partitions now."""
        now = time.monotonic()
        return self._settle_at is not None and self._settle_at <= now and self._settle_not_before <= now

    # --- events -------------------------------------------------------------------------------------------------------

    def task_reported(self, spec: TaskSpec, report: TaskReport) -> None:
        """Take a report; one of a run that has ended changes nothing but the log."""
        task = self.tasks.of_run(spec)
        self._log_events(task, report)
        self._log_new_failures()
        if task is not None:
            self._take(task, spec, report)
            self._take_released(task, report)
            task.reported()

    def _take_released(self, task: FlowTask, report: TaskReport) -> None:
        released = task.take_released(report)
        for tp in released:
            self._openings[tp] = self._openings.get(tp, 0) + 1
        if released:
            openings = {tp: self._openings[tp] for tp in released}
            why = note(f"task {task.number} has released it to another")
            self._status.partitions.open_again(openings, why, is_released=True)
            self._settle_at = time.monotonic()

    def _take(self, task: FlowTask, spec: TaskSpec, report: TaskReport) -> None:
        task.note_committed(report.partitions)
        if self._status.tasks.take_recovered():
            self._steps.runner.hasten_failing()
        if not report.partitions:
            self._status.partitions.hold(task.tps, note(f"task {task.number} looks for where to resume"))
        elif not task.has_logged_start:  # by now the task knows where its partitions resume
            task.has_logged_start = True
            summary = resume_summary(spec.partitions, report.partitions)
            level = logging.DEBUG if summary == task.logged_start and task.logged_failure else logging.INFO
            task.logged_start = summary
            log.log(level, "%s: task %d %s", self._label, task.number, summary, extra=self._about(task))
        elif task.has_recovered():
            log.info("%s: task %d runs again", self._label, task.number, extra=self._about(task))

    def task_ended(self, end: TaskEnd, *, is_stopping: bool) -> None:
        """Take the end of a run, and decide whether and when the task is started again.

        Raises FencedError if another instance has taken the task's transactional id: starting again would only take it
        back.
        """
        task = self.tasks.of_run(end.spec)
        assert task is not None
        if end.report is not None:
            self._log_events(task, end.report)
            self._status.take(end.spec.task_id, end.report, end.spec.attempt)
            self._log_new_failures()
            self._take(task, end.spec, end.report)
            if self._once:  # there is no later report of the issues it still has
                issues = (*end.report.unavailable_clusters, *end.report.issue)
                self._steps.runner.report(task_step(task.number), issues)
        self._status.task_ended(end.spec.task_id, (*task.tps, *task.departed), end.spec.attempt)
        task.ended(may_be_in_transaction=self._is_exactly_once)
        self._settle_at = time.monotonic()
        if end.error is not None and not self._is_exactly_once:  # whose transactions are ended first
            self._settle_not_before = self._settle_at + _LATE_BATCHES_S
        if is_stopping or task.is_leaving or (self._once and end.error is None):
            self._finish(task, end, is_stopping=is_stopping)
        elif self.suspended_as is not None:
            self._suspended(task)
        elif end.is_fenced:
            raise FencedError(f"task {task.number}: {end.error}")
        elif task.phase is TaskPhase.RESTARTING and end.error is None:
            task.ended_as_requested()
            self._status.partitions.hold(task.tps, note(f"task {task.number} is started again"))
        else:
            if end.trace:
                log.debug("%s", end.trace)
            self._failed(task, end.error or "it ended unexpectedly.", is_lost=end.is_lost)

    def _finish(self, task: FlowTask, end: TaskEnd, *, is_stopping: bool) -> None:
        task.finish()
        if is_stopping:
            self._status.partitions.hold(task.tps, note("the flow has stopped"))
        if end.error is not None:
            text = "%s: task %d did not stop cleanly: %s"
            log.error(text, self._flow, task.number, end.error, extra=self._about(task))

    def _failed(self, task: FlowTask, reason: str, *, is_lost: bool = False) -> None:
        self._status.tasks.note_no_run(task.number)
        pause_s = task.failed(reason, is_lost=is_lost)
        if pause_s is not None:
            self._status.partitions.hold(task.tps, warning(f"task {task.number} failed: {reason} It is started again."))
            level = logging.DEBUG if task.logged_failure == reason else logging.ERROR  # once until it runs again
            task.logged_failure = reason
            log.log(
                level,
                "%s: task %d failed: %s Starting it again in %.1f s.",
                self._flow,
                task.number,
                reason,
                pause_s,
                extra=self._about(task),
            )
            return
        limit = f"{keys.RESTART_ATTEMPTS_MAX.name} is {self._limits.attempts_max}"
        issue = f"task {task.number} failed: {reason} It is not started again, {limit}."
        log.error("%s: %s", self._flow, issue, extra=self._about(task))
        self._status.partitions.hold(task.tps, problem(issue))
        self._status.note(task_step(task.number), (issue,))

    @property
    def _label(self) -> str:
        return self._config.label(self._flow)

    def _about(self, task: FlowTask | None = None) -> dict[str, object]:
        """Return the fields of a log line."""
        return {"flow": self._label} if task is None else {"flow": self._label, "task": task.number}

    def _log_events(self, task: FlowTask | None, report: TaskReport) -> None:
        for severity, message, tp in report.events:
            about = {"topic": tp.topic, "partition": tp.partition} if tp is not None else {}
            log.log(severity, "%s", message, extra=self._about(task) | about)

    def _log_new_failures(self) -> None:
        """Log the partitions that have failed, each once however often it is tried again, and no line for each of many.

        The state of the flow logs when they copy again.
        """
        failures = self._status.partitions.take_new_failures()
        for tp, failure in list(failures.items())[:_MOST_LOGGED]:
            task = next((each for each in self.tasks if tp in each.tps), None)
            about = {**self._about(task), "topic": tp.topic, "partition": tp.partition}
            log.error("%s", failure, extra=about)
        if len(failures) > _MOST_LOGGED:
            more = counted(len(failures) - _MOST_LOGGED, "more partition")
            log.error("%s: %s failed at the same time", self._flow, more, extra=self._about())

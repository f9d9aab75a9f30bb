"""Supervises the tasks of one flow: assigns partitions, starts, restarts and stops tasks, divides the rate limit.

Used only in the flow's thread; `states` may be read from any. Tasks run elsewhere: what they report, and how they end,
arrives as events of the flow. A task that ended is started again with back-off, from the offsets committed on the
target. A new topic or partition is given to a running task; the others notice nothing.

Invariant: a partition is in at most one running task, and a task is started again only after its last run has ended.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from heliograph.config import keys
from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.diagnostics import note, problem, warning
from heliograph.driver.flow.flow_status import resume_summary, task_step
from heliograph.driver.flow.flow_task import NO_SLOT, FlowTask, FlowTasks, TaskPhase
from heliograph.driver.flow.task_spec_builder import partition_specs, task_spec
from heliograph.driver.steps.restart_policy import RestartLimits
from heliograph.errors import AuthenticationError, ConnectError, EngineError, FencedError, HeliographError
from heliograph.executor.contract.source_offsets import SourceOffsets
from heliograph.kafka.request_options import EARLIEST, LATEST
from heliograph.mirror.topics.task_assignment import assign, rate_share, task_count
from heliograph.model import RestartedPartition, SourceOffset, counted
from heliograph.status.task_status import RestartReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.driver.flow.flow_steps import FlowSteps
    from heliograph.driver.flow.flow_task import TaskState
    from heliograph.driver.spark.spark_engine import LaunchOptions, RunningTask, SparkEngine, TaskEnd
    from heliograph.executor.contract.task_report import TaskReport
    from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
    from heliograph.model import RestartRequest, TopicPartition


log = logging.getLogger(__name__)

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
        """Assign the partitions of the flow if the tasks have others, also after an assignment that failed half-way.

        A running task that keeps its partitions gets their actions, if these have changed.
        """
        if self.suspended_as is None and self.tasks.assigned != frozenset(self._steps.replicated.partitions):
            self.assign()
        for task in self.tasks:
            if task.running is not None and task.change_actions(self._steps.replicated.actions):
                self._engine.assign(task.running, task.specs)

    def assign(self) -> None:
        """Assign every partition to a task; start tasks that are new, update those whose partitions have changed.

        A flow that begins suspended has its tasks, too; `resume` starts them.
        """
        partitions = self._steps.replicated.partitions
        if not partitions and not self.tasks:
            return
        tasks_max = self._settings[keys.TASKS_MAX]
        count, slots = task_count(
            partitions=len(partitions),
            tasks_max=tasks_max,
            slots=self._engine.slots,
            flows=self._flow_count,
            running=len(self.tasks),
        )
        if slots is not None:
            share = counted(slots, "slot")
            log.info(
                "%s: tasks.max=%d, but Spark has %s for this flow", self._flow, tasks_max, share, extra=self._about()
            )
        shares = assign(partitions, count, [task.tps | task.departed for task in self.tasks])
        self.tasks += [
            FlowTask.new(number, self._limits, self._openings, restarts_for_partitions=self._is_exactly_once)
            for number in range(len(self.tasks), count)
        ]
        changed = [task for task in self.tasks if task.tps != shares[task.number]]
        source_offsets = self._steps.read_source_offsets() if changed else SourceOffsets({}, frozenset())
        for task in changed:
            if task.take_over(shares[task.number]):
                self._stop_for_restart(task)
            elif task.running is not None:
                self._engine.assign(task.running, self._partition_specs(task, source_offsets))
            elif self.suspended_as is not None:
                self._suspended(task)
            elif task.phase is TaskPhase.NEW:
                self._start(task, source_offsets)

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
            self._write_moves(due)
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
        self._keep_moves([task])
        task.moves.clear()  # a user may change the source offsets from now on
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
        moved = self._moved(tps, request.start)
        moves = self._moves(moved)
        for task in self.tasks:
            own = [tp for tp in tps if tp in task.tps]
            if not own:
                continue
            task.moves |= {tp: moves[tp] for tp in own if tp in moves}
            if task.phase is TaskPhase.RUNNING and request.topic is not None and not self._is_exactly_once:
                task.forget_failures()
                self._open_again(task, own, is_requested=True)
            else:
                task.open_again(own)  # or the last reports of the current run would be taken for those of the next
                again = note(f"task {task.number} is started again")
                self._status.partitions.open_again({tp: self._openings[tp] for tp in own}, again, is_requested=True)
                self.restart(task.number)
        return self._restarted(tps, moved)

    def _moved(self, tps: list[TopicPartition], start: str | int | None) -> dict[TopicPartition, int]:
        if start is None or not tps:
            return {}
        earliest = self._steps.log_offsets(tps, EARLIEST) if start != "end" else {}
        if start == "beginning":
            return earliest
        latest = self._steps.log_offsets(tps, LATEST)
        if isinstance(start, str):
            return latest
        for tp in tps:
            if not earliest[tp] <= start <= latest[tp]:
                has = f"offsets {earliest[tp]} to {latest[tp]}"
                raise ConnectError(_BAD_REQUEST, f"{tp} cannot continue at offset {start}: the source has {has}")
        return dict.fromkeys(tps, start)

    def _moves(self, moved: dict[TopicPartition, int]) -> dict[TopicPartition, SourceOffset]:
        """Return the source offsets to commit; what the target's logs have remains known, and its loss noticed."""
        known = self._steps.read_source_offsets().offsets if moved else {}
        logs = {tp: known[tp].target_log for tp in moved if tp in known}
        return {tp: SourceOffset(tp, offset - 1, target_log=logs.get(tp)) for tp, offset in moved.items()}

    def _restarted(self, tps: list[TopicPartition], moved: dict[TopicPartition, int]) -> tuple[RestartedPartition, ...]:
        found = []
        for tp in tps:
            position, reached = moved.get(tp), self._status.partitions.next_offset_of(tp)
            skipped = position - reached if position is not None and reached is not None else None
            found.append(RestartedPartition(tp, position, skipped))
        log.info("%s: %s restarted on request", self._flow, counted(len(tps), "partition"), extra=self._about())
        moved_ones = [
            (each.tp, each.position, each.skipped) for each in found if each.position is not None and each.skipped
        ]
        for tp, position, skipped in moved_ones[:_MOST_LOGGED]:
            first, last = sorted((position, position - skipped))
            what = "left out" if skipped > 0 else "copied again"
            about = {**self._about(), "topic": tp.topic, "partition": tp.partition}
            text = f"{tp}: offsets {first} to {last - 1} ({last - first}) are {what} on request"
            log.warning("%s %s", self._flow, text, extra=about)
        if len(moved_ones) > _MOST_LOGGED:
            out = sum(max(0, skipped) for _tp, _position, skipped in moved_ones)
            again = sum(max(0, -skipped) for _tp, _position, skipped in moved_ones)
            log.warning("%s: in all %d offsets left out, %d copied again", self._flow, out, again, extra=self._about())
        return tuple(found)

    def _write_moves(self, tasks: Iterable[FlowTask]) -> None:
        """Write the source offsets that a user has moved, of tasks that do not run."""
        moves = [move for task in tasks if task.running is None for move in task.moves.values()]
        if moves:
            self._steps.write_source_offsets(moves)

    def keep_moves(self) -> None:
        """Write what a user has moved and no task has committed, before the flow ends."""
        self._keep_moves(self.tasks)

    def _keep_moves(self, tasks: Iterable[FlowTask]) -> None:
        try:
            self._write_moves(tasks)
        except HeliographError as error:
            log.error(
                "%s: the source offsets of a restart on request were not written: %s",
                self._flow,
                error,
                extra=self._about(),
            )

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
        return ()

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

    def stop_all(self) -> None:
        """Ask every running task to flush, commit and end."""
        for task in self.tasks:
            if task.running is not None:
                self._engine.stop(task.running, "heliograph is stopping")

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

    # --- events -------------------------------------------------------------------------------------------------------

    def task_reported(self, spec: TaskSpec, report: TaskReport) -> None:
        """Take a report; one of a run that has ended changes nothing but the log."""
        task = self.tasks.of_run(spec)
        self._log_events(task, report)
        self._log_new_failures()
        if task is not None:
            self._take(task, spec, report)
            task.reported()

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
        task.running = None
        self._status.task_ended(end.spec.task_id, tuple(task.tps), end.spec.attempt)
        if is_stopping or (self._once and end.error is None):
            task.finish()
            if is_stopping:
                self._status.partitions.hold(task.tps, note("the flow has stopped"))
            if end.error is not None:
                log.error(
                    "%s: task %d did not stop cleanly: %s",
                    self._flow,
                    task.number,
                    end.error,
                    extra=self._about(task),
                )
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

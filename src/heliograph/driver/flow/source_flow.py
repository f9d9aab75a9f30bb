"""The source connector of one flow: its thread and its queue of events.

`SourceFlow` waits for its clusters, begins, and then handles events and runs due steps until it is stopped. `FlowSteps`
keeps topics, configs and ACLs in sync, `TaskSupervisor` the tasks. Both are used only in the flow's thread: reports and
ends of tasks, restarts and new configurations arrive through the queue.

A flow that cannot begin is FAILED. With `keeps_trying` it is tried again with back-off; without, its caller does that.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.driver.clusters.cluster_clients import TargetClients, make_admin
from heliograph.driver.flow.flow_life_cycle import FlowLifeCycle, FlowPhase
from heliograph.driver.flow.flow_status import FlowStatus, SourceStep
from heliograph.driver.flow.flow_steps import FlowSteps
from heliograph.driver.flow.log_end_watch import LogEndWatch
from heliograph.driver.flow.pending_reports import PendingReports
from heliograph.driver.flow.task_supervisor import Suspension, TaskLauncher, TaskSupervisor
from heliograph.driver.losses.loss_log import LossLog
from heliograph.driver.spark.spark_engine import TaskEnd
from heliograph.driver.steps.issues import Change
from heliograph.driver.steps.restart_policy import NO_RESTARTS, RestartLimits, keep_trying
from heliograph.driver.steps.step_runner import ControlLoop
from heliograph.errors import ClusterError, ConnectError, EngineError, HeliographError
from heliograph.mirror.policy.change_rules import ChangeRules
from heliograph.mirror.topics.topic_rules import topic_rules
from heliograph.status.losses import Loss, LossCause

if TYPE_CHECKING:
    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.flow.tasks.flow_task import TaskState
    from heliograph.driver.spark.spark_engine import LaunchOptions, SparkEngine
    from heliograph.executor.contract.task_report import TaskReport
    from heliograph.executor.contract.task_spec import TaskSpec
    from heliograph.model import Flow, RestartedPartition, RestartRequest
    from heliograph.status.flow_snapshot import FlowSnapshot
    from heliograph.wire.records.connect_status import State


log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 40.0
_LOSSES_TIMEOUT_S = 10.0
_TASKS_INTERVAL_S = 5.0
_TASKS = "tasks"
_ANSWER_TIMEOUT_S = 60.0
_CONFLICT = 409
_NOT_RUNNING = "The flow {flow} cannot restart partitions now: it has not begun, or it waits for a cluster, or it ends"
_CONNECTOR_STATES: dict[str, State] = {"STARTING": "UNASSIGNED", "RUNNING": "RUNNING", "FAILED": "FAILED"}


@dataclass(frozen=True, slots=True)
class TaskReported:
    """A run of a task has reported; `PendingReports` has the report."""

    spec: TaskSpec


@dataclass(frozen=True, slots=True)
class RestartTask:
    """A user wants a task restarted."""

    number: int


@dataclass(frozen=True, slots=True)
class RestartPartitions:
    """A user wants partitions restarted, and waits for the answer."""

    request: RestartRequest
    answer: Future[tuple[RestartedPartition, ...]]


@dataclass(frozen=True, slots=True)
class SetSuspended:
    """A user wants the tasks stopped, or running again (None)."""

    state: Suspension | None


@dataclass(frozen=True, slots=True)
class RunStepsNow:
    """A user wants every step run now."""


@dataclass(frozen=True, slots=True)
class AdoptConfig:
    """The flow's configuration has changed."""

    config: MirrorConfig


@dataclass(frozen=True, slots=True)
class Stop:
    """The flow is to stop."""


Event = TaskReported | TaskEnd | RestartTask | RestartPartitions | SetSuspended | RunStepsNow | AdoptConfig | Stop


class SourceFlow:
    """Replicates one flow until stopped, or once. Its methods may be called from any thread."""

    def __init__(
        self,
        config: MirrorConfig,
        flow: Flow,
        engine: SparkEngine,
        *,
        flow_count: int,
        once: bool = False,
        keeps_trying: bool = False,
        launch: LaunchOptions | None = None,
        status: FlowStatus | None = None,
    ) -> None:
        self.flow = flow
        self.status = status or FlowStatus(flow)
        self.life = FlowLifeCycle(self.status)
        self.wanted_suspension: Suspension | None = None  # the tasks follow
        self._flow_count, self._once = flow_count, once
        self._drains = True
        settings = config.settings(flow)
        self._begin_limits = RestartLimits.of(settings) if keeps_trying else NO_RESTARTS
        self._connect_timeout_s = settings[keys.CONNECT_TIMEOUT_MS] / 1000
        self._source = make_admin(config, flow.source, flow)
        self._written = TargetClients(config, flow)
        self._steps = FlowSteps(config, self._source, self._written, self.status, once=once)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._reports = PendingReports()
        self._supervisor = TaskSupervisor(
            config,
            self._steps,
            self.status,
            TaskLauncher(engine, launch, self._put_report, self._events.put),
            flow_count=flow_count,
            once=once,
        )
        self._written_before = self.status.sums.records_by_topic()
        self._losses = LossLog(config, flow)
        self._loss_loop = ControlLoop(f"{flow} losses", self._losses, self.status)
        self._log_ends = ControlLoop(f"{flow} log ends", LogEndWatch(config, flow, self.status), self.status)
        self._thread = threading.Thread(target=self._run, name=f"flow-{config.label(flow)}", daemon=True)

    def continue_from(self, last_run: SourceFlow) -> None:
        """Begin, when started, with what the last run of this flow has left: losses to write, and a user's request."""
        self.wanted_suspension = self._supervisor.suspended_as = last_run.wanted_suspension
        self._losses.add(last_run.unwritten_losses)

    def start(self) -> None:
        """Start the flow's thread."""
        self._losses.show(self.status.losses[::-1], self.status.loss_totals)
        self._thread.start()
        self._loss_loop.start()
        if not self._once:
            self._log_ends.start()

    def stop(self, *, drains: bool = True) -> None:
        """Ask the flow to flush, commit and end; without draining, its tasks end at once."""
        self.life.stop()
        if not drains:
            self._drains = False
            self._supervisor.stop_all(drains=False)  # here: the flow's thread may wait for a cluster
        self._log_ends.stop()
        if self.life.is_abandoned:  # its thread may wait for a cluster long after the next run of this flow has begun
            self._loss_loop.stop()
        self._events.put(Stop())

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; return whether it has come. A flow that only waits for its clusters ends when stopped."""
        if self.life.is_abandoned:
            return True
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def restart_task(self, number: int) -> None:
        """End a task and start it again; it first commits what it has written."""
        self._events.put(RestartTask(number))

    def restart_partitions(self, request: RestartRequest) -> tuple[RestartedPartition, ...]:
        """Restart partitions; return them. Raises ConnectError if that is not possible, or not now."""
        answer: Future[tuple[RestartedPartition, ...]] = Future()
        if not self.life.is_running:
            raise ConnectError(_CONFLICT, _NOT_RUNNING.format(flow=self.flow))
        self._events.put(RestartPartitions(request, answer))
        try:
            return answer.result(_ANSWER_TIMEOUT_S)
        except TimeoutError:
            if not answer.cancel():
                return answer.result()
            raise ConnectError(_CONFLICT, _NOT_RUNNING.format(flow=self.flow)) from None

    def set_suspended(self, state: Suspension | None) -> None:
        """Stop the tasks, shown as this state, or start them again (None); the next run continues with it."""
        self.wanted_suspension = state
        self._events.put(SetSuspended(state))

    @property
    def unwritten_losses(self) -> tuple[Loss, ...]:
        """The losses that are not recorded on the target yet."""
        return self._losses.waiting

    @property
    def is_suspended(self) -> bool:
        """Return whether the tasks were stopped on request, and all have ended."""
        return self._supervisor.suspended_as is not None and not self._supervisor.tasks.are_running

    def look_again(self) -> None:
        """Run every step of the flow now: refresh topics, compare configs and ACLs. Tasks continue."""
        self._events.put(RunStepsNow())

    def adopt(self, config: MirrorConfig) -> None:
        """Continue with another configuration; it may differ only in keys that no running task depends on."""
        topic_rules(config, self.flow)  # an unusable configuration raises here, not in the flow's thread
        ChangeRules.of(config.settings(self.flow))
        self._events.put(AdoptConfig(config))

    @property
    def error(self) -> HeliographError | None:
        """The reason why the flow cannot begin, or has failed for good."""
        return self.life.error

    @property
    def has_begun(self) -> bool:
        """Return whether the flow knows its topics and tasks, or has failed to learn them."""
        return self.status.state != "STARTING"

    @property
    def task_states(self) -> tuple[TaskState, ...]:
        """The states of the flow's tasks; a connector that is stopped has none."""
        match self._supervisor.suspended_as:
            case "STOPPED":
                return ()
            case "PAUSED":
                return tuple(task._replace(state="PAUSED", trace=None) for task in self._supervisor.states)
        return self._supervisor.states

    @property
    def connector_state(self) -> tuple[State, str | None]:
        """The state of the connector itself and its trace; its tasks have their own.

        Java's MM2 is RUNNING while it may not even list its topics, and only its log says so. Here a connector without
        tasks whose topics step fails is FAILED; any other issue is a trace beside RUNNING.
        """
        if self.error is not None:
            return "FAILED", str(self.error)
        if self._supervisor.suspended_as is not None:
            return self._supervisor.suspended_as, None
        state = _CONNECTOR_STATES.get(self.status.state, "STOPPED")
        issues = self.status.issues
        trace = "\n".join(issue for step in SourceStep for issue in issues.get(step, ())) or None
        if state == "RUNNING" and SourceStep.TOPICS in issues and not self.task_states:
            return "FAILED", trace
        return state, trace

    def snapshot(self, name: str, connector: str) -> FlowSnapshot:
        """Return the flow at this moment, under its name in REST and the name of its connector."""
        suspended_as = None if self.error is not None else self._supervisor.suspended_as
        shared = self.status.shared_snapshot(name, connector, lambda: self.task_states, suspended_as)
        return replace(
            shared,
            losses=self._losses.newest_first,
            loss_totals=self._losses.totals,
            tasks_changed=self._supervisor.rebalancing.scaled,
        )

    @property
    def written(self) -> dict[str, int]:
        """Records written by all runs of the flow, by remote topic."""
        remote = self._steps.replicated.remote_topics
        return {remote[topic]: count for topic, count in self.status.sums.records_by_topic().items() if topic in remote}

    @property
    def written_by_this_run(self) -> dict[str, int]:
        """Records written by this run alone, by remote topic."""
        remote = self._steps.replicated.remote_topics
        before = {remote[topic]: count for topic, count in self._written_before.items() if topic in remote}
        return {topic: count - before.get(topic, 0) for topic, count in self.written.items()}

    # --- the flow's thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            keep_trying(self._reach_and_begin, self._begin_limits, self.life.stopping, self._cannot_begin)
            if not self.life.is_abandoned:
                while not self._is_over:
                    self._handle_next()
                self._end()
        except HeliographError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001  (the boundary of a flow: its failure must be reported)
            log.debug("%s", trace_of(error))
            self._fail(EngineError(unexpected(error)))
        finally:
            self._log_ends.stop()
            self._loss_loop.stop()
            if self._losses.has_waiting and not self._loss_loop.join(_LOSSES_TIMEOUT_S):
                log.error("%s: losses are not recorded: '%s' does not answer.", self.flow, self.flow.target)
            if not self.life.is_abandoned:  # the next run may have begun
                self.status.losses, self.status.loss_totals = self._losses.newest_first, self._losses.totals
            self._source.close()
            self._written.close()

    def _reach_and_begin(self) -> None:
        for client in (self._source, *self._written.clients):
            client.wait_until_reachable(self._connect_timeout_s)
        if not self.life.begin():
            return
        self._steps.begin()
        self._supervisor.assign()
        self._steps.plan(self._refresh)
        self._plan_task_checks()
        self.life.error = None
        self.status.note(SourceStep.START, ())
        self.life.enter(FlowPhase.RUNNING)

    def _cannot_begin(self, error: ClusterError) -> None:
        if self.life.cannot_begin(error):
            self._supervisor.tasks.clear()  # none was started: that is the last thing a beginning does
            self._note_failure(error, "cannot begin")

    def _plan_task_checks(self) -> None:
        if not self._once:
            self._steps.runner.repeat_later(_TASKS, self._supervisor.look_after, _TASKS_INTERVAL_S)

    def _refresh(self) -> tuple[str, ...]:
        issues = self._steps.refresh_topics()
        self._supervisor.assign_if_changed()
        return issues

    @property
    def _is_over(self) -> bool:
        return self.life.stopping.is_set() or (self._once and self._supervisor.tasks.are_over)

    def _handle_next(self) -> None:
        """Wait for an event or a due step, handle all events that have arrived, then run what is due."""
        due = [at for at in (self._steps.runner.schedule.next_at, self._supervisor.next_at) if at is not None]
        timeout_s = max(0.0, min(due) - time.monotonic()) if due else None
        with suppress(queue.Empty):
            self._handle(self._events.get(timeout=timeout_s))
            for _event in range(self._events.qsize()):  # later ones must delay neither steps nor a stop
                self._handle(self._events.get_nowait())
        if not self.life.stopping.is_set():
            if self._supervisor.is_settling_due:
                self._steps.runner.attempt(SourceStep.RESTARTS, self._supervisor.settle)
            if self._supervisor.tasks.due:
                self._steps.runner.attempt(SourceStep.RESTARTS, self._supervisor.start_due)
            self._steps.runner.run_due()
            self._supervisor.divide_limit()

    def _handle(self, event: Event) -> None:
        is_stopping = self.life.stopping.is_set()
        match event:
            case TaskReported(spec):
                report = self._reports.take(spec)
                self._hasten_topics(report)
                self._supervisor.task_reported(spec, report)
            case TaskEnd():
                if event.report is not None:
                    self._losses.add(event.report.losses)
                    self._hasten_topics(event.report)
                self._supervisor.task_ended(event, is_stopping=is_stopping)
            case RestartTask(number) if not is_stopping:
                self._supervisor.restart(number)
            case RestartPartitions(request, answer) if not is_stopping and answer.set_running_or_notify_cancel():
                self._restart_partitions(request, answer)
            case SetSuspended(None) if not is_stopping:
                self._supervisor.resume()
            case SetSuspended(str() as state) if not is_stopping:
                self._supervisor.suspend(state)
            case RunStepsNow() if not is_stopping:
                self._steps.runner.schedule.hasten_all()
            case AdoptConfig(config) if not is_stopping:
                self._supervisor.adopt(config)
                self._steps.adopt(config, self._refresh)
                self._plan_task_checks()

    def _restart_partitions(self, request: RestartRequest, answer: Future[tuple[RestartedPartition, ...]]) -> None:
        try:
            restarted = self._supervisor.restart_partitions(request)
        except HeliographError as error:
            answer.set_exception(error)
            return
        at_ms = int(time.time() * 1000)
        left_out = [(each.tp, *each.left_out) for each in restarted if each.left_out is not None]
        # Offsets without a record are among them.
        self._losses.add(
            Loss(at_ms, self.flow, *tp, first, last, last - first + 1, LossCause.LEFT_OUT, is_exact=False)
            for tp, first, last in left_out
        )
        answer.set_result(restarted)

    def _hasten_topics(self, report: TaskReport) -> None:
        if any(loss.cause is LossCause.TARGET_DELETED for loss in report.losses) and not self._once:
            self._steps.runner.schedule.hasten(SourceStep.TOPICS, 0.0)  # the refresh creates the topic again

    def _put_report(self, spec: TaskSpec, report: TaskReport) -> None:
        """Take a report on a lease thread; the flow's thread may be busy with a cluster that does not answer."""
        self._losses.add(report.losses)  # before the answer: the task then commits what follows from them
        self.status.take(spec.task_id, report, spec.attempt)
        if self._reports.put(spec, report):
            self._events.put(TaskReported(spec))

    # --- the end ------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        is_stopped = self.life.stopping.is_set()
        self.life.enter(FlowPhase.STOPPING)
        self._end_tasks()
        if self.status.failures or self._supervisor.tasks.any_given_up:
            self.life.enter(FlowPhase.FAILED)
        else:
            self.life.enter(FlowPhase.STOPPED if is_stopped or not self._once else FlowPhase.DONE)

    def _fail(self, error: HeliographError) -> None:
        if self.life.fail(error):
            self._note_failure(error, "failed")
            self._end_tasks()  # the next run of this flow must not meet them

    def _note_failure(self, error: HeliographError, what: str) -> None:
        """Log why this flow does not run if others do; otherwise its caller does."""
        if self.status.note(SourceStep.START, (str(error),)) is Change.NEW and self._flow_count > 1:
            log.error("%s: %s: %s", self.flow, what, error, extra={"flow": str(self.flow)})

    def _end_tasks(self) -> None:
        self.life.stopping.set()
        self._supervisor.stop_all(drains=self._drains)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while self._supervisor.tasks.are_running:
            try:
                event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                log.error(
                    "%s: a task did not stop; what it did not commit may be copied again.",
                    self.flow,
                    extra={"flow": str(self.flow)},
                )
                break
            self._handle(event)
        self._supervisor.keep_moves()

"""The loop of one flow's source connector: keep its topics in step, its tasks running, its status told.

One thread per flow. Tasks run elsewhere and speak through a queue: an ended task is started again with back-off, from
the offsets committed on the target. A new topic or partition is given to a running task; the others notice nothing.
A flow that cannot begin is FAILED, and tried again with back-off where nobody else does it. What others want of the
flow while it runs comes through the same queue.

Invariant: a partition is in at most one running task, and a task is started again only after its predecessor has ended.


What a source connector tells of itself: the steps of its loop by name, and its state in Connect's words.

Java's MM2 is RUNNING while it may not even see its topics, and says so in a log alone. Here a connector that has
nothing to copy because its topics are in trouble is FAILED; any other trouble stands as a trace beside RUNNING.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.driver.clusters.cluster_clients import TargetClients, fetch_limits, make_admin
from heliograph.driver.clusters.internal_topic_creation import create_offsets_topic, ensure_offset_syncs_topic
from heliograph.driver.flow.acl_sync import AclSync
from heliograph.driver.flow.config_sync import ConfigSync
from heliograph.driver.flow.flow_status import TASK_STEP, FlowStatus, SourceStep, beginning
from heliograph.driver.flow.flow_task import NO_SLOT, FlowTask, TaskState
from heliograph.driver.flow.task_spec_builder import partition_specs, task_spec
from heliograph.driver.flow.topic_sync import Replicated, TopicSync
from heliograph.driver.spark.spark_engine import TaskEnd
from heliograph.driver.steps.issues import Change
from heliograph.driver.steps.restart_policy import NO_RESTARTS, RestartLimits, keep_trying
from heliograph.driver.steps.step_runner import SourceSteps
from heliograph.errors import AuthenticationError, ClusterError, ConfigError, EngineError, FencedError, HeliographError
from heliograph.executor.contract.source_offsets import SourceOffsets, read_source_offsets
from heliograph.kafka.admin.producer_fencing import fence_producers
from heliograph.kafka.request_options import LATEST
from heliograph.mirror.topics.internal_topics import transactional_prefix
from heliograph.mirror.topics.task_assignment import assign, rate_share, task_count
from heliograph.mirror.topics.topic_rules import topic_rules
from heliograph.model import TopicPartition, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.spark.spark_engine import SparkEngine
    from heliograph.executor.contract.task_report import TaskReport
    from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
    from heliograph.model import Flow
    from heliograph.wire.records.connect_status import State


log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 40.0
_DAY_S = 86_400.0
_TASKS_INTERVAL_S = 5.0


class SourceFlow:
    """Replicates one flow until stopped, or once."""

    def __init__(
        self,
        config: MirrorConfig,
        flow: Flow,
        engine: SparkEngine,
        *,
        flow_count: int,
        once: bool = False,
        keeps_trying: bool = False,
    ) -> None:
        self.flow = flow
        self.status = FlowStatus(flow)
        self.error: HeliographError | None = None
        self._engine, self._flow_count = engine, flow_count
        self._once, self._keeps_trying = once, keeps_trying
        self._source = make_admin(config, flow.source, flow)
        self._written = TargetClients(config, flow)
        self._target = self._written.target
        self._steps = SourceSteps(self.status, once=once)
        self._configure(config)
        self._events: queue.SimpleQueue[TaskEnd | Callable[[], None] | None] = queue.SimpleQueue()
        self._tasks: list[FlowTask] = []
        self._replicated = Replicated((), {})
        self._stop_offsets: dict[TopicPartition, int] = {}
        self._has_touched, self._stopping, self._beginning = False, threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"flow-{config.label(flow)}", daemon=True)

    def _configure(self, config: MirrorConfig) -> None:
        flow = self.flow
        self._config = config
        self._connector = config.source_connector(flow)
        self._settings = config.settings(flow)
        self._limits = RestartLimits.of(self._settings)
        self._steps.try_again_s = self._limits.try_again_s
        self._consumer = config.client(flow.source, "consumer", flow)
        self._rules = topic_rules(config, flow)
        self._topics = TopicSync(self._settings, self._rules, self._source, self._target)
        # A producer's cluster that is not the one we administer needs the remote topics too.
        self._record_topics = (
            None
            if self._written.records is self._target
            else TopicSync(self._settings, self._rules, self._source, self._written.records)
        )

    def start(self) -> None:
        """Begin, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the flow to flush, commit and end."""
        with self._beginning:
            self._stopping.set()
            if not self._has_touched:
                self.status.state = "STOPPED"
        self._events.put(None)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; False where it has not come. It has where a flow only waits for its clusters."""
        with self._beginning:
            if self._stopping.is_set() and not self._has_touched:
                return True
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def has_begun(self) -> bool:
        """Whether the flow knows its topics and tasks."""
        return self.status.state != "STARTING"

    @property
    def task_states(self) -> tuple[TaskState, ...]:
        """The tasks there are, as of now; may be asked from any thread."""
        failures, issue = self.status.failures_of, self.status.issue_of
        return tuple(task.state(failures(task.tps), issue(task.task_id)) for task in list(self._tasks))

    @property
    def written(self) -> dict[str, int]:
        """Records written since the start, by remote topic."""
        remote = self._replicated.remote_topics
        return {remote[topic]: count for topic, count in self.status.records_by_topic().items() if topic in remote}

    def restart_task(self, number: int) -> None:
        """End a task and start it again; what it has written is committed first."""
        self._events.put(lambda: self._restart_by_hand(number))

    def look_again(self) -> None:
        """Do every step of the flow now: look for topics, compare configs and ACLs. Tasks go on."""
        self._events.put(self._steps.schedule.hasten_all)

    def adopt(self, config: MirrorConfig) -> None:
        """Go on with another configuration; it may differ only in what no running task depends on (`live_keys`)."""
        topic_rules(config, self.flow)  # what cannot be used is raised here, not in the loop
        self._events.put(lambda: self._adopt(config))

    def _adopt(self, config: MirrorConfig) -> None:
        self._configure(config)
        for task in self._tasks:
            task.limit(self._limits)
        self._steps.schedule.clear()
        self._plan_repeated_steps()
        self._steps.attempt(SourceStep.TOPICS, self._refresh)

    def _restart_by_hand(self, number: int) -> None:
        for task in self._tasks[number : number + 1]:
            task.restart_by_hand()
            self._stop_for_restart(task)

    def _stop_for_restart(self, task: FlowTask) -> None:
        if task.running is not None:
            self._engine.stop(task.running, "it is restarted")

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            limits = self._limits if self._keeps_trying else NO_RESTARTS
            keep_trying(self._reach_and_begin, limits, self._stopping, self._cannot_begin)
            while not self._is_over():
                self._wait_and_serve()
            self._end()
        except HeliographError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001  (the boundary of a flow: it must not vanish without a word)
            log.debug("%s", trace_of(error))
            self._fail(EngineError(unexpected(error)))
        finally:
            self._source.close()
            self._written.close()

    def _reach_and_begin(self) -> None:
        self._reach_clusters()
        with self._beginning:
            if self._stopping.is_set():
                return
            self._has_touched = True
        self._begin()

    def _cannot_begin(self, error: ClusterError) -> None:
        with self._beginning:
            if self._stopping.is_set():
                return
            self._has_touched = False  # nothing runs: whoever stops the flow need not wait for its next try
            self.error, self.status.state = error, "FAILED"
            self._tasks = []  # none of them was started: that is the last thing a beginning does
        self._tell_others(error, "cannot begin")

    def _tell_others(self, error: HeliographError, what: str) -> None:
        """Where other flows go on the log says why this one does not; else whoever started it does."""
        if self.status.note_control(SourceStep.START, (str(error),)) is Change.NEWS and self._flow_count > 1:
            log.error("%s: %s: %s", self.flow, what, error)

    def _reach_clusters(self) -> None:
        for client in (self._source, *self._written.clients):
            client.wait_until_reachable(self._settings[keys.CONNECT_TIMEOUT_MS] / 1000)

    def _begin(self) -> None:
        self._offsets_topic = create_offsets_topic(self._written.source_offsets, self._settings)
        # Copying goes on without syncs; the tasks say what they cannot write.
        if self._settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
            self._steps.attempt(SourceStep.SYNCS, self._ensure_offset_syncs_topic)
        if self._settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled":
            fence_producers(self._written.records, transactional_prefix(self._settings, self._connector))
        self._replicated = self._sync_topics()
        self._steps.report(SourceStep.TOPICS, self._replicated.issues)
        if self._once:
            isolation_level = fetch_limits(self._consumer, self._settings).isolation_level
            self._stop_offsets = self._source.list_offsets([*self._replicated.partitions], LATEST, isolation_level)
        if not self._replicated.partitions:
            log.warning("%s: no topic on '%s' matches; nothing to copy yet.", self.flow, self.flow.source)
        self._assign()
        self._plan_repeated_steps()
        self.error = None
        self.status.note_control(SourceStep.START, ())
        self.status.state = "RUNNING"

    def _ensure_offset_syncs_topic(self) -> tuple[str, ...]:
        is_at_source = self._settings[keys.OFFSET_SYNCS_LOCATION] == "source"
        ensure_offset_syncs_topic(self._source if is_at_source else self._target, self._settings)
        return ()

    def _plan_repeated_steps(self) -> None:
        settings, clusters, schedule = self._settings, (self._source, self._target), self._steps.schedule
        if settings[keys.SYNC_TOPIC_ACLS_ENABLED]:
            acls = AclSync(self._rules, *clusters)
            schedule.repeat(SourceStep.ACLS, acls.sync, settings[keys.SYNC_TOPIC_ACLS_INTERVAL_SECONDS])
        if settings[keys.SYNC_TOPIC_CONFIGS_ENABLED]:
            configs = ConfigSync(self._rules, *clusters)
            schedule.repeat(SourceStep.CONFIGS, configs.sync, settings[keys.SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS])
        if settings[keys.REFRESH_TOPICS_ENABLED] and not self._once:
            self._steps.repeat(SourceStep.TOPICS, self._refresh, settings[keys.REFRESH_TOPICS_INTERVAL_SECONDS])
        if settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
            self._steps.repeat(SourceStep.SYNCS, self._ensure_offset_syncs_topic, _DAY_S)
        if not self._once:
            self._steps.repeat("tasks", self._look_after_tasks, _TASKS_INTERVAL_S)

    def _is_over(self) -> bool:
        return self._stopping.is_set() or (self._once and all(task.is_done or task.is_given_up for task in self._tasks))

    def _wait_and_serve(self) -> None:
        due = [
            at for at in (self._steps.schedule.next_at, *(task.restart_at for task in self._tasks)) if at is not None
        ]
        timeout_s = max(0.0, min(due) - time.monotonic()) if due else None
        with suppress(queue.Empty):
            self._serve(self._events.get(timeout=timeout_s))
        if not self._stopping.is_set():
            if any(task.is_due for task in self._tasks):
                self._steps.attempt(SourceStep.RESTARTS, self._restart_due_tasks)
            self._steps.do_due()
            self._share_limit()

    def _serve(self, event: TaskEnd | Callable[[], None] | None) -> None:
        if isinstance(event, TaskEnd):
            self._task_ended(event)
        elif event is not None and not self._stopping.is_set():
            event()

    def _sync_topics(self) -> Replicated:
        replicated = self._topics.sync()
        if self._record_topics is None:
            return replicated
        written = self._record_topics.sync()
        return replace(written, issues=(*replicated.issues, *written.issues))

    def _refresh(self) -> tuple[str, ...]:
        self._replicated = self._sync_topics()
        self.status.copies(self._replicated.partitions)
        assigned = frozenset[TopicPartition]().union(*(task.tps for task in self._tasks))
        if assigned != frozenset(self._replicated.partitions):  # also where the last assignment did not come to its end
            self._assign()
        return self._replicated.issues

    # --- tasks --------------------------------------------------------------------------------------------------------

    def _assign(self) -> None:
        """Give every partition to a task; start tasks that are new, tell those whose share has changed."""
        if not self._replicated.partitions and not self._tasks:
            return
        tasks_max = self._settings[keys.TASKS_MAX]
        count, slots = task_count(
            partitions=len(self._replicated.partitions),
            tasks_max=tasks_max,
            slots=self._engine.slots,
            flows=self._flow_count,
            running=len(self._tasks),
        )
        if slots is not None:
            log.info("%s: tasks.max=%d, but Spark has %s for this flow", self.flow, tasks_max, counted(slots, "slot"))
        shares = assign(self._replicated.partitions, count, [task.tps | task.departed for task in self._tasks])
        self._tasks += [FlowTask.new(number, self._limits) for number in range(len(self._tasks), count)]
        changed = [task for task in self._tasks if task.tps != shares[task.number]]
        source_offsets = self._source_offsets() if changed else SourceOffsets({}, frozenset())
        for task in changed:
            if task.take_over(shares[task.number]):
                self._stop_for_restart(task)
            elif task.running is not None:
                self._engine.assign(task.running, self._partition_specs(task, source_offsets))
            elif task.restart_at is None and not task.is_given_up:
                self._start(task, source_offsets)

    def _start(self, task: FlowTask, source_offsets: SourceOffsets) -> None:
        task.begin()
        self.status.note_control(f"{TASK_STEP}{task.number}", ())
        self.status.forget_failures(task.tps)
        partitions = self._partition_specs(task, source_offsets)
        try:  # secrets are resolved here, at each start
            spec = task_spec(self._config, self.flow, task.number, partitions, self._offsets_topic, len(self._tasks))
        except ConfigError as error:
            self._failed(task, str(error))
            return
        task.running = self._engine.start(spec, self._on_report, self._events.put)

    def _share_limit(self) -> None:
        """Divide the flow's limit among the tasks that copy; each began with as little as if all did."""
        copying = [task.running for task in self._tasks if task.running is not None and task.tps]
        for running in copying:
            share = rate_share(self._settings[keys.THROTTLE_BYTES_PER_SECOND], len(copying))
            self._engine.share(running, share)

    def _restart_due_tasks(self) -> tuple[str, ...]:
        due = [task for task in self._tasks if task.is_due]
        try:
            source_offsets = self._source_offsets()
        except AuthenticationError as error:  # it will not pass by itself at once, as a broker's absence may
            for task in due:
                self._failed(task, str(error))
            return ()
        except ClusterError:
            for task in due:
                task.restart_at = time.monotonic() + self._limits.try_again_s
            raise
        for task in due:
            self._start(task, source_offsets)
        return ()

    def _look_after_tasks(self) -> tuple[str, ...]:
        for task in self._tasks:
            if task.running:
                self._engine.take_back_if_lost(task.running)
            if task.waits_for_slot_is_news():
                log.warning("%s: task %d: %s", self.flow, task.number, NO_SLOT)
            if task.is_due_for_failed_partitions(self.status.failures_of(task.tps)):
                log.info("%s: task %d is restarted to try its failed partitions again", self.flow, task.number)
                task.ask_to_restart()
                self._stop_for_restart(task)
        return ()

    def _on_report(self, spec: TaskSpec, report: TaskReport) -> None:
        if self.status.take(spec.task_id, report):
            self._events.put(self._steps.hasten_failing)
        for task in self._tasks:
            running = task.running  # another thread may take it away
            if running is not None and (running.spec.task_id, running.spec.attempt) == (spec.task_id, spec.attempt):
                task.reported()
                self._tell_beginning(task, spec, report)
        for event in report.events:
            log.log(event.severity, "%s", event)

    def _tell_beginning(self, task: FlowTask, spec: TaskSpec, report: TaskReport) -> None:
        """Once for each start, as soon as the task knows where its partitions go on."""
        if report.partitions and not task.is_beginning_told:
            task.is_beginning_told = True
            words = beginning(spec.partitions, report.partitions)
            log.info("%s: task %d %s", self._config.label(self.flow), task.number, words)

    def _task_ended(self, end: TaskEnd) -> None:
        task = next(t for t in self._tasks if t.running is not None and t.running.spec.task_id == end.spec.task_id)
        task.running = None
        if end.report is not None:
            self._on_report(end.spec, end.report)
            self._tell_beginning(task, end.spec, end.report)
        self.status.task_ended(end.spec.task_id, tuple(task.tps))
        if self._once and end.report is not None:  # nobody looks at what still troubles it later
            self._steps.report(f"{TASK_STEP}{task.number}", end.report.issue)
        if self._stopping.is_set() or (self._once and end.error is None):
            task.is_done = True
            if end.error is not None:
                log.error("%s: task %d did not stop cleanly: %s", self.flow, task.number, end.error)
            return
        if end.is_fenced:
            raise FencedError(f"task {task.number}: {end.error}")
        if task.is_asked_to_restart and end.error is None:
            task.ended_as_asked()
            return
        if end.trace:
            log.debug("%s", end.trace)
        self._failed(task, end.error or "it ended without being asked to.")

    def _failed(self, task: FlowTask, reason: str) -> None:
        pause_s = task.failed(reason)
        if pause_s is not None:
            log.error("%s: task %d failed: %s Starting it again in %.1f s.", self.flow, task.number, reason, pause_s)
            return
        limit = f"{keys.RESTART_ATTEMPTS_MAX.name} is {self._limits.attempts_max}"
        words = f"task {task.number} failed: {reason} It is not started again, {limit}."
        log.error("%s: %s", self.flow, words)
        self.status.note_control(f"{TASK_STEP}{task.number}", (words,))

    def _source_offsets(self) -> SourceOffsets:
        return read_source_offsets(
            self._written.source_offsets, self._offsets_topic.name, self._connector, self.flow.source
        )

    def _partition_specs(self, task: FlowTask, source_offsets: SourceOffsets) -> tuple[PartitionSpec, ...]:
        return partition_specs(task.tps, self._replicated.remote_topics, source_offsets, self._stop_offsets)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        is_stopped, self.status.state = self._stopping.is_set(), "STOPPING"
        self._end_tasks()
        is_failed = self.status.failures or any(task.is_given_up for task in self._tasks)
        self.status.state = "FAILED" if is_failed else "STOPPED" if is_stopped or not self._once else "DONE"

    def _fail(self, error: HeliographError) -> None:
        self.error, self.status.state = error, "FAILED"
        self._tell_others(error, "failed")
        self._end_tasks()  # whoever starts the flow again must not meet them

    def _end_tasks(self) -> None:
        self._stopping.set()
        for task in self._tasks:
            if task.running is not None:
                self._engine.stop(task.running, "heliograph is stopping")
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while any(task.running for task in self._tasks):
            try:
                end = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                log.error("%s: a task did not stop; what it did not commit may be copied again.", self.flow)
                break
            self._serve(end)


_STATES: dict[str, State] = {"STARTING": "UNASSIGNED", "RUNNING": "RUNNING", "FAILED": "FAILED"}  # else it has ended


def source_state(flow: SourceFlow) -> tuple[State, str | None]:
    """The state of the connector itself, and what troubles it; its tasks have their own."""
    if flow.error is not None:
        return "FAILED", str(flow.error)
    state = _STATES.get(flow.status.state, "STOPPED")
    reported = flow.status.control_issues
    trace = "\n".join(words for step in SourceStep for words in reported.get(step, ())) or None
    if state == "RUNNING" and SourceStep.TOPICS in reported and not flow.task_states:
        return "FAILED", trace
    return state, trace

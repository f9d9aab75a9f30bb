"""The loop of one flow's source connector: keep its topics in step, its tasks running, its status told.

One thread per flow. Tasks run elsewhere and speak through a queue: an ended task is started again with back-off, from
the offsets committed on the target. A new topic or partition is given to a running task; the others notice nothing.

Invariant: a partition is in at most one running task, and a task is started again only after its predecessor has ended.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import traceback
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import client_keys, keys
from heliograph.engine.offset_store import Progress, read_progress
from heliograph.engine.spec import PartitionSpec, SyncsSpec, TaskSpec
from heliograph.errors import ClusterError, EngineError, FencedError, HeliographError
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.fencing import fence_producers
from heliograph.kafka.log_ends import LATEST
from heliograph.mirror.assignment import assign, task_count
from heliograph.mirror.internal_topics import offset_syncs_topic, transactional_prefix
from heliograph.model import TopicPartition
from heliograph.worker.acl_sync import AclSync
from heliograph.worker.clusters import (
    Written,
    cluster_spec,
    fetch_limits,
    make_admin,
    produce_limits,
    progress_spec,
    records_spec,
)
from heliograph.worker.config_sync import ConfigSync
from heliograph.worker.internal_topics import create_offsets_topic, ensure_internal_topic
from heliograph.worker.rules import topic_rules
from heliograph.worker.schedule import Schedule
from heliograph.worker.status import FlowStatus
from heliograph.worker.topic_sync import Replicated, TopicSync

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.config.mirror_config import MirrorConfig
    from heliograph.engine.engine import RunningTask, SparkEngine, TaskEnd
    from heliograph.engine.report import TaskReport
    from heliograph.model import Flow
    from heliograph.worker.schedule import Step

log = logging.getLogger(__name__)

TOPICS_STEP = "topics"
_STOP_TIMEOUT_S = 40.0
_TRY_AGAIN_S = 30.0


class TaskState(NamedTuple):
    """What a task is doing, in Connect's words, and why it does not run."""

    number: int
    state: str
    trace: str | None
    tps: frozenset[TopicPartition]


@dataclass(slots=True)
class _Task:
    """One slot of the connector: what it copies, and what runs it."""

    number: int
    tps: frozenset[TopicPartition]
    running: RunningTask | None = None
    attempt: int = 0
    started_at: float = 0.0
    restart_at: float | None = None
    is_done: bool = False
    is_asked_to_restart: bool = False
    trace: str | None = None
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.5, most_s=30.0))


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
    ) -> None:
        self.flow = flow
        self.status = FlowStatus(flow)
        self.error: HeliographError | None = None
        self._config = config
        self._settings = config.settings(flow)
        self._connector = config.source_connector(flow)
        self._consumer = config.client(flow.source, "consumer", flow)
        self._is_exactly_once = self._settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled"
        self._transactional_prefix = transactional_prefix(self._settings, self._connector)
        self._engine = engine
        self._flow_count = flow_count
        self._once = once
        self._source = make_admin(config, flow.source, flow)
        self._written = Written(config, flow)
        self._target = self._written.target
        self._rules = topic_rules(config, flow)
        self._topics = TopicSync(self._settings, self._rules, self._source, self._target)
        # A producer's cluster that is not the one we administer needs the remote topics too.
        self._record_topics = (
            None
            if self._written.records is self._target
            else TopicSync(self._settings, self._rules, self._source, self._written.records)
        )
        self._schedule = Schedule()
        self._events: queue.SimpleQueue[TaskEnd | None] = queue.SimpleQueue()
        self._tasks: list[_Task] = []
        self._replicated = Replicated((), {})
        self._stop_offsets: dict[TopicPartition, int] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"flow-{config.label(flow)}", daemon=True)

    def start(self) -> None:
        """Begin, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the flow to flush, commit and end."""
        self._stopping.set()
        self._events.put(None)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; False where it has not come."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def task_states(self) -> tuple[TaskState, ...]:
        """The tasks there are, as of now; may be asked from any thread."""
        failures = self.status.failures_of
        return tuple(self._state_of(task, failures(task.tps)) for task in list(self._tasks))

    @property
    def remote_topics(self) -> tuple[str, ...]:
        """The topics the flow writes to."""
        return tuple(self._replicated.remote_topics.values())

    def restart_task(self, number: int) -> None:
        """End a task and start it again; what it has written is committed first."""
        for task in list(self._tasks):
            if task.number == number and task.running is not None:
                task.is_asked_to_restart = True
                self._engine.stop(task.running, "it is restarted")

    def _state_of(self, task: _Task, failures: list[str]) -> TaskState:
        if task.running is None:
            return TaskState(task.number, "RESTARTING" if task.restart_at else "UNASSIGNED", task.trace, task.tps)
        if failures:
            return TaskState(task.number, "FAILED", "\n".join(failures), task.tps)
        return TaskState(task.number, "RUNNING", None, task.tps)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._begin()
            while not self._is_over():
                self._wait_and_serve()
            self._end()
        except HeliographError as error:
            self.error = error
            self.status.state = "FAILED"
            self._abandon()
        except Exception as error:  # noqa: BLE001  (the boundary of a flow: it must not vanish without a word)
            log.debug("%s", traceback.format_exc())
            self.error = EngineError(f"unexpected {type(error).__name__}: {error}")
            self.status.state = "FAILED"
            self._abandon()
        finally:
            self._source.close()
            self._written.close()

    def _begin(self) -> None:
        timeout_s = self._settings[keys.CONNECT_TIMEOUT_MS] / 1000
        self._source.wait_until_reachable(timeout_s)
        for client in self._written.clients:
            client.wait_until_reachable(timeout_s)
        self._offsets_topic = create_offsets_topic(self._written.progress, self._settings)
        self._syncs = self._ensure_offset_syncs()
        if self._is_exactly_once:
            fence_producers(self._written.records, self._transactional_prefix)
        self._replicated = self._sync_topics()
        self._tell_troubles(TOPICS_STEP, self._replicated.troubles)
        if self._once:
            isolation_level = fetch_limits(self._consumer, self._settings).isolation_level
            self._stop_offsets = self._source.list_offsets([*self._replicated.partitions], LATEST, isolation_level)
        if not self._replicated.partitions:
            log.warning("%s: no topic on '%s' matches; nothing to copy yet.", self.flow, self.flow.source)
        self._assign()
        self.status.state = "RUNNING"
        self._plan_repeated_steps()

    def _plan_repeated_steps(self) -> None:
        settings, clusters = self._settings, (self._source, self._target)
        if settings[keys.SYNC_TOPIC_ACLS_ENABLED]:
            acls = AclSync(self._rules, *clusters)
            self._schedule.repeat("ACLs", acls.sync, settings[keys.SYNC_TOPIC_ACLS_INTERVAL_SECONDS])
        if settings[keys.SYNC_TOPIC_CONFIGS_ENABLED]:
            configs = ConfigSync(self._rules, *clusters)
            self._schedule.repeat("configs", configs.sync, settings[keys.SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS])
        if settings[keys.REFRESH_TOPICS_ENABLED] and not self._once:
            interval_s = settings[keys.REFRESH_TOPICS_INTERVAL_SECONDS]
            self._schedule.repeat(TOPICS_STEP, self._refresh, interval_s, first_in_s=interval_s)

    def _ensure_offset_syncs(self) -> SyncsSpec | None:
        """Where the tasks tell their offset syncs; None where none are wanted."""
        settings = self._settings
        if not settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
            return None
        is_at_source = settings[keys.OFFSET_SYNCS_LOCATION] == "source"
        topic = ensure_internal_topic(
            self._source if is_at_source else self._target,
            offset_syncs_topic(settings),
            is_explicit_factor=keys.OFFSET_SYNCS_REPLICATION_FACTOR in settings,
            factor_key=keys.OFFSET_SYNCS_REPLICATION_FACTOR.name,
        )
        holder = self.flow.source if is_at_source else self.flow.target
        spec = cluster_spec(self._config, holder, "producer", self.flow)
        return SyncsSpec(spec, topic.name, settings[keys.OFFSET_LAG_MAX])

    def _is_over(self) -> bool:
        return self._stopping.is_set() or (self._once and all(task.is_done for task in self._tasks))

    def _wait_and_serve(self) -> None:
        due = [task.restart_at for task in self._tasks if task.restart_at is not None]
        if self._schedule.next_at is not None:
            due.append(self._schedule.next_at)
        timeout_s = max(0.0, min(due) - time.monotonic()) if due else None
        try:
            end = self._events.get(timeout=timeout_s)
        except queue.Empty:
            end = None
        if end is not None:
            self._task_ended(end)
        if not self._stopping.is_set():
            self._try_control("restarts", self._restart_due_tasks)
            for name, step in self._schedule.take_due():
                self._try_control(name, step)

    def _try_control(self, name: str, step: Step) -> None:
        """Do a step; what troubles it is told, and the step comes again: copying goes on meanwhile."""
        try:
            self._tell_troubles(name, step())
        except ClusterError as error:
            self._tell_troubles(name, (str(error),))

    def _tell_troubles(self, step: str, troubles: Iterable[str]) -> None:
        told = tuple(troubles)
        if told:
            self._schedule.hasten(step, _TRY_AGAIN_S)
        if self.status.note_control(step, told):
            for trouble in told:
                log.warning("%s: %s (will be tried again)", self.flow, trouble.rstrip("."))

    def _sync_topics(self) -> Replicated:
        replicated = self._topics.sync()
        if self._record_topics is None:
            return replicated
        written = self._record_topics.sync()
        return replace(written, troubles=(*replicated.troubles, *written.troubles))

    def _refresh(self) -> tuple[str, ...]:
        self._replicated = self._sync_topics()
        assigned = frozenset[TopicPartition]().union(*(task.tps for task in self._tasks))
        if assigned != frozenset(self._replicated.partitions):  # also where the last assignment did not come to its end
            self._assign()
        return self._replicated.troubles

    # --- tasks --------------------------------------------------------------------------------------------------------

    def _assign(self) -> None:
        """Give every partition to a task; start tasks that are new, tell those whose share has changed."""
        if not self._replicated.partitions and not self._tasks:
            return
        share = self._engine.slots // self._flow_count
        if share == 0:
            raise EngineError(
                f"Spark has {self._engine.slots} slot(s) for {self._flow_count} flows; each needs one. Raise --master."
            )
        tasks_max = self._settings[keys.TASKS_MAX]
        if tasks_max > share:
            log.info("%s: tasks.max=%d, but Spark has %d slots for this flow", self.flow, tasks_max, share)
        count = task_count(len(self._replicated.partitions), min(tasks_max, share) if tasks_max else 0, share)
        count = max(count, len(self._tasks))
        shares = assign(self._replicated.partitions, count, [task.tps for task in self._tasks])
        self._tasks += [_Task(number, frozenset()) for number in range(len(self._tasks), count)]
        changed = [task for task in self._tasks if task.tps != shares[task.number]]
        progress = self._progress() if changed else Progress({}, frozenset())
        for task in changed:
            task.tps = shares[task.number]
            if task.running is not None:
                self._engine.assign(task.running, self._partition_specs(task, progress))
            elif task.restart_at is None:
                self._start(task, progress)

    def _start(self, task: _Task, progress: Progress) -> None:
        task.attempt += 1
        task.restart_at = None
        task.started_at = time.monotonic()
        spec = self._task_spec(task, progress)
        log.debug("%s: task %d begins with %d partitions", self.flow, task.number, len(spec.partitions))
        task.running = self._engine.start(spec, self._on_report, self._events.put)

    def _restart_due_tasks(self) -> tuple[str, ...]:
        now = time.monotonic()
        due = [task for task in self._tasks if task.restart_at is not None and task.restart_at <= now]
        if due:
            progress = self._progress()
            for task in due:
                self._start(task, progress)
        return ()

    def _on_report(self, spec: TaskSpec, report: TaskReport) -> None:
        self.status.take(spec.task_id, report)
        for event in report.events:
            log.error("%s", event)

    def _task_ended(self, end: TaskEnd) -> None:
        task = next(t for t in self._tasks if t.running is not None and t.running.spec.task_id == end.spec.task_id)
        task.running = None
        if end.report is not None:
            self._on_report(end.spec, end.report)
        self.status.task_ended(end.spec.task_id, tuple(task.tps))
        if self._stopping.is_set() or (self._once and end.error is None):
            task.is_done = True
            if end.error is not None:
                log.error("%s: task %d did not stop cleanly: %s", self.flow, task.number, end.error)
            return
        if end.is_fenced:
            raise FencedError(f"task {task.number}: {end.error}")
        if task.is_asked_to_restart and end.error is None:
            task.is_asked_to_restart, task.trace, task.restart_at = False, None, time.monotonic()
            return
        if time.monotonic() - task.started_at > task.backoff.most_s:
            task.backoff.reset()
        pause_s = task.backoff.next_pause_s()
        task.restart_at = time.monotonic() + pause_s
        reason = end.error or "it ended without being asked to"
        task.trace = reason
        if end.trace:
            log.debug("%s", end.trace)
        log.error("%s: task %d failed: %s Starting it again in %.1f s.", self.flow, task.number, reason, pause_s)

    def _progress(self) -> Progress:
        return read_progress(self._written.progress, self._offsets_topic.name, self._connector, self.flow.source)

    def _partition_specs(self, task: _Task, progress: Progress) -> tuple[PartitionSpec, ...]:
        return tuple(
            PartitionSpec(
                tp,
                self._replicated.remote_topics[tp.topic],
                progress.offsets.get(tp),
                self._stop_offsets.get(tp) if self._once else None,
                tp in progress.forgotten,
            )
            for tp in sorted(task.tps)
        )

    def _task_spec(self, task: _Task, progress: Progress) -> TaskSpec:
        settings = self._settings
        producer = self._config.records_client(self.flow)
        rate = settings[keys.THROTTLE_BYTES_PER_SECOND]
        return TaskSpec(
            task_id=f"{self._config.label(self.flow)}-{task.number}",
            attempt=task.attempt,
            flow=self.flow,
            source=cluster_spec(self._config, self.flow.source, "consumer", self.flow),
            target=records_spec(self._config, self.flow),
            partitions=self._partition_specs(task, progress),
            connector=self._connector,
            offsets_topic=self._offsets_topic.name,
            offsets_partition_count=self._offsets_topic.partition_count,
            commit_interval_ms=settings[keys.OFFSET_FLUSH_INTERVAL_MS],
            buffer_bytes=settings[keys.TASK_BUFFER_BYTES],
            offset_reset=self._consumer[client_keys.AUTO_OFFSET_RESET],
            limits=fetch_limits(self._consumer, settings),
            produce_limits=produce_limits(producer, settings),
            transactional_id=f"{self._transactional_prefix}{task.number}" if self._is_exactly_once else None,
            transaction_timeout_ms=producer[client_keys.TRANSACTION_TIMEOUT_MS],
            bytes_per_s=max(1, rate // len(self._tasks)) if rate else 0,
            tolerates_too_large=settings[keys.ERRORS_TOLERANCE] == "all",
            on_truncation=settings[keys.ON_TRUNCATION],
            on_recreated=settings[keys.ON_RECREATED],
            syncs=self._syncs,
            progress=progress_spec(self._config, self.flow),
        )

    # --- the end ------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        self.status.state = "STOPPING"
        self._abandon()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while any(task.running for task in self._tasks):
            try:
                end = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                log.error(
                    "%s: a task did not stop within %.0f s; its last offsets may be copied again.",
                    self.flow,
                    _STOP_TIMEOUT_S,
                )
                break
            if end is not None:
                self._task_ended(end)
        self.status.state = "FAILED" if self.status.failures else "DONE" if self._once else "STOPPED"

    def _abandon(self) -> None:
        self._stopping.set()
        for task in self._tasks:
            if task.running is not None:
                self._engine.stop(task.running, "heliograph is stopping")

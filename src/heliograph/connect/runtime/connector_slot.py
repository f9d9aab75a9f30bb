"""One connector on the leading worker: its run, earlier runs that have not ended yet, its failure and the next attempt.

Invariants:
A. A connector has at most one run, and a run starts only after all earlier ones have ended.
B. A change of a connector's config affects that connector alone; the same config again affects nothing.
C. A connector that cannot start affects no other: each starts on threads of its own, and again with back-off.
D. The lock of the slots is never held while a request to the cluster is under way, so that every run can be stopped
   at once when the lead is lost.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.effective.connect_config import kind_of
from heliograph.config.keys import worker_keys
from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.connect.runtime.connector_run import ConnectorRun, RunState
from heliograph.connect.runtime.status_publisher import ConnectorSnapshot
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.steps.restart_policy import RestartLimits, Restarts
from heliograph.errors import ConfigError, HeliographError
from heliograph.model import Flow
from heliograph.states import StateMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.config.effective.connect_config import ConnectorConfig, WorkerConfig
    from heliograph.connect.storage.config_store import StoredConnector
    from heliograph.driver.flow.source_flow import SourceFlow
    from heliograph.driver.spark.spark_engine import SparkEngine
    from heliograph.status.flow_snapshot import FlowSnapshot
    from heliograph.wire.records.connect_configs import TargetState


log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 1.0


class SlotState(Enum):
    """The state of a connector's current run; earlier runs may still be ending in any of them."""

    IDLE = "no run; one starts when the connector is to run and its earlier runs have ended"
    STARTING = "a run was started; its clusters have not answered yet"
    RUNNING = "the run has begun and knows its tasks"
    BACKING_OFF = "the run has failed; the next one starts after a pause"
    FAILED = "the run has failed; only a restart, another config, target state or lead starts one"


SLOT_STATES = StateMachine(
    SlotState.IDLE,
    {
        SlotState.IDLE: {SlotState.STARTING},
        SlotState.STARTING: {SlotState.RUNNING, SlotState.BACKING_OFF, SlotState.FAILED, SlotState.IDLE},
        SlotState.RUNNING: {SlotState.BACKING_OFF, SlotState.FAILED, SlotState.IDLE},
        SlotState.BACKING_OFF: {SlotState.STARTING, SlotState.IDLE},
        SlotState.FAILED: {SlotState.IDLE},
    },
)


class FlowView(NamedTuple):
    """The flow of a source connector at one moment, with or without a run; `run` may be one that is ending."""

    name: str
    run: ConnectorRun | None
    status: FlowStatus | None  # of the runs that have ended, where there is no run
    target_state: TargetState
    failure: str | None
    failed_at: float

    def snapshot(self) -> FlowSnapshot | None:
        """Return what is known of it; None if the connector is switched off.

        A connector that has failed is not ready, also while it waits for the next attempt and during it. One that was
        paused or stopped on request is not unready.
        """
        found = self.run.flow if self.run is not None else None
        if self.status is not None:
            found = replace(self.status.shared_snapshot(self.name, self.name), issues=())
        if found is None:
            return None
        if self.target_state != "STARTED":
            return replace(found, state=found.state if self.run is not None else self.target_state, unready=())
        if self.failure is not None:
            issues = tuple(dict.fromkeys((self.failure, *found.issues)))
            return replace(found, state="FAILED", since=self.failed_at, unready=(self.failure,), issues=issues)
        return found


class SharedStatus:
    """The status into which the runs of a connector report, one after the other, as long as its clusters stay."""

    def __init__(self) -> None:
        self._status: FlowStatus | None = None

    def of(self, flow: Flow) -> FlowStatus:
        """Return the status, a new one for other clusters."""
        if self._status is None or self._status.flow != flow:
            self._status = FlowStatus(flow)
        return self._status

    def run_has_ended(self) -> None:
        """Forget positions and lags, which are no longer known."""
        if self._status is not None:
            self._status.restart()


class ConnectorSlot:
    """Starts, stops and restarts the runs of one connector. Not thread-safe: used under the lock of the slots."""

    def __init__(self, name: str, worker: WorkerConfig, engine: SparkEngine) -> None:
        self.state = SLOT_STATES.initial
        self.failure: str | None = None  # kept until a run has begun, also while the next one starts
        self._name = name
        self._worker = worker
        self._engine = engine
        self._is_tracking_topics = worker.settings[worker_keys.TOPIC_TRACKING_ENABLE]
        self.run: ConnectorRun | None = None
        self._ending: list[ConnectorRun] = []
        self._status = SharedStatus()
        self._failed_at = 0.0
        self._config: tuple[Mapping[str, str], tuple[str, ...] | None] | None = None  # of the last run, with secrets
        self._begun_at: float | None = None
        self._retry_at = 0.0
        self._restarts: Restarts | None = None

    def advance(self, stored: StoredConnector) -> ConnectorSnapshot | None:
        """Bring the connector one step closer to its stored config and target state; return what to publish, if any."""
        self._drop_ended()
        if kind_of(stored.config.get("connector.class")) is None:
            reason = (
                f"{stored.config.get('connector.class')} is not one of MirrorMaker 2's connectors; it is left alone"
            )
            return ConnectorSnapshot(RunState("UNASSIGNED", reason, ()))
        if self.state is not SlotState.IDLE and self._config != (stored.config, stored.secrets):
            self._reconfigure(stored)
        if stored.target_state != "STARTED":
            self.reset()
            return None if self._ending else _resting(stored)  # a run that is ending still writes
        if self.run is not None and self.run.error is not None:
            self._fail(self.run.error, is_fenced=self.run.is_fenced)
        may_start = self.state in (SlotState.IDLE, SlotState.BACKING_OFF) and time.monotonic() >= self._retry_at
        if may_start and not self._ending:
            self._start(stored)
        if self.state is SlotState.STARTING and self.run is not None and self.run.has_begun:
            self._move(SlotState.RUNNING)
            self.failure = None
            self._begun_at = time.monotonic()
        return self._snapshot(stored)

    def reset(self, *, drains: bool = True) -> None:
        """Stop the run and clear the failure, so that the next run starts as soon as this one has ended.

        Without draining, tasks of this and earlier runs end at once: another worker may be about to run them.
        """
        for run in () if drains else self._ending:
            run.stop(drains=False)
        self._stop_run(drains=drains)
        self.failure = self._config = self._restarts = None
        self._retry_at = 0.0
        if self.state is not SlotState.IDLE:
            self._move(SlotState.IDLE)

    def restart_tasks(self, numbers: Iterable[int]) -> None:
        """Restart tasks within the run if it can, else the whole run."""
        if self.run is None or not self.run.restart_tasks(numbers):
            self.reset()

    def look_again(self) -> bool:
        """Have the run look at its clusters again, without its tasks; False if it cannot, or there is none."""
        return self.run is not None and self.run.look_again()

    def view(self, stored: StoredConnector) -> FlowView:
        """Return the flow of a source connector, also if it has no run."""
        self._drop_ended()
        run, status = self.run or next(iter(self._ending), None), None
        if run is None:
            connector = self._worker.connector(self._name, stored.config, stored.secrets)
            status = self._status.of(_flow_of(connector, stored))
        return FlowView(self._name, run, status, stored.target_state, self.failure, self._failed_at)

    def has_runs(self) -> bool:
        """Return whether any run of the connector has not ended yet."""
        self._drop_ended()
        return self.run is not None or bool(self._ending)

    def _move(self, state: SlotState) -> None:
        self.state = SLOT_STATES.step(self.state, state)

    def _drop_ended(self) -> None:
        if self._ending:
            self._ending = [run for run in self._ending if not run.is_over()]
            if not self._ending:
                self._status.run_has_ended()

    def _stop_run(self, *, drains: bool = True) -> None:
        if self.run is not None:
            self.run.stop(drains=drains)
            self._ending.append(self.run)
            self.run = None

    def _reconfigure(self, stored: StoredConnector) -> None:
        """Apply another config: to the current run if no task is affected, else to the next one."""
        try:
            connector = self._worker.connector(self._name, stored.config, stored.secrets)
            if self.run is not None and self.run.adopt(connector):
                log.info("Connector %s continues with its new config; no task is restarted", self._name)
                self._config = stored.config, stored.secrets
                self._restarts = _restarts_of(connector, self._worker)
                return
        except ConfigError as error:
            log.debug("%s cannot apply its new config: %s", self._name, error)  # the next run reports it
        self.reset()

    def _start(self, stored: StoredConnector) -> None:
        connector = self._worker.connector(self._name, stored.config, stored.secrets)
        self._move(SlotState.STARTING)
        self._config = stored.config, stored.secrets
        self._begun_at = None
        if self._restarts is None:
            self._restarts = _restarts_of(connector, self._worker)
        try:
            self.run = ConnectorRun(connector, self._engine, self._status.of(connector.flow))
        except HeliographError as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001  (a class of the user's may raise anything; other connectors run on)
            log.debug("%s", trace_of(error))
            self._fail(unexpected(error))
        else:
            self.run.start()

    def _fail(self, reason: str, *, is_fenced: bool = False) -> None:
        assert self._restarts is not None
        pause_s = self._restarts.pause_s(0.0 if self._begun_at is None else time.monotonic() - self._begun_at)
        if is_fenced:  # another instance runs it: only a person can know which one shall
            consequence, self._retry_at = "Another instance runs it; restart it here if it shall run here.", math.inf
        elif pause_s is None:
            consequence, self._retry_at = f"It is not started again, by {keys.RESTART_ATTEMPTS_MAX.name}.", math.inf
        else:
            consequence, self._retry_at = f"Starting it again in {pause_s:.0f} s.", time.monotonic() + pause_s
        is_final = math.isinf(self._retry_at)
        level = logging.ERROR if is_final or reason != self.failure else logging.DEBUG
        log.log(level, "Connector %s failed: %s %s", self._name, reason, consequence)
        if self.failure is None:
            self._failed_at = time.time()
        self.failure = reason
        self._stop_run()
        self._move(SlotState.FAILED if is_final else SlotState.BACKING_OFF)

    def _snapshot(self, stored: StoredConnector) -> ConnectorSnapshot | None:
        if self.state is SlotState.RUNNING and self.run is not None:
            self.run.log_progress()
            topics = self.run.take_topics() if self._is_tracking_topics else ()
            return ConnectorSnapshot(self.run.state, [dict(config) for config in self.run.task_configs], tuple(topics))
        if self.failure is not None:
            return ConnectorSnapshot(RunState("FAILED", self.failure, ()))
        if self.state is SlotState.IDLE:
            return None
        return ConnectorSnapshot(
            RunState("UNASSIGNED", None, tuple(("UNASSIGNED", None) for _config in stored.task_configs))
        )


def _restarts_of(connector: ConnectorConfig, worker: WorkerConfig) -> Restarts:
    try:
        limits = RestartLimits.of(connector.settings(connector.flow))
    except ConfigError:
        limits = RestartLimits.of(worker.settings)
    return Restarts(limits, _FIRST_PAUSE_S)


def _flow_of(connector: ConnectorConfig, stored: StoredConnector) -> Flow:
    try:
        return connector.flow
    except ConfigError:
        aliases = (stored.config.get(key.name, "") for key in (keys.SOURCE_ALIAS, keys.TARGET_ALIAS))
        return Flow(*aliases)


def _resting(stored: StoredConnector) -> ConnectorSnapshot:
    """Return the snapshot of a connector at rest: a paused one keeps its tasks, a stopped one has none."""
    if stored.target_state == "STOPPED":
        return ConnectorSnapshot(RunState("STOPPED", None, ()), task_configs=[])
    return ConnectorSnapshot(RunState("PAUSED", None, tuple(("PAUSED", None) for _config in stored.task_configs)))


class ConnectorSlots:
    """The slots of a worker's connectors, and the generation since which the worker leads; under one lock."""

    def __init__(self, make_slot: Callable[[str], ConnectorSlot]) -> None:
        self.lock = threading.RLock()
        self._leads_since: int | None = None
        self._is_draining = False  # for a stop; the lead may be lost meanwhile
        self._make_slot = make_slot
        self._slots: dict[str, ConnectorSlot] = {}

    @property
    def leads_since(self) -> int | None:
        """The generation since which the worker leads; None while it does not. Then no slot has a run."""
        with self.lock:
            return self._leads_since

    def lead(self, since: int | None, *, drains: bool = False) -> None:
        """Set the generation since which the worker leads; if it differs, every run is stopped.

        A lead that is lost leaves no time to drain: the next leader may already have been elected.
        """
        with self.lock:
            had_runs = self._leads_since is not None or self._is_draining
            if since != self._leads_since or self._is_draining:
                for slot in self._slots.values():
                    slot.reset(drains=drains or not had_runs)
            self._leads_since, self._is_draining = since, drains

    def advance(self, stored: Mapping[str, StoredConnector]) -> dict[str, ConnectorSnapshot] | None:
        """Advance every connector and return what to publish; None if the worker does not lead."""
        with self.lock:
            if self._leads_since is None:
                return None
            snapshots = {name: self.slot(name).advance(connector) for name, connector in stored.items()}
            for name in [name for name in self._slots if name not in stored]:
                self._slots[name].reset()
                if not self._slots[name].has_runs():
                    del self._slots[name]
            return {name: snapshot for name, snapshot in snapshots.items() if snapshot is not None}

    def slot(self, name: str) -> ConnectorSlot:
        """Return a connector's slot, made if there is none; for a caller that holds the lock."""
        if name not in self._slots:
            self._slots[name] = self._make_slot(name)
        return self._slots[name]

    def reset(self, name: str) -> None:
        """Stop a connector's run and clear its failure."""
        with self.lock:
            if name in self._slots:
                self._slots[name].reset()

    def is_known(self, name: str) -> bool:
        """Return whether a connector has a slot: it is stored, or its runs have not ended yet."""
        with self.lock:
            return name in self._slots

    def is_running(self, name: str) -> bool:
        """Return whether any run of a connector has not ended yet."""
        with self.lock:
            return name in self._slots and self._slots[name].has_runs()

    def flows(self, stored: Mapping[str, StoredConnector]) -> list[FlowSnapshot]:
        """Return the flows of all source connectors, by name, also of those that do not run; none without the lead."""
        with self.lock:
            if self._leads_since is None:
                return []
            views = [
                self.slot(name).view(connector)
                for name, connector in sorted(stored.items())
                if kind_of(connector.config.get("connector.class")) == "source"
            ]
        return [flow for flow in (view.snapshot() for view in views) if flow is not None]

    def runs(self) -> list[ConnectorRun]:
        """Return the current runs of all connectors, by name."""
        with self.lock:
            return [slot.run for _name, slot in sorted(self._slots.items()) if slot.run is not None]

    def source_flow(self, name: str) -> SourceFlow | None:
        """Return the flow of a source connector that runs here; None if there is none."""
        with self.lock:
            run = self._slots[name].run if name in self._slots else None
        return None if run is None else run.source_flow

    def has_runs(self) -> bool:
        """Return whether any run of any connector has not ended yet."""
        with self.lock:
            return any(slot.has_runs() for slot in self._slots.values())

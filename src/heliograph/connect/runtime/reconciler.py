"""Runs the connectors of a Connect worker on the leader, as the config topic wants them.

One thread reconciles: it follows the config topic, starts and stops runs (`connector_slot`), and publishes their states
(`status_publisher`). REST threads only write to the stores and wake it. A follower runs nothing; it only keeps its
stores up to date.

The topics are polled less and less often while nothing happens. Nobody waits for that: the leader reads its own writes
at once, followers forward requests to it, and a new leader reads both topics before it writes. Only requests of other
workers (log levels, restarts) and corrections of late writes take up to the longest interval.

Invariants:
A. A worker that does not lead runs nothing: when the lead is lost, the tasks of every run end at once, undrained.
B. All connectors are started and stopped before anything is published, so that a slow cluster holds up no run.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.connect.contract.refusals import FLOW_AT_REST, NO_SUCH_FLOW
from heliograph.connect.runtime.connector_run import RunState
from heliograph.connect.runtime.connector_slot import ConnectorSlot, ConnectorSlots
from heliograph.connect.runtime.status_publisher import StatusPublisher
from heliograph.connect.storage.config_store import ConfigChanges, SessionKeys
from heliograph.connect.storage.leader_writes import refusal_cause
from heliograph.errors import ClusterError, ConnectError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.connect.contract.log_levels import LogLevels
    from heliograph.connect.runtime.connector_run import ConnectorRun
    from heliograph.connect.storage.config_store import ConfigStore, StoredConnector
    from heliograph.connect.storage.status_store import StatusStore
    from heliograph.driver.spark.spark_engine import SparkEngine
    from heliograph.model import RestartedPartition, RestartRequest
    from heliograph.status.flow_snapshot import FlowSnapshot


log = logging.getLogger(__name__)

_TICK_S = 0.25
_LONGEST_CONFIG_POLL_S = 1.0
_LONGEST_STATUS_POLL_S = 5.0
_STOP_TIMEOUT_S = 45.0
_STOP_PAUSE_S = 0.05
_JOIN_TIMEOUT_S = 5.0


class Reconciler:
    """Brings the runs of a worker in line with the config topic, again and again."""

    def __init__(
        self,
        worker: WorkerConfig,
        engine: SparkEngine,
        stores: tuple[ConfigStore, StatusStore],
        worker_id: str,
        log_levels: LogLevels,
    ) -> None:
        self._log_levels = log_levels
        self._engine = engine
        self._configs, self._statuses = stores
        self.worker_id = worker_id
        self.engine = engine
        self._slots = ConnectorSlots(lambda name: ConnectorSlot(name, worker, engine))
        self._publisher = StatusPublisher(stores, worker_id, lambda: self._slots.leads_since)
        self._restarts = RestartRequests(self._slots, self._publisher)
        self._session_keys = SessionKeys(self._configs, worker)
        self._config_polls = _PollSchedule(_LONGEST_CONFIG_POLL_S)
        self._status_polls = _PollSchedule(_LONGEST_STATUS_POLL_S)
        self._polled_since: int | None = None
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self.issue: str | None = None
        self._thread = threading.Thread(target=self._loop, name="herder", daemon=True)

    def start(self) -> None:
        """Start to reconcile, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Stop every run, and the loop."""
        with self._slots.lock:
            self._stopping.set()
            self._slots.lead(None, drains=True)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while self._slots.has_runs() and time.monotonic() < deadline:
            time.sleep(_STOP_PAUSE_S)
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_TIMEOUT_S)

    def lead(self, since: int | None) -> None:
        """Lead since that generation, or not at all (None). A lead that was lost in between is a new one.

        Only the leader has a Spark application: those of followers would keep its cores from it.
        """
        with self._slots.lock:
            if self._stopping.is_set():
                since = None
            elif since is not None:
                self._engine.driver.start()
            self._slots.lead(since)
            if since is None and not self._stopping.is_set():
                self._engine.driver.stop(is_awaited=False)
        self._wake.set()

    def wake(self) -> None:
        """Reconcile now: a record was written to the stores."""
        self._wake.set()

    # --- for requests -------------------------------------------------------------------------------------------------

    def reset(self, name: str) -> None:
        """Stop a connector that was deleted; a new one of the same name inherits no failure."""
        self._slots.reset(name)
        self._wake.set()

    def flows(self) -> list[FlowSnapshot]:
        """Return the flow of every source connector; none if this worker does not lead."""
        return self._slots.flows(self._configs.connectors)

    def runs(self) -> list[ConnectorRun]:
        """Return the current runs of all connectors; none if this worker does not lead."""
        return self._slots.runs()

    def restart_partitions(self, name: str, request: RestartRequest) -> tuple[RestartedPartition, ...]:
        """Restart partitions of the flow that a connector runs here; raises ConnectError if there is none."""
        flow = self._slots.source_flow(name)
        if flow is not None:
            return flow.restart_partitions(request)
        state = next((flow.state for flow in self.flows() if flow.name == name), None)
        raise NO_SUCH_FLOW.error(name=name) if state is None else FLOW_AT_REST.error(name=name, state=state)

    def is_running(self, name: str) -> bool:
        """Return whether any run of a connector has not ended yet."""
        return self._slots.is_running(name)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> RunState | None:
        """Restart a connector, its tasks too, or what has failed of both; return its new state, None if nothing is.

        Without its tasks a source connector only looks at its clusters again: tasks that copy are left alone.
        """
        state = self._restarts.restart(name, include_tasks=include_tasks, only_failed=only_failed)
        self._publish_restart(name, state)
        return state

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        self._publish_restart(name, self._restarts.restart_task(name, task))

    def _publish_restart(self, name: str, state: RunState | None) -> None:
        if state is not None:
            self._publisher.report(name, state)
            self._wake.set()

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._stopping.is_set():
            if self._wake.wait(_TICK_S):
                self._wake.clear()  # only here: a call that comes just after the wait must not be lost
                self._poll_now()
            try:
                self._reconcile()
                if self.issue is not None:
                    log.info("The worker's topics: recovered")
                self.issue = None
            except ConnectError as error:
                refusal = refusal_cause(error)
                if refusal is not None:
                    self._note_issue(str(refusal))
                else:  # the lead was lost meanwhile; the new leader publishes the state
                    log.debug("The worker's topics: %s", error)
            except ClusterError as error:
                self._note_issue(str(error))
            except Exception as error:  # noqa: BLE001  (a worker whose herder has died would look healthy)
                log.debug("%s", trace_of(error))
                self._note_issue(unexpected(error))

    def _note_issue(self, text: str) -> None:
        if self.issue != text and not self._stopping.is_set():
            log.warning("The worker's topics: %s (will be tried again)", text.rstrip("."))
        self.issue = text

    def _poll_now(self) -> None:
        self._config_polls.reset()
        self._status_polls.reset()

    def _reconcile(self) -> None:
        since = self._slots.leads_since
        if since != self._polled_since:  # the last writes of the leader before us may be newer than our last polls
            self._polled_since = since
            self._poll_now()
        if self._config_polls.is_due():
            self._config_polls.done(has_changed=self._configs.refresh() != ConfigChanges())
        for record in self._configs.take_log_levels():
            self._log_levels.set(record.namespace, record.level)
        stored = self._configs.connectors
        restarting = self._restart_recorded(stored)
        with self._slots.lock:  # a lead that began after the poll waits for the next one
            snapshots = self._slots.advance(stored) if self._slots.leads_since == since else None
        if snapshots is not None:
            self._configs.claim()
            self._session_keys.keep_fresh()
        if self._status_polls.is_due():  # after the runs: a status topic that cannot be read must not hold them up
            self._status_polls.done(has_changed=self._statuses.refresh())
        if snapshots is None:
            return
        for name, state in restarting.items():
            self._publisher.report(name, state)
        for name in self._statuses.names():
            if name not in stored and not self._slots.is_known(name):
                self._statuses.delete_connector(name)
                log.info("Connector %s is deleted.", name)
        self._publisher.publish_all(snapshots, stored)

    def _restart_recorded(self, stored: Mapping[str, StoredConnector]) -> dict[str, RunState]:
        """Carry out the restarts that records of the config topic request, each once; return the states to publish.

        A request that is read while another worker leads is that worker's; a new leader starts everything anyway.
        """
        states = {}
        for request in self._configs.take_restarts():
            if request.name in stored:
                log.info("Connector %s: a record of the config topic requests its restart", request.name)
                state = self._restarts.restart(
                    request.name, include_tasks=request.include_tasks, only_failed=request.only_failed
                )
                if state is not None:
                    states[request.name] = state
        return states


class _PollSchedule:
    """Decides when a topic is polled: at every tick while it changes, then after growing pauses.

    A poll that raises is not done, so it is due again at the next tick: an issue ends only with a poll that succeeds.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._pause_s = 0.0
        self._due_at = 0.0

    def is_due(self) -> bool:
        """Return whether to poll now."""
        return time.monotonic() >= self._due_at

    def done(self, *, has_changed: bool) -> None:
        """Schedule the next poll after one that succeeded."""
        self._pause_s = 0.0 if has_changed else min(max(_TICK_S, 2 * self._pause_s), self._longest_s)
        self._due_at = time.monotonic() + self._pause_s

    def reset(self) -> None:
        """Poll at the next tick, and often for a while."""
        self._pause_s = self._due_at = 0.0


class RestartRequests:
    """Turns the restarts that REST or a record of the config topic requests into actions on a connector's slot.

    Each method returns the state to publish, None if nothing is restarted or the worker does not lead.
    """

    def __init__(self, slots: ConnectorSlots, publisher: StatusPublisher) -> None:
        self._slots = slots
        self._publisher = publisher

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> RunState | None:
        """Restart a connector, with its tasks or without, or what has failed of both."""
        reported = self._publisher.reported(name)
        with self._slots.lock:
            if self._slots.leads_since is None:
                return None
            slot = self._slots.slot(name)
            if slot.failure is not None or (include_tasks and not only_failed):
                return _restart_all(slot, reported)
            if not only_failed:
                return _restart_connector(slot, reported) or _restart_all(slot, reported)
            failed = [number for number, (state, _trace) in enumerate(reported.tasks) if state == "FAILED"]
            if include_tasks and failed:
                return _restart_tasks(slot, reported, failed)
            return _restart_connector(slot, reported) if reported.state == "FAILED" else None

    def restart_task(self, name: str, task: int) -> RunState | None:
        """Restart one task."""
        reported = self._publisher.reported(name)
        with self._slots.lock:
            if self._slots.leads_since is None:
                return None
            return _restart_tasks(self._slots.slot(name), reported, [task])


def _restart_all(slot: ConnectorSlot, reported: RunState) -> RunState:
    slot.reset()
    return RunState("RESTARTING", None, tuple(("RESTARTING", None) for _task in reported.tasks))


def _restart_connector(slot: ConnectorSlot, reported: RunState) -> RunState | None:
    """Have the connector look at its clusters again at once; None if its run cannot."""
    return RunState("RESTARTING", None, reported.tasks) if slot.look_again() else None


def _restart_tasks(slot: ConnectorSlot, reported: RunState, numbers: list[int]) -> RunState:
    slot.restart_tasks(numbers)
    tasks = tuple(("RESTARTING", None) if n in numbers else task for n, task in enumerate(reported.tasks))
    return RunState(reported.state, reported.trace, tasks)

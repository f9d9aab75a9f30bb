"""Owns the connectors of a Connect worker: what the config topic wants is what runs, on the worker that leads.

One thread reconciles: it follows the config topic, starts and stops runs, and has their states told
(`connector_news`). REST threads only write to the stores and wake it. A follower runs nothing; it answers from the
stores or is forwarded.

Invariants:
A. A connector has at most one run, and a successor starts only after its predecessor has ended.
B. Whoever does not lead runs nothing: where the lead is lost, every run is asked to end at once. So the lock that
   guards the runs is never held while the cluster is asked.
C. A connector that cannot start harms no other: each begins on threads of its own, and is tried again with back-off.
   All are started and stopped before anything is told.
D. A change of a connector's config touches that connector alone; a config that is the same again touches nothing.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.effective.connect_config import kind_of
from heliograph.config.keys import worker_keys
from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.connect.runtime.connector_run import ConnectorRun, RunState
from heliograph.connect.runtime.status_publisher import ConnectorSnapshot, StatusPublisher
from heliograph.connect.storage.config_store import SessionKeys
from heliograph.connect.storage.leader_writes import refusal_behind
from heliograph.driver.steps.restart_policy import RestartLimits, Restarts
from heliograph.errors import ClusterError, ConfigError, ConnectError, HeliographError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.effective.connect_config import ConnectorConfig, WorkerConfig
    from heliograph.connect.contract.log_levels import LogLevels
    from heliograph.connect.storage.config_store import ConfigStore, StoredConnector
    from heliograph.connect.storage.status_store import StatusStore
    from heliograph.driver.spark.spark_engine import SparkEngine


log = logging.getLogger(__name__)

_TICK_S = 0.25
_STOP_TIMEOUT_S = 45.0
_STOP_PAUSE_S = 0.05
_JOIN_TIMEOUT_S = 5.0
_FIRST_PAUSE_S = 1.0


@dataclass(slots=True)
class _Slot:
    """One connector's place: its run, those of before that have not ended yet, and when to try again.

    `config` is the one its run, or its last failure, is of; `secrets` are the patterns it was accepted under.
    """

    run: ConnectorRun | None = None
    ending: list[ConnectorRun] = field(default_factory=list)
    config: Mapping[str, str] | None = None
    secrets: tuple[str, ...] | None = None
    begun_at: float | None = None
    failure: str | None = None
    retry_at: float = 0.0
    restarts: Restarts | None = None


class Reconciler:
    """Makes what runs equal to what is wanted, again and again."""

    def __init__(
        self,
        worker: WorkerConfig,
        engine: SparkEngine,
        stores: tuple[ConfigStore, StatusStore],
        worker_id: str,
        log_levels: LogLevels,
    ) -> None:
        self._worker = worker
        self._log_levels = log_levels
        self._engine = engine
        self._configs, self._statuses = stores
        self.worker_id = worker_id
        self._publisher = StatusPublisher(stores, worker_id, self._generation)
        self._slots: dict[str, _Slot] = {}
        self._leads_since: int | None = None
        self._is_tracking_topics = worker.settings[worker_keys.TOPIC_TRACKING_ENABLE]
        self._session_keys = SessionKeys(self._configs, worker)
        self._wake = threading.Event()
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self.issue: str | None = None
        self._thread = threading.Thread(target=self._loop, name="herder", daemon=True)

    def start(self) -> None:
        """Begin to reconcile, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """End every run, and the loop."""
        with self._lock:
            self._stopping.set()
            self.lead(None)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while self._has_runs() and time.monotonic() < deadline:
            time.sleep(_STOP_PAUSE_S)
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_TIMEOUT_S)

    def lead(self, since: int | None) -> None:
        """We lead since that generation; None: we do not. A lead that was lost in between is a new one."""
        with self._lock:
            leads_since = None if self._stopping.is_set() else since
            if leads_since != self._leads_since:
                for slot in self._slots.values():
                    _retire(slot)
                    _forgive(slot)
            self._leads_since = leads_since
        self._wake.set()

    def _generation(self) -> int | None:
        with self._lock:
            return self._leads_since

    def wake(self) -> None:
        """Something was written to the stores."""
        self._wake.set()

    def forget(self, name: str) -> None:
        """A connector was deleted: one of the same name that follows is another, whatever had failed."""
        with self._lock:
            slot = self._slots.get(name)
            if slot is not None:
                _retire(slot)
                _forgive(slot)
        self._wake.set()

    # --- for requests -------------------------------------------------------------------------------------------------

    def is_running(self, name: str) -> bool:
        """Whether anything of a connector still runs."""
        with self._lock:
            slot = self._slots.get(name)
            return slot is not None and (slot.run is not None or bool(slot.ending))

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> RunState | None:
        """Start a connector again, its tasks too, or what has failed of both; as what it is told, None where it is not.

        Without its tasks a source connector only looks at its clusters again: tasks that copy are left alone.
        """
        state = self._begin_restart(name, include_tasks=include_tasks, only_failed=only_failed)
        if state is not None:
            self._publisher.report(name, state)
            self._wake.set()
        return state

    def _begin_restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> RunState | None:
        reported = self._publisher.reported(name)
        with self._lock:
            if self._leads_since is None:
                return None
            slot = self._slots.setdefault(name, _Slot())
            if slot.failure is not None or (include_tasks and not only_failed):
                return _restart_all(slot, reported)
            if only_failed:
                failed = [number for number, (word, _trace) in enumerate(reported.tasks) if word == "FAILED"]
                return (
                    _restart_tasks(slot, reported, failed) if include_tasks and failed else _look_again(slot, reported)
                )
            if slot.run is not None and slot.run.look_again():
                return RunState("RESTARTING", None, reported.tasks)
            return _restart_all(slot, reported)

    def restart_task(self, name: str, task: int) -> None:
        """Start one task again."""
        reported = self._publisher.reported(name)
        with self._lock:
            state = _restart_tasks(self._slots.setdefault(name, _Slot()), reported, [task])
        self._publisher.report(name, state)
        self._wake.set()

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(_TICK_S)
            self._wake.clear()
            try:
                self._reconcile()
                if self.issue is not None:
                    log.info("The worker's topics: it goes on as before.")
                self.issue = None
            except ConnectError as error:
                refusal = refusal_behind(error)
                if refusal is not None:
                    self._note_issue(str(refusal))
                else:  # the lead was lost on the way; who has it tells what it was about
                    log.debug("The worker's topics: %s", error)
            except ClusterError as error:
                self._note_issue(str(error))
            except Exception as error:  # noqa: BLE001  (the worker must not go on as if it had a herder)
                log.debug("%s", trace_of(error))
                self._note_issue(unexpected(error))

    def _note_issue(self, words: str) -> None:
        if self.issue != words and not self._stopping.is_set():
            log.warning("The worker's topics: %s (will be tried again)", words.rstrip("."))
        self.issue = words

    def _has_runs(self) -> bool:
        with self._lock:
            for slot in self._slots.values():
                slot.ending = [run for run in slot.ending if not run.is_over()]
            return any(slot.run is not None or slot.ending for slot in self._slots.values())

    def _reconcile(self) -> None:
        self._configs.refresh()
        for record in self._configs.take_log_levels():
            self._log_levels.set(record.namespace, record.level)
        stored = self._configs.connectors
        restarting = self._restart_as_asked(stored)
        with self._lock:
            leads = self._leads_since is not None
            snapshot = self._advance(stored) if leads else {}
        if leads:
            self._configs.claim()
            self._session_keys.keep_fresh()
        self._statuses.refresh()  # after the runs: a status topic that cannot be read must not hold them up
        if not leads:
            return
        told_of = self._statuses.names()
        with self._lock:
            gone = [name for name in told_of if name not in stored and name not in self._slots]
        for name, state in restarting.items():
            self._publisher.report(name, state)
        for name in gone:
            self._statuses.delete_connector(name)
            log.info("Connector %s is deleted.", name)
        self._publisher.publish_all(snapshot, stored)

    def _restart_as_asked(self, stored: Mapping[str, StoredConnector]) -> dict[str, RunState]:
        """Do what records of the config topic ask for, each once; what there is to tell.

        Those that are read while another leads are the other's; a lead that is taken over starts everything anyway.
        """
        restarting = {}
        for asked in self._configs.take_restarts():
            if asked.name in stored:
                log.info("Connector %s: a record of the config topic asks for its restart", asked.name)
                state = self._begin_restart(
                    asked.name, include_tasks=asked.include_tasks, only_failed=asked.only_failed
                )
                if state is not None:
                    restarting[asked.name] = state
        return restarting

    def _advance(self, stored: Mapping[str, StoredConnector]) -> dict[str, ConnectorSnapshot]:
        """Bring every connector a step nearer to what is wanted of it; what there is to tell."""
        snapshot = {}
        for name in [*stored, *(name for name in self._slots if name not in stored)]:
            slot = self._slots.setdefault(name, _Slot())
            slot.ending = [run for run in slot.ending if not run.is_over()]
            if name in stored:
                reported = self._pursue(name, slot, stored[name])
                if reported is not None:
                    snapshot[name] = reported
                continue
            _retire(slot)
            if not slot.ending:
                del self._slots[name]
        return snapshot

    def _pursue(self, name: str, slot: _Slot, stored: StoredConnector) -> ConnectorSnapshot | None:
        if kind_of(stored.config.get("connector.class")) is None:
            words = f"{stored.config.get('connector.class')} is not one of MirrorMaker 2's connectors; it is left alone"
            return ConnectorSnapshot(RunState("UNASSIGNED", words, ()))
        if slot.config is not None and (slot.config, slot.secrets) != (stored.config, stored.secrets):
            self._change(name, slot, stored)
        if stored.target_state != "STARTED":
            _retire(slot)
            _forgive(slot)
            return None if slot.ending else _resting(stored)  # until it has ended it still writes
        self._give_up_failed(name, slot)
        if slot.run is None and not slot.ending and time.monotonic() >= slot.retry_at:
            self._start(name, slot, stored)
        return self._describe(slot, stored)

    def _change(self, name: str, slot: _Slot, stored: StoredConnector) -> None:
        """Go on with another config: in the same run where no task must notice, else in the next one."""
        try:
            connector = self._worker.connector(name, stored.config, stored.secrets)
            if slot.run is not None and slot.run.adopt(connector):
                log.info("Connector %s goes on with its new config; no task is restarted", name)
                slot.config, slot.secrets = stored.config, stored.secrets
                slot.restarts = Restarts(self._restart_limits(connector), _FIRST_PAUSE_S)
                return
        except ConfigError as error:
            log.debug("%s cannot take its new config over: %s", name, error)  # the next run says it
        _retire(slot)
        _forgive(slot)

    def _start(self, name: str, slot: _Slot, stored: StoredConnector) -> None:
        slot.config, slot.secrets = stored.config, stored.secrets
        slot.begun_at = None
        connector = self._worker.connector(name, stored.config, stored.secrets)
        if slot.restarts is None:
            slot.restarts = Restarts(self._restart_limits(connector), _FIRST_PAUSE_S)
        try:
            slot.run = ConnectorRun(connector, self._engine)
        except HeliographError as error:
            self._failed(name, slot, str(error))
        except Exception as error:  # noqa: BLE001  (a class of the user's may raise what it likes; the others go on)
            log.debug("%s", trace_of(error))
            self._failed(name, slot, unexpected(error))
        else:
            slot.run.start()

    def _restart_limits(self, connector: ConnectorConfig) -> RestartLimits:
        try:
            return RestartLimits.of(connector.settings(connector.flow))
        except ConfigError:
            return RestartLimits.of(self._worker.settings)

    def _give_up_failed(self, name: str, slot: _Slot) -> None:
        if slot.run is not None and slot.run.error is not None:
            self._failed(name, slot, slot.run.error, is_fenced=slot.run.is_fenced)
            _retire(slot)

    def _failed(self, name: str, slot: _Slot, reason: str, *, is_fenced: bool = False) -> None:
        assert slot.restarts is not None
        pause_s = slot.restarts.pause_s(0.0 if slot.begun_at is None else time.monotonic() - slot.begun_at)
        if is_fenced:  # another instance runs it: only a person can know which one shall
            next_words, slot.retry_at = "Another instance runs it; restart it here if it shall run here.", math.inf
        elif pause_s is None:
            next_words, slot.retry_at = f"It is not started again, by {keys.RESTART_ATTEMPTS_MAX.name}.", math.inf
        else:
            next_words, slot.retry_at = f"Starting it again in {pause_s:.0f} s.", time.monotonic() + pause_s
        is_news = slot.failure != reason or math.isinf(slot.retry_at)
        log.log(logging.ERROR if is_news else logging.DEBUG, "Connector %s failed: %s %s", name, reason, next_words)
        slot.failure = reason

    def _describe(self, slot: _Slot, stored: StoredConnector) -> ConnectorSnapshot | None:
        if slot.run is not None and slot.run.has_begun:
            slot.failure = None
            slot.begun_at = slot.begun_at or time.monotonic()
            slot.run.log_progress()
            topics = slot.run.take_topics() if self._is_tracking_topics else ()
            return ConnectorSnapshot(slot.run.state, [dict(config) for config in slot.run.task_configs], tuple(topics))
        if slot.failure is not None:  # also while it is tried again: it has not come further yet
            return ConnectorSnapshot(RunState("FAILED", slot.failure, ()))
        if slot.run is None:
            return None
        return ConnectorSnapshot(
            RunState("UNASSIGNED", None, tuple(("UNASSIGNED", None) for _config in stored.task_configs))
        )


def _restart_all(slot: _Slot, reported: RunState) -> RunState:
    _retire(slot)
    _forgive(slot)
    return RunState("RESTARTING", None, tuple(("RESTARTING", None) for _task in reported.tasks))


def _look_again(slot: _Slot, reported: RunState) -> RunState | None:
    """A connector that finds nothing to do because of some trouble: it looks again at once."""
    if reported.state != "FAILED" or slot.run is None or not slot.run.look_again():
        return None
    return RunState("RESTARTING", None, reported.tasks)


def _restart_tasks(slot: _Slot, reported: RunState, numbers: list[int]) -> RunState:
    if slot.run is None or not slot.run.restart_tasks(numbers):
        _retire(slot)
        _forgive(slot)
    tasks = tuple(("RESTARTING", None) if n in numbers else task for n, task in enumerate(reported.tasks))
    return RunState(reported.state, reported.trace, tasks)


def _retire(slot: _Slot) -> None:
    if slot.run is not None:
        slot.run.stop()
        slot.ending.append(slot.run)
        slot.run = None


def _forgive(slot: _Slot) -> None:
    """What has failed counts no more, and what comes next is tried at once."""
    slot.failure = slot.config = slot.restarts = None
    slot.retry_at = 0.0


def _resting(stored: StoredConnector) -> ConnectorSnapshot:
    """A paused connector keeps its tasks, a stopped one has none."""
    if stored.target_state == "STOPPED":
        return ConnectorSnapshot(RunState("STOPPED", None, ()), task_configs=[])
    return ConnectorSnapshot(RunState("PAUSED", None, tuple(("PAUSED", None) for _config in stored.task_configs)))

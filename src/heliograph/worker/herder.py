"""Owns the connectors of a Connect worker: what the config topic wants is what runs, on the worker that leads.

One thread reconciles: it follows the config topic, starts and stops runs, and tells states to the status topic. REST
threads only write to the stores and wake it. A follower runs nothing; it answers from the stores or is forwarded.

Invariants:
A. A connector has at most one run, and a successor starts only after its predecessor has ended.
B. Whoever does not lead runs nothing: where the lead is lost, every run is asked to end at once.
C. A connector that cannot start harms no other: each begins on threads of its own, and is tried again with back-off.
D. A change of a connector's config touches that connector alone; a config that is the same again touches nothing.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.config import keys, worker_keys
from heliograph.config.connector import kind_of
from heliograph.errors import ClusterError, ConfigError, HeliographError
from heliograph.wire.connect_status import Status
from heliograph.worker.connect_types import CONNECT_VERSION
from heliograph.worker.connector_run import ConnectorRun, RunState
from heliograph.worker.restarts import RestartLimits, Restarts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.connector import ConnectorConfig
    from heliograph.config.worker_file import WorkerConfig
    from heliograph.engine.engine import SparkEngine
    from heliograph.worker.config_state import StoredConnector
    from heliograph.worker.connect_stores import ConfigStore, StatusStore
    from heliograph.worker.connect_types import State
    from heliograph.worker.log_levels import LogLevels

log = logging.getLogger(__name__)

_TICK_S = 0.25
_STOP_TIMEOUT_S = 45.0
_FIRST_PAUSE_S = 1.0
_NOTHING_TOLD = RunState("UNASSIGNED", None, ())


@dataclass(slots=True)
class _Slot:
    """One connector's place: its run, those of before that have not ended yet, and when to try again.

    `config` is the one its run, or its last failure, is of.
    """

    run: ConnectorRun | None = None
    ending: list[ConnectorRun] = field(default_factory=list)
    config: Mapping[str, str] | None = None
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
        self._slots: dict[str, _Slot] = {}
        self._told: dict[str, RunState] = {}
        self._leads_since: int | None = None
        self._is_tracking_topics = worker.settings[worker_keys.TOPIC_TRACKING_ENABLE]
        self._wake = threading.Event()
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self.trouble: str | None = None
        self._thread = threading.Thread(target=self._loop, name="herder", daemon=True)

    def start(self) -> None:
        """Begin to reconcile, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """End every run, and the loop."""
        self.lead(None)
        self._stopping.set()
        self._wake.set()
        self._thread.join(_STOP_TIMEOUT_S)

    def lead(self, since: int | None) -> None:
        """We lead since that generation; None: we do not. A lead that was lost in between is a new one."""
        with self._lock:
            if self._leads_since not in (None, since):
                for slot in self._slots.values():
                    _retire(slot)
                self._told.clear()
            self._leads_since = since
        self._wake.set()

    def wake(self) -> None:
        """Something was written to the stores."""
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
        with self._lock:
            slot = self._slots.setdefault(name, _Slot())
            told = self._told.get(name, _NOTHING_TOLD)
            failed = [number for number, (state, _trace) in enumerate(told.tasks) if state == "FAILED"]
            if slot.failure is not None or (include_tasks and not only_failed):
                return self._restart_all(name, slot)
            if only_failed:
                return self._restart_tasks(name, slot, failed) if include_tasks and failed else None
            if slot.run is None or not slot.run.look_again():
                return self._restart_all(name, slot)
            state = RunState("RESTARTING", None, told.tasks)
            self._tell(name, state)
        self._wake.set()
        return state

    def restart_task(self, name: str, task: int) -> None:
        """Start one task again."""
        with self._lock:
            self._restart_tasks(name, self._slots.setdefault(name, _Slot()), [task])

    def _restart_all(self, name: str, slot: _Slot) -> RunState:
        told = self._told.get(name, _NOTHING_TOLD)
        _retire(slot)
        _forgive(slot)
        state = RunState("RESTARTING", None, tuple(("RESTARTING", None) for _task in told.tasks))
        self._tell(name, state)
        self._wake.set()
        return state

    def _restart_tasks(self, name: str, slot: _Slot, numbers: list[int]) -> RunState:
        told = self._told.get(name, _NOTHING_TOLD)
        if slot.run is None or not slot.run.restart_tasks(numbers):
            _retire(slot)
            _forgive(slot)
        tasks = tuple(("RESTARTING", None) if n in numbers else task for n, task in enumerate(told.tasks))
        state = RunState(told.state, told.trace, tasks)
        self._tell(name, state)
        self._wake.set()
        return state

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._stopping.is_set() or self._has_runs():
            self._wake.wait(_TICK_S)
            self._wake.clear()
            try:
                changes = self._configs.refresh()
                self._statuses.refresh()
                for record in changes.log_levels:
                    self._log_levels.set(record.namespace, record.level)
                with self._lock:
                    self._reconcile()
                self.trouble = None
            except ClusterError as error:
                if self.trouble != str(error):
                    log.warning("The worker's topics: %s (will be tried again)", str(error).rstrip("."))
                self.trouble = str(error)

    def _has_runs(self) -> bool:
        with self._lock:
            for slot in self._slots.values():
                slot.ending = [run for run in slot.ending if not run.is_over()]
            return any(slot.run is not None or slot.ending for slot in self._slots.values())

    def _reconcile(self) -> None:
        stored = self._configs.connectors
        for name in [*stored, *(name for name in self._slots if name not in stored)]:
            slot = self._slots.setdefault(name, _Slot())
            slot.ending = [run for run in slot.ending if not run.is_over()]
            if self._leads_since is None:
                _retire(slot)
            elif name not in stored:
                self._forget(name, slot)
            else:
                self._pursue(name, slot, stored[name])

    def _forget(self, name: str, slot: _Slot) -> None:
        _retire(slot)
        if not slot.ending:
            self._statuses.delete_connector(name)
            self._told.pop(name, None)
            del self._slots[name]

    def _pursue(self, name: str, slot: _Slot, stored: StoredConnector) -> None:
        """Bring one connector a step nearer to what is wanted of it, and tell how it is."""
        if kind_of(stored.config.get("connector.class")) is None:
            words = f"{stored.config.get('connector.class')} is not one of MirrorMaker 2's connectors; it is left alone"
            self._tell(name, RunState("UNASSIGNED", words, ()))
            return
        if slot.config is not None and slot.config != stored.config:
            self._change(name, slot, stored.config)
        if stored.target_state != "STARTED":
            self._rest(name, slot, stored)
            return
        self._give_up_failed(name, slot)
        if slot.run is None and not slot.ending and time.monotonic() >= slot.retry_at:
            self._start(name, slot, stored.config)
        self._describe(name, slot, stored)

    def _change(self, name: str, slot: _Slot, config: Mapping[str, str]) -> None:
        """Go on with another config: in the same run where no task must notice, else in the next one."""
        try:
            if slot.run is not None and slot.run.adopt(self._worker.connector(name, config)):
                log.info("Connector %s goes on with its new config; no task is restarted", name)
                slot.config = config
                return
        except ConfigError as error:
            log.debug("%s cannot take its new config over: %s", name, error)  # the next run says it
        _retire(slot)
        _forgive(slot)

    def _rest(self, name: str, slot: _Slot, stored: StoredConnector) -> None:
        """A paused connector keeps its tasks, a stopped one has none."""
        _retire(slot)
        _forgive(slot)
        if slot.ending:  # until then it still writes
            return
        if stored.target_state == "STOPPED":
            if stored.task_configs:
                self._configs.put_tasks(name, [])
            self._tell(name, RunState("STOPPED", None, ()))
        else:
            self._tell(name, RunState("PAUSED", None, tuple(("PAUSED", None) for _config in stored.task_configs)))

    def _start(self, name: str, slot: _Slot, config: Mapping[str, str]) -> None:
        slot.config = config
        slot.begun_at = None
        connector = self._worker.connector(name, config)
        if slot.restarts is None:
            slot.restarts = Restarts(self._restart_limits(connector), _FIRST_PAUSE_S)
        try:
            slot.run = ConnectorRun(connector, self._engine)
        except HeliographError as error:
            self._failed(name, slot, str(error))
        except Exception as error:  # noqa: BLE001  (a class of the user's may raise what it likes; the others go on)
            log.debug("%s", traceback.format_exc())
            self._failed(name, slot, f"unexpected {type(error).__name__}: {error}")
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

    def _describe(self, name: str, slot: _Slot, stored: StoredConnector) -> None:
        if slot.run is None:
            if slot.failure is not None:
                self._tell(name, RunState("FAILED", slot.failure, ()))
        elif not slot.run.has_begun:
            word: State = "UNASSIGNED" if slot.failure is None else "RESTARTING"
            self._tell(name, RunState(word, slot.failure, tuple((word, None) for _config in stored.task_configs)))
        else:
            slot.failure = None
            slot.begun_at = slot.begun_at or time.monotonic()
            self._note_tasks(name, slot.run)  # before the states: whoever sees a task running finds its config
            self._tell(name, slot.run.state)
            if self._is_tracking_topics:
                for topic in slot.run.take_topics():
                    self._statuses.put_topic(name, topic)

    def _note_tasks(self, name: str, run: ConnectorRun) -> None:
        wanted = [dict(config) for config in run.task_configs]
        stored = self._configs.connectors.get(name)
        if stored is not None and [dict(config) for config in stored.task_configs] != wanted:
            self._configs.put_tasks(name, wanted)

    def _tell(self, name: str, state: RunState) -> None:
        """Write a state to the status topic where it is news."""
        if self._told.get(name) == state:
            return
        self._statuses.put_all(
            name,
            self._status(state.state, state.trace),
            {number: self._status(*task) for number, task in enumerate(state.tasks)},
        )
        self._told[name] = state

    def _status(self, state: str, trace: str | None) -> Status:
        return Status(state, self.worker_id, self._leads_since or 0, trace, CONNECT_VERSION)


def _retire(slot: _Slot) -> None:
    if slot.run is not None:
        slot.run.stop()
        slot.ending.append(slot.run)
        slot.run = None


def _forgive(slot: _Slot) -> None:
    """What has failed counts no more, and what comes next is tried at once."""
    slot.failure = slot.config = slot.restarts = None
    slot.retry_at = 0.0

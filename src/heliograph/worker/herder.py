"""Owns the connectors of a Connect worker: what the config topic wants is what runs, on the worker that leads.

One thread reconciles: it follows the config topic, starts and stops runs, and tells states to the status topic. REST
threads only write to the stores and wake it. A follower runs nothing; it answers from the stores or is forwarded.

Invariants:
A. A connector has at most one run, and a successor starts only after its predecessor has ended.
B. Whoever does not lead runs nothing: where the lead is lost, every run is asked to end at once.
C. A connector that cannot start harms no other: each begins on threads of its own, and is tried again with back-off.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.config.connector import kind_of
from heliograph.errors import ClusterError, ConfigError
from heliograph.kafka.backoff import Backoff
from heliograph.wire.connect_status import Status
from heliograph.worker.connect_types import CONNECT_VERSION
from heliograph.worker.connector_run import ConnectorRun, RunState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.worker_file import WorkerConfig
    from heliograph.engine.engine import SparkEngine
    from heliograph.worker.config_state import StoredConnector
    from heliograph.worker.connect_stores import ConfigStore, StatusStore
    from heliograph.worker.log_levels import LogLevels

log = logging.getLogger(__name__)

_TICK_S = 0.25
_STOP_TIMEOUT_S = 45.0


@dataclass(slots=True)
class _Slot:
    """One connector's place: its run, those of before that have not ended yet, and when to try again."""

    run: ConnectorRun | None = None
    ending: list[ConnectorRun] = field(default_factory=list)
    failure: str | None = None
    failed_config: Mapping[str, str] | None = None
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=1.0, most_s=60.0))


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
        self._worker_id = worker_id
        self._slots: dict[str, _Slot] = {}
        self._told: dict[str, RunState] = {}
        self._leads_since: int | None = None
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

    def restart(self, name: str, *, only_failed: bool) -> bool:
        """End a connector's run and start another; False where it runs well and only failed ones were meant."""
        with self._lock:
            slot = self._slots.setdefault(name, _Slot())
            state = slot.run.state if slot.run is not None else RunState("FAILED", slot.failure, ())
            has_failed = state.state == "FAILED" or any(task == "FAILED" for task, _trace in state.tasks)
            if only_failed and not has_failed:
                return False
            _retire(slot)
            _forgive(slot)
            self._tell(name, RunState("RESTARTING", None, tuple(("RESTARTING", None) for _task in state.tasks)))
        self._wake.set()
        return True

    def restart_task(self, name: str, task: int) -> None:
        """Start one task again."""
        with self._lock:
            slot = self._slots.get(name)
            if slot is not None and slot.run is not None:
                slot.run.restart_task(task)

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
        if slot.run is not None and (dict(slot.run.config.raw) != dict(stored.config)):
            _retire(slot)
            _forgive(slot)
        if stored.target_state != "STARTED":
            _retire(slot)
            _forgive(slot)
            if not slot.ending:  # until then it still writes
                self._tell(name, _resting(stored))
            return
        self._give_up_failed(slot)
        if slot.run is None and not slot.ending and self._may_start(slot, stored.config):
            self._start(name, slot, stored.config)
        self._describe(name, slot)

    def _may_start(self, slot: _Slot, config: Mapping[str, str]) -> bool:
        return slot.failed_config != config and time.monotonic() >= slot.retry_at

    def _start(self, name: str, slot: _Slot, config: Mapping[str, str]) -> None:
        try:
            slot.run = ConnectorRun(self._worker.connector(name, config), self._engine)
        except (ConfigError, ClusterError) as error:
            # A config that cannot be used is not tried again before it changes.
            slot.failure, slot.failed_config = str(error), dict(config)
            log.error("Connector %s cannot start: %s", name, error)
            return
        slot.failure = slot.failed_config = None
        slot.run.start()

    def _give_up_failed(self, slot: _Slot) -> None:
        if slot.run is None or slot.run.error is None:
            return
        slot.failure = slot.run.error
        if slot.run.is_fenced:  # another instance runs it: only a person can know which one shall
            slot.failed_config = dict(slot.run.config.raw)
        pause_s = slot.backoff.next_pause_s()
        slot.retry_at = time.monotonic() + pause_s
        log.error("Connector %s failed: %s Starting it again in %.0f s.", slot.run.config.name, slot.failure, pause_s)
        _retire(slot)

    def _describe(self, name: str, slot: _Slot) -> None:
        if slot.run is not None:
            self._tell(name, slot.run.state)
            self._note_tasks(name, slot.run)
            for topic in slot.run.topics:
                self._statuses.put_topic(name, topic)
        elif slot.failure is not None:
            self._tell(name, RunState("FAILED", slot.failure, ()))

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
        return Status(state, self._worker_id, self._leads_since or 0, trace, CONNECT_VERSION)


def _retire(slot: _Slot) -> None:
    if slot.run is not None:
        slot.run.stop()
        slot.ending.append(slot.run)
        slot.run = None


def _forgive(slot: _Slot) -> None:
    slot.failure = slot.failed_config = None
    slot.retry_at = 0.0
    slot.backoff.reset()


def _resting(stored: StoredConnector) -> RunState:
    """A paused connector keeps its tasks, a stopped one has none."""
    if stored.target_state == "STOPPED":
        return RunState("STOPPED", None, ())
    return RunState("PAUSED", None, tuple(("PAUSED", None) for _config in stored.task_configs))

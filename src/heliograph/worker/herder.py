"""Owns the connectors of a Connect worker: what the config topic wants is what runs, on the worker that leads.

One thread reconciles: it follows the config topic, starts and stops runs, and tells states to the status topic. REST
threads only write to the stores and wake it. A follower runs nothing; it answers from the stores or is forwarded.

What is told is compared with what the status topic says, not with what was told before: whatever an earlier leader left
there, or wrote late, is put right.

Invariants:
A. A connector has at most one run, and a successor starts only after its predecessor has ended.
B. Whoever does not lead runs nothing: where the lead is lost, every run is asked to end at once. So the lock that
   guards the runs is never held while the cluster is asked.
C. A connector that cannot start harms no other: each begins on threads of its own, and is tried again with back-off.
   All are started and stopped before anything is told.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.connector import kind_of
from heliograph.errors import ClusterError, HeliographError
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
_STOP_PAUSE_S = 0.05


@dataclass(slots=True)
class _Slot:
    """One connector's place: its run, those of before that have not ended yet, and when to try again."""

    run: ConnectorRun | None = None
    ending: list[ConnectorRun] = field(default_factory=list)
    config: Mapping[str, str] | None = None
    failure: str | None = None
    is_hopeless: bool = False  # until its config changes or a person restarts it
    started_at: float = 0.0
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=1.0, most_s=60.0))


class _News(NamedTuple):
    """What is to be told of a connector; `task_configs` is None where its tasks are not known."""

    state: RunState
    task_configs: list[dict[str, str]] | None = None
    topics: tuple[str, ...] = ()


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
        with self._lock:
            self._stopping.set()
            self.lead(None)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while self._has_runs() and time.monotonic() < deadline:
            time.sleep(_STOP_PAUSE_S)

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
            state = RunState("FAILED", slot.failure, ()) if slot.run is None else slot.run.state
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
        while not self._stopping.is_set():
            self._wake.wait(_TICK_S)
            self._wake.clear()
            try:
                self._reconcile()
                self.trouble = None
            except ClusterError as error:
                self._note_trouble(str(error))
            except Exception as error:  # noqa: BLE001  (the worker must not go on as if it had a herder)
                log.debug("%s", traceback.format_exc())
                self._note_trouble(f"unexpected {type(error).__name__}: {error}")

    def _note_trouble(self, words: str) -> None:
        if self.trouble != words and not self._stopping.is_set():
            log.warning("The worker's topics: %s (will be tried again)", words.rstrip("."))
        self.trouble = words

    def _has_runs(self) -> bool:
        with self._lock:
            for slot in self._slots.values():
                slot.ending = [run for run in slot.ending if not run.is_over()]
            return any(slot.run is not None or slot.ending for slot in self._slots.values())

    def _reconcile(self) -> None:
        changes = self._configs.refresh()
        self._statuses.refresh()
        for record in changes.log_levels:
            self._log_levels.set(record.namespace, record.level)
        stored = self._configs.connectors
        with self._lock:
            if self._leads_since is None:
                return
            news = self._advance(stored)
            gone = [name for name in self._statuses.names() if name not in stored and name not in self._slots]
        for name, told in news.items():
            self._publish(name, told, stored[name])
        for name in gone:
            self._statuses.delete_connector(name)

    def _advance(self, stored: Mapping[str, StoredConnector]) -> dict[str, _News]:
        """Bring every connector a step nearer to what is wanted of it; what there is to tell."""
        news = {}
        for name in [*stored, *(name for name in self._slots if name not in stored)]:
            slot = self._slots.setdefault(name, _Slot())
            slot.ending = [run for run in slot.ending if not run.is_over()]
            if name in stored:
                told = self._pursue(name, slot, stored[name])
                if told is not None:
                    news[name] = told
                continue
            _retire(slot)
            if not slot.ending:
                del self._slots[name]
        return news

    def _pursue(self, name: str, slot: _Slot, stored: StoredConnector) -> _News | None:
        if kind_of(stored.config.get("connector.class")) is None:
            words = f"{stored.config.get('connector.class')} is not one of MirrorMaker 2's connectors; it is left alone"
            return _News(RunState("UNASSIGNED", words, ()))
        if slot.config != stored.config:
            _retire(slot)
            _forgive(slot)
            slot.config = dict(stored.config)
        if stored.target_state != "STARTED":
            _retire(slot)
            _forgive(slot)
            return None if slot.ending else _News(_resting(stored))  # until it has ended it still writes
        self._give_up_failed(slot)
        if slot.run is None and not slot.ending and not slot.is_hopeless and time.monotonic() >= slot.retry_at:
            self._start(name, slot, stored.config)
        return _describe(slot)

    def _start(self, name: str, slot: _Slot, config: Mapping[str, str]) -> None:
        slot.started_at = time.monotonic()
        try:
            slot.run = ConnectorRun(self._worker.connector(name, config), self._engine)
        except HeliographError as error:
            slot.failure = str(error)
        except Exception as error:  # noqa: BLE001  (a class of the user's may raise anything)
            log.debug("%s", traceback.format_exc())
            slot.failure = f"unexpected {type(error).__name__}: {error}"
        if slot.run is None:
            slot.is_hopeless = True
            log.error("Connector %s cannot start: %s", name, slot.failure)
            return
        slot.run.start()

    def _give_up_failed(self, slot: _Slot) -> None:
        if slot.run is None or slot.run.error is None:
            return
        if time.monotonic() - slot.started_at > slot.backoff.most_s:
            slot.backoff.reset()
        slot.failure = slot.run.error
        slot.is_hopeless = slot.run.is_fenced  # another instance runs it: only a person can know which one shall
        pause_s = slot.backoff.next_pause_s()
        slot.retry_at = time.monotonic() + pause_s
        log.error("Connector %s failed: %s Starting it again in %.0f s.", slot.run.config.name, slot.failure, pause_s)
        _retire(slot)

    # --- telling ------------------------------------------------------------------------------------------------------

    def _publish(self, name: str, news: _News, stored: StoredConnector) -> None:
        self._tell(name, news.state)
        if news.task_configs is not None and [dict(config) for config in stored.task_configs] != news.task_configs:
            self._configs.put_tasks(name, news.task_configs)
        for topic in news.topics:
            self._statuses.put_topic(name, topic)

    def _tell(self, name: str, state: RunState) -> None:
        """Write a state to the status topic unless it is there."""
        with self._lock:
            generation = self._leads_since
        if generation is None:
            return
        own, *tasks = (
            Status(word, self._worker_id, generation, trace, CONNECT_VERSION)
            for word, trace in ((state.state, state.trace), *state.tasks)
        )
        numbered = dict(enumerate(tasks))
        if (self._statuses.connector(name), self._statuses.tasks(name)) != (own, numbered):
            self._statuses.put_all(name, own, numbered)


def _describe(slot: _Slot) -> _News | None:
    if slot.run is not None and slot.run.has_begun:
        slot.failure = None
        return _News(slot.run.state, [dict(config) for config in slot.run.task_configs], slot.run.topics)
    if slot.failure is not None:  # also while it is tried again: it has not come further yet
        return _News(RunState("FAILED", slot.failure, ()))
    return None if slot.run is None else _News(slot.run.state)


def _retire(slot: _Slot) -> None:
    if slot.run is not None:
        slot.run.stop()
        slot.ending.append(slot.run)
        slot.run = None


def _forgive(slot: _Slot) -> None:
    slot.failure, slot.is_hopeless, slot.retry_at = None, False, 0.0
    slot.backoff.reset()


def _resting(stored: StoredConnector) -> RunState:
    """A paused connector keeps its tasks, a stopped one has none."""
    if stored.target_state == "STOPPED":
        return RunState("STOPPED", None, ())
    return RunState("PAUSED", None, tuple(("PAUSED", None) for _config in stored.task_configs))

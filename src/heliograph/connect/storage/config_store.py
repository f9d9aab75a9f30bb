"""The topics a Connect worker keeps its state in: configs and statuses, written and followed.

Both stores hold what they have read in memory; `refresh` reads what has come since. Whoever writes sees it at once.
Records of Java workers are read as they are; keys we do not know are left alone.

Invariants:
A. A store may be used from several threads; one of them at a time talks to the cluster.
B. Configs are written by who leads (`leader_writes`), over all that was written before its lead; log levels by anyone.
C. What a record asks for (a restart, a log level) is given out once, and only if it came after `load`.


What the config topic says once it is read: connectors, what is wanted of them, and the configs of their tasks.

Invariants:
A. A connector's task configs change only with a commit record, all at once. Where some of them are missing (compaction
   may have taken them), the old ones stay and `is_consistent` is false until the next complete set.
B. A connector that nobody gave a target state is wanted STARTED; a target state may be written before its connector.
C. Of session keys the last two count: who has not read the newest one yet signs with the one before.

The key with which workers sign what they pass on to the leader, in Connect's own place: the config topic.

Only a worker whose REST knows its callers needs one; for any other nothing is written. Who leads makes a key where
there is none, and a new one when `inter.worker.key.ttl.ms` is over. Whoever may read the config topic may sign: keep it
to the workers, as Connect asks for too.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from heliograph.config.keys import worker_keys
from heliograph.errors import ConfigError
from heliograph.kafka.request_options import READ_COMMITTED, READ_UNCOMMITTED
from heliograph.kafka.topics.compacted_topic import StoredTopic
from heliograph.wire.records.connect_configs import (
    CommitRecord,
    ConnectorConfigRecord,
    LoggerRecord,
    RestartRecord,
    SessionKeyRecord,
    TargetStateRecord,
    TaskConfigRecord,
    TaskCountRecord,
    decode_config,
    encode_config,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.connect.storage.leader_writes import LeaderWrites
    from heliograph.kafka.admin.admin import Admin
    from heliograph.wire.records.connect_configs import Config, ConfigRecord, TargetState


V = TypeVar("V")


class StoredConnector(NamedTuple):
    """One connector as it is stored; `secrets` as in its record."""

    config: Config
    target_state: TargetState = "STARTED"
    task_configs: tuple[Config, ...] = ()
    is_consistent: bool = True
    fenced_tasks: int | None = None
    secrets: tuple[str, ...] | None = None


@dataclass(slots=True)
class ConfigChanges:
    """Names of connectors of which something was written, and what somebody asked for."""

    configs: set[str] = field(default_factory=set)
    target_states: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    log_levels: list[LoggerRecord] = field(default_factory=list)
    restarts: list[RestartRecord] = field(default_factory=list)


class ConfigState:
    """Takes records in their order."""

    def __init__(self) -> None:
        self._configs: dict[str, Config] = {}
        self._secrets: dict[str, tuple[str, ...]] = {}
        self._states: dict[str, TargetState] = {}
        self._tasks: dict[str, tuple[Config, ...]] = {}
        self._proposed: dict[str, dict[int, Config]] = {}
        self._inconsistent: set[str] = set()
        self._counts: dict[str, int] = {}
        self.session_keys: tuple[SessionKeyRecord, ...] = ()

    @property
    def connectors(self) -> dict[str, StoredConnector]:
        """Every connector there is, by name."""
        return {
            name: StoredConnector(
                config,
                self._states.get(name, "STARTED"),
                self._tasks.get(name, ()),
                name not in self._inconsistent,
                self._counts.get(name),
                self._secrets.get(name),
            )
            for name, config in sorted(self._configs.items())
        }

    def take(self, record: ConfigRecord, changes: ConfigChanges) -> None:
        """Learn from a record, and note what it changed."""
        match record:
            case ConnectorConfigRecord(name, config, secrets):
                self._take_config(name, config)
                _note(self._secrets, name, secrets)
                changes.configs.add(name)
            case TargetStateRecord(name, state):
                _note(self._states, name, state)
                changes.target_states.add(name)
            case TaskConfigRecord(name, task, config):
                self._proposed.setdefault(name, {})[task] = config
            case CommitRecord(name, tasks):
                self._commit(name, tasks)
                changes.tasks.add(name)
            case TaskCountRecord(name, count):
                _note(self._counts, name, count)
            case LoggerRecord():
                changes.log_levels.append(record)
            case RestartRecord():
                changes.restarts.append(record)
            case SessionKeyRecord():
                self.session_keys = (record, *self.session_keys[:1])

    def _take_config(self, name: str, config: Config | None) -> None:
        if config is not None:
            self._configs[name] = config
            return
        for known in (self._configs, self._tasks, self._proposed):
            known.pop(name, None)
        self._inconsistent.discard(name)

    def _commit(self, name: str, tasks: int) -> None:
        if name not in self._configs:  # it was deleted, and compaction has left no more than this of it
            self._proposed.pop(name, None)
            return
        proposed = self._proposed.get(name, {})
        if any(task not in proposed for task in range(tasks)):
            self._inconsistent.add(name)
            return
        # More than were committed may be there: of a larger number before, whose records compaction has kept.
        self._tasks[name] = tuple(proposed[task] for task in range(tasks))
        self._proposed.pop(name, None)
        self._inconsistent.discard(name)


def _note(known: dict[str, V], name: str, value: V | None) -> None:
    """None means that there is nothing to know any more."""
    known.pop(name, None)
    if value is not None:
        known[name] = value


class ConfigStore:
    """Connectors, their tasks and what is wanted of them, in `config.storage.topic`."""

    def __init__(self, admin: Admin, topic: str, writes: LeaderWrites) -> None:
        self._topic = StoredTopic(admin, topic)
        self._name = topic
        self._writes = writes
        self._has_read_all = False
        self._topic_recreations = 0
        self._state = ConfigState()
        self._log_levels: list[LoggerRecord] = []
        self._restarts: list[RestartRecord] = []
        self._lock = threading.RLock()

    @property
    def connectors(self) -> dict[str, StoredConnector]:
        """Every connector, as last read."""
        with self._lock:
            return self._state.connectors

    @property
    def session_keys(self) -> tuple[SessionKeyRecord, ...]:
        """The keys with which workers sign, the newest first; without the lock, so that nobody waits for a broker."""
        return self._state.session_keys

    def load(self) -> None:
        """Read the topic for the first time; what was asked for before (restarts, log levels) is over.

        Raises ConfigError where the topic has more than one partition: their order would not be known.
        """
        with self._lock:
            count = self._topic.partition_count
            if count > 1:
                raise ConfigError(
                    f"Topic '{self._name}' supplied via the 'config.storage.topic' property is required to have a"
                    " single partition in order to guarantee consistency of connector configurations, but found"
                    f" {count} partitions."
                )
            self.refresh()
            self.take_log_levels()
            self.take_restarts()

    def claim(self) -> None:
        """Begin to write as who leads, if that was not done yet; raises ConnectError where we do not lead."""
        with self._lock:
            if self._writes.claim():
                self._has_read_all = False
            if not self._has_read_all:
                self.refresh()  # what the leader before us wrote last
                self._has_read_all = True

    def check_lead(self) -> None:
        """Raise ConnectError where the lead that was claimed is over; nothing is claimed anew."""
        self._writes.check()

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            self._writes.close()

    def refresh(self) -> ConfigChanges:
        """Read what has come since; what it changed."""
        return self._read(READ_COMMITTED)

    def _read(self, isolation: int) -> ConfigChanges:
        changes = ConfigChanges()
        with self._lock:
            records = self._topic.read_new(isolation)
            if self._topic.recreations != self._topic_recreations:
                changes.configs |= set(self._state.connectors)
                self._topic_recreations, self._state = self._topic.recreations, ConfigState()
            for record in records:
                decoded = decode_config(record.key, record.value)
                if decoded is not None:
                    self._state.take(decoded, changes)
            self._log_levels += changes.log_levels
            self._restarts += changes.restarts
        return changes

    def take_log_levels(self) -> list[LoggerRecord]:
        """Log levels that were asked for since the last call, whoever read them."""
        with self._lock:
            taken, self._log_levels = self._log_levels, []
        return taken

    def take_restarts(self) -> list[RestartRecord]:
        """Restarts that were asked for since the last call, whoever read them."""
        with self._lock:
            taken, self._restarts = self._restarts, []
        return taken

    def put_connector(
        self,
        name: str,
        config: Config,
        target_state: TargetState | None = None,
        secrets: tuple[str, ...] | None = None,
    ) -> ConfigChanges:
        """Create or change a connector; its target state, where given, is written first."""
        state = [] if target_state is None else [TargetStateRecord(name, target_state)]
        return self._write([*state, ConnectorConfigRecord(name, config, secrets)])

    def delete_connector(self, name: str) -> ConfigChanges:
        """Forget a connector and what was wanted of it."""
        return self._write([ConnectorConfigRecord(name, None), TargetStateRecord(name, None)])

    def put_tasks(self, name: str, configs: Sequence[Config]) -> ConfigChanges:
        """Give a connector its tasks; they count all at once."""
        tasks = [TaskConfigRecord(name, number, config) for number, config in enumerate(configs)]
        return self._write([*tasks, CommitRecord(name, len(configs))])

    def put_target_state(self, name: str, state: TargetState) -> ConfigChanges:
        """Say what is wanted of a connector."""
        return self._write([TargetStateRecord(name, state)])

    def put_log_level(self, namespace: str, level: str) -> ConfigChanges:
        """Give a logger a level on every worker; any of them may."""
        with self._lock:
            self._topic.write([encode_config(LoggerRecord(namespace, level))])
            return self.refresh()

    def put_session_key(self, key: bytes, created_ms: int) -> ConfigChanges:
        """Give all workers a new key to sign with."""
        return self._write([SessionKeyRecord(key, created_ms)])

    def _write(self, records: Sequence[ConfigRecord]) -> ConfigChanges:
        with self._lock:
            self.claim()
            self._topic.write((encode_config(record) for record in records), self._writes.put)
            return self._read(READ_UNCOMMITTED)  # a transaction is decided a moment before its records are shown


_KEY_BYTES = 32


class SessionKeys:
    """Keeps the group's key fresh; used by who leads."""

    def __init__(self, configs: ConfigStore, worker: WorkerConfig) -> None:
        self._configs = configs
        self._is_needed = worker.rest.knows_callers
        self._life_ms = worker.settings[worker_keys.INTER_WORKER_KEY_TTL_MS]

    def keep_fresh(self) -> None:
        """Write a key where there is none, or none that is young enough."""
        if not self._is_needed:
            return
        now_ms = int(time.time() * 1000)
        newest = next(iter(self._configs.session_keys), None)
        if newest is None or not now_ms - self._life_ms < newest.created_ms <= now_ms + self._life_ms:
            self._configs.put_session_key(secrets.token_bytes(_KEY_BYTES), now_ms)

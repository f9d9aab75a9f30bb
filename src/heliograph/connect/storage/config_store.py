"""The config topic of a Connect worker: connectors, their target states and tasks, and the group's session keys.

The topic is Connect's own (`config.storage.topic`), and so is what its records mean. Records of Java workers are read
as they are; records with unknown keys are ignored. `refresh` reads the records written since the last call; a writer
reads its own records back at once.

Invariants:
A. A store may be used from several threads; one of them at a time sends requests to the cluster. Reading `connectors`
   and `session_keys` takes no lock: they are immutable snapshots, replaced when records have been read.
B. Configs are written by the leader (`leader_writes`), after it has read everything that was written before its lead;
   log levels by any worker.
C. A request in a record (a restart, a log level) is returned once, and only if it was written after `load`.
D. A connector's task configs change only with a commit record, all at once. If some of them are missing (compaction
   may have removed them), the old ones stay and `is_consistent` is false until the next complete set.
E. A connector without a target state is STARTED; a target state may be written before its connector.
F. The last two session keys are valid: a worker that has not read the newest one yet signs with the one before.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from types import MappingProxyType
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
    from collections.abc import Mapping, Sequence

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.connect.storage.leader_writes import LeaderWrites
    from heliograph.kafka.admin.admin import Admin
    from heliograph.wire.records.connect_configs import Config, ConfigRecord, TargetState


_KEY_BYTES = 32
V = TypeVar("V")


class StoredConnector(NamedTuple):
    """One connector as it is stored; `secrets` are the patterns of the access rules for the writer of its config."""

    config: Config
    target_state: TargetState = "STARTED"
    task_configs: tuple[Config, ...] = ()
    is_consistent: bool = True
    fenced_tasks: int | None = None
    secrets: tuple[str, ...] | None = None


@dataclass(slots=True)
class ConfigChanges:
    """The connectors that records have changed, by what has changed, and the requests in records."""

    configs: set[str] = field(default_factory=set)
    target_states: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    log_levels: list[LoggerRecord] = field(default_factory=list)
    restarts: list[RestartRecord] = field(default_factory=list)


class ConfigState:
    """The state of the config topic after the records so far."""

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
        """Every connector, by name."""
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
        """Apply a record, and note what it changed."""
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
        if name not in self._configs:  # it was deleted, and compaction has left only this record of it
            self._proposed.pop(name, None)
            return
        proposed = self._proposed.get(name, {})
        if any(task not in proposed for task in range(tasks)):
            self._inconsistent.add(name)
            return
        # There may be more than were committed: of a larger number before, whose records compaction has kept.
        self._tasks[name] = tuple(proposed[task] for task in range(tasks))
        self._proposed.pop(name, None)
        self._inconsistent.discard(name)


def _note(known: dict[str, V], name: str, value: V | None) -> None:
    """Set a value; None removes it."""
    known.pop(name, None)
    if value is not None:
        known[name] = value


class _Snapshot(NamedTuple):
    """The state after the last read, shared with every reader."""

    connectors: Mapping[str, StoredConnector] = MappingProxyType({})
    session_keys: tuple[SessionKeyRecord, ...] = ()


class ConfigStore:
    """Connectors, their tasks and target states, in `config.storage.topic`."""

    def __init__(self, admin: Admin, topic: str, writes: LeaderWrites) -> None:
        self._topic = StoredTopic(admin, topic)
        self._name = topic
        self._writes = writes
        self._has_read_all = False
        self._topic_recreations = 0
        self._state = ConfigState()
        self._snapshot = _Snapshot()
        self._log_levels: list[LoggerRecord] = []
        self._restarts: list[RestartRecord] = []
        self._lock = threading.RLock()

    @property
    def connectors(self) -> Mapping[str, StoredConnector]:
        """Every connector by name, as last read; never waits for a broker."""
        return self._snapshot.connectors

    @property
    def session_keys(self) -> tuple[SessionKeyRecord, ...]:
        """The keys with which workers sign, the newest first; never waits for a broker."""
        return self._snapshot.session_keys

    def load(self) -> None:
        """Read the topic for the first time; earlier requests in it (restarts, log levels) are dropped.

        Raises ConfigError if the topic has more than one partition: the order of records would be unknown.
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
        """Start to write as the leader, if that was not done yet; raise ConnectError if we do not lead."""
        with self._lock:
            if self._writes.claim():
                self._has_read_all = False
            if not self._has_read_all:
                self.refresh()  # the last writes of the leader before us
                self._has_read_all = True

    def check_lead(self) -> None:
        """Raise ConnectError if the lead that was claimed is over; claim no new one."""
        self._writes.check()

    def close(self) -> None:
        """Stop writing."""
        with self._lock:
            self._writes.close()

    def refresh(self) -> ConfigChanges:
        """Read the records written since the last call; return what they changed."""
        return self._read(READ_COMMITTED)

    def _read(self, isolation: int) -> ConfigChanges:
        changes = ConfigChanges()
        with self._lock:
            records = self._topic.read_new(isolation)
            is_recreated = self._topic.recreations != self._topic_recreations
            if is_recreated:
                changes.configs |= set(self._snapshot.connectors)
                self._topic_recreations, self._state = self._topic.recreations, ConfigState()
            for record in records:
                decoded = decode_config(record.key, record.value)
                if decoded is not None:
                    self._state.take(decoded, changes)
            if records or is_recreated:
                connectors = MappingProxyType(self._state.connectors)
                self._snapshot = _Snapshot(connectors, self._state.session_keys)
            self._log_levels += changes.log_levels
            self._restarts += changes.restarts
        return changes

    def take_log_levels(self) -> list[LoggerRecord]:
        """Return the log levels requested since the last call."""
        with self._lock:
            taken, self._log_levels = self._log_levels, []
        return taken

    def take_restarts(self) -> list[RestartRecord]:
        """Return the restarts requested since the last call."""
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
        """Create or change a connector; its target state, if given, is written first."""
        state = [] if target_state is None else [TargetStateRecord(name, target_state)]
        return self._write([*state, ConnectorConfigRecord(name, config, secrets)])

    def delete_connector(self, name: str) -> ConfigChanges:
        """Delete a connector and its target state."""
        return self._write([ConnectorConfigRecord(name, None), TargetStateRecord(name, None)])

    def put_tasks(self, name: str, configs: Sequence[Config]) -> ConfigChanges:
        """Write the task configs of a connector; they take effect all at once."""
        tasks = [TaskConfigRecord(name, number, config) for number, config in enumerate(configs)]
        return self._write([*tasks, CommitRecord(name, len(configs))])

    def put_target_state(self, name: str, state: TargetState) -> ConfigChanges:
        """Write the target state of a connector."""
        return self._write([TargetStateRecord(name, state)])

    def put_log_level(self, namespace: str, level: str) -> ConfigChanges:
        """Set the level of a logger on every worker; any of them may."""
        with self._lock:
            self._topic.write([encode_config(LoggerRecord(namespace, level))])
            return self.refresh()

    def put_session_key(self, key: bytes, created_ms: int) -> ConfigChanges:
        """Write a new key for all workers to sign with."""
        return self._write([SessionKeyRecord(key, created_ms)])

    def _write(self, records: Sequence[ConfigRecord]) -> ConfigChanges:
        with self._lock:
            self.claim()
            self._topic.write((encode_config(record) for record in records), self._writes.put)
            return self._read(READ_UNCOMMITTED)  # a transaction is committed a moment before its records become visible


class SessionKeys:
    """Keeps a valid key in the config topic, with which workers sign the requests that they forward to the leader.

    Only workers whose REST authenticates callers need one. The leader writes a key if there is none, and a new one
    when `inter.worker.key.ttl.ms` has passed. Anyone who can read the config topic can sign; restrict it to workers.
    """

    def __init__(self, configs: ConfigStore, worker: WorkerConfig) -> None:
        self._configs = configs
        self._is_needed = worker.rest.knows_callers
        self._life_ms = worker.settings[worker_keys.INTER_WORKER_KEY_TTL_MS]

    def keep_fresh(self) -> None:
        """Write a key if there is none, or only an old one."""
        if not self._is_needed:
            return
        now_ms = int(time.time() * 1000)
        newest = next(iter(self._configs.session_keys), None)
        if newest is None or not now_ms - self._life_ms < newest.created_ms <= now_ms + self._life_ms:
            self._configs.put_session_key(secrets.token_bytes(_KEY_BYTES), now_ms)

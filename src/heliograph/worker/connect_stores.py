"""The topics a Connect worker keeps its state in: configs and statuses, written and followed.

Both stores hold what they have read in memory; `refresh` reads what has come since. Whoever writes sees it at once.
Records of Java workers are read as they are; keys we do not know are left alone.

Invariants:
A. A store may be used from several threads; one of them at a time talks to the cluster.
B. Configs are written by who leads (`leader_writes`), over all that was written before its lead; log levels by anyone.
C. What a record asks for (a restart, a log level) is given out once, and only if it came after `load`.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from heliograph.errors import ClusterError, ConfigError
from heliograph.kafka.admin import READ_COMMITTED, READ_UNCOMMITTED
from heliograph.kafka.log_ends import LATEST
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.record_writer import write_records
from heliograph.kafka.topic_log import LogTail
from heliograph.model import TopicPartition
from heliograph.wire.connect_configs import (
    CommitRecord,
    ConnectorConfigRecord,
    LoggerRecord,
    SessionKeyRecord,
    TargetStateRecord,
    TaskConfigRecord,
    decode_config,
    encode_config,
)
from heliograph.wire.connect_offsets import partition_for_key
from heliograph.wire.connect_status import (
    ConnectorStatusRecord,
    TaskStatusRecord,
    TopicStatusRecord,
    decode_status,
    encode_status,
)
from heliograph.worker.config_state import ConfigChanges, ConfigState, StoredConnector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from heliograph.kafka.admin import Admin
    from heliograph.wire.connect_configs import Config, ConfigRecord, RestartRecord, TargetState
    from heliograph.wire.connect_status import Status, StatusRecord
    from heliograph.wire.records import LogRecord
    from heliograph.worker.leader_writes import LeaderWrites

    Put = Callable[[Admin, TopicPartition, list[OwnRecord]], None]

K = TypeVar("K")
V = TypeVar("V")


class StoredTopic:
    """A small compacted topic: written by key, read from its beginning and then on."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self._admin = admin
        self._topic = topic
        self._tails: list[LogTail] = []
        self._unread: list[LogRecord] = []

    @property
    def restarts(self) -> int:
        """How often the topic was found to have been deleted and created again."""
        return sum(tail.restarts for tail in self._tails)

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has; raises ClusterError where it is not there."""
        if not self._tails:
            count = self._admin.view([self._topic]).partition_counts.get(self._topic)
            if count is None:
                raise ClusterError(f"The topic {self._topic} is not on the worker's cluster any more; create it again.")
            self._tails = [LogTail(self._admin, TopicPartition(self._topic, p)) for p in range(count)]
        return len(self._tails)

    def write(self, records: Iterable[tuple[bytes, bytes | None]], put: Put = write_records) -> None:
        """Write records, those of a partition in order."""
        by_partition: dict[int, list[OwnRecord]] = {}
        for key, value in records:
            partition = partition_for_key(key, self.partition_count)
            by_partition.setdefault(partition, []).append(OwnRecord(key, value))
        for partition, own in by_partition.items():
            put(self._admin, TopicPartition(self._topic, partition), own)

    def read_new(self, isolation: int = READ_COMMITTED) -> list[LogRecord]:
        """What has come since the last call. Mostly nothing has: that takes one question for all partitions.

        Up to the first open transaction, be it of a worker that died in it; READ_UNCOMMITTED waits for its end.
        """
        tps = [TopicPartition(self._topic, p) for p in range(self.partition_count)]
        ends = self._admin.list_offsets(tps, LATEST, isolation)
        for tp in tps:  # what was read before another partition could not be is kept for the next call
            self._unread.extend(self._tails[tp.partition].read_to(ends[tp]))
        found, self._unread = self._unread, []
        return found


class ConfigStore:
    """Connectors, their tasks and what is wanted of them, in `config.storage.topic`."""

    def __init__(self, admin: Admin, topic: str, writes: LeaderWrites) -> None:
        self._topic = StoredTopic(admin, topic)
        self._name = topic
        self._writes = writes
        self._has_read_all = False
        self._topic_restarts = 0
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
            if self._topic.restarts != self._topic_restarts:
                changes.configs |= set(self._state.connectors)
                self._topic_restarts, self._state = self._topic.restarts, ConfigState()
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


class StatusStore:
    """What connectors and tasks are doing and which topics they used, in `status.storage.topic`."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self._topic = StoredTopic(admin, topic)
        self._restarts = 0
        self._connectors: dict[str, Status] = {}
        self._tasks: dict[str, dict[int, Status]] = {}
        self._topics: dict[str, dict[str, int]] = {}
        self._lock = threading.RLock()

    def load(self) -> None:
        """Read the topic for the first time."""
        self.refresh()

    def connector(self, name: str) -> Status | None:
        """What was last told of a connector; None where nothing was."""
        with self._lock:
            return self._connectors.get(name)

    def tasks(self, name: str) -> dict[int, Status]:
        """What was last told of a connector's tasks, by number."""
        with self._lock:
            return dict(sorted(self._tasks.get(name, {}).items()))

    def topics(self, name: str) -> list[str]:
        """The topics a connector has used, sorted."""
        with self._lock:
            return sorted(self._topics.get(name, ()))

    def names(self) -> list[str]:
        """Every connector of which anything is told, sorted; also of those that are gone."""
        with self._lock:
            with_parts = [name for parts in (self._tasks, self._topics) for name, told in parts.items() if told]
            return sorted({*self._connectors, *with_parts})

    def refresh(self) -> None:
        """Read what has come since."""
        with self._lock:
            records = self._topic.read_new()
            if self._topic.restarts != self._restarts:
                self._restarts = self._topic.restarts
                for known in (self._connectors, self._tasks, self._topics):
                    known.clear()
            for record in records:
                decoded = decode_status(record.key, record.value)
                if decoded is not None:
                    self._take(decoded)

    def put_connector(self, name: str, status: Status) -> None:
        """Tell what a connector is doing."""
        self._write([ConnectorStatusRecord(name, status)])

    def put_task(self, name: str, task: int, status: Status) -> None:
        """Tell what a task is doing."""
        self._write([TaskStatusRecord(name, task, status)])

    def put_all(self, name: str, status: Status | None, tasks: dict[int, Status]) -> None:
        """Tell of a connector and its tasks at once; tasks that are not given are forgotten."""
        gone = [TaskStatusRecord(name, task, None) for task in self.tasks(name) if task not in tasks]
        told = [TaskStatusRecord(name, task, status) for task, status in tasks.items()]
        own = [] if status is None else [ConnectorStatusRecord(name, status)]
        self._write([*own, *told, *gone])

    def put_topic(self, name: str, topic: str, task: int = 0) -> None:
        """Note that a connector uses a topic, unless that is known."""
        with self._lock:
            is_known = topic in self._topics.get(name, ())
        if not is_known:
            self._write([TopicStatusRecord(name, topic, task, int(time.time() * 1000))])

    def delete_topics(self, name: str) -> None:
        """Forget which topics a connector has used."""
        self._write([TopicStatusRecord(name, topic) for topic in self.topics(name)])

    def delete_task(self, name: str, task: int) -> None:
        """Forget a task."""
        self._write([TaskStatusRecord(name, task, None)])

    def delete_connector(self, name: str) -> None:
        """Forget a connector, its tasks and its topics."""
        tasks = [TaskStatusRecord(name, task, None) for task in self.tasks(name)]
        topics = [TopicStatusRecord(name, topic) for topic in self.topics(name)]
        self._write([ConnectorStatusRecord(name, None), *tasks, *topics])

    def _write(self, records: Sequence[StatusRecord]) -> None:
        with self._lock:
            self._topic.write(encode_status(record) for record in records)
            for record in records:  # read again later, behind what others wrote before: the outcome is the same
                self._take(record)

    def _take(self, record: StatusRecord) -> None:
        match record:
            case ConnectorStatusRecord(name, status):
                _note(self._connectors, name, status)
            case TaskStatusRecord(name, task, status):
                _note(self._tasks.setdefault(name, {}), task, status)
            case TopicStatusRecord(name, topic, _task, discovered_ms):
                _note(self._topics.setdefault(name, {}), topic, discovered_ms)


def _note(known: dict[K, V], key: K, value: V | None) -> None:
    """None means that there is nothing to know any more."""
    known.pop(key, None)
    if value is not None:
        known[key] = value

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

from heliograph.kafka.topics.compacted_topic import StoredTopic
from heliograph.wire.records.connect_status import (
    ConnectorStatusRecord,
    TaskStatusRecord,
    TopicStatusRecord,
    decode_status,
    encode_status,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.kafka.admin.admin import Admin
    from heliograph.wire.records.connect_status import Status, StatusRecord


K = TypeVar("K")
V = TypeVar("V")


class StatusStore:
    """What connectors and tasks are doing and which topics they used, in `status.storage.topic`."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self._topic = StoredTopic(admin, topic)
        self._recreations = 0
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
            with_parts = [name for parts in (self._tasks, self._topics) for name, reported in parts.items() if reported]
            return sorted({*self._connectors, *with_parts})

    def refresh(self) -> None:
        """Read what has come since."""
        with self._lock:
            records = self._topic.read_new()
            if self._topic.recreations != self._recreations:
                self._recreations = self._topic.recreations
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
        reported = [TaskStatusRecord(name, task, status) for task, status in tasks.items()]
        own = [] if status is None else [ConnectorStatusRecord(name, status)]
        self._write([*own, *reported, *gone])

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

"""The status topic of a Connect worker: states of connectors and tasks, and the topics that connectors have used.

The topic is Connect's own (`status.storage.topic`). Records of Java workers are read as they are; records with unknown
keys are ignored. `refresh` reads the records written since the last call; a writer sees its own records at once.

Invariants:
A. A store may be used from several threads; one of them at a time sends requests to the cluster.
B. Reads take no lock: what is known of a connector is an immutable value, replaced when records are read or written.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from heliograph.kafka.topics.compacted_topic import StoredTopic
from heliograph.wire.records.connect_status import (
    ConnectorStatusRecord,
    TaskStatusRecord,
    TopicStatusRecord,
    decode_status,
    encode_status,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from heliograph.kafka.admin.admin import Admin
    from heliograph.wire.records.connect_status import Status, StatusRecord


K = TypeVar("K")
V = TypeVar("V")


class StoredStatus(NamedTuple):
    """Everything that the topic has about one connector; `topics` are the topics it used, and since when."""

    connector: Status | None = None
    tasks: Mapping[int, Status] = {}
    topics: Mapping[str, int] = {}


_NOTHING = StoredStatus()


class StatusStore:
    """States of connectors and tasks, and the topics that connectors have used, in `status.storage.topic`."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self._topic = StoredTopic(admin, topic)
        self._topic_recreations = 0
        self._statuses: Mapping[str, StoredStatus] = {}  # replaced, never changed
        self._lock = threading.RLock()

    def load(self) -> None:
        """Read the topic for the first time."""
        self.refresh()

    # --- reading, without a lock --------------------------------------------------------------------------------------

    def stored(self, name: str) -> StoredStatus:
        """Return everything known of a connector, of one moment."""
        return self._statuses.get(name, _NOTHING)

    def connector(self, name: str) -> Status | None:
        """Return the last status of a connector; None if there is none."""
        return self.stored(name).connector

    def tasks(self, name: str) -> dict[int, Status]:
        """Return the last status of each task of a connector, by number."""
        return dict(sorted(self.stored(name).tasks.items()))

    def topics(self, name: str) -> list[str]:
        """Return the topics a connector has used, sorted."""
        return sorted(self.stored(name).topics)

    def names(self) -> list[str]:
        """Return every connector that has a record, sorted; deleted ones may have some left."""
        return sorted(self._statuses)

    # --- the topic ----------------------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Read the records written since the last call; return whether there were any."""
        with self._lock:
            records = self._topic.read_new()
            is_recreated = self._topic.recreations != self._topic_recreations
            self._topic_recreations = self._topic.recreations
            decoded = [decode_status(record.key, record.value) for record in records]
            known = {} if is_recreated else self._statuses
            if decoded or is_recreated:
                self._statuses = _updated(known, [record for record in decoded if record is not None])
            return bool(decoded) or is_recreated

    def put_connector(self, name: str, status: Status) -> None:
        """Write the status of a connector."""
        self._write([ConnectorStatusRecord(name, status)])

    def put_task(self, name: str, task: int, status: Status) -> None:
        """Write the status of a task."""
        self._write([TaskStatusRecord(name, task, status)])

    def put_all(self, name: str, status: Status | None, tasks: dict[int, Status]) -> None:
        """Write the status of a connector and its tasks at once; other tasks are deleted."""
        deleted = [TaskStatusRecord(name, task, None) for task in self.tasks(name) if task not in tasks]
        reported = [TaskStatusRecord(name, task, status) for task, status in tasks.items()]
        own = [] if status is None else [ConnectorStatusRecord(name, status)]
        self._write([*own, *reported, *deleted])

    def put_topic(self, name: str, topic: str, task: int = 0) -> None:
        """Write that a connector uses a topic, unless that is known."""
        if topic not in self.stored(name).topics:
            self._write([TopicStatusRecord(name, topic, task, int(time.time() * 1000))])

    def delete_topics(self, name: str) -> None:
        """Delete the records of the topics that a connector has used."""
        self._write([TopicStatusRecord(name, topic) for topic in self.topics(name)])

    def delete_task(self, name: str, task: int) -> None:
        """Delete the status of a task."""
        self._write([TaskStatusRecord(name, task, None)])

    def delete_connector(self, name: str) -> None:
        """Delete the records of a connector, its tasks and its topics."""
        tasks = [TaskStatusRecord(name, task, None) for task in self.tasks(name)]
        topics = [TopicStatusRecord(name, topic) for topic in self.topics(name)]
        self._write([ConnectorStatusRecord(name, None), *tasks, *topics])

    def _write(self, records: Sequence[StatusRecord]) -> None:
        with self._lock:
            self._topic.write(encode_status(record) for record in records)
            # Read again later, after records that others wrote before: the result is the same.
            self._statuses = _updated(self._statuses, records)


class _Draft:
    """A connector's statuses while records are applied to them."""

    def __init__(self, known: StoredStatus) -> None:
        self.connector = known.connector
        self.tasks = dict(known.tasks)
        self.topics = dict(known.topics)

    def apply(self, record: StatusRecord) -> None:
        match record:
            case ConnectorStatusRecord(_name, status):
                self.connector = status
            case TaskStatusRecord(_name, task, status):
                _put(self.tasks, task, status)
            case TopicStatusRecord(_name, topic, _task, discovered_ms):
                _put(self.topics, topic, discovered_ms)


def _updated(known: Mapping[str, StoredStatus], records: Iterable[StatusRecord]) -> dict[str, StoredStatus]:
    """Return the statuses after these records; a connector that has no record left is left out."""
    drafts: dict[str, _Draft] = {}
    for record in records:
        if record.name not in drafts:
            drafts[record.name] = _Draft(known.get(record.name, _NOTHING))
        drafts[record.name].apply(record)
    changed = {name: StoredStatus(draft.connector, draft.tasks, draft.topics) for name, draft in drafts.items()}
    return {name: status for name, status in {**known, **changed}.items() if status != _NOTHING}


def _put(known: dict[K, V], key: K, value: V | None) -> None:
    """Set a value; None removes it."""
    known.pop(key, None)
    if value is not None:
        known[key] = value

"""Records of `status.storage.topic`, byte for byte: states of connectors and tasks, and the topics they have used.

A null value means that there is no such status any more (Connect calls it DESTROYED). Connector names may contain
dashes, so a task's number is after the last one; a topic's name contains no colon, so the first one ends it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from heliograph.wire.records.connect_json import dump_json, load_object, split_task

State = Literal["UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"]
"""The state of a connector or task, as the status topic stores it."""

_CONNECTOR, _TASK, _TOPIC, _USED_BY = "status-connector-", "status-task-", "status-topic-", ":connector-"


class Status(NamedTuple):
    """The last status that a worker wrote for a connector or task."""

    state: str
    worker_id: str
    generation: int = 0
    trace: str | None = None
    version: str | None = None


class ConnectorStatusRecord(NamedTuple):
    """A connector's status; None if it was removed."""

    name: str
    status: Status | None


class TaskStatusRecord(NamedTuple):
    """A task's status; None if it was removed."""

    name: str
    task: int
    status: Status | None


class TopicStatusRecord(NamedTuple):
    """A topic that a connector has used since `discovered_ms`; None if that was reset."""

    name: str
    topic: str
    task: int = 0
    discovered_ms: int | None = None


StatusRecord = ConnectorStatusRecord | TaskStatusRecord | TopicStatusRecord


def encode_status(record: StatusRecord) -> tuple[bytes, bytes | None]:
    """Return the key and the value of a record."""
    match record:
        case ConnectorStatusRecord(name, status):
            return f"{_CONNECTOR}{name}".encode(), _status_value(status)
        case TaskStatusRecord(name, task, status):
            return f"{_TASK}{name}-{task}".encode(), _status_value(status)
        case TopicStatusRecord(name, topic, task, discovered_ms):
            key = f"{_TOPIC}{topic}{_USED_BY}{name}".encode()
            if discovered_ms is None:
                return key, None
            used = {"name": topic, "connector": name, "task": task, "discoverTimestamp": discovered_ms}
            return key, dump_json({"topic": used})


def decode_status(key: bytes | None, value: bytes | None) -> StatusRecord | None:
    """Decode a record; None if it is of another kind, or damaged."""
    try:
        text = (key or b"").decode()
    except UnicodeDecodeError:
        return None
    content = load_object(value)
    if value is not None and content is None:
        return None
    if text.startswith(_TOPIC):
        return _topic(text.removeprefix(_TOPIC), content)
    status = None if content is None else _status(content)
    if content is not None and status is None:
        return None
    if text.startswith(_CONNECTOR):
        return ConnectorStatusRecord(text.removeprefix(_CONNECTOR), status)
    task = split_task(text.removeprefix(_TASK)) if text.startswith(_TASK) else None
    return None if task is None else TaskStatusRecord(*task, status)


def _topic(rest: str, content: dict[str, Any] | None) -> StatusRecord | None:
    topic, used_by, name = rest.partition(_USED_BY)
    if not used_by:
        return None
    if content is None:
        return TopicStatusRecord(name, topic)
    used = content.get("topic")
    if not isinstance(used, dict):
        return None
    task, discovered_ms = used.get("task"), used.get("discoverTimestamp")
    if not isinstance(task, int) or not isinstance(discovered_ms, int):
        return None
    return TopicStatusRecord(name, topic, task, discovered_ms)


def _status(content: dict[str, Any]) -> Status | None:
    state, worker_id = content.get("state"), content.get("worker_id")
    generation, trace, version = content.get("generation"), content.get("trace"), content.get("version")
    if not isinstance(state, str) or not isinstance(worker_id, str) or not isinstance(generation, int):
        return None
    return Status(
        state,
        worker_id,
        generation,
        trace if isinstance(trace, str) else None,
        version if isinstance(version, str) else None,
    )


def _status_value(status: Status | None) -> bytes | None:
    if status is None:
        return None
    return dump_json(
        {
            "state": status.state,
            "trace": status.trace,
            "worker_id": status.worker_id,
            "generation": status.generation,
            "version": status.version,
        }
    )

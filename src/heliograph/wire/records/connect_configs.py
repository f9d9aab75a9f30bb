"""Records of `config.storage.topic`, byte for byte: connectors, their tasks, their target states.

A key is a kind and a name, `connector-orders`; a value is JSON. A task's configs count only with the commit record that
follows them. Of `target-state-`, `state.v2` counts; `state` is for older workers, which do not know STOPPED. Keys of
other kinds and records that cannot be read decode to None: Java workers write here too.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal, NamedTuple

from heliograph.wire.records.connect_json import dump_json, load_object, split_task

TargetState = Literal["STARTED", "PAUSED", "STOPPED"]
"""The state that the user wants of a connector, as the config topic stores it."""

Config = dict[str, str]
_SESSION_KEY = "session-key"
_SECRETS = "heliograph.rest.rules.secrets"


class ConnectorConfigRecord(NamedTuple):
    """A connector's configuration; None if it was deleted.

    `secrets` are the patterns of the rules under which it was accepted, stored beside `properties`, which Java ignores;
    None if no rules applied.
    """

    name: str
    config: Config | None
    secrets: tuple[str, ...] | None = None


class TaskConfigRecord(NamedTuple):
    """One task's configuration, which takes effect with its connector's commit record."""

    name: str
    task: int
    config: Config


class CommitRecord(NamedTuple):
    """The number of tasks of a connector; the task configs written before it take effect."""

    name: str
    tasks: int


class TargetStateRecord(NamedTuple):
    """The target state of a connector; None if it was removed."""

    name: str
    state: TargetState | None


class RestartRecord(NamedTuple):
    """A request to restart a connector, and perhaps its tasks."""

    name: str
    include_tasks: bool
    only_failed: bool


class TaskCountRecord(NamedTuple):
    """The number of producers of a connector to fence before its next tasks begin; None if unknown."""

    name: str
    count: int | None  # type: ignore[assignment]  # hides the method of tuples


class LoggerRecord(NamedTuple):
    """The level of a logger on all workers."""

    namespace: str
    level: str


class SessionKeyRecord(NamedTuple):
    """The key with which workers sign requests to each other."""

    key: bytes
    created_ms: int
    algorithm: str = "HmacSHA256"

    def __repr__(self) -> str:
        return f"SessionKeyRecord(created_ms={self.created_ms})"


ConfigRecord = (
    ConnectorConfigRecord
    | TaskConfigRecord
    | CommitRecord
    | TargetStateRecord
    | RestartRecord
    | TaskCountRecord
    | LoggerRecord
    | SessionKeyRecord
)


def encode_config(record: ConfigRecord) -> tuple[bytes, bytes | None]:
    """Return the key and the value of a record."""
    key, content = _content(record)
    return key.encode(), None if content is None else dump_json(content)


def _content(record: ConfigRecord) -> tuple[str, dict[str, Any] | None]:  # noqa: PLR0911  (one for each kind)
    match record:
        case ConnectorConfigRecord(name, config, secrets):
            rules = {} if secrets is None else {_SECRETS: list(secrets)}
            return f"connector-{name}", None if config is None else {"properties": config, **rules}
        case TaskConfigRecord(name, task, config):
            return f"task-{name}-{task}", {"properties": config}
        case CommitRecord(name, tasks):
            return f"commit-{name}", {"tasks": tasks}
        case TargetStateRecord(name, state):
            first = "PAUSED" if state == "STOPPED" else state
            return f"target-state-{name}", None if state is None else {"state": first, "state.v2": state}
        case RestartRecord(name, include_tasks, only_failed):
            return f"restart-connector-{name}", {"include-tasks": include_tasks, "only-failed": only_failed}
        case TaskCountRecord(name, count):
            return f"tasks-fencing-{name}", None if count is None else {"task-count": count}
        case LoggerRecord(namespace, level):
            return f"logger-cluster-{namespace}", {"level": level}
        case SessionKeyRecord(key, created_ms, algorithm):
            text = base64.b64encode(key).decode()
            return _SESSION_KEY, {"key": text, "algorithm": algorithm, "creation-timestamp": created_ms}


def decode_config(key: bytes | None, value: bytes | None) -> ConfigRecord | None:
    """Decode a record; None if it is of another kind, or damaged."""
    try:
        text = (key or b"").decode()
    except UnicodeDecodeError:
        return None
    content = load_object(value)
    if value is not None and content is None:
        return None
    for prefix, decode in _DECODERS.items():
        if text.startswith(prefix):
            try:
                return decode(text.removeprefix(prefix), content)
            except RecursionError:  # nested too deeply to be written again
                return None
    return None


def _connector(name: str, content: dict[str, Any] | None) -> ConfigRecord | None:
    if content is None:
        return ConnectorConfigRecord(name, None)
    config = _properties(content)
    return None if config is None else ConnectorConfigRecord(name, config, _patterns(content.get(_SECRETS)))


def _patterns(found: Any) -> tuple[str, ...] | None:
    """Return the patterns; none, which allows nothing, if they cannot be read."""
    if found is None:
        return None
    return tuple(text for text in found if isinstance(text, str)) if isinstance(found, list) else ()


def _task(name_and_number: str, content: dict[str, Any] | None) -> ConfigRecord | None:
    task, config = split_task(name_and_number), _properties(content or {})
    return None if task is None or config is None else TaskConfigRecord(*task, config)


def _commit(name: str, content: dict[str, Any] | None) -> ConfigRecord | None:
    tasks = (content or {}).get("tasks")
    return CommitRecord(name, tasks) if isinstance(tasks, int) and tasks >= 0 else None


def _target_state(name: str, content: dict[str, Any] | None) -> ConfigRecord | None:
    if content is None:
        return TargetStateRecord(name, None)
    known: tuple[TargetState, ...] = ("STARTED", "PAUSED", "STOPPED")
    reported = (content.get("state.v2"), content.get("state"))
    state = next((state for text in reported for state in known if state == text), None)
    return None if state is None else TargetStateRecord(name, state)


def _restart(name: str, content: dict[str, Any] | None) -> ConfigRecord | None:
    if content is None:
        return None
    return RestartRecord(name, content.get("include-tasks") is True, content.get("only-failed") is True)


def _task_count(name: str, content: dict[str, Any] | None) -> ConfigRecord | None:
    if content is None:
        return TaskCountRecord(name, None)
    count = content.get("task-count")
    return TaskCountRecord(name, count) if isinstance(count, int) else None


def _logger(namespace: str, content: dict[str, Any] | None) -> ConfigRecord | None:
    level = (content or {}).get("level")
    return LoggerRecord(namespace, level) if isinstance(level, str) else None


def _session_key(rest: str, content: dict[str, Any] | None) -> ConfigRecord | None:
    key, algorithm, created_ms = ((content or {}).get(name) for name in ("key", "algorithm", "creation-timestamp"))
    if rest or not isinstance(key, str) or not isinstance(algorithm, str) or not isinstance(created_ms, int):
        return None
    try:
        return SessionKeyRecord(base64.b64decode(key, validate=True), created_ms, algorithm)
    except binascii.Error:
        return None


def _properties(content: dict[str, Any]) -> Config | None:
    """Return Connect's map of strings; a null is left out, like a key without a value."""
    properties = content.get("properties")
    if not isinstance(properties, dict):
        return None
    return {name: _text(value) for name, value in properties.items() if value is not None}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value).decode()


_DECODERS = {
    "connector-": _connector,
    "task-": _task,
    "commit-": _commit,
    "target-state-": _target_state,
    "restart-connector-": _restart,
    "tasks-fencing-": _task_count,
    "logger-cluster-": _logger,
    _SESSION_KEY: _session_key,
}

"""Records of `config.storage.topic`, byte for byte: connectors, their tasks, what is wanted of them.

A key is a kind and a name, `connector-orders`; a value is JSON. A task's configs count only with the commit record that
follows them. Of `target-state-`, `state.v2` counts; `state` is what older workers understand, who know no STOPPED.

Keys of other kinds and records that cannot be read decode to None: Java workers write here too.


What a Connect worker is made of, as plain values, and the protocol of the one that runs it: the herder.

The REST API (`api/`) knows only this file, so every endpoint is tested over a herder of a few lines, and the real one
can change without touching a handler. Names and states are Kafka Connect's own.

Invariants: a herder raises `ConnectError` with Connect's status and sentence for whatever it must refuse, and nothing
else on purpose; it may be called from several threads at once; `info` and `task_configs` hold what the user wrote,
placeholders unresolved, so no answer can tell a secret that only a placeholder names.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal, NamedTuple

from heliograph.wire.records.connect_json import dump_json, load_object, split_task

TargetState = Literal["STARTED", "PAUSED", "STOPPED"]
Config = dict[str, str]
_SESSION_KEY = "session-key"
_SECRETS = "heliograph.rest.rules.secrets"


class ConnectorConfigRecord(NamedTuple):
    """A connector's configuration; None: it is deleted.

    `secrets` are the patterns of the rules it was accepted under, beside `properties`, where Java does not look; None
    where no rules held.
    """

    name: str
    config: Config | None
    secrets: tuple[str, ...] | None = None


class TaskConfigRecord(NamedTuple):
    """One task's configuration, until its connector's commit only a proposal."""

    name: str
    task: int
    config: Config


class CommitRecord(NamedTuple):
    """So many tasks a connector has: the configs written before now count."""

    name: str
    tasks: int


class TargetStateRecord(NamedTuple):
    """What is wanted of a connector; None: nothing any more."""

    name: str
    state: TargetState | None


class RestartRecord(NamedTuple):
    """Somebody wants a connector started again, and perhaps its tasks."""

    name: str
    include_tasks: bool
    only_failed: bool


class TaskCountRecord(NamedTuple):
    """How many producers of a connector have to be fenced before its next tasks begin; None: unknown."""

    name: str
    count: int | None  # type: ignore[assignment]  # a tuple's own `count` is of no use here


class LoggerRecord(NamedTuple):
    """The level of a logger on all workers."""

    namespace: str
    level: str


class SessionKeyRecord(NamedTuple):
    """The key with which workers sign what they ask of each other."""

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
    """Key and value."""
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
    """What a record says; None where it is of another kind, or damaged."""
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
            except RecursionError:  # a value that could be read, but is too deep to be written again
                return None
    return None


def _connector(name: str, content: dict[str, Any] | None) -> ConfigRecord | None:
    if content is None:
        return ConnectorConfigRecord(name, None)
    config = _properties(content)
    return None if config is None else ConnectorConfigRecord(name, config, _patterns(content.get(_SECRETS)))


def _patterns(found: Any) -> tuple[str, ...] | None:
    """What is there and cannot be read allows nothing."""
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


def _properties(content: dict[str, Any]) -> Config | None:
    """Connect's maps hold strings; a null is left out, as a key without a value."""
    properties = content.get("properties")
    if not isinstance(properties, dict):
        return None
    return {name: _text(value) for name, value in properties.items() if value is not None}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value).decode()


"""What the user wants of a connector, as the config topic stores it."""

"""What the config topic says once it is read: connectors, what is wanted of them, and the configs of their tasks.

Invariants:
A. A connector's task configs change only with a commit record, all at once. Where some of them are missing (compaction
   may have taken them), the old ones stay and `is_consistent` is false until the next complete set.
B. A connector that nobody gave a target state is wanted STARTED; a target state may be written before its connector.
C. Of session keys the last two count: who has not read the newest one yet signs with the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from heliograph.wire.connect_configs import (
    CommitRecord,
    ConnectorConfigRecord,
    LoggerRecord,
    RestartRecord,
    SessionKeyRecord,
    TargetStateRecord,
    TaskConfigRecord,
    TaskCountRecord,
)

if TYPE_CHECKING:
    from heliograph.wire.connect_configs import Config, ConfigRecord, TargetState

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

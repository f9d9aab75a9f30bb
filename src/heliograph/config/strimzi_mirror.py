"""One mirror of a KafkaMirrorMaker2 resource: the keys of a flow, from its patterns and its three connectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.flow_keys import EMIT_CHECKPOINTS, EMIT_HEARTBEATS, FlowKeys
from heliograph.config.keys import RESTART_ATTEMPTS_MAX
from heliograph.config.strimzi_fields import (
    CONNECTOR,
    CONNECTOR_IGNORED,
    CONNECTORS,
    PATTERNS,
    check_fields,
    config_of,
)
from heliograph.config.types import Scope

if TYPE_CHECKING:
    from heliograph.config.reading import Reading
    from heliograph.config.strimzi_secrets import Secrets
    from heliograph.config.yaml_tree import Tree
    from heliograph.model import Flow

_SCOPES = dict(zip(CONNECTORS, (Scope.SOURCE, Scope.CHECKPOINT, Scope.HEARTBEAT), strict=True))
_OWNERS = {scope: f"{name}.config" for name, scope in _SCOPES.items()}
_EMITS = {"checkpointConnector": EMIT_CHECKPOINTS, "heartbeatConnector": EMIT_HEARTBEATS}


class Mirror:
    """Reads one mirror: the keys of a flow."""

    def __init__(self, reading: Reading, secrets: Secrets, flow: Flow, tree: Tree) -> None:
        self._reading = reading
        self._secrets = secrets
        self._flow = flow
        self._tree = tree
        self._keys = FlowKeys(reading, flow)

    def read(self) -> None:
        """The patterns, then connector by connector; what the first says counts."""
        if self._flow in self._reading.connectors:
            self._reading.problem(self._tree, f"{self._flow} is mirrored twice; remove one of the mirrors.")
            return
        self._reading.connectors[self._flow] = f"{self._flow}.MirrorSourceConnector"
        self._read_patterns()
        for name in CONNECTORS:
            # `checkpointConnector:` with nothing behind it is none, as for the operator.
            connector = self._tree.get(name)
            if connector is not None:
                self._read_connector(name, connector)
            elif name in _EMITS:
                self._keys.add_own(_EMITS[name], "false", self._tree)
        source = self._tree.get("sourceConnector")
        if source is None and self._tree.get("checkpointConnector") is not None:
            words = f"there is no sourceConnector, so {self._flow} copies nothing and has no checkpoints."
            self._reading.warn(self._tree, words)
        is_on = source is not None and self._flow not in self._reading.paused
        self._keys.add_own("enabled", "true" if is_on else "false", source or self._tree)

    def _read_patterns(self) -> None:
        for name, key in PATTERNS.items():
            pattern = self._tree.get(name)
            if pattern is None:
                continue
            newer = name.replace("Blacklist", "Exclude")
            if newer != name:
                self._reading.warn(pattern, f"this name is gone from newer versions; use {newer}.")
            if newer == name or self._tree.get(newer) is None:
                self._add(key, pattern)

    def _read_connector(self, kind: str, connector: Tree) -> None:
        if connector.kind != "map":
            self._reading.problem(connector, "it must be a map: config, tasksMax and more; or {} for the defaults.")
            return
        check_fields(self._reading, connector, CONNECTOR, CONNECTOR_IGNORED)
        config = config_of(self._reading, connector)
        if (tasks := connector.get("tasksMax")) is not None:
            if kind == "sourceConnector":
                self._add("tasks.max", tasks)
            elif tasks.text != "1":
                self._reading.note(tasks, "ignored: checkpoints and heartbeats need one task each.")
        self._read_restarts(kind, connector)
        is_stopped = self._read_state(kind, connector)
        if kind in _EMITS and (is_stopped or _EMITS[kind] not in config):
            self._keys.add_own(_EMITS[kind], "false" if is_stopped else "true", connector)
        for name, field in config.items():
            if not (is_stopped and name == _EMITS.get(kind)):
                self._read_key(kind, name, field)

    def _read_restarts(self, kind: str, connector: Tree) -> None:
        restart = connector.get("autoRestart")
        if restart is None:
            return
        check_fields(self._reading, restart, ("enabled", "maxRestarts"))
        enabled, limit = restart.get("enabled"), restart.get("maxRestarts")
        is_off = enabled is not None and enabled.text == "false"
        if not is_off and limit is None:
            return
        if kind == "sourceConnector":
            self._keys.add_own(RESTART_ATTEMPTS_MAX.name, "0" if is_off or limit is None else limit.text, restart)
        else:
            self._reading.note(restart, "ignored: checkpoints and heartbeats are always tried again.")

    def _read_state(self, kind: str, connector: Tree) -> bool:
        """Whether the connector is paused or stopped, which is told."""
        pause, state = connector.get("pause"), connector.get("state")
        if state is not None and state.text not in ("running", "paused", "stopped"):
            self._reading.problem(state, f"'{state.text}' is none of running, paused, stopped.")
            return False
        by = state or pause
        if by is None or by.text in ("running", "false"):
            return False
        word = "stopped" if by.text == "stopped" else "paused"
        if kind == "sourceConnector":
            self._reading.paused[self._flow] = f"{word} by line {by.line}: {by.path}"
            self._reading.note(by, f"{self._flow} is {word}; it is not run.")
        else:
            what = "checkpoints" if kind == "checkpointConnector" else "heartbeats"
            self._reading.note(by, f"the {what} of {self._flow} are {word}; none are written.")
        return True

    def _read_key(self, kind: str, name: str, field: Tree) -> None:
        if name in ("name", "connector.class"):
            self._reading.note(field, "ignored: the operator names the connectors, and so does Heliograph.")
        elif name == "tasks.max":
            self._reading.warn(field, "the operator ignores this key here; it is read as tasksMax.")
            if kind == "sourceConnector":
                self._add(name, field)
        else:
            self._keys.add_of(_SCOPES[kind], name, self._secrets.rewritten(field.text), field, _OWNERS)

    def _add(self, key: str, field: Tree) -> None:
        self._keys.add(key, self._secrets.rewritten(field.text), field)

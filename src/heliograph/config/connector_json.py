"""Reads the JSON of mirror connectors (and their worker's properties) as the dedicated-mode file that does the same.

A file is what one posts to Connect: `{"name": ..., "config": {...}}`, or the config alone with its name in it, or a
list of these. Connectors of the same two aliases are one flow. Not for running connectors: a worker takes each as it
is.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.config.flow_keys import EMIT_CHECKPOINTS, EMIT_HEARTBEATS, FlowKeys
from heliograph.config.keys import TABLE
from heliograph.config.names import ROLES, SIDES
from heliograph.config.reading import Reading
from heliograph.config.types import Scope
from heliograph.config.worker_targets import BYTES_CONVERTER, CONVERTERS, WorkerFile
from heliograph.config.yaml_tree import Tree
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CLASSES = {
    "MirrorSourceConnector": Scope.SOURCE,
    "MirrorCheckpointConnector": Scope.CHECKPOINT,
    "MirrorHeartbeatConnector": Scope.HEARTBEAT,
}
_OWNERS = {scope: f"the {name.removeprefix('Mirror')}" for name, scope in CLASSES.items()}
_EMITS = {Scope.CHECKPOINT: EMIT_CHECKPOINTS, Scope.HEARTBEAT: EMIT_HEARTBEATS}
_OF_THE_FORM = ("name", "connector.class", "source.cluster.alias", "target.cluster.alias", "enabled")


class _Connector(NamedTuple):
    file: str
    name: str
    scope: Scope
    flow: Flow
    config: dict[str, Tree]


def read_connectors(files: Mapping[str, str]) -> Reading:
    """All files together; those that end in .properties are the workers'."""
    reading = Reading()
    found: list[_Connector] = []
    for file, text in files.items():
        if not file.endswith(".properties"):
            found += _connectors(reading, file, text)
    if not found and not reading.problems:
        raise ConfigError("there is no mirror connector in what is to be converted.")
    for flow in dict.fromkeys(connector.flow for connector in found):
        _read_flow(reading, flow, [connector for connector in found if connector.flow == flow])
    aliases = dict.fromkeys(alias for connector in found for alias in connector.flow)
    whole = Tree("map", "the connectors", 0)
    reading.add("clusters", ", ".join(aliases), whole)
    reading.add(EMIT_HEARTBEATS, "false", whole)
    flows = list(dict.fromkeys(connector.flow for connector in found))
    workers = [file for file in files if file.endswith(".properties")]
    for file in workers:
        WorkerFile(reading, file, flows).read(files[file], is_only=len(workers) == 1)
    return reading


def _connectors(reading: Reading, file: str, text: str) -> Iterator[_Connector]:
    try:
        data = json.loads(text)
    except ValueError as error:
        reading.problem(Tree("nothing", file, 0), f"this is not JSON: {error}.")
        return
    for each in data if isinstance(data, list) else [data]:
        connector = _connector(reading, file, each)
        if connector is not None:
            yield connector


def _connector(reading: Reading, file: str, data: Any) -> _Connector | None:
    place = Tree("map", file, 0)
    if not isinstance(data, dict):
        reading.problem(place, "a connector is a JSON object.")
        return None
    config = data["config"] if isinstance(data.get("config"), dict) else data
    if config is not data and data.get("initial_state", "RUNNING") != "RUNNING":
        reading.note(place, f"initial_state {data['initial_state']} is not kept; the flow is converted as running.")
    trees = _trees(reading, file, config)
    name = str(data.get("name") or config.get("name") or PurePath(file).stem)  # as `deploy` names it
    class_name = trees["connector.class"].text if "connector.class" in trees else ""
    scope = CLASSES.get(class_name.rpartition(".")[2]) or CLASSES.get(f"{class_name.rpartition('.')[2]}Connector")
    if scope is None:
        reading.note(place, f"'{name}' is no mirror connector (connector.class is '{class_name}'); it is left out.")
        return None
    if "source.cluster.alias" not in trees:
        reading.problem(place, f"'{name}' has no source.cluster.alias.")
        return None
    target = trees["target.cluster.alias"].text if "target.cluster.alias" in trees else "target"
    return _Connector(file, name, scope, Flow(trees["source.cluster.alias"].text, target), trees)


def _trees(reading: Reading, file: str, config: dict[str, Any]) -> dict[str, Tree]:
    trees = {}
    for key, value in config.items():
        tree = Tree("text", f"{file}: {key}", 0, text=_text(value))
        if value is None or isinstance(value, dict | list):
            reading.problem(tree, "it must be text, a number, true or false.")
        else:
            trees[key] = tree
    return trees


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _read_flow(reading: Reading, flow: Flow, connectors: list[_Connector]) -> None:
    by_scope: dict[Scope, _Connector] = {}
    for connector in connectors:
        if connector.scope in by_scope:
            other = by_scope[connector.scope]
            where = Tree("map", f"{connector.file}: '{connector.name}'", 0)
            reading.problem(where, f"'{other.name}' of {other.file} is the same of {flow}; convert one of them.")
        by_scope.setdefault(connector.scope, connector)
    flow_keys = FlowKeys(reading, flow)
    for scope in CLASSES.values():
        found = by_scope.get(scope)
        if found is not None:
            _read_connector(reading, flow_keys, found)
        if scope in _EMITS and (found is None or _EMITS[scope] not in found.config):
            is_on = found is not None and _enabled(found)
            flow_keys.add_own(_EMITS[scope], "true" if is_on else "false", Tree("map", str(flow), 0))
    source = by_scope.get(Scope.SOURCE)
    if source is not None:
        reading.connectors[flow] = source.name
    is_on = source is not None and _enabled(source)
    flow_keys.add_own("enabled", "true" if is_on else "false", Tree("map", str(flow), 0))


def _enabled(connector: _Connector) -> bool:
    return "enabled" not in connector.config or connector.config["enabled"].text.strip().lower() != "false"


def _read_connector(reading: Reading, flow_keys: FlowKeys, connector: _Connector) -> None:
    for key, tree in connector.config.items():
        side, _, rest = key.partition(".cluster.")
        if key in _OF_THE_FORM or (key in CONVERTERS and tree.text == BYTES_CONVERTER):
            continue
        if side in SIDES and rest in TABLE and TABLE[rest].scope & Scope.CLIENT:
            _read_cluster_key(reading, flow_keys, connector.flow, side, rest, tree)
        elif key != "tasks.max" or connector.scope is Scope.SOURCE:
            flow_keys.add_of(connector.scope, key, tree.text, tree, _OWNERS)


def _read_cluster_key(reading: Reading, flow_keys: FlowKeys, flow: Flow, side: str, key: str, tree: Tree) -> None:
    """A connection key is the cluster's; where flows differ about it, the later ones say so for themselves."""
    alias = flow.source if side == "source" else flow.target
    earlier = reading.entry(f"{alias}.{key}")
    if earlier is None:
        reading.add(f"{alias}.{key}", tree.text, tree)
    elif earlier.value != tree.text:
        for role in ROLES:
            flow_keys.add(f"{side}.{role}.{key}", tree.text, tree)

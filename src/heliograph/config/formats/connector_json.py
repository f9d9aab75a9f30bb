"""Connectors' JSON and their worker's properties file: read as a dedicated-mode file, and written from one.

A file is what one posts to Connect: `{"name": ..., "config": {...}}`, or the config alone with its name in it, or a
list of these. Connectors of the same two aliases are one flow.

A worker has one group, one topic of source offsets and one producer for all its connectors, in its own cluster. A
dedicated-mode file has these for each target, in the target's cluster. So the worker's keys are written once for every
target alias; what is left out has a note.

Written are three JSON files per flow, as document 001 names them, and the worker's file. A worker's producer writes the
records of a source connector, so the target's producer keys are written twice: as `target.producer.x`, and as
`producer.override.x`.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.config.effective.connect_config import CLASSES
from heliograph.config.formats.connector_parts import EMIT_CHECKPOINTS, EMIT_HEARTBEATS, FlowKeys
from heliograph.config.formats.reading import Reading
from heliograph.config.keys import TABLE
from heliograph.config.keys.table import Scope, split_list
from heliograph.config.resolve.overlays import ROLES, SIDES
from heliograph.config.resolve.placeholders import PROVIDER_CLASSES
from heliograph.config.syntax.properties import as_map, parse_properties, properties_text
from heliograph.config.syntax.yaml_tree import Tree
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from heliograph.config.formats.connector_parts import ClusterParts, FlowParts, Parts
    from heliograph.model import ConnectorKind


CONVERTERS = ("key.converter", "value.converter", "header.converter")
BYTES_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
_SERVERS = "bootstrap.servers"
SCOPES_BY_CLASS = {
    "MirrorSourceConnector": Scope.SOURCE,
    "MirrorCheckpointConnector": Scope.CHECKPOINT,
    "MirrorHeartbeatConnector": Scope.HEARTBEAT,
}
_OWNERS = {scope: f"the {name.removeprefix('Mirror')}" for name, scope in SCOPES_BY_CLASS.items()}
_EMITS = {Scope.CHECKPOINT: EMIT_CHECKPOINTS, Scope.HEARTBEAT: EMIT_HEARTBEATS}
_OF_THE_FORM = ("name", "connector.class", "source.cluster.alias", "target.cluster.alias", "enabled")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAMED_PROVIDER = re.compile(r"\$\{([a-z]+):")
_FILES: dict[str, ConnectorKind] = {"msc": "source", "cpc": "checkpoint", "hbc": "heartbeat"}
_SCOPES: dict[ConnectorKind, Scope] = {
    "source": Scope.SOURCE,
    "checkpoint": Scope.CHECKPOINT,
    "heartbeat": Scope.HEARTBEAT,
}


class WorkerFile:
    """Reads one worker's file, after its connectors."""

    def __init__(self, reading: Reading, file: str, flows: Iterable[Flow]) -> None:
        self._reading = reading
        self._file = file
        self._flows = tuple(flows)
        self._same: list[str] = []
        self._others: list[str] = []

    def read(self, text: str, *, is_only: bool) -> None:
        """Add its keys to its targets: the aliases of its own cluster, and where it is the only worker, all others."""
        values = as_map(parse_properties(text))
        servers = values.get(_SERVERS, "")
        targets = list(dict.fromkeys(flow.target for flow in self._flows))
        self._same = [alias for alias in targets if self._is_of(alias, servers)]
        self._others = [alias for alias in targets if alias not in self._same and is_only]
        place = Tree("map", self._file, 0)
        if not self._same and not self._others:
            words = f"the worker's cluster ({servers}) is the target of no connector here; its keys are left out."
            self._reading.warn(place, words)
            return
        for alias in self._others:
            words = (
                f"the worker's cluster ({servers}) is not that of {alias}: in a file the records, source offsets and"
                f" group of a flow into {alias} are in the cluster of {alias}."
            )
            self._reading.warn(place, words)
        self._warn_about_shared_offsets(place)
        for key, value in values.items():
            self._read_key(key, Tree("text", f"{self._file}: {key}", 0, text=value))

    def _read_key(self, key: str, tree: Tree) -> None:
        row = TABLE.get(key)
        if key in CONVERTERS:
            if tree.text.strip() != BYTES_CONVERTER:
                self._reading.note(tree, "a dedicated MM2 has no converters, it copies bytes; it is left out.")
        elif row is not None and row.scope & Scope.CLIENT:
            self._note_connection(key, tree)
        elif key.startswith("config.providers"):
            self._reading.add(key, tree.text, tree)
        elif key.startswith("producer."):
            self._read_producer_key(key, tree)
        elif row is not None and row.scope & Scope.WORKER:
            self._add(key, tree, [*self._same, *self._others])
        else:
            self._reading.note(tree, "a key of the worker that no flow reads; it is left out.")

    def _read_producer_key(self, key: str, tree: Tree) -> None:
        """The producer of all records. How it logs in is about the worker's cluster, and no other."""
        row = TABLE.get(key.removeprefix("producer."))
        if row is None or not row.scope & Scope.CLIENT:
            self._add(key, tree, [*self._same, *self._others])
            return
        self._add(key, tree, self._same)
        if self._others:
            names = ", ".join(self._others)
            self._reading.note(tree, f"it is about the worker's cluster; for {names} it is left out.")

    def _add(self, key: str, tree: Tree, aliases: Iterable[str]) -> None:
        for alias in aliases:
            self._reading.add(f"{alias}.{key}", tree.text, tree)

    def _note_connection(self, key: str, tree: Tree) -> None:
        """The worker's own connection: a file has none but its clusters'."""
        unequal = [alias for alias in self._same if self._value(f"{alias}.{key}") != tree.text]
        if key != _SERVERS and (unequal or not self._same):
            self._reading.note(
                tree, "it is about the worker's own connection, and a file has only its clusters'; it is left out."
            )

    def _warn_about_shared_offsets(self, place: Tree) -> None:
        for source in dict.fromkeys(flow.source for flow in self._flows):
            into = [flow.target for flow in self._flows if flow.source == source and flow.target in self._same]
            if len(into) > 1:
                words = (
                    f"{' and '.join(into)} are one cluster, where a file keeps the source offsets of {source} only"
                    " once; give each an offset.storage.topic of its own before you run it."
                )
                self._reading.warn(place, words)

    def _is_of(self, alias: str, servers: str) -> bool:
        return bool(set(split_list(self._value(f"{alias}.{_SERVERS}"))) & set(split_list(servers)))

    def _value(self, name: str) -> str:
        entry = self._reading.entry(name)
        return entry.value if entry is not None else ""


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
    scope = SCOPES_BY_CLASS.get(class_name.rpartition(".")[2]) or SCOPES_BY_CLASS.get(
        f"{class_name.rpartition('.')[2]}Connector"
    )
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
    for scope in SCOPES_BY_CLASS.values():
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


def connector_files(parts: Parts, notes: list[str]) -> dict[str, str]:
    """File names and texts; `notes` gets what the form cannot say."""
    files = {}
    kinds: set[str] = set()
    sources = [each.flow.source for each in parts.flows]
    for each in parts.flows:
        label = each.flow.source if sources.count(each.flow.source) == 1 else f"{each.flow.source}-{each.flow.target}"
        for short, kind in _FILES.items():
            name = f"mm2-{short}-{label}"
            config = {key: _with_provider(value) for key, value in connector_config(parts, each, kind, name).items()}
            files[f"{name}.json"] = json.dumps(config, indent=2) + "\n"
            kinds |= {found for value in config.values() for found in _NAMED_PROVIDER.findall(value)}
        if each.is_paused:
            notes.append(f"{each.flow} is paused; create its connectors with initial_state PAUSED, or pause them.")
    for target in parts.targets:
        name = "connect-distributed" + (f"-{target}" if len(parts.targets) > 1 else "")
        files[f"{name}.properties"] = _worker(parts, target, kinds, notes)
    return files


def connector_config(parts: Parts, each: FlowParts, kind: ConnectorKind, name: str) -> dict[str, str]:
    """One connector of a flow, as it is given to Connect."""
    source, target = each.flow
    scope = _SCOPES[kind]
    head = {"name": name, "connector.class": CLASSES[kind]}
    config = {"source.cluster.alias": source, "target.cluster.alias": target}
    for side, alias in (("source", source), ("target", target)):
        config |= _connection(parts.clusters[alias], side)
    config |= each.clients
    if scope is Scope.SOURCE:
        written = {key.removeprefix("target."): value for key, value in config.items() if "target.producer." in key}
        overrides = {key.replace("producer.", "producer.override.", 1): value for key, value in written.items()}
        config = overrides | config
    else:
        config = {key: value for key, value in config.items() if not key.startswith("producer.override.")}
    config |= dict.fromkeys(CONVERTERS, BYTES_CONVERTER) | each.keys_of(scope)
    if scope is Scope.CHECKPOINT and each.connector.get(EMIT_CHECKPOINTS, "true").strip().lower() == "false":
        config["enabled"] = "false"  # Java refuses a connector that is on and emits nothing
    return head | config


def _connection(cluster: ClusterParts, side: str) -> dict[str, str]:
    """Return a connector's connection to a cluster: only connection keys are read after `source.cluster.`."""
    config = {}
    for key, value in cluster.plain.items():
        if key in TABLE and TABLE[key].scope & Scope.CLIENT:
            config[f"{side}.cluster.{key}"] = value
        else:
            config |= {f"{side}.{role}.{key}": value for role in ROLES}
    for role in ROLES:
        config |= {f"{side}.{role}.{key}": value for key, value in cluster.roles[role].items()}
    return config


def _with_provider(value: str) -> str:
    """Only files have `${NAME}`; Connect knows the same as `${env:NAME}`."""
    return _VARIABLE.sub(r"${env:\1}", value)


def _declarations(kinds: set[str], declared: Mapping[str, str]) -> dict[str, str]:
    """The config providers that connectors use: a worker looks up only what it declares."""
    known = split_list(declared.get("config.providers", ""))
    missing = [kind for kind in PROVIDER_CLASSES if kind in kinds and kind not in known]
    if not missing:
        return dict(declared)
    classes = {f"config.providers.{kind}.class": PROVIDER_CLASSES[kind] for kind in missing}
    return {**declared, "config.providers": ",".join((*known, *missing)), **classes}


def _worker(parts: Parts, target: str, kinds: set[str], notes: list[str]) -> str:
    """Return the worker of a target. Connect has one topic of source offsets for all connectors, MM2 one per source."""
    sources = [each.flow.source for each in parts.into(target)]
    cluster = parts.clusters[target]
    own = f"mm2-{{}}.{sources[0]}.internal" if len(sources) == 1 else f"mm2-{{}}.{target}.internal"
    names = {
        "group.id": f"{sources[0] if len(sources) == 1 else target}-mm2",
        "offset.storage.topic": own.format("offsets"),
        "config.storage.topic": own.format("configs"),
        "status.storage.topic": own.format("status"),
    }
    if len(sources) > 1 and "offset.storage.topic" not in cluster.worker:
        notes.append(
            f"the flows into {target} kept their source offsets in a topic each, such as"
            f" mm2-offsets.{sources[0]}.internal; their worker has one for all, {names['offset.storage.topic']}."
        )
    plain = {key: value for key, value in cluster.plain.items() if key in TABLE and TABLE[key].scope & Scope.CLIENT}
    converters = dict.fromkeys(CONVERTERS, BYTES_CONVERTER)
    # Records are written by the worker's producer, which has nothing of the worker's own connection but its servers.
    producer = {f"producer.{key}": value for key, value in plain.items() if key != "bootstrap.servers"}
    written = {**plain, **producer, **names, **converters, **cluster.worker}
    values = {key: _with_provider(value) for key, value in written.items()} | _declarations(kinds, parts.providers)
    return properties_text(values.items(), [f"Worker for the connectors that write to {target}."])

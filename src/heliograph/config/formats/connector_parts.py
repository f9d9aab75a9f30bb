"""A configuration taken apart: each cluster's clients and worker, each flow's connectors.

`take_apart` works on the entries of a dedicated-mode file and applies the overlay rules; other forms are written from
the result. Placeholders are not resolved. No name is lost silently: `left_out` has those that no flow reads.

`FlowKeys` is the opposite direction: a resource and a folder of connectors' JSON give the source, checkpoint and
heartbeat connector a configuration each; a dedicated-mode file has one for the flow. A key counts for every connector
that knows it, whichever has it: Java needs the replication policy on each, and translates nothing if one lacks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import TABLE
from heliograph.config.keys.table import Scope, split_list
from heliograph.config.resolve.overlays import ROLES, Origin, client_layers, origins, parse_name, settings_layers
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from heliograph.config.formats.reading import Reading
    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.config.syntax.yaml_tree import Tree


_OF_THE_FORM = ("enabled", "source.cluster.alias", "target.cluster.alias", "name", "connector.class")
_PROVIDERS = "config.providers"


@dataclass
class ClusterParts:
    """The keys of a cluster: `plain` for every client, `roles` for one kind of them, `worker` for Connect's worker."""

    alias: str
    plain: dict[str, str] = field(default_factory=dict)
    roles: dict[str, dict[str, str]] = field(default_factory=lambda: {role: {} for role in ROLES})
    worker: dict[str, str] = field(default_factory=dict)


@dataclass
class FlowParts:
    """Keys of a flow's connectors, and of its clients (`source.consumer.x`, `producer.override.x`)."""

    flow: Flow
    is_paused: bool = False
    connector: dict[str, str] = field(default_factory=dict)
    clients: dict[str, str] = field(default_factory=dict)

    def keys_of(self, scope: Scope) -> dict[str, str]:
        """The keys that one of the three connectors has; what the table does not know may be for any of them."""
        return {key: value for key, value in self.connector.items() if key not in TABLE or TABLE[key].scope & scope}


@dataclass
class Parts:
    """A whole configuration."""

    clusters: dict[str, ClusterParts]
    flows: list[FlowParts]
    providers: dict[str, str]
    left_out: list[str]
    idle_heartbeats: list[Flow]

    @property
    def targets(self) -> list[str]:
        """Clusters that are written to, in order."""
        return list(dict.fromkeys(parts.flow.target for parts in self.flows))

    def into(self, alias: str) -> list[FlowParts]:
        """The flows that write to a cluster."""
        return [parts for parts in self.flows if parts.flow.target == alias]


def take_apart(raw: Mapping[str, str], paused: Container[Flow], resolver: Resolver) -> Parts:
    """The parts of a file; a ConfigError where it has no flow. Paused flows are taken as if they were enabled."""
    clusters = split_list(resolver.resolve("clusters", raw.get("clusters", "")))
    flows = [
        flow
        for flow in (Flow(source, target) for source in clusters for target in clusters if source != target)
        if flow in paused or _is_true(raw, resolver, f"{flow}.{keys.ENABLED.name}", default="false")
    ]
    if not flows:
        raise ConfigError("No source->target replication flow is enabled, so there is nothing to convert.")
    return _Taker(raw, resolver, clusters).parts(flows, paused)


class _Taker:
    """Takes one file apart; `_used` are the names that count somewhere."""

    def __init__(self, raw: Mapping[str, str], resolver: Resolver, clusters: tuple[str, ...]) -> None:
        self._raw = raw
        self._resolver = resolver
        self._aliases = clusters
        self._used = {keys.CLUSTERS.name, keys.EMIT_HEARTBEATS_ENABLED.name}
        self._clusters: dict[str, ClusterParts] = {}
        self._providers = {name: value for name, value in raw.items() if name.startswith(_PROVIDERS)}

    def parts(self, flows: list[Flow], paused: Container[Flow]) -> Parts:
        self._used |= self._providers.keys()
        taken = [self._flow(flow, is_paused=flow in paused) for flow in flows]
        idle = [
            flow
            for flow in (Flow(source, target) for source in self._aliases for target in self._aliases)
            if flow.source != flow.target and flow not in flows and self._has_heartbeats(flow)
        ]
        left_out = [name for name in self._raw if name not in self._used]
        return Parts(self._clusters, taken, self._providers, left_out, idle)

    def _flow(self, flow: Flow, *, is_paused: bool) -> FlowParts:
        taken = FlowParts(flow, is_paused)
        for alias in flow:
            for role in ROLES:
                self._client(taken, alias, role)
        self._used.add(f"{flow}.{keys.ENABLED.name}")
        worker = self._clusters[flow.target].worker
        for key, places in origins(self._raw, settings_layers(flow)).items():
            name = places[-1].name
            written = parse_name(name, self._aliases)
            if key in _OF_THE_FORM or written.role or key.startswith(_PROVIDERS):
                continue
            self._used.add(name)
            row = TABLE.get(key)
            # What a connector may have as well is written there: the worker's keys are also read by other clients.
            is_workers = row is not None and row.scope & Scope.WORKER and not row.scope & Scope.CONNECTOR
            (worker if is_workers else taken.connector)[key] = self._raw[name]
        return taken

    def _client(self, taken: FlowParts, alias: str, role: str) -> None:
        flow = taken.flow
        cluster = self._clusters.setdefault(alias, ClusterParts(alias))
        alone = origins(self._raw, client_layers(alias, role, None))
        for key, places in origins(self._raw, client_layers(alias, role, flow)).items():
            name, value = places[-1].name, self._raw[places[-1].name]
            self._used.add(name)
            if key in alone and alone[key][-1].name == name:
                self._of_cluster(cluster, role, key, alone[key][-1])
            elif name == f"{flow}.producer.override.{key}":
                taken.clients[f"producer.override.{key}"] = value
            else:
                taken.clients[f"{'source' if alias == flow.source else 'target'}.{role}.{key}"] = value

    def _of_cluster(self, cluster: ClusterParts, role: str, key: str, origin: Origin) -> None:
        is_roles = origin.name == f"{cluster.alias}.{role}.{key}"
        (cluster.roles[role] if is_roles else cluster.plain)[key] = self._raw[origin.name]

    def _has_heartbeats(self, pair: Flow) -> bool:
        name = f"{pair}.{keys.EMIT_HEARTBEATS_ENABLED.name}"
        top = self._raw.get(keys.EMIT_HEARTBEATS_ENABLED.name, "true")
        return _is_true(self._raw, self._resolver, name, default=top)


def _is_true(raw: Mapping[str, str], resolver: Resolver, name: str, default: str) -> bool:
    return bool(keys.ENABLED.parse(resolver.resolve(name, raw.get(name, default)), written_as=name))


EMIT_CHECKPOINTS = "emit.checkpoints.enabled"
EMIT_HEARTBEATS = "emit.heartbeats.enabled"


class FlowKeys:
    """Adds the keys of one flow to what is read."""

    def __init__(self, reading: Reading, flow: Flow) -> None:
        self._reading = reading
        self._flow = flow

    def add_of(self, scope: Scope, key: str, value: str, tree: Tree, owners: Mapping[Scope, str]) -> None:
        """Add a key that one connector has; one that is only another's gets a warning with its right place."""
        row = TABLE.get(key)
        if row is None or not row.scope & Scope.CONNECTOR or row.scope & scope:
            self.add(key, value, tree)
            return
        places = " or ".join(owner for other, owner in owners.items() if row.scope & other)
        self._reading.warn(
            tree, f"this connector does not have the key; it has no effect here. Write it into {places}."
        )

    def add(self, key: str, value: str, tree: Tree) -> None:
        """Add a key of the flow; if connectors differ, the first one's counts, with a warning."""
        name = f"{self._flow}.{key}"
        earlier = self._reading.entry(name)
        if earlier is None:
            self._reading.add(name, value, tree)
        elif earlier.value != value:
            where = f"{earlier.place} on line {earlier.line}" if earlier.line else earlier.place
            self._reading.warn(tree, f"{where} says something else, and counts for the whole flow.")

    def add_own(self, key: str, value: str, tree: Tree) -> None:
        """A key that follows from a connector being there or not."""
        self._reading.add(f"{self._flow}.{key}", value, tree, f"{tree.path} ({key})")

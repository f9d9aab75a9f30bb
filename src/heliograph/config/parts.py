"""A configuration taken apart by whom it is for: each cluster's clients and worker, each flow's connectors.

Made of the entries of a dedicated-mode file, with the overlay rules applied: what counts, where it counts. Other forms
are written from it. Placeholders are not resolved; nothing is lost without a word: `left_out` are the names that no
flow reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import TABLE
from heliograph.config.names import ROLES, parse_name
from heliograph.config.overlays import Origin, client_layers, origins, settings_layers
from heliograph.config.types import Scope, split_list
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from heliograph.config.placeholders import Resolver

_OF_THE_FORM = ("enabled", "source.cluster.alias", "target.cluster.alias", "name", "connector.class")
_PROVIDERS = "config.providers"


@dataclass
class ClusterParts:
    """What a cluster's keys say: `plain` to every client, `roles` to one kind of them, `worker` to Connect's worker."""

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

"""The configuration that replication reads (`MirrorConfig`), and its implementation for a dedicated-mode file.

A dedicated-mode file has many flows; a connector in a Connect worker (`connect_config`) is one. They differ in where
records go: a file writes everything of a flow `A->B` to B; in Connect the worker's producer writes records, and source
offsets are kept in the worker's cluster, and neither need be the cluster of `target.cluster.*`.

Values keep their placeholders until they are needed: `client` and `settings` resolve them at the call, so the next
client sees a secret that has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from heliograph.config import keys
from heliograph.config.keys import client_keys
from heliograph.config.resolve.overlays import Layer, Origin, client_layers, origins, resolved_view, settings_layers
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.config.resolve.settings import Settings
    from heliograph.diagnostics import Diagnostic


SOURCE_CONNECTOR_NAME = "MirrorSourceConnector"  # of a flow in a dedicated-mode file


class MirrorConfig(Protocol):
    """One file or one connector, understood."""

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Return the flows that replicate here."""

    @property
    def paths(self) -> Mapping[str, str]:
        """Return the author's name of each setting, if it was not written as properties."""

    @property
    def enabled_flows(self) -> tuple[Flow, ...]:
        """Return every flow that replicates, here or elsewhere, as far as the configuration knows."""

    @property
    def heartbeat_flows(self) -> tuple[Flow, ...]:
        """Return the flows that heartbeats are written for."""

    @property
    def notes_offsets(self) -> bool:
        """Return whether checkpoints and heartbeats are noted as source offsets, as Connect does for all records."""

    def source_connector(self, flow: Flow) -> str:
        """The name under which the connector of a flow keeps its source offsets; also part of its transactional ids."""

    def label(self, flow: Flow) -> str:
        """Return the name of a flow in tasks and log lines; no two that run at once share it."""

    def settings(self, flow: Flow) -> Settings:
        """Connector and worker settings of a flow, typed, resolved."""

    def client(self, alias: str, role: str, flow: Flow | None = None) -> Settings:
        """Connection and client settings of one cluster for one role (consumer, producer, admin), resolved."""

    def records_client(self, flow: Flow) -> Settings:
        """The producer of a flow's records: copies, checkpoints, heartbeats."""

    def offsets_client(self, flow: Flow) -> Settings | None:
        """Return the client of the cluster that keeps source offsets; None if records are written to the same."""


@dataclass(frozen=True)
class MirrorMakerConfig:
    """A dedicated-mode file, understood. `lines` says where each key stands; `targets` are those of `--clusters`.

    What was written in another form has `paths`, the names its author knows; `paused` flows, with the reason; and
    `connectors`, the names of its source connectors, by which Connect keeps source offsets.
    """

    raw: Mapping[str, str] = field(repr=False)
    clusters: tuple[str, ...]
    flows: tuple[Flow, ...]
    warnings: tuple[Diagnostic, ...]
    resolver: Resolver
    notes: tuple[Diagnostic, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    paused: Mapping[Flow, str] = field(default_factory=dict)
    connectors: Mapping[Flow, str] = field(default_factory=dict)

    def settings(self, flow: Flow) -> Settings:
        """Connector and worker settings of a flow, typed, resolved."""
        aliases = {keys.SOURCE_ALIAS.name: flow.source, keys.TARGET_ALIAS.name: flow.target}
        return self._view(settings_layers(flow), f"{flow}.", aliases)

    def client(self, alias: str, role: str, flow: Flow | None = None) -> Settings:
        """Connection and client settings of one cluster for one role (consumer, producer, admin), resolved."""
        return self._view(client_layers(alias, role, flow), f"{alias}.")

    def records_client(self, flow: Flow) -> Settings:
        """The producer of a flow's records."""
        return self.client(flow.target, "producer", flow)

    def offsets_client(self, flow: Flow) -> Settings | None:  # noqa: ARG002
        """Return None: source offsets are kept with the records."""
        return None

    @property
    def notes_offsets(self) -> bool:
        """Return False: a file's offsets cannot be requested."""
        return False

    def source_connector(self, flow: Flow) -> str:
        """Return the name in the flow's form, else Java MM2's: there each flow has its own topic of source offsets."""
        return self.connectors.get(flow, SOURCE_CONNECTOR_NAME)

    def label(self, flow: Flow) -> str:
        """A flow is called by its clusters."""
        return str(flow)

    def origins(self, flow: Flow) -> dict[str, tuple[Origin, ...]]:
        """Return the origins of each of a flow's settings; the last place wins."""
        return origins(self.raw, settings_layers(flow))

    def client_origins(self, alias: str, role: str, flow: Flow | None = None) -> dict[str, tuple[Origin, ...]]:
        """Return the origins of each of a client's settings; the last place wins."""
        return origins(self.raw, client_layers(alias, role, flow))

    @property
    def enabled_flows(self) -> tuple[Flow, ...]:
        """Every flow that replicates, also those that `--clusters` leaves to other processes."""
        pairs = [Flow(source, target) for source in self.clusters for target in self.clusters if source != target]
        names = {pair: f"{pair}.{keys.ENABLED.name}" for pair in pairs}
        return tuple(
            pair
            for pair, name in names.items()
            if name in self.raw
            and keys.ENABLED.parse(self.resolver.resolve(name, self.raw[name]), name, self.raw[name])
        )

    @property
    def heartbeat_flows(self) -> tuple[Flow, ...]:
        """Every ordered pair of clusters that heartbeats are written for, replicating or not.

        A cluster without bootstrap servers takes no part; `--clusters` leaves only pairs into its targets.
        """
        reachable = [alias for alias in self.clusters if self.is_reachable(alias)]
        pairs = [Flow(source, target) for source in reachable for target in reachable if source != target]
        return tuple(
            pair
            for pair in pairs
            if (not self.targets or pair.target in self.targets) and self.settings(pair)[keys.EMIT_HEARTBEATS_ENABLED]
        )

    def is_reachable(self, alias: str) -> bool:
        """Return whether the file has a cluster's address."""
        return bool(self.client(alias, "admin").values.get(client_keys.BOOTSTRAP_SERVERS.name, "").strip())

    @property
    def cluster_pairs(self) -> tuple[Flow, ...]:
        """Every pair for which something runs: MM2 has a herder for each."""
        return tuple(dict.fromkeys((*self.flows, *self.heartbeat_flows)))

    def _view(self, layers: tuple[Layer, ...], prefix: str, fixed: Mapping[str, str] | None = None) -> Settings:
        view = resolved_view(self.raw, layers, self.resolver, prefix)
        view.values |= fixed or {}
        return view

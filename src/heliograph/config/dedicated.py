"""The dedicated-mode file (`connect-mirror-maker.sh mm2.properties`) to settings per flow, by MM2's overlay rules.

Order, later wins (reference: MirrorMakerConfig): top-level keys of the connectors; `A->B.` keys. Worker keys come from
`B.`; client keys from the top level (security only), then `A.`, then `A.consumer.` / `A.producer.` / `A.admin.`, then
`A->B.consumer.` and its siblings.

Values keep their placeholders until a client is built: `client` and `settings` resolve them at the call.
Invariant: `load` reports every problem of the file at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import client_keys, keys
from heliograph.config.audit import audit_names
from heliograph.config.placeholders import Lookup, Resolver
from heliograph.config.properties import as_map, parse_properties
from heliograph.config.types import Scope, Settings, split_list
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROLES = ("consumer", "producer", "admin")


@dataclass(frozen=True)
class MirrorMakerConfig:
    """A dedicated-mode file, understood."""

    raw: Mapping[str, str]
    clusters: tuple[str, ...]
    flows: tuple[Flow, ...]
    warnings: tuple[str, ...]
    resolver: Resolver

    def settings(self, flow: Flow) -> Settings:
        """Connector and worker settings of a flow, typed, resolved."""
        values: dict[str, str] = {}
        for name, value in self.raw.items():
            row = keys.TABLE.get(name)
            if row is not None and row.scope & (Scope.CONNECTOR | Scope.WORKER):
                values[row.replaced_by or name] = value
        values.update(self._stripped(f"{flow.target}.", only=Scope.WORKER))
        values.update(self._stripped(f"{flow}."))
        values[keys.SOURCE_ALIAS.name] = flow.source
        values[keys.TARGET_ALIAS.name] = flow.target
        return Settings(self._resolved(values), prefix=f"{flow}.")

    @property
    def heartbeat_flows(self) -> tuple[Flow, ...]:
        """x."""
        return self.flows

    def client(self, alias: str, role: str, flow: Flow | None = None) -> Settings:
        """Connection and client settings of one cluster for one role (consumer, producer, admin), resolved."""
        values = {
            name: value
            for name, value in self.raw.items()
            if (row := keys.TABLE.get(name)) is not None and row.scope & Scope.CLIENT and name != "bootstrap.servers"
        }
        values.update(self._stripped(f"{alias}.", only=Scope.CLIENT))
        values.update(self._stripped(f"{alias}.{role}."))
        if flow is not None:
            side = "source" if alias == flow.source else "target"
            values.update(self._stripped(f"{flow}.{role}."))
            values.update(self._stripped(f"{flow}.{side}.{role}."))
        return Settings(self._resolved(values), prefix=f"{alias}.")

    def _stripped(self, prefix: str, only: Scope | None = None) -> dict[str, str]:
        found = {}
        for name, value in self.raw.items():
            if not name.startswith(prefix):
                continue
            rest = name.removeprefix(prefix)
            row = keys.TABLE.get(rest)
            if only is None or (row is not None and row.scope & only):
                found[row.replaced_by if row is not None and row.replaced_by else rest] = value
        return found

    def _resolved(self, values: Mapping[str, str]) -> dict[str, str]:
        return {name: self.resolver.resolve(name, value) for name, value in values.items()}


def load(text: str, lookup: Lookup, only_targets: Iterable[str] = ()) -> MirrorMakerConfig:
    """Read a file's text; raises one ConfigError with every problem found."""
    raw = as_map(parse_properties(text))
    resolver = Resolver(lookup, raw)
    clusters = _clusters(raw, resolver)
    targets = tuple(only_targets)
    problems = _unresolvable(raw, resolver)
    problems += _unknown_flow_aliases(raw, clusters)
    problems += [
        f"--clusters {alias}: there is no such cluster; 'clusters' lists {', '.join(clusters)}."
        for alias in targets
        if alias not in clusters
    ]
    if problems:
        raise ConfigError(problems)
    flows = tuple(flow for flow in _enabled_flows(raw, clusters, resolver) if not targets or flow.target in targets)
    if not flows:
        raise ConfigError(_no_flow_sentence(clusters, targets))
    config = MirrorMakerConfig(raw, clusters, flows, tuple(audit_names(raw, clusters)), resolver)
    problems = _missing_bootstrap(config)
    if problems:  # a mistyped key may be the reason
        problems += [warning for warning in config.warnings if "bootstrap" in warning]
    problems += _invalid_values(config)
    if problems:
        raise ConfigError(problems)
    return config


def _clusters(raw: Mapping[str, str], resolver: Resolver) -> tuple[str, ...]:
    text = raw.get(keys.CLUSTERS.name)
    if text is None or not text.strip():
        raise ConfigError("clusters: the file does not list its clusters; add a line such as 'clusters = A, B'.")
    aliases = split_list(resolver.resolve(keys.CLUSTERS.name, text))
    twice = sorted({alias for alias in aliases if aliases.count(alias) > 1})
    if twice:
        raise ConfigError(f"clusters: {', '.join(twice)} is listed twice.")
    if "" in aliases:
        raise ConfigError("clusters: the list has an empty alias; look for two commas in a row.")
    return aliases


def _unresolvable(raw: Mapping[str, str], resolver: Resolver) -> list[str]:
    problems: list[str] = []
    for name, value in raw.items():
        try:
            resolver.resolve(name, value)
        except ConfigError as error:
            problems += error.problems
    return problems


def _unknown_flow_aliases(raw: Mapping[str, str], clusters: tuple[str, ...]) -> list[str]:
    problems = []
    for name in raw:
        if "->" not in name or _flow_of(name, clusters) is not None:
            continue
        source, _, rest = name.partition("->")
        # The part behind the arrow may hold dots of the key; only a flow of known aliases tells where the alias ends.
        target = next((alias for alias in clusters if rest.startswith(f"{alias}.")), rest.partition(".")[0])
        unknown = [alias for alias in (source, target) if alias not in clusters]
        problems.append(f"{name}: {' and '.join(unknown)} is not in 'clusters', which lists {', '.join(clusters)}.")
    return problems


def _flow_of(name: str, clusters: tuple[str, ...]) -> Flow | None:
    for source in clusters:
        for target in clusters:
            if name.startswith(f"{source}->{target}."):
                return Flow(source, target)
    return None


def _enabled_flows(raw: Mapping[str, str], clusters: tuple[str, ...], resolver: Resolver) -> Iterable[Flow]:
    for source in clusters:
        for target in clusters:
            name = f"{source}->{target}.enabled"
            if source == target or name not in raw:
                continue
            if keys.ENABLED.parse(resolver.resolve(name, raw[name]), written_as=name):
                yield Flow(source, target)


def _no_flow_sentence(clusters: tuple[str, ...], targets: tuple[str, ...]) -> str:
    source, target = (*clusters, "B")[:2]
    into = f" into {', '.join(targets)}" if targets else ""
    return (
        f"No source->target replication flow{into} is enabled; add a line such as '{source}->{target}.enabled = true'."
    )


def _missing_bootstrap(config: MirrorMakerConfig) -> list[str]:
    used = dict.fromkeys(alias for flow in config.flows for alias in flow)
    return [
        f"{alias}.bootstrap.servers: the cluster '{alias}' has no bootstrap servers;"
        f" add '{alias}.bootstrap.servers = host:port'."
        for alias in used
        if not config.client(alias, "admin")[client_keys.BOOTSTRAP_SERVERS]
    ]


def _invalid_values(config: MirrorMakerConfig) -> list[str]:
    problems: dict[str, None] = {}
    for flow in config.flows:
        views = [config.settings(flow)]
        views += [config.client(alias, role, flow) for alias in flow for role in ROLES]
        for view in views:
            for name in view.values:
                row = keys.TABLE.get(name)
                if row is None:
                    continue
                try:
                    view[row]
                except ConfigError as error:
                    problems |= dict.fromkeys(error.problems)
    return list(problems)

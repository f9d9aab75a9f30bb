"""Reads a dedicated-mode file (`connect-mirror-maker.sh mm2.properties`) and finds everything that is wrong with it.

`load` is for those who want to run the file, `examine` for those who want to hear about it. Sentences that begin with a
name of the file begin with its line. A problem does not hide the next one: what cannot be resolved is left out and the
rest is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import client_keys, keys
from heliograph.config.audit import audit_names, repeated_names
from heliograph.config.contradictions import contradictions, is_active_active_identity
from heliograph.config.mirror_maker import MirrorMakerConfig
from heliograph.config.names import ROLES, flow_of
from heliograph.config.placeholders import Lookup, Resolver
from heliograph.config.properties import Entry, as_map, parse_properties
from heliograph.config.types import Settings, split_list
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["ROLES", "MirrorMakerConfig", "Report", "examine", "load"]


@dataclass(frozen=True, slots=True)
class Report:
    """What there is to say about a file. `config` is None where not even its flows are known."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    config: MirrorMakerConfig | None


def load(text: str, lookup: Lookup, only_targets: Iterable[str] = ()) -> MirrorMakerConfig:
    """Read a file's text; raises one ConfigError with every problem found, and the typos that may be the reason."""
    report = examine(text, lookup, only_targets)
    if report.problems or report.config is None:
        raise ConfigError([*report.problems, *(warning for warning in report.warnings if "Did you mean" in warning)])
    return report.config


def examine(text: str, lookup: Lookup, only_targets: Iterable[str] = ()) -> Report:
    """Look at the whole file; never raises for what is in it."""
    try:
        entries = parse_properties(text)
        raw = as_map(entries)
        resolver = Resolver(lookup, raw)
        clusters = _clusters(raw, resolver)
    except ConfigError as error:
        return Report(error.problems, (), (), None)
    return _Examination(entries, raw, resolver, clusters, tuple(only_targets)).report()


class _Examination:
    """One file under examination: problems and warnings are gathered as keys, which drops repetitions."""

    def __init__(
        self,
        entries: list[Entry],
        raw: dict[str, str],
        resolver: Resolver,
        clusters: tuple[str, ...],
        targets: tuple[str, ...],
    ) -> None:
        self._places: dict[str, list[int]] = {}
        for entry in entries:
            self._places.setdefault(entry.key, []).append(entry.line)
        self._resolver = resolver
        self._clusters = clusters
        self._targets = targets
        self._problems: dict[str, None] = {}
        self._warnings: dict[str, None] = dict.fromkeys(repeated_names(self._places))
        audit = audit_names(raw, clusters)
        self._warnings |= dict.fromkeys(audit.warnings)
        self._notes = audit.notes
        self._raw = self._resolvable(raw)

    def report(self) -> Report:
        """Go through the file from the general to the particular."""
        self._add(_unknown_flow_aliases(self._raw, self._clusters))
        self._add(_unknown_targets(self._targets, self._clusters))
        enabled = self._enabled_flows()
        flows = tuple(flow for flow in enabled if not self._targets or flow.target in self._targets)
        if not flows and not self._problems:
            self._add([_no_flow_sentence(self._clusters, self._targets)])
        config = self._config(flows)
        self._add(self._missing_bootstrap(config))
        for flow in flows:
            self._look_at_flow(config, flow)
        for flow in config.cluster_pairs if flows and not self._problems else ():
            self._add(_invalid_values([config.settings(flow)]))
        return Report(
            tuple(map(self._located, self._problems)),
            tuple(map(self._located, self._warnings)),
            tuple(map(self._located, self._notes)),
            self._config(flows) if flows else None,
        )

    def _config(self, flows: tuple[Flow, ...]) -> MirrorMakerConfig:
        lines = {name: numbers[-1] for name, numbers in self._places.items()}
        warnings, notes = (tuple(map(self._located, sentences)) for sentences in (self._warnings, self._notes))
        return MirrorMakerConfig(
            self._raw, self._clusters, flows, warnings, self._resolver, notes, lines, self._targets
        )

    def _look_at_flow(self, config: MirrorMakerConfig, flow: Flow) -> None:
        settings, consumer = config.settings(flow), config.client(flow.source, "consumer", flow)
        views = [settings, *(config.client(alias, role, flow) for alias in flow for role in ROLES)]
        problems = list(_invalid_values(views))
        self._add(problems)
        if problems:
            return
        found = contradictions(flow, settings, consumer)
        self._add(found.problems)
        self._warnings |= dict.fromkeys(found.warnings)
        if is_active_active_identity(flow, settings, config.flows):
            self._warnings[
                f"{settings.written_as(keys.POLICY_CLASS)}: {flow} and its way back keep topic names, so a topic that"
                " both replicate would go round for ever; give the two flows different 'topics'."
            ] = None

    def _add(self, problems: Iterable[str]) -> None:
        self._problems |= dict.fromkeys(problems)

    def _resolvable(self, raw: Mapping[str, str]) -> dict[str, str]:
        kept = {}
        for name, value in raw.items():
            try:
                self._resolver.resolve(name, value)
                kept[name] = value
            except ConfigError as error:
                self._add(error.problems)
        return kept

    def _enabled_flows(self) -> list[Flow]:
        flows = []
        for flow in _pairs(self._clusters):
            name = f"{flow}.{keys.ENABLED.name}"
            if name not in self._raw:
                continue
            try:
                if keys.ENABLED.parse(self._resolver.resolve(name, self._raw[name]), written_as=name):
                    flows.append(flow)
            except ConfigError as error:
                self._add(error.problems)
        return flows

    def _missing_bootstrap(self, config: MirrorMakerConfig) -> Iterator[str]:
        for alias in dict.fromkeys(alias for flow in config.flows for alias in flow):
            name = f"{alias}.{client_keys.BOOTSTRAP_SERVERS.name}"
            is_unresolved = name in self._places and name not in self._raw
            if not is_unresolved and not config.client(alias, "admin")[client_keys.BOOTSTRAP_SERVERS]:
                yield f"{name}: the cluster '{alias}' has no bootstrap servers; add '{name} = host:port'."

    def _located(self, sentence: str) -> str:
        numbers = self._places.get(sentence.partition(": ")[0])
        return f"line {numbers[-1]}: {sentence}" if numbers else sentence


def _pairs(clusters: tuple[str, ...]) -> Iterator[Flow]:
    return (Flow(source, target) for source in clusters for target in clusters if source != target)


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


def _unknown_flow_aliases(raw: Mapping[str, str], clusters: tuple[str, ...]) -> Iterator[str]:
    for name in raw:
        if "->" not in name or flow_of(name, clusters) is not None:
            continue
        source, _, rest = name.partition("->")
        # The part behind the arrow may hold dots of the key; only a flow of known aliases tells where the alias ends.
        target = next((alias for alias in clusters if rest.startswith(f"{alias}.")), rest.partition(".")[0])
        unknown = [alias for alias in (source, target) if alias not in clusters]
        yield f"{name}: {' and '.join(unknown)} is not in 'clusters', which lists {', '.join(clusters)}."


def _unknown_targets(targets: tuple[str, ...], clusters: tuple[str, ...]) -> Iterator[str]:
    for alias in targets:
        if alias not in clusters:
            yield f"--clusters {alias}: there is no such cluster; 'clusters' lists {', '.join(clusters)}."


def _no_flow_sentence(clusters: tuple[str, ...], targets: tuple[str, ...]) -> str:
    source, target = (*clusters, "B")[:2]
    into = f" into {', '.join(targets)}" if targets else ""
    return (
        f"No source->target replication flow{into} is enabled; add a line such as '{source}->{target}.enabled = true'."
    )


def _invalid_values(views: Iterable[Settings]) -> Iterator[str]:
    for view in views:
        for name in view.values:
            row = keys.TABLE.get(name)
            if row is None:
                continue
            try:
                view[row]
            except ConfigError as error:
                yield from error.problems

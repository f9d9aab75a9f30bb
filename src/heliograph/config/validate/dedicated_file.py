"""Examination of a dedicated-mode file, or of another form of one: everything that is wrong with it.

`load` is for callers that run the file, `examine` for those that report on it. A problem does not hide the next one: a
placeholder that cannot be resolved stays as it is, an invalid value is left out, and a cluster or flow that seems to be
meant is examined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.effective.metrics_config import metrics_settings
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.formats.conversion import ConfigText, read_entries
from heliograph.config.formats.reading import repeated_names
from heliograph.config.keys import client_keys
from heliograph.config.keys.table import Scope
from heliograph.config.resolve.key_places import KeyPlaces
from heliograph.config.resolve.overlays import ROLES, flow_of
from heliograph.config.resolve.placeholders import Lookup, Resolver
from heliograph.config.resolve.settings import Settings, Unresolved
from heliograph.config.syntax.properties import as_map
from heliograph.config.validate.cluster_list import read_clusters
from heliograph.config.validate.contradictions import contradictions
from heliograph.config.validate.key_names import audit_names
from heliograph.diagnostics import (
    Diagnosed,
    Diagnostic,
    Mention,
    Severity,
    Text,
    in_order,
    note,
    problem,
    with_severity,
)
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from heliograph.config.formats.reading import Reading


_CLUSTERS = Mention(keys.CLUSTERS.name)


@dataclass(frozen=True, slots=True)
class Report(Diagnosed):
    """The result of an examination.

    `config` is None if not even the clusters are known. `sound` is for further checks: the same without invalid values,
    and with placeholders that cannot be resolved left as they are; its flows include those that may be meant to be
    enabled. `settled` are names that need no further diagnostic: another one would only follow from the first.
    """

    diagnostics: tuple[Diagnostic, ...]
    config: MirrorMakerConfig | None = None
    sound: MirrorMakerConfig | None = None
    settled: frozenset[str] = frozenset()


def load(text: str | ConfigText, lookup: Lookup, only_targets: Iterable[str] = ()) -> MirrorMakerConfig:
    """Read a file's text; raises one ConfigError with every problem found, and the typos that may be the reason."""
    return usable(examine(text, lookup, only_targets))


def usable(report: Report) -> MirrorMakerConfig:
    """Return the configuration of a report without problems; raises ConfigError otherwise."""
    if report.problems or report.config is None:
        raise ConfigError((*report.problems, *(each for each in report.warnings if each.suggestion)))
    return report.config


def examine(text: str | ConfigText, lookup: Lookup, only_targets: Iterable[str] = ()) -> Report:
    """Examine the whole file; never raises for its content."""
    source = ConfigText(text) if isinstance(text, str) else text
    try:
        reading, lookup = read_entries(source, lookup)
    except ConfigError as error:
        return Report(error.diagnostics)
    return _FileExamination(reading, lookup, tuple(only_targets), needs_secrets=source.needs_secrets).report()


class _FileExamination:
    """One file under examination; diagnostics are gathered as keys, which drops repetitions."""

    def __init__(self, reading: Reading, lookup: Lookup, targets: tuple[str, ...], *, needs_secrets: bool) -> None:
        self._reading = reading
        self._raw = as_map(reading.entries)
        numbers: dict[str, list[int]] = {}
        for entry in reading.entries:
            numbers.setdefault(entry.key, []).append(entry.line)
        self._lines = {name: lines[-1] for name, lines in numbers.items()}
        self._paths = {entry.key: entry.place for entry in reading.entries if entry.place}
        self._resolver = Resolver(lookup, self._raw, is_patient=not needs_secrets)
        tolerant = self._resolver.tolerant()
        self._looking = tolerant if needs_secrets else self._resolver
        self._targets = targets
        self._places = KeyPlaces(self._lines, self._paths)
        self._found: dict[Diagnostic, None] = dict.fromkeys(repeated_names(numbers))
        self._invalid: set[str] = set()  # names whose value is not one of their key
        self._settled: set[str] = set()
        self._clusters, self._assumed, wrong_clusters = read_clusters(self._raw, tolerant, reading.assumed)
        # The reader of a resource without a cluster has a diagnostic of its own.
        if not (reading.is_resource and keys.CLUSTERS.name not in self._raw):
            self._add(wrong_clusters)

    def report(self) -> Report:
        """Examine the file from the general to the particular."""
        if not self._clusters:
            return Report(self._diagnostics())
        self._find_unresolved()
        self._add(audit_names(self._raw, self._clusters))
        self._add(_unknown_targets(self._targets, self._clusters))
        flows, doubtful = self._flows()
        looked_at = (*flows, *doubtful)
        config = self._config(looked_at, self._looking)
        self._find_missing_bootstrap(config)
        for pair in looked_at:
            self._add_invalid([config.client(alias, role, pair) for alias in pair for role in ROLES])
        for pair in _pairs(self._clusters):
            self._add_invalid([config.settings(pair)], heartbeats_only=pair not in looked_at)
        self._add_invalid([metrics_settings(config.raw, config.resolver)])
        sound = self._config(looked_at, self._looking, without=self._invalid)
        for flow in looked_at:
            self._find_contradictions(sound, flow)
        self._add(_idle_clusters(sound, self._assumed))
        sound = self._config(looked_at, self._looking, without=self._invalid)
        settled = frozenset(self._settled | self._invalid)
        return Report(self._diagnostics(), self._config(flows, self._resolver), sound, settled)

    def _diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the findings of the reader and ours, in the order of the file."""
        return in_order((*self._reading.diagnostics, *self._places.located(self._found)))

    def _config(self, flows: tuple[Flow, ...], resolver: Resolver, without: Container[str] = ()) -> MirrorMakerConfig:
        raw = {name: value for name, value in self._raw.items() if name not in without}
        found = self._diagnostics()
        return MirrorMakerConfig(
            raw,
            self._clusters,
            flows,
            with_severity(found, Severity.WARNING),
            resolver,
            with_severity(found, Severity.NOTE),
            self._lines,
            self._targets,
            paths=self._paths,
            paused=self._reading.paused,
            connectors=self._reading.connectors,
        )

    def _add_invalid(self, views: Iterable[Settings], *, heartbeats_only: bool = False) -> None:
        """Parse the values that are set; for a pair that does not replicate only those that decide about heartbeats."""
        for view in views:
            for name in view.values:
                row = keys.TABLE.get(name)
                if isinstance(view.values[name], Unresolved):
                    self._invalid.add(view.written(name))
                    continue
                if row is None or (heartbeats_only and row.scope & Scope.CONNECTOR != Scope.HEARTBEAT):
                    continue
                try:
                    view[row]
                except ConfigError as error:
                    self._add_about(view.written(name), error)
                    self._invalid.add(view.written(name))

    def _find_contradictions(self, config: MirrorMakerConfig, flow: Flow) -> None:
        settings = config.settings(flow)
        consumer, producer = config.client(flow.source, "consumer", flow), config.records_client(flow)
        self._add(contradictions(flow, settings, consumer, producer))

    def _add(self, diagnostics: Iterable[Diagnostic]) -> None:
        self._found |= dict.fromkeys(diagnostics)

    def _add_about(self, name: str, error: ConfigError) -> None:
        if name not in self._settled:
            self._add(error.problems)

    def _find_unresolved(self) -> None:
        is_patient = self._resolver.is_patient
        self._add(() if is_patient else self._resolver.problems)
        for name, value in self._raw.items():
            if is_patient and name != keys.CLUSTERS.name:
                continue
            try:
                self._resolver.resolve(name, value)
            except ConfigError as error:
                self._add(error.problems)
                self._settled.add(name)

    def _flows(self) -> tuple[tuple[Flow, ...], tuple[Flow, ...]]:
        """Return the flows to run, and those that are not enabled but may be meant to be: they are examined, too."""
        enabled: list[Flow] = []
        doubtful: list[Flow] = []
        named = {flow_of(name, self._clusters) for name in self._raw}
        for flow in _pairs(self._clusters):
            name = f"{flow}.{keys.ENABLED.name}"
            if name not in self._raw:
                if flow in named and self._assumed & set(flow):
                    doubtful.append(flow)
                continue
            try:
                if keys.ENABLED.parse(self._looking.resolve(name, self._raw[name]), name, self._raw[name]):
                    enabled.append(flow)
            except ConfigError as error:
                self._add_about(name, error)
                self._invalid.add(name)
                doubtful.append(flow)
        flows, doubtful = self._into_targets(enabled), self._into_targets(doubtful)
        if flows or self._invalid:
            return tuple(flows), tuple(doubtful)
        is_reported = self._reading.is_resource and self._reading.problems and not self._reading.paused
        if not is_reported and set(self._targets) <= set(self._clusters):
            self._add(_no_flow(self._reading.paused, self._clusters, self._targets))
        return (), tuple(self._into_targets(flow for flow in _pairs(self._clusters) if flow in named))

    def _into_targets(self, flows: Iterable[Flow]) -> list[Flow]:
        return [flow for flow in flows if not self._targets or flow.target in self._targets]

    def _find_missing_bootstrap(self, config: MirrorMakerConfig) -> None:
        """Report each cluster of a flow without servers; an alias that no cluster has may be a typo and needs none."""
        for alias in dict.fromkeys(alias for flow in config.flows for alias in flow):
            name = f"{alias}.{client_keys.BOOTSTRAP_SERVERS.name}"
            if config.is_reachable(alias):
                continue
            self._settled.add(name)
            if alias not in self._assumed and alias not in self._reading.assumed:
                self._add([problem(f"the cluster '{alias}' has no bootstrap servers; set this to host:port.", name)])


def _pairs(clusters: tuple[str, ...]) -> Iterator[Flow]:
    return (Flow(source, target) for source in clusters for target in clusters if source != target)


def _unknown_targets(targets: tuple[str, ...], clusters: tuple[str, ...]) -> Iterator[Diagnostic]:
    for alias in targets:
        if alias not in clusters:
            listed = f"' lists {', '.join(clusters)}."
            yield problem(Text.of("there is no such cluster; '", _CLUSTERS, listed), f"--clusters {alias}")


def _no_flow(paused: Mapping[Flow, str], clusters: tuple[str, ...], targets: tuple[str, ...]) -> Iterator[Diagnostic]:
    if paused:
        yield from (problem(f"No flow is left to run: {flow} is {why}.") for flow, why in paused.items())
        return
    source, target = (*clusters, "B")[:2]
    into = f" into {', '.join(targets)}" if targets else ""
    enabled = Mention(f"{source}->{target}.{keys.ENABLED.name}", is_advice=True)
    start = f"No source->target replication flow{into} is enabled; add a line such as '"
    yield problem(Text.of(start, enabled, " = true'."))


def _idle_clusters(config: MirrorMakerConfig, assumed: Container[str]) -> Iterator[Diagnostic]:
    used = {alias for flow in config.flows for alias in flow}
    for alias in config.clusters:
        if alias not in used and alias not in assumed and not config.is_reachable(alias):
            message = f"'{alias}' has no bootstrap servers and no enabled flow; nothing is done with it."
            yield note(message, keys.CLUSTERS.name)

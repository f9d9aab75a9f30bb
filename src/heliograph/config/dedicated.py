"""Reads a configuration and finds everything that is wrong with it: a dedicated-mode file, or another form of one.

`load` is for those who want to run the file, `examine` for those who want to hear about it. Sentences that begin with a
name of the file begin with its line. A problem does not hide the next one: what cannot be resolved is left out and the
rest is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import client_keys, keys
from heliograph.config.audit import audit_names, repeated_names
from heliograph.config.contradictions import contradictions
from heliograph.config.forms import ConfigText, read_entries
from heliograph.config.mirror_maker import MirrorMakerConfig
from heliograph.config.names import ROLES, flow_of
from heliograph.config.placeholders import Lookup, Resolver
from heliograph.config.places import located
from heliograph.config.properties import as_map
from heliograph.config.reading import Told
from heliograph.config.types import Scope, Settings, Unresolved, split_list
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from heliograph.config.reading import Reading

__all__ = ["ROLES", "MirrorMakerConfig", "Report", "examine", "load", "usable"]


@dataclass(frozen=True, slots=True)
class Report:
    """What there is to say about a file.

    `config` is None where not even its flows are known. `sound` is the same without the values that were found invalid,
    for those who go on looking; None where so much is missing that they would only find the consequences.
    """

    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    config: MirrorMakerConfig | None = None
    sound: MirrorMakerConfig | None = None


def load(text: str | ConfigText, lookup: Lookup, only_targets: Iterable[str] = ()) -> MirrorMakerConfig:
    """Read a file's text; raises one ConfigError with every problem found, and the typos that may be the reason."""
    report = examine(text, lookup, only_targets)
    return usable(report)


def usable(report: Report) -> MirrorMakerConfig:
    """The configuration of a report without problems."""
    if report.problems or report.config is None:
        raise ConfigError(report.problems, [warning for warning in report.warnings if "Did you mean" in warning])
    return report.config


def examine(text: str | ConfigText, lookup: Lookup, only_targets: Iterable[str] = ()) -> Report:
    """Look at the whole file; never raises for what is in it."""
    source = ConfigText(text) if isinstance(text, str) else text
    reading = None
    try:
        reading, lookup = read_entries(source, lookup)
        resolver = Resolver(lookup, as_map(reading.entries), is_patient=not source.needs_secrets)
        clusters = _clusters(as_map(reading.entries), resolver)
    except ConfigError as error:
        if reading is None:
            return Report(error.problems)
        # A reader that found no cluster has said so in its own words.
        problems = _sentences_of(reading.problems) or error.problems
        return Report(problems, _sentences_of(reading.warnings), _sentences_of(reading.notes))
    return _Examination(reading, resolver, clusters, tuple(only_targets)).report()


class _Examination:
    """One file under examination: problems and warnings are gathered as keys, which drops repetitions."""

    def __init__(
        self, reading: Reading, resolver: Resolver, clusters: tuple[str, ...], targets: tuple[str, ...]
    ) -> None:
        self._reading = reading
        raw = as_map(reading.entries)
        self._places: dict[str, list[int]] = {}
        for entry in reading.entries:
            self._places.setdefault(entry.key, []).append(entry.line)
        self._lines = {name: numbers[-1] for name, numbers in self._places.items()}
        self._paths = {entry.key: entry.place for entry in reading.entries if entry.place}
        self._resolver = resolver
        self._clusters = clusters
        self._targets = targets
        self._problems: dict[str, None] = {}
        self._warnings: dict[str, None] = dict.fromkeys(repeated_names(self._places))
        audit = audit_names(raw, clusters)
        self._warnings |= dict.fromkeys(audit.warnings)
        self._notes = audit.notes
        self._invalid: set[str] = set()
        self._raw = self._resolvable(raw)

    def report(self) -> Report:
        """Go through the file from the general to the particular."""
        self._add(_unknown_flow_aliases(self._raw, self._clusters))
        self._add(_unknown_targets(self._targets, self._clusters))
        enabled = self._enabled_flows()
        flows = tuple(flow for flow in enabled if not self._targets or flow.target in self._targets)
        if not flows and not self._problems and not self._reading.problems:
            self._add(_no_flow_sentences(self._reading.paused, self._clusters, self._targets))
        config = self._config(flows)
        self._add(self._missing_bootstrap(config))
        is_whole = not self._problems and not self._reading.problems
        for pair in config.flows:
            self._add_invalid([config.client(alias, role, pair) for alias in pair for role in ROLES])
        for pair in _pairs(self._clusters):
            self._add_invalid([config.settings(pair)], heartbeats_only=pair not in flows)
        sound = self._config(flows, without=self._invalid)
        for flow in flows:
            self._find_contradictions(sound, flow)
        self._notes += tuple(_idle_clusters(sound))
        if not flows:
            return Report(*self._sentences())
        sound = self._config(flows, without=self._invalid)
        return Report(*self._sentences(), self._config(flows), sound if is_whole else None)

    def _sentences(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Problems, warnings and notes, each in the order of the file."""
        read = self._reading
        problems, warnings, notes = (
            _sentences_of((*told, *(Told(self._line(each), self._located(each)) for each in found)))
            for told, found in (
                (read.problems, self._problems),
                (read.warnings, self._warnings),
                (read.notes, self._notes),
            )
        )
        return problems, warnings, notes

    def _config(self, flows: tuple[Flow, ...], without: Container[str] = ()) -> MirrorMakerConfig:
        raw = {name: value for name, value in self._raw.items() if name not in without}
        _, warnings, notes = self._sentences()
        return MirrorMakerConfig(
            *(raw, self._clusters, flows, warnings, self._resolver, notes, self._lines, self._targets),
            paths=self._paths,
            paused=self._reading.paused,
            connectors=self._reading.connectors,
        )

    def _add_invalid(self, views: Iterable[Settings], *, heartbeats_only: bool = False) -> None:
        """Parse what is set; of a pair that does not replicate only what decides about heartbeats."""
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
                    self._add(error.problems)
                    self._invalid.add(view.written(name))

    def _find_contradictions(self, config: MirrorMakerConfig, flow: Flow) -> None:
        settings = config.settings(flow)
        found = contradictions(flow, settings, config.client(flow.source, "consumer", flow))
        self._add(found.problems)
        self._warnings |= dict.fromkeys(found.warnings)

    def _add(self, problems: Iterable[str]) -> None:
        self._problems |= dict.fromkeys(problems)

    def _resolvable(self, raw: Mapping[str, str]) -> dict[str, str]:
        if self._resolver.is_patient:
            return dict(raw)
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
                if keys.ENABLED.parse(self._resolver.resolve(name, self._raw[name]), name, self._raw[name]):
                    flows.append(flow)
            except ConfigError as error:
                self._add(error.problems)
        return flows

    def _missing_bootstrap(self, config: MirrorMakerConfig) -> Iterator[str]:
        for alias in dict.fromkeys(alias for flow in config.flows for alias in flow):
            name = f"{alias}.{client_keys.BOOTSTRAP_SERVERS.name}"
            is_unresolved = name in self._places and name not in self._raw
            if not is_unresolved and not config.is_reachable(alias):
                yield f"{name}: the cluster '{alias}' has no bootstrap servers; set this to host:port."

    def _line(self, sentence: str) -> int:
        """The line of the key a sentence begins with; 0 where it begins with something else."""
        return self._lines.get(sentence.partition(": ")[0], 0)

    def _located(self, sentence: str) -> str:
        return located(sentence, self._lines, self._paths)


def _sentences_of(told: Iterable[Told]) -> tuple[str, ...]:
    return tuple(each.sentence for each in sorted(told, key=lambda each: each.line))


def _pairs(clusters: tuple[str, ...]) -> Iterator[Flow]:
    return (Flow(source, target) for source in clusters for target in clusters if source != target)


_NO_CLUSTERS = "clusters: the file does not list its clusters; add a line such as 'clusters = A, B'."
_A_WORKER = "clusters: this is the file of a Connect worker; run it with 'heliograph worker FILE'."
_A_CONNECTOR = "clusters: this is a connector; give it to a worker, or make a file of it with 'heliograph convert'."


def _other_form(raw: Mapping[str, str]) -> str | None:
    if "config.storage.topic" in raw:
        return _A_WORKER
    return _A_CONNECTOR if any("connector.class" in text for entry in raw.items() for text in entry) else None


def _clusters(raw: Mapping[str, str], resolver: Resolver) -> tuple[str, ...]:
    text = raw.get(keys.CLUSTERS.name)
    if text is None or not text.strip():
        raise ConfigError(_other_form(raw) or _NO_CLUSTERS)
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


def _no_flow_sentences(
    paused: Mapping[Flow, str], clusters: tuple[str, ...], targets: tuple[str, ...]
) -> Iterator[str]:
    if paused:
        yield from (f"No flow is left to run: {flow} is {why}." for flow, why in paused.items())
        return
    source, target = (*clusters, "B")[:2]
    into = f" into {', '.join(targets)}" if targets else ""
    yield (
        f"No source->target replication flow{into} is enabled; add a line such as '{source}->{target}.enabled = true'."
    )


def _idle_clusters(config: MirrorMakerConfig) -> Iterator[str]:
    used = {alias for flow in config.flows for alias in flow}
    for alias in config.clusters:
        if alias not in used and not config.is_reachable(alias):
            yield f"clusters: '{alias}' has no bootstrap servers and no enabled flow; nothing is done with it."

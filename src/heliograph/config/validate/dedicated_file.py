"""Reads a configuration and finds everything that is wrong with it: a dedicated-mode file, or another form of one.

`load` is for those who want to run the file, `examine` for those who want to hear about it. Sentences that begin with a
name of the file begin with its line. A problem does not hide the next one: a placeholder that means nothing stays as it
is, a value that cannot be used is left out, a cluster or flow that seems to be meant is looked at.


Which clusters a dedicated-mode file speaks of: those that `clusters` lists, and those that its flows name.

An alias that is missing in the list is a problem. Whoever looks for the next problems takes it for a cluster, or every
mistake in its flows would only be told once the list is right. No form of a file but this one can lack the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.formats.conversion import ConfigText, read_entries
from heliograph.config.formats.reading import Diagnostic, repeated_names
from heliograph.config.keys import client_keys
from heliograph.config.keys.table import Scope, split_list
from heliograph.config.resolve.diagnostics import located
from heliograph.config.resolve.overlays import ROLES, flow_of
from heliograph.config.resolve.placeholders import Lookup, Resolver
from heliograph.config.resolve.settings import Settings, Unresolved
from heliograph.config.syntax.properties import as_map
from heliograph.config.validate.contradictions import contradictions
from heliograph.config.validate.key_names import audit_names
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping

    from heliograph.config.formats.reading import Reading


_NAME = keys.CLUSTERS.name
_SERVERS = f".{client_keys.BOOTSTRAP_SERVERS.name}"
_A_WORKER = f"{_NAME}: this is the file of a Connect worker; run it with 'heliograph worker FILE'."
_A_CONNECTOR = f"{_NAME}: this is a connector; give it to a worker, or make a file of it with 'heliograph convert'."


class ClusterList(NamedTuple):
    """The aliases in the order of the file; `assumed` are those of them that only flows name. Problems are sentences.

    Without any alias the file is of another form, or says nothing that could be looked at.
    """

    aliases: tuple[str, ...]
    assumed: frozenset[str]
    problems: tuple[str, ...]


def read_clusters(raw: Mapping[str, str], resolver: Resolver, reported: Collection[str] = ()) -> ClusterList:
    """The clusters of a file. `resolver` leaves what it cannot resolve; aliases in `told` have been told of."""
    text = raw.get(_NAME, "").strip()
    if not text and (other_form := _other_form(raw)):
        return ClusterList((), frozenset(), (other_form,))
    listed = split_list(resolver.resolve(_NAME, text))
    if not text or any("${" in alias for alias in listed):  # a variable that is not set is told by who resolves
        named = tuple(dict.fromkeys(_named_by_flows(raw, ())))
        return ClusterList(named, frozenset(), () if text else (_missing(named),))
    problems = list(_wrong_in_list(listed))
    clusters = tuple(dict.fromkeys(filter(None, listed)))
    problems += _unknown_aliases(raw, clusters, reported)
    assumed = frozenset(_named_by_flows(raw, clusters)) - set(clusters)
    return ClusterList((*clusters, *sorted(assumed)), assumed, tuple(problems))


def _missing(named: tuple[str, ...]) -> str:
    example = ", ".join(named or ("A", "B"))
    return f"{_NAME}: the file does not list its clusters; add a line such as '{_NAME} = {example}'."


def _other_form(raw: Mapping[str, str]) -> str | None:
    if "config.storage.topic" in raw:
        return _A_WORKER
    return _A_CONNECTOR if any("connector.class" in text for entry in raw.items() for text in entry) else None


def _wrong_in_list(aliases: tuple[str, ...]) -> Iterator[str]:
    twice = sorted({alias for alias in aliases if alias and aliases.count(alias) > 1})
    if twice:
        yield f"{_NAME}: {', '.join(twice)} is listed twice."
    if "" in aliases:
        yield f"{_NAME}: the list has an empty alias; look for two commas in a row."


def _unknown_aliases(raw: Mapping[str, str], clusters: tuple[str, ...], reported: Collection[str]) -> Iterator[str]:
    for name in raw:
        unknown = [alias for alias in _flow_aliases(name, raw, clusters) if alias not in clusters]
        if unknown and not set(unknown) <= set(reported):
            yield f"{name}: {' and '.join(unknown)} is not in '{_NAME}', which lists {', '.join(clusters)}."


def _named_by_flows(raw: Mapping[str, str], clusters: tuple[str, ...]) -> Iterator[str]:
    for name in raw:
        yield from _flow_aliases(name, raw, clusters)


def _flow_aliases(name: str, raw: Mapping[str, str], clusters: tuple[str, ...]) -> tuple[str, ...]:
    """The two aliases of a name such as `A->B.topics`; an alias may have dots, so those that are known tell its end."""
    if "->" not in name:
        return ()
    flow = flow_of(name, clusters)
    if flow is not None:
        return tuple(flow)
    source, _, rest = name.partition("->")
    known = (*clusters, *(each.removesuffix(_SERVERS) for each in raw if each.endswith(_SERVERS)))
    return source, next((alias for alias in known if rest.startswith(f"{alias}.")), rest.partition(".")[0])


__all__ = ["ROLES", "MirrorMakerConfig", "Report", "examine", "load", "usable"]


@dataclass(frozen=True, slots=True)
class Report:
    """What there is to say about a file.

    `config` is None where not even its clusters are known. `sound` is for those who go on looking: the same without the
    values that were found invalid, and with placeholders that mean nothing left as they are; its flows are also those
    that may be meant to be on. `settled` are names about which everything is said: what else they may be blamed for
    only follows from that.
    """

    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    config: MirrorMakerConfig | None = None
    sound: MirrorMakerConfig | None = None
    settled: frozenset[str] = frozenset()


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
    try:
        reading, lookup = read_entries(source, lookup)
    except ConfigError as error:
        return Report(error.problems)
    return _FileExamination(reading, lookup, tuple(only_targets), needs_secrets=source.needs_secrets).report()


class _FileExamination:
    """One file under examination: problems and warnings are gathered as keys, which drops repetitions."""

    def __init__(self, reading: Reading, lookup: Lookup, targets: tuple[str, ...], *, needs_secrets: bool) -> None:
        self._reading = reading
        self._raw = as_map(reading.entries)
        self._places: dict[str, list[int]] = {}
        for entry in reading.entries:
            self._places.setdefault(entry.key, []).append(entry.line)
        self._lines = {name: numbers[-1] for name, numbers in self._places.items()}
        self._paths = {entry.key: entry.place for entry in reading.entries if entry.place}
        self._resolver = Resolver(lookup, self._raw, is_patient=not needs_secrets)
        tolerant = self._resolver.tolerant()
        self._looking = tolerant if needs_secrets else self._resolver
        self._targets = targets
        self._problems: dict[str, None] = {}
        self._warnings: dict[str, None] = dict.fromkeys(repeated_names(self._places))
        self._notes: tuple[str, ...] = ()
        self._invalid: set[str] = set()  # what cannot be used as a value of its key
        self._settled: set[str] = set()
        self._clusters, self._assumed, wrong_clusters = read_clusters(self._raw, tolerant, reading.assumed)
        # The reader of a resource that found no cluster has said so in its own words.
        if not (reading.is_resource and keys.CLUSTERS.name not in self._raw):
            self._add(wrong_clusters)

    def report(self) -> Report:
        """Go through the file from the general to the particular."""
        if not self._clusters:
            return Report(*self._sentences())
        self._find_unresolved()
        audit = audit_names(self._raw, self._clusters)
        self._warnings |= dict.fromkeys(audit.warnings)
        self._notes = audit.notes
        self._add(_unknown_targets(self._targets, self._clusters))
        flows, doubtful = self._flows()
        looked_at = (*flows, *doubtful)
        config = self._config(looked_at, self._looking)
        self._find_missing_bootstrap(config)
        for pair in looked_at:
            self._add_invalid([config.client(alias, role, pair) for alias in pair for role in ROLES])
        for pair in _pairs(self._clusters):
            self._add_invalid([config.settings(pair)], heartbeats_only=pair not in looked_at)
        sound = self._config(looked_at, self._looking, without=self._invalid)
        for flow in looked_at:
            self._find_contradictions(sound, flow)
        self._notes += tuple(_idle_clusters(sound, self._assumed))
        sound = self._config(looked_at, self._looking, without=self._invalid)
        settled = frozenset(self._settled | self._invalid)
        return Report(*self._sentences(), self._config(flows, self._resolver), sound, settled)

    def _sentences(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Problems, warnings and notes, each in the order of the file."""
        read = self._reading
        problems, warnings, notes = (
            _sentences_of((*reported, *(Diagnostic(self._line(each), self._located(each)) for each in found)))
            for reported, found in (
                (read.problems, self._problems),
                (read.warnings, self._warnings),
                (read.notes, self._notes),
            )
        )
        return problems, warnings, notes

    def _config(self, flows: tuple[Flow, ...], resolver: Resolver, without: Container[str] = ()) -> MirrorMakerConfig:
        raw = {name: value for name, value in self._raw.items() if name not in without}
        _, warnings, notes = self._sentences()
        return MirrorMakerConfig(
            *(raw, self._clusters, flows, warnings, resolver, notes, self._lines, self._targets),
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
                    self._add_about(view.written(name), error)
                    self._invalid.add(view.written(name))

    def _find_contradictions(self, config: MirrorMakerConfig, flow: Flow) -> None:
        settings = config.settings(flow)
        consumer, producer = config.client(flow.source, "consumer", flow), config.records_client(flow)
        found = contradictions(flow, settings, consumer, producer)
        self._add(found.problems)
        self._warnings |= dict.fromkeys(found.warnings)

    def _add(self, problems: Iterable[str]) -> None:
        self._problems |= dict.fromkeys(problems)

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
        """The flows to run, and those that are not on and may be meant to be: what is wrong with them counts too."""
        enabled: list[Flow] = []
        doubtful: list[Flow] = []
        spoken_of = {flow_of(name, self._clusters) for name in self._raw}
        for flow in _pairs(self._clusters):
            name = f"{flow}.{keys.ENABLED.name}"
            if name not in self._raw:
                if flow in spoken_of and self._assumed & set(flow):
                    doubtful.append(flow)
                continue
            try:
                if keys.ENABLED.parse(self._looking.resolve(name, self._raw[name]), name, self._raw[name]):
                    enabled.append(flow)
            except ConfigError as error:
                self._add_about(name, error)
                self._invalid.add(name)
                doubtful.append(flow)
        flows, doubtful = self._asked_for(enabled), self._asked_for(doubtful)
        if flows or self._invalid:
            return tuple(flows), tuple(doubtful)
        is_reported = self._reading.is_resource and self._reading.problems and not self._reading.paused
        if not is_reported and set(self._targets) <= set(self._clusters):
            self._add(_no_flow_sentences(self._reading.paused, self._clusters, self._targets))
        return (), tuple(self._asked_for(flow for flow in _pairs(self._clusters) if flow in spoken_of))

    def _asked_for(self, flows: Iterable[Flow]) -> list[Flow]:
        return [flow for flow in flows if not self._targets or flow.target in self._targets]

    def _find_missing_bootstrap(self, config: MirrorMakerConfig) -> None:
        """An alias that is told to be no cluster may be a typo; then it needs no servers."""
        for alias in dict.fromkeys(alias for flow in config.flows for alias in flow):
            name = f"{alias}.{client_keys.BOOTSTRAP_SERVERS.name}"
            if config.is_reachable(alias):
                continue
            self._settled.add(name)
            if alias not in self._assumed and alias not in self._reading.assumed:
                self._add([f"{name}: the cluster '{alias}' has no bootstrap servers; set this to host:port."])

    def _line(self, sentence: str) -> int:
        """The line of the key a sentence begins with; 0 where it begins with something else."""
        return self._lines.get(sentence.partition(": ")[0], 0)

    def _located(self, sentence: str) -> str:
        return located(sentence, self._lines, self._paths)


def _sentences_of(reported: Iterable[Diagnostic]) -> tuple[str, ...]:
    return tuple(each.sentence for each in sorted(reported, key=lambda each: each.line))


def _pairs(clusters: tuple[str, ...]) -> Iterator[Flow]:
    return (Flow(source, target) for source in clusters for target in clusters if source != target)


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


def _idle_clusters(config: MirrorMakerConfig, assumed: Container[str]) -> Iterator[str]:
    used = {alias for flow in config.flows for alias in flow}
    for alias in config.clusters:
        if alias not in used and alias not in assumed and not config.is_reachable(alias):
            yield f"clusters: '{alias}' has no bootstrap servers and no enabled flow; nothing is done with it."

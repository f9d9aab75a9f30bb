"""Checks of a configuration beyond its text: patterns, classes, addresses, logins and files are tried.

The examinations in `config/validate` find wrong values and contradictions. Here each part that uses the settings is
built as it would be at the start, without a cluster. `run` and `validate` check the same; only `validate` also checks
that the files exist, since a flow whose file comes later starts later. For a connector the answer of its worker comes
first. If the worker is not known, its config providers and its exactly-once support are not held against the connector.

Invariant: each part is tried by itself, and a name that is settled gets no further diagnostic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.effective.connect_config import CLASSES, ConnectorConfig, kind_of
from heliograph.config.resolve.key_places import KeyPlaces
from heliograph.config.resolve.overlays import ROLES
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.resolve.redaction import has_literal_secret
from heliograph.config.resolve.suggestions import nearest
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.config.validate.dedicated_file import Report, examine
from heliograph.config.validate.key_names import audit_connector
from heliograph.config.validate.worker_file import WorkerReport, examine_worker
from heliograph.diagnostics import Diagnosed, Diagnostic, Severity, in_order, note, problem, warning
from heliograph.driver.clusters.cluster_specs import spec_of
from heliograph.errors import ConfigError
from heliograph.mirror.policy.change_rules import ChangeRules
from heliograph.mirror.policy.filters import config_property_filter, group_filter, topic_filter
from heliograph.mirror.policy.replication_policy import make_policy
from heliograph.mirror.topics.topology import warn_about_cycles
from heliograph.model import Flow
from heliograph.operations.named_files import check_files

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.config.formats.connector_text import ConnectorText
    from heliograph.config.formats.conversion import ConfigText
    from heliograph.config.resolve.placeholders import Lookup
    from heliograph.config.resolve.settings import Settings
    from heliograph.model import ConnectorKind


_ANY_WORKER = {keys.EXACTLY_ONCE_SOURCE_SUPPORT.name: "enabled"}
_CLASS = "connector.class"
_ALIAS = keys.SOURCE_ALIAS.name
_OVERRIDES = "producer.override."
_SHORT = {name.rpartition(".")[2]: kind for kind, name in CLASSES.items()}
_FILTERS = {
    "source": (make_policy, topic_filter, config_property_filter, ChangeRules.of),
    "checkpoint": (make_policy, topic_filter, group_filter),
    "heartbeat": (make_policy,),
}


class CheckedPart(NamedTuple):
    """Something that is made of settings, and those settings: its problems name their keys."""

    settings: Settings
    build: Callable[[], object]


def examine_all(
    text: str | ConfigText, lookup: Lookup, only_targets: Iterable[str] = (), *, with_files: bool = False
) -> Report:
    """Examine a file without a cluster: as `examine`, and with every part tried."""
    report = examine(text, lookup, only_targets)
    if report.sound is None:
        return report
    parts = [*_parts(report.sound), *(_file_parts(report.sound) if with_files else ())]
    places = KeyPlaces(report.sound.lines, report.sound.paths)
    problems = places.located(part_problems(parts, report.settled))
    general = [warning(text) for text in (*_cycle_warnings(report.sound), *_same_name_warnings(report.sound))]
    return replace(report, diagnostics=(*in_order((*report.diagnostics, *problems)), *general))


def examine_worker_all(text: str, lookup: Lookup) -> WorkerReport:
    """Examine the file of a Connect worker in the same way, with the files that it names."""
    report = examine_worker(text, lookup)
    if report.sound is None:
        return report
    client = report.sound.client
    parts = [CheckedPart(client, partial(spec_of, client, "worker")), CheckedPart(client, partial(check_files, client))]
    problems = KeyPlaces(report.sound.lines).located(part_problems(parts, report.settled))
    return replace(report, diagnostics=in_order((*report.diagnostics, *problems)))


def _cycle_warnings(config: MirrorMakerConfig) -> list[str]:
    try:
        return warn_about_cycles({flow: config.settings(flow) for flow in config.enabled_flows})
    except ConfigError:  # a policy or a pattern that cannot be used, which is a problem of its own
        return []


def _same_name_warnings(config: MirrorMakerConfig) -> Iterator[str]:
    """Yield a warning for each pair of flows in both directions that both sync groups."""
    key = keys.SYNC_GROUP_OFFSETS_ENABLED
    try:
        syncing = {flow for flow in config.enabled_flows if config.settings(flow)[key]}
    except ConfigError:  # which is a problem of its own
        return
    for flow in sorted(syncing):
        if flow.source < flow.target and Flow(flow.target, flow.source) in syncing:
            yield (
                f"{flow} and {flow.target}->{flow.source} both have {key.name}; if groups of the same name consume on"
                " both clusters, their offsets are not synced, so that neither skips what it has not read. Give them"
                " different names, or exclude them with groups.exclude; 'heliograph plan' names them."
            )


def part_problems(parts: Iterable[CheckedPart], settled: Container[str]) -> list[Diagnostic]:
    """Return every problem of every part, once, by the name that its key has in the file."""
    problems: dict[Diagnostic, None] = {}
    for part in parts:
        try:
            part.build()
        except ConfigError as error:
            for each in error.problems:
                written = part.settings.written(each.key) if each.key in keys.TABLE else each.key
                if written not in settled:
                    problems[each.about(written)] = None
    return list(problems)


def _parts(config: MirrorMakerConfig) -> Iterator[CheckedPart]:
    for flow in config.flows:
        settings = config.settings(flow)
        for make in (make_policy, topic_filter, config_property_filter, group_filter, ChangeRules.of):
            yield CheckedPart(settings, partial(make, settings))
    for alias, client in _clients(config):
        yield CheckedPart(client, partial(spec_of, client, alias))


def _file_parts(config: MirrorMakerConfig) -> Iterator[CheckedPart]:
    for _alias, client in _clients(config):
        yield CheckedPart(client, partial(check_files, client))


def _clients(config: MirrorMakerConfig) -> Iterator[tuple[str, Settings]]:
    """Every client, with the alias of its cluster; none where the secrets they are made of need not be there."""
    if config.resolver.is_patient:
        return
    for flow in config.flows:
        for alias in flow:
            for role in ROLES:
                yield alias, config.client(alias, role, flow)
    for pair in config.heartbeat_flows:
        yield pair.target, config.client(pair.target, "producer", pair)


@dataclass(frozen=True, slots=True)
class ConnectorReport(Diagnosed):
    """The result of examining a connector; `flow` is None if its clusters are not known."""

    diagnostics: tuple[Diagnostic, ...]
    flow: Flow | None = None


def examine_connector(
    text: ConnectorText, lookup: Lookup, worker: WorkerConfig | None = None, *, name: str = ""
) -> ConnectorReport:
    """Look at a whole connector; `name` is what it is called where the file does not say it."""
    return _ConnectorExamination(text, lookup, worker, name).report()


class _ConnectorExamination:
    """One connector under examination; diagnostics are gathered as keys, which drops repetitions."""

    def __init__(self, text: ConnectorText, lookup: Lookup, worker: WorkerConfig | None, name: str) -> None:
        self._text = text
        self._name = text.name or text.config.get("name") or name
        self._config: dict[str, str | None] = {"name": self._name, **text.config}
        self._raw = {key: value for key, value in text.config.items() if value is not None}
        self._worker: Mapping[str, str] = _ANY_WORKER if worker is None else worker.raw
        self._resolver = Resolver(lookup, {}).tolerant() if worker is None else worker.resolver
        self._is_worker_known = worker is not None
        self._problems: dict[Diagnostic, None] = {}
        self._settled: set[str] = set()

    def report(self) -> ConnectorReport:
        """Examine it from the general to the particular."""
        self._check_name()
        self._find_unresolved()
        kind = self._kind()
        flow = None if kind is None else self._examine(kind)
        audited = audit_connector(kind or "source", self._raw)
        if kind is None:  # a note may be about another kind than the one that is meant
            audited = [each for each in audited if each.severity is not Severity.NOTE]
        unresolved = () if self._is_worker_known else self._left_to_worker()
        found = (*self._problems, *audited, *self._literal_secrets(), *unresolved)
        located = KeyPlaces(self._text.lines).located(found)
        return ConnectorReport(in_order((*self._text.diagnostics, *located)), flow)

    def _check_name(self) -> None:
        inside = self._raw.get("name")
        if self._text.name and inside is not None and inside != self._text.name:
            message = f"the config has '{inside}', the connector is '{self._text.name}'; write one of them."
            self._add("name", [problem(message)])

    def _find_unresolved(self) -> None:
        """A connector may use what its worker declares; a worker that is not known leaves all of it open."""
        resolver = self._resolver.declared_only()
        for name, value in self._raw.items():
            if "${" in value and not self._is_worker_known:
                self._settled.add(name)
                continue
            try:
                resolver.resolve(name, value)
            except ConfigError as error:
                self._add(name, error.problems)

    def _kind(self) -> ConnectorKind | None:
        """Return the connector's kind, or the one that seems to be meant, so that the rest is checked, too."""
        written = self._raw.get(_CLASS, "").strip()
        kind = kind_of(written)
        if kind is None and _CLASS not in self._settled:
            near = nearest(written.rpartition(".")[2], _SHORT)
            kind = None if near is None else _SHORT[near]
            hint = f"Did you mean '{CLASSES[kind]}'?" if kind else f"There are {', '.join(_SHORT)}."
            what = f"'{written}' is not a connector of MirrorMaker 2." if written else "the connector has none."
            self._add(_CLASS, [problem(f"{what} {hint}")])
        return kind

    def _examine(self, kind: ConnectorKind) -> Flow | None:
        is_named = bool(self._raw.get(_ALIAS, "").strip())
        if not is_named:
            self._add(_ALIAS, [problem("the connector does not name its source; add the source's alias.")])
        self._ask_worker(kind)
        connector = self._connector()
        flow = connector.flow
        for client in (*_connector_clients(connector, kind, flow), connector.records_client(flow)):
            self._find_invalid(client)
        connector = self._connector()
        settings = connector.settings(flow)
        parts = [CheckedPart(settings, partial(make, settings)) for make in _FILTERS[kind]]
        parts += _client_parts(connector, kind, flow)
        self._problems |= dict.fromkeys(part_problems(parts, self._settled))
        records = part_problems(_records_parts(connector, flow), self._settled)
        self._problems |= {each: None for each in records if each.key.startswith(_OVERRIDES)}
        return flow if is_named else None

    def _ask_worker(self, kind: ConnectorKind) -> None:
        """Add the worker's answer to PUT /connector-plugins/CLASS/config/validate."""
        plugins = ConnectorPlugins(self._worker, self._resolver.tolerant(), is_limited=self._is_worker_known)
        config = self._config | ({_CLASS: CLASSES[kind]} if _CLASS in self._settled else {})
        for each in plugins.validated(CLASSES[kind], config):
            name = each.definition["name"]
            if each.errors and name not in self._settled:
                self._add(name, each.errors)

    def _connector(self) -> ConnectorConfig:
        """Without what is settled to be wrong; a placeholder that means nothing stays, a missing source has a name."""
        raw = {name: value for name, value in self._raw.items() if name not in self._settled or "${" in value}
        raw.setdefault(_ALIAS, "source")
        resolver = self._resolver.tolerant()
        return ConnectorConfig(self._name, raw, self._worker, resolver, is_limited=self._is_worker_known)

    def _find_invalid(self, client: Settings) -> None:
        for key in client.values:
            row, name = keys.TABLE.get(key), client.written(key)
            if row is None or name not in self._raw or name in self._settled:
                continue
            try:
                client[row]
            except ConfigError as error:
                self._add(name, error.problems)

    def _add(self, name: str, problems: Iterable[Diagnostic]) -> None:
        """Add the problems of a name, which needs no others; those of Connect do not carry the key."""
        self._settled.add(name)
        self._problems |= dict.fromkeys(each if each.key else each.about(name) for each in problems)

    def _literal_secrets(self) -> Iterator[Diagnostic]:
        for name, value in self._raw.items():
            if has_literal_secret(name, value):
                message = "everyone who may read the worker's topics can read this; name it with ${file:...}."
                yield warning(message, name)

    def _left_to_worker(self) -> Iterator[Diagnostic]:
        for name, value in self._raw.items():
            if name in self._settled and "${" in value:
                yield note("what this stands for is looked up by the worker; --worker FILE tries it.", name)


def _connector_clients(connector: ConnectorConfig, kind: ConnectorKind, flow: Flow) -> Iterator[Settings]:
    """The clients of a connector's clusters; heartbeats need no source."""
    for alias in (flow.target,) if kind == "heartbeat" else flow:
        for role in ROLES:
            yield connector.client(alias, role, flow)


def _client_parts(connector: ConnectorConfig, kind: ConnectorKind, flow: Flow) -> Iterator[CheckedPart]:
    for alias in (flow.target,) if kind == "heartbeat" else flow:
        for role in ROLES:
            client = connector.client(alias, role, flow)
            yield CheckedPart(client, partial(spec_of, client, alias))
            yield CheckedPart(client, partial(check_files, client))


def _records_parts(connector: ConnectorConfig, flow: Flow) -> Iterator[CheckedPart]:
    """The producer is the worker's; only what the connector overrides is its own."""
    client = connector.records_client(flow)
    yield CheckedPart(client, partial(spec_of, client, flow.target))
    yield CheckedPart(client, partial(check_files, client))

"""Examination of a Connect worker's configuration: `connect-distributed.properties` or `CONNECT_*` variables.

It is read as Connect reads it: the top of the file is the worker's own connection, `producer.`, `consumer.` and
`admin.` are the defaults of its connectors' clients. Converters are accepted without effect, because record batches are
copied as they are. All problems are reported together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.effective.connect_config import _CONVERTERS, _OWN, WorkerConfig, policy_name
from heliograph.config.effective.rest_config import RestAccess, RestListener, jvm_property, rest_access, rest_listeners
from heliograph.config.keys import client_keys, worker_keys
from heliograph.config.keys.table import Scope
from heliograph.config.resolve.key_places import KeyPlaces
from heliograph.config.resolve.overlays import ROLES, role_scope
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.resolve.settings import Unresolved
from heliograph.config.resolve.suggestions import nearest, unknown_key
from heliograph.config.syntax.properties import Entry, as_map, parse_leniently
from heliograph.diagnostics import Diagnosed, Diagnostic, in_order, note, problem
from heliograph.errors import ConfigError, try_both

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from heliograph.config.resolve.placeholders import Lookup


VARIABLE_PREFIX = "CONNECT_"
_OF_FLOWS = "this is an MM2 file, of clusters and flows; run it with 'heliograph run FILE'."
_REQUIRED = {
    client_keys.BOOTSTRAP_SERVERS.name: "host:port",
    keys.GROUP_ID.name: "connect-cluster",
    worker_keys.CONFIG_STORAGE_TOPIC.name: "connect-configs",
    keys.OFFSET_STORAGE_TOPIC.name: "connect-offsets",
    worker_keys.STATUS_STORAGE_TOPIC.name: "connect-status",
}
# Of a container, not of the worker in it.
_CONTAINERS_OWN = ("CONNECT_LOG4J_", "CONNECT_CUB_", "CONNECT_OPTS", "CONNECT_HEAP_OPTS")
_STORES = ("offset.storage.", "config.storage.", "status.storage.")
_OPEN_PREFIXES = ("config.providers.", "listeners.https.", "topic.creation.")


@dataclass(frozen=True, slots=True)
class WorkerReport(Diagnosed):
    """The result of an examination; `config` is None if it cannot be used.

    `sound` is for further checks: without invalid values, and with placeholders that cannot be resolved left as they
    are. The names in `settled` need no further diagnostic.
    """

    diagnostics: tuple[Diagnostic, ...]
    config: WorkerConfig | None = None
    sound: WorkerConfig | None = None
    settled: frozenset[str] = frozenset()


def is_worker_file(text: str) -> bool:
    """Return whether properties are those of a worker, not of clusters and flows; one of its topics may be missing."""
    raw = as_map(parse_leniently(text).entries)
    is_of_flows = keys.CLUSTERS.name in raw or any("->" in name for name in raw)
    return not is_of_flows and any(name.endswith(".storage.topic") and name in raw for name in _REQUIRED)


def load_worker(text: str, lookup: Lookup) -> WorkerConfig:
    """Read a file's text; raises one ConfigError with every problem found."""
    return usable_worker(examine_worker(text, lookup))


def usable_worker(report: WorkerReport) -> WorkerConfig:
    """Return the configuration of a report without problems; raises ConfigError otherwise."""
    if report.config is None:
        raise ConfigError((*report.problems, *(each for each in report.warnings if each.suggestion)))
    return report.config


def examine_worker(text: str, lookup: Lookup, *, needs_secrets: bool = True) -> WorkerReport:
    """Examine a whole file; never raises for its content. Without a need for secrets they need not be there."""
    entries, problems = parse_leniently(text)
    raw = as_map(entries)
    if keys.CLUSTERS.name in raw and worker_keys.CONFIG_STORAGE_TOPIC.name not in raw:
        return WorkerReport((problem(_OF_FLOWS, keys.CLUSTERS.name),))
    return _examine(entries, lookup, problems, needs_secrets=needs_secrets)


def examine_environment(variables: Mapping[str, str], lookup: Lookup) -> WorkerReport:
    """Examine the variables of a container; those that are not `CONNECT_*` are ignored."""
    entries = [Entry(name, value, 0) for name, value in environment_properties(variables).items()]
    if not entries:
        what = f"There is neither a file nor a variable that begins with {VARIABLE_PREFIX}"
        return WorkerReport((problem(f"{what}; name the file: heliograph worker connect-distributed.properties."),))
    return _examine(entries, lookup)


def environment_properties(variables: Mapping[str, str]) -> dict[str, str]:
    """`CONNECT_REST_PORT` is `rest.port`; two underscores stand for one, three for a dash, as in container images."""
    return {
        _property_name(name): value
        for name, value in sorted(variables.items())
        if name.startswith(VARIABLE_PREFIX) and not name.startswith(_CONTAINERS_OWN) and name != VARIABLE_PREFIX
    }


def _property_name(variable: str) -> str:
    text = variable.removeprefix(VARIABLE_PREFIX).lower()
    return text.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def _examine(
    entries: list[Entry], lookup: Lookup, unreadable: Iterable[Diagnostic] = (), *, needs_secrets: bool = True
) -> WorkerReport:
    raw = _jvm_properties(lookup) | as_map(entries)
    resolver = Resolver(lookup, raw, is_patient=not needs_secrets)
    lines = {entry.key: entry.line for entry in entries if entry.line}
    wrong = _wrong_values(raw, resolver)
    problems = [*resolver.problems, *_missing(raw), *(each for found in wrong.values() for each in found)]
    sound_raw = {name: value for name, value in raw.items() if name not in wrong or "${" in value}
    sound = WorkerConfig(sound_raw, resolver.tolerant(), lines=lines)
    rest = RestAccess()
    try:
        _, rest = try_both(lambda: policy_name(raw), lambda: _rest(sound, lookup) if needs_secrets else rest)
    except ConfigError as error:
        problems += [each for each in error.problems if each.key not in wrong]
    found = KeyPlaces(lines).located((*problems, *_audit(raw)))
    report = WorkerReport(in_order((*unreadable, *found)))
    about = (report.warnings, report.notes)
    config = None if report.problems else WorkerConfig(raw, resolver, *about, lines, rest)
    sound = WorkerConfig(sound_raw, resolver.tolerant(), *about, lines)
    settled = {*wrong, *(name for name in _REQUIRED if not raw.get(name, "").strip())}
    return WorkerReport(report.diagnostics, config, sound, frozenset(settled))


def _jvm_properties(lookup: Lookup) -> dict[str, str]:
    """Return the properties that operators of Connect set for its JVM; the file's keys win."""
    found = {
        row.name: jvm_property(row.name, lookup)
        for row in (worker_keys.OAUTH_ALLOWED_URLS, worker_keys.OAUTH_ALLOWED_FILES)
    }
    return {name: value for name, value in found.items() if value is not None}


def _rest(worker: WorkerConfig, lookup: Lookup) -> RestAccess:
    """Return the access to REST; listeners that cannot be read might be https, so the rest is checked as if so."""
    listeners: tuple[RestListener, ...] = (RestListener("", 0, is_https=True),)
    problems: tuple[Diagnostic, ...] = ()
    try:
        listeners = rest_listeners(worker.settings)
    except ConfigError as error:
        problems = error.problems
    try:
        access = rest_access(worker.raw, worker.resolver, listeners, lookup)
    except ConfigError as error:
        problems += error.problems
    if problems:
        raise ConfigError(problems)
    return access


def _missing(raw: Mapping[str, str]) -> Iterator[Diagnostic]:
    for name, example in _REQUIRED.items():
        if not raw.get(name, "").strip():
            yield problem(f"the worker needs it; add a line such as '{name} = {example}'.", name)
    stores = [raw[name].strip() for name in _REQUIRED if name.endswith(".storage.topic") and name in raw]
    if len(set(stores)) < len(stores):
        yield problem(
            "config.storage.topic, offset.storage.topic and status.storage.topic must be three different topics."
        )


def _wrong_values(raw: Mapping[str, str], resolver: Resolver) -> dict[str, tuple[Diagnostic, ...]]:
    """Return by name the problems of its value."""
    wrong = {}
    for name, value in raw.items():
        try:
            _check_value(resolver, name, value)
        except ConfigError as error:
            wrong[name] = error.problems
    return wrong


def _check_value(resolver: Resolver, name: str, value: str) -> None:
    resolved = resolver.looked_up(name, value)
    if isinstance(resolved, Unresolved):
        return
    role = next((role for role in ROLES if name.startswith(f"{role}.")), None)
    key = name if role is None or name in keys.TABLE else name.removeprefix(f"{role}.")
    row = keys.TABLE.get(key)
    wanted = _OWN if role is None else role_scope(role) | Scope.CLIENT
    if row is not None and row.scope & wanted and key not in _CONVERTERS:
        row.parse(resolved, name, value)


def _audit(raw: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a warning for each unknown key, and a note for each that has no effect."""
    known = [name for name, row in keys.TABLE.items() if row.scope & _OWN]
    for name, value in raw.items():
        near = _meant_of_store(name)
        if near is not None or not _is_known(name):
            what = "not a key of a worker" if name in keys.TABLE else "unknown key"
            yield unknown_key(name, near or nearest(name, known), what=(what,))
        if (reason := _no_effect(name, value)) is not None:
            yield note(f"this key has no effect{reason}.", name)


def _meant_of_store(name: str) -> str | None:
    """Return the key of a store that a name may be a typo of; any other setting of the store's topic is not a typo."""
    store = next((store for store in _STORES if name.startswith(store)), None)
    if store is None or name in keys.TABLE:
        return None
    near = nearest(name.removeprefix(store), [key.removeprefix(store) for key in keys.TABLE if key.startswith(store)])
    return None if near is None else store + near


def _is_known(name: str) -> bool:
    if name.startswith((*_CONVERTERS, *_STORES, *_OPEN_PREFIXES)):
        return True
    if name.startswith(tuple(f"{role}." for role in ROLES)):
        return True
    row = keys.TABLE.get(name)
    if row is None:
        return False
    return bool(row.scope & (_OWN | Scope.ROLES)) or name.startswith("heliograph.")


def _no_effect(name: str, value: str) -> str | None:
    """Return why a key has no effect in a worker, as the end of a sentence; None if it has one."""
    if name.startswith("internal."):
        return "; the worker's own topics are always JSON without schemas"
    if name in _CONVERTERS:
        is_bytes = value.strip().endswith("ByteArrayConverter")
        return None if is_bytes else "; records are copied byte by byte, whatever the converter"
    if name.startswith(_CONVERTERS):
        return None  # a converter's own setting: the converter has a note
    if name.startswith(_STORES) and name not in keys.TABLE:
        of_another = "; the worker's topics are made with the settings they need"
        return of_another if _meant_of_store(name) is None else None
    row = keys.TABLE.get(name)
    return None if row is None or not row.support.is_ignored_by_workers else f" here: {row.support.reason}"

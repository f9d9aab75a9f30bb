"""What there is to say about the names in a dedicated-mode file: unknown keys, keys in the wrong place, ignored keys.

MM2 drops what it does not know without a word; one typo then means a flow that quietly does something else. A *warning*
is for what the user has to mend; a *note* for a key that is understood and has no effect here, with the reason.


What there is to say about the names in a connector's config: typos, keys that are another's, keys without effect.

The rules are those for a flow of a dedicated-mode file (`audit`), since MM2 makes connectors of flows; what differs is
where a misplaced key belongs. Connect takes every name without a word.

Keys of a connector that nobody knows: Connect takes them without a word, and one typo then means another flow.

Only what cannot be anybody's is named. Behind the prefixes of clients, converters and transforms everything may stand,
and a class of the user's may read what it likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.effective.connect_config import CLASSES
from heliograph.config.keys import TABLE
from heliograph.config.keys.table import Key, Scope
from heliograph.config.resolve.diagnostics import did_you_mean, nearest, until_then
from heliograph.config.resolve.overlays import (
    DROPPED_AT_TOP,
    WrittenName,
    flow_of,
    is_every_clients,
    is_read_at_top,
    parse_name,
    role_scope,
)
from heliograph.config.validate.connector_plugins import SCOPES
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.model import ConnectorKind


# Prefixes whose rest is free, because it belongs to a provider, a listener or a converter.
_OPEN_PREFIXES = (
    "config.providers.",
    "listeners.https.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "offset.storage.",
    "config.storage.",
    "status.storage.",
)
CLASS_KEYS = (
    "replication.policy.class",
    "topic.filter.class",
    "group.filter.class",
    "config.property.filter.class",
)
# The same for what only a connector has; MM2 reads them behind a flow and drops them at the top.
_OPEN_CONNECTOR_PREFIXES = ("transforms.", "predicates.", "topic.creation.")


class Audit(NamedTuple):
    """Sentences about names, in file order; each begins with the name."""

    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def audit_names(raw: Mapping[str, str], clusters: tuple[str, ...]) -> Audit:
    """Look at every name once."""
    warnings, notes = [], []
    example = _example_flow(raw, clusters)
    for name, value in raw.items():
        written = parse_name(name, clusters)
        warning = None if _may_be_a_classes_own(written, raw) else _warning(written, raw, example)
        note = None if warning else _note(written, value)
        warnings += [warning] if warning else []
        notes += [note] if note else []
    return Audit(tuple(warnings), tuple(notes))


def _note(written: WrittenName, value: str) -> str | None:
    row = TABLE.get(written.key)
    if row is None or row.support.kind != "ignored" or _is_default(row, value):
        return None
    return f"{written.name}: this key has no effect here: {row.support.reason}."


def _is_default(row: Key[object], value: str) -> bool:
    try:
        return row.parse(value) == row.default
    except ConfigError:
        return False


def _may_be_a_classes_own(written: WrittenName, raw: Mapping[str, str]) -> bool:
    """A policy or filter of the user's may read keys of its own behind a flow; only what looks like a typo is told."""
    if written.flow is None or written.role or written.key in TABLE or _near(written.key, Scope.CONNECTOR):
        return False
    return any(name.endswith(CLASS_KEYS) and ":" in value for name, value in raw.items())


def _warning(written: WrittenName, raw: Mapping[str, str], example: Flow) -> str | None:
    row = TABLE.get(written.key)
    if row is not None and row.replaced_by is not None and not written.role:
        return _about_old_name(written, row, raw)
    if written.role:
        return _about_client_key(written, example)
    if written.flow is not None:
        return _behind_flow(written, raw)
    if written.alias is not None:
        return _behind_alias(written, example)
    return _at_top(written, raw, example)


def _about_old_name(written: WrittenName, row: Key[object], raw: Mapping[str, str]) -> str:
    new = f"{written.prefix}{row.replaced_by}"
    if new in raw:
        return f"{written.name}: this name was removed in Kafka 4.0; '{new}' is there too and counts alone."
    return f"{written.name}: this name was removed in Kafka 4.0; it is read as '{new}'."


def _at_top(written: WrittenName, raw: Mapping[str, str], example: Flow) -> str | None:
    key, row = written.key, TABLE.get(written.key)
    if key.startswith(_OPEN_CONNECTOR_PREFIXES) and row is None:
        return _dropped_at_top(key, f"{example}.{key}")
    if is_read_at_top(key) or key.startswith(_OPEN_PREFIXES) or (row is None and key.startswith("replication.policy.")):
        return None
    if row is None:
        alias, _, rest = key.partition(".")
        hint = f" '{alias}' is not in 'clusters'." if rest in TABLE else _near(key, ~Scope(0)) + _stays(written, raw)
        return f"{key}: unknown key; it has no effect.{hint}"
    if key in DROPPED_AT_TOP:
        return _dropped_at_top(key, f"{example}.{key}")
    if row.scope & Scope.WORKER:
        return _dropped_at_top(key, f"{example.target}.{key}")
    return _dropped_at_top(key, f"{example.source}.{_role_prefix(row)}{key}")


def _dropped_at_top(name: str, instead: str) -> str:
    return (
        f"{name}: Java MM2 ignores this key at the top of the file, and so does Heliograph; write it as in '{instead}'."
    )


def _behind_alias(written: WrittenName, example: Flow) -> str | None:
    key, row = written.key, TABLE.get(written.key)
    if row is None:
        return None if key.startswith(_OPEN_PREFIXES) else _unknown(written, Scope.CLIENT | Scope.WORKER)
    if row.scope & (Scope.CLIENT | Scope.WORKER) or is_every_clients(key):
        return None
    if row.scope & Scope.CONNECTOR:
        return _no_effect(written, f"{example}.{key}")
    if row.scope & Scope.ROLES:
        return _no_effect(written, f"{written.prefix}{_role_prefix(row)}{key}")
    return _no_effect(written, key)


def _behind_flow(written: WrittenName, raw: Mapping[str, str]) -> str | None:
    key, row, flow = written.key, TABLE.get(written.key), written.flow
    assert flow is not None
    if flow.source == flow.target:
        return f"{written.name}: a cluster is not replicated to itself; this key has no effect."
    if row is None:
        is_open = key.startswith((*_OPEN_PREFIXES, *_OPEN_CONNECTOR_PREFIXES, "replication.policy."))
        return None if is_open else _unknown(written, Scope.CONNECTOR) + _stays(written, raw)
    if row.scope & Scope.CONNECTOR:
        return None
    places = {Scope.WORKER: f"{flow.target}.", Scope.CLIENT: f"{flow.source}.", Scope.FILE: ""}
    prefix = next((place for scope, place in places.items() if row.scope & scope), written.prefix + _role_prefix(row))
    return _no_effect(written, prefix + key)


def _about_client_key(written: WrittenName, example: Flow) -> str | None:
    if written.flow is None and written.alias is None:
        return _dropped_at_top(written.name, f"{example.source}.{written.name}")
    if ".override." in written.prefix and written.role != "producer":
        return f"{written.name}: MM2 has no {written.role} that this could override; it has no effect."
    scope = Scope.CLIENT if written.role == "cluster" else Scope.CLIENT | role_scope(written.role)
    row = TABLE.get(written.key)
    if row is not None and row.scope & scope:
        return None
    return _unknown(written, scope)


def _unknown(written: WrittenName, scope: Scope) -> str:
    if f"{written.key}d" in TABLE or f"{written.key}.enabled" in TABLE:  # both stand so in Kafka's documentation
        right = f"{written.key}d" if f"{written.key}d" in TABLE else f"{written.key}.enabled"
        return f"{written.name}: unknown key; it has no effect. Did you mean '{written.prefix}{right}'?"
    where = f" behind '{written.prefix}'" if written.key in TABLE else ""
    return f"{written.name}: unknown key{where}; it has no effect.{_near(written.key, scope, written.prefix)}"


def _no_effect(written: WrittenName, instead: str) -> str:
    return f"{written.name}: this key has no effect behind '{written.prefix}'; write it as in '{instead}'."


def _near(key: str, scope: Scope, prefix: str = "") -> str:
    return did_you_mean(key, _known(scope), prefix)


def _known(scope: Scope) -> list[str]:
    return [name for name, row in TABLE.items() if row.scope & scope and not row.replaced_by]


def _stays(written: WrittenName, raw: Mapping[str, str]) -> str:
    """What a mistyped key of a flow leaves as it is; nothing where the key is set as well, for the flow or for some."""
    near = nearest(written.key, _known(~Scope(0) if written.flow is None else Scope.CONNECTOR))
    is_set = f"{written.prefix}{near}" in raw or f"{near}" in raw
    if written.flow is None:
        is_set = is_set or any(name.endswith(f".{near}") for name in raw)
    return "" if is_set else until_then(near)


def _role_prefix(row: Key[object]) -> str:
    roles = ("consumer", "producer", "admin")
    return next((f"{role}." for role in roles if row.scope & role_scope(role)), "")


def _example_flow(raw: Mapping[str, str], clusters: tuple[str, ...]) -> Flow:
    """A flow to show where a key belongs: the first that the file speaks of."""
    for name in raw:
        flow = flow_of(name, clusters)
        if flow is not None and flow.source != flow.target:
            return flow
    return Flow(*(*clusters, "B")[:2])


_ALIASES = ("\x00", "\x01")  # of no user: what is stripped again must stand nowhere else
_FLOW_PREFIX = "\x00->\x01."
_OWN = frozenset({"name", "connector.class"})  # a flow of a file has no use for them


def audit_connector(kind: ConnectorKind, config: Mapping[str, str]) -> Audit:
    """Look at every name once."""
    misplaced = {name: why for name in config if (why := _misplaced(name)) is not None}
    others = {name: why for name in config if (why := _of_another(kind, name)) is not None}
    reported = {*misplaced, *others, *_OWN}
    as_flow = {f"{_FLOW_PREFIX}{name}": value for name, value in config.items() if name not in reported}
    audit = audit_names(as_flow, _ALIASES)
    warnings, notes = (
        tuple(sentence.replace(_FLOW_PREFIX, "") for sentence in found) for found in (audit.warnings, audit.notes)
    )
    return Audit((*misplaced.values(), *warnings), (*notes, *others.values()))


def _misplaced(name: str) -> str | None:
    """Why a key that is known has no effect in a connector, whatever its kind."""
    row = TABLE.get(name)
    if row is None or row.replaced_by is not None or row.scope & Scope.CONNECTOR:
        return None
    if row.scope & Scope.CLIENT:
        return f"{name}: this key has no effect without a prefix; write it as in 'source.cluster.{name}'."
    if row.scope & Scope.WORKER:
        return f"{name}: this key is the worker's and has no effect in a connector; write it into the worker's file."
    if row.scope & Scope.ROLES:
        return f"{name}: this key has no effect without a prefix; write it as in '{_client_prefix(row)}{name}'."
    return f"{name}: this key has no effect in a connector."


def _client_prefix(row: Key[object]) -> str:
    """The place where the client is set that a key is for; records are written by the worker's producer."""
    if row.scope & Scope.CONSUMER:
        return "source.consumer."
    return "producer.override." if row.scope & Scope.PRODUCER else "source.admin."


def _of_another(kind: ConnectorKind, name: str) -> str | None:
    row = TABLE.get(name)
    if row is None or not row.scope & Scope.CONNECTOR or row.scope & SCOPES[kind]:
        return None
    readers = [CLASSES[each].rpartition(".")[2] for each, scope in SCOPES.items() if row.scope & scope]
    return f"{name}: this key has no effect here: only {' and '.join(readers)} reads it."


_OPEN_CONNECTOR_KEY_PREFIXES = (
    "source.",
    "target.",
    "consumer.",
    "producer.",
    "admin.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "transforms.",
    "predicates.",
    "topic.creation.",
    "config.providers.",
)

_MOST_HINTS = 50


def unknown_keys(config: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each."""
    if any(":" in config.get(key, "") for key in CLASS_KEYS):
        return
    known = [name for name, row in TABLE.items() if row.scope & Scope.CONNECTOR and not row.replaced_by]
    unknown = [name for name in config if name not in TABLE and not name.startswith(_OPEN_CONNECTOR_KEY_PREFIXES)]
    for number, name in enumerate(unknown):
        hint = did_you_mean(name, known) if number < _MOST_HINTS else ""  # each is compared with every known key
        yield f"{name}: unknown key; it has no effect.{hint}"

"""Diagnostics about names: unknown keys, keys in the wrong place, keys without effect.

MM2 and Connect drop a key that they do not know, so one typo changes a flow without a message. Three audits share the
rules: the names of a dedicated-mode file, those of a connector's config, which MM2 makes of a flow, and the keys that a
connector posted to REST has and nothing reads. A *warning* is for what the user should change, a *note* for a key that
is understood and has no effect here, with the reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.config.effective.connect_config import CLASSES
from heliograph.config.keys import TABLE
from heliograph.config.keys.table import Key, Scope
from heliograph.config.resolve.overlays import (
    DROPPED_AT_TOP,
    WrittenName,
    flow_of,
    is_every_clients,
    is_read_at_top,
    parse_name,
    role_scope,
)
from heliograph.config.resolve.suggestions import nearest, unknown_key, until_then
from heliograph.config.validate.connector_definitions import SCOPES
from heliograph.diagnostics import Mention, Text, WithPrefix, note, warning
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.diagnostics import Diagnostic, Part
    from heliograph.model import ConnectorKind


CLASS_KEYS = (
    "replication.policy.class",
    "topic.filter.class",
    "group.filter.class",
    "config.property.filter.class",
)
# Any key may follow these prefixes: it belongs to a provider, a listener or a converter.
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
# The same for what only a connector has; MM2 reads them after a flow's prefix and drops them at the top.
_OPEN_CONNECTOR_PREFIXES = ("transforms.", "predicates.", "topic.creation.")
# The same in a connector's config.
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
_MOST_SUGGESTIONS = 50  # for each one a name is compared with every known key
_ALIASES = ("\x00", "\x01")  # that no user has: the prefix of the flow between them is removed again
_FLOW_PREFIX = "\x00->\x01."
_OWN = frozenset({"name", "connector.class"})  # keys of a connector that a flow does not have
_ANYWHERE = ~Scope(0)


def audit_names(raw: Mapping[str, str], clusters: tuple[str, ...]) -> list[Diagnostic]:
    """Return at most one diagnostic about each name of a dedicated-mode file."""
    found = []
    example = _example_flow(raw, clusters)
    for name, value in raw.items():
        written = parse_name(name, clusters)
        about = None if _may_be_a_classes_own(written, raw) else _warning(written, raw, example)
        about = about or _note(written, value)
        found += [about] if about else []
    return found


def audit_connector(kind: ConnectorKind, config: Mapping[str, str]) -> list[Diagnostic]:
    """Return at most one diagnostic about each name of a connector's config."""
    misplaced = {name: about for name in config if (about := _misplaced(name)) is not None}
    others = {name: about for name in config if (about := _of_another(kind, name)) is not None}
    reported = {*misplaced, *others, *_OWN}
    as_flow = {f"{_FLOW_PREFIX}{name}": value for name, value in config.items() if name not in reported}
    audited = [_without_flow(each) for each in audit_names(as_flow, _ALIASES)]
    return [*misplaced.values(), *audited, *others.values()]


def unknown_keys(config: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a warning for each key of a connector that nothing can read; a class of the user's may read any key."""
    if any(":" in config.get(key, "") for key in CLASS_KEYS):
        return
    known = _known(Scope.CONNECTOR)
    unknown = [name for name in config if name not in TABLE and not name.startswith(_OPEN_CONNECTOR_KEY_PREFIXES)]
    for number, name in enumerate(unknown):
        yield unknown_key(name, nearest(name, known) if number < _MOST_SUGGESTIONS else None)


# --- a dedicated-mode file --------------------------------------------------------------------------------------------


def _note(written: WrittenName, value: str) -> Diagnostic | None:
    row = TABLE.get(written.key)
    if row is None or row.support.kind != "ignored" or _is_default(row, value):
        return None
    return note(f"this key has no effect here: {row.support.reason}.", written.name)


def _is_default(row: Key[object], value: str) -> bool:
    try:
        return row.parse(value) == row.default
    except ConfigError:
        return False


def _may_be_a_classes_own(written: WrittenName, raw: Mapping[str, str]) -> bool:
    """Return whether a policy or filter of the user's may read the key: a flow's key that does not look like a typo."""
    if written.flow is None or written.role or written.key in TABLE or nearest(written.key, _known(Scope.CONNECTOR)):
        return False
    return any(name.endswith(CLASS_KEYS) and ":" in value for name, value in raw.items())


def _warning(written: WrittenName, raw: Mapping[str, str], example: Flow) -> Diagnostic | None:
    row = TABLE.get(written.key)
    if row is not None and row.replaced_by is not None and not written.role:
        return _about_old_name(written, row, raw)
    if written.role:
        return _about_client_key(written, example)
    if written.flow is not None:
        return _of_flow(written, raw)
    if written.alias is not None:
        return _of_cluster(written, example)
    return _at_top(written, raw, example)


def _about_old_name(written: WrittenName, row: Key[object], raw: Mapping[str, str]) -> Diagnostic:
    new = f"{written.prefix}{row.replaced_by}"
    if new in raw:
        message = Text.of("this name was removed in Kafka 4.0; '", Mention(new), "' is there too and counts alone.")
    else:
        message = Text.of("this name was removed in Kafka 4.0; it is read as '", Mention(new, is_advice=True), "'.")
    return warning(message, written.name)


def _at_top(written: WrittenName, raw: Mapping[str, str], example: Flow) -> Diagnostic | None:
    key, row = written.key, TABLE.get(written.key)
    if key.startswith(_OPEN_CONNECTOR_PREFIXES) and row is None:
        return _dropped_at_top(key, f"{example}.{key}")
    if is_read_at_top(key) or key.startswith(_OPEN_PREFIXES) or (row is None and key.startswith("replication.policy.")):
        return None
    if row is None:
        return _unknown_at_top(written, raw)
    if key in DROPPED_AT_TOP:
        return _dropped_at_top(key, f"{example}.{key}")
    if row.scope & Scope.WORKER:
        return _dropped_at_top(key, f"{example.target}.{key}")
    return _dropped_at_top(key, f"{example.source}.{_role_prefix(row)}{key}")


def _unknown_at_top(written: WrittenName, raw: Mapping[str, str]) -> Diagnostic:
    alias, _, rest = written.key.partition(".")
    if rest in TABLE:
        return unknown_key(written.key, None, hint=(f" '{alias}' is not in '", Mention("clusters"), "'."))
    return unknown_key(written.key, nearest(written.key, _known(_ANYWHERE)), hint=(_stays(written, raw),))


def _dropped_at_top(name: str, instead: str) -> Diagnostic:
    ignored = "Java MM2 ignores this key at the top of the file, and so does Heliograph; write it as in '"
    return warning(Text.of(ignored, Mention(instead, is_advice=True), "'."), name)


def _of_cluster(written: WrittenName, example: Flow) -> Diagnostic | None:
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


def _of_flow(written: WrittenName, raw: Mapping[str, str]) -> Diagnostic | None:
    key, row, flow = written.key, TABLE.get(written.key), written.flow
    assert flow is not None
    if flow.source == flow.target:
        return warning("a cluster is not replicated to itself; this key has no effect.", written.name)
    if row is None:
        is_open = key.startswith((*_OPEN_PREFIXES, *_OPEN_CONNECTOR_PREFIXES, "replication.policy."))
        return None if is_open else _unknown(written, Scope.CONNECTOR, _stays(written, raw))
    if row.scope & Scope.CONNECTOR:
        return None
    places = {Scope.WORKER: f"{flow.target}.", Scope.CLIENT: f"{flow.source}.", Scope.FILE: ""}
    prefix = next((place for scope, place in places.items() if row.scope & scope), written.prefix + _role_prefix(row))
    return _no_effect(written, prefix + key)


def _about_client_key(written: WrittenName, example: Flow) -> Diagnostic | None:
    if written.flow is None and written.alias is None:
        return _dropped_at_top(written.name, f"{example.source}.{written.name}")
    if ".override." in written.prefix and written.role != "producer":
        return warning(f"MM2 has no {written.role} that this could override; it has no effect.", written.name)
    scope = Scope.CLIENT if written.role == "cluster" else Scope.CLIENT | role_scope(written.role)
    row = TABLE.get(written.key)
    if row is not None and row.scope & scope:
        return None
    return _unknown(written, scope)


def _unknown(written: WrittenName, scope: Scope, hint: str = "") -> Diagnostic:
    near = _named_otherwise(written.key) or nearest(written.key, _known(scope))
    meant = written.prefix + near if near else None
    what: tuple[Part, ...] = ("unknown key",)
    if written.key in TABLE:
        what = ("unknown key ", WithPrefix(written.prefix))
    return unknown_key(written.name, meant, what=what, hint=(hint,))


def _named_otherwise(key: str) -> str | None:
    """Return the key for a name that Kafka's documentation has by mistake: without the `d`, or without `.enabled`."""
    return next((name for name in (f"{key}d", f"{key}.enabled") if name in TABLE), None)


def _no_effect(written: WrittenName, instead: str) -> Diagnostic:
    advice = Mention(instead, is_advice=True)
    message = Text.of("this key has no effect ", WithPrefix(written.prefix), "; write it as in '", advice, "'.")
    return warning(message, written.name)


def _known(scope: Scope) -> list[str]:
    return [name for name, row in TABLE.items() if row.scope & scope and not row.replaced_by]


def _stays(written: WrittenName, raw: Mapping[str, str]) -> str:
    """Return what a mistyped key of a flow leaves as it is; nothing if the key is set as well, for any flow."""
    near = nearest(written.key, _known(_ANYWHERE if written.flow is None else Scope.CONNECTOR))
    is_set = f"{written.prefix}{near}" in raw or f"{near}" in raw
    if written.flow is None:
        is_set = is_set or any(name.endswith(f".{near}") for name in raw)
    return "" if is_set else until_then(near)


def _role_prefix(row: Key[object]) -> str:
    roles = ("consumer", "producer", "admin")
    return next((f"{role}." for role in roles if row.scope & role_scope(role)), "")


def _example_flow(raw: Mapping[str, str], clusters: tuple[str, ...]) -> Flow:
    """Return a flow for examples in messages: the first that the file names."""
    for name in raw:
        flow = flow_of(name, clusters)
        if flow is not None and flow.source != flow.target:
            return flow
    return Flow(*(*clusters, "B")[:2])


# --- a connector's config ---------------------------------------------------------------------------------------------


def _without_flow(diagnostic: Diagnostic) -> Diagnostic:
    """Return a diagnostic about a flow's key as one about the connector's key."""
    message = diagnostic.message
    if isinstance(message, Text):
        message = Text(tuple(_part_without_flow(part) for part in message.parts))
    key = diagnostic.key.removeprefix(_FLOW_PREFIX)
    return replace(diagnostic, key=key, message=message, suggestion=diagnostic.suggestion.removeprefix(_FLOW_PREFIX))


def _part_without_flow(part: Part) -> Part:
    if isinstance(part, Mention):
        return replace(part, name=part.name.removeprefix(_FLOW_PREFIX))
    if isinstance(part, WithPrefix):
        return WithPrefix(part.prefix.removeprefix(_FLOW_PREFIX))
    return part


def _misplaced(name: str) -> Diagnostic | None:
    """Return why a known key has no effect in a connector of any kind."""
    row = TABLE.get(name)
    if row is None or row.replaced_by is not None or row.scope & Scope.CONNECTOR:
        return None
    if row.scope & Scope.CLIENT:
        return warning(f"this key has no effect without a prefix; write it as in 'source.cluster.{name}'.", name)
    if row.scope & Scope.WORKER:
        where = "this key is the worker's and has no effect in a connector; write it into the worker's file."
        return warning(where, name)
    if row.scope & Scope.ROLES:
        written = f"{_client_prefix(row)}{name}"
        return warning(f"this key has no effect without a prefix; write it as in '{written}'.", name)
    return warning("this key has no effect in a connector.", name)


def _client_prefix(row: Key[object]) -> str:
    """Return the prefix of the client that a key is for; records are written by the worker's producer."""
    if row.scope & Scope.CONSUMER:
        return "source.consumer."
    return "producer.override." if row.scope & Scope.PRODUCER else "source.admin."


def _of_another(kind: ConnectorKind, name: str) -> Diagnostic | None:
    row = TABLE.get(name)
    if row is None or not row.scope & Scope.CONNECTOR or row.scope & SCOPES[kind]:
        return None
    readers = [CLASSES[each].rpartition(".")[2] for each, scope in SCOPES.items() if row.scope & scope]
    return note(f"this key has no effect here: only {' and '.join(readers)} reads it.", name)

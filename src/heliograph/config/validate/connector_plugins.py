"""What is wrong with a connector's configuration, key by key, in the structure and the words of Connect's REST API.

Java's sentences are kept where Java would refuse; what only Heliograph cannot do is told in its own. A key that the
definitions do not list appears only where it is set and known: ours, those a filter reads, and refused overrides.
Keys of named transforms and predicates are listed as Connect lists them for a class that it does not find.

Invariant: an error of one key hides no other. Contradictions are looked for among the keys without errors.


The keys of MM2's three connectors as Connect's REST API tells them, made from the table of keys.

Which keys a connector has is their scope in the table; the few that the table knows beyond Java's own definitions are
left out here, so that tools which compare see what they expect. A default is the one that holds, where Heliograph's
differs from MM2's. How Connect lays out its framework's keys on a page is not in the table: it stands below.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.config import keys
from heliograph.config.effective.connect_config import CLASSES, ConnectorConfig, kind_of
from heliograph.config.keys import TABLE, client_keys
from heliograph.config.keys.table import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Scope,
    at_least,
    split_list,
)
from heliograph.config.resolve.redaction import redact_value
from heliograph.config.secrets.known_secrets import HIDDEN
from heliograph.diagnostics import Diagnostic, problem
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from heliograph.config.keys.table import Check, Key
    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.config.resolve.settings import Settings
    from heliograph.model import ConnectorKind


GROUPS = (
    "Common",
    "Transforms",
    "Predicates",
    "Error Handling",
    "Topic Creation",
    "Exactly Once Support",
    "offsets.topic",
)
REQUIRED = frozenset({"name", "connector.class", "source.cluster.alias"})
SCOPES: dict[ConnectorKind, Scope] = {
    "source": Scope.SOURCE,
    "checkpoint": Scope.CHECKPOINT,
    "heartbeat": Scope.HEARTBEAT,
}


class _Place(NamedTuple):
    group: str | None
    order: int
    width: str
    display_name: str


_FRAMEWORK = {
    "name": _Place("Common", 1, "MEDIUM", "Connector name"),
    "connector.class": _Place("Common", 2, "LONG", "Connector class"),
    "connector.plugin.version": _Place("Common", 3, "MEDIUM", "Connector version"),
    "tasks.max": _Place("Common", 4, "SHORT", "Tasks max"),
    "tasks.max.enforce": _Place("Common", 5, "SHORT", "Enforce tasks max"),
    "key.converter": _Place("Common", 6, "SHORT", "Key converter class"),
    "key.converter.plugin.version": _Place("Common", 7, "SHORT", "Key converter version"),
    "value.converter": _Place("Common", 8, "SHORT", "Value converter class"),
    "value.converter.plugin.version": _Place("Common", 9, "SHORT", "Value converter version"),
    "header.converter": _Place("Common", 10, "SHORT", "Header converter class"),
    "header.converter.plugin.version": _Place("Common", 11, "SHORT", "Header converter version"),
    "transforms": _Place("Transforms", 12, "LONG", "Transforms"),
    "predicates": _Place("Predicates", 13, "LONG", "Predicates"),
    "config.action.reload": _Place("Common", 14, "MEDIUM", "Reload Action"),
    "errors.retry.timeout": _Place("Error Handling", 1, "MEDIUM", "Retry Timeout for Errors"),
    "errors.retry.delay.max.ms": _Place("Error Handling", 2, "MEDIUM", "Maximum Delay Between Retries for Errors"),
    "errors.tolerance": _Place("Error Handling", 3, "SHORT", "Error Tolerance"),
    "errors.log.enable": _Place("Error Handling", 4, "SHORT", "Log Errors"),
    "errors.log.include.messages": _Place("Error Handling", 5, "SHORT", "Log Error Details"),
    "topic.creation.groups": _Place("Topic Creation", 1, "LONG", "Topic Creation Groups"),
    "exactly.once.support": _Place("Exactly Once Support", 2, "SHORT", "Exactly once support"),
    "transaction.boundary": _Place("Exactly Once Support", 3, "SHORT", "Transaction Boundary"),
    "transaction.boundary.interval.ms": _Place("Exactly Once Support", 4, "SHORT", "Transaction boundary interval"),
    "offsets.storage.topic": _Place("offsets.topic", 1, "LONG", "Offsets topic"),
}
_NOUNS = {"transforms": "Transformation", "predicates": "Predicate"}
_MOST_ALIASES = 100  # each takes 200 times the bytes of its name, and a config with any is refused
# In the table, yet not among Java's definitions: read by a filter, written by MM2 for its tasks, or removed in 4.0.
_NOT_DEFINED = frozenset(
    {
        "bootstrap.servers",
        "use.defaults.from",
        "task.assigned.partitions",
        "task.assigned.groups",
        "task.index",
        "use.incremental.alter.configs",
        "add.source.alias.to.metrics",
        "auto.include.jmx.reporter",
    }
)
_NOT_DEFINED_FOR_CHECKPOINTS = frozenset({"topics", "topics.exclude", "emit.offset-syncs.enabled"})
# A connector has Connect's default, whatever a dedicated-mode file has.
_CONNECTS_DEFAULT = frozenset({"tasks.max"})


def defined_keys(kind: ConnectorKind) -> tuple[Key[Any], ...]:
    """Every key of a connector: the framework's in Connect's order, then MM2's in the table's."""
    framework = tuple(TABLE[name] for name in _FRAMEWORK)
    others = tuple(row for row in TABLE.values() if row.name not in _FRAMEWORK and _is_defined(kind, row))
    return framework + others


def definition(row: Key[Any]) -> dict[str, Any]:
    """One key, with the members of Connect's ConfigKeyInfo."""
    place = _FRAMEWORK.get(row.name, _Place(None, -1, "NONE", row.name))
    default = row.mm2_default if row.name in _CONNECTS_DEFAULT else row.default
    return {
        "name": row.name,
        "type": row.type.name,
        "required": row.name in REQUIRED,
        "default_value": None if row.name in REQUIRED else shown(row, default),
        "importance": row.importance.name,
        "documentation": row.doc,
        "group": place.group,
        "order_in_group": place.order,
        "width": place.width,
        "display_name": place.display_name,
        "dependents": [],
    }


def own_definition(name: str) -> dict[str, Any]:
    """The definition of a key that no table knows, such as one behind `producer.override.`."""
    return definition(TABLE.get(name) or TABLE["name"]) | {"name": name, "required": False, "display_name": name}


def named_plugins(word: str, aliases: str) -> Iterator[dict[str, Any]]:
    """The definitions of `transforms.NAME.type` and alike: those that Connect has for a class it does not find.

    Of a very long list only the first ones are described.
    """
    noun = _NOUNS[word]
    for alias in islice(dict.fromkeys(split_list(aliases)), _MOST_ALIASES):
        for order, (part, of_type) in enumerate((("type", CLASS), ("plugin.version", STRING))):
            what = part.rpartition(".")[2]
            yield {
                "name": f"{word}.{alias}.{part}",
                "type": of_type.name,
                "required": part == "type",
                "default_value": None,
                "importance": "HIGH",
                "documentation": f"{'Class' if part == 'type' else 'Version'} of the {noun.lower()} '{alias}'.",
                "group": f"{word.capitalize()}: {alias}",
                "order_in_group": order,
                "width": "LONG",
                "display_name": f"{noun} {what} for {alias}",
                "dependents": [],
            }


def shown(row: Key[Any], value: Any) -> str | None:
    """A value as Connect tells it; secrets are hidden, and an empty text or class is none."""
    if value is None or (value == "" and row.type in (STRING, CLASS, PASSWORD)):
        return None
    if row.type is PASSWORD:
        return "[hidden]"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _is_defined(kind: ConnectorKind, row: Key[Any]) -> bool:
    if row.name in _NOT_DEFINED or row.name.startswith("heliograph.") or row.replaced_by is not None:
        return False
    if kind == "checkpoint" and row.name in _NOT_DEFINED_FOR_CHECKPOINTS:
        return False
    return bool(row.scope & (SCOPES[kind] | Scope.CLIENT))


if TYPE_CHECKING:
    ClassError = Callable[[Key[str], Settings], str | None]

NULL_VALUE = "Null value can not be supplied as the configuration value."
_NUMBERS = (INT, LONG, SHORT, DOUBLE)
_OF_A_CONVERTER = ".converter.plugin.version"  # Connect shows it only where it is set
_OFFSET_SYNCS_PREFIXES = ("offset-syncs-", "offset-syncs.topic.")
_NO_OFFSET_SYNCS = "MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false"
_NO_CHECKPOINTS = "MirrorCheckpointConnector can't run with emit.checkpoints.enabled set to false"
_CHECKPOINTS_WITHOUT_SYNCS = "MirrorCheckpointConnector can't run without offset syncs"
_NOT_COMMITTED = (
    "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured with"
    " isolation.level set to 'read_committed'; otherwise, records from aborted and uncommitted transactions will be"
    " replicated from the source cluster to the target cluster."
)
_NO_PREFLIGHT = (
    "The connector does not implement the API required for preflight validation of exactly-once source support. Please"
    " consult the documentation for the connector to determine whether it supports exactly-once semantics, and then"
    ' consider reconfiguring the connector to use the value "requested" for this property (which will disable this'
    " preflight check and allow the connector to be created)."
)
_WORKER_NOT_EXACTLY_ONCE = "This worker does not have exactly-once source support enabled."
# Where a connector is held to more than a dedicated-mode file is.
_CHECKS: dict[str, Check[Any]] = {keys.TASKS_MAX.name: at_least(1)}
_ANY_FLOW = Flow("source", "target")


class Validated(NamedTuple):
    """One key: what it is, its value as shown, and what is wrong with it."""

    definition: dict[str, Any]
    value: str | None
    errors: tuple[Diagnostic, ...] = ()
    is_visible: bool = True

    def as_json(self) -> dict[str, Any]:
        """With the members of Connect's ConfigInfo."""
        name = self.definition["name"]
        value = {
            "name": name,
            "value": self.value,
            "recommended_values": [],
            "errors": [str(error) for error in self.errors],
            "visible": self.is_visible,
        }
        return {"definition": self.definition, "value": value}


class ConnectorPlugins:
    """The three connectors of MM2 in a worker: their names, their keys, and whether a config is sound.

    `class_error` decides about the class that a key names; without it no class is looked up. Without `is_limited` the
    worker's lists of what a connector may reach are not known.
    """

    def __init__(
        self,
        worker: Mapping[str, str],
        resolver: Resolver,
        class_error: ClassError | None = None,
        *,
        is_limited: bool = True,
    ) -> None:
        self._worker = worker
        self._resolver = resolver
        self._class_error = class_error
        self._is_limited = is_limited

    def connector_classes(self) -> list[str]:
        """Full names of all connector classes."""
        return list(CLASSES.values())

    def resolve(self, name: str) -> str | None:
        """The full name of a class that is given by it or by one of Connect's aliases; None if it is not there."""
        kind = kind_of(name)
        return None if kind is None else CLASSES[kind]

    def definitions(self, plugin: str) -> list[dict[str, Any]]:
        """The keys of a connector, each with the members of Connect's ConfigKeyInfo."""
        return [definition(row) for row in defined_keys(_kind(plugin))]

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> dict[str, Any]:
        """What becomes of a config, with the members of Connect's ConfigInfos; errors are in it, not raised."""
        validated = self.validated(plugin, config)
        groups = [each.definition["group"] for each in validated]
        return {
            "name": plugin,
            "error_count": sum(len(each.errors) for each in validated),
            "groups": list(dict.fromkeys((*GROUPS, *(group for group in groups if group is not None)))),
            "configs": [each.as_json() for each in validated],
        }

    def errors(self, plugin: str, config: Mapping[str, str | None]) -> list[str]:
        """Every sentence that keeps a config from being taken, in the order of the keys."""
        return [str(error) for each in self.validated(plugin, config) for error in each.errors]

    def validated(self, plugin: str, config: Mapping[str, str | None]) -> list[Validated]:
        """Every key of a connector, and those beyond that are set."""
        validation = _Validation(
            _kind(plugin), config, self._worker, self._resolver, self._class_error, is_limited=self._is_limited
        )
        return validation.validated()


def _kind(plugin: str) -> ConnectorKind:
    kind = kind_of(plugin)
    if kind is None:
        raise ConfigError(f"'{plugin}' is not a connector of MirrorMaker 2.", "connector.class")
    return kind


class _Validation:
    """Looks at one config."""

    def __init__(
        self,
        kind: ConnectorKind,
        config: Mapping[str, str | None],
        worker: Mapping[str, str],
        resolver: Resolver,
        class_error: ClassError | None,
        *,
        is_limited: bool,
    ) -> None:
        self._kind = kind
        self._config = config
        self._given = {name: value for name, value in config.items() if value is not None}
        self._worker = worker
        self._all_placeholders = resolver
        self._resolver = resolver.declared_only()
        self._class_error = class_error
        self._is_limited = is_limited

    def validated(self) -> list[Validated]:
        found = {row.name: self._validated(row) for row in defined_keys(self._kind)}
        found |= {row.name: self._validated(row) for row in self._known_beyond(found)}
        found |= self._named_plugins(found)
        for about in (*self._refused(found), *self._all_contradictions(found)):
            name = about.key
            given = redact_value(name, self._given[name]) if name in self._given else None
            before = found.get(name, Validated(own_definition(name), given))
            found[name] = before._replace(errors=(*before.errors, problem(about.message)))
        for name, value in self._config.items():
            if value is None:
                found[name] = Validated(
                    found[name].definition if name in found else own_definition(name), None, (problem(NULL_VALUE),)
                )
        return list(found.values())

    def _connector(self, given: Mapping[str, str]) -> ConnectorConfig:
        name = given.get("name", "")
        return ConnectorConfig(name, given, self._worker, self._all_placeholders, is_limited=self._is_limited)

    def _named_plugins(self, found: Mapping[str, Validated]) -> dict[str, Validated]:
        """The keys of each transform and predicate; there is no class to choose, and what is set is not found."""
        listed = {}
        for word in ("transforms", "predicates"):
            value = found[word].value or ""
            for entry in named_plugins(word, "" if "${" in value else value):
                name = entry["name"]
                text = self._given.get(name)
                errors: tuple[Diagnostic, ...] = ()
                if self._class_error is not None and entry["required"]:
                    invalid = f"Invalid value {text} for configuration {name}: Class {text} could not be found."
                    errors = (problem(_missing(name) if text is None else invalid),)
                listed[name] = Validated(entry, None if errors or text is None else redact_value(name, text), errors)
        return listed

    def _known_beyond(self, found: Mapping[str, Validated]) -> Iterator[Key[Any]]:
        for name in self._given:
            row = keys.TABLE.get(name)
            if row is not None and name not in found and row.scope & SCOPES[self._kind]:
                yield row

    def _refused(self, found: Mapping[str, Validated]) -> Iterator[Diagnostic]:
        connector = self._connector(self._given)
        yield from connector.refused_overrides()
        # A key of another kind of connector is not among those found.
        faulty = {name for name, each in found.items() if each.errors}
        yield from (each for each in connector.refused_classes() if each.key not in faulty)

    def _validated(self, row: Key[Any]) -> Validated:
        entry = definition(row)
        text = self._given.get(row.name)
        if text is None:
            lacks = (problem(_missing(row.name)),) if row.name in REQUIRED else ()
            return Validated(entry, entry["default_value"], lacks, not row.name.endswith(_OF_A_CONVERTER))
        try:
            resolved = self._resolver.resolve(row.name, text)
        except ConfigError as error:
            return Validated(entry, redact_value(row.name, text), error.problems)
        value, errors = self._class_errors(row, text) or _parsed(row, resolved)
        if errors and resolved != text:  # what a config provider holds is not ours to show
            unfit = f"Invalid value {text} for configuration {row.name}: What the placeholder stands for does not fit"
            return Validated(entry, text, (problem(unfit),))
        if value is None:
            return Validated(entry, None, errors)
        if resolved != text and row.type is not PASSWORD:
            return Validated(entry, text, errors)
        return Validated(entry, value if row.type is STRING else shown(row, value), errors)

    def _class_errors(self, row: Key[Any], text: str) -> tuple[None, tuple[Diagnostic, ...]] | None:
        """Check a class in the worker's settings alone: a connector does not decide which modules may be imported."""
        if self._class_error is None or row.type is not CLASS or row.scope & Scope.CLIENT:
            return None
        why = self._class_error(row, self._connector({row.name: text}).settings(_ANY_FLOW))
        if why is None:
            return None
        return None, (problem(f"Invalid value {text} for configuration {row.name}: {why}"),)

    def _all_contradictions(self, found: Mapping[str, Validated]) -> Iterator[Diagnostic]:
        """Yield contradictions, and problems of settings that cannot even be put together, such as an empty name."""
        sound = {name: text for name, text in self._given.items() if name not in found or not found[name].errors}
        while True:
            try:
                yield from tuple(self._contradictions(self._connector({keys.SOURCE_ALIAS.name: "source"} | sound)))
            except ConfigError as error:
                yield from error.problems
                wrong = {each.key for each in error.problems}
                if not sound.keys() & wrong:
                    return
                sound = {name: text for name, text in sound.items() if name not in wrong}
            else:
                return

    def _contradictions(self, connector: ConnectorConfig) -> Iterator[Diagnostic]:
        settings = connector.settings(connector.flow)
        if self._kind == "checkpoint" and settings[keys.ENABLED]:
            if not settings[keys.EMIT_CHECKPOINTS_ENABLED]:
                yield problem(_NO_CHECKPOINTS, keys.EMIT_CHECKPOINTS_ENABLED.name)
            if not settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
                yield problem(_CHECKPOINTS_WITHOUT_SYNCS, keys.EMIT_OFFSET_SYNCS_ENABLED.name)
        are_syncs_set_up = any(name.startswith(_OFFSET_SYNCS_PREFIXES) for name in self._given)
        if self._kind == "source" and not settings[keys.EMIT_OFFSET_SYNCS_ENABLED] and are_syncs_set_up:
            yield problem(_NO_OFFSET_SYNCS, keys.EMIT_OFFSET_SYNCS_ENABLED.name)
        if settings[keys.EXACTLY_ONCE_SUPPORT] == "required":
            for why in self._not_exactly_once(connector):
                yield problem(why, keys.EXACTLY_ONCE_SUPPORT.name)

    def _not_exactly_once(self, connector: ConnectorConfig) -> Iterator[str]:
        """Connect's herder judges any connector; MirrorSourceConnector then replaces that by its own sentence."""
        flow = connector.flow
        consumer = connector.client(flow.source, "consumer", flow)
        if self._kind == "source" and consumer[client_keys.ISOLATION_LEVEL] != "read_committed":
            yield _NOT_COMMITTED
            return
        if connector.settings(flow)[keys.EXACTLY_ONCE_SOURCE_SUPPORT] != "enabled":
            yield _WORKER_NOT_EXACTLY_ONCE
        if self._kind != "source":
            yield _NO_PREFLIGHT


def _missing(name: str) -> str:
    return f'Missing required configuration "{name}" which has no default value.'


def _parsed(row: Key[Any], text: str) -> tuple[Any, tuple[Diagnostic, ...]]:
    """Return the value and its problems, in the words of Kafka's ConfigDef."""
    invalid = f"Invalid value {HIDDEN if row.type is PASSWORD else text} for configuration {row.name}"
    try:
        value = row.type.parse(text)
    except ValueError:
        why = (
            "Expected value to be either true or false"
            if row.type is BOOLEAN
            else f"Not a number of type {row.type.name}"
        )
        null = f"Invalid value null for configuration {row.name}: Value must be non-null"
        also = (problem(null),) if row.name in _CHECKS and row.type in _NUMBERS else ()
        return None, (problem(f"{invalid}: {why}"), *also)
    if row.name == "name" and (why_not := _bad_name(text)):
        return value, (problem(f"{invalid}: {why_not}"),)
    check = _CHECKS.get(row.name, row.check)
    if check is not None and not check.holds(value):
        return value, (problem(f"{invalid}: {_in_javas_words(check)}"),)
    try:
        row.parse(text)
    except ConfigError as error:
        return value, tuple(problem(f"{invalid}: {each.message}") for each in error.problems)
    return value, ()


def _bad_name(name: str) -> str | None:
    if not name:
        return "String may not be empty"
    codes = [str(ord(character)) for character in name if ord(character) < 32 or 127 <= ord(character) < 160]
    if codes:
        return f"String may not contain control sequences but had the following ASCII chars: {', '.join(codes)}"
    return None


def _in_javas_words(check: Check[Any]) -> str:
    if check.choices:
        return f"String must be one of: {', '.join(check.choices)}"
    return f"Value must be {check.phrase}"

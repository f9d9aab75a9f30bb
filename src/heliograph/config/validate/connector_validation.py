"""Validation of a connector's configuration, key by key, in the structure and the words of Connect's REST API.

Java's sentences are kept for what Java refuses; what only Heliograph cannot do has a message of its own. A key that the
definitions do not list appears only if it is set and known: ours, those a filter reads, and refused overrides. Keys of
named transforms and predicates are listed as Connect lists them for a class that it does not find.

Invariant: an error of one key hides no other. Contradictions are looked for among the keys without errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.config import keys
from heliograph.config.effective.connect_config import CLASSES, ConnectorConfig, kind_of
from heliograph.config.keys import client_keys
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
)
from heliograph.config.resolve.redaction import redact_value
from heliograph.config.secrets.known_secrets import HIDDEN
from heliograph.config.validate.connector_definitions import (
    GROUPS,
    REQUIRED,
    SCOPES,
    defined_keys,
    definition,
    named_plugins,
    own_definition,
    shown,
)
from heliograph.diagnostics import Diagnostic, problem
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from heliograph.config.keys.table import Check, Key
    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.config.resolve.settings import Settings
    from heliograph.model import ConnectorKind

    ClassError = Callable[[Key[str], Settings], str | None]


NULL_VALUE = "Null value can not be supplied as the configuration value."
_NUMBERS = (INT, LONG, SHORT, DOUBLE)
_OF_A_CONVERTER = ".converter.plugin.version"  # Connect shows it only if it is set
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
# Checks that are stricter for a connector than for a dedicated-mode file.
_CHECKS: dict[str, Check[Any]] = {keys.TASKS_MAX.name: at_least(1)}
_ANY_FLOW = Flow("source", "target")


class Validated(NamedTuple):
    """One key: its definition, its value as shown, and its errors."""

    definition: dict[str, Any]
    value: str | None
    errors: tuple[Diagnostic, ...] = ()
    is_visible: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return it with the members of Connect's ConfigInfo."""
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
    """The three connectors of MM2 in a worker: their names, their keys, and the validation of a config.

    `class_error` checks the class that a key names; without it no class is looked up. Without `is_limited` the worker's
    lists of what a connector may reach are not known.
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
        """Return the full names of all connector classes."""
        return list(CLASSES.values())

    def resolve(self, name: str) -> str | None:
        """Return the full name of a class that is given by it or by one of Connect's aliases; None if there is none."""
        kind = kind_of(name)
        return None if kind is None else CLASSES[kind]

    def definitions(self, plugin: str) -> list[dict[str, Any]]:
        """Return the keys of a connector, each with the members of Connect's ConfigKeyInfo."""
        return [definition(row) for row in defined_keys(_kind(plugin))]

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> dict[str, Any]:
        """Validate a config; the result has the members of Connect's ConfigInfos, errors are in it and not raised."""
        validated = self.validated(plugin, config)
        groups = [each.definition["group"] for each in validated]
        return {
            "name": plugin,
            "error_count": sum(len(each.errors) for each in validated),
            "groups": list(dict.fromkeys((*GROUPS, *(group for group in groups if group is not None)))),
            "configs": [each.as_json() for each in validated],
        }

    def errors(self, plugin: str, config: Mapping[str, str | None]) -> list[str]:
        """Return every error of a config, in the order of the keys."""
        return [str(error) for each in self.validated(plugin, config) for error in each.errors]

    def validated(self, plugin: str, config: Mapping[str, str | None]) -> list[Validated]:
        """Return every key of a connector, and those beyond that are set."""
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
    """Validates one config."""

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
        """Return the keys of each transform and predicate; no class is there, so one that is set is not found."""
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
        """Yield the refusals of Connect's herder; MirrorSourceConnector replaces them by its own."""
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
        mistakes = check.mistakes(value) or (_java_message(check),)
        return value, tuple(problem(f"{invalid}: {mistake}") for mistake in mistakes)
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


def _java_message(check: Check[Any]) -> str:
    if check.choices:
        return f"String must be one of: {', '.join(check.choices)}"
    return f"Value must be {check.phrase}"

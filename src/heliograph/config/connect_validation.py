"""What is wrong with a connector's configuration, key by key, in the structure and the words of Connect's REST API.

Java's sentences are kept where Java would refuse; what only Heliograph cannot do is told in its own. A key that the
definitions do not list appears only where it is set and known: ours, those a filter reads, and refused overrides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.config import client_keys, keys
from heliograph.config.connect_definitions import (
    GROUPS,
    REQUIRED,
    SCOPES,
    defined_keys,
    definition,
    own_definition,
    shown,
)
from heliograph.config.connector import CLASSES, ConnectorConfig, kind_of
from heliograph.config.redaction import redact_value
from heliograph.config.types import BOOLEAN, DOUBLE, HIDDEN, INT, LONG, PASSWORD, SHORT, at_least
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.config.connector import Kind
    from heliograph.config.placeholders import Resolver
    from heliograph.config.types import Check, Key

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
_NOT_EXACTLY_ONCE = "The connector does not support exactly-once semantics with the provided configuration."
_WORKER_NOT_EXACTLY_ONCE = "This worker does not have exactly-once source support enabled."
# Where a connector is held to more than a dedicated-mode file is.
_CHECKS: dict[str, Check[Any]] = {keys.TASKS_MAX.name: at_least(1)}


class Validated(NamedTuple):
    """One key: what it is, its value as shown, and what is wrong with it."""

    definition: dict[str, Any]
    value: str | None
    errors: tuple[str, ...] = ()
    is_visible: bool = True

    def as_json(self) -> dict[str, Any]:
        """With the members of Connect's ConfigInfo."""
        name = self.definition["name"]
        value = {
            "name": name,
            "value": self.value,
            "recommended_values": [],
            "errors": list(self.errors),
            "visible": self.is_visible,
        }
        return {"definition": self.definition, "value": value}


class ConnectorPlugins:
    """The three connectors of MM2 in a worker: their names, their keys, and whether a config is sound."""

    def __init__(self, worker: Mapping[str, str], resolver: Resolver, *, is_limited: bool = True) -> None:
        self._worker = worker
        self._resolver = resolver
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
        return {
            "name": plugin,
            "error_count": sum(len(each.errors) for each in validated),
            "groups": list(GROUPS),
            "configs": [each.as_json() for each in validated],
        }

    def errors(self, plugin: str, config: Mapping[str, str | None]) -> list[str]:
        """Every sentence that keeps a config from being taken, in the order of the keys."""
        return [error for each in self.validated(plugin, config) for error in each.errors]

    def validated(self, plugin: str, config: Mapping[str, str | None]) -> list[Validated]:
        """Every key of a connector, and those beyond that are set."""
        validation = _Validation(_kind(plugin), config, self._worker, self._resolver, is_limited=self._is_limited)
        return validation.validated()


def _kind(plugin: str) -> Kind:
    kind = kind_of(plugin)
    if kind is None:
        raise ConfigError(f"connector.class: '{plugin}' is not a connector of MirrorMaker 2.")
    return kind


class _Validation:
    """Looks at one config."""

    def __init__(
        self,
        kind: Kind,
        config: Mapping[str, str | None],
        worker: Mapping[str, str],
        resolver: Resolver,
        *,
        is_limited: bool,
    ) -> None:
        self._kind = kind
        self._config = config
        self._given = {name: value for name, value in config.items() if value is not None}
        self._resolver = resolver.declared_only()
        name = self._given.get("name", "")
        self._connector = ConnectorConfig(name, self._given, worker, resolver, is_limited=is_limited)

    def validated(self) -> list[Validated]:
        found = {row.name: self._validated(row) for row in defined_keys(self._kind)}
        found |= {row.name: self._validated(row) for row in self._known_beyond(found)}
        contradictions = () if any(each.errors for each in found.values()) else self._told_contradictions()
        for name, why in (*self._refused(), *contradictions):
            given = redact_value(name, self._given[name]) if name in self._given else None
            before = found.get(name, Validated(own_definition(name), given))
            found[name] = before._replace(errors=(*before.errors, why))
        for name, value in self._config.items():
            if value is None:
                found[name] = Validated(
                    found[name].definition if name in found else own_definition(name), None, (NULL_VALUE,)
                )
        return list(found.values())

    def _known_beyond(self, found: Mapping[str, Validated]) -> Iterator[Key[Any]]:
        for name in self._given:
            row = keys.TABLE.get(name)
            if row is not None and name not in found and row.scope & SCOPES[self._kind]:
                yield row

    def _refused(self) -> Iterator[tuple[str, str]]:
        yield from self._connector.refused_overrides()
        yield from self._connector.refused_classes()

    def _validated(self, row: Key[Any]) -> Validated:
        entry = definition(row)
        text = self._given.get(row.name)
        if text is None:
            missing = f'Missing required configuration "{row.name}" which has no default value.'
            lacks = (missing,) if row.name in REQUIRED else ()
            return Validated(entry, entry["default_value"], lacks, not row.name.endswith(_OF_A_CONVERTER))
        try:
            resolved = self._resolver.resolve(row.name, text)
        except ConfigError as error:
            return Validated(entry, redact_value(row.name, text), error.problems)
        value, errors = _parsed(row, resolved)
        if errors and resolved != text:  # what a config provider holds is not ours to show
            unfit = f"Invalid value {text} for configuration {row.name}: What the placeholder stands for does not fit"
            return Validated(entry, text, (unfit,))
        if value is None:
            return Validated(entry, None, errors)
        is_placeholder = resolved != text
        return Validated(entry, text if is_placeholder and row.type is not PASSWORD else shown(row, value), errors)

    def _told_contradictions(self) -> tuple[tuple[str, str], ...]:
        """Settings that cannot even be put together (a name that is empty) are told by their key as well."""
        try:
            return tuple(self._contradictions())
        except ConfigError as error:
            return tuple((name, why) for name, _, why in (each.partition(": ") for each in error.problems))

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        flow = self._connector.flow
        settings = self._connector.settings(flow)
        if self._kind == "checkpoint" and settings[keys.ENABLED]:
            if not settings[keys.EMIT_CHECKPOINTS_ENABLED]:
                yield keys.EMIT_CHECKPOINTS_ENABLED.name, _NO_CHECKPOINTS
            if not settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
                yield keys.EMIT_OFFSET_SYNCS_ENABLED.name, _CHECKPOINTS_WITHOUT_SYNCS
        if self._kind == "source" and not settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
            for name in self._given:
                if name.startswith(_OFFSET_SYNCS_PREFIXES):
                    yield name, _NO_OFFSET_SYNCS
        if settings[keys.EXACTLY_ONCE_SUPPORT] == "required":
            for why in self._not_exactly_once():
                yield keys.EXACTLY_ONCE_SUPPORT.name, why

    def _not_exactly_once(self) -> Iterator[str]:
        flow = self._connector.flow
        consumer = self._connector.client(flow.source, "consumer", flow)
        if self._kind == "source" and consumer[client_keys.ISOLATION_LEVEL] != "read_committed":
            yield _NOT_COMMITTED
        if self._connector.settings(flow)[keys.EXACTLY_ONCE_SOURCE_SUPPORT] != "enabled":
            yield _WORKER_NOT_EXACTLY_ONCE
        elif self._kind != "source":
            yield _NOT_EXACTLY_ONCE


def _parsed(row: Key[Any], text: str) -> tuple[Any, tuple[str, ...]]:
    """The value and what is wrong with it, as Kafka's ConfigDef says it."""
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
        return None, (f"{invalid}: {why}", *((null,) if row.name in _CHECKS and row.type in _NUMBERS else ()))
    if row.name == "name" and (why_not := _bad_name(text)):
        return value, (f"{invalid}: {why_not}",)
    check = _CHECKS.get(row.name, row.check)
    if check is not None and not check.holds(value):
        return value, (f"{invalid}: {_in_javas_words(check)}",)
    try:
        row.parse(text)
    except ConfigError as error:
        return value, (f"{invalid}: {str(error).partition(': ')[2]}",)
    return value, ()


def _bad_name(name: str) -> str | None:
    if not name:
        return "String may not be empty"
    codes = [str(ord(character)) for character in name if ord(character) < 32 or 127 <= ord(character) < 160]
    if codes:
        return f"String may not contain control sequences but had the following ASCII chars: {', '.join(codes)}"
    return None


def _in_javas_words(check: Check[Any]) -> str:
    choices = check.words.removeprefix("one of ")
    return f"String must be one of: {choices}" if choices != check.words else f"Value must be {check.words}"

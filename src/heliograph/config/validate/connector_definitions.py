"""The keys of MM2's three connectors as Connect's REST API describes them, made from the table of keys.

A connector has the keys of its scope in the table. Keys that the table knows beyond Java's own definitions are left
out, so that tools that compare see what they expect. A default is the effective one if Heliograph's differs from MM2's.
Group, order and width of the framework's keys are not in the table: they are listed here.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.config.keys import TABLE
from heliograph.config.keys.table import CLASS, PASSWORD, STRING, Scope, split_list
from heliograph.config.secrets.known_secrets import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.config.keys.table import Key
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


class _Layout(NamedTuple):
    """The layout of a framework's key on a page of Connect."""

    group: str | None
    order: int
    width: str
    display_name: str


_FRAMEWORK = {
    "name": _Layout("Common", 1, "MEDIUM", "Connector name"),
    "connector.class": _Layout("Common", 2, "LONG", "Connector class"),
    "connector.plugin.version": _Layout("Common", 3, "MEDIUM", "Connector version"),
    "tasks.max": _Layout("Common", 4, "SHORT", "Tasks max"),
    "tasks.max.enforce": _Layout("Common", 5, "SHORT", "Enforce tasks max"),
    "key.converter": _Layout("Common", 6, "SHORT", "Key converter class"),
    "key.converter.plugin.version": _Layout("Common", 7, "SHORT", "Key converter version"),
    "value.converter": _Layout("Common", 8, "SHORT", "Value converter class"),
    "value.converter.plugin.version": _Layout("Common", 9, "SHORT", "Value converter version"),
    "header.converter": _Layout("Common", 10, "SHORT", "Header converter class"),
    "header.converter.plugin.version": _Layout("Common", 11, "SHORT", "Header converter version"),
    "transforms": _Layout("Transforms", 12, "LONG", "Transforms"),
    "predicates": _Layout("Predicates", 13, "LONG", "Predicates"),
    "config.action.reload": _Layout("Common", 14, "MEDIUM", "Reload Action"),
    "errors.retry.timeout": _Layout("Error Handling", 1, "MEDIUM", "Retry Timeout for Errors"),
    "errors.retry.delay.max.ms": _Layout("Error Handling", 2, "MEDIUM", "Maximum Delay Between Retries for Errors"),
    "errors.tolerance": _Layout("Error Handling", 3, "SHORT", "Error Tolerance"),
    "errors.log.enable": _Layout("Error Handling", 4, "SHORT", "Log Errors"),
    "errors.log.include.messages": _Layout("Error Handling", 5, "SHORT", "Log Error Details"),
    "topic.creation.groups": _Layout("Topic Creation", 1, "LONG", "Topic Creation Groups"),
    "exactly.once.support": _Layout("Exactly Once Support", 2, "SHORT", "Exactly once support"),
    "transaction.boundary": _Layout("Exactly Once Support", 3, "SHORT", "Transaction Boundary"),
    "transaction.boundary.interval.ms": _Layout("Exactly Once Support", 4, "SHORT", "Transaction boundary interval"),
    "offsets.storage.topic": _Layout("offsets.topic", 1, "LONG", "Offsets topic"),
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
    """Return every key of a connector: the framework's in Connect's order, then MM2's in the table's."""
    framework = tuple(TABLE[name] for name in _FRAMEWORK)
    others = tuple(row for row in TABLE.values() if row.name not in _FRAMEWORK and _is_defined(kind, row))
    return framework + others


def definition(row: Key[Any]) -> dict[str, Any]:
    """Return one key with the members of Connect's ConfigKeyInfo."""
    layout = _FRAMEWORK.get(row.name, _Layout(None, -1, "NONE", row.name))
    default = row.mm2_default if row.name in _CONNECTS_DEFAULT else row.default
    return {
        "name": row.name,
        "type": row.type.name,
        "required": row.name in REQUIRED,
        "default_value": None if row.name in REQUIRED else shown(row, default),
        "importance": row.importance.name,
        "documentation": row.doc,
        "group": layout.group,
        "order_in_group": layout.order,
        "width": layout.width,
        "display_name": layout.display_name,
        "dependents": [],
    }


def own_definition(name: str) -> dict[str, Any]:
    """Return the definition of a key that no table knows, such as one after `producer.override.`."""
    return definition(TABLE.get(name) or TABLE["name"]) | {"name": name, "required": False, "display_name": name}


def named_plugins(word: str, aliases: str) -> Iterator[dict[str, Any]]:
    """Yield the definitions of `transforms.NAME.type` and the like: those that Connect has for a class it cannot find.

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
    """Return a value as Connect shows it; secrets are hidden, and an empty text or class is None."""
    if value is None or (value == "" and row.type in (STRING, CLASS, PASSWORD)):
        return None
    if row.type is PASSWORD:
        return HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _is_defined(kind: ConnectorKind, row: Key[Any]) -> bool:
    if row.name in _NOT_DEFINED or row.name.startswith("heliograph.") or row.replaced_by is not None:
        return False
    if kind == "checkpoint" and row.name in _NOT_DEFINED_FOR_CHECKPOINTS:
        return False
    return bool(row.scope & (SCOPES[kind] | Scope.CLIENT))

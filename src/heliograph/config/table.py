"""The table of configuration keys, and how a row is written; the rows are in `keys` and `client_keys`."""

from __future__ import annotations

from typing import Any, TypeVar

from heliograph.config.types import Check, Key, Scope, ValueType

T = TypeVar("T")
TABLE: dict[str, Key[Any]] = {}

NO_STRINGS: tuple[str, ...] = ()

FILE, SOURCE, CHECKPOINT, HEARTBEAT = Scope.FILE, Scope.SOURCE, Scope.CHECKPOINT, Scope.HEARTBEAT
WORKER, CLIENT, CONSUMER, PRODUCER, CONNECTOR = (
    Scope.WORKER,
    Scope.CLIENT,
    Scope.CONSUMER,
    Scope.PRODUCER,
    Scope.CONNECTOR,
)


def define(
    name: str,
    type_: ValueType[T],
    default: T,
    scope: Scope,
    doc: str,
    check: Check[T] | None = None,
    *,
    ours: bool = False,
    replaced_by: str | None = None,
) -> Key[T]:
    """Add a row; a name stands in the table once."""
    row = Key(name, type_, default, scope, doc, check, ours, replaced_by)
    if name in TABLE:
        raise ValueError(f"{name} stands twice in the table")
    TABLE[name] = row
    return row

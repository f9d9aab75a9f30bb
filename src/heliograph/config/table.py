"""The table of configuration keys, and how a row is written; the rows are in `keys` and its neighbours."""

from __future__ import annotations

from typing import Any, TypeVar

from heliograph.config.types import FULL, Check, Importance, Key, Scope, Support, ValueType

T = TypeVar("T")
Row = tuple[str, ValueType[Any], Any, Importance, str, str]  # name, type, default, importance, since, doc
TABLE: dict[str, Key[Any]] = {}

NO_STRINGS: tuple[str, ...] = ()

FILE, SOURCE, CHECKPOINT, HEARTBEAT = Scope.FILE, Scope.SOURCE, Scope.CHECKPOINT, Scope.HEARTBEAT
WORKER, CLIENT, CONSUMER, PRODUCER, ADMIN, CONNECTOR, ROLES = (
    Scope.WORKER,
    Scope.CLIENT,
    Scope.CONSUMER,
    Scope.PRODUCER,
    Scope.ADMIN,
    Scope.CONNECTOR,
    Scope.ROLES,
)
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


def define(  # noqa: PLR0913  (a row of a table has as many fields as the table has columns)
    name: str,
    type_: ValueType[T],
    default: T,
    scope: Scope,
    doc: str,
    check: Check[T] | None = None,
    *,
    ours: bool = False,
    replaced_by: str | None = None,
    importance: Importance = LOW,
    since: str = "",
    support: Support = FULL,
    mm2_default: T | None = None,
) -> Key[T]:
    """Add a row; a name stands in the table once."""
    row = Key(name, type_, default, scope, doc, check, ours, replaced_by, importance, since, support, mm2_default)
    if name in TABLE:
        raise ValueError(f"{name} stands twice in the table")
    TABLE[name] = row
    return row


def define_all(scope: Scope, support: Support, *rows: Row) -> None:
    """Add rows that share where they stand and what becomes of them."""
    for name, type_, default, importance, since, doc in rows:
        define(name, type_, default, scope, doc, importance=importance, since=since, support=support)

"""What there is to say about the names in a connector's config: typos, keys that are another's, keys without effect.

The rules are those for a flow of a dedicated-mode file (`audit`), since MM2 makes connectors of flows; what differs is
where a misplaced key belongs. Connect takes every name without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.audit import Audit, audit_names
from heliograph.config.connect_definitions import SCOPES
from heliograph.config.connector import CLASSES
from heliograph.config.keys import TABLE
from heliograph.config.types import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.connector import Kind
    from heliograph.config.types import Key

_ALIASES = ("\x00", "\x01")  # of no user: what is stripped again must stand nowhere else
_FLOW_PREFIX = "\x00->\x01."
_OWN = frozenset({"name", "connector.class"})  # a flow of a file has no use for them


def audit_connector(kind: Kind, config: Mapping[str, str]) -> Audit:
    """Look at every name once."""
    misplaced = {name: why for name in config if (why := _misplaced(name)) is not None}
    others = {name: why for name in config if (why := _of_another(kind, name)) is not None}
    told = {*misplaced, *others, *_OWN}
    as_flow = {f"{_FLOW_PREFIX}{name}": value for name, value in config.items() if name not in told}
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


def _of_another(kind: Kind, name: str) -> str | None:
    row = TABLE.get(name)
    if row is None or not row.scope & Scope.CONNECTOR or row.scope & SCOPES[kind]:
        return None
    readers = [CLASSES[each].rpartition(".")[2] for each, scope in SCOPES.items() if row.scope & scope]
    return f"{name}: this key has no effect here: only {' and '.join(readers)} reads it."

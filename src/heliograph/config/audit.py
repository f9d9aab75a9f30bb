"""Warnings about names in a dedicated-mode file: unknown keys, keys MM2 would silently drop, old names.

MM2 drops what it does not know without a word; one typo then means a flow that quietly does something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.suggest import did_you_mean
from heliograph.config.types import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Prefixes whose rest is free: the names behind them belong to clients, transforms, converters or providers.
_OPEN_PREFIXES = ("consumer.", "producer.", "admin.")
_FLOW_OPEN_PREFIXES = (
    *_OPEN_PREFIXES,
    *(f"{side}.{role}" for side in ("source", "target") for role in ("consumer.", "producer.", "admin.", "cluster.")),
    *(f"{role}.override." for role in ("consumer", "producer", "admin")),
    "transforms.",
    "predicates.",
    "topic.creation.",
    "config.providers.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "offset-syncs.",
)
# MM2 copies these top-level prefixes into the worker's or the connectors' configuration.
_TOP_OPEN_PREFIXES = (
    "config.providers.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "listeners.https.",
    "offset.storage.",
    "config.storage.",
    "status.storage.",
    "replication.policy.",
)
# In the connectors' vocabulary, yet not copied from the top level by MM2 4.3.1.
_DROPPED_AT_TOP = frozenset(
    {"use.defaults.from", "exactly.once.support", "topic.creation.groups", "offsets.storage.topic"}
)


def audit_names(raw: Mapping[str, str], clusters: tuple[str, ...]) -> Iterator[str]:
    """A warning sentence for each name that deserves one, in file order."""
    for name in raw:
        warning = _audit(name, clusters)
        if warning:
            yield warning


def _audit(name: str, clusters: tuple[str, ...]) -> str | None:
    for source in clusters:
        for target in clusters:
            prefix = f"{source}->{target}."
            if name.startswith(prefix):
                return _in_flow(name, prefix)
    for alias in sorted(clusters, key=len, reverse=True):
        if name.startswith(f"{alias}."):
            return _in_cluster(name, f"{alias}.")
    return _at_top(name)


def _in_flow(name: str, prefix: str) -> str | None:
    rest = name.removeprefix(prefix)
    if rest.startswith(_FLOW_OPEN_PREFIXES):
        return None
    return _verdict(name, prefix, rest, Scope.CONNECTOR | Scope.CLIENT | Scope.WORKER)


def _in_cluster(name: str, prefix: str) -> str | None:
    rest = name.removeprefix(prefix)
    if rest.startswith((*_OPEN_PREFIXES, *_TOP_OPEN_PREFIXES)):
        return None
    return _verdict(name, prefix, rest, Scope.CLIENT | Scope.WORKER)


def _at_top(name: str) -> str | None:
    if name.startswith(_TOP_OPEN_PREFIXES) and name in keys.TABLE:
        return None
    if name.startswith(
        ("config.providers.", "listeners.https.", *(f"{p}.converter." for p in ("key", "value", "header")))
    ):
        return None
    if name in _DROPPED_AT_TOP:
        return f"{name}: Java MM2 ignores this key at the top of the file; write it behind a flow, as in 'A->B.{name}'."
    return _verdict(name, "", name, ~Scope(0))


def _verdict(name: str, prefix: str, rest: str, scope: Scope) -> str | None:
    row = keys.TABLE.get(rest)
    if row is None or not row.scope & scope:
        allowed = [
            known for known, candidate in keys.TABLE.items() if candidate.scope & scope and not candidate.replaced_by
        ]
        hint = did_you_mean(rest, allowed, prefix)
        where = f" behind '{prefix}'" if row is not None else ""
        return f"{name}: unknown key{where}; it has no effect.{hint}"
    if row.replaced_by:
        return f"{name}: this name was removed in Kafka 4.0; it is read as '{prefix}{row.replaced_by}'."
    return None

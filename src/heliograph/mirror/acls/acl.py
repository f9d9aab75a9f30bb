"""An ACL as Kafka means it: what one operation includes, what one pattern covers, and the fewest that say the same.

READ, WRITE and ALTER include DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS; a prefix covers the names that
begin with it, `*` covers all.

Invariants: `least` loses no permission, and nothing it returns is included by the rest of it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from heliograph.mirror.acls.name_prefixes import Names

if TYPE_CHECKING:
    from collections.abc import Iterable


TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID"
_KINDS = (CLUSTER, TOPIC, GROUP, TRANSACTIONAL_ID)
_INCLUDED = {"DESCRIBE": frozenset({"READ", "WRITE", "ALTER"}), "DESCRIBE_CONFIGS": frozenset({"ALTER_CONFIGS"})}


class Resource(NamedTuple):
    """What an ACL is about."""

    kind: str
    names: Names

    @property
    def name(self) -> str:
        """As in Kafka's ACLs: `*` for any name."""
        return self.names.start or "*"

    @property
    def pattern(self) -> str:
        """LITERAL or PREFIXED."""
        return "LITERAL" if self.names.is_whole or not self.names.start else "PREFIXED"

    def covers(self, other: Resource) -> bool:
        """Whether an ACL on this says all that one on the other does."""
        return self.kind == other.kind and self.names.covers(other.names)

    def __str__(self) -> str:
        word = self.kind.lower().replace("_", " ")
        if self.kind == CLUSTER:
            return "the cluster"
        if not self.names.start:
            return f"every {word} ('*')"
        return f"the {word} '{self.name}'" if self.names.is_whole else f"the {word}s that begin with '{self.name}'"


THE_CLUSTER = Resource(CLUSTER, Names("kafka-cluster", is_whole=True))


class Acl(NamedTuple):
    """One operation on one resource, and what it is for."""

    operation: str
    resource: Resource
    reasons: tuple[str, ...]

    def includes(self, other: Acl) -> bool:
        """Whether this one says all that the other does."""
        is_included = self.operation == other.operation or self.operation in _INCLUDED.get(other.operation, ())
        return is_included and self.resource.covers(other.resource)

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource}"


def least(acls: Iterable[Acl]) -> tuple[Acl, ...]:
    """The fewest that say the same, in a steady order; the reasons of those left out go to what includes them."""
    merged: dict[tuple[str, Resource], Acl] = {}
    for acl in acls:
        place = (acl.operation, acl.resource)
        before = merged[place].reasons if place in merged else ()
        merged[place] = acl._replace(reasons=tuple(dict.fromkeys((*before, *acl.reasons))))
    kept = [acl for acl in merged.values() if not any(o.includes(acl) for o in merged.values() if o is not acl)]
    reported = [acl._replace(reasons=_reasons_for(acl, merged.values())) for acl in kept]
    return tuple(sorted(reported, key=lambda acl: (_KINDS.index(acl.resource.kind), acl.resource.names, acl.operation)))


def _reasons_for(acl: Acl, others: Iterable[Acl]) -> tuple[str, ...]:
    included = (other.reasons for other in others if acl.includes(other))
    return tuple(dict.fromkeys((*acl.reasons, *chain.from_iterable(included))))

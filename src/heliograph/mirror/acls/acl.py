"""ACLs as Kafka evaluates them: operations that include others, patterns that cover names, and the fewest that suffice.

READ, WRITE and ALTER include DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS; a prefix covers the names that
begin with it, `*` covers all.

Invariants: `fewest_acls` loses no permission, and nothing it returns is included by the rest of it.
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
    """The resource of an ACL: its type and its names."""

    kind: str
    names: Names

    @property
    def name(self) -> str:
        """The name as in Kafka's ACLs: `*` for any."""
        return self.names.start or "*"

    @property
    def pattern(self) -> str:
        """The pattern type, LITERAL or PREFIXED."""
        return "LITERAL" if self.names.is_whole or not self.names.start else "PREFIXED"

    def covers(self, other: Resource) -> bool:
        """Return whether an ACL on this resource grants all that one on the other does."""
        return self.kind == other.kind and self.names.covers(other.names)

    def __str__(self) -> str:
        kind = self.kind.lower().replace("_", " ")
        if self.kind == CLUSTER:
            return "the cluster"
        if not self.names.start:
            return f"every {kind} ('*')"
        return f"the {kind} '{self.name}'" if self.names.is_whole else f"the {kind}s that begin with '{self.name}'"


THE_CLUSTER = Resource(CLUSTER, Names("kafka-cluster", is_whole=True))


class Acl(NamedTuple):
    """One operation on one resource, and the reasons why it is needed."""

    operation: str
    resource: Resource
    reasons: tuple[str, ...]

    def includes(self, other: Acl) -> bool:
        """Return whether this ACL grants all that the other does."""
        is_included = self.operation == other.operation or self.operation in _INCLUDED.get(other.operation, ())
        return is_included and self.resource.covers(other.resource)

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource}"


def fewest_acls(acls: Iterable[Acl]) -> tuple[Acl, ...]:
    """Return the fewest ACLs that grant the same, sorted; they have the reasons of those that they include."""
    merged: dict[tuple[str, Resource], Acl] = {}
    for acl in acls:
        key = (acl.operation, acl.resource)
        before = merged[key].reasons if key in merged else ()
        merged[key] = acl._replace(reasons=tuple(dict.fromkeys((*before, *acl.reasons))))
    kept = [acl for acl in merged.values() if not any(o.includes(acl) for o in merged.values() if o is not acl)]
    explained = [acl._replace(reasons=_reasons_for(acl, merged.values())) for acl in kept]
    return tuple(
        sorted(explained, key=lambda acl: (_KINDS.index(acl.resource.kind), acl.resource.names, acl.operation))
    )


def _reasons_for(acl: Acl, others: Iterable[Acl]) -> tuple[str, ...]:
    included = (other.reasons for other in others if acl.includes(other))
    return tuple(dict.fromkeys((*acl.reasons, *chain.from_iterable(included))))

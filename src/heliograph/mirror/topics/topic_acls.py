"""Decides which ACLs of the source a flow adds on its target.

MM2's rules: only topic ACLs of LITERAL patterns, only of topics that are replicated, under the remote topic's name.
Only the replication writes to a remote topic: ALLOW WRITE is skipped and ALLOW ALL becomes ALLOW READ; DENY stays. The
literal `*` stands for every topic; MM2 turns it into `A.*`, which is no topic at all, so it is skipped.

Invariants: nothing is ever deleted; planning again after applying a plan gives an empty plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.mirror.topics.topic_rules import TopicRules
    from heliograph.model import AclBinding


EVERY_TOPIC = "*"


@dataclass(frozen=True, slots=True)
class SkippedAcl:
    """An ACL of the source that has no counterpart on the target, and why."""

    acl: AclBinding
    reason: str


@dataclass(frozen=True, slots=True)
class AclPlan:
    """The ACLs to add on the target, and those of the source that are skipped."""

    adds: tuple[AclBinding, ...] = ()
    skipped: tuple[SkippedAcl, ...] = ()


def plan_acls(rules: TopicRules, source: Iterable[AclBinding], target: Iterable[AclBinding]) -> AclPlan:
    """Return what the target lacks of the source's topic ACLs."""
    wanted, skipped = remote_acls(rules, source)
    existing = frozenset(target)
    return AclPlan(tuple(acl for acl in wanted if acl not in existing), skipped)


def remote_acls(
    rules: TopicRules, source: Iterable[AclBinding]
) -> tuple[tuple[AclBinding, ...], tuple[SkippedAcl, ...]]:
    """Return the source's ACLs as they should be on the target, each once, and those that are skipped."""
    wanted: dict[AclBinding, None] = {}
    skipped = []
    for acl in source:
        reason = why_not(rules, acl)
        if reason is None:
            wanted[_transformed(rules, acl)] = None
        else:
            skipped.append(SkippedAcl(acl, reason))
    return tuple(wanted), tuple(skipped)


def why_not(rules: TopicRules, acl: AclBinding) -> str | None:
    """Return the reason why an ACL is not synced, or None if it is."""
    if acl.pattern != "LITERAL":
        return f"its pattern is {acl.pattern}, and only LITERAL ones are synced"
    if acl.permission == "ALLOW" and acl.operation == "WRITE":
        return "only the replication writes to remote topics"
    if acl.topic == EVERY_TOPIC and rules.remote_topic(acl.topic) != EVERY_TOPIC:
        return f"it is for every topic, and {rules.remote_topic(acl.topic)} would be for none"
    reason = rules.why_not(acl.topic)
    return None if reason is None else f"its topic is not replicated: {reason}"


def _transformed(rules: TopicRules, acl: AclBinding) -> AclBinding:
    is_allow_all = acl.permission == "ALLOW" and acl.operation == "ALL"
    return acl._replace(topic=rules.remote_topic(acl.topic), operation="READ" if is_allow_all else acl.operation)

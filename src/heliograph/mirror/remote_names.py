"""The names that copies of topics can have, where only the beginning of the topics' names is known.

Invariant: the copy of every topic that the given names cover is covered by what is returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.mirror.name_starts import ANY_NAME, Names
from heliograph.mirror.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    RenameReplicationPolicy,
    ReplicationPolicy,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.mirror.rename import Rule
    from heliograph.mirror.topics import TopicRules


def remote_names(rules: TopicRules, topics: Names) -> Iterator[Names]:
    """Names of the copies; any name where a policy of the user's decides about topics that are not named."""
    if topics.is_whole:
        yield Names(rules.remote_topic(topics.start), is_whole=True)
    else:
        yield from _of_policy(rules.policy, rules.source, topics.start)


def _of_policy(policy: ReplicationPolicy, source: str, start: str) -> Iterator[Names]:
    if isinstance(policy, RenameReplicationPolicy):
        for rule in policy.names.rules:
            yield from _of_rule(rule, start)
        yield from _of_policy(policy.otherwise, source, start)
    elif isinstance(policy, DefaultReplicationPolicy):
        yield Names(policy.format_remote_topic(source, start), is_whole=False)
    elif isinstance(policy, IdentityReplicationPolicy):
        yield Names(start, is_whole=False)
    else:
        yield ANY_NAME


def _of_rule(rule: Rule, start: str) -> Iterator[Names]:
    left, right = (part[0] if isinstance(part[0], str) else "" for part in (rule.left, rule.right))
    if left.startswith(start) or (start.startswith(left) and not rule.is_plain):
        yield Names(right, is_whole=rule.is_plain)

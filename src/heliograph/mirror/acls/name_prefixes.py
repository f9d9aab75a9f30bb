"""Turns patterns of topics and groups into literal names and prefixes, which is all that Kafka's ACLs support.

`topics` and `groups` are Java regexes. `names_of` expands alternatives, optional parts and small character sets; at the
first part that can match anything the name ends, and becomes a prefix. A dot without a quantifier is taken as a literal
dot, as its author means it: `eu.orders` is one topic. `remote_names` does the same for the copies of such topics.

Invariants: but for such dots, every name that the patterns match is covered by the names that are returned; so is the
copy of every topic that the given names cover.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.syntax.java_translation import PatternScanner
from heliograph.mirror.policy.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    RenameReplicationPolicy,
    ReplicationPolicy,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from heliograph.mirror.policy.rename_map import Rule
    from heliograph.mirror.topics.topic_rules import TopicRules


_MOST_NAMES = 64
_LONGEST_START = 256
_FLAGS = re.compile(r"\(\?[a-zA-Z-]+[:)]")
_QUANTIFIER = re.compile(r"(?:[?*+]|\{\d+(?:,\d*)?\})[?+]?")
_OPENING = re.compile(r"\((?:\?:|\?>|\?<[a-zA-Z]\w*>|(?!\?))")
_LOOK_AROUND = re.compile(r"\(\?<?[=!]")
_PLAIN_SET = re.compile(r"\[((?:[a-zA-Z0-9._]|\\[^a-zA-Z0-9])+)\]")


class Names(NamedTuple):
    """One name, or all names that begin with `start`."""

    start: str
    is_whole: bool

    @property
    def example(self) -> str:
        """A name to check permissions with: the name itself, or one with the prefix that does not exist."""
        return self.start if self.is_whole else f"{self.start}heliograph-probe"

    def followed_by(self, other: Names) -> Names:
        """Append the other names to this whole name."""
        start = self.start + other.start
        if len(start) > _LONGEST_START:  # no longer a name of Kafka's, and not worth the memory
            return Names(start[:_LONGEST_START], is_whole=False)
        return Names(start, other.is_whole)

    def covers(self, other: Names) -> bool:
        """Return whether every name of the other is one of these."""
        return other == self if self.is_whole else other.start.startswith(self.start)


ANY_NAME = Names("", is_whole=False)
_NOTHING_MORE = Names("", is_whole=True)


def names_of(patterns: Sequence[str]) -> tuple[Names, ...]:
    """Return the names that the patterns of a list can match, none of them covered by another."""
    written = [pattern for pattern in patterns if pattern]
    if any(_FLAGS.search(pattern) for pattern in written):  # a flag reaches over the comma, and changes what matches
        return (ANY_NAME,)
    found = (names for pattern in written for names in _PatternReader(pattern).alternatives())
    return without_covered(names for names in found if names != _NOTHING_MORE)


def without_covered(names: Iterable[Names]) -> tuple[Names, ...]:
    """Return each once, without those that another covers."""
    found = tuple(dict.fromkeys(names))
    starts = {names.start for names in found if not names.is_whole}
    lengths = sorted({len(start) for start in starts})

    def is_covered(one: Names) -> bool:
        own = len(one.start) if one.is_whole else len(one.start) - 1
        return any(one.start[:length] in starts for length in lengths if length <= own)

    return tuple(one for one in found if not is_covered(one))


class _PatternReader(PatternScanner):
    """Reads a valid Java pattern in one pass: each method consumes a part at `_at` and returns the names it allows."""

    def alternatives(self) -> tuple[Names, ...]:
        """Read alternatives up to a `)` or the end."""
        found = [*self._sequence()]
        while self._takes("|"):
            found += self._sequence()
        return tuple(dict.fromkeys(found)) if len(found) <= _MOST_NAMES else (ANY_NAME,)

    def _sequence(self) -> tuple[Names, ...]:
        heads: tuple[Names, ...] = (_NOTHING_MORE,)
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            parts = self._repeated(self._atom())
            joined = [head.followed_by(part) if head.is_whole else head for head in heads for part in parts]
            heads = tuple(dict.fromkeys(joined)) if len(joined) <= _MOST_NAMES else (ANY_NAME,)
        return heads

    def _repeated(self, atom: tuple[Names, ...]) -> tuple[Names, ...]:
        match = self._match(_QUANTIFIER)
        if match is None:
            return atom
        if match[0][0] == "?":
            return (_NOTHING_MORE, *atom)
        if match[0][0] == "+":
            return tuple(names._replace(is_whole=False) for names in atom)
        return (ANY_NAME,)

    def _atom(self) -> tuple[Names, ...]:
        if self._match(_LOOK_AROUND):
            self._group()
            return (ANY_NAME,)
        if self._match(_OPENING):
            return self._group()
        char = self._pattern[self._at]
        if char == "[":
            return self._set()
        self._at += 1
        if char == "\\":
            return self._escaped()
        if char == "." and _QUANTIFIER.match(self._pattern, self._at):
            return (ANY_NAME,)
        return (_NOTHING_MORE,) if char in "^$" else (Names(char, is_whole=True),)

    def _group(self) -> tuple[Names, ...]:
        found = self.alternatives()
        self._takes(")")
        return found

    def _set(self) -> tuple[Names, ...]:
        plain = self._match(_PLAIN_SET)
        if plain is not None:
            return tuple(Names(char, is_whole=True) for char in plain[1].replace("\\", ""))
        depth = 0
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            self._at += 2 if char == "\\" else 1
            depth += {"[": 1, "]": -1}.get(char, 0)
            if depth == 0:
                break
        return (ANY_NAME,)

    def _escaped(self) -> tuple[Names, ...]:
        char = self._pattern[self._at : self._at + 1]
        self._at += 1
        if char == "Q":
            end = self._pattern.find("\\E", self._at)
            quoted = self._pattern[self._at : end if end >= 0 else len(self._pattern)]
            self._at += len(quoted) + 2
            # A quantifier after a quotation applies to its last character only.
            return (
                (ANY_NAME,)
                if _QUANTIFIER.match(self._pattern, self._at)
                else (_NOTHING_MORE.followed_by(Names(quoted, is_whole=True)),)
            )
        return (ANY_NAME,) if char.isalnum() else (Names(char, is_whole=True),)


def remote_names(rules: TopicRules, topics: Names) -> Iterator[Names]:
    """Yield the names of the copies; any name if a custom policy names topics of which only a prefix is known."""
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

"""Maps topic names to names of their copies and back: `orders=eu-orders, (.*)-raw=$1`.

The left side of a rule is a name, or a Java regex of plain characters and groups; its right side uses every group. So
no part of a name is lost, and the name of the original follows from that of the copy. The first rule whose left side
matches the whole name applies. A topic is not renamed if its new name would be empty (`x[.](.*)=$1` for `x.`), or would
be taken for an original (`x.x.a`, whose copy `x.a` is a topic that the map renames itself).

Invariants: `backward(forward(t)) == t` for a topic of a map that gives each copy a name of its own; maps in which two
rules must give the same name are refused when they are parsed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config.syntax.java_regex import MOST_GROUPS, compile_java, limit_error, shortened
from heliograph.config.syntax.java_translation import JavaRegexError
from heliograph.diagnostics import Diagnostic, problem
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from heliograph.config.syntax.java_regex import JavaPattern


_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_RIGHT = re.compile(r"\$(\d)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|([a-zA-Z0-9._-]+)")
_ONE_CHARACTER_CLASS = re.compile(r"\[([^\\^\]\[])\]")
_MOST_RULES = 10_000
_MOST_SPLITS = 20_000  # attempts to read one name backwards: enough for three groups and a name of 200 characters
_NO_NAMES = ("", ".", "..")  # not valid as names of topics
_NAMED = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of a left side; the right side refers to it by its number."""

    number: int
    pattern: JavaPattern


_Part = str | _Group


@dataclass(frozen=True, slots=True)
class Rule:
    """One `from=to`."""

    written: str
    left: tuple[_Part, ...]
    right: tuple[_Part, ...]
    pattern: JavaPattern

    @property
    def is_plain(self) -> bool:
        """True if the rule renames one topic only."""
        return not any(isinstance(part, _Group) for part in self.left)

    @property
    def leaves_a_mark(self) -> bool:
        """True if the names it gives differ from others: they contain text of the rule."""
        return any(isinstance(part, str) for part in self.right)

    def forward(self, topic: str) -> str | None:
        """Return the name of the copy, or None if the rule does not match."""
        match = self.pattern.fullmatch(topic)
        if match is None:
            return None
        name = "".join(part if isinstance(part, str) else match[part.number] for part in self.right)
        return None if name in _NO_NAMES else name

    def backward(self, name: str) -> Iterator[str]:
        """Yield the topics to which the rule gives this name."""
        tries = 0
        for groups in _splits(self.right, name, {}):
            tries += 1
            if tries > _MOST_SPLITS:
                raise limit_error(self.pattern.shown, name)
            if groups is None:
                continue
            topic = "".join(part if isinstance(part, str) else groups[part.number] for part in self.left)
            if self.forward(topic) == name:
                yield topic


@dataclass(frozen=True, slots=True)
class RenameMap:
    """Rules in the order in which they apply."""

    rules: tuple[Rule, ...]

    def forward(self, topic: str) -> str | None:
        """Return the name of the topic's copy, or None if no rule matches or the name could not be mapped back."""
        name = self._renamed(topic)
        return None if name is None or (name != topic and self._is_original(name)) else name

    def backward(self, name: str) -> str | None:
        """Return the topic whose copy has this name, or None if the map gives it to none."""
        if self._is_original(name):
            return None
        candidates = (topic for rule in self.rules for topic in rule.backward(name))
        return next((topic for topic in candidates if self.forward(topic) == name), None)

    def proves_copy(self, name: str) -> bool:
        """Return whether only the map can have given the name: it contains text of a rule."""
        upstream = self.backward(name)
        return upstream is not None and any(
            rule.leaves_a_mark for rule in self.rules if rule.forward(upstream) is not None
        )

    def _renamed(self, topic: str) -> str | None:
        return next((name for rule in self.rules if (name := rule.forward(topic)) is not None), None)

    def _is_original(self, name: str) -> bool:
        """Return whether a name counts as that of an original.

        One that the map also renames does, unless renaming makes it longer still: then it is the copy of a copy, and
        following it would never end.
        """
        if any(rule.is_plain and rule.forward(name) is not None for rule in self.rules):
            return True
        renamed = self._renamed(name)
        return renamed is not None and len(renamed) < len(name) and not self._is_plain_copy(name)

    def _is_plain_copy(self, name: str) -> bool:
        return any(rule.is_plain and rule.right == (name,) for rule in self.rules)


def parse_rename_map(key: str, entries: Sequence[str]) -> RenameMap:
    """Parse a list of `from=to`; raises one ConfigError with every problem, naming the key."""
    rules: list[Rule] = []
    problems: list[Diagnostic] = []
    if len(entries) > _MOST_RULES:
        raise ConfigError(f"it has {len(entries)} rules, but the limit is {_MOST_RULES}; use patterns.", key)
    for entry in filter(None, entries):
        try:
            rules.append(_parse_rule(key, entry))
        except JavaRegexError as error:
            problems.append(problem(f"'{entry}': {error}.", key))
    problems += [problem(f"{clash}.", key) for clash in _clashes(rules)]
    if not rules and not problems:
        problems.append(problem("RenameReplicationPolicy needs at least one rule such as 'orders=eu-orders'.", key))
    if problems:
        raise ConfigError(problems)
    return RenameMap(tuple(rules))


def _clashes(rules: Sequence[Rule]) -> Iterator[str]:
    by_left: dict[tuple[_Part, ...], Rule] = {}
    by_shape: dict[tuple[str | tuple[str], ...], Rule] = {}
    for rule in rules:
        same, alike = by_left.setdefault(rule.left, rule), by_shape.setdefault(_shape(rule), rule)
        if same is not rule:
            yield (
                f"'{same.written}' and '{rule.written}' rename the same topic, and only the first would count;"
                " remove one"
            )
        elif alike is not rule:
            yield (
                f"'{alike.written}' and '{rule.written}' give two topics the same name, and their records would be"
                " mixed; change one name"
            )
    plain = {rule.left: rule for rule in rules if rule.is_plain}
    for rule in rules:
        other = plain.get(rule.right)
        if other is not None and other is not rule and other.left != other.right:
            yield (
                f"the name on the right of '{rule.written}' is on the left of '{other.written}', so that a copy"
                " could not be distinguished from an original; use a name that no topic has"
            )


def _shape(rule: Rule) -> tuple[str | tuple[str], ...]:
    return tuple(part if isinstance(part, str) else (part.pattern.pattern,) for part in rule.right)


def _parse_rule(key: str, entry: str) -> Rule:
    # A regex may have a '=' in it, a topic's name cannot.
    left, equals, right = (text.strip() for text in entry.rpartition("="))
    if not equals or not left or not right:
        raise JavaRegexError("a rule is written from=to")
    if _NAME.fullmatch(left):
        parts: tuple[_Part, ...] = (left,)
        names: dict[str, int] = {}
    else:
        parts, names = _read_left(left)
    groups = {part.number: part for part in parts if isinstance(part, _Group)}
    if len(groups) > MOST_GROUPS:
        raise JavaRegexError(f"it has {len(groups)} groups, and {MOST_GROUPS} are the most")
    new_name = _read_right(right, groups, names)
    lost = sorted(set(groups) - {part.number for part in new_name if isinstance(part, _Group)})
    if lost:
        raise JavaRegexError(
            f"several topics would get the same name, because ${lost[0]} is not used on the right; use every group"
        )
    pattern = re.escape(left) if not groups and parts == (left,) else left
    return Rule(entry, parts, new_name, compile_java(pattern, f"{key}: '{shortened(entry)}'"))


def _read_left(left: str) -> tuple[tuple[_Part, ...], dict[str, int]]:
    parts: list[_Part] = []
    names: dict[str, int] = {}
    at = number = 0
    while at < len(left):
        char = left[at]
        if char == "(":
            inside = _inside_group(left, at)
            at += len(inside) + 2
            number += 1
            if named := _NAMED.match(inside):
                names[named[1]] = number
                inside = inside[named.end() :]
            parts.append(_Group(number, _compile_group(inside)))
            continue
        if char == "\\" and left[at + 1 : at + 2] and not left[at + 1].isalnum():
            parts.append(left[at + 1])
            at += 2
        elif single := _ONE_CHARACTER_CLASS.match(left, at):
            parts.append(single[1])
            at = single.end()
        elif _NAME.fullmatch(char) and char != ".":
            parts.append(char)
            at += 1
        else:
            raise JavaRegexError(
                f"'{char}' outside of a group matches what the new name would lose; put it into a group, as in"
                " '(.*)-raw=$1', or write [.] for a dot"
            )
    return _joined(parts), names


def _inside_group(text: str, start: int) -> str:
    depth = 0
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "[":
            at = text.find("]", at + 2)
            if at < 0:
                raise JavaRegexError("a '[' is not closed")
        elif text[at] in "()":
            depth += 1 if text[at] == "(" else -1
            if depth == 0:
                return text[start + 1 : at]
        at += 1
    raise JavaRegexError("a '(' is not closed")


def _compile_group(inside: str) -> JavaPattern:
    if inside.startswith("?"):
        raise JavaRegexError(f"'({inside})' does not keep what it matches; use (...) or (?<name>...)")
    try:
        pattern = compile_java(inside)
    except JavaRegexError as error:
        raise JavaRegexError(f"in '({inside})', {error}") from None
    if pattern.groups:
        raise JavaRegexError(f"'({inside})' has a group in it; write (?:...) inside of a group")
    return pattern


def _read_right(right: str, groups: dict[int, _Group], names: dict[str, int]) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    at = 0
    while at < len(right):
        match = _RIGHT.match(right, at)
        if match is None:
            raise JavaRegexError(f"'{right[at]}' on the right cannot stand in a topic's name")
        at = match.end()
        if match[3]:
            parts.append(match[3])
            continue
        group = groups.get(int(match[1]) if match[1] else names.get(match[2], 0))
        if group is None:
            raise JavaRegexError(f"{match[0]} names a group that the left side does not have")
        if parts and isinstance(parts[-1], _Group):
            raise JavaRegexError("two groups follow each other on the right; put a character such as - between them")
        parts.append(group)
    return tuple(parts)


def _joined(parts: Iterable[_Part]) -> tuple[_Part, ...]:
    joined: list[_Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)


def _splits(parts: tuple[_Part, ...], name: str, found: dict[int, str]) -> Iterator[dict[int, str] | None]:
    """Yield all ways to compose the name of the parts; None for each failed attempt."""
    if not parts:
        yield found if not name else None
        return
    part, rest = parts[0], parts[1:]
    if isinstance(part, str):
        if name.startswith(part):
            yield from _splits(rest, name.removeprefix(part), found)
        else:
            yield None
        return
    ends = (len(name),) if not rest else range(len(name), -1, -1)
    for end in ends:
        text = name[:end]
        if found.get(part.number, text) == text and part.pattern.fullmatch(text):
            yield from _splits(rest, name[end:], found | {part.number: text})
        else:
            yield None

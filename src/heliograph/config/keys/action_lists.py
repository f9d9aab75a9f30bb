"""Values that choose an action by topic: `staging[.].*=restart, fail`.

Each entry `PATTERN=ACTION` is a rule for source topics, of which the first that matches applies; an action alone, at
the end, is for all other topics. The patterns are read by `mirror/policy/change_rules`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from heliograph.config.keys.table import Check

if TYPE_CHECKING:
    from collections.abc import Iterator


def one_of_by_topic(*actions: str) -> Check[tuple[str, ...]]:
    """Return the check that a list has rules with one of the actions, and at most one action for all other topics."""
    mistakes = partial(_mistakes, actions)
    phrase = (
        f"one of {', '.join(actions)}; or rules PATTERN=ACTION for source topics (names or Java regexes, the first that"
        " matches applies), with an action for all other topics at the end"
    )
    return Check(lambda entries: not mistakes(entries), phrase, mistakes=mistakes)


def split_rule(entry: str) -> tuple[str, str]:
    """Return the pattern and the action of an entry; the pattern of an action alone is empty."""
    pattern, _, action = entry.rpartition("=")  # a regex may contain a '='
    return pattern.strip(), action.strip()


def _mistakes(actions: tuple[str, ...], entries: tuple[str, ...]) -> tuple[str, ...]:
    written = [entry for entry in entries if entry]
    wrong = [mistake for entry in written for mistake in _mistakes_of(entry, actions)]
    return (*wrong, *_misplaced([entry for entry in written if entry in actions], written), *_repeated(written))


def _mistakes_of(entry: str, actions: tuple[str, ...]) -> Iterator[str]:
    pattern, action = split_rule(entry)
    choices = ", ".join(actions)
    if "=" not in entry and entry not in actions:
        comma = " A comma separates rules; a pattern cannot contain one." if "{" in entry else ""
        yield f"'{entry}' is neither an action ({choices}) nor a rule PATTERN=ACTION.{comma}"
    elif "=" in entry and not pattern:
        yield f"'{entry}' has no pattern; a rule is written PATTERN=ACTION."
    elif action not in actions:
        yield f"'{entry}': the action must be one of {choices}."


def _misplaced(alone: list[str], written: list[str]) -> Iterator[str]:
    if not written:
        yield "it is empty; remove it, or set an action."
    elif len(alone) > 1:
        listed = " and ".join(f"'{action}'" for action in alone)
        yield f"{listed} are each for all topics that no rule matches; keep one, at the end."
    elif alone and written[-1] != alone[0]:
        yield f"'{alone[0]}' is for all topics that no rule matches; move it to the end."


def _repeated(written: list[str]) -> Iterator[str]:
    first: dict[str, str] = {}
    for entry in written:
        pattern = split_rule(entry)[0]
        if pattern and pattern in first:
            yield f"'{first[pattern]}' and '{entry}' have the same pattern, and only the first applies; remove one."
        first.setdefault(pattern, entry)

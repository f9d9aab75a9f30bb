"""Telling troubles well: many topics with one reason are one sentence, what does not change is told once, and so is its
end.


What troubles the tasks of a flow while they go on trying: told once it lasts, and once more when it is over.

A leader that moves or a broker that restarts is trouble for a moment, and nobody's business; one that stays away is.
Partitions come and go in the words of a lasting trouble, so what is shown of it changes only now and then: states are
written to a topic, and whoever watches them is not to be woken by every change of words.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_MOST_NAMES = 5
_MOST_NAME_LETTERS = 249  # as many as a topic's name has; a cluster may say longer ones
_MOST_TOLD = 1_000
_MOST_REASONS = 20


def by_reason(sentence: str, failures: Mapping[str, object]) -> tuple[str, ...]:
    """One sentence per reason: `sentence` has a place `{names}` for what failed, and the reason follows it."""
    names_of: dict[str, list[str]] = {}
    for name, reason in failures.items():
        names_of.setdefault(str(reason), []).append(name)
    listed = list(names_of.items())[:_MOST_REASONS]  # a cluster may give another one for each name
    more = len(names_of) - len(listed)
    rest = (f"{sentence.format(names='others')}: for {more} more reasons",) if more else ()
    return (*(f"{sentence.format(names=enumerated(names))}: {reason}" for reason, names in listed), *rest)


def enumerated(names: Iterable[str]) -> str:
    """`a, b and 7 more`."""
    listed = [name if len(name) <= _MOST_NAME_LETTERS else f"{name[:_MOST_NAME_LETTERS]}..." for name in sorted(names)]
    more = f" and {len(listed) - _MOST_NAMES} more" if len(listed) > _MOST_NAMES else ""
    return ", ".join(listed[:_MOST_NAMES]) + more


class Change(Enum):
    """What has become of a trouble since it was last looked at."""

    NONE = auto()
    NEWS = auto()
    OVER = auto()

    @classmethod
    def between(cls, before: Sequence[str], now: Sequence[str]) -> Change:
        """From the troubles of then to those of now."""
        if tuple(before) == tuple(now):
            return cls.NONE
        return cls.NEWS if now else cls.OVER


def log_change(
    log: logging.Logger, change: Change, whose: str, issues: Iterable[str], *, step: str = "", is_last: bool = False
) -> None:
    """Tell a trouble that is news, or that one is over; `is_last`: what met it is not tried again."""
    if change is Change.OVER:
        log.info("%s: it goes on as before.", f"{whose}: {step}" if step else whose)
    elif change is Change.NEWS:
        for issue in issues:
            log.warning("%s: %s%s", whose, issue.rstrip("."), "." if is_last else " (will be tried again)")


class LogOnce:
    """Logs each sentence the first time only, and remembers the newest thousand."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._reported: dict[str, None] = {}

    def report(self, level: int, sentence: str) -> None:
        """Log the sentence, unless it was."""
        if sentence not in self._reported:
            if len(self._reported) >= _MOST_TOLD:
                del self._reported[next(iter(self._reported))]
            self._reported[sentence] = None
            self._log.log(level, "%s", sentence)


log = logging.getLogger(__name__)

_LASTS_S = 5.0
_MOST_WORDS = 3


@dataclass(slots=True)
class _Issue:
    words: str
    since: float
    shown: str | None = None
    shown_at: float = 0.0


class TaskIssues:
    """The troubles of a flow's tasks, by the task's id."""

    def __init__(self) -> None:
        self._issues: dict[str, _Issue] = {}

    def note(self, task_id: str, words: Sequence[str]) -> bool:
        """What the task's newest report tells; nothing, where all is well. Whether a lasting trouble is over."""
        if not words:
            is_over = self.lasting(task_id) is not None
            if is_over:
                log.info("%s: it goes on as before.", task_id)
            self.forget(task_id)
            return is_over
        now = time.monotonic()
        issue = self._issues.setdefault(task_id, _Issue("", now))
        issue.words = brief(words)
        if now - max(issue.since, issue.shown_at) < _LASTS_S:
            return False
        if issue.shown is None:
            log.warning("%s: %s (it goes on trying)", task_id, issue.words.rstrip("."))
        issue.shown, issue.shown_at = issue.words, now
        return False

    def forget(self, task_id: str) -> None:
        """The task has ended."""
        self._issues.pop(task_id, None)

    def lasting(self, task_id: str) -> str | None:
        """What has troubled a task for a while."""
        issue = self._issues.get(task_id)
        return None if issue is None else issue.shown

    @property
    def words(self) -> list[str]:
        """All there is just now, lasting or not."""
        return [issue.words for issue in self._issues.values()]


def brief(words: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = [f"and {len(words) - _MOST_WORDS} more"] if len(words) > _MOST_WORDS else []
    return "; ".join([*words[:_MOST_WORDS], *more])

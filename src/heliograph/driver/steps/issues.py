"""Groups failures by reason and logs each only when it starts and when it clears.

`StepIssues` keeps the issues of the steps of one flow or loop, `TaskIssues` those of a flow's tasks. While a leader
moves or a broker restarts, a task has an issue for a moment; only one that lasts is reported. The partitions named in
the text of a lasting issue come and go, so the shown text changes only now and then: each state is a record in a topic.
What several tasks report, such as an unavailable cluster, is logged once; partitions that wait are logged by the
state of their flow.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


log = logging.getLogger(__name__)

_MOST_NAMES = 5
_MOST_NAME_LETTERS = 249  # as many as a topic's name has; a cluster may send longer ones
_MOST_REMEMBERED = 1_000
_MOST_REASONS = 20
_MOST_SHOWN = 3
_LASTS_S = 4.0  # with the time in which a request counts as unanswered: less than ten seconds


def by_reason(sentence: str, failures: Mapping[str, object]) -> tuple[str, ...]:
    """Return one sentence per reason: `{names}` in `sentence` is replaced by what failed, and the reason follows."""
    names_of: dict[str, list[str]] = {}
    for name, reason in failures.items():
        names_of.setdefault(str(reason), []).append(name)
    listed = list(names_of.items())[:_MOST_REASONS]  # a cluster may give another one for each name
    more = len(names_of) - len(listed)
    rest = (f"{sentence.format(names='others')}: for {more} more reasons",) if more else ()
    return (*(f"{sentence.format(names=enumerated(names))}: {reason}" for reason, names in listed), *rest)


def enumerated(names: Iterable[str]) -> str:
    """Return `a, b and 7 more`."""
    listed = [name if len(name) <= _MOST_NAME_LETTERS else f"{name[:_MOST_NAME_LETTERS]}..." for name in sorted(names)]
    more = f" and {len(listed) - _MOST_NAMES} more" if len(listed) > _MOST_NAMES else ""
    return ", ".join(listed[:_MOST_NAMES]) + more


def brief(issues: Sequence[str]) -> str:
    """Return the first few issues, and how many more there are."""
    more = [f"and {len(issues) - _MOST_SHOWN} more"] if len(issues) > _MOST_SHOWN else []
    return "; ".join([*issues[:_MOST_SHOWN], *more])


class Change(Enum):
    """The difference between the issues of a step before and now."""

    NONE = auto()
    NEW = auto()
    CLEARED = auto()

    @classmethod
    def between(cls, before: Sequence[str], now: Sequence[str]) -> Change:
        """Compare two lists of issues."""
        if tuple(before) == tuple(now):
            return cls.NONE
        return cls.NEW if now else cls.CLEARED


def log_change(
    log: logging.Logger, change: Change, subject: str, issues: Iterable[str], *, step: str = "", is_last: bool = False
) -> None:
    """Log issues that are new, or that they have cleared; `is_last`: the step is not tried again."""
    if change is Change.CLEARED:
        log.info("%s: recovered", f"{subject}: {step}" if step else subject)
    elif change is Change.NEW:
        for issue in issues:
            log.warning("%s: %s%s", subject, issue.rstrip("."), "." if is_last else " (will be tried again)")


class IssueLog(Protocol):
    """Keeps the issues of steps; may be read from any thread."""

    def note(self, step: str, issues: Iterable[str]) -> Change:
        """Replace the issues of a step, none if it succeeded; return what has changed."""

    @property
    def issues(self) -> Mapping[str, tuple[str, ...]]:
        """The issues of each step that has any."""


class StepIssues:
    """An `IssueLog` in memory: keeps the issues of a step until its next success."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._issues: dict[str, tuple[str, ...]] = {}

    def note(self, step: str, issues: Iterable[str]) -> Change:
        """Replace the issues of a step, none if it succeeded; return what has changed."""
        reported = tuple(issues)
        with self._lock:
            before = self._issues.pop(step, ())
            if reported:
                self._issues[step] = reported
        return Change.between(before, reported)

    @property
    def issues(self) -> dict[str, tuple[str, ...]]:
        """The issues of each step that has any."""
        with self._lock:
            return dict(self._issues)


class LogOnce:
    """Logs each sentence the first time only, and remembers the newest thousand."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._reported: dict[str, None] = {}

    def report(self, level: int, sentence: str) -> None:
        """Log the sentence unless it was logged before."""
        if sentence not in self._reported:
            if len(self._reported) >= _MOST_REMEMBERED:
                del self._reported[next(iter(self._reported))]
            self._reported[sentence] = None
            self._log.log(level, "%s", sentence)


@dataclass(slots=True)
class _Issue:
    text: str
    since: float
    common: str = ""  # without its partitions
    logged: str | None = None  # until nothing of this kind is left; its words may change meanwhile
    shown: str | None = None
    shown_at: float = 0.0


class TaskIssues:
    """The issues of a flow's tasks, by task id. Not thread-safe."""

    def __init__(self, flow: object) -> None:
        self._flow = str(flow)
        self._issues: dict[str, _Issue] = {}

    def note(self, task_id: str, issues: Sequence[str], waiting: Sequence[str] = ()) -> bool:
        """Replace the issues of a task, and of its waiting partitions; return whether a lasting issue has cleared."""
        if not issues and not waiting:
            has_cleared = self.lasting(task_id) is not None
            self.drop(task_id)
            return has_cleared
        now = time.monotonic()
        issue = self._issues.setdefault(task_id, _Issue("", now))
        issue.text, issue.common = brief([*issues, *waiting]), brief(issues).rstrip(".")
        if not issue.common:
            self._log_end(issue)
        if now - max(issue.since, issue.shown_at) < _LASTS_S:
            return False
        if issue.common and issue.logged is None:
            if not any(other.logged == issue.common for other in self._issues.values()):
                log.warning("%s: %s (retrying)", self._flow, issue.common, extra={"flow": self._flow})
            issue.logged = issue.common
        issue.shown, issue.shown_at = issue.text, now
        return False

    def drop(self, task_id: str) -> None:
        """Forget the issues of a task that has ended, or has none any more."""
        issue = self._issues.pop(task_id, None)
        if issue is not None:
            self._log_end(issue)

    def _log_end(self, issue: _Issue) -> None:
        """Log that an issue has cleared, unless another task has it still."""
        ended, issue.logged = issue.logged, None
        if ended is not None and not any(other.logged == ended for other in self._issues.values()):
            log.info("%s: recovered: %s", self._flow, ended, extra={"flow": self._flow})

    def lasting(self, task_id: str) -> str | None:
        """Return the issue that a task has had for a while."""
        issue = self._issues.get(task_id)
        return None if issue is None else issue.shown

    @property
    def texts(self) -> list[str]:
        """All issues of this moment, lasting or not."""
        return [issue.text for issue in self._issues.values()]

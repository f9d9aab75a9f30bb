"""Runs the repeated steps of a flow or of a control loop (checkpoints, heartbeats), each on its interval.

`Schedule` decides which steps are due. `StepRunner` runs them in its caller's thread: a step that fails, for whatever
reason, is reported as an issue until it succeeds, and is tried again before its interval ends; the others continue.
`ControlLoop` is a thread around a `StepRunner`.

Steps of one runner never run at the same time, so they may share clients and state.

A loop may be stopped because its worker no longer leads the group, and the new leader writes already. So a step that
takes long checks before each write that the loop was not stopped (`Interruptible`). A step interrupted this way has not
failed. What a step finds after its loop was stopped is discarded: a successor may use the same issue log by then, and
would never clear what it has not found itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.driver.steps.issues import Change, log_change
from heliograph.errors import HeliographError
from heliograph.kafka.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.driver.steps.issues import IssueLog

    Step = Callable[[], Iterable[str]]


log = logging.getLogger(__name__)

_LONGEST_WAIT_S = 3600.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_START = "start"


@dataclass(slots=True)
class _Repeated:
    name: str
    step: Step
    interval_s: float
    due_at: float


class Schedule:
    """Decides which steps are due; the caller runs them. A step returns the issues it found, as sentences."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps: list[_Repeated] = []

    def repeat(self, name: str, step: Step, interval_s: float, *, first_in_s: float = 0.0) -> None:
        """Add a step, due at once unless `first_in_s` is given."""
        self._steps.append(_Repeated(name, step, interval_s, self._clock() + first_in_s))

    def clear(self) -> None:
        """Remove all steps."""
        self._steps.clear()

    def hasten_all(self) -> None:
        """Make every step due now."""
        for repeated in self._steps:
            repeated.due_at = self._clock()

    @property
    def next_at(self) -> float | None:
        """The time when the next step is due; None if there is none."""
        return min((repeated.due_at for repeated in self._steps), default=None)

    def take_due(self) -> list[tuple[str, Step]]:
        """Return the steps that are due, in the order they were added. Their intervals count from now: a step that was
        late does not run twice to catch up.
        """
        now = self._clock()
        due = [repeated for repeated in self._steps if repeated.due_at <= now]
        for repeated in due:
            repeated.due_at = now + repeated.interval_s
        return [(repeated.name, repeated.step) for repeated in due]

    def hasten(self, name: str, within_s: float) -> None:
        """Make a step due within this time: the cause of its failure may be gone long before its interval ends."""
        for repeated in self._steps:
            if repeated.name == name:
                repeated.due_at = min(repeated.due_at, self._clock() + within_s)


class InterruptedStepError(HeliographError):
    """The loop was stopped while a step was running."""


class StepRunner:
    """Runs steps, reports their issues, and tries those that failed again after a pause.

    `name` begins its log lines. With `qualifies_steps`, issues are kept and logged under `name: step`, since several
    runners share an issue log. Exceptions of the types in `fatal` are raised; every other one is the step's issue: a
    filter or a policy of the user's may raise anything.
    """

    def __init__(
        self,
        name: str,
        issue_log: IssueLog,
        *,
        qualifies_steps: bool = False,
        fatal: tuple[type[Exception], ...] = (),
    ) -> None:
        self.schedule = Schedule()
        self.is_last_run = False
        self._name = name
        self._issue_log = issue_log
        self._qualifies_steps = qualifies_steps
        self._fatal = fatal
        self.set_pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    def set_pauses(self, first_s: float, most_s: float) -> None:
        """Set the first and the longest pause before a failed step is tried again."""
        self._pauses_s = first_s, most_s
        self._backoffs: defaultdict[str, Backoff] = defaultdict(lambda: Backoff(first_s=first_s, most_s=most_s))

    def repeat_later(self, name: str, step: Step, interval_s: float) -> None:
        """Add a step that has just run: it is due after its interval, or sooner if it failed."""
        has_failed = self._key(name) in self._issue_log.issues
        first_in_s = min(interval_s, self._pauses_s[0]) if has_failed else interval_s
        self.schedule.repeat(name, step, interval_s, first_in_s=first_in_s)

    def run_due(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """Run the steps that are due."""
        for name, step in self.schedule.take_due():
            if is_stopping():
                return
            self.attempt(name, step)

    def attempt(self, name: str, step: Step) -> float | None:
        """Run a step and report its issues; return the pause before it should run again, None if it succeeded."""
        try:
            issues = tuple(step())
        except self._fatal:
            raise
        except InterruptedStepError:
            return None
        except HeliographError as error:
            issues = (str(error),)
        except Exception as error:  # noqa: BLE001  (the boundary of a step: its failure must not end the others)
            log.debug("%s", trace_of(error))
            issues = (unexpected(error),)
        return self.report(name, issues)

    def report(self, name: str, issues: Iterable[str]) -> float | None:
        """Keep and log the issues of a step, none if it succeeded; return the pause before it should run again."""
        reported, pause_s = tuple(issues), None
        if reported:
            pause_s = self._backoffs[name].next_pause_s()
            self.schedule.hasten(name, pause_s)
        else:
            self._backoffs[name].reset()
        key = self._key(name)
        subject, step = (key, "") if self._qualifies_steps else (self._name, name)
        change = self._issue_log.note(key, reported)
        log_change(log, change, subject, reported, step=step, is_last=self.is_last_run)
        return pause_s

    def hasten_failing(self) -> None:
        """Make the steps that failed due now: a cluster that was unreachable has answered."""
        for name in self._issue_log.issues:
            self.schedule.hasten(name, 0.0)

    def _key(self, name: str) -> str:
        return f"{self._name}: {name}" if self._qualifies_steps else name


class Work(Protocol):
    """The steps of a control loop."""

    def begin(self) -> Iterable[str]:
        """Prepare; must succeed before the first step. Return the issues found."""

    def plan(self, schedule: Schedule) -> None:
        """Add the steps and their intervals."""

    def close(self) -> None:
        """Release the clients, however the loop ended."""


@runtime_checkable
class Interruptible(Protocol):
    """Work whose steps can be interrupted."""

    def check_before_writes(self, check: Callable[[], None]) -> None:
        """Call `check` before each write from now on: it raises if the loop was stopped, and nothing may be written."""


@runtime_checkable
class WaitsForClusters(Protocol):
    """Work that knows for which broker it waits."""

    def unanswered(self) -> list[str]:
        """Return a sentence for each cluster that has not answered for some time; called from any thread."""


class _UntilStopped:
    """The issue log of a loop, which takes nothing once the loop was stopped."""

    def __init__(self, issue_log: IssueLog) -> None:
        self.stopping = threading.Event()
        self._issue_log = issue_log
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Take nothing more, and set `stopping`."""
        with self._lock:
            self.stopping.set()

    def note(self, step: str, issues: Iterable[str]) -> Change:
        """Replace the issues of a step, unless the loop was stopped; return what has changed."""
        with self._lock:
            return Change.NONE if self.stopping.is_set() else self._issue_log.note(step, issues)

    @property
    def issues(self) -> Mapping[str, tuple[str, ...]]:
        """The issues of each step that has any."""
        return self._issue_log.issues


class ControlLoop:
    """Runs the steps of a work, one after the other, in a thread of its own until stopped."""

    def __init__(self, name: str, work: Work, issue_log: IssueLog, most_pause_s: float = _LONGEST_PAUSE_S) -> None:
        self.name = name
        self._work = work
        self._issue_log = _UntilStopped(issue_log)
        self._stopping = self._issue_log.stopping
        self._steps = StepRunner(name, self._issue_log, qualifies_steps=True)
        self._steps.set_pauses(_FIRST_PAUSE_S, most_pause_s)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        if isinstance(work, Interruptible):
            work.check_before_writes(self._check)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the loop to end after the running step, whose issues are discarded, or before that step's next write."""
        self._issue_log.stop()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; return whether it has come."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def unanswered(self) -> list[str]:
        """Return for whom the running step has waited for some time: it has no issue before it ends."""
        return self._work.unanswered() if isinstance(self._work, WaitsForClusters) else []

    def run_once(self) -> None:
        """Instead of `start`: run every step once, in order, in the caller's thread; failures are reported."""
        self._steps.is_last_run = True
        try:
            if self._steps.attempt(_START, self._work.begin) is None:
                self._work.plan(self._steps.schedule)
                self._steps.run_due()
        finally:
            self._work.close()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                pause_s = self._steps.attempt(_START, self._work.begin)
                if pause_s is None:
                    break
                self._stopping.wait(pause_s)
            self._work.plan(self._steps.schedule)
            while not self._stopping.is_set():
                self._steps.run_due(self._stopping.is_set)
                next_at = self._steps.schedule.next_at
                wait_s = _LONGEST_WAIT_S if next_at is None else min(_LONGEST_WAIT_S, next_at - time.monotonic())
                self._stopping.wait(wait_s)
        finally:
            self._work.close()

    def _check(self) -> None:
        if self._stopping.is_set():
            raise InterruptedStepError(f"{self.name} was stopped.")

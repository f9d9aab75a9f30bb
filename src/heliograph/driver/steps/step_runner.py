"""Steps that come again and again: each has a name, an interval and the time when it is due next.

A thread that does steps on their intervals: how checkpoints, group offsets and heartbeats come in time.

A step that fails is told as trouble until it succeeds, and comes again; the others go on. Steps of one loop never run
at the same time, so they may share clients and state.

Who stops a loop may have lost the lead, and another writes already. So a step that takes long asks before each write
whether it may (`Interruptible`); a step that is ended so is no trouble.

The steps of a flow beside its tasks: each on its interval, and sooner where something troubles it.

What troubles a step is told when it begins and when it is over; the others go on meanwhile. A step that waits for a
cluster comes again as soon as the tasks find that cluster back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.driver.steps.issues import log_change
from heliograph.errors import ClusterError, HeliographError
from heliograph.kafka.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.driver.flow.flow_status import FlowStatus

if TYPE_CHECKING:
    Step = Callable[[], Iterable[str]]


@dataclass(slots=True)
class _Repeated:
    name: str
    step: Step
    interval_s: float
    due_at: float


class Schedule:
    """Says which steps are due; running them is the caller's. A step returns the troubles it met, in sentences."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps: list[_Repeated] = []

    def repeat(self, name: str, step: Step, interval_s: float, *, first_in_s: float = 0.0) -> None:
        """Add a step, due at once unless `first_in_s` says later."""
        self._steps.append(_Repeated(name, step, interval_s, self._clock() + first_in_s))

    def clear(self) -> None:
        """Forget all steps."""
        self._steps.clear()

    def hasten_all(self) -> None:
        """Let every step be due now."""
        for repeated in self._steps:
            repeated.due_at = self._clock()

    @property
    def next_at(self) -> float | None:
        """When the next step is due; None where there is none."""
        return min((repeated.due_at for repeated in self._steps), default=None)

    def take_due(self) -> list[tuple[str, Step]]:
        """The steps that are due, in the order they were added. An interval counts from now: no step comes twice to
        make up for one that was late.
        """
        now = self._clock()
        due = [repeated for repeated in self._steps if repeated.due_at <= now]
        for repeated in due:
            repeated.due_at = now + repeated.interval_s
        return [(repeated.name, repeated.step) for repeated in due]

    def hasten(self, name: str, within_s: float) -> None:
        """Let a step come again within this time: what troubled it may be gone long before its interval ends."""
        for repeated in self._steps:
            if repeated.name == name:
                repeated.due_at = min(repeated.due_at, self._clock() + within_s)


log = logging.getLogger(__name__)

_LONGEST_WAIT_S = 3600.0
_LONGEST_PAUSE_S = 30.0


class Work(Protocol):
    """What a loop does."""

    def begin(self) -> Iterable[str]:
        """What must succeed before the first step; the troubles it met."""

    def plan(self, schedule: Schedule) -> None:
        """Say which steps there are, and how often they come."""

    def close(self) -> None:
        """The end, whatever it came by."""


@runtime_checkable
class Interruptible(Protocol):
    """A work whose steps can be ended on their way."""

    def ask_with(self, check: Callable[[], None]) -> None:
        """From now on call `check` before each write: it raises where the loop was stopped, and nothing may follow."""


class LoopStoppedError(HeliographError):
    """The loop was stopped while a step was under way."""


class ControlLoop:
    """Does the steps of a work, each in its turn, until stopped."""

    def __init__(
        self,
        name: str,
        work: Work,
        on_issues: Callable[[str, tuple[str, ...]], None],
        most_s: float = _LONGEST_PAUSE_S,
    ) -> None:
        self.name = name
        self._work = work
        self._on_issues = on_issues
        self._schedule = Schedule()
        self._backoffs: defaultdict[str, Backoff] = defaultdict(lambda: Backoff(first_s=0.5, most_s=most_s))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        if isinstance(work, Interruptible):
            work.ask_with(self._check)

    def start(self) -> None:
        """Begin, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the loop to end after the step it is in, or before that step's next write."""
        self._stopping.set()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; False where it has not come."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def run_once(self) -> None:
        """Instead of `start`: every step once, in order, in the caller's thread; what fails is told."""
        try:
            if self._do("start", self._work.begin):
                self._work.plan(self._schedule)
                self._do_due()
        finally:
            self._work.close()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set() and not self._do("start", self._work.begin):
                self._stopping.wait(self._backoffs["start"].next_pause_s())
            self._work.plan(self._schedule)
            while not self._stopping.is_set():
                self._do_due()
                next_at = self._schedule.next_at
                wait_s = _LONGEST_WAIT_S if next_at is None else min(_LONGEST_WAIT_S, next_at - time.monotonic())
                self._stopping.wait(wait_s)
        finally:
            self._work.close()

    def _do_due(self) -> None:
        for name, step in self._schedule.take_due():
            if self._stopping.is_set():
                return
            if self._do(name, step):
                self._backoffs[name].reset()
            else:
                self._schedule.hasten(name, self._backoffs[name].next_pause_s())

    def _check(self) -> None:
        if self._stopping.is_set():
            raise LoopStoppedError(f"{self.name} was stopped.")

    def _do(self, name: str, step: Step) -> bool:
        """Whether a step did what it should."""
        try:
            issues = tuple(step())
        except LoopStoppedError:
            return False
        except HeliographError as error:
            issues = (str(error),)
        except Exception as error:  # noqa: BLE001  (the boundary of a step: it must not end the loop in silence)
            log.debug("%s", trace_of(error))
            issues = (unexpected(error),)
        self._on_issues(f"{self.name}: {name}", issues)
        return not issues


class SourceSteps:
    """Does the steps of one flow, in its thread. `try_again_s` is the pause before a troubled step comes again."""

    def __init__(self, status: FlowStatus, *, once: bool) -> None:
        self.schedule = Schedule()
        self.try_again_s = 0.0
        self._status = status
        self._once = once

    def repeat(self, name: str, step: Step, interval_s: float) -> None:
        """Add a step that has been tried just now: it comes after its interval, or sooner where it is in trouble."""
        is_failing = name in self._status.control_issues
        first_in_s = min(interval_s, self.try_again_s) if is_failing else interval_s
        self.schedule.repeat(name, step, interval_s, first_in_s=first_in_s)

    def do_due(self) -> None:
        """Do the steps that are due."""
        for name, step in self.schedule.take_due():
            self.attempt(name, step)

    def attempt(self, name: str, step: Step) -> None:
        """Do a step; what troubles it is told."""
        try:
            self.report(name, step())
        except ClusterError as error:
            self.report(name, (str(error),))

    def report(self, name: str, issues: Iterable[str]) -> None:
        """Tell what troubles a step, and let it come again; nothing, where all is well."""
        reported = tuple(issues)
        if reported:
            self.schedule.hasten(name, self.try_again_s)
        change = self._status.note_control(name, reported)
        log_change(log, change, str(self._status.flow), reported, step=name, is_last=self._once)

    def hasten_failing(self) -> None:
        """Let the steps that something troubles come now: it may be over."""
        for name in self._status.control_issues:
            self.schedule.hasten(name, 0.0)

"""A thread that does steps on their intervals: how checkpoints, group offsets and heartbeats come in time.

A step that fails is told as trouble until it succeeds, and comes again; the others go on. Steps of one loop never run
at the same time, so they may share clients and state.

Who stops a loop may have lost the lead, and another writes already. So a step that takes long asks before each write
whether it may (`Interruptible`); a step that is ended so is no trouble.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from heliograph.engine.crash_report import trace_of, unexpected
from heliograph.errors import HeliographError
from heliograph.kafka.backoff import Backoff
from heliograph.worker.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.worker.schedule import Step

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
        on_troubles: Callable[[str, tuple[str, ...]], None],
        most_s: float = _LONGEST_PAUSE_S,
    ) -> None:
        self.name = name
        self._work = work
        self._on_troubles = on_troubles
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
            troubles = tuple(step())
        except LoopStoppedError:
            return False
        except HeliographError as error:
            troubles = (str(error),)
        except Exception as error:  # noqa: BLE001  (the boundary of a step: it must not end the loop in silence)
            log.debug("%s", trace_of(error))
            troubles = (unexpected(error),)
        self._on_troubles(f"{self.name}: {name}", troubles)
        return not troubles

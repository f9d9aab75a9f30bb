"""A thread that does steps on their intervals: how checkpoints, group offsets and heartbeats come in time.

A step that fails is told as trouble until it succeeds, and comes again; the others go on. Steps of one loop never run
at the same time, so they may share clients and state.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from heliograph.errors import HeliographError
from heliograph.kafka.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

_LONGEST_WAIT_S = 3600.0


@dataclass(slots=True)
class Step:
    """Something to be done every so often."""

    name: str
    do: Callable[[], None]
    interval_s: float
    due_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.5, most_s=30.0))


class Work(Protocol):
    """What the steps of a loop belong to."""

    def begin(self) -> None:
        """What must succeed before the first step."""

    def close(self) -> None:
        """The end, whatever it came by."""


class ControlLoop:
    """Does its steps, each in its turn, until stopped."""

    def __init__(
        self,
        name: str,
        work: Work,
        steps: Sequence[Step],
        on_trouble: Callable[[str, str | None], None],
    ) -> None:
        self.name = name
        self._work = work
        self._begin = Step("start", work.begin, 0.0)
        self._steps = list(steps)
        self._on_trouble = on_trouble
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the loop to end after the step it is in."""
        self._stopping.set()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; False where it has not come."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self._begin.due_at - time.monotonic()) and not self._do(self._begin):
                pass
            while self._steps and not self._stopping.is_set():
                now = time.monotonic()
                # A later step may build on an earlier one: where both are due, the earlier comes first.
                step = min(self._steps, key=lambda each: max(each.due_at, now))
                if not self._stopping.wait(min(step.due_at - now, _LONGEST_WAIT_S)) and step.due_at <= time.monotonic():
                    self._do(step)
        finally:
            self._work.close()

    def run_once(self) -> None:
        """Instead of `start`: every step once, in order, in the caller's thread; what fails is told."""
        try:
            if self._do(self._begin):
                for step in self._steps:
                    self._do(step)
        finally:
            self._work.close()

    def _do(self, step: Step) -> bool:
        now = time.monotonic()
        try:
            step.do()
        except Exception as error:  # noqa: BLE001  (the boundary of a step: it must not end the loop in silence)
            is_ours = isinstance(error, HeliographError)
            words = str(error) if is_ours else f"unexpected {type(error).__name__}: {error}"
            log.debug("%s", traceback.format_exc())
            self._on_trouble(f"{self.name} {step.name}", words)
            step.due_at = now + step.backoff.next_pause_s()
            return False
        self._on_trouble(f"{self.name} {step.name}", None)
        step.backoff.reset()
        step.due_at = now + step.interval_s
        return True

"""The steps of a flow beside its tasks: each on its interval, and sooner where something troubles it.

What troubles a step is told when it begins and when it is over; the others go on meanwhile. A step that waits for a
cluster comes again as soon as the tasks find that cluster back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from heliograph.errors import ClusterError
from heliograph.worker.schedule import Schedule
from heliograph.worker.troubles import log_change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.worker.schedule import Step
    from heliograph.worker.status import FlowStatus

log = logging.getLogger(__name__)


class SourceSteps:
    """Does the steps of one flow, in its thread. `try_again_s` is the pause before a troubled step comes again."""

    def __init__(self, status: FlowStatus, *, once: bool) -> None:
        self.schedule = Schedule()
        self.try_again_s = 0.0
        self._status = status
        self._once = once

    def repeat(self, name: str, step: Step, interval_s: float) -> None:
        """Add a step that has been tried just now: it comes after its interval, or sooner where it is in trouble."""
        is_troubled = name in self._status.control_troubles
        first_in_s = min(interval_s, self.try_again_s) if is_troubled else interval_s
        self.schedule.repeat(name, step, interval_s, first_in_s=first_in_s)

    def do_due(self) -> None:
        """Do the steps that are due."""
        for name, step in self.schedule.take_due():
            self.attempt(name, step)

    def attempt(self, name: str, step: Step) -> None:
        """Do a step; what troubles it is told."""
        try:
            self.tell(name, step())
        except ClusterError as error:
            self.tell(name, (str(error),))

    def tell(self, name: str, troubles: Iterable[str]) -> None:
        """Tell what troubles a step, and let it come again; nothing, where all is well."""
        told = tuple(troubles)
        if told:
            self.schedule.hasten(name, self.try_again_s)
        change = self._status.note_control(name, told)
        log_change(log, change, str(self._status.flow), told, step=name, is_last=self._once)

    def hasten_troubled(self) -> None:
        """Let the steps that something troubles come now: it may be over."""
        for name in self._status.control_troubles:
            self.schedule.hasten(name, 0.0)

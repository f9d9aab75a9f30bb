"""What the log says of copying that goes well: where a task goes on when it begins, and how fast a connector copies.

A terminal has the table of `run`. Whoever reads a worker's log has only its lines, so they are few: one for each start
of a task, and one now and then for each connector that has copied anything since the last.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from heliograph.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.engine.report import PartitionReport
    from heliograph.engine.spec import PartitionSpec
    from heliograph.worker.status import FlowStatus

log = logging.getLogger(__name__)

_INTERVAL_S = 30.0


class ProgressLines:
    """Tells what a connector has copied, at most every half minute; nothing while it copies nothing."""

    def __init__(self, name: str, status: FlowStatus, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._status, self._clock = name, status, clock
        self._looked_at = clock()
        self._told = (0, 0)

    def tell(self) -> None:
        """To be called again and again."""
        elapsed_s = self._clock() - self._looked_at
        if elapsed_s < _INTERVAL_S:
            return
        before, self._told = self._told, self._status.totals
        self._looked_at += elapsed_s
        records, size = self._told[0] - before[0], self._told[1] - before[1]
        if records > 0:  # what was copied of topics that have left is no longer counted
            log.info(
                "Connector %s: %s records (%s/s), %s MB (%s MB/s) copied in %.0f s, lag %s",
                self._name,
                f"{records:,}",
                f"{records / elapsed_s:,.0f}",
                f"{size / 1e6:,.1f}",
                f"{size / 1e6 / elapsed_s:,.1f}",
                elapsed_s,
                f"{self._status.lag:,}",
            )


def beginning(partitions: Iterable[PartitionSpec], rows: Iterable[PartitionReport]) -> str:
    """Where a task goes on, as it was told and as it has found out since."""
    positions = [partition.position for partition in partitions]
    known = sum(position is not None for position in positions)
    parts = [f"{known} behind what was committed"] if known else []
    if known < len(positions):
        parts.append(f"{len(positions) - known} without progress yet")
    words = f"begins with {counted(len(positions), 'partition')}: {', '.join(parts)}"
    already_there = sum(row.already_there for row in rows)
    if not already_there:
        return words
    return f"{words}; {counted(already_there, 'record')} behind that found on the target, not copied again"

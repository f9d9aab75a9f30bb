"""The source offsets that a user has moved, until a task has committed them.

A task that runs gets them with its assignment. Without a run they are written to the offsets topic, so that whatever
copies the partition next begins there.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from heliograph.errors import HeliographError
from heliograph.model import RestartedPartition, SourceOffset, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.driver.flow.flow_steps import FlowSteps
    from heliograph.driver.flow.tasks.flow_task import FlowTasks
    from heliograph.model import TopicPartition


log = logging.getLogger(__name__)

_MOST_LOGGED = 10


class UserMoves(dict["TopicPartition", SourceOffset]):
    """The moved source offsets of one flow by partition; used in the flow's thread."""

    def __init__(self, steps: FlowSteps, status: FlowStatus, tasks: FlowTasks, label: str) -> None:
        super().__init__()
        self._steps = steps
        self._status = status
        self._tasks = tasks
        self._label = label

    def add(self, moved: dict[TopicPartition, int]) -> None:
        """Take the offsets to begin with; what the target's logs have remains known, and its loss noticed."""
        known = self._steps.read_source_offsets().offsets if moved else {}
        logs = {tp: known[tp].target_log for tp in moved if tp in known}
        for tp, offset in moved.items():
            self[tp] = SourceOffset(tp, offset - 1, target_log=logs.get(tp))

    def write(self, tps: Iterable[TopicPartition]) -> None:
        """Write those of partitions that no run holds."""
        held = self._tasks.held
        moves = [self[tp] for tp in tps if tp in self and tp not in held]
        if moves:
            self._steps.write_source_offsets(moves)

    def keep(self, tps: Iterable[TopicPartition]) -> None:
        """Write them as far as possible, before tasks end for long."""
        try:
            self.write(tps)
        except HeliographError as error:
            text = "%s: the source offsets of a restart on request were not written: %s"
            log.error(text, self._status.flow, error, extra=self._about())

    def restarted(
        self, tps: Sequence[TopicPartition], moved: dict[TopicPartition, int]
    ) -> tuple[RestartedPartition, ...]:
        """Return the partitions that a user has restarted, and log the records that are left out or copied again."""
        flow, found = self._status.flow, []
        for tp in tps:
            position, reached = moved.get(tp), self._status.partitions.next_offset_of(tp)
            skipped = position - reached if position is not None and reached is not None else None
            found.append(RestartedPartition(tp, position, skipped))
        log.info("%s: %s restarted on request", flow, counted(len(tps), "partition"), extra=self._about())
        moved_ones = [
            (each.tp, each.position, each.skipped) for each in found if each.position is not None and each.skipped
        ]
        for tp, position, skipped in moved_ones[:_MOST_LOGGED]:
            first, last = sorted((position, position - skipped))
            what = "left out" if skipped > 0 else "copied again"
            about = {**self._about(), "topic": tp.topic, "partition": tp.partition}
            text = f"{tp}: offsets {first} to {last - 1} ({last - first}) are {what} on request"
            log.warning("%s %s", flow, text, extra=about)
        if len(moved_ones) > _MOST_LOGGED:
            out = sum(max(0, skipped) for _tp, _position, skipped in moved_ones)
            again = sum(max(0, -skipped) for _tp, _position, skipped in moved_ones)
            log.warning("%s: in all %d offsets left out, %d copied again", flow, out, again, extra=self._about())
        return tuple(found)

    def _about(self) -> dict[str, object]:
        return {"flow": self._label}

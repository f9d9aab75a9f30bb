"""Looks up where logs start and end, for decisions about offsets of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.kafka.request_options import EARLIEST, LATEST
from heliograph.mirror.groups.group_moves import LogBounds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import TopicPartition


def log_bounds(admin: Admin, tps: Iterable[TopicPartition]) -> dict[TopicPartition, LogBounds]:
    """Return the bounds of those partitions that have a leader that answers.

    Ends are read last, so that an offset read before the call is past the end only if the log is another one.
    """
    wanted = list(tps)
    if not wanted:
        return {}
    starts = admin.known_offsets(wanted, EARLIEST)
    ends = admin.known_offsets(wanted, LATEST)
    return {tp: LogBounds(starts[tp], ends[tp]) for tp in wanted if tp in starts and tp in ends}

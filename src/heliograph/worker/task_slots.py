"""How many tasks a flow may run: its share of Spark's slots, since a task keeps its slot while the flow runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from heliograph.errors import EngineError
from heliograph.mirror.assignment import task_count
from heliograph.model import counted

if TYPE_CHECKING:
    from heliograph.model import Flow

log = logging.getLogger(__name__)


def tasks_within(slots: int, flow: Flow, flow_count: int, partition_count: int, tasks_max: int) -> int:
    """So many tasks; refuses a Spark that has not one slot for each flow. A `tasks_max` of 0 sets no limit."""
    share = slots // flow_count
    if share == 0:
        raise EngineError(
            f"Spark has {counted(slots, 'slot')} for {counted(flow_count, 'flow')}; each needs one. Raise --master."
        )
    if tasks_max > share:
        log.info("%s: tasks.max=%d, but Spark has %s for this flow", flow, tasks_max, counted(share, "slot"))
    return task_count(partition_count, min(tasks_max, share) if tasks_max else 0, share)

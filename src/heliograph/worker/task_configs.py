"""What Connect keeps as the configs of a connector's tasks: the connector's own, a task's class, and its share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.connector import CLASSES
from heliograph.worker.checkpoint_sync import CheckpointSync
from heliograph.worker.source_flow import SourceFlow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.connector import Kind
    from heliograph.worker.heartbeat import HeartbeatSource


def task_configs(
    kind: Kind, connector: Mapping[str, str], part: SourceFlow | CheckpointSync | HeartbeatSource | None
) -> tuple[dict[str, str], ...]:
    """The config of each task; none where the connector is switched off."""
    if part is None:
        return ()
    config = {**connector, "task.class": CLASSES[kind].removesuffix("Connector") + "Task"}
    if isinstance(part, SourceFlow):
        return tuple(
            {
                **config,
                "task.assigned.partitions": ",".join(map(str, sorted(task.tps))),
                "task.index": str(task.number),
            }
            for task in part.task_states
        )
    if isinstance(part, CheckpointSync):
        return ({**config, "task.assigned.groups": ",".join(part.groups), "task.index": "0"},)
    return (config,)

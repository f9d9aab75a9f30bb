"""What runs beside the copies of a file's flows: the checkpoint loop of each, and the heartbeats of cluster pairs."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.worker.checkpoint_sync import CheckpointSync
from heliograph.worker.control_loop import ControlLoop, Step
from heliograph.worker.heartbeat import HeartbeatSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from heliograph.config.dedicated import MirrorMakerConfig
    from heliograph.model import Flow
    from heliograph.worker.status import FlowStatus

log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 10.0


class Control:
    """All loops of a file. Trouble is told in the log when it begins, and shown with its flow while it lasts."""

    def __init__(self, config: MirrorMakerConfig, statuses: Mapping[Flow, FlowStatus]) -> None:
        self._statuses = statuses
        self._trouble: dict[str, str | None] = {}
        self._checkpoints = [
            loop for flow in config.flows if (loop := checkpoint_loop(config, flow, self._teller(flow))) is not None
        ]
        self._heartbeats = [heartbeat_loop(config, flow, self._teller(flow)) for flow in config.heartbeat_flows]

    def start(self) -> None:
        """Begin all of them, in the background."""
        for loop in (*self._heartbeats, *self._checkpoints):
            loop.start()

    def stop(self) -> None:
        """End all of them."""
        loops = (*self._heartbeats, *self._checkpoints)
        for loop in loops:
            loop.stop()
        for loop in loops:
            loop.join(_STOP_TIMEOUT_S)

    def run_once(self) -> None:
        """Instead of `start`: one round of checkpoints, for a copy that ends."""
        for loop in self._checkpoints:
            loop.run_once()

    def _teller(self, flow: Flow) -> Callable[[str, str | None], None]:
        def tell(step: str, words: str | None) -> None:
            if words is not None and self._trouble.get(step) != words:
                log.warning("%s: %s (will be tried again)", step, words)
            self._trouble[step] = words
            if flow in self._statuses:
                self._statuses[flow].set_trouble(step, words)

        return tell


def checkpoint_loop(
    config: MirrorMakerConfig, flow: Flow, on_trouble: Callable[[str, str | None], None]
) -> ControlLoop | None:
    """The loop that follows a flow's groups; None where it is switched off."""
    settings = config.settings(flow)
    if not settings[keys.EMIT_CHECKPOINTS_ENABLED] or not settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
        return None
    sync = CheckpointSync(config, flow)
    is_refreshed = settings[keys.REFRESH_GROUPS_ENABLED]  # where not, the groups there are at the start are followed
    refresh_s = settings[keys.REFRESH_GROUPS_INTERVAL_SECONDS] if is_refreshed else math.inf
    steps = [
        Step("groups", sync.refresh_groups, refresh_s),
        Step("checkpoints", sync.emit, settings[keys.EMIT_CHECKPOINTS_INTERVAL_SECONDS]),
    ]
    if settings[keys.SYNC_GROUP_OFFSETS_ENABLED]:
        steps.append(Step("group offsets", sync.sync_groups, settings[keys.SYNC_GROUP_OFFSETS_INTERVAL_SECONDS]))
    return ControlLoop(f"{flow} checkpoints", sync, steps, on_trouble)


def heartbeat_loop(config: MirrorMakerConfig, flow: Flow, on_trouble: Callable[[str, str | None], None]) -> ControlLoop:
    """The loop that writes a flow's heartbeats."""
    beats = HeartbeatSource(config, flow)
    interval_s = config.settings(flow)[keys.EMIT_HEARTBEATS_INTERVAL_SECONDS]
    return ControlLoop(f"{flow} heartbeats", beats, [Step("beat", beats.beat, interval_s)], on_trouble)

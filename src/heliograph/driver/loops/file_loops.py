"""The control loops of a file: the checkpoints of each flow, and the heartbeats of each pair of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.loops.heartbeats import HeartbeatSource
from heliograph.driver.steps.step_runner import ControlLoop

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.steps.step_runner import Work
    from heliograph.model import Flow


_STOP_TIMEOUT_S = 10.0


class Control:
    """All loops of a file. Their issues are shown with their flow."""

    def __init__(self, config: MirrorConfig, statuses: Mapping[Flow, FlowStatus]) -> None:
        self.is_started = False
        self._statuses = dict(statuses)
        self.checkpoints = {
            flow: CheckpointSync(config, flow) for flow in config.flows if _has_checkpoints(config, flow)
        }
        self.heartbeats = {flow: HeartbeatSource(config, flow) for flow in config.heartbeat_flows}
        self._checkpoint_loops = self._loops("checkpoints", self.checkpoints)
        self._heartbeat_loops = self._loops("heartbeats", self.heartbeats)

    def _loops(self, what: str, works: Mapping[Flow, Work]) -> list[ControlLoop]:
        # A flow that has only heartbeats is not on the screen; its issues are logged nevertheless.
        return [
            ControlLoop(_loop_name(flow, what), work, self._statuses.setdefault(flow, FlowStatus(flow)))
            for flow, work in works.items()
        ]

    def issues(self, flow: Flow, what: str) -> list[str]:
        """Return the issues of the `checkpoints` or the `heartbeats` of a flow."""
        begin = f"{_loop_name(flow, what)}: "
        reported = self._statuses[flow].issues if flow in self._statuses else {}
        return [issue for step, issues in reported.items() if step.startswith(begin) for issue in issues]

    def start(self) -> None:
        """Start all of them, in the background."""
        self.is_started = True
        for loop in (*self._heartbeat_loops, *self._checkpoint_loops):
            loop.start()

    def stop(self) -> None:
        """Stop all of them."""
        loops = (*self._heartbeat_loops, *self._checkpoint_loops)
        for loop in loops:
            loop.stop()
        for loop in loops:
            loop.join(_STOP_TIMEOUT_S)

    def run_once(self, flows: Collection[Flow]) -> None:
        """Instead of `start`: run the checkpoint steps of these flows once, for a copy that ends."""
        for flow, loop in zip(self.checkpoints, self._checkpoint_loops, strict=True):
            if flow in flows:
                loop.run_once()


def _loop_name(flow: Flow, what: str) -> str:
    return f"{flow} {what}"


def _has_checkpoints(config: MirrorConfig, flow: Flow) -> bool:
    settings = config.settings(flow)
    return settings[keys.EMIT_CHECKPOINTS_ENABLED] and settings[keys.EMIT_OFFSET_SYNCS_ENABLED]

"""What runs beside the copies of a file's flows: the checkpoint loop of each, and the heartbeats of cluster pairs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.loops.heartbeats import HeartbeatSource
from heliograph.driver.steps.issues import log_change
from heliograph.driver.steps.step_runner import ControlLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.steps.step_runner import Work
    from heliograph.model import Flow


log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 10.0


class Control:
    """All loops of a file. Trouble is told in the log when it begins, and shown with its flow while it lasts."""

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
        return [ControlLoop(_loop_name(flow, what), work, self._publisher(flow)) for flow, work in works.items()]

    def issues(self, flow: Flow, what: str) -> list[str]:
        """What troubles the `checkpoints` or the `heartbeats` of a flow now."""
        begin = f"{_loop_name(flow, what)}: "
        reported = self._statuses[flow].control_issues if flow in self._statuses else {}
        return [words for step, issues in reported.items() if step.startswith(begin) for words in issues]

    def start(self) -> None:
        """Begin all of them, in the background."""
        self.is_started = True
        for loop in (*self._heartbeat_loops, *self._checkpoint_loops):
            loop.start()

    def stop(self) -> None:
        """End all of them."""
        loops = (*self._heartbeat_loops, *self._checkpoint_loops)
        for loop in loops:
            loop.stop()
        for loop in loops:
            loop.join(_STOP_TIMEOUT_S)

    def run_once(self, flows: Collection[Flow]) -> None:
        """Instead of `start`: one round of checkpoints of these flows, for a copy that ends."""
        for flow, loop in zip(self.checkpoints, self._checkpoint_loops, strict=True):
            if flow in flows:
                loop.run_once()

    def _publisher(self, flow: Flow) -> Callable[[str, tuple[str, ...]], None]:
        # A flow that has only heartbeats is not on the screen; what troubles it is still told once.
        status = self._statuses.setdefault(flow, FlowStatus(flow))

        def report(step: str, issues: tuple[str, ...]) -> None:
            log_change(log, status.note_control(step, issues), step, issues, is_last=not self.is_started)

        return report


def _loop_name(flow: Flow, what: str) -> str:
    return f"{flow} {what}"


def _has_checkpoints(config: MirrorConfig, flow: Flow) -> bool:
    settings = config.settings(flow)
    return settings[keys.EMIT_CHECKPOINTS_ENABLED] and settings[keys.EMIT_OFFSET_SYNCS_ENABLED]

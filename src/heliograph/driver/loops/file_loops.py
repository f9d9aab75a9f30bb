"""The control loops of a file: the checkpoints of each flow, and the heartbeats of each pair of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from heliograph.config import keys
from heliograph.driver.flow.flow_status import FlowStatus, loop_name
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.loops.heartbeats import HeartbeatSource
from heliograph.driver.steps.step_runner import ControlLoop

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from heliograph.config.effective.file_changes import FileChanges
    from heliograph.config.effective.mirror_config import MirrorConfig, MirrorMakerConfig
    from heliograph.driver.steps.step_runner import Work
    from heliograph.model import Flow


_STOP_TIMEOUT_S = 10.0
_W = TypeVar("_W", CheckpointSync, HeartbeatSource)


class NextLoops(NamedTuple):
    """The works of a new version of a file; those that also run now are the same objects."""

    checkpoints: dict[Flow, CheckpointSync]
    heartbeats: dict[Flow, HeartbeatSource]


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

    def _loops(self, what: str, works: Mapping[Flow, Work]) -> dict[Flow, ControlLoop]:
        return {flow: self._loop(what, flow, work) for flow, work in works.items()}

    def _loop(self, what: str, flow: Flow, work: Work) -> ControlLoop:
        # A flow that has only heartbeats is not on the screen; its issues are logged nevertheless.
        return ControlLoop(loop_name(flow, what), work, self._statuses.setdefault(flow, FlowStatus(flow)))

    def issues(self, flow: Flow, what: str) -> list[str]:
        """Return the issues of the `checkpoints` or the `heartbeats` of a flow, and for whom they wait."""
        loop = (self._checkpoint_loops if what == "checkpoints" else self._heartbeat_loops).get(flow)
        awaited = loop.unanswered() if loop is not None else []
        begin = f"{loop_name(flow, what)}: "
        reported = self._statuses[flow].issues if flow in self._statuses else {}
        return awaited + [issue for step, issues in reported.items() if step.startswith(begin) for issue in issues]

    def start(self) -> None:
        """Start all of them, in the background."""
        self.is_started = True
        for loop in (*self._heartbeat_loops.values(), *self._checkpoint_loops.values()):
            loop.start()

    def stop(self) -> None:
        """Stop all of them."""
        loops = (*self._heartbeat_loops.values(), *self._checkpoint_loops.values())
        for loop in loops:
            loop.stop()
        for loop in loops:
            loop.join(_STOP_TIMEOUT_S)

    def run_once(self, flows: Collection[Flow]) -> None:
        """Instead of `start`: run the checkpoint steps of these flows once, for a copy that ends."""
        for flow, loop in self._checkpoint_loops.items():
            if flow in flows:
                loop.run_once()

    def prepare(self, config: MirrorMakerConfig, changes: FileChanges) -> NextLoops:
        """Make the works of a new version of the file, without starting any; raises ConfigError if one is unusable."""
        return NextLoops(
            {
                flow: self.checkpoints[flow]
                if flow in self.checkpoints and flow in changes.flows and flow not in changes.checkpoints
                else CheckpointSync(config, flow)
                for flow in config.flows
                if _has_checkpoints(config, flow)
            },
            {
                flow: self.heartbeats[flow]
                if flow in self.heartbeats and flow not in changes.heartbeats
                else HeartbeatSource(config, flow)
                for flow in config.heartbeat_flows
            },
        )

    def change(self, loops: NextLoops, statuses: Mapping[Flow, FlowStatus]) -> None:
        """Stop the loops that are not among these, and start those that are new.

        A loop that was stopped writes nothing more, so its successor need not wait for the end of its last request.
        """
        self._statuses.update(statuses)
        before, self.checkpoints = self.checkpoints, loops.checkpoints
        self._checkpoint_loops = self._changed("checkpoints", self._checkpoint_loops, before, self.checkpoints)
        beating, self.heartbeats = self.heartbeats, loops.heartbeats
        self._heartbeat_loops = self._changed("heartbeats", self._heartbeat_loops, beating, self.heartbeats)

    def _changed(
        self, what: str, loops: Mapping[Flow, ControlLoop], before: Mapping[Flow, _W], now: Mapping[Flow, _W]
    ) -> dict[Flow, ControlLoop]:
        kept = {flow: loops[flow] for flow, work in now.items() if before.get(flow) is work}
        for flow, loop in loops.items():
            if flow not in kept:
                loop.stop()
                self._forget_issues(flow, what)
        new = {flow: self._loop(what, flow, work) for flow, work in now.items() if flow not in kept}
        if self.is_started:
            for loop in new.values():
                loop.start()
        return {flow: kept.get(flow) or new[flow] for flow in now}

    def _forget_issues(self, flow: Flow, what: str) -> None:
        status = self._statuses[flow]
        for step in status.issues:
            if step.startswith(f"{loop_name(flow, what)}: "):
                status.note(step, ())


def _has_checkpoints(config: MirrorConfig, flow: Flow) -> bool:
    settings = config.settings(flow)
    return settings[keys.EMIT_CHECKPOINTS_ENABLED] and settings[keys.EMIT_OFFSET_SYNCS_ENABLED]

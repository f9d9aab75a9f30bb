"""One connector of a worker while it runs: a source flow, or a loop of checkpoints or heartbeats.

A run is made anew for each start; what it was configured with never changes. It fails without raising: `error` and the
states of its tasks say why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.errors import FencedError
from heliograph.worker.checkpoint_sync import CheckpointSync
from heliograph.worker.control_loop import ControlLoop
from heliograph.worker.heartbeat import HeartbeatSource
from heliograph.worker.source_flow import SourceFlow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.connector import ConnectorConfig
    from heliograph.engine.engine import SparkEngine


class RunState(NamedTuple):
    """What a connector and its tasks are doing: state and trace of each."""

    state: str
    trace: str | None
    tasks: tuple[tuple[str, str | None], ...]


class ConnectorRun:
    """Starts, stops and describes what a connector does."""

    def __init__(self, config: ConnectorConfig, engine: SparkEngine) -> None:
        self.config = config
        self._troubles: dict[str, tuple[str, ...]] = {}
        self._flow: SourceFlow | None = None
        self._loop: ControlLoop | None = None
        settings = config.settings(config.flow)
        is_enabled = settings[keys.ENABLED]
        if config.kind == "source" and is_enabled:
            self._flow = SourceFlow(config, config.flow, engine, flow_count=1)
        elif config.kind == "checkpoint" and is_enabled and settings[keys.EMIT_CHECKPOINTS_ENABLED]:
            self._loop = ControlLoop(config.name, CheckpointSync(config, config.flow), self._note_troubles)
        elif config.kind == "heartbeat" and settings[keys.EMIT_HEARTBEATS_ENABLED]:
            self._loop = ControlLoop(config.name, HeartbeatSource(config, config.flow), self._note_troubles)

    def _note_troubles(self, step: str, troubles: tuple[str, ...]) -> None:
        self._troubles[step] = troubles

    def start(self) -> None:
        """Begin, in the background."""
        for part in (self._flow, self._loop):
            if part is not None:
                part.start()

    def stop(self) -> None:
        """Ask for the end: flush, commit, leave."""
        for part in (self._flow, self._loop):
            if part is not None:
                part.stop()

    def is_over(self, timeout_s: float = 0.0) -> bool:
        """Whether the end has come, waiting for it so long."""
        return all(part.join(timeout_s) for part in (self._flow, self._loop) if part is not None)

    @property
    def has_begun(self) -> bool:
        """Whether its clusters have answered, so that it knows its tasks."""
        return self._flow is None or self._flow.has_begun

    @property
    def error(self) -> str | None:
        """Why the connector has failed as a whole, if it has."""
        return str(self._flow.error) if self._flow is not None and self._flow.error is not None else None

    @property
    def is_fenced(self) -> bool:
        """Whether another instance has taken our place: starting again would only take it back."""
        return self._flow is not None and isinstance(self._flow.error, FencedError)

    @property
    def state(self) -> RunState:
        """What to tell of it."""
        if self.error is not None:
            return RunState("FAILED", self.error, ())
        if self._flow is not None:
            return RunState("RUNNING", None, tuple((task.state, task.trace) for task in self._flow.task_states))
        if self._loop is not None:
            troubles = [words for step in self._troubles.values() for words in step]
            return RunState("RUNNING", None, (("FAILED", "\n".join(troubles)) if troubles else ("RUNNING", None),))
        return RunState("RUNNING", None, ())

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics the connector writes to."""
        return self._flow.remote_topics if self._flow is not None else ()

    @property
    def task_configs(self) -> tuple[Mapping[str, str], ...]:
        """The config of each task, as Connect keeps them: the connector's and the task's share."""
        if self._flow is not None:
            return tuple(
                {
                    **self.config.raw,
                    "task.assigned.partitions": ",".join(map(str, sorted(task.tps))),
                    "task.index": str(task.number),
                }
                for task in self._flow.task_states
            )
        return ({**self.config.raw, "task.index": "0"},) if self._loop is not None else ()

    def restart_task(self, number: int) -> None:
        """Start one task again; the only task of a loop is the loop, which tries again by itself."""
        if self._flow is not None:
            self._flow.restart_task(number)

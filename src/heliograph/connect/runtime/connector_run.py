"""One run of a connector: a source flow, or a loop that writes checkpoints or heartbeats.

Each start makes a new run; a source flow may continue with another config if no task is affected. A run fails without
raising: `error` and the states of its tasks have the reason.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.effective.connect_config import CLASSES, is_live_change
from heliograph.config.validate.key_names import unknown_keys
from heliograph.driver.flow.flow_status import ProgressLines
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.loops.heartbeats import HeartbeatSource
from heliograph.driver.steps.issues import LogOnce, StepIssues
from heliograph.driver.steps.restart_policy import RestartLimits
from heliograph.driver.steps.step_runner import ControlLoop
from heliograph.errors import FencedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.config.effective.connect_config import ConnectorConfig
    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.driver.spark.spark_engine import SparkEngine
    from heliograph.model import ConnectorKind
    from heliograph.status.flow_snapshot import FlowSnapshot
    from heliograph.wire.records.connect_status import State


log = logging.getLogger(__name__)
_warnings = LogOnce(log)  # a connector may be started again many times

_TOPICS_INTERVAL_S = 1.0


class RunState(NamedTuple):
    """State and trace of a connector and of each of its tasks."""

    state: State
    trace: str | None
    tasks: tuple[tuple[State, str | None], ...]


def state_summary(state: str, tasks: Iterable[str]) -> str:
    """Return the states as text: `RUNNING; tasks: 2 RUNNING, 1 FAILED`."""
    counts = Counter(tasks)
    listed = ", ".join(f"{count} {task_state}" for task_state, count in sorted(counts.items()))
    return f"{state}; tasks: {listed}" if listed else state


class ConnectorRun:
    """Starts and stops what a connector does, and describes its state.

    A source flow reports into `status`, which the runs of a connector share one after the other.
    """

    def __init__(self, config: ConnectorConfig, engine: SparkEngine, status: FlowStatus) -> None:
        self.config = config
        _warn_of_unknown_keys(config)
        self._issues = StepIssues()
        self.source_flow: SourceFlow | None = None
        self._lines: ProgressLines | None = None
        self.work: CheckpointSync | HeartbeatSource | None = None
        self._loop: ControlLoop | None = None
        self._seen_written: dict[str, int] = {}
        self._topics_at = 0.0
        settings = config.settings(config.flow)
        is_enabled = settings[keys.ENABLED]
        if config.kind == "source" and is_enabled:
            self.source_flow = SourceFlow(config, config.flow, engine, flow_count=1, status=status)
            self._lines = ProgressLines(config.name, status)
        elif config.kind == "checkpoint" and is_enabled and settings[keys.EMIT_CHECKPOINTS_ENABLED]:
            self.work = CheckpointSync(config, config.flow)
        elif config.kind == "heartbeat" and settings[keys.EMIT_HEARTBEATS_ENABLED]:
            self.work = HeartbeatSource(config, config.flow)
        if self.work is not None:
            most_s = RestartLimits.of(settings).most_s
            self._loop = ControlLoop(config.name, self.work, self._issues, most_s)

    def start(self) -> None:
        """Start, in the background."""
        for part in (self.source_flow, self._loop):
            if part is not None:
                part.start()

    def stop(self, *, drains: bool = True) -> None:
        """Ask it to stop: flush, commit, leave; without draining, tasks end at once."""
        if self.source_flow is not None:
            self.source_flow.stop(drains=drains)
        if self._loop is not None:
            self._loop.stop()

    def adopt(self, config: ConnectorConfig) -> bool:
        """Continue with another config if no task is affected; return False if it needs a new run."""
        if (
            self.source_flow is None
            or self.source_flow.error is not None
            or not is_live_change(self.config.raw, config.raw)
        ):
            return False
        self.source_flow.adopt(config)
        self.config = config
        _warn_of_unknown_keys(config)
        return True

    def is_over(self, timeout_s: float = 0.0) -> bool:
        """Return whether the run has ended, after waiting for at most that long."""
        return all(part.join(timeout_s) for part in (self.source_flow, self._loop) if part is not None)

    @property
    def has_begun(self) -> bool:
        """Return whether its clusters have answered, so that its tasks are known."""
        return self.source_flow is None or self.source_flow.has_begun

    @property
    def error(self) -> str | None:
        """The reason why the connector has failed as a whole; None if it has not."""
        return (
            str(self.source_flow.error) if self.source_flow is not None and self.source_flow.error is not None else None
        )

    @property
    def is_fenced(self) -> bool:
        """Return whether another instance has fenced this one: a restart would only fence the other."""
        return self.source_flow is not None and isinstance(self.source_flow.error, FencedError)

    @property
    def state(self) -> RunState:
        """The state to publish."""
        if self.error is not None:
            return RunState("FAILED", self.error, ())
        if self.source_flow is not None:
            tasks = tuple((task.state, task.trace) for task in self.source_flow.task_states)
            return RunState(*self.source_flow.connector_state, tasks)
        if self._loop is not None:
            issues = [*self._loop.unanswered(), *(words for step in self._issues.issues.values() for words in step)]
            return RunState("RUNNING", None, (("FAILED", "\n".join(issues)) if issues else ("RUNNING", None),))
        return RunState("RUNNING", None, ())

    @property
    def flow(self) -> FlowSnapshot | None:
        """The flow of a source connector at this moment; None of another connector."""
        return None if self.source_flow is None else self.source_flow.snapshot(self.config.name, self.config.name)

    def log_progress(self) -> None:
        """Log what was copied, at intervals."""
        if self._lines is not None:
            self._lines.report()

    def take_topics(self) -> list[str]:
        """Return the topics that the connector has written to since the last call."""
        if time.monotonic() < self._topics_at:
            return []
        self._topics_at = time.monotonic() + _TOPICS_INTERVAL_S
        if self.source_flow is not None:
            written = self.source_flow.written_by_this_run
        else:
            written = self.work.written if self.work is not None else {}
        found = [topic for topic, count in written.items() if count > self._seen_written.get(topic, 0)]
        self._seen_written = written
        return found

    @property
    def task_configs(self) -> tuple[Mapping[str, str], ...]:
        """The config of each task, as Connect stores them: the connector's and the task's share."""
        return task_configs(self.config.kind, self.config.raw, self.source_flow or self.work)

    def restart_tasks(self, numbers: Iterable[int]) -> bool:
        """Restart tasks; return False if that needs a new run."""
        if self.source_flow is None:
            return False
        for number in numbers:
            self.source_flow.restart_task(number)
        return True

    def look_again(self) -> bool:
        """Look at the clusters again, as at a start, without restarting tasks; return False if that needs a new run."""
        if self.source_flow is None:
            return False
        self.source_flow.look_again()
        return True


def task_configs(
    kind: ConnectorKind, connector: Mapping[str, str], part: SourceFlow | CheckpointSync | HeartbeatSource | None
) -> tuple[dict[str, str], ...]:
    """Return the config of each task, as Connect stores them: the connector's, the task's class and its share.

    A connector that is switched off has none.
    """
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


def _warn_of_unknown_keys(config: ConnectorConfig) -> None:
    for warning in unknown_keys(config.raw):
        _warnings.report(logging.WARNING, f"Connector {config.name}: {warning}")

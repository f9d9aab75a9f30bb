"""One connector of a worker while it runs: a source flow, or a loop of checkpoints or heartbeats.

A run is made anew for each start; a source flow may go on with another config where none of its tasks must notice. It
fails without raising: `error` and the states of its tasks say why.


What Connect keeps as the configs of a connector's tasks: the connector's own, a task's class, and its share.
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
    from heliograph.driver.spark.spark_engine import SparkEngine
    from heliograph.model import ConnectorKind
    from heliograph.wire.records.connect_status import State


def task_configs(
    kind: ConnectorKind, connector: Mapping[str, str], part: SourceFlow | CheckpointSync | HeartbeatSource | None
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


log = logging.getLogger(__name__)
_warnings = LogOnce(log)  # a connector may be started again many times

_TOPICS_INTERVAL_S = 1.0


class RunState(NamedTuple):
    """What a connector and its tasks are doing: state and trace of each."""

    state: State
    trace: str | None
    tasks: tuple[tuple[State, str | None], ...]


def states_in_words(state: str, tasks: Iterable[str]) -> str:
    """`RUNNING; tasks: 2 RUNNING, 1 FAILED`."""
    counts = Counter(tasks)
    listed = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    return f"{state}; tasks: {listed}" if listed else state


class ConnectorRun:
    """Starts, stops and describes what a connector does."""

    def __init__(self, config: ConnectorConfig, engine: SparkEngine) -> None:
        self.config = config
        _warn_of_unknown_keys(config)
        self._issues = StepIssues()
        self._flow: SourceFlow | None = None
        self._lines: ProgressLines | None = None
        self._work: CheckpointSync | HeartbeatSource | None = None
        self._loop: ControlLoop | None = None
        self._seen_written: dict[str, int] = {}
        self._topics_at = 0.0
        settings = config.settings(config.flow)
        is_enabled = settings[keys.ENABLED]
        if config.kind == "source" and is_enabled:
            self._flow = SourceFlow(config, config.flow, engine, flow_count=1)
            self._lines = ProgressLines(config.name, self._flow.status)
        elif config.kind == "checkpoint" and is_enabled and settings[keys.EMIT_CHECKPOINTS_ENABLED]:
            self._work = CheckpointSync(config, config.flow)
        elif config.kind == "heartbeat" and settings[keys.EMIT_HEARTBEATS_ENABLED]:
            self._work = HeartbeatSource(config, config.flow)
        if self._work is not None:
            most_s = RestartLimits.of(settings).most_s
            self._loop = ControlLoop(config.name, self._work, self._issues, most_s)

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

    def adopt(self, config: ConnectorConfig) -> bool:
        """Go on with another config where no task must notice it; False where only a new run can."""
        if self._flow is None or self._flow.error is not None or not is_live_change(self.config.raw, config.raw):
            return False
        self._flow.adopt(config)
        self.config = config
        _warn_of_unknown_keys(config)
        return True

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
            tasks = tuple((task.state, task.trace) for task in self._flow.task_states)
            return RunState(*self._flow.connector_state, tasks)
        if self._loop is not None:
            issues = [words for step in self._issues.issues.values() for words in step]
            return RunState("RUNNING", None, (("FAILED", "\n".join(issues)) if issues else ("RUNNING", None),))
        return RunState("RUNNING", None, ())

    def log_progress(self) -> None:
        """Log what was copied, now and then."""
        if self._lines is not None:
            self._lines.report()

    def take_topics(self) -> list[str]:
        """Topics the connector has written to since the last call."""
        if time.monotonic() < self._topics_at:
            return []
        self._topics_at = time.monotonic() + _TOPICS_INTERVAL_S
        part = self._flow or self._work
        written = part.written if part is not None else {}
        found = [topic for topic, count in written.items() if count > self._seen_written.get(topic, 0)]
        self._seen_written = written
        return found

    @property
    def task_configs(self) -> tuple[Mapping[str, str], ...]:
        """The config of each task, as Connect keeps them: the connector's and the task's share."""
        return task_configs(self.config.kind, self.config.raw, self._flow or self._work)

    def restart_tasks(self, numbers: Iterable[int]) -> bool:
        """Start tasks again; False where that needs a new run."""
        if self._flow is None:
            return False
        for number in numbers:
            self._flow.restart_task(number)
        return True

    def look_again(self) -> bool:
        """Do what a connector does when it starts, without its tasks; False where that needs a new run."""
        if self._flow is None:
            return False
        self._flow.look_again()
        return True


def _warn_of_unknown_keys(config: ConnectorConfig) -> None:
    for words in unknown_keys(config.raw):
        _warnings.report(logging.WARNING, f"Connector {config.name}: {words}")

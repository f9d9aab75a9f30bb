"""The connectors of a dedicated-mode file, for the REST API of `heliograph run`: read-only.

Java's dedicated mode has no REST of its own. Here each flow has MM2's three connectors under Strimzi's names,
`A->B.MirrorSourceConnector`: in MM2 every flow has a Connect worker to itself, so there the second half is enough. A
pair of clusters that only has heartbeats has that connector alone. Configs are those that `heliograph convert` writes,
so a worker accepts them; secrets that stand in the file are hidden.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.effective.connect_config import CLASSES
from heliograph.config.formats.connector_json import connector_config
from heliograph.config.formats.connector_parts import take_apart
from heliograph.config.resolve.redaction import redact
from heliograph.connect.contract import refusals
from heliograph.connect.contract.herder import ConnectorInfo, ConnectorStatus, TaskStatus
from heliograph.connect.runtime.connector_offsets import ConnectorOffsets
from heliograph.connect.runtime.connector_run import task_configs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.connect.contract.herder import ConnectOffset
    from heliograph.connect.contract.log_levels import LogLevels
    from heliograph.driver.flow.source_flow import SourceFlow
    from heliograph.driver.loops.checkpoint_sync import CheckpointSync
    from heliograph.driver.loops.file_loops import Control
    from heliograph.driver.loops.heartbeats import HeartbeatSource
    from heliograph.model import ConnectorKind, Flow
    from heliograph.wire.records.connect_status import State


class _Part(NamedTuple):
    kind: ConnectorKind
    flow: Flow


class FileHerder:
    """Implements `HerderView`. Safe to call from several threads. `worker_id` is the address of REST."""

    leader_url: str | None = None

    def __init__(
        self,
        config: MirrorMakerConfig,
        flows: Sequence[SourceFlow],
        control: Control,
        log_levels: LogLevels,
        cluster_id: Callable[[], str],
    ) -> None:
        self.worker_id = ""
        self._config = config
        self._flows = {flow.flow: flow for flow in flows}
        self._control = control
        self._log_levels = log_levels
        self._cluster_id = cache(cluster_id)
        self._parts = {
            connector_name(flow, kind): _Part(kind, flow)
            for flow in config.cluster_pairs
            for kind in CLASSES
            if kind == "heartbeat" or flow in self._flows
        }
        # A pair that has only heartbeats is not a flow of the file; its connector is written as if it were.
        taken = take_apart(config.raw, set(config.cluster_pairs), config.resolver)
        by_flow = {each.flow: each for each in taken.flows}
        self._shown = {
            name: redact(connector_config(taken, by_flow[part.flow], part.kind, name))
            for name, part in self._parts.items()
        }

    def is_ready(self) -> bool:
        """Return whether every flow has begun."""
        return all(flow.status.state != "STARTING" for flow in self._flows.values())

    def cluster_id(self) -> str:
        """Return the id of the first flow's target."""
        return self._cluster_id()

    def connectors(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._parts)

    def info(self, name: str) -> ConnectorInfo:
        """Return the config of the connector in the file, and its tasks."""
        self._part(name)
        return ConnectorInfo(name, self._shown[name], tuple(range(len(self.task_configs(name)))))

    def status(self, name: str) -> ConnectorStatus:
        """Return the states of the connector and its tasks."""
        if name not in self._parts:
            raise refusals.NO_STATUS.error(name=name)
        kind, flow = self._parts[name]
        if kind != "source":
            return ConnectorStatus(name, "RUNNING", self.worker_id, self._loop_tasks(kind, flow))
        running = self._flows[flow]
        tasks = [TaskStatus(task.number, task.state, self.worker_id, task.trace) for task in running.task_states]
        state, trace = running.connector_state
        return ConnectorStatus(name, state, self.worker_id, tuple(tasks), trace)

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """Return the config of each task."""
        part = self._part(name)
        return list(task_configs(part.kind, self._shown[name], self._runs(part)))

    def topics(self, name: str) -> list[str]:
        """Return the topics written to since the process started; none of an unknown connector."""
        if name not in self._parts:
            return []
        runs = self._runs(self._parts[name])
        return sorted(topic for topic, count in runs.written.items() if count) if runs is not None else []

    def offsets(self, name: str) -> list[ConnectOffset]:
        """Return the committed source offsets. Only source connectors have any."""
        kind, flow = self._part(name)
        if kind != "source":
            return []
        with ConnectorOffsets(self._config, flow, self._config.source_connector(flow), kind) as source_offsets:
            # Flows into one cluster may share an offsets topic.
            return [entry for entry in source_offsets.read() if entry[0].get("cluster") == flow.source]

    def session_keys(self) -> tuple[bytes, ...]:
        """Return none: there are no other workers."""
        return ()

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        """Set the level of a logger in this process, the only one."""
        self._log_levels.set(logger, level)

    def _part(self, name: str) -> _Part:
        if name not in self._parts:
            raise refusals.NOT_FOUND.error(name=name)
        return self._parts[name]

    def _runs(self, part: _Part) -> SourceFlow | CheckpointSync | HeartbeatSource | None:
        """Return what runs for a connector; None if it is switched off."""
        if part.kind == "source":
            return self._flows[part.flow]
        return (self._control.checkpoints if part.kind == "checkpoint" else self._control.heartbeats).get(part.flow)

    def _loop_tasks(self, kind: ConnectorKind, flow: Flow) -> tuple[TaskStatus, ...]:
        if self._runs(_Part(kind, flow)) is None:
            return ()
        issues = "\n".join(self._control.issues(flow, f"{kind}s"))
        state: State = "FAILED" if issues else "RUNNING" if self._control.is_started else "UNASSIGNED"
        return (TaskStatus(0, state, self.worker_id, issues or None),)


def connector_name(flow: Flow, kind: ConnectorKind) -> str:
    """Return the name of a connector of a file: `A->B.MirrorSourceConnector`."""
    return f"{flow}.{CLASSES[kind].rpartition('.')[2]}"

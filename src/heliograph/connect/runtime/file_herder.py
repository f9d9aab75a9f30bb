"""The connectors of a dedicated-mode file, for the REST API of `heliograph run`: for reading, and maybe for actions.

The file defines the connectors, so REST cannot create, delete or configure them. With `--rest-actions` it restarts
them, stops and resumes those that copy, and alters their offsets while they are stopped.

Java's dedicated mode has no REST of its own. Here each flow has MM2's three connectors under Strimzi's names,
`A->B.MirrorSourceConnector`: in MM2 every flow has a Connect worker to itself, so there the second half is enough. A
pair of clusters that only has heartbeats has that connector alone. Configs are those that `heliograph convert` writes,
so a worker accepts them; secrets that stand in the file are hidden. A new version of the file brings other flows: each
request reads those of its moment.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from heliograph.config.effective.connect_config import CLASSES
from heliograph.config.formats.connector_json import connector_config
from heliograph.config.formats.connector_parts import take_apart
from heliograph.config.resolve.redaction import redact
from heliograph.connect.contract import refusals
from heliograph.connect.contract.herder import ConnectorInfo, ConnectorStatus, TaskStatus
from heliograph.connect.runtime.connector_offsets import ConnectorOffsets
from heliograph.connect.runtime.connector_run import task_configs
from heliograph.connect.runtime.process_view import connector_row
from heliograph.driver.clusters.certificates import Certificates, NamedClient, clients_of, listeners_of
from heliograph.errors import ConnectError
from heliograph.status.flow_snapshot import FlowLosses, LoopIssue, UnreadyFlow
from heliograph.status.process_snapshot import ProcessSnapshot

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.config.effective.rest_config import RestListener
    from heliograph.connect.contract.herder import ConnectOffset
    from heliograph.connect.contract.log_levels import LogLevels
    from heliograph.driver.flow.source_flow import SourceFlow
    from heliograph.driver.loops.checkpoint_sync import CheckpointSync
    from heliograph.driver.loops.file_loops import Control
    from heliograph.driver.loops.heartbeats import HeartbeatSource
    from heliograph.driver.spark.spark_engine import SparkEngine
    from heliograph.model import ConnectorKind, Flow, RestartedPartition, RestartRequest
    from heliograph.status.flow_snapshot import FlowSnapshot
    from heliograph.status.process_snapshot import ConnectorRow
    from heliograph.wire.records.connect_configs import TargetState
    from heliograph.wire.records.connect_status import State


_LOOPS: tuple[ConnectorKind, ...] = ("checkpoint", "heartbeat")


class _Part(NamedTuple):
    kind: ConnectorKind
    flow: Flow


class RunningFile(Protocol):
    """The flows and loops of a file, as they are now."""

    @property
    def config(self) -> MirrorMakerConfig:
        """Return the newest version of the file that was accepted."""

    @property
    def flows(self) -> Mapping[Flow, SourceFlow]:
        """Return the flows that run; a change makes another map."""

    @property
    def control(self) -> Control:
        """Return the loops."""

    @property
    def engine(self) -> SparkEngine:
        """Return what runs the tasks."""

    @property
    def starting(self) -> threading.Lock:
        """Return the lock that keeps flows from being started again: offsets must not be altered meanwhile."""


class _View(NamedTuple):
    """The connectors of one version of the file."""

    config: MirrorMakerConfig
    flows: Mapping[Flow, SourceFlow]
    parts: Mapping[str, _Part]
    shown: Mapping[str, dict[str, str]]

    @classmethod
    def of(cls, config: MirrorMakerConfig, flows: Mapping[Flow, SourceFlow]) -> _View:
        parts = {
            connector_name(flow, kind): _Part(kind, flow)
            for flow in config.cluster_pairs
            for kind in CLASSES
            if kind == "heartbeat" or flow in flows
        }
        # A pair that has only heartbeats is not a flow of the file; its connector is written as if it were.
        taken = take_apart(config.raw, set(config.cluster_pairs), config.resolver)
        by_flow = {each.flow: each for each in taken.flows}
        shown = {
            name: redact(connector_config(taken, by_flow[part.flow], part.kind, name)) for name, part in parts.items()
        }
        return cls(config, flows, parts, shown)

    def part(self, name: str) -> _Part:
        if name not in self.parts:
            raise refusals.NOT_FOUND.error(name=name)
        return self.parts[name]


class FileHerder:
    """Implements `HerderView`, and of `Herder` the actions. Safe to call from several threads.

    `worker_id` is the address of REST; `listeners` are all of the process.
    """

    leader_url: str | None = None

    def __init__(
        self,
        runs: RunningFile,
        log_levels: LogLevels,
        cluster_id: Callable[[], str],
        listeners: Sequence[RestListener] = (),
    ) -> None:
        self.worker_id = ""
        self._listeners = tuple(listeners)
        self._certificates = Certificates(self._clients)
        self._runs = runs
        self._control = runs.control
        self.log_levels = log_levels
        self._cluster_id = cache(cluster_id)
        self._last_view = _View.of(runs.config, runs.flows)

    @property
    def _view(self) -> _View:
        config, flows = self._runs.config, self._runs.flows
        view = self._last_view
        if view.config is not config or view.flows is not flows:
            view = self._last_view = _View.of(config, flows)
        return view

    def is_ready(self) -> bool:
        """Return whether every flow has begun."""
        return all(flow.status.state != "STARTING" for flow in self._view.flows.values())

    def cluster_id(self) -> str:
        """Return the id of the first flow's target."""
        return self._cluster_id()

    def connectors(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._view.parts)

    def info(self, name: str) -> ConnectorInfo:
        """Return the config of the connector in the file, and its tasks."""
        view = self._view
        tasks = self._task_configs(view, name)
        return ConnectorInfo(name, view.shown[name], tuple(range(len(tasks))))

    def status(self, name: str) -> ConnectorStatus:
        """Return the states of the connector and its tasks."""
        view = self._view
        if name not in view.parts:
            raise refusals.NO_STATUS.error(name=name)
        kind, flow = view.parts[name]
        if kind != "source":
            return ConnectorStatus(name, "RUNNING", self.worker_id, self._loop_tasks(view, kind, flow))
        running = view.flows[flow]
        tasks = [TaskStatus(task.number, task.state, self.worker_id, task.trace) for task in running.task_states]
        state, trace = running.connector_state
        return ConnectorStatus(name, state, self.worker_id, tuple(tasks), trace)

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """Return the config of each task."""
        return self._task_configs(self._view, name)

    def topics(self, name: str) -> list[str]:
        """Return the topics written to since the process started; none of an unknown connector."""
        view = self._view
        if name not in view.parts:
            return []
        runs = _running(self._control, view, view.parts[name])
        return sorted(topic for topic, count in runs.written.items() if count) if runs is not None else []

    def offsets(self, name: str) -> list[ConnectOffset]:
        """Return the committed source offsets. Only source connectors have any."""
        view = self._view
        kind, flow = view.part(name)
        if kind != "source":
            return []
        with ConnectorOffsets(view.config, flow, view.config.source_connector(flow), kind) as source_offsets:
            # Flows into one cluster may share an offsets topic.
            return [entry for entry in source_offsets.read() if entry[0].get("cluster") == flow.source]

    def flows(self) -> list[FlowSnapshot]:
        """Return the flows of the file, by name, with the issues of their checkpoints and heartbeats."""
        return [
            replace(
                running.snapshot(str(flow), connector_name(flow, "source")), loop_issues=tuple(self._loop_issues(flow))
            )
            for flow, running in sorted(self._view.flows.items(), key=lambda each: str(each[0]))
        ]

    def _loop_issues(self, flow: Flow) -> Iterator[LoopIssue]:
        for kind in _LOOPS:
            for issue in self._control.issues(flow, f"{kind}s"):
                yield LoopIssue(connector_name(flow, kind), issue)

    def unready(self) -> list[UnreadyFlow]:
        """Return why flows are not ready."""
        return UnreadyFlow.all_of(self.flows())

    def losses(self) -> list[FlowLosses]:
        """Return the newest losses of each flow, by name."""
        return [FlowLosses.of(flow) for flow in self.flows()]

    def process(self) -> ProcessSnapshot:
        """Return everything that metrics show."""
        control = self._control
        return ProcessSnapshot(
            at=time.time(),
            flows=tuple(self.flows()),
            checkpoints=tuple(
                work.status.snapshot(str(flow), connector_name(flow, "checkpoint"))
                for flow, work in sorted(control.checkpoints.items())
            ),
            heartbeats=tuple(
                work.snapshot(connector_name(flow, "heartbeat")) for flow, work in sorted(control.heartbeats.items())
            ),
            connectors=tuple(self._rows()),
            engine=self._runs.engine.snapshot(),
            worker=None,
            certificates=self._certificates.latest(),
        )

    def _rows(self) -> Iterator[ConnectorRow]:
        for name, part in sorted(self._view.parts.items()):
            with suppress(ConnectError):  # a new version of the file came meanwhile
                yield connector_row(CLASSES[part.kind], self.status(name))

    def _clients(self) -> Iterator[NamedClient]:
        config = self._runs.config
        yield from clients_of(config, config.cluster_pairs)
        yield from listeners_of(config.raw, config.resolver, self._listeners)

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Stop, pause or resume the tasks of a source connector, until the process ends or the flow leaves the file."""
        with self._runs.starting:
            if name not in self._view.parts:
                raise refusals.UNKNOWN_CONNECTOR.error(name=name)
            self._source_flow(name).set_suspended(None if state == "STARTED" else state)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Look at the connector's clusters again, and restart its tasks or the failed ones; return their new status."""
        if name not in self._view.parts:
            raise refusals.RESTART_UNKNOWN.error(name=name)
        running = self._source_flow(name)
        status = self.status(name)
        if not only_failed or status.state == "FAILED":
            running.look_again()
        restarted = {task.id for task in status.tasks if include_tasks and (task.state == "FAILED" or not only_failed)}
        for number in sorted(restarted):
            running.restart_task(number)
        tasks = [task._replace(state="RESTARTING") if task.id in restarted else task for task in status.tasks]
        return status._replace(tasks=tuple(tasks))

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task of a source connector."""
        if name not in self._view.parts:
            raise refusals.RESTART_UNKNOWN.error(name=name)
        running = self._source_flow(name)
        if task >= len(running.task_states):
            raise refusals.RESTART_UNKNOWN_TASK.error(name=name, task=task)
        running.restart_task(task)

    def alter_offsets(self, name: str, offsets: Sequence[ConnectOffset] | None) -> None:
        """Alter the source offsets of a stopped source connector, or reset all of them (None)."""
        with self._runs.starting:
            view = self._view
            kind, flow = view.part(name)
            running = self._source_flow(name)
            if self.status(name).state != "STOPPED" or not running.is_suspended:
                raise refusals.NOT_STOPPED.error(name=name)
            with ConnectorOffsets(view.config, flow, view.config.source_connector(flow), kind) as source_offsets:
                if offsets is None:  # only its own: flows into one cluster may share an offsets topic
                    known = [partition for partition, _offset in source_offsets.read()]
                    offsets = [(each, None) for each in known if each.get("cluster") == flow.source]
                for partition, _offset in offsets:
                    if partition.get("cluster") != flow.source:
                        raise refusals.OTHER_CLUSTER.error(name=name, cluster=flow.source)
                source_offsets.alter(offsets)

    def _source_flow(self, name: str) -> SourceFlow:
        view = self._view
        kind, flow = view.parts[name]
        if kind != "source":
            raise refusals.NOT_AN_ACTION.error(name=name)
        return _that_takes_requests(view.flows[flow], name)

    def restart_partitions(self, flow: str, request: RestartRequest) -> Sequence[RestartedPartition]:
        """Restart partitions of a flow of the file."""
        for known, running in self._view.flows.items():
            if str(known) == flow:
                return _that_takes_requests(running, flow).restart_partitions(request)
        raise refusals.NO_SUCH_FLOW.error(name=flow)

    def session_keys(self) -> tuple[bytes, ...]:
        """Return none: there are no other workers."""
        return ()

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        """Set the level of a logger in this process, the only one."""
        self.log_levels.set(logger, level)

    def _task_configs(self, view: _View, name: str) -> list[dict[str, str]]:
        part = view.part(name)
        return list(task_configs(part.kind, view.shown[name], _running(self._control, view, part)))

    def _loop_tasks(self, view: _View, kind: ConnectorKind, flow: Flow) -> tuple[TaskStatus, ...]:
        if _running(self._control, view, _Part(kind, flow)) is None:
            return ()
        issues = "\n".join(self._control.issues(flow, f"{kind}s"))
        state: State = "FAILED" if issues else "RUNNING" if self._control.is_started else "UNASSIGNED"
        return (TaskStatus(0, state, self.worker_id, issues or None),)


def _running(control: Control, view: _View, part: _Part) -> SourceFlow | CheckpointSync | HeartbeatSource | None:
    """Return the flow or loop of a connector; None if it is switched off."""
    if part.kind == "source":
        return view.flows[part.flow]
    return (control.checkpoints if part.kind == "checkpoint" else control.heartbeats).get(part.flow)


def _that_takes_requests(running: SourceFlow, name: str) -> SourceFlow:
    if running.life.has_failed:
        raise refusals.FLOW_FAILED.error(name=name, reason=str(running.error).rstrip("."))
    return running


def connector_name(flow: Flow, kind: ConnectorKind) -> str:
    """Return the name of a connector of a file: `A->B.MirrorSourceConnector`."""
    return f"{flow}.{CLASSES[kind].rpartition('.')[2]}"

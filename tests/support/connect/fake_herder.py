"""A herder of plain dictionaries: states change at once and nothing is copied. For tests of the REST API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heliograph.connect.contract import refusals as refuse
from heliograph.connect.contract.herder import ConnectOffset, ConnectorInfo, ConnectorStatus, TaskStatus
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.errors import ConnectError
from heliograph.model import RestartedPartition, RestartRequest, TopicPartition
from heliograph.status.flow_snapshot import FlowLosses, FlowSnapshot, UnreadyFlow
from heliograph.status.group_status import CheckpointsSnapshot
from heliograph.status.process_snapshot import (
    Certificate,
    ConnectorRow,
    EngineSnapshot,
    HeartbeatsSnapshot,
    ProcessSnapshot,
    WorkerSnapshot,
)
from heliograph.wire.records.connect_configs import TargetState
from heliograph.wire.records.connect_offsets import check_offsets
from heliograph.wire.records.connect_status import State

_STATES: dict[TargetState, State] = {"STARTED": "RUNNING", "PAUSED": "PAUSED", "STOPPED": "STOPPED"}
WORKER_ID = "127.0.0.1:8083"


class FakeHerder:
    """The connectors of one worker. A heartbeat connector that has run has a task, others have none."""

    def __init__(
        self,
        check: Callable[[Mapping[str, str]], None] = lambda _config: None,
        log_levels: LogLevels | None = None,
        worker_id: str = WORKER_ID,
    ) -> None:
        self.leader: str | ConnectError | None = None
        self.ready = True
        self.keys: tuple[bytes, ...] = (b"the group's key",)
        self.worker_id = worker_id
        self.flow_snapshots: list[FlowSnapshot] = []
        self.flow_losses: list[FlowLosses] = []
        self.checkpoints: list[CheckpointsSnapshot] = []
        self.heartbeats: list[HeartbeatsSnapshot] = []
        self.certificates: list[Certificate] = []
        self._check = check
        self._log_levels = log_levels or LogLevels()
        self.forget_all()

    def forget_all(self) -> None:
        """As new."""
        self.configs: dict[str, dict[str, str]] = {}
        self.secrets: dict[str, tuple[str, ...] | None] = {}
        self.targets: dict[str, TargetState] = {}
        self.started: set[str] = set()
        self.traces: dict[str, str] = {}
        self.written: dict[str, list[str]] = {}
        self.source_offsets: dict[str, list[ConnectOffset]] = {}
        self.calls: list[tuple[Any, ...]] = []

    @property
    def leader_url(self) -> str | None:
        if isinstance(self.leader, ConnectError):
            raise self.leader
        return self.leader

    def is_ready(self) -> bool:
        return self.ready

    def flows(self) -> list[FlowSnapshot]:
        return self.flow_snapshots

    def unready(self) -> list[UnreadyFlow]:
        return UnreadyFlow.all_of(self.flow_snapshots)

    def losses(self) -> list[FlowLosses]:
        return self.flow_losses

    def process(self) -> ProcessSnapshot:
        return ProcessSnapshot(
            at=1_000.0,
            flows=tuple(self.flow_snapshots),
            checkpoints=tuple(self.checkpoints),
            heartbeats=tuple(self.heartbeats),
            connectors=tuple(ConnectorRow(name, "c", "source", "", "RUNNING", ()) for name in self.connectors()),
            engine=EngineSnapshot(4, 1, 0),
            worker=WorkerSnapshot(self.leader is None, False, 1, 1, 900.0),
            certificates=tuple(self.certificates),
        )

    def session_keys(self) -> tuple[bytes, ...]:
        return self.keys

    def cluster_id(self) -> str:
        return "fake-cluster"

    def connectors(self) -> list[str]:
        return sorted(self.configs)

    def info(self, name: str) -> ConnectorInfo:
        self._known(name)
        return ConnectorInfo(name, self.configs[name], tuple(range(len(self.task_configs(name)))))

    def status(self, name: str) -> ConnectorStatus:
        if name not in self.configs:
            raise refuse.NO_STATUS.error(name=name)
        state = "FAILED" if name in self.traces else _STATES[self.targets[name]]
        tasks = [TaskStatus(task, state, self.worker_id) for task in range(len(self.task_configs(name)))]
        return ConnectorStatus(name, state, self.worker_id, tuple(tasks), self.traces.get(name))

    def task_configs(self, name: str) -> list[dict[str, str]]:
        config = self._known(name)
        if "Heartbeat" not in config["connector.class"] or self.targets[name] == "STOPPED" or name not in self.started:
            return []
        return [{**config, "task.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatTask"}]

    def create(
        self,
        name: str,
        config: Mapping[str, str],
        initial_state: TargetState | None,
        secrets: tuple[str, ...] | None = None,
    ) -> ConnectorInfo:
        self._check(config)
        if name in self.configs:
            raise refuse.EXISTS.error(name=name)
        self.configs[name] = dict(config)
        self.secrets[name] = secrets
        info = ConnectorInfo(name, config)
        self.set_target_state(name, initial_state or "STARTED")
        return info

    def put_config(
        self, name: str, config: Mapping[str, str], secrets: tuple[str, ...] | None = None
    ) -> tuple[bool, ConnectorInfo]:
        if name not in self.configs:
            return True, self.create(name, config, None, secrets)
        self._check(config)
        self.secrets[name] = secrets
        self.configs[name] = dict(config)
        return False, self.info(name)

    def patch_config(
        self, name: str, patch: Mapping[str, str | None], secrets: tuple[str, ...] | None = None
    ) -> ConnectorInfo:
        patched = {**self._known(name), **patch}
        return self.put_config(name, {key: value for key, value in patched.items() if value is not None}, secrets)[1]

    def delete(self, name: str) -> None:
        self._known(name)
        del self.configs[name], self.targets[name]
        self.started.discard(name)
        self.source_offsets.pop(name, None)

    def set_target_state(self, name: str, state: TargetState) -> None:
        if name not in self.configs:
            raise refuse.UNKNOWN_CONNECTOR.error(name=name)
        self.targets[name] = state
        if state == "STARTED":
            self.started.add(name)
            self.written[name] = ["heartbeats"]

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        if name not in self.configs:
            raise refuse.RESTART_UNKNOWN.error(name=name)
        self.calls.append(("restart", name, include_tasks, only_failed))
        status = self.status(name)
        if only_failed:
            return status
        tasks = tuple(task._replace(state="RESTARTING") for task in status.tasks) if include_tasks else status.tasks
        return status._replace(state="RESTARTING", tasks=tasks)

    def restart_task(self, name: str, task: int) -> None:
        if name not in self.configs:
            raise refuse.RESTART_UNKNOWN.error(name=name)
        if task >= len(self.task_configs(name)):
            raise refuse.RESTART_UNKNOWN_TASK.error(name=name, task=task)
        self.calls.append(("restart_task", name, task))

    def restart_partitions(self, flow: str, request: RestartRequest) -> list[RestartedPartition]:
        if flow not in [each.name for each in self.flow_snapshots]:
            raise refuse.NO_SUCH_FLOW.error(name=flow)
        self.calls.append(("restart_partitions", flow, request))
        return [RestartedPartition(TopicPartition(request.topic or "t", request.partition or 0), 7, 2)]

    def topics(self, name: str) -> list[str]:
        return self.written.get(name, [])

    def reset_topics(self, name: str) -> None:
        self.written.pop(name, None)

    def offsets(self, name: str) -> list[ConnectOffset]:
        self._known(name)
        return self.source_offsets.get(name, [])

    def alter_offsets(self, name: str, offsets: Sequence[ConnectOffset] | None) -> None:
        config = self._known(name)
        if self.targets[name] != "STOPPED":
            raise refuse.NOT_STOPPED.error(name=name)
        kept: dict[str, ConnectOffset] = {}
        if offsets is not None:
            check_offsets("heartbeat" if "Heartbeat" in config["connector.class"] else "source", offsets)
            kept = {str(entry[0]): entry for entry in [*self.source_offsets.get(name, []), *offsets]}
        self.source_offsets[name] = [entry for entry in kept.values() if entry[1] is not None]

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        self._log_levels.set(logger, level)

    def _known(self, name: str) -> dict[str, str]:
        if name not in self.configs:
            raise refuse.NOT_FOUND.error(name=name)
        return self.configs[name]

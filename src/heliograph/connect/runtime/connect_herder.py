"""The herder of a Connect worker: implements the protocol that REST uses, by delegation.

`ConnectorView` answers reads from snapshots of the stores. `ConnectorChanges` checks changes and writes them to
Connect's topics; `Reconciler` follows the topics and acts on them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from heliograph.connect.contract import refusals
from heliograph.connect.runtime.connector_changes import ConnectorChanges
from heliograph.connect.runtime.connector_offsets import ConnectorOffsets
from heliograph.connect.runtime.connector_view import ConnectorView
from heliograph.connect.runtime.process_view import WorkerProcess
from heliograph.status.flow_snapshot import FlowLosses, UnreadyFlow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.connect.contract.herder import ConnectOffset, ConnectorInfo, ConnectorStatus
    from heliograph.connect.contract.log_levels import LogLevels
    from heliograph.connect.group.membership import Membership
    from heliograph.connect.runtime.reconciler import Reconciler
    from heliograph.connect.storage.config_store import ConfigStore
    from heliograph.connect.storage.status_store import StatusStore
    from heliograph.model import RestartedPartition, RestartRequest
    from heliograph.status.flow_snapshot import FlowSnapshot
    from heliograph.status.process_snapshot import ProcessSnapshot
    from heliograph.wire.records.connect_configs import TargetState


_SAME_ADDRESS = (
    "the leading worker calls itself {url}, as this one does; give each worker an address that the others reach"
    " (listeners, or rest.advertised.host.name and rest.advertised.port)"
)


class ConnectHerder:
    """Implements `Herder`: as many methods as the protocol has. Safe to call from several threads."""

    def __init__(
        self,
        worker: WorkerConfig,
        stores: tuple[ConfigStore, StatusStore],
        reconciler: Reconciler,
        member: Membership,
        log_levels: LogLevels,
        url: str,
        cluster_id: Callable[[], str],
    ) -> None:
        self._worker = worker
        self._configs = stores[0]
        self._view = ConnectorView(stores, worker.settings)
        self._reconciler = reconciler
        self._changes = ConnectorChanges(worker, stores, self._view, reconciler)
        self._member = member
        self._log_levels = log_levels
        self._url = url
        self._cluster_id = cache(cluster_id)
        self._process = WorkerProcess(worker, self._view, reconciler, member)

    # --- the worker ---------------------------------------------------------------------------------------------------

    @property
    def leader_url(self) -> str | None:
        """None if this worker is the leader, else the REST address of the leader."""
        standing = self._member.standing
        if standing.is_leader:
            return None
        if standing.leader_url is None:
            raise refusals.NO_LEADER.error()
        if standing.leader_url == self._url:
            raise refusals.CANNOT_FORWARD.error(reason=_SAME_ADDRESS.format(url=self._url))
        return standing.leader_url

    def is_ready(self) -> bool:
        """Return whether the worker has read its topics and knows its leader."""
        standing = self._member.standing
        return standing.is_leader or standing.leader_url is not None

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster that has the worker's topics; asks a broker the first time."""
        return self._cluster_id()

    def session_keys(self) -> tuple[bytes, ...]:
        """Return the secrets that the workers of the group share, the newest first."""
        return self._view.session_keys()

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        """Set the level of a logger on every worker of the group."""
        self._configs.put_log_level(logger, level)
        for record in self._configs.take_log_levels():
            self._log_levels.set(record.namespace, record.level)

    # --- reading ------------------------------------------------------------------------------------------------------

    def connectors(self) -> list[str]:
        """Return all names, sorted."""
        return self._view.connectors()

    def info(self, name: str) -> ConnectorInfo:
        """Return the connector's config and tasks."""
        return self._view.info(name)

    def status(self, name: str) -> ConnectorStatus:
        """Return the states of the connector and its tasks."""
        return self._view.status(name)

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """Return the config of each task."""
        return self._view.task_configs(name)

    def topics(self, name: str) -> list[str]:
        """Return the topics that the connector has written to."""
        return self._view.topics(name)

    def offsets(self, name: str) -> list[ConnectOffset]:
        """Return the committed source offsets of the connector, read from its offsets topic."""
        stored = self._view.stored(name)
        with ConnectorOffsets.of(self._worker.connector(name, stored.config, stored.secrets)) as source_offsets:
            return list(source_offsets.read())

    def flows(self) -> list[FlowSnapshot]:
        """Return the flow of every source connector, if this worker leads."""
        return self._reconciler.flows()

    def unready(self) -> list[UnreadyFlow]:
        """Return why flows are not ready, if this worker leads."""
        return UnreadyFlow.all_of(self._reconciler.flows())

    def losses(self) -> list[FlowLosses]:
        """Return the newest losses of each flow, if this worker leads."""
        return [FlowLosses.of(flow) for flow in self._reconciler.flows()]

    def process(self) -> ProcessSnapshot:
        """Return everything that metrics show."""
        return self._process.snapshot()

    # --- changing -----------------------------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        config: Mapping[str, str],
        initial_state: TargetState | None,
        secrets: tuple[str, ...] | None = None,
    ) -> ConnectorInfo:
        """Create a connector."""
        return self._changes.create(name, config, initial_state, secrets)

    def put_config(
        self, name: str, config: Mapping[str, str], secrets: tuple[str, ...] | None = None
    ) -> tuple[bool, ConnectorInfo]:
        """Replace a config, or create the connector; return whether it is new."""
        return self._changes.put_config(name, config, secrets)

    def patch_config(
        self, name: str, patch: Mapping[str, str | None], secrets: tuple[str, ...] | None = None
    ) -> ConnectorInfo:
        """Replace some keys; those with None are removed."""
        return self._changes.patch_config(name, patch, secrets)

    def delete(self, name: str) -> None:
        """Stop a connector and delete it; its offsets stay."""
        self._changes.delete(name)

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Pause, resume or stop a connector."""
        self._changes.set_target_state(name, state)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Restart a connector, with its tasks or without, or what has failed of both; return its new status."""
        return self._changes.restart(name, include_tasks=include_tasks, only_failed=only_failed)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        self._changes.restart_task(name, task)

    def restart_partitions(self, flow: str, request: RestartRequest) -> Sequence[RestartedPartition]:
        """Restart partitions of a flow that runs here."""
        return self._reconciler.restart_partitions(flow, request)

    def reset_topics(self, name: str) -> None:
        """Reset the topics that a connector has written to."""
        self._changes.reset_topics(name)

    def alter_offsets(self, name: str, offsets: Sequence[ConnectOffset] | None) -> None:
        """Alter the source offsets of a stopped connector, or reset all of them (None)."""
        self._changes.alter_offsets(name, offsets)

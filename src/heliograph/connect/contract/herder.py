"""The protocol of a herder, which owns the connectors of a worker, and its values. Names and states are Connect's own.

REST knows only this package, so every endpoint is tested over a herder of a few lines, and the real one can change
without touching a handler.

Invariants: a herder raises `ConnectError` with Connect's status and message for everything that it refuses, and nothing
else on purpose; it may be called from several threads at once; `info` and `task_configs` contain what the user wrote,
placeholders unresolved, so no response can disclose a secret that a placeholder names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.model import RestartedPartition, RestartRequest
    from heliograph.status.flow_snapshot import FlowLosses, FlowSnapshot, UnreadyFlow
    from heliograph.status.process_snapshot import ProcessSnapshot
    from heliograph.wire.records.connect_configs import TargetState
    from heliograph.wire.records.connect_status import State


CONNECT_VERSION = "4.3.1"
"""The release of Kafka Connect whose API and formats the worker has."""

ConnectOffset = tuple[dict[str, Any], dict[str, Any] | None]
"""A source partition and the source offset reached in it; None, in a change, removes the offset."""


class TaskStatus(NamedTuple):
    """One task, as its worker last reported it."""

    id: int
    state: State
    worker_id: str
    trace: str | None = None
    version: str | None = CONNECT_VERSION


class ConnectorStatus(NamedTuple):
    """One connector and its tasks, as their worker last reported them."""

    name: str
    state: State
    worker_id: str
    tasks: tuple[TaskStatus, ...] = ()
    trace: str | None = None
    version: str | None = CONNECT_VERSION
    type: str = "source"


class ConnectorInfo(NamedTuple):
    """One connector as it was configured, and the numbers of its tasks."""

    name: str
    config: Mapping[str, str]
    tasks: tuple[int, ...] = ()
    type: str = "source"


class HerderView(Protocol):
    """Reads the connectors of a process; raises `ConnectError` for an unknown one."""

    @property
    def leader_url(self) -> str | None:
        """None if this worker is the leader, else the REST address of the leader; ConnectError 409 if none is known."""

    def is_ready(self) -> bool:
        """Return whether the worker has read its topics and joined its group."""

    def unready(self) -> Sequence[UnreadyFlow]:
        """Return why flows are not ready, by name; none if this process does not lead. Never raises."""

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster that has the worker's topics."""

    def connectors(self) -> list[str]:
        """Return all names, sorted."""

    def info(self, name: str) -> ConnectorInfo:
        """Return the connector's config and tasks; 404 if there is none."""

    def status(self, name: str) -> ConnectorStatus:
        """Return the states of the connector and its tasks; 404 if none was reported yet."""

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """Return the config of each task, by its number."""

    def topics(self, name: str) -> list[str]:
        """Return the topics it has written to since it was created or the list was reset; 403 if not tracked."""

    def offsets(self, name: str) -> list[ConnectOffset]:
        """Return the committed source offsets of the connector."""

    def flows(self) -> Sequence[FlowSnapshot]:
        """Return the flow of every source connector, by name; none if this process does not lead."""

    def losses(self) -> Sequence[FlowLosses]:
        """Return the newest losses of each flow, by name; none if this process does not lead."""

    def process(self) -> ProcessSnapshot:
        """Return everything that metrics show, without waiting for a cluster; never raises.

        A worker that does not lead has no flows and no connectors.
        """

    def session_keys(self) -> tuple[bytes, ...]:
        """Return the secrets that the workers of the group share, the newest first; 409 while there is none."""

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        """Set the level of a logger on every worker of the group, this one included, through the config topic."""


class Herder(HerderView, Protocol):
    """Owns the connectors of a worker; raises `ConnectError` for a request that it refuses.

    `secrets` are the patterns of the access rules for the writer of a config; None without rules.
    """

    def create(
        self,
        name: str,
        config: Mapping[str, str],
        initial_state: TargetState | None,
        secrets: tuple[str, ...] | None = None,
    ) -> ConnectorInfo:
        """Create a connector; 409 if the name is taken, 400 if the config is invalid."""

    def put_config(
        self, name: str, config: Mapping[str, str], secrets: tuple[str, ...] | None = None
    ) -> tuple[bool, ConnectorInfo]:
        """Replace the config, or create the connector; return whether it is new."""

    def patch_config(
        self, name: str, patch: Mapping[str, str | None], secrets: tuple[str, ...] | None = None
    ) -> ConnectorInfo:
        """Replace some keys; those with None are removed."""

    def delete(self, name: str) -> None:
        """Stop and delete the connector; its offsets stay."""

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Pause, resume or stop."""

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Restart the connector, its tasks or the failed ones of them; return their new status."""

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""

    def restart_partitions(self, flow: str, request: RestartRequest) -> Sequence[RestartedPartition]:
        """Restart partitions of a flow; 404 if it has none of them, 400 if they cannot continue there."""

    def reset_topics(self, name: str) -> None:
        """Reset the topics that the connector has written to; 403 if not tracked or not allowed."""

    def alter_offsets(self, name: str, offsets: Sequence[ConnectOffset] | None) -> None:
        """Alter source offsets, or reset all of them (None); 400 unless the connector is STOPPED."""

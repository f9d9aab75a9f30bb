"""What a Connect worker is made of, as plain values, and the protocol of the one that runs it: the herder.

The REST API (`api/`) knows only this file, so every endpoint is tested over a herder of a few lines, and the real one
can change without touching a handler. Names and states are Kafka Connect's own.

Invariants: a herder raises `ConnectError` with Connect's status and sentence for whatever it must refuse, and nothing
else on purpose; it may be called from several threads at once; `info` and `task_configs` hold what the user wrote,
placeholders unresolved, so no answer can tell a secret that only a placeholder names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.wire.records.connect_configs import TargetState
    from heliograph.wire.records.connect_status import State


CONNECT_VERSION = "4.3.1"
"""The release of Kafka Connect whose API and formats the worker speaks."""

ConnectOffset = tuple[dict[str, Any], dict[str, Any] | None]
"""A source partition and the source offset reached in it; None, in a change, removes the offset."""


class TaskStatus(NamedTuple):
    """One task, as its worker last told."""

    id: int
    state: State
    worker_id: str
    trace: str | None = None
    version: str | None = CONNECT_VERSION


class ConnectorStatus(NamedTuple):
    """One connector and its tasks, as their worker last told."""

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
    """Knows the connectors of a process; raises `ConnectError` for what it does not know."""

    @property
    def leader_url(self) -> str | None:
        """None if this worker leads, else the REST address of the one that does; ConnectError 409 if none is known."""

    def is_ready(self) -> bool:
        """Whether the worker has read its topics and joined its group."""

    def cluster_id(self) -> str:
        """The id of the Kafka cluster that holds the worker's topics."""

    def connectors(self) -> list[str]:
        """All names, sorted."""

    def info(self, name: str) -> ConnectorInfo:
        """The connector's config and tasks; 404 if there is none."""

    def status(self, name: str) -> ConnectorStatus:
        """What the connector and its tasks are doing; 404 if nothing was told of it yet."""

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """The config of each task, by its number."""

    def topics(self, name: str) -> list[str]:
        """Topics the connector has written to since it was created or the list was reset; 403 if not tracked."""

    def offsets(self, name: str) -> list[ConnectOffset]:
        """The committed progress of the connector."""

    def session_keys(self) -> tuple[bytes, ...]:
        """Secrets that the workers of the group share, the newest first; 409 while there is none."""

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        """Give a logger a level on every worker of the group, this one included, by way of the config topic."""


class Herder(HerderView, Protocol):
    """Owns the connectors of a worker; raises `ConnectError` for what it must refuse.

    `secrets` are the patterns of the rules that hold for the writer of a config; None where no rules hold.
    """

    def create(
        self,
        name: str,
        config: Mapping[str, str],
        initial_state: TargetState | None,
        secrets: tuple[str, ...] | None = None,
    ) -> ConnectorInfo:
        """A new connector; 409 if the name is taken, 400 if the config is invalid."""

    def put_config(
        self, name: str, config: Mapping[str, str], secrets: tuple[str, ...] | None = None
    ) -> tuple[bool, ConnectorInfo]:
        """The config replaced; whether the connector is new."""

    def patch_config(
        self, name: str, patch: Mapping[str, str | None], secrets: tuple[str, ...] | None = None
    ) -> ConnectorInfo:
        """Some keys replaced, those with None removed."""

    def delete(self, name: str) -> None:
        """Stop the connector and forget it; its offsets stay."""

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Pause, resume or stop."""

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Restart the connector, its tasks or the failed ones of them; the status in which they now are."""

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""

    def reset_topics(self, name: str) -> None:
        """Forget the topics the connector has written to; 403 if not tracked or not allowed."""

    def alter_offsets(self, name: str, offsets: Sequence[ConnectOffset] | None) -> None:
        """Overwrite progress, or forget all of it (None); 400 unless the connector is STOPPED."""

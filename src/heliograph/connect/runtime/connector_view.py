"""The connectors of a worker as REST reads them: from snapshots of both stores, without waiting for a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.keys import worker_keys
from heliograph.connect.contract import refusals
from heliograph.connect.contract.herder import ConnectorInfo, ConnectorStatus, TaskStatus

if TYPE_CHECKING:
    from heliograph.config.resolve.settings import Settings
    from heliograph.connect.storage.config_store import ConfigStore, StoredConnector
    from heliograph.connect.storage.status_store import StatusStore
    from heliograph.wire.records.connect_status import Status


class ConnectorView:
    """Reads what both stores last read; raises `ConnectError` for an unknown connector."""

    def __init__(self, stores: tuple[ConfigStore, StatusStore], settings: Settings) -> None:
        self._configs, self._statuses = stores
        self._settings = settings

    def connectors(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._configs.connectors)

    def stored(self, name: str) -> StoredConnector:
        """Return the connector as it is stored; 404 if there is none."""
        stored = self._configs.connectors.get(name)
        if stored is None:
            raise refusals.NOT_FOUND.error(name=name)
        return stored

    def info(self, name: str) -> ConnectorInfo:
        """Return the connector's config and tasks."""
        stored = self.stored(name)
        return ConnectorInfo(name, {**stored.config, "name": name}, tuple(range(len(stored.task_configs))))

    def status(self, name: str) -> ConnectorStatus:
        """Return the states of the connector and its tasks."""
        status = self._statuses.connector(name)
        if status is None or name not in self._configs.connectors:  # a deleted one may still have a status
            raise refusals.NO_STATUS.error(name=name)
        tasks = tuple(_task_status(number, task) for number, task in self._statuses.tasks(name).items())
        return ConnectorStatus(name, status.state, status.worker_id, tasks, status.trace, status.version)  # type: ignore[arg-type]

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """Return the config of each task."""
        return [dict(config) for config in self.stored(name).task_configs]

    def topics(self, name: str) -> list[str]:
        """Return the topics that the connector has written to."""
        if not self._settings[worker_keys.TOPIC_TRACKING_ENABLE]:
            raise refusals.TOPICS_NOT_TRACKED.error()
        return self._statuses.topics(name)

    def session_keys(self) -> tuple[bytes, ...]:
        """Return the secrets that the workers of the group share, the newest first."""
        found = tuple(record.key for record in self._configs.session_keys)
        if not found:
            raise refusals.NO_LEADER.error()
        return found


def _task_status(number: int, status: Status) -> TaskStatus:
    return TaskStatus(number, status.state, status.worker_id, status.trace, status.version)  # type: ignore[arg-type]

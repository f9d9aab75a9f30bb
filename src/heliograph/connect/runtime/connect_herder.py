"""The herder behind the REST API: requests become records in Connect's topics; `herder.Reconciler` acts on them."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from heliograph.config.effective.connect_config import CLASSES, kind_of
from heliograph.config.keys import worker_keys
from heliograph.config.resolve.redaction import has_literal_secret, shown_name
from heliograph.config.validate.connector_plugins import ConnectorPlugins
from heliograph.connect.contract import refusals
from heliograph.connect.contract.herder import ConnectorInfo, ConnectorStatus, TaskStatus
from heliograph.connect.runtime.connector_offsets import ConnectorOffsets
from heliograph.driver.clusters.cluster_specs import not_allowed
from heliograph.mirror.policy.class_checks import class_error
from heliograph.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.connect.contract.herder import ConnectOffset
    from heliograph.connect.contract.log_levels import LogLevels
    from heliograph.connect.group.membership import Standing
    from heliograph.connect.runtime.reconciler import Reconciler
    from heliograph.connect.storage.config_store import ConfigStore, StoredConnector
    from heliograph.connect.storage.status_store import StatusStore
    from heliograph.wire.records.connect_configs import TargetState
    from heliograph.wire.records.connect_status import Status


log = logging.getLogger(__name__)

_MOST_KEYS = 20  # in one line of the log
_STATE_WORDS: dict[str, str] = {"STARTED": "resumed", "PAUSED": "paused", "STOPPED": "stopped"}
_SAME_ADDRESS = (
    "the leading worker calls itself {url}, as this one does; give each worker an address that the others reach"
    " (listeners, or rest.advertised.host.name and rest.advertised.port)"
)


class ConnectHerder:
    """Implements `connect_types.Herder`. Safe to call from several threads."""

    def __init__(
        self,
        worker: WorkerConfig,
        stores: tuple[ConfigStore, StatusStore],
        reconciler: Reconciler,
        standing: Callable[[], Standing],
        log_levels: LogLevels,
        url: str,
        cluster_id: Callable[[], str],
    ) -> None:
        self._worker = worker
        self._settings = worker.settings
        self._plugins = ConnectorPlugins(worker.raw, worker.resolver, class_error)
        self._configs, self._statuses = stores
        self._reconciler = reconciler
        self._standing = standing
        self._log_levels = log_levels
        self._url = url
        self._cluster_id = cache(cluster_id)
        self._lock = threading.RLock()

    # --- the worker ---------------------------------------------------------------------------------------------------

    @property
    def leader_url(self) -> str | None:
        """None if this worker leads, else the REST address of the one that does."""
        standing = self._standing()
        if standing.is_leader:
            return None
        if standing.leader_url is None:
            raise refusals.NO_LEADER.error()
        if standing.leader_url == self._url:
            raise refusals.CANNOT_FORWARD.error(reason=_SAME_ADDRESS.format(url=self._url))
        return standing.leader_url

    def is_ready(self) -> bool:
        """Whether the worker has read its topics and knows its leader."""
        standing = self._standing()
        return standing.is_leader or standing.leader_url is not None

    def cluster_id(self) -> str:
        """The id of the Kafka cluster that holds the worker's topics."""
        return self._cluster_id()

    def session_keys(self) -> tuple[bytes, ...]:
        """Secrets that the workers of the group share, the newest first."""
        found = tuple(record.key for record in self._configs.session_keys)
        if not found:
            raise refusals.NO_LEADER.error()
        return found

    # --- reading ------------------------------------------------------------------------------------------------------

    def connectors(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._configs.connectors)

    def info(self, name: str) -> ConnectorInfo:
        """The connector's config and tasks."""
        stored = self._stored(name)
        return ConnectorInfo(name, {**stored.config, "name": name}, tuple(range(len(stored.task_configs))))

    def status(self, name: str) -> ConnectorStatus:
        """What the connector and its tasks are doing."""
        status = self._statuses.connector(name)
        if status is None or name not in self._configs.connectors:  # of a deleted one the topic may still tell
            raise refusals.NO_STATUS.error(name=name)
        tasks = tuple(_task_status(number, task) for number, task in self._statuses.tasks(name).items())
        return ConnectorStatus(name, status.state, status.worker_id, tasks, status.trace, status.version)  # type: ignore[arg-type]

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """The config of each task."""
        return [dict(config) for config in self._stored(name).task_configs]

    def topics(self, name: str) -> list[str]:
        """Topics the connector has written to."""
        if not self._settings[worker_keys.TOPIC_TRACKING_ENABLE]:
            raise refusals.TOPICS_NOT_TRACKED.error()
        return self._statuses.topics(name)

    def offsets(self, name: str) -> list[ConnectOffset]:
        """The committed progress of the connector."""
        with self._source_offsets(name, self._stored(name)) as source_offsets:
            return list(source_offsets.read())

    # --- changing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A change is read, checked and written as one, as by Connect's one thread, and only by who leads."""
        with self._lock:
            self._configs.claim()
            yield

    def create(
        self,
        name: str,
        config: Mapping[str, str],
        initial_state: TargetState | None,
        secrets: tuple[str, ...] | None = None,
    ) -> ConnectorInfo:
        """A new connector."""
        self._check(name, config, secrets)
        with self._changing():
            if name in self._configs.connectors:
                raise refusals.EXISTS.error(name=name)
            return self._put_new(name, config, initial_state, secrets)

    def put_config(
        self, name: str, config: Mapping[str, str], secrets: tuple[str, ...] | None = None
    ) -> tuple[bool, ConnectorInfo]:
        """The config replaced."""
        self._check(name, config, secrets)
        with self._changing():
            if name not in self._configs.connectors:
                return True, self._put_new(name, config, None, secrets)
            before = self._configs.connectors[name].config
            self._configs.put_connector(name, dict(config), secrets=secrets)
            log.info("Connector %s: reconfigured; %s", name, _changes({**before, "name": name}, config))
            self._reconciler.wake()
            return False, self.info(name)

    def _put_new(
        self,
        name: str,
        config: Mapping[str, str],
        initial_state: TargetState | None,
        secrets: tuple[str, ...] | None,
    ) -> ConnectorInfo:
        """A connector that has just been made has no tasks yet, even if they are quick."""
        self._configs.put_connector(name, dict(config), initial_state, secrets)
        log.info("Connector %s: created%s", name, f" {initial_state}" if initial_state else "")
        self._reconciler.wake()
        return ConnectorInfo(name, config)

    def patch_config(
        self, name: str, patch: Mapping[str, str | None], secrets: tuple[str, ...] | None = None
    ) -> ConnectorInfo:
        """Some keys replaced, those with None removed."""
        with self._changing():
            config: dict[str, str] = {**self._stored(name).config, "name": name}
            for key, value in patch.items():
                if value is None:
                    config.pop(key, None)
                else:
                    config[key] = value
            return self.put_config(name, config, secrets)[1]

    def delete(self, name: str) -> None:
        """Stop the connector and forget it."""
        with self._changing():
            self._stored(name)
            self._configs.delete_connector(name)
            log.info("Connector %s: deleted", name)
            self._reconciler.forget(name)
            self._statuses.delete_connector(name)

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Pause, resume or stop."""
        with self._changing():
            if name not in self._configs.connectors:
                raise refusals.UNKNOWN_CONNECTOR.error(name=name)
            self._configs.put_target_state(name, state)
            log.info("Connector %s: %s", name, _STATE_WORDS[state])
        self._reconciler.wake()

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Restart the connector, with its tasks or without, or what has failed."""
        if name not in self._configs.connectors:
            raise refusals.RESTART_UNKNOWN.error(name=name)
        self._configs.claim()
        what = f"{'with' if include_tasks else 'without'} its tasks{', only what has failed' if only_failed else ''}"
        log.info("Connector %s: restarted %s", name, what)
        reported = self._reconciler.restart(name, include_tasks=include_tasks, only_failed=only_failed)
        if reported is None:
            return self.status(name)
        worker_id = self._reconciler.worker_id
        tasks = [TaskStatus(task, state, worker_id, trace) for task, (state, trace) in enumerate(reported.tasks)]
        return ConnectorStatus(name, reported.state, worker_id, tuple(tasks), reported.trace)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        if name not in self._configs.connectors:
            raise refusals.RESTART_UNKNOWN.error(name=name)
        if task not in self._statuses.tasks(name):
            raise refusals.RESTART_UNKNOWN_TASK.error(name=name, task=task)
        self._configs.claim()
        log.info("Connector %s: task %d restarted", name, task)
        self._reconciler.restart_task(name, task)

    def reset_topics(self, name: str) -> None:
        """Forget the topics the connector has written to."""
        if not self._settings[worker_keys.TOPIC_TRACKING_ENABLE]:
            raise refusals.TOPICS_NOT_TRACKED.error()
        if not self._settings[worker_keys.TOPIC_TRACKING_ALLOW_RESET]:
            raise refusals.TOPICS_NOT_RESETTABLE.error()
        self._statuses.delete_topics(name)

    def alter_offsets(self, name: str, offsets: Sequence[ConnectOffset] | None) -> None:
        """Overwrite progress, or forget all of it."""
        with self._changing():
            stored = self._stored(name)
            if stored.target_state != "STOPPED" or self._reconciler.is_running(name):
                raise refusals.NOT_STOPPED.error(name=name)
            with self._source_offsets(name, stored) as source_offsets:
                if offsets is None:
                    source_offsets.reset(self._configs.check_lead)
                else:
                    source_offsets.alter(offsets, self._configs.check_lead)
        how = "all offsets reset" if offsets is None else f"{counted(len(offsets), 'offset')} altered"
        log.info("Connector %s: %s", name, how)

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        """Give a logger a level on every worker of the group."""
        self._configs.put_log_level(logger, level)
        for record in self._configs.take_log_levels():
            self._log_levels.set(record.namespace, record.level)

    def _source_offsets(self, name: str, stored: StoredConnector) -> ConnectorOffsets:
        return ConnectorOffsets.of(self._worker.connector(name, stored.config, stored.secrets))

    # --- checks -------------------------------------------------------------------------------------------------------

    def _stored(self, name: str) -> StoredConnector:
        stored = self._configs.connectors.get(name)
        if stored is None:
            raise refusals.NOT_FOUND.error(name=name)
        return stored

    def _check(self, name: str, config: Mapping[str, str], secrets: tuple[str, ...] | None) -> None:
        written = config.get("name", name)
        if written != name:
            raise refusals.NAME_MISMATCH.error(config_name=written, name=name)
        class_name = config.get("connector.class")
        if not class_name:
            raise refusals.no_class(config)
        if kind_of(class_name) is None:
            raise refusals.unknown_class(class_name, CLASSES.values())
        errors = self._plugins.errors(class_name, config) or not_allowed(self._worker.connector(name, config, secrets))
        if errors:
            raise refusals.invalid(errors)
        literal = [key for key, value in config.items() if has_literal_secret(key, value)]
        if literal:
            log.warning(
                "Connector %s: everyone who may read the topic %s can read %s; name a secret with ${file:...} instead",
                name,
                self._settings[worker_keys.CONFIG_STORAGE_TOPIC],
                " and ".join(literal),
            )


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The names of the keys that differ, without their values: those may be secrets."""
    changed = sorted(key for key in before.keys() | after.keys() if key != "name" and before.get(key) != after.get(key))
    if not changed:
        return "no key differs"
    more = f" and {counted(len(changed) - _MOST_KEYS, 'other')}" if len(changed) > _MOST_KEYS else ""
    return f"changed: {', '.join(map(shown_name, changed[:_MOST_KEYS]))}{more}"


def _task_status(number: int, status: Status) -> TaskStatus:
    return TaskStatus(number, status.state, status.worker_id, status.trace, status.version)  # type: ignore[arg-type]

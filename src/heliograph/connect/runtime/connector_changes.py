"""Changes of connectors that REST requests: checked, written to Connect's topics, and logged.

Invariants:
A. A change is read, checked and written as one, under one lock, as by Connect's single herder thread.
B. Only the leader writes: each change claims the lead first, and is refused (409) if the worker has lost it.
C. The log has one line for each change, with the names of keys and never their values.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from heliograph.config.effective.connect_config import CLASSES, kind_of
from heliograph.config.keys import worker_keys
from heliograph.config.resolve.redaction import has_literal_secret, shown_name
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.connect.contract import refusals
from heliograph.connect.contract.herder import ConnectorInfo, ConnectorStatus, TaskStatus
from heliograph.connect.runtime.connector_offsets import ConnectorOffsets
from heliograph.driver.clusters.cluster_specs import not_allowed
from heliograph.mirror.policy.class_checks import class_error
from heliograph.model import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.connect.contract.herder import ConnectOffset
    from heliograph.connect.runtime.connector_view import ConnectorView
    from heliograph.connect.runtime.reconciler import Reconciler
    from heliograph.connect.storage.config_store import ConfigStore
    from heliograph.connect.storage.status_store import StatusStore
    from heliograph.wire.records.connect_configs import TargetState


log = logging.getLogger(__name__)

_MOST_KEYS = 20  # in one line of the log
_STATE_VERBS: dict[TargetState, str] = {"STARTED": "resumed", "PAUSED": "paused", "STOPPED": "stopped"}


class ConnectorChanges:
    """Changes connectors on the leading worker. Safe to call from several threads."""

    def __init__(
        self,
        worker: WorkerConfig,
        stores: tuple[ConfigStore, StatusStore],
        view: ConnectorView,
        reconciler: Reconciler,
    ) -> None:
        self._worker = worker
        self._settings = worker.settings
        self._plugins = ConnectorPlugins(worker.raw, worker.resolver, class_error)
        self._configs, self._statuses = stores
        self._view = view
        self._reconciler = reconciler
        self._lock = threading.RLock()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, as the leader."""
        with self._lock:
            self._configs.claim()
            yield

    # --- configs ------------------------------------------------------------------------------------------------------

    def create(
        self, name: str, config: Mapping[str, str], initial_state: TargetState | None, secrets: tuple[str, ...] | None
    ) -> ConnectorInfo:
        """Create a connector."""
        self._check(name, config, secrets)
        with self._changing():
            if name in self._configs.connectors:
                raise refusals.EXISTS.error(name=name)
            return self._put_new(name, config, initial_state, secrets)

    def put_config(
        self, name: str, config: Mapping[str, str], secrets: tuple[str, ...] | None
    ) -> tuple[bool, ConnectorInfo]:
        """Replace a config, or create the connector; return whether it is new."""
        self._check(name, config, secrets)
        with self._changing():
            if name not in self._configs.connectors:
                return True, self._put_new(name, config, None, secrets)
            before = self._configs.connectors[name].config
            self._configs.put_connector(name, dict(config), secrets=secrets)
            log.info("Connector %s: reconfigured; %s", name, _differences({**before, "name": name}, config))
            self._reconciler.wake()
            return False, self._view.info(name)

    def _put_new(
        self,
        name: str,
        config: Mapping[str, str],
        initial_state: TargetState | None,
        secrets: tuple[str, ...] | None,
    ) -> ConnectorInfo:
        self._configs.put_connector(name, dict(config), initial_state, secrets)
        log.info("Connector %s: created%s", name, f" {initial_state}" if initial_state else "")
        self._reconciler.wake()
        return ConnectorInfo(name, config)  # without tasks, as in Connect, however quickly they start

    def patch_config(
        self, name: str, patch: Mapping[str, str | None], secrets: tuple[str, ...] | None
    ) -> ConnectorInfo:
        """Replace some keys; those with None are removed."""
        with self._changing():
            config: dict[str, str] = {**self._view.stored(name).config, "name": name}
            for key, value in patch.items():
                if value is None:
                    config.pop(key, None)
                else:
                    config[key] = value
            return self.put_config(name, config, secrets)[1]

    def delete(self, name: str) -> None:
        """Stop a connector and delete its records."""
        with self._changing():
            self._view.stored(name)
            self._configs.delete_connector(name)
            log.info("Connector %s: deleted", name)
            self._reconciler.reset(name)
            self._statuses.delete_connector(name)

    def _check(self, name: str, config: Mapping[str, str], secrets: tuple[str, ...] | None) -> None:
        """Raise the refusal of a config that cannot run; warn about secrets that stand in it."""
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

    # --- states -------------------------------------------------------------------------------------------------------

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Pause, resume or stop a connector."""
        with self._changing():
            if name not in self._configs.connectors:
                raise refusals.UNKNOWN_CONNECTOR.error(name=name)
            self._configs.put_target_state(name, state)
            log.info("Connector %s: %s", name, _STATE_VERBS[state])
        self._reconciler.wake()

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Restart a connector, with its tasks or without, or what has failed of both; return its new status."""
        if name not in self._configs.connectors:
            raise refusals.RESTART_UNKNOWN.error(name=name)
        self._configs.claim()
        what = f"{'with' if include_tasks else 'without'} its tasks{', only what has failed' if only_failed else ''}"
        log.info("Connector %s: restarted %s", name, what)
        reported = self._reconciler.restart(name, include_tasks=include_tasks, only_failed=only_failed)
        if reported is None:
            return self._view.status(name)
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

    # --- topics and offsets -------------------------------------------------------------------------------------------

    def reset_topics(self, name: str) -> None:
        """Reset the topics that a connector has written to."""
        if not self._settings[worker_keys.TOPIC_TRACKING_ENABLE]:
            raise refusals.TOPICS_NOT_TRACKED.error()
        if not self._settings[worker_keys.TOPIC_TRACKING_ALLOW_RESET]:
            raise refusals.TOPICS_NOT_RESETTABLE.error()
        self._statuses.delete_topics(name)

    def alter_offsets(self, name: str, offsets: Sequence[ConnectOffset] | None) -> None:
        """Alter the source offsets of a stopped connector, or reset all of them (None)."""
        with self._changing():
            stored = self._view.stored(name)
            if stored.target_state != "STOPPED" or self._reconciler.is_running(name):
                raise refusals.NOT_STOPPED.error(name=name)
            with ConnectorOffsets.of(self._worker.connector(name, stored.config, stored.secrets)) as source_offsets:
                if offsets is None:
                    source_offsets.reset(self._configs.check_lead)
                else:
                    source_offsets.alter(offsets, self._configs.check_lead)
        how = "all offsets reset" if offsets is None else f"{counted(len(offsets), 'offset')} altered"
        log.info("Connector %s: %s", name, how)


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the names of the keys that differ, without their values: those may be secrets."""
    changed = sorted(key for key in before.keys() | after.keys() if key != "name" and before.get(key) != after.get(key))
    if not changed:
        return "no key differs"
    more = f" and {counted(len(changed) - _MOST_KEYS, 'other')}" if len(changed) > _MOST_KEYS else ""
    return f"changed: {', '.join(map(shown_name, changed[:_MOST_KEYS]))}{more}"

"""A Connect worker without its REST: puts the stores, the membership in the group, and the herder together."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import client_keys, worker_keys
from heliograph.config.resolve.key_places import connection_keys
from heliograph.connect.contract.refusals import NO_LEADER
from heliograph.connect.group.group_protocol import GroupSettings
from heliograph.connect.group.leadership import LEASE_SHARE
from heliograph.connect.group.membership import Membership, Standing
from heliograph.connect.runtime.connect_herder import ConnectHerder
from heliograph.connect.runtime.reconciler import Reconciler
from heliograph.connect.storage.config_store import ConfigStore
from heliograph.connect.storage.leader_writes import LeaderWrites
from heliograph.connect.storage.status_store import StatusStore
from heliograph.driver.clusters.internal_topic_creation import create_worker_topics
from heliograph.kafka.admin.admin import Admin, cluster_id
from heliograph.kafka.produce.fenced_writer import FencedWriter
from heliograph.kafka.security.connection_spec import parse_bootstrap
from heliograph.kafka.security.security_settings import make_security
from heliograph.mirror.topics.internal_topics import leader_transactional_id
from heliograph.status.process_snapshot import EngineSnapshot, ProcessSnapshot, WorkerSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.connect.contract.herder import Herder
    from heliograph.connect.contract.log_levels import LogLevels
    from heliograph.driver.spark.spark_engine import SparkEngine
    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import Address


log = logging.getLogger(__name__)

_ALIAS = "worker"
_JOIN_TIMEOUT_S = 60.0
_GROUP_KEYS = ("session.timeout", "heartbeat.interval", "rebalance.timeout")


class ConnectWorker:
    """One worker of a group. `url` is the address of its REST, for the other workers."""

    def __init__(self, config: WorkerConfig, engine: SparkEngine, url: str, log_levels: LogLevels) -> None:
        self._config = config
        self._settings = config.settings
        self._is_stopping = False
        self._admins = [self._admin(self._settings[keys.ADMIN_TIMEOUT_MS] / 1000) for _store in range(2)]
        topics = (self._settings[worker_keys.CONFIG_STORAGE_TOPIC], self._settings[worker_keys.STATUS_STORAGE_TOPIC])
        self._membership = Membership(self._admin, self._group_settings(), url, self._on_standing)
        self._writes = LeaderWrites(self._leads_since, self._membership.resign, self._fenced_writer())
        self._configs = ConfigStore(self._admins[0], topics[0], self._writes)
        self._statuses = StatusStore(self._admins[1], topics[1])
        stores = (self._configs, self._statuses)
        self._reconciler = Reconciler(config, engine, stores, url.partition("//")[2], log_levels)
        self.herder = ConnectHerder(
            config, stores, self._reconciler, self._membership, log_levels, url, self._cluster_id
        )

    def start(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """Create and read the worker's topics, join its group, and start to reconcile; raise if the cluster refuses."""
        self._admins[0].wait_until_reachable(self._settings[keys.CONNECT_TIMEOUT_MS] / 1000, is_stopping)
        if is_stopping():
            return
        create_worker_topics(self._admins[0], self._settings)
        self._configs.load()
        self._statuses.load()
        self._reconciler.start()
        self._membership.start()
        self._membership.wait_until_joined(_JOIN_TIMEOUT_S, is_stopping)

    def stop(self) -> None:
        """Stop every run, then leave the group: the next leader resumes after what we have committed."""
        self._is_stopping = True
        self._reconciler.stop()
        self._membership.stop()
        self._configs.close()
        for admin in self._admins:
            admin.close()

    def _on_standing(self, standing: Standing) -> None:
        if standing.is_leader:
            log.info("This worker leads its group (generation %d)", standing.generation)
        elif standing.leader_url is not None:
            log.info("The leading worker is %s", standing.leader_url)
        elif not self._is_stopping:
            servers = ", ".join(str(address) for address in self._bootstrap())
            why = self._membership.issue or f"the worker's cluster at {servers} does not answer."
            log.warning("No leader of the workers' group is known, and no connector runs here until one is: %s", why)
        self._reconciler.lead(standing.leads_since if standing.is_leader else None)

    def _fenced_writer(self) -> FencedWriter | None:
        name, timeout_s = leader_transactional_id(self._settings), self._settings[keys.ADMIN_TIMEOUT_MS] / 1000
        if name is None:
            return None
        return FencedWriter(_ALIAS, self._bootstrap(), self._newest_security, name, timeout_s=timeout_s)

    def _leads_since(self) -> int | None:
        standing = self._membership.standing
        return standing.leads_since if standing.is_leader else None

    def _group_settings(self) -> GroupSettings:
        settings = self._settings
        session, heartbeat, rebalance = (keys.TABLE[f"{name}.ms"] for name in _GROUP_KEYS)
        usual = GroupSettings(self._config.group_id, settings[session], rebalance_timeout_ms=settings[rebalance])
        return replace(usual, heartbeat_interval_ms=settings[heartbeat]) if heartbeat in settings else usual

    def _admin(self, timeout_s: float) -> Admin:
        client = self._config.client
        make_security(client, _ALIAS)  # raises now if the settings are invalid
        return Admin(
            *(_ALIAS, self._bootstrap(), self._newest_security, "heliograph-worker"),
            timeout_s=timeout_s,
            title="The worker's cluster",
            connection_keys=connection_keys(client, {}),
        )

    def _bootstrap(self) -> tuple[Address, ...]:
        client, key = self._config.client, client_keys.BOOTSTRAP_SERVERS
        return parse_bootstrap(client[key], key.name, client.raw.get(key.name))

    def _newest_security(self) -> Security:
        return make_security(self._config.client, _ALIAS)

    def _cluster_id(self) -> str:
        admin = self._admin(self._settings[keys.ADMIN_TIMEOUT_MS] / 1000)
        try:
            return cluster_id(admin)
        finally:
            admin.close()


def lease_timeout_ms(config: WorkerConfig) -> int:
    """Return the time-out of leases: tasks stop by themselves before another worker can lead."""
    session = config.settings[keys.TABLE["session.timeout.ms"]]
    return min(config.settings[keys.LEASE_TIMEOUT_MS], int(LEASE_SHARE * session))


class StartingHerder:
    """The worker's herder, not ready before the worker has started. REST listens earlier: its port is in the claim.

    Until then it answers probes and scrapes, and refuses everything else.
    """

    def __init__(self, engine: Callable[[], EngineSnapshot] = lambda: EngineSnapshot(None, 0, 0)) -> None:
        self.begun: Herder | None = None
        self._engine = engine

    def process(self) -> ProcessSnapshot:
        """Return the worker's process, which has no flows before it is a member of its group."""
        if self.begun is not None:
            return self.begun.process()
        worker = WorkerSnapshot(is_leader=False, is_rebalancing=True, generation=-1, rebalances=0, rebalanced_at=None)
        return ProcessSnapshot(time.time(), (), (), (), (), self._engine(), worker, ())

    def __getattr__(self, name: str) -> object:
        if self.begun is not None:
            return getattr(self.begun, name)
        if name == "is_ready":
            return lambda: False
        if name == "unready":
            return list
        raise NO_LEADER.error()

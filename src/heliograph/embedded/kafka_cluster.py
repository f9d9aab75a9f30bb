"""Starts, stops and lists Kafka clusters of real brokers on this machine, by name.

From 4.0 on they use KRaft, and every node is broker and controller; before, they have one ZooKeeper, which starts first
and stops last. All processes listen on 127.0.0.1 only. A registry of files lists the clusters, so that a later command
finds them.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import time
import uuid
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from heliograph.embedded.jars import DEFAULT_VERSION, broker_jars, ensure_jars
from heliograph.embedded.java import cache_folder, private_folder
from heliograph.embedded.layouts import layout_of
from heliograph.embedded.process import (
    HOST,
    SESSION_TIMEOUT_MS,
    ZOOKEEPER_FOLDER,
    ZooKeeper,
    free_ports,
    is_ours,
    last_error,
    launch,
    launch_zookeeper,
    mark_of,
    stop_all,
    wait_until_gone,
)
from heliograph.embedded.storage import format_storage
from heliograph.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


TOOLS_LOG_CONFIG = "tools.log4j.properties"
_START_TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True)
class Broker:
    """One running node."""

    node_id: int
    port: int
    controller_port: int  # not used with a ZooKeeper
    pid: int = 0


@dataclass(frozen=True, slots=True)
class EmbeddedCluster:
    """A cluster by name."""

    name: str
    version: str
    folder: str
    cluster_id: str
    brokers: tuple[Broker, ...]
    config: tuple[tuple[str, str], ...] = field(default=())
    zookeeper: ZooKeeper | None = None

    @property
    def bootstrap(self) -> str:
        """The `host:port` of all brokers."""
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers)

    @property
    def running(self) -> tuple[Broker, ...]:
        """The brokers whose process is alive."""
        return tuple(broker for broker in self.brokers if _is_running(self.name, broker))

    def stop(self, *, remove_data: bool = False) -> None:
        """Stop all brokers, then the ZooKeeper they had."""
        stop_all(broker.pid for broker in self.running)
        if self.zookeeper is not None and self.zookeeper.is_running(self.name):
            stop_all([self.zookeeper.pid])
        if remove_data:
            self._remove_data()

    def _remove_data(self) -> None:
        """Delete the cluster's own files; other files in a folder that the user named stay."""
        folder = Path(self.folder)
        own = [*folder.glob("node-*"), folder / ZOOKEEPER_FOLDER]
        for part in own:
            if part.is_symlink():
                part.unlink()  # its target is not ours to delete
            elif part.is_dir():
                shutil.rmtree(part)
        for file in folder.glob(TOOLS_LOG_CONFIG):
            file.unlink()
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()

    def broker_process(self, node_id: int) -> psutil.Process:
        """Return the process of one broker, for tests that disturb it."""
        return psutil.Process(next(b.pid for b in self.brokers if b.node_id == node_id))

    def start_broker(self, node_id: int) -> EmbeddedCluster:
        """Start one broker again, on its own data, and return the cluster with the new process."""
        broker = next(b for b in self.brokers if b.node_id == node_id)
        return _start(self, (broker,), ensure_jars(broker_jars(self.version)))


def start_cluster(
    name: str,
    *,
    port: int = 0,
    brokers: int = 1,
    version: str = DEFAULT_VERSION,
    data: Path | None = None,
    config: Mapping[str, str] | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> EmbeddedCluster:
    """Start a cluster and wait until every broker answers. `port` 0 chooses free ones; existing data is used."""
    if not name or "/" in name or name.startswith("."):
        raise EmbeddedError(f"'{name}' cannot be the name of a cluster.")
    known = find_cluster(name)
    if known is not None and known.running:
        raise EmbeddedError(f"The cluster '{name}' is already running at {known.bootstrap}.")
    libs = ensure_jars(broker_jars(version), on_progress)
    folder = (data or _clusters_folder() / name).resolve()
    _check_data(folder, version)
    if known is not None:
        known.stop()  # killed brokers may have left a ZooKeeper running
    cluster_id = known.cluster_id if known is not None and Path(known.folder) == folder else _new_id()
    cluster = EmbeddedCluster(
        name, version, str(folder), cluster_id, _place_brokers(port, brokers), tuple((config or {}).items())
    )
    if layout_of(version).uses_zookeeper:
        cluster = replace(cluster, zookeeper=ZooKeeper(free_ports(1)[0]))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _start(cluster, cluster.brokers, libs)
    except EmbeddedError:
        (find_cluster(name) or cluster).stop()
        raise


def find_cluster(name: str) -> EmbeddedCluster | None:
    """Return the cluster of that name, running or not."""
    return next((cluster for cluster in list_clusters() if cluster.name == name), None)


def list_clusters() -> list[EmbeddedCluster]:
    """Return all clusters that were started here."""
    found = []
    for file in sorted(_registry_folder().glob("*.json")):
        data = json.loads(file.read_text())
        data["brokers"] = tuple(Broker(**broker) for broker in data["brokers"])
        data["config"] = tuple((key, value) for key, value in data["config"])
        zookeeper = data.get("zookeeper")
        data["zookeeper"] = ZooKeeper(**zookeeper) if zookeeper else None
        found.append(EmbeddedCluster(**data))
    return found


def forget_cluster(name: str) -> None:
    """Remove a cluster from the registry."""
    (_registry_folder() / f"{name}.json").unlink(missing_ok=True)


def _clusters_folder() -> Path:
    return private_folder(cache_folder() / "clusters")  # a broker's settings may hold passwords


def _registry_folder() -> Path:
    folder = _clusters_folder() / "registry"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _register(cluster: EmbeddedCluster) -> None:
    file = _registry_folder() / f"{cluster.name}.json"
    partial = file.with_suffix(f".{os.getpid()}")
    record = asdict(cluster)
    if cluster.zookeeper is None:
        del record["zookeeper"]  # an older Heliograph, which knows no such member, reads the same registry
    partial.write_text(json.dumps(record))
    partial.replace(file)


def _place_brokers(port: int, count: int) -> tuple[Broker, ...]:
    if not 1 <= count <= 9:
        raise EmbeddedError(f"A cluster can have 1 to 9 brokers, not {count}.")
    ports = [port + i for i in range(count)] if port else free_ports(count)
    busy = [p for p in ports if not _is_free(p)]
    if busy:
        raise EmbeddedError(f"Port {busy[0]} is in use; choose another with --port.")
    controllers = free_ports(count)
    return tuple(Broker(i + 1, ports[i], controllers[i]) for i in range(count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _new_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _is_running(name: str, broker: Broker) -> bool:
    return is_ours(broker.pid, mark_of(name, broker.node_id))


def _check_data(folder: Path, version: str) -> None:
    """Refuse data of the other kind, ZooKeeper or KRaft: the errors of brokers do not explain it."""
    had_zookeeper = (folder / ZOOKEEPER_FOLDER).exists()
    if (folder / "node-1").exists() and had_zookeeper != layout_of(version).uses_zookeeper:
        raise EmbeddedError(
            f"The data in {folder} was written by a Kafka {'before' if had_zookeeper else 'from'} 4.0, which"
            f" Kafka {version} cannot use; choose another folder with --data, or delete it."
        )


def _start(cluster: EmbeddedCluster, brokers: tuple[Broker, ...], libs: Path) -> EmbeddedCluster:
    """Start some of the cluster's brokers; each process is registered before we wait for it."""
    folder = Path(cluster.folder)
    if cluster.zookeeper is not None:
        zookeeper = cluster.zookeeper
        if not zookeeper.is_running(cluster.name):
            zookeeper = launch_zookeeper(cluster.name, folder, zookeeper.port, layout_of(cluster.version), libs)
            cluster = replace(cluster, zookeeper=zookeeper)
            _register(cluster)
        wait_until_gone(zookeeper, cluster.name, folder, (broker.node_id for broker in brokers))
    launched = {broker.node_id: _launch(cluster, broker, libs) for broker in brokers}
    cluster = replace(cluster, brokers=tuple(launched.get(broker.node_id, broker) for broker in cluster.brokers))
    _register(cluster)
    try:
        _wait_until_ready(cluster, tuple(launched.values()))
    except EmbeddedError:
        # A broker that starts late would keep the port and the data from the next attempt.
        stop_all(broker.pid for broker in launched.values() if _is_running(cluster.name, broker))
        raise
    return cluster


def _launch(cluster: EmbeddedCluster, broker: Broker, libs: Path) -> Broker:
    folder = private_folder(_node_folder(cluster, broker))
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    if cluster.zookeeper is None:
        format_storage(data, cluster.cluster_id, broker.node_id, libs)
    properties = folder / "server.properties"
    properties.write_text("".join(f"{k}={v}\n" for k, v in _server_properties(cluster, broker, data).items()))
    heap = os.environ.get("KAFKA_HEAP_OPTS", "-Xms256m -Xmx1g").split()
    options = [*heap, "-XX:+UseG1GC", mark_of(cluster.name, broker.node_id)]
    pid = launch(folder, layout_of(cluster.version), libs, options, ["kafka.Kafka", str(properties)])
    return replace(broker, pid=pid)


def _node_folder(cluster: EmbeddedCluster, broker: Broker) -> Path:
    return Path(cluster.folder) / f"node-{broker.node_id}"


def _server_properties(cluster: EmbeddedCluster, broker: Broker, data: Path) -> dict[str, str]:
    count = len(cluster.brokers)
    replicas = str(min(3, count))
    return {
        "advertised.listeners": f"PLAINTEXT://{HOST}:{broker.port}",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": str(min(2, count)),
        "default.replication.factor": replicas,
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        **(_kraft_properties(cluster, broker) if cluster.zookeeper is None else _zookeeper_properties(cluster, broker)),
        **{
            key: value.replace("{port}", str(broker.port)).replace("{controller_port}", str(broker.controller_port))
            for key, value in cluster.config
        },
    }


def _kraft_properties(cluster: EmbeddedCluster, broker: Broker) -> dict[str, str]:
    count = len(cluster.brokers)
    return {
        "process.roles": "broker,controller",
        "node.id": str(broker.node_id),
        "controller.quorum.voters": ",".join(f"{b.node_id}@{HOST}:{b.controller_port}" for b in cluster.brokers),
        "listeners": f"PLAINTEXT://{HOST}:{broker.port},CONTROLLER://{HOST}:{broker.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
        ),
        "share.coordinator.state.topic.replication.factor": str(min(3, count)),
        "share.coordinator.state.topic.min.isr": str(min(2, count)),
    }


def _zookeeper_properties(cluster: EmbeddedCluster, broker: Broker) -> dict[str, str]:
    assert cluster.zookeeper is not None
    return {
        "broker.id": str(broker.node_id),
        "zookeeper.connect": f"{HOST}:{cluster.zookeeper.port}",
        "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "listeners": f"PLAINTEXT://{HOST}:{broker.port}",
        # Brokers stop together: the last finds no new leader for its partitions, and would retry for 15 s.
        "controlled.shutdown.retry.backoff.ms": "200",
    }


def _wait_until_ready(cluster: EmbeddedCluster, brokers: tuple[Broker, ...]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    for broker in brokers:
        while not _is_serving(cluster, broker):
            if not _is_running(cluster.name, broker):
                why = last_error(_node_folder(cluster, broker))
                raise EmbeddedError(f"Broker {broker.node_id} of '{cluster.name}' ended at its start: {why}")
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"Broker {broker.node_id} of '{cluster.name}' did not start within {_START_TIMEOUT_S:.0f} s:"
                    f" {last_error(_node_folder(cluster, broker))}"
                )
            time.sleep(0.05)


def _is_serving(cluster: EmbeddedCluster, broker: Broker) -> bool:
    log = _node_folder(cluster, broker) / "server.log"
    try:
        with socket.create_connection((HOST, broker.port), timeout=1):
            pass
        # The port opens before the broker is registered; the last line of the start says it serves.
        return layout_of(cluster.version).started_line in log.read_text(errors="replace")
    except OSError:
        return False

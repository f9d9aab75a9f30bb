"""A Kafka cluster of real brokers on this machine: start, stop, list, by name.

KRaft, every node broker and controller at once, bound to 127.0.0.1. What is running is written down in the cluster's
folder, so a later command finds it again; a process counts as ours only if its command line carries the cluster's
mark.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import uuid
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from heliograph.embedded.jars import DEFAULT_VERSION, broker_jars, ensure_jars
from heliograph.embedded.java import java_command
from heliograph.embedded.places import cache_folder
from heliograph.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HOST = "127.0.0.1"
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 20.0
_LOG_CONFIG = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
"""


@dataclass(frozen=True, slots=True)
class Broker:
    """One running node."""

    node_id: int
    port: int
    controller_port: int
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

    @property
    def bootstrap(self) -> str:
        """`host:port` of all brokers."""
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers)

    @property
    def running(self) -> tuple[Broker, ...]:
        """Brokers whose process lives."""
        return tuple(broker for broker in self.brokers if _is_ours(self.name, broker))

    def stop(self, *, remove_data: bool = False) -> None:
        """Stop all brokers; raises where one does not end."""
        processes = [psutil.Process(broker.pid) for broker in self.running]
        for process in processes:
            process.terminate()
        _gone, alive = psutil.wait_procs(processes, timeout=_STOP_TIMEOUT_S)
        for process in alive:
            process.kill()
        if remove_data:
            shutil.rmtree(self.folder, ignore_errors=True)

    def broker_process(self, node_id: int) -> psutil.Process:
        """The process of one broker, for tests that disturb it."""
        return psutil.Process(next(b.pid for b in self.brokers if b.node_id == node_id))

    def start_broker(self, node_id: int) -> EmbeddedCluster:
        """Start one broker again, on its own data; returns the cluster with the new process."""
        broker = next(b for b in self.brokers if b.node_id == node_id)
        started = _launch(self, broker, ensure_jars(broker_jars(self.version)))
        cluster = replace(self, brokers=tuple(started if b.node_id == node_id else b for b in self.brokers))
        _remember(cluster)
        _wait_until_ready(cluster, (started,))
        return cluster


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
    """Start a cluster and wait until every broker answers. `port` 0 takes free ones; earlier data is used again."""
    if not name or "/" in name or name.startswith("."):
        raise EmbeddedError(f"'{name}' cannot be the name of a cluster.")
    known = find_cluster(name)
    if known is not None and known.running:
        raise EmbeddedError(f"The cluster '{name}' is already running at {known.bootstrap}.")
    libs = ensure_jars(broker_jars(version), on_progress)
    folder = (data or _clusters_folder() / name).resolve()
    cluster_id = known.cluster_id if known is not None and Path(known.folder) == folder else _new_id()
    cluster = EmbeddedCluster(
        name, version, str(folder), cluster_id, _place_brokers(port, brokers), tuple((config or {}).items())
    )
    folder.mkdir(parents=True, exist_ok=True)
    launched = tuple(_launch(cluster, broker, libs) for broker in cluster.brokers)
    cluster = replace(cluster, brokers=launched)
    _remember(cluster)
    try:
        _wait_until_ready(cluster, launched)
    except EmbeddedError:
        cluster.stop()
        raise
    return cluster


def find_cluster(name: str) -> EmbeddedCluster | None:
    """The cluster of that name, running or not."""
    return next((cluster for cluster in list_clusters() if cluster.name == name), None)


def list_clusters() -> list[EmbeddedCluster]:
    """All clusters that were started here."""
    found = []
    for file in sorted(_registry_folder().glob("*.json")):
        data = json.loads(file.read_text())
        data["brokers"] = tuple(Broker(**broker) for broker in data["brokers"])
        data["config"] = tuple((key, value) for key, value in data["config"])
        found.append(EmbeddedCluster(**data))
    return found


def forget_cluster(name: str) -> None:
    """Take a cluster off the list."""
    (_registry_folder() / f"{name}.json").unlink(missing_ok=True)


def _clusters_folder() -> Path:
    return cache_folder() / "clusters"


def _registry_folder() -> Path:
    folder = _clusters_folder() / "registry"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _remember(cluster: EmbeddedCluster) -> None:
    file = _registry_folder() / f"{cluster.name}.json"
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(asdict(cluster)))
    partial.replace(file)


def _place_brokers(port: int, count: int) -> tuple[Broker, ...]:
    if not 1 <= count <= 9:
        raise EmbeddedError(f"A cluster can have 1 to 9 brokers, not {count}.")
    ports = [port + i for i in range(count)] if port else _free_ports(count)
    busy = [p for p in ports if not _is_free(p)]
    if busy:
        raise EmbeddedError(f"Port {busy[0]} is in use; choose another with --port.")
    controllers = _free_ports(count)
    return tuple(Broker(i + 1, ports[i], controllers[i]) for i in range(count))


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


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


def _mark(name: str, node_id: int) -> str:
    return f"-Dheliograph.cluster={name}/{node_id}"


def _is_ours(name: str, broker: Broker) -> bool:
    try:
        process = psutil.Process(broker.pid)
        command = process.cmdline()
        # A process that is just being executed has no command line for a moment; the pid is the one we noted.
        return process.status() != psutil.STATUS_ZOMBIE and (not command or _mark(name, broker.node_id) in command)
    except psutil.Error:
        return False


def _launch(cluster: EmbeddedCluster, broker: Broker, libs: Path) -> Broker:
    folder = Path(cluster.folder) / f"node-{broker.node_id}"
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    meta = data / "meta.properties"
    if not meta.exists():
        # What `kafka-storage.sh format` would write; saves a JVM start per broker.
        meta.write_text(f"version=1\ncluster.id={cluster.cluster_id}\nnode.id={broker.node_id}\n")
    properties = folder / "server.properties"
    properties.write_text("".join(f"{k}={v}\n" for k, v in _server_properties(cluster, broker, data).items()))
    log_config = folder / "log4j2.properties"
    log_config.write_text(_LOG_CONFIG.format(log=folder / "server.log"))
    (folder / "server.log").unlink(missing_ok=True)  # readiness is read from it, so it must be this start's
    heap = os.environ.get("KAFKA_HEAP_OPTS", "-Xms256m -Xmx1g").split()
    command = [java_command(), *heap, "-XX:+UseG1GC", _mark(cluster.name, broker.node_id)]
    command += [
        f"-Dlog4j2.configurationFile={log_config}",
        "-cp",
        f"{libs}/*",
        "kafka.Kafka",
        str(properties),
    ]
    with (folder / "console.log").open("wb") as console:
        process = subprocess.Popen(
            command,
            stdout=console,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            cwd=folder,
        )
    return replace(broker, pid=process.pid)


def _server_properties(cluster: EmbeddedCluster, broker: Broker, data: Path) -> dict[str, str]:
    count = len(cluster.brokers)
    replicas = str(min(3, count))
    return {
        "process.roles": "broker,controller",
        "node.id": str(broker.node_id),
        "controller.quorum.voters": ",".join(f"{b.node_id}@{HOST}:{b.controller_port}" for b in cluster.brokers),
        "listeners": f"PLAINTEXT://{HOST}:{broker.port},CONTROLLER://{HOST}:{broker.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{broker.port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
        ),
        "log.dirs": str(data),
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": str(min(2, count)),
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": str(min(2, count)),
        "default.replication.factor": replicas,
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        **{
            key: value.replace("{port}", str(broker.port)).replace("{controller_port}", str(broker.controller_port))
            for key, value in cluster.config
        },
    }


def _wait_until_ready(cluster: EmbeddedCluster, brokers: tuple[Broker, ...]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    for broker in brokers:
        while not _is_serving(cluster, broker):
            if not _is_ours(cluster.name, broker):
                raise EmbeddedError(
                    f"Broker {broker.node_id} of '{cluster.name}' ended at its start: {_last_words(cluster, broker)}"
                )
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"Broker {broker.node_id} of '{cluster.name}' did not start within {_START_TIMEOUT_S:.0f} s."
                )
            time.sleep(0.05)


def _is_serving(cluster: EmbeddedCluster, broker: Broker) -> bool:
    log = Path(cluster.folder) / f"node-{broker.node_id}" / "server.log"
    try:
        with socket.create_connection((HOST, broker.port), timeout=1):
            pass
        # The port opens before the broker is registered; the last line of the start says it serves.
        return "Kafka Server started" in log.read_text(errors="replace")
    except OSError:
        return False


def _last_words(cluster: EmbeddedCluster, broker: Broker) -> str:
    folder = Path(cluster.folder) / f"node-{broker.node_id}"
    for name in ("server.log", "console.log"):
        lines = (
            [line.strip() for line in (folder / name).read_text(errors="replace").splitlines() if line.strip()]
            if (folder / name).exists()
            else []
        )
        causes = [line for line in lines if line.startswith("Caused by")]
        errors = [line for line in lines if "Exception" in line or "ERROR" in line or "FATAL" in line]
        if causes or errors:
            return f"{causes[-1] if causes else errors[0]} (more in {folder / name})"
    return f"see {folder}"

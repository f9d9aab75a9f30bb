"""The ZooKeeper of an embedded cluster of a Kafka before 4.0: one process, bound to 127.0.0.1, part of its cluster.

It starts before the brokers and stops after them, because a broker that ends writes to it. A broker that was killed
stays registered until its session ends, and until then the same broker cannot start again: `wait_until_gone` waits
for that. Both are read from ZooKeeper's own `dump` command, so no client is needed.
"""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.embedded.places import private_folder
from heliograph.embedded.process import HOST, is_ours, last_words, launch, mark_of
from heliograph.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from heliograph.embedded.layouts import Layout

ZOOKEEPER_FOLDER = "zookeeper"
SESSION_TIMEOUT_MS = 6_000
_TIMEOUT_S = 180.0
# reload4j has no JMX classes, which the ZooKeeper of the oldest versions would look for.
_JVM_OPTIONS = ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-Dzookeeper.jmx.log4j.disable=true"]


@dataclass(frozen=True, slots=True)
class ZooKeeper:
    """The ZooKeeper of one cluster."""

    port: int
    pid: int = 0

    @property
    def address(self) -> str:
        """`host:port` of its clients."""
        return f"{HOST}:{self.port}"

    def is_running(self, cluster: str) -> bool:
        """Whether its process lives."""
        return is_ours(self.pid, mark_of(cluster, ZOOKEEPER_FOLDER))


def launch_zookeeper(cluster: str, folder: Path, port: int, layout: Layout, libs: Path) -> ZooKeeper:
    """Start it on the data in the cluster's folder; it serves after `wait_until_gone`."""
    own = private_folder(folder / ZOOKEEPER_FOLDER)
    data = own / "data"
    data.mkdir(parents=True, exist_ok=True)
    properties = own / "zookeeper.properties"
    settings = {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": HOST,
        "maxClientCnxns": 0,
        "tickTime": 1000,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "dump",
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    program = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(properties)]
    return ZooKeeper(port, launch(own, layout, libs, [*_JVM_OPTIONS, mark_of(cluster, ZOOKEEPER_FOLDER)], program))


def wait_until_gone(zookeeper: ZooKeeper, cluster: str, folder: Path, node_ids: Iterable[int]) -> None:
    """Wait until ZooKeeper serves and none of the brokers is registered."""
    wanted = set(node_ids)
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        registered = _registered_brokers(zookeeper.port)
        if registered is not None and not registered & wanted:
            return
        if not zookeeper.is_running(cluster):
            raise EmbeddedError(
                f"The ZooKeeper of '{cluster}' ended at its start: {last_words(folder / ZOOKEEPER_FOLDER)}"
            )
        if time.monotonic() > deadline:
            trouble = "did not start" if registered is None else f"still knows broker {min(registered & wanted)}"
            raise EmbeddedError(f"The ZooKeeper of '{cluster}' {trouble} after {_TIMEOUT_S:.0f} s.")
        time.sleep(0.05)


def _registered_brokers(port: int) -> set[int] | None:
    """The brokers that have a session; None while ZooKeeper does not serve."""
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(b"dump")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    except OSError:
        return None
    # While it loads its data, it answers that it does not serve requests.
    if b"phemeral" not in answer:
        return None
    return {int(node_id) for node_id in re.findall(rb"/brokers/ids/(\d+)", answer)}

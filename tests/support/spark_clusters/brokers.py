"""Kafka clusters that machines of a network reach: by a listener of their own, at the address of the network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from heliograph.embedded.kafka_cluster import EmbeddedCluster, find_cluster, forget_cluster, start_cluster
from heliograph.embedded.process import free_ports
from tests.support.spark_clusters.machines import LOOPBACK, MachineNetwork

# Tests write records of 2023, which a broker's first round of retention would delete.
_KEEP_RECORDS = {"log.retention.ms": "-1"}


@dataclass(frozen=True, slots=True)
class SharedKafka:
    """A cluster of one broker: the test uses `cluster`, a mirror and its tasks on machines use `bootstrap`."""

    cluster: EmbeddedCluster
    bootstrap: str


@contextmanager
def shared_kafka(name: str, folder: Path, network: MachineNetwork) -> Iterator[SharedKafka]:
    """Start a cluster, and stop it at the end."""
    unique = f"test-{os.getpid()}-{name}"
    port = free_ports(1)[0]
    listeners = {} if network.kind == LOOPBACK else _listeners(network.address, port)
    cluster = start_cluster(unique, data=folder, config=_KEEP_RECORDS | listeners)
    try:
        yield SharedKafka(cluster, f"{network.address}:{port}" if listeners else cluster.bootstrap)
    finally:
        (find_cluster(unique) or cluster).stop()
        forget_cluster(unique)


def _listeners(address: str, port: int) -> dict[str, str]:
    here, machines = "PLAINTEXT://127.0.0.1:{port}", f"MACHINES://{address}:{port}"
    return {
        "listeners": f"{here},{machines},CONTROLLER://127.0.0.1:{{controller_port}}",
        "advertised.listeners": f"{here},{machines}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,MACHINES:PLAINTEXT",
    }

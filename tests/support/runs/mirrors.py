"""A `heliograph run` of several flows that a module's tests share, each with topics and groups of its own.

A process takes ten seconds to begin. Java's integration tests start workers for each test; ours share one process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heliograph.client.mirror_client import translate_offsets
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.model import Checkpoint, CommittedOffset, Flow, TopicPartition
from heliograph.wire.records.mirror_records import decode_checkpoint
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running

# As in Java's MirrorConnectorsIntegrationBaseTest.
PARTITIONS = 10
PER_PARTITION = 10
# For what may have to wait until a process of several flows has begun, on a busy machine.
PATIENCE_S = 200.0

QUICKLY = (
    "refresh.topics.interval.seconds = 1",
    "refresh.groups.interval.seconds = 1",
    "emit.checkpoints.interval.seconds = 1",
    "sync.topic.configs.interval.seconds = 1",
    "sync.group.offsets.interval.seconds = 1",
    "emit.heartbeats.enabled = false",
)
COMMITTED = {"isolation.level": "read_committed"}


def escaped(alias: str) -> str:
    """An alias as the key and the value of a properties file want it."""
    return re.sub(r"([\\ :=#!])", r"\\\1", alias)


class Mirror:
    """Clusters by their aliases, and the process between them; two aliases may mean the same brokers."""

    def __init__(self, file: Path, clusters: dict[str, EmbeddedCluster]) -> None:
        self.clusters = clusters
        self.file = file
        self.process = Running(file)

    def restart(self, *targets: str) -> None:
        """Stop as a user does, and start again with the flows into these clusters."""
        assert self.process.stop() == 0, self.process.output()
        self.process = Running(self.file, *(word for target in targets for word in ("--clusters", target)))

    def topics(self, alias: str) -> set[str]:
        admin = admin_of(self.clusters[alias])
        names = set(admin.view().partition_counts)
        admin.close()
        return names

    def make_topic(self, alias: str, topic: str, **configs: str) -> None:
        make_topic(self.clusters[alias], topic, PARTITIONS, **configs)

    def produce(self, alias: str, topic: str, mark: str, *, but: frozenset[int] = frozenset()) -> None:
        """Ten records to each partition, but for those to be left empty."""
        places = [p for p in range(PARTITIONS) if p not in but] * PER_PARTITION
        records = ({"value": f"{mark}-{n}".encode(), "partition": p} for n, p in enumerate(places))
        write(self.clusters[alias], topic, records)

    def wait_until_equal(self, source: str, topic: str, target: str, remote: str) -> None:
        """Every committed record of a topic is in its copy, once and in order."""

        def is_equal() -> bool:
            if remote not in self.topics(target):
                return False
            copied = read(self.clusters[target], remote, PARTITIONS, **COMMITTED)
            return copied == read(self.clusters[source], topic, PARTITIONS, **COMMITTED)

        wait_for(is_equal, PATIENCE_S, pause_s=0.3)  # or the looking would take the time of the copying

    def commit(self, alias: str, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Committed as by a consumer that has left."""
        admin = admin_of(self.clusters[alias])
        places = {TopicPartition(topic, p): CommittedOffset(offset) for p, offset in offsets.items()}
        assert GroupAdmin(admin).commit(group, places) == {}
        admin.close()

    def committed(self, alias: str, group: str, topic: str) -> dict[int, int]:
        admin = admin_of(self.clusters[alias])
        found = GroupAdmin(admin).committed([group])[group]
        admin.close()
        return {tp.partition: place.offset for tp, place in found.items() if tp.topic == topic}

    def translated(self, flow: Flow, group: str, topic: str, **policy: str) -> dict[int, int]:
        """Where the clients' API says that a group goes on, on the flow's target."""
        properties = {"bootstrap.servers": self.clusters[flow.target].bootstrap, **policy}
        found = translate_offsets(properties, flow.source, group, 30)
        return {tp.partition: place.offset for tp, place in found.items() if tp.topic == topic}

    def checkpoints(self, flow: Flow, group: str) -> list[Checkpoint]:
        """All that were ever written for a group, in order."""
        admin = admin_of(self.clusters[flow.target])
        records = read_topic(admin, f"{flow.source}.checkpoints.internal")
        found = [decode_checkpoint(record.key, record.value) for record in records]
        admin.close()
        return [checkpoint for checkpoint in found if checkpoint is not None and checkpoint.group == group]


@contextmanager
def mirror(
    folder: Path,
    clusters: dict[str, EmbeddedCluster],
    flows: dict[Flow, dict[str, str]],
    worker_keys: dict[str, dict[str, str]],
) -> Iterator[Mirror]:
    """Run flows, each with keys of its own, until the tests are done; it must end cleanly."""
    prefixed = {**{str(flow): lines for flow, lines in flows.items()}, **worker_keys}
    file = folder / "mm2.properties"
    text = [
        f"clusters = {', '.join(map(escaped, clusters))}",
        *(f"{escaped(alias)}.bootstrap.servers = {cluster.bootstrap}" for alias, cluster in clusters.items()),
        *QUICKLY,
        *(f"{escaped(f'{flow}.enabled')} = true" for flow in flows),
        *(
            f"{escaped(f'{prefix}.{key}')} = {value}"
            for prefix, lines in prefixed.items()
            for key, value in lines.items()
        ),
    ]
    file.write_text("\n".join(text) + "\n")
    shared = Mirror(file, clusters)
    try:
        yield shared
        assert shared.process.stop() == 0, shared.process.output()
    finally:
        shared.process.__exit__()

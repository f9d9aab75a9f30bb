"""Many records with random gaps, by compaction and transactions, copied by Java MM2 and by us; 1,000 groups translated.

    python -m tests.interop.exactness 1000000        (`make exactness`)

Both copy the same log as a backlog. Ours must let every group go on with exactly its next unread record.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from heliograph.embedded.kafka_cluster import EmbeddedCluster, forget_cluster, start_cluster
from heliograph.model import TopicPartition
from tests.broker.test_offset_syncs import known_from, syncs_on
from tests.conftest import KEEP_RECORDS
from tests.interop.gateway import Java
from tests.interop.translating import Judged, java_copying, java_translations, judge, pairs_of
from tests.support.clusters.clients import make_topic
from tests.support.runs.copying import Copy

POSITIONS = 1000
_SEGMENT_BYTES = 4 << 20
_ROUNDS = 15


class Verdicts(NamedTuple):
    """How both did, over so many records and gaps."""

    records: int
    gaps: int
    ours: Judged
    javas: Judged

    def __str__(self) -> str:
        return (
            f"{self.records:,} records with {self.gaps:,} gaps, {POSITIONS} groups at random positions\n"
            f"Heliograph: {self.ours}\nJava MM2:   {self.javas}"
        )


def write_gappy(cluster: EmbeddedCluster, topic: str, count: int, seed: int) -> None:
    """Write until about `count` records are visible after compaction, and wait for the cleaner."""
    make_topic(
        cluster,
        topic,
        1,
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.01",
        segment_bytes=str(_SEGMENT_BYTES),
        delete_retention_ms="600000",
    )
    chance = random.Random(seed)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic, "linger.ms": 5})
    producer.init_transactions()
    written = 0
    while written < count * 1.3:
        producer.begin_transaction()
        for _ in range(chance.randint(1, 4000)):
            _produce(producer, topic, b"%d" % chance.randrange(count * 2))
            written += 1
        producer.flush()
        producer.abort_transaction() if chance.random() < 0.1 else producer.commit_transaction()
    _wait_for_cleaner(cluster, topic)


def _produce(producer: Producer, topic: str, key: bytes) -> None:
    while True:
        try:
            producer.produce(topic, key * 3, key=key, partition=0)
        except BufferError:
            producer.poll(0.05)
        else:
            return


def _wait_for_cleaner(cluster: EmbeddedCluster, topic: str) -> None:
    """Until the topic's files have not changed for some rounds of the cleaner, which also comes while we write."""
    folder = next(Path(cluster.folder).rglob(f"{topic}-0"))
    sizes: list[int] = []
    deadline = time.monotonic() + 300
    while len(sizes) < _ROUNDS or len(set(sizes[-_ROUNDS:])) > 1:
        assert time.monotonic() < deadline, "the cleaner does not come to rest"
        time.sleep(2)
        sizes.append(sum(_size(file) for file in folder.glob("*.log*")))  # also what it has only begun to write


def _size(file: Path) -> int:
    try:
        return 0 if file.suffix == ".deleted" else file.stat().st_size
    except FileNotFoundError:
        return 0


def compare(java: Java, source: EmbeddedCluster, target: EmbeddedCluster, folder: Path, count: int) -> Verdicts:
    """Write, copy with both, translate with both, and judge."""
    topic = f"gappy-{count}"
    tp = TopicPartition(topic, 0)
    write_gappy(source, topic, count, seed=count)
    with java_copying(folder, source, target, "java", tp):
        pass
    syncs = syncs_on(source, "he")
    copy = Copy(source, target, "he", topic, partitions=1)
    copy.once(syncs=syncs)
    pairs = pairs_of(source, target, tp, copy.remote)
    positions = random.Random(1).sample(range(pairs.upstream[-1] + 2), POSITIONS)
    known = known_from(source, syncs)
    ours = judge(pairs, {position: known.translate(tp, position) for position in positions})
    translated = java_translations(java, source, target, "java", tp, positions)
    javas = judge(pairs_of(source, target, tp, f"java.{topic}"), translated)
    gaps = sum(b - a > 1 for a, b in zip(pairs.upstream, pairs.upstream[1:], strict=False))
    assert gaps > count // 100, "compaction and transactions have left too few gaps to show anything"
    return Verdicts(len(pairs.upstream), gaps, ours, javas)


def main(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="heliograph-exactness-") as name:
        folder = Path(name)
        clusters = [start_cluster(f"exact-{n}", data=folder / n, config=KEEP_RECORDS) for n in ("source", "target")]
        try:
            with Java(folder) as java:
                print(compare(java, clusters[0], clusters[1], folder, count))
        finally:
            for cluster in clusters:
                cluster.stop()
                forget_cluster(cluster.name)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)

"""Active-active: two clusters that replicate to each other, under load on both sides, in one process.

What must hold in the end: each side's own records once on the other, in order, under the one name MM2 gives them; no
topic beside those; no record that came back home.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import PATIENCE_S, wait_for
from tests.support.runs.running import Running

PARTITIONS = 3
_RECORDS_PER_WRITE = 500


@dataclass(frozen=True)
class Side:
    """One of the two clusters."""

    alias: str
    cluster: EmbeddedCluster

    def topics(self) -> set[str]:
        admin = admin_of(self.cluster)
        names = set(admin.view().partition_counts)
        admin.close()
        return names


class Writer(threading.Thread):
    """Writes numbered records to a side's own topic until told to stop."""

    def __init__(self, side: Side, topic: str) -> None:
        super().__init__(daemon=True)
        self.side, self.topic, self.written = side, topic, 0
        self.ended = threading.Event()

    def run(self) -> None:
        for start in itertools.count(0, _RECORDS_PER_WRITE):
            if self.ended.wait(0.05):
                return
            numbers = range(start, start + _RECORDS_PER_WRITE)
            records = ({"value": f"{self.side.alias}-{n}".encode(), "partition": n % PARTITIONS} for n in numbers)
            write(self.side.cluster, self.topic, records)
            self.written = start + _RECORDS_PER_WRITE


def properties(one: Side, two: Side, topic: str) -> str:
    return "\n".join(
        [
            f"clusters = {one.alias}, {two.alias}",
            f"{one.alias}.bootstrap.servers = {one.cluster.bootstrap}",
            f"{two.alias}.bootstrap.servers = {two.cluster.bootstrap}",
            f"{one.alias}->{two.alias}.enabled = true",
            f"{two.alias}->{one.alias}.enabled = true",
            f"topics = .*{topic}",
            "refresh.topics.interval.seconds = 1",
            "refresh.groups.interval.seconds = 1",
            "emit.checkpoints.interval.seconds = 1",
            "sync.group.offsets.enabled = true",
            "sync.group.offsets.interval.seconds = 1",
        ]
    )


def play(one: Side, two: Side, topic: str, folder: Path, seconds: float) -> dict[str, int]:
    """Write on both sides for so long, then compare; how many records each side wrote."""
    before = {side.alias: side.topics() for side in (one, two)}
    for side in (one, two):
        make_topic(side.cluster, topic, PARTITIONS)
    file = folder / "active-active.properties"
    file.write_text(properties(one, two, topic))
    with Running(file) as running:
        writers = [Writer(side, topic) for side in (one, two)]
        for writer in writers:
            writer.start()
        time.sleep(seconds)
        for writer in writers:
            writer.ended.set()
            writer.join(PATIENCE_S)
        for here, there, writer in ((one, two, writers[0]), (two, one, writers[1])):
            remote = f"{here.alias}.{topic}"
            wait_for(lambda n=there, r=remote, w=writer: _count(n, r) >= w.written)
        time.sleep(3)  # a loop would need a moment to show
        assert running.stop() == 0, running.output()
    for here, there, writer in ((one, two, writers[0]), (two, one, writers[1])):
        _compare(here, there, topic, writer.written, before[there.alias])
    return {writer.side.alias: writer.written for writer in writers}


def _count(side: Side, topic: str) -> int:
    return sum(map(len, read(side.cluster, topic, PARTITIONS).values())) if topic in side.topics() else 0


def _compare(here: Side, there: Side, topic: str, written: int, topics_before: set[str]) -> None:
    """What `here` wrote is there once and in order, and nothing else came to be."""
    copied = read(there.cluster, f"{here.alias}.{topic}", PARTITIONS)
    assert copied == read(here.cluster, topic, PARTITIONS)
    counts = Counter(record.value for records in copied.values() for record in records)
    assert set(counts.values()) == {1}
    assert len(counts) == written
    own = {
        *(topic, f"{here.alias}.{topic}", "heartbeats", f"{here.alias}.heartbeats"),
        *(f"{here.alias}.checkpoints.internal", f"mm2-offsets.{here.alias}.internal"),
        f"mm2-offset-syncs.{here.alias}.internal",
    }
    new = {name for name in there.topics() - topics_before if not name.startswith("__")}
    # Heartbeats that others left on the clusters travel along, under one more name.
    assert {name for name in new - own if not name.endswith("heartbeats")} == set(), "topics that nobody asked for"

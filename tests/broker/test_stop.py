"""A task that is told to stop in the middle of its work: its successor goes on without a gap."""

from __future__ import annotations

import math
import time

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.copy.copy_loop import CopyLoop
from heliograph.model import TopicPartition
from tests.support.clusters.clients import make_topic, read, write
from tests.support.runs.copying import Copy, HandLease

pytestmark = pytest.mark.broker


def test_records_that_arrive_after_the_stop_leave_no_gap(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic, 1)
    copy = Copy(source, target, alias, topic, partitions=1)
    lease = HandLease()
    loop = CopyLoop(copy.spec(once=False), lease)
    loop._begin()
    loop._schedule._next_at = math.inf  # the end of a commit would let go what is held
    loop._clients.producer.hold()
    for n in range(3):  # three batches are queued, and the next fetch is under way
        write(source, topic, [{"value": f"{n}".encode(), "partition": 0}])
        while loop._clients.fetcher.partitions[TopicPartition(topic, 0)].position != n + 1:
            loop._step(fetch=True)
    write(source, topic, [{"value": b"3", "partition": 0}])  # its answer is there before the stop, but not yet read
    time.sleep(0.5)
    loop._clients.producer.release()
    lease.stop_reason = "test"
    loop._drain()
    loop._clients.network.close()
    assert read(target, copy.remote, 1).get(0, []) == []
    copy.once()
    assert read(target, copy.remote, 1) == read(source, topic, 1)

"""Measures the page of metrics: CPU and size, by partitions, topics and groups.

`python -m bench.metrics_page`. No cluster is needed: snapshots are made here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from heliograph.metrics.page import TEXT, MetricOptions, render
from heliograph.model import Flow, TopicPartition
from heliograph.status.flow_snapshot import Counts, FlowSnapshot, Rates
from heliograph.status.group_status import CheckpointsSnapshot, GroupPartition, GroupStatus
from heliograph.status.partition_status import PartitionState, PartitionStatus
from heliograph.status.process_snapshot import EngineSnapshot, ProcessSnapshot
from heliograph.status.task_status import TaskRow
from heliograph.status.windows import PartitionWindow, Stat

AT = 1_700_000_000.25
ROUNDS = 9
NO_LIMIT = MetricOptions(partitions_max=10**9)
WINDOW = PartitionWindow(1234.5, 987_654.25, Stat(30.5, 10.0, 50.0, 25.125), Stat(40.5, 20.0, 60.0, 35.75))


def partition(tp: TopicPartition, state: PartitionState = PartitionState.COPYING) -> PartitionStatus:
    """Return a partition that is copied."""
    return PartitionStatus(
        tp, f"A.{tp.topic}", state, AT - 3600, None, 1_234_567, 1_240_000, AT, 5_433, 4.25, AT, 1_200_000, 600_000_000,
        window=WINDOW,
    )  # fmt: skip


def process(partitions: tuple[PartitionStatus, ...] = (), groups: tuple[GroupStatus, ...] = ()) -> ProcessSnapshot:
    """Return a process with one flow, whose task has all partitions."""
    flow, tps = Flow("A", "B"), frozenset(each.tp for each in partitions)
    snapshot = FlowSnapshot(
        "A->B", "A->B.MirrorSourceConnector", flow, "RUNNING", AT, AT, (), (), partitions,
        (TaskRow(0, "RUNNING", None, tps),), Counts(), Rates(),
    )  # fmt: skip
    checkpoints = CheckpointsSnapshot("A->B", "A->B.MirrorCheckpointConnector", flow, AT, AT, AT, 1, groups)
    return ProcessSnapshot(AT, (snapshot,), (checkpoints,), (), (), EngineSnapshot(4, 1, 0), None, ())


def of_topics(topics: int, partitions: int, state: PartitionState = PartitionState.COPYING) -> ProcessSnapshot:
    """Return a flow of so many topics with so many partitions each."""
    tps = (TopicPartition(f"orders-{topic:05}", number) for topic in range(topics) for number in range(partitions))
    return process(tuple(partition(tp, state) for tp in tps))


def of_groups(count: int, partitions: int) -> ProcessSnapshot:
    """Return so many groups that each read so many partitions."""
    tps = [TopicPartition(f"orders-{number // 10:05}", number % 10) for number in range(partitions)]
    parts = tuple(
        GroupPartition(tp, TopicPartition(f"A.{tp.topic}", tp.partition), 1_234, 1_200, 34, None, Stat(7.5))
        for tp in tps
    )
    return process(groups=tuple(GroupStatus(f"group-{number:04}", parts, 0.0) for number in range(count)))


def cases() -> Iterator[tuple[str, ProcessSnapshot, MetricOptions]]:
    """Yield what is measured."""
    default = MetricOptions()
    yield "1,000 partitions in 100 topics", of_topics(100, 10), default
    yield "10,000 partitions in 100 topics", of_topics(100, 100), default
    yield "10,000 partitions in 1,000 topics", of_topics(1_000, 10), default
    yield "10,000 partitions in 10,000 topics", of_topics(10_000, 1), default
    yield "10,000 partitions in 1,000 topics, all failed", of_topics(1_000, 10, PartitionState.FAILED), default
    yield "10,000 partitions in 1,000 topics, without limit", of_topics(1_000, 10), NO_LIMIT
    yield "1,000 groups of 1 partition", of_groups(1_000, 1), default
    yield "1,000 groups of 100 partitions", of_groups(1_000, 100), default


def main() -> None:
    """Measure and print."""
    print(f"CPU is the median of {ROUNDS} pages")
    for name, snapshot, options in cases():
        times = []
        for _round in range(ROUNDS):
            began = time.process_time()
            body = render(snapshot, TEXT, options, str).body
            times.append((time.process_time() - began) * 1000)
        lines = body.count(b"\n")
        print(f"  {name:<50}{sorted(times)[ROUNDS // 2]:>8.1f} ms{len(body) / 1e6:>8.2f} MB{lines:>10,} lines")


if __name__ == "__main__":
    main()

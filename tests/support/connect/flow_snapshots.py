"""Snapshots of flows, for tests that show them."""

from __future__ import annotations

from heliograph.diagnostics import problem
from heliograph.model import Flow, TopicPartition
from heliograph.status.flow_snapshot import Counts, FlowSnapshot, Rates
from heliograph.status.partition_status import PartitionState, PartitionStatus
from heliograph.status.task_status import TaskRow

AT = 1_700_000_000.0


def partition(topic: str, number: int, state: PartitionState, lag: int | None) -> PartitionStatus:
    return PartitionStatus(
        tp=TopicPartition(topic, number),
        remote_topic=f"A.{topic}",
        state=state,
        since=AT,
        reason=problem("the batch at offset 7 was refused") if state is PartitionState.FAILED else None,
        next_offset=7,
        log_end=None if lag is None else 7 + lag,
        log_end_at=None if lag is None else AT,
        lag_records=lag,
        lag_seconds=None if lag is None else lag / 10,
        acked_at=None,
        records=7,
        bytes=700,
    )


def flow(name: str, *partitions: PartitionStatus, unready: tuple[str, ...] = ()) -> FlowSnapshot:
    return FlowSnapshot(
        name=name,
        connector=name,
        flow=Flow("A", "B"),
        state="RUNNING",
        since=AT,
        at=AT,
        issues=(),
        unready=unready,
        partitions=partitions,
        tasks=(TaskRow(0, "FAILED", "t-1: no.", frozenset({TopicPartition("t", 0), TopicPartition("t", 1)})),),
        counts=Counts(14, 1400),
        rates=Rates(1.5, 150.0, None),
    )

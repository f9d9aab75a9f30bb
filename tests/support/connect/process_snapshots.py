"""Snapshots of whole processes, for tests of metrics."""

from __future__ import annotations

from dataclasses import replace

from heliograph.model import Flow, TopicPartition
from heliograph.status.flow_snapshot import Counts, FlowSnapshot, LossTotal
from heliograph.status.group_status import CheckpointsSnapshot, GroupPartition, GroupStatus
from heliograph.status.losses import LossCause
from heliograph.status.partition_status import PartitionState, PartitionStatus
from heliograph.status.process_snapshot import (
    Certificate,
    ConnectorRow,
    ConnectorTask,
    EngineSnapshot,
    HeartbeatsSnapshot,
    JvmSnapshot,
    ProcessSnapshot,
    WorkerSnapshot,
)
from heliograph.status.task_status import RestartReason, TaskCounts, TaskGauges, TaskRow
from heliograph.status.windows import LATENCY_BOUNDS_S, LatencyHistogram, PartitionWindow, Stat
from tests.support.connect.flow_snapshots import AT, flow, partition

FLOW = Flow("A", "B")
CONNECTOR = "A->B.MirrorSourceConnector"
HISTOGRAM = LatencyHistogram((*range(len(LATENCY_BOUNDS_S)), 2), 123.5)
WINDOW = PartitionWindow(12.5, 1250.0, Stat(30.0, 10.0, 50.0, 25.0), Stat(40.0, 20.0, 60.0, 35.0))
COUNTS = TaskCounts(14, 1400, 15, 2000, 1900, 3, 1, 45, 2500, HISTOGRAM)
GAUGES = TaskGauges(2, 3, 1_000_000, 250_000, 11, 15.0, 25.0)
WORKER = WorkerSnapshot(is_leader=True, is_rebalancing=False, generation=4, rebalances=2, rebalanced_at=AT - 60)


def copied(
    topic: str, number: int, lag: int | None = 3, state: PartitionState = PartitionState.COPYING
) -> PartitionStatus:
    """Return a partition that a task measures."""
    return partition(topic, number, state, lag)._replace(window=WINDOW, copied_ms=int(AT * 1000) - 2_000)


def flow_of(*partitions: PartitionStatus, name: str = "A->B") -> FlowSnapshot:
    """Return a flow with one task that has the first partitions, and everything known."""
    tps = frozenset(each.tp for each in partitions[:10_000])
    return replace(
        flow(name, *partitions),
        connector=CONNECTOR if name == "A->B" else name,
        tasks=(
            TaskRow(0, "RUNNING", None, tps, COUNTS, GAUGES, {RestartReason.FAILED: 2, RestartReason.PARTITION: 5}),
        ),
        counts=Counts(14, 1400, 0, 0, 1),
        loss_totals={**dict.fromkeys(LossCause, LossTotal(0, 0)), LossCause.SOURCE_TRUNCATED: LossTotal(1, 250)},
        latency=HISTOGRAM,
        catch_up_seconds=float("inf"),
        throttle_bytes_per_s=5_000_000,
        heartbeat_paths={"heartbeats": ("A", "B")},
    )


def group(name: str, *partitions: GroupPartition, lag_seconds: float | None = 0.0) -> GroupStatus:
    return GroupStatus(name, partitions, lag_seconds)


def group_partition(topic: str, number: int, read_again: int | None = 2, since: float | None = None) -> GroupPartition:
    translated = None if read_again is None else 40
    return GroupPartition(
        TopicPartition(topic, number),
        TopicPartition(f"A.{topic}", number),
        42,
        translated,
        read_again,
        since,
        Stat(7.0),
    )


def checkpoints_of(*groups: GroupStatus) -> CheckpointsSnapshot:
    return CheckpointsSnapshot("A->B", "A->B.MirrorCheckpointConnector", FLOW, AT, AT - 3, AT - 30, 12, groups)


def process_of(
    *flows: FlowSnapshot, checkpoints: tuple[CheckpointsSnapshot, ...] = (), worker: WorkerSnapshot | None = None
) -> ProcessSnapshot:
    """Return a process in which everything is known."""
    return ProcessSnapshot(
        AT,
        flows,
        checkpoints,
        (HeartbeatsSnapshot("A->B.MirrorHeartbeatConnector", FLOW, 17, AT - 1),),
        tuple(
            ConnectorRow(
                f"A->B.Mirror{kind}Connector",
                f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
                "source",
                "4.3.1",
                "RUNNING",
                (ConnectorTask(0, "RUNNING"),),
            )
            for kind in ("Source", "Checkpoint", "Heartbeat")
        ),
        EngineSnapshot(4, 1, 0, JvmSnapshot(100_000_000, 50_000_000, 1.5, 12, 80)),
        worker,
        (Certificate("B", "own", "CN=b-1", AT + 86_400),),
    )


def whole(worker: WorkerSnapshot | None = None) -> ProcessSnapshot:
    """Return a process with a flow of three partitions and two groups."""
    partitions = (copied("heartbeats", 0, 0), copied("orders", 0), copied("orders", 1, None, PartitionState.FAILED))
    return process_of(
        flow_of(*partitions),
        checkpoints=(
            checkpoints_of(
                group("g", group_partition("orders", 0), group_partition("orders", 1, None, AT - 9), lag_seconds=9.0),
                group("idle", group_partition("orders", 0, 0)),
            ),
        ),
        worker=worker,
    )

"""Flows and partitions as JSON values, for `/heliograph/v1` and `--json`. Times are UTC, as in RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.status.flow_snapshot import FlowSnapshot
    from heliograph.status.losses import Loss
    from heliograph.status.partition_status import PartitionStatus


def flow_json(snapshot: FlowSnapshot, hide: Callable[[str], str] = str) -> dict[str, Any]:
    """Return the sums of a flow, without its partitions; `hide` removes secrets from texts."""
    lag, rates = snapshot.lag, snapshot.rates
    return {
        "name": snapshot.name,
        "connector": snapshot.connector,
        "source": snapshot.flow.source,
        "target": snapshot.flow.target,
        "state": snapshot.state,
        "since": time_json(snapshot.since),
        "at": time_json(snapshot.at),
        "ready": not snapshot.unready,
        "unready_reasons": [hide(reason) for reason in snapshot.unready],
        "issues": [hide(issue) for issue in (*snapshot.issues, *(each.text for each in snapshot.loop_issues))],
        "partitions": {"total": len(snapshot.partitions), **{s.value: n for s, n in snapshot.by_state.items()}},
        "lag_records": lag.records,
        "lag_records_at_least": lag.known_records,
        "lag_seconds": _rounded(lag.seconds),
        "partitions_with_unknown_lag": lag.unknown_partitions,
        **snapshot.counts._asdict(),
        "records_per_second": _rounded(rates.records_per_s),
        "bytes_per_second": _rounded(rates.bytes_per_s),
        "latency_ms": _rounded(rates.latency_ms),
        "tasks": [
            {
                "id": task.number,
                "state": task.state,
                "partitions": task.partitions,
                "trace": None if task.trace is None else hide(task.trace),
            }
            for task in snapshot.tasks
        ],
        "tasks_changed": snapshot.tasks_changed,
    }


def partition_json(partition: PartitionStatus, hide: Callable[[str], str] = str) -> dict[str, Any]:
    """Return one partition; `hide` removes secrets from its reason."""
    return {
        "topic": partition.tp.topic,
        "partition": partition.tp.partition,
        "remote_topic": partition.remote_topic,
        "state": partition.state.value,
        "since": time_json(partition.since),
        "reason": None if partition.reason is None else hide(str(partition.reason)),
        "position": partition.next_offset,
        "log_end": partition.log_end,
        "log_end_at": time_json(partition.log_end_at),
        "lag_records": partition.lag_records,
        "lag_seconds": _rounded(partition.lag_seconds),
        "last_acknowledged": time_json(partition.acked_at),
        "records": partition.records,
        "bytes": partition.bytes,
    }


def loss_json(name: str, loss: Loss) -> dict[str, Any]:
    """Return one loss of the flow of this name."""
    return {
        "at": time_json(loss.at_ms / 1000),
        "flow": name,
        "topic": loss.topic,
        "partition": loss.partition,
        "first_offset": loss.first_offset,
        "last_offset": loss.last_offset,
        "count": loss.count,
        "count_is_exact": loss.is_exact,
        "cause": loss.cause.value,
    }


def time_json(seconds: float | None) -> str | None:
    """Return a time to the millisecond; None if there is none."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)

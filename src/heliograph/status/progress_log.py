"""Decides which lines of a log describe a flow that runs: few, however many topics it has.

One line sums up the flow in each interval in which something moved, and every ten minutes if nothing did. It names the
topics that are most behind. Partitions that wait or retry, and those that copy again, are one line for each state, not
one for each partition; a wait or a retry is reported only once it lasts, since a leader may move at any time. The start
of a failure and an issue of a whole task are logged elsewhere, when they happen.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from heliograph.model import counted
from heliograph.status.partition_status import PartitionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from heliograph.model import TopicPartition
    from heliograph.status.flow_snapshot import Counts, FlowSnapshot, Lag
    from heliograph.status.partition_status import PartitionStatus


# Often enough to see in which minute a rate has changed; REST has the values of each moment.
SUMMARY_INTERVAL_S = 30.0
IDLE_INTERVAL_S = 600.0
LASTS_S = 5.0
_MOST_BEHIND = 3
_MOST_NAMES = 3


class LineKind(Enum):
    """The importance of a line."""

    SUMMARY = "summary"
    BEGINS = "begins"  # partitions are not copied
    ENDS = "ends"  # they are copied again


class ProgressLine(NamedTuple):
    """A line of the log; `topic` and `partition` are set if it is about one of them."""

    kind: LineKind
    text: str
    topic: str | None = None
    partition: int | None = None


class _Summary(NamedTuple):
    at: float
    records: int
    bytes: int
    known_lag: int
    by_state: tuple[int, ...]

    def is_same(self, other: _Summary) -> bool:
        return self[1:] == other[1:]


class ProgressLog:
    """The lines of one flow. The caller passes a snapshot every few seconds, with the time of a clock of its own.

    `counted_before` is what earlier runs have copied.
    """

    def __init__(self, now: float, counted_before: Counts) -> None:
        self._last = _Summary(now, counted_before.records, counted_before.bytes, 0, ())
        self._due_at = now + SUMMARY_INTERVAL_S
        self._stopped: set[TopicPartition] = set()  # those of which the log says so

    def lines(self, snapshot: FlowSnapshot, now: float) -> list[ProgressLine]:
        """Return the lines that are due."""
        changes = self._changes(snapshot)
        if now < self._due_at:
            return changes
        self._due_at = now + SUMMARY_INTERVAL_S
        return [*changes, *self._summary(snapshot, now)]

    def _summary(self, snapshot: FlowSnapshot, now: float) -> list[ProgressLine]:
        counts, lag, last = snapshot.counts, snapshot.lag, self._last
        states = tuple(snapshot.by_state.values())
        current = _Summary(now, counts.records, counts.bytes, lag.known_records, states)
        if current.is_same(last) and now - last.at < IDLE_INTERVAL_S:
            return []
        # Rates are those of the last interval: the one before may have been idle for minutes.
        elapsed_s = min(now - last.at, SUMMARY_INTERVAL_S) or 1.0
        records, size = max(0, counts.records - last.records), max(0, counts.bytes - last.bytes)
        self._last = current
        parts = [_partitions(snapshot), f"{records / elapsed_s:,.0f} records/s", f"{size / elapsed_s / 1e6:,.1f} MB/s"]
        return [ProgressLine(LineKind.SUMMARY, ", ".join([*parts, _lag(lag)]) + _most_behind(snapshot.partitions))]

    def _changes(self, snapshot: FlowSnapshot) -> list[ProgressLine]:
        """Return what has begun and what has ended since the last look."""
        not_copied = {each.tp: each for each in snapshot.partitions if each.stopped_since is not None}
        lines = []
        for state in (PartitionState.RETRYING, PartitionState.WAITING):
            new = [
                each
                for tp, each in not_copied.items()
                if each.state is state and tp not in self._stopped and _lasts(each, snapshot)
            ]
            if new:
                self._stopped.update(each.tp for each in new)
                lines.append(_line(LineKind.BEGINS, [each.tp for each in new], f"{state.value}{_reason(new)}"))
        ended = [each.tp for each in snapshot.partitions if each.tp in self._stopped and each.tp not in not_copied]
        if ended:
            lines.append(_line(LineKind.ENDS, ended, "no longer held up"))
        self._stopped.intersection_update(not_copied)  # also those that are no longer replicated
        self._stopped.update(tp for tp, each in not_copied.items() if each.state is PartitionState.FAILED)
        return lines


def _lasts(partition: PartitionStatus, snapshot: FlowSnapshot) -> bool:
    """Return whether it stands still for a while by a reason of its own."""
    since = partition.stopped_since
    return since is not None and snapshot.at - since >= LASTS_S and partition.reason not in snapshot.task_issues


def _line(kind: LineKind, tps: Sequence[TopicPartition], what: str) -> ProgressLine:
    topics = list(dict.fromkeys(tp.topic for tp in tps))
    if len(tps) == 1:
        return ProgressLine(kind, f"{tps[0]}: {what}", tps[0].topic, tps[0].partition)
    named = topics[0] if len(topics) == 1 else None
    return ProgressLine(kind, f"{counted(len(tps), 'partition')} of {_named(topics)}: {what}", named)


def _named(topics: Sequence[str]) -> str:
    more = f" and {len(topics) - _MOST_NAMES} more topics" if len(topics) > _MOST_NAMES + 1 else ""
    shown = topics[:_MOST_NAMES] if more else topics
    return ", ".join(shown) + more


def _reason(partitions: Sequence[PartitionStatus]) -> str:
    reasons = list(dict.fromkeys(str(each.reason) for each in partitions if each.reason is not None))
    if not reasons:
        return ""
    more = f" (and {counted(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
    return f": {reasons[0]}{more}"


def _partitions(snapshot: FlowSnapshot) -> str:
    states = [f"{count:,} {state.value.replace('_', ' ')}" for state, count in snapshot.by_state.items() if count]
    total = f"{len(snapshot.partitions):,} partition{'' if len(snapshot.partitions) == 1 else 's'}"
    return f"{total} ({', '.join(states)})" if states else total


def _lag(lag: Lag) -> str:
    seconds = "unknown" if lag.seconds is None else f"{lag.seconds:,.0f}"
    if lag.records is None and not lag.known_records:
        return "lag unknown"
    return f"lag {lag} record{'' if lag.records == 1 else 's'}, {seconds} s"


def _most_behind(partitions: Iterable[PartitionStatus]) -> str:
    """Name the topics with the largest known lag, if the flow has several."""
    lags: dict[str, int] = {}
    for each in partitions:
        lags[each.tp.topic] = lags.get(each.tp.topic, 0) + (each.lag_records or 0)
    worst = sorted((-lag, topic) for topic, lag in lags.items() if lag)[:_MOST_BEHIND]
    if not worst or len(lags) == 1:
        return ""
    return "; most behind: " + ", ".join(f"{topic} {-lag:,}" for lag, topic in worst)

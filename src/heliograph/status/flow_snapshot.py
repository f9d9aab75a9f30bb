"""A flow at one moment: its partitions, its tasks, sums over them, and whether it is ready."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.model import counted
from heliograph.status.partition_status import PartitionState
from heliograph.status.windows import LatencyHistogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from heliograph.diagnostics import Diagnostic
    from heliograph.model import Flow
    from heliograph.status.losses import Loss, LossCause
    from heliograph.status.partition_status import PartitionStatus
    from heliograph.status.task_status import TaskRow

_MOMENT_S = 5.0


class Lag(NamedTuple):
    """The lag of several partitions.

    `records` is None if the lag of any partition is unknown; `known_records` is the sum over the others, which is what
    the flow is behind at least. `seconds` is the largest, None if that of a partition is unknown. `unknown_partitions`
    is None while the partitions themselves are unknown.
    """

    records: int | None
    known_records: int
    unknown_partitions: int | None
    seconds: float | None

    @classmethod
    def of(cls, partitions: Iterable[PartitionStatus]) -> Lag:
        """Sum up; failed and waiting partitions count like all others."""
        known = unknown = 0
        seconds: float | None = 0.0
        for partition in partitions:
            if partition.lag_records is None:
                unknown += 1
            else:
                known += partition.lag_records
            if partition.lag_seconds is None:
                seconds = None
            elif seconds is not None:
                seconds = max(seconds, partition.lag_seconds)
        return cls(None if unknown else known, known, unknown, seconds)

    @classmethod
    def unknown(cls) -> Lag:
        """Return the lag of partitions that are not known yet."""
        return cls(None, 0, None, None)

    def __str__(self) -> str:
        if self.records is not None:
            return f"{self.records:,}"
        return f"at least {self.known_records:,}" if self.known_records else "unknown"


class Counts(NamedTuple):
    """Counters, summed over all runs of the tasks since the process started."""

    records: int = 0
    bytes: int = 0
    lost_offsets: int = 0
    cut_offsets: int = 0
    skipped_records: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(*map(sum, zip(self, other, strict=True)))

    @classmethod
    def sum_of(cls, counts: Iterable[Counts]) -> Counts:
        """Return the sums over several."""
        total = cls()
        for each in counts:
            total = total.plus(each)
        return total


class Rates(NamedTuple):
    """Records and bytes a second over the last seconds, and the mean latency of batches; None without any."""

    records_per_s: float = 0.0
    bytes_per_s: float = 0.0
    latency_ms: float | None = None


class LossTotal(NamedTuple):
    """All losses of one cause that are known, also those that are no longer kept in memory."""

    events: int
    records: int


@dataclass(frozen=True, slots=True)
class FlowSnapshot:
    """One flow at one moment.

    `name` identifies it in REST: `A->B`, or the connector's name on a worker. `unready` is why it is not ready: it has
    not begun, cannot reach a cluster, or is stalled; one that was paused or stopped on request is ready. `losses` are
    the newest that are known, the newest first.
    """

    name: str
    connector: str
    flow: Flow
    state: str
    since: float
    at: float
    issues: tuple[str, ...]
    unready: tuple[str, ...]
    partitions: tuple[PartitionStatus, ...]
    tasks: tuple[TaskRow, ...]
    counts: Counts
    rates: Rates
    losses: tuple[Loss, ...] = ()
    loop_issues: tuple[LoopIssue, ...] = ()  # of the flow's other connectors, if it has them
    task_issues: frozenset[Diagnostic] = frozenset()  # reasons that hold for all partitions of a task
    tasks_changed: str | None = None  # why the number of tasks has changed last
    loss_totals: Mapping[LossCause, LossTotal] = field(default_factory=dict)  # without causes that are not known
    latency: LatencyHistogram = LatencyHistogram()  # noqa: RUF009  (immutable)
    catch_up_seconds: float | None = None  # infinite if the lag does not fall
    throttle_bytes_per_s: int = 0  # the limit that is configured, 0 is none
    heartbeat_paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # clusters, by topic of heartbeats
    has_found_partitions: bool = True  # in this run of the flow; until then it may have others than `partitions`

    @property
    def lag(self) -> Lag:
        """The lag of all partitions; unknown until the flow has found them."""
        return Lag.of(self.partitions) if self.has_found_partitions else Lag.unknown()

    @property
    def by_state(self) -> dict[PartitionState, int]:
        """The number of partitions in each state, in the order of the states."""
        counts = Counter(partition.state for partition in self.partitions)
        return {state: counts[state] for state in PartitionState}


class LoopIssue(NamedTuple):
    """An issue of the checkpoints or heartbeats of a flow, with the connector that has them."""

    connector: str
    text: str


class UnreadyFlow(NamedTuple):
    """One reason why a flow is not ready; without names, for a caller that may not see it."""

    name: str | None
    connector: str | None
    reason: str

    @classmethod
    def all_of(cls, flows: Iterable[FlowSnapshot]) -> list[UnreadyFlow]:
        """Return every reason of every flow."""
        return [cls(flow.name, flow.connector, reason) for flow in flows for reason in flow.unready]


class FlowLosses(NamedTuple):
    """The newest losses of a flow, the newest first; `name` and `connector` are those of its snapshot."""

    name: str
    connector: str
    losses: tuple[Loss, ...]

    @classmethod
    def of(cls, snapshot: FlowSnapshot) -> FlowLosses:
        """Return the losses of a flow."""
        return cls(snapshot.name, snapshot.connector, snapshot.losses)


def stall_reasons(partitions: Sequence[PartitionStatus], now: float) -> tuple[str, ...]:
    """Return why a flow does not move: all its partitions have failed, or none of those that are behind is copied.

    A failed partition beside others is no stall, and neither is a moment: a leader may be moving.
    """
    if partitions and all(each.state is PartitionState.FAILED for each in partitions):
        return (f"all its partitions have failed: {partitions[0].reason}",)
    behind = [each for each in partitions if each.lag_records != 0 and each.state is not PartitionState.FAILED]
    behind = [each for each in behind if each.state is not PartitionState.DONE]
    stopped = [each for each in behind if each.stopped_since is not None and now - each.stopped_since >= _MOMENT_S]
    if not stopped or len(stopped) < len(behind):
        return ()
    reason = next((each.reason for each in stopped if each.reason), None)
    count = counted(len(stopped), "partition")
    what = f"{count} of {len(partitions):,} {'is' if len(stopped) == 1 else 'are'} not copied"
    return (f"{what}: {reason}" if reason else what,)

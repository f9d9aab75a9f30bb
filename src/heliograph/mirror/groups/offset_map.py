"""Translates offsets of a flow between its source and its target.

`OffsetMap` is fed with the flow's offset syncs. Inside the runs that Heliograph wrote (`RunMap`) translation is exact;
for syncs of Java MM2, and before our first run, it is Java's (`PartitionSyncStore`).

`translate(u)` answers for a group that has read everything before `u` on the source. Invariants:
A. It never passes an unread record: every record copied from `u` or later is at the answer or after it.
B. Inside a run, and in a gap whose neighbours are known, no record is read again either.
C. Dropping runs keeps A: offsets of a dropped run are translated to the end of the run before it.
D. Everything known is of one log on the target. A sync with another topic id, or whose record is before the offset that
   A allows, is of another log, and everything known before is dropped.
E. The number of runs is bounded, for a partition and for all together: old runs of the largest partitions are dropped.
`upstream_of(d)` translates back, for a group that has read the copy up to `d`; A to C hold with the sides exchanged.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from heliograph.model import OffsetRun, OffsetSync, TopicPartition


_MOST_RUNS = 1_000_000
_MOST_RUNS_IN_ALL = 20_000_000  # 480 MB
_KEPT_PERCENT = 90  # so that runs are not dropped again at once
SLOTS = 64  # of Java's store


class Pair(NamedTuple):
    """One record's offset on both clusters."""

    upstream: int
    downstream: int


class Translator(Protocol):
    """Translates offsets of a flow's source to its target and back; `tp` is always the partition on the source."""

    def translate(self, tp: TopicPartition, upstream: int) -> int | None:
        """Return the downstream offset; None if the partition is not known, negative if nothing reaches back so far."""

    def upstream_of(self, tp: TopicPartition, downstream: int) -> int | None:
        """Translate back, in the same way."""

    def contradicts(self, tp: TopicPartition, upstream: int, downstream: int) -> bool:
        """Return whether a group that has read up to `upstream` would miss a record if it resumed at `downstream`."""

    def log_of(self, tp: TopicPartition) -> UUID | None:
        """Return the id of the topic on the target that the downstream offsets are of; None is not known."""


class OffsetMap:
    """The offset map of all partitions of a flow, fed with its offset syncs in the order of their topic."""

    def __init__(self) -> None:
        self._latest: dict[TopicPartition, Pair] = {}
        self._runs: dict[TopicPartition, RunMap] = {}
        self._run_count = 0  # over all partitions
        self._stores: dict[TopicPartition, PartitionSyncStore] = {}  # of syncs that Java wrote
        self._logs: dict[TopicPartition, UUID] = {}
        self._replaced_logs: set[TopicPartition] = set()

    def take_replaced_logs(self) -> set[TopicPartition]:
        """Return partitions whose log on the target was replaced since the last call: earlier translations are void."""
        replaced, self._replaced_logs = self._replaced_logs, set()
        return replaced

    def take_all(self, syncs: Iterable[OffsetSync | None]) -> None:
        """Take syncs; those that could not be decoded (None) are skipped."""
        for sync in syncs:
            if sync is not None:
                self.take(sync)

    def take(self, sync: OffsetSync) -> None:
        """Take one sync."""
        tp, upstream, downstream, runs, log_id = sync
        if runs is not None and not runs:
            return  # a mark, which only Java needs: the sync after it has the runs
        if log_id is not None:
            self._take_log(tp, log_id)
        latest = self._latest.get(tp)
        if latest is not None:
            goes_back = upstream <= latest.upstream or downstream <= latest.downstream
            if goes_back or (runs is not None and tp not in self._runs):
                self._check_history(sync, latest)
        self._latest[tp] = Pair(upstream, downstream)
        if runs is None:
            self._take_java_sync(sync)
            return
        known = self._runs.setdefault(tp, RunMap())
        count_before = len(known)
        for run in runs:
            if known.add(run):
                self._replace_log(tp)
        self._run_count += len(known) - count_before
        if self._run_count > _MOST_RUNS_IN_ALL:
            self._thin_largest()

    def _take_log(self, tp: TopicPartition, log_id: UUID) -> None:
        if self._logs.setdefault(tp, log_id) != log_id:
            self._logs[tp] = log_id
            self._latest.pop(tp, None)
            self._drop_runs(tp)
            self._replace_log(tp)

    def log_of(self, tp: TopicPartition) -> UUID | None:
        """Return the id of the remote topic that the last sync with an id was of; None without any."""
        return self._logs.get(tp)

    def _thin_largest(self) -> None:
        """Drop old runs of the largest partitions until there is room again."""
        by_size = [(-len(runs), at, runs) for at, runs in enumerate(self._runs.values())]
        heapify(by_size)
        while self._run_count * 100 > _MOST_RUNS_IN_ALL * _KEPT_PERCENT:
            minus_size, at, largest = by_size[0]
            largest.thin()
            if len(largest) == -minus_size:
                return  # no partition has enough runs to drop some
            self._run_count += minus_size + len(largest)
            heapreplace(by_size, (-len(largest), at, largest))

    def _drop_runs(self, tp: TopicPartition) -> None:
        self._run_count -= len(self._runs.pop(tp, ()))

    def _check_history(self, sync: OffsetSync, latest: Pair) -> None:
        """Drop the history if a sync is of another log; if it rewinds the source, only Java's, by Java's rule."""
        reported = [sync[1:3], *(run[:2] for run in (sync.runs or ())[:1])]
        if any((self.translate(sync.tp, upstream) or -1) > downstream for upstream, downstream in reported):
            self._drop_runs(sync.tp)
            self._replace_log(sync.tp)
        elif sync.upstream < latest.upstream:
            self._stores.pop(sync.tp, None)

    def _replace_log(self, tp: TopicPartition) -> None:
        self._stores.pop(tp, None)
        self._replaced_logs.add(tp)

    def _take_java_sync(self, sync: OffsetSync) -> None:
        if sync.tp in self._runs:
            self._check_runs(sync)
        pair = Pair(sync.upstream, sync.downstream)
        if sync.tp in self._stores:
            self._stores[sync.tp].add(pair)
        else:
            self._stores[sync.tp] = PartitionSyncStore(pair)

    def _check_runs(self, sync: OffsetSync) -> None:
        """Drop our runs if Java MM2 has taken over and has copied again what we had copied."""
        known = self._runs[sync.tp].translate(sync.upstream)
        if known is not None and known[1] and known[0] != sync.downstream:
            self._drop_runs(sync.tp)

    def translate(self, tp: TopicPartition, upstream: int) -> int | None:
        """Return the downstream offset; None if the partition is not known, -1 if no sync reaches back so far."""
        if tp not in self._latest:
            return None
        runs, store = self._runs.get(tp), self._stores.get(tp)
        found = runs.translate(upstream) if runs is not None else None
        downstream, is_inside = found or (-1, False)
        return downstream if is_inside or store is None else max(downstream, store.translate(upstream))

    def upstream_of(self, tp: TopicPartition, downstream: int) -> int | None:
        """Return where a group that has read the copy of `tp` up to `downstream` may resume on the source.

        None if the partition is not known, -1 if no sync reaches back so far.
        """
        if tp not in self._latest:
            return None
        runs, store = self._runs.get(tp), self._stores.get(tp)
        found = runs.upstream_of(downstream) if runs is not None else None
        upstream, is_inside = found or (-1, False)
        return upstream if is_inside or store is None else max(upstream, store.upstream_of(downstream))

    def contradicts(self, tp: TopicPartition, upstream: int, downstream: int) -> bool:
        """Return whether a group that has read up to `upstream` would miss a record if it resumed at `downstream`.

        Our translation never does. So this one was made for an earlier log, which was longer, since a copy that is
        made again in the same log comes after the first.
        """
        runs, store = self._runs.get(tp), self._stores.get(tp)
        firsts = (known.first_from(upstream) for known in (runs, store) if known is not None)
        return any(first is not None and first < downstream for first in firsts)


class InverseMap:
    """The map of the reverse flow with its sides exchanged: from copies of the target's topics to these topics.

    `original` returns the partition on the target that a partition of the source is a copy of.
    """

    def __init__(self, reverse: OffsetMap, original: Callable[[TopicPartition], TopicPartition | None]) -> None:
        self._reverse = reverse
        self._original = original

    def translate(self, tp: TopicPartition, upstream: int) -> int | None:
        """Return the offset in the original for an offset in the copy `tp`."""
        original = self._original(tp)
        return None if original is None else self._reverse.upstream_of(original, upstream)

    def upstream_of(self, tp: TopicPartition, downstream: int) -> int | None:
        """Return the offset in the copy `tp` for an offset in the original."""
        original = self._original(tp)
        return None if original is None else self._reverse.translate(original, downstream)

    def log_of(self, tp: TopicPartition) -> UUID | None:
        """Return None: the reverse flow's syncs have the ids of its remote topics, not of the originals."""

    def contradicts(self, tp: TopicPartition, upstream: int, downstream: int) -> bool:
        """Return whether records before `downstream` in the original may have copies at or after `upstream`.

        In a gap of the copy the answer may be True although nothing would be missed: the map itself is used then.
        """
        copied_to = self.upstream_of(tp, downstream)
        return copied_to is not None and copied_to > upstream


class RunMap:
    """The runs of one partition, ascending on the source."""

    def __init__(self) -> None:
        self._upstream: array[int] = array("q")
        self._downstream: array[int] = array("q")
        self._count: array[int] = array("q")

    def __len__(self) -> int:
        return len(self._upstream)

    def add(self, run: OffsetRun) -> bool:
        """Add a run; everything known of the source from its first offset on is replaced.

        Return True if it belongs to another log of the target: then all earlier runs are dropped.
        """
        if len(self) and (self._upstream[-1], self._downstream[-1]) == run[:2]:
            self._count[-1] = run.count  # the same run again, usually longer
            return False
        self._cut(run.upstream)
        is_new_log = len(self) > 0 and run.downstream < self._downstream[-1] + self._count[-1]
        if is_new_log:
            self._clear()
        if len(self) and self._continues(run):
            self._count[-1] += run.count
        else:
            self._upstream.append(run.upstream)
            self._downstream.append(run.downstream)
            self._count.append(run.count)
        if len(self) > _MOST_RUNS:
            self.thin()
        return is_new_log

    def _continues(self, run: OffsetRun) -> bool:
        length = self._count[-1]
        return (self._upstream[-1] + length, self._downstream[-1] + length) == (run.upstream, run.downstream)

    def _cut(self, upstream: int) -> None:
        """Drop everything from an upstream offset on."""
        at = bisect_right(self._upstream, upstream - 1)
        del self._upstream[at:], self._downstream[at:], self._count[at:]
        if at:
            self._count[-1] = min(self._count[-1], upstream - self._upstream[-1])

    def _clear(self) -> None:
        del self._upstream[:], self._downstream[:], self._count[:]

    def thin(self) -> None:
        """Drop every other run of the older half."""
        older = len(self) // 2
        for column in (self._upstream, self._downstream, self._count):
            del column[1:older:2]

    def translate(self, upstream: int) -> tuple[int, bool] | None:
        """Return the downstream offset, and whether `upstream` lies inside a run; None before the first run."""
        at = bisect_right(self._upstream, upstream) - 1
        if at < 0:
            return None
        into = upstream - self._upstream[at]
        return self._downstream[at] + min(into, self._count[at]), into < self._count[at]

    def upstream_of(self, downstream: int) -> tuple[int, bool] | None:
        """Return the upstream offset, and whether `downstream` lies inside a run; None before the first run."""
        at = bisect_right(self._downstream, downstream) - 1
        if at < 0:
            return None
        into = downstream - self._downstream[at]
        return self._upstream[at] + min(into, self._count[at]), into < self._count[at]

    def first_from(self, upstream: int) -> int | None:
        """Return the downstream offset of the first known record at or after `upstream`; None if there is none."""
        at = bisect_right(self._upstream, upstream) - 1
        if at >= 0 and (into := upstream - self._upstream[at]) < self._count[at]:
            return self._downstream[at] + into
        return self._downstream[at + 1] if at + 1 < len(self) else None


class PartitionSyncStore:
    """The syncs of one source partition, as Java MM2 keeps them: up to 64, dense near the end and sparse before.

    For partitions whose syncs Java MM2 wrote, and for offsets before our own runs. A translation never interpolates
    between syncs, so it never passes an unread record; it may point at records that the group has read.

    Invariants of the slots (u: upstream offset of a slot; i < j; "distinct" by identity):
    A. Slot 0 holds the latest sync.
    B. For distinct i, j: u[i] <= u[j] + 2^j - 2^i, so that an old sync does not stay in a low slot.
    C. For distinct i, j: u[i] >= u[j] + 2^max(i - 2, 0), so that slots are not wasted on syncs close together.
    D. Slot 63 holds the earliest sync that can be used.
    If a sum exceeds 64 signed bits, Java counts B as kept and C as broken; sums without a limit, as here, say the same.
    """

    def __init__(self, first: Pair) -> None:
        self._slots = [first] * SLOTS

    @property
    def distinct(self) -> dict[int, Pair]:
        """Each sync once, by its lowest slot."""
        slots = self._slots
        return {slot: pair for slot, pair in enumerate(slots) if not slot or pair is not slots[slot - 1]}

    @property
    def latest(self) -> Pair:
        """The sync that was added last."""
        return self._slots[0]

    def add(self, pair: Pair, *, keep_history: bool = True) -> None:
        """Add a sync; a rewind of the source, or `keep_history=False`, drops all others."""
        if not keep_history or pair.upstream < self._slots[0].upstream:
            self._slots = [pair] * SLOTS
            return
        self._insert(pair)

    def translate(self, upstream: int) -> int:
        """Return where a group that has read everything before `upstream` may resume; -1 if no sync reaches back."""
        for pair in self._slots:
            if pair.upstream <= upstream:
                return pair.downstream + (0 if pair.upstream == upstream else 1)
        return -1

    def upstream_of(self, downstream: int) -> int:
        """Translate back by the same rule; -1 if no sync reaches back to `downstream`."""
        for pair in self._slots:
            if pair.downstream <= downstream:
                return pair.upstream + (0 if pair.downstream == downstream else 1)
        return -1

    def first_from(self, upstream: int) -> int | None:
        """Return the downstream offset of the first known record at or after `upstream`; None if there is none."""
        return next((pair.downstream for pair in reversed(self._slots) if pair.upstream >= upstream), None)

    def _insert(self, pair: Pair) -> None:
        before = list(self._slots)
        slots = self._slots
        slots[0] = pair
        displaced, candidate_at = pair, 0
        for current in range(1, SLOTS):
            displaced, candidate_at = self._next_displaced(before, displaced, candidate_at, current)
            if _holds_b(slots[current - 1], slots[current], current - 1, current):
                return  # and so it does for all slots above
            slots[current] = displaced

    def _next_displaced(self, before: list[Pair], displaced: Pair, candidate_at: int, current: int) -> tuple[Pair, int]:
        """Return the sync for slot `current`: the latest of those before it that keeps B and C on both sides.

        `candidate_at` moves past syncs that no higher slot can use either: copies of the next slot's, and those too
        close to the slot below.
        """
        below = self._slots[current - 1]
        while True:
            candidate = before[candidate_at]
            is_apart_from_below = _holds_c(below, candidate, current - 1)
            is_fitting = (
                is_apart_from_below
                and _holds_b(below, candidate, current - 1, current)
                and (current + 1 >= SLOTS or _holds_c(candidate, self._slots[current + 1], current))
            )
            if is_fitting:
                displaced = candidate
            is_copy = candidate_at + 1 < SLOTS and candidate is before[candidate_at + 1]
            is_passed = is_copy or not is_apart_from_below
            if is_fitting or is_passed:
                candidate_at += 1
            if candidate_at >= current or not is_passed:
                return displaced, candidate_at


def _holds_b(low: Pair, high: Pair, i: int, j: int) -> bool:
    return low.upstream <= high.upstream + (1 << j) - (1 << i)


def _holds_c(low: Pair, high: Pair, i: int) -> bool:
    return low is high or low.upstream >= high.upstream + (1 << max(i - 2, 0))

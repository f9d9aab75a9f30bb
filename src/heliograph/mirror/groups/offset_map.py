"""Where the records of a source partition went: exact inside the runs Heliograph wrote, Java MM2's rule elsewhere.

`translate(u)` answers for a group that has read everything before `u` on the source. Invariants:
A. It never passes an unread record: every record copied from `u` or later stands at the answer or behind it.
B. Inside a run, and in a gap whose neighbours are known, nothing that was read comes again either.
C. Forgetting runs keeps A: what was in a forgotten run is translated to the end of the run before it.
`upstream_of(d)` is the way back, for a group that has read the copy up to `d`; A to C hold with the sides changed.
D. What is known is of one log on the target. A sync that says a record stands before the place where A allows it is of
   another log, and everything known before is forgotten.
E. Runs of a partition, and of all partitions together, are bounded: where there are too many, old ones of the
   partitions with the most are forgotten.


Java MM2's way to translate offsets: up to 64 syncs per partition, dense near the end, sparse far behind it.

For partitions whose syncs Java MM2 wrote, and for what lies before our own runs begin. A translation never interpolates
between syncs, so it never passes an unread record; it may point at records the group has read already.

Invariants of the slots (u: upstream offset of a slot; i < j; "distinct" by identity):
A. Slot 0 holds the latest sync.
B. For distinct i, j: u[i] <= u[j] + 2^j - 2^i, so that an old sync is not kept in a low slot for ever.
C. For distinct i, j: u[i] >= u[j] + 2^max(i - 2, 0), so that slots are not wasted on syncs close together.
D. Slot 63 holds the earliest sync that can be used.
Where a sum passes 64 signed bits, Java counts B as kept and C as broken; sums without a limit, as here, say the same.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.model import OffsetRun, OffsetSync, TopicPartition


SLOTS = 64


class Pair(NamedTuple):
    """One record's offset on both sides."""

    upstream: int
    downstream: int


class PartitionSyncStore:
    """The syncs of one source partition."""

    def __init__(self, first: Pair) -> None:
        self._slots = [first] * SLOTS

    @property
    def distinct(self) -> dict[int, Pair]:
        """Each sync once, by its lowest slot."""
        slots = self._slots
        return {slot: pair for slot, pair in enumerate(slots) if not slot or pair is not slots[slot - 1]}

    @property
    def latest(self) -> Pair:
        """The sync taken last."""
        return self._slots[0]

    def add(self, pair: Pair, *, keep_history: bool = True) -> None:
        """Take a sync; a rewind of the source, or a word that history cannot be trusted, forgets all others."""
        if not keep_history or pair.upstream < self._slots[0].upstream:
            self._slots = [pair] * SLOTS
            return
        self._insert(pair)

    def translate(self, upstream: int) -> int:
        """Where a group that has read everything before `upstream` may go on; -1 where no sync reaches back to it."""
        for pair in self._slots:
            if pair.upstream <= upstream:
                return pair.downstream + (0 if pair.upstream == upstream else 1)
        return -1

    def upstream_of(self, downstream: int) -> int:
        """The way back, by the same rule: -1 where no sync reaches back to `downstream`."""
        for pair in self._slots:
            if pair.downstream <= downstream:
                return pair.upstream + (0 if pair.downstream == downstream else 1)
        return -1

    def first_from(self, upstream: int) -> int | None:
        """Where the first record that is known at or behind `upstream` stands; None where none is."""
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
        """The sync that would take slot `current`: the latest of those before it that keeps B and C on both sides.

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


_MOST_RUNS = 1_000_000
_MOST_RUNS_IN_ALL = 20_000_000  # 480 MB
_KEPT_PERCENT = 90  # so that it is long until the next time


class RunMap:
    """The runs of one partition, ascending on the source."""

    def __init__(self) -> None:
        self._upstream: array[int] = array("q")
        self._downstream: array[int] = array("q")
        self._count: array[int] = array("q")

    def __len__(self) -> int:
        return len(self._upstream)

    def add(self, run: OffsetRun) -> bool:
        """Take a run; what was known of the source from its beginning on is replaced.

        True where it belongs to another log of the target: then nothing that was known before is there any more.
        """
        if len(self) and (self._upstream[-1], self._downstream[-1]) == run[:2]:
            self._count[-1] = run.count  # told again, mostly longer
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
        """Forget everything from an upstream offset on."""
        at = bisect_right(self._upstream, upstream - 1)
        del self._upstream[at:], self._downstream[at:], self._count[at:]
        if at:
            self._count[-1] = min(self._count[-1], upstream - self._upstream[-1])

    def _clear(self) -> None:
        del self._upstream[:], self._downstream[:], self._count[:]

    def thin(self) -> None:
        """Forget every other run of the older half."""
        older = len(self) // 2
        for column in (self._upstream, self._downstream, self._count):
            del column[1:older:2]

    def translate(self, upstream: int) -> tuple[int, bool] | None:
        """The downstream offset, and whether `upstream` lies inside a run; None before the first run."""
        at = bisect_right(self._upstream, upstream) - 1
        if at < 0:
            return None
        into = upstream - self._upstream[at]
        return self._downstream[at] + min(into, self._count[at]), into < self._count[at]

    def upstream_of(self, downstream: int) -> tuple[int, bool] | None:
        """The upstream offset, and whether `downstream` lies inside a run; None before the first run."""
        at = bisect_right(self._downstream, downstream) - 1
        if at < 0:
            return None
        into = downstream - self._downstream[at]
        return self._upstream[at] + min(into, self._count[at]), into < self._count[at]

    def first_from(self, upstream: int) -> int | None:
        """Where the first record that is known at or behind `upstream` stands; None where none is."""
        at = bisect_right(self._upstream, upstream) - 1
        if at >= 0 and (into := upstream - self._upstream[at]) < self._count[at]:
            return self._downstream[at] + into
        return self._downstream[at + 1] if at + 1 < len(self) else None


class OffsetMap:
    """All partitions of a flow, fed with its offset syncs in the order of their topic."""

    def __init__(self) -> None:
        self._latest: dict[TopicPartition, Pair] = {}
        self._runs: dict[TopicPartition, RunMap] = {}
        self._run_count = 0  # over all partitions
        self._stores: dict[TopicPartition, PartitionSyncStore] = {}  # of syncs without runs, which Java wrote
        self._begun_anew: set[TopicPartition] = set()

    def take_begun_anew(self) -> set[TopicPartition]:
        """Partitions whose log on the target has begun anew since the last call: what was translated before is void."""
        begun_anew, self._begun_anew = self._begun_anew, set()
        return begun_anew

    def take_all(self, syncs: Iterable[OffsetSync | None]) -> None:
        """Learn from syncs; what could not be decoded is passed over."""
        for sync in syncs:
            if sync is not None:
                self.take(sync)

    def take(self, sync: OffsetSync) -> None:
        """Learn from one sync."""
        tp, upstream, downstream, runs = sync
        if runs is not None and not runs:
            return  # a mark, which only Java needs: the sync behind it has the runs
        latest = self._latest.get(tp)
        if latest is not None:
            goes_back = upstream <= latest.upstream or downstream <= latest.downstream
            if goes_back or (runs is not None and tp not in self._runs):
                self._look_back(sync, latest)
        self._latest[tp] = Pair(upstream, downstream)
        if runs is None:
            self._take_of_java(sync)
            return
        known = self._runs.setdefault(tp, RunMap())
        count_before = len(known)
        for run in runs:
            if known.add(run):
                self._begin_anew(tp)
        self._run_count += len(known) - count_before
        if self._run_count > _MOST_RUNS_IN_ALL:
            self._thin_largest()

    def _thin_largest(self) -> None:
        """Forget old runs, first where the most are known, until there is room again."""
        by_size = [(-len(runs), at, runs) for at, runs in enumerate(self._runs.values())]
        heapify(by_size)
        while self._run_count * 100 > _MOST_RUNS_IN_ALL * _KEPT_PERCENT:
            minus_size, at, largest = by_size[0]
            largest.thin()
            if len(largest) == -minus_size:
                return  # so few in each that none can be spared
            self._run_count += minus_size + len(largest)
            heapreplace(by_size, (-len(largest), at, largest))

    def _forget_runs(self, tp: TopicPartition) -> None:
        self._run_count -= len(self._runs.pop(tp, ()))

    def _look_back(self, sync: OffsetSync, latest: Pair) -> None:
        """A sync may be of another log, or go back at the source: by Java's rule its history is forgotten then."""
        reported = [sync[1:3], *(run[:2] for run in (sync.runs or ())[:1])]
        if any((self.translate(sync.tp, upstream) or -1) > downstream for upstream, downstream in reported):
            self._forget_runs(sync.tp)
            self._begin_anew(sync.tp)
        elif sync.upstream < latest.upstream:
            self._stores.pop(sync.tp, None)

    def _begin_anew(self, tp: TopicPartition) -> None:
        self._stores.pop(tp, None)
        self._begun_anew.add(tp)

    def _take_of_java(self, sync: OffsetSync) -> None:
        if sync.tp in self._runs:
            self._overtaken_by_java(sync)
        pair = Pair(sync.upstream, sync.downstream)
        if sync.tp in self._stores:
            self._stores[sync.tp].add(pair)
        else:
            self._stores[sync.tp] = PartitionSyncStore(pair)

    def _overtaken_by_java(self, sync: OffsetSync) -> None:
        """Java has taken over: where it copies again what we had copied, its syncs are the truth."""
        known = self._runs[sync.tp].translate(sync.upstream)
        if known is not None and known[1] and known[0] != sync.downstream:
            self._forget_runs(sync.tp)

    def translate(self, tp: TopicPartition, upstream: int) -> int | None:
        """The downstream offset; None where nothing is known of the partition, -1 where nothing reaches back so far."""
        if tp not in self._latest:
            return None
        runs, store = self._runs.get(tp), self._stores.get(tp)
        found = runs.translate(upstream) if runs is not None else None
        downstream, is_inside = found or (-1, False)
        return downstream if is_inside or store is None else max(downstream, store.translate(upstream))

    def upstream_of(self, tp: TopicPartition, downstream: int) -> int | None:
        """The way back: where a group that has read the copy of `tp` up to `downstream` may go on at the source.

        None where nothing is known of the partition, -1 where nothing reaches back so far.
        """
        if tp not in self._latest:
            return None
        runs, store = self._runs.get(tp), self._stores.get(tp)
        found = runs.upstream_of(downstream) if runs is not None else None
        upstream, is_inside = found or (-1, False)
        return upstream if is_inside or store is None else max(upstream, store.upstream_of(downstream))

    def contradicts(self, tp: TopicPartition, upstream: int, downstream: int) -> bool:
        """Whether a group that has read up to `upstream` would miss a record if it went on at `downstream`.

        A translation of ours never leads there. So it was made for another log: one that stood there before and was
        longer, since a copy that is made again in the same log stands further behind.
        """
        runs, store = self._runs.get(tp), self._stores.get(tp)
        firsts = (known.first_from(upstream) for known in (runs, store) if known is not None)
        return any(first is not None and first < downstream for first in firsts)

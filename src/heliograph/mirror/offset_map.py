"""Where the records of a source partition went: exact inside the runs Heliograph wrote, Java MM2's rule elsewhere.

`translate(u)` answers for a group that has read everything before `u` on the source. Invariants:
A. It never passes an unread record: every record copied from `u` or later stands at the answer or behind it.
B. Inside a run, and in a gap whose neighbours are known, nothing that was read comes again either.
C. Forgetting runs keeps A: what was in a forgotten run is translated to the end of the run before it.
`upstream_of(d)` is the way back, for a group that has read the copy up to `d`; A to C hold with the sides changed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from heliograph.mirror.sync_store import Pair, PartitionSyncStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.model import OffsetRun, OffsetSync, TopicPartition

_MOST_RUNS = 1_000_000


class RunMap:
    """The runs of one partition, ascending on the source."""

    def __init__(self) -> None:
        self._upstream: array[int] = array("q")
        self._downstream: array[int] = array("q")
        self._count: array[int] = array("q")

    def __len__(self) -> int:
        return len(self._upstream)

    def add(self, run: OffsetRun) -> None:
        """Take a run; what was known of the source from its beginning on is replaced."""
        self._cut(run.upstream)
        if len(self) and run.downstream < self._downstream[-1] + self._count[-1]:
            self._clear()  # the target's log has begun anew: nothing known of it is there any more
        if len(self) and self._continues(run):
            self._count[-1] += run.count
        else:
            self._upstream.append(run.upstream)
            self._downstream.append(run.downstream)
            self._count.append(run.count)
        if len(self) > _MOST_RUNS:
            self._thin()

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

    def _thin(self) -> None:
        """Of the older half, every other run."""
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


class OffsetMap:
    """All partitions of a flow, fed with its offset syncs in the order of their topic."""

    def __init__(self) -> None:
        self._runs: dict[TopicPartition, RunMap] = {}
        self._stores: dict[TopicPartition, PartitionSyncStore] = {}
        self._begun_anew: set[TopicPartition] = set()

    def take_begun_anew(self) -> set[TopicPartition]:
        """Partitions whose log on the target has begun anew since the last call: what was translated before is void."""
        begun_anew, self._begun_anew = self._begun_anew, set()
        return begun_anew

    def take_all(self, syncs: Iterable[OffsetSync], *, keep_history: bool = True) -> None:
        """Learn from syncs; without `keep_history` only the last of each partition counts, as at Java's start."""
        for sync in syncs:
            self.take(sync, keep_history=keep_history)

    def take(self, sync: OffsetSync, *, keep_history: bool = True) -> None:
        """Learn from one sync."""
        pair = Pair(sync.upstream, sync.downstream)
        store = self._stores.get(sync.tp)
        if store is not None and pair.downstream < store.latest.downstream and pair.upstream >= store.latest.upstream:
            # On at the source, but back on the target: nothing that is known of the target's log is there any more.
            self._runs.pop(sync.tp, None)
            self._begun_anew.add(sync.tp)
            store = None
        if store is None:
            self._stores[sync.tp] = PartitionSyncStore(pair)
        else:
            store.add(pair, keep_history=keep_history)
        if sync.runs is not None:
            runs = self._runs.setdefault(sync.tp, RunMap())
            for run in sync.runs:
                runs.add(run)
        elif sync.tp in self._runs:
            self._overtaken_by_java(sync)

    def _overtaken_by_java(self, sync: OffsetSync) -> None:
        """Java has taken over: where it copies again what we had copied, its syncs are the truth."""
        known = self._runs[sync.tp].translate(sync.upstream)
        if known is not None and known[1] and known[0] != sync.downstream:
            del self._runs[sync.tp]

    def translate(self, tp: TopicPartition, upstream: int) -> int | None:
        """The downstream offset; None where nothing is known of the partition, -1 where nothing reaches back so far."""
        store = self._stores.get(tp)
        if store is None:
            return None
        runs = self._runs.get(tp)
        found = runs.translate(upstream) if runs is not None else None
        if found is None:
            return store.translate(upstream)
        downstream, is_inside = found
        return downstream if is_inside else max(downstream, store.translate(upstream))

    def upstream_of(self, tp: TopicPartition, downstream: int) -> int | None:
        """The way back: where a group that has read the copy of `tp` up to `downstream` may go on at the source.

        None where nothing is known of the partition, -1 where nothing reaches back so far.
        """
        store = self._stores.get(tp)
        if store is None:
            return None
        runs = self._runs.get(tp)
        found = runs.upstream_of(downstream) if runs is not None else None
        if found is None:
            return store.upstream_of(downstream)
        upstream, is_inside = found
        return upstream if is_inside else max(upstream, store.upstream_of(downstream))

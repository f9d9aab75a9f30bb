"""Collects the runs of a source partition in a task, and decides when an offset sync is due.

A *run* is a sequence of records without a gap on both sides; inside of it translation is arithmetic. A sync carries
every run since the last one, so that our translation is exact. Its own two offsets are those of the last record of its
last run, which is all that Java MM2 reads of it. Java's rule (`offset.lag.max`) says how often a sync is due, and marks
in between let Java translate over our syncs about as well as over its own.

Invariant: a run is kept until the sync that carries it is confirmed. Sending a run again, or longer, does no harm.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from heliograph.model import OffsetRun

if TYPE_CHECKING:
    from uuid import UUID

MOST_RUNS_PER_SYNC = 16_000  # of 24 bytes: well below the usual limit of a record
_MAX_UNSENT_RUNS = 1_000_000
_FIELDS = 3
_MARKS_APART = 4
_MARKED_SPAN = 50_000


class DueSync(NamedTuple):
    """A sync to be written: the last record's two offsets, and the runs up to it as flat triples.

    `marks` are syncs of earlier records that are written before it, for Java, which reads no runs.
    """

    upstream: int
    downstream: int
    runs: array[int]
    marks: tuple[tuple[int, int], ...] = ()


class PartitionSyncs:
    """The runs of one source partition that no confirmed sync carries yet.

    `log_id` is the id of the remote topic in which they are; None is not known.
    """

    def __init__(self, lag_max: int) -> None:
        self.log_id: UUID | None = None
        self._lag_max = lag_max
        self._runs: array[int] = array("q")  # upstream, downstream, count; the last run still grows
        self._previous = (-1, -1)
        self._last_synced_downstream = -1
        self._last_synced_upstream = -1
        self._taken_runs = 0
        self._taken_last = (-1, -1)
        self.is_due = False
        self.has_unsent = False

    @property
    def last_run(self) -> OffsetRun | None:
        """The run that still grows."""
        return OffsetRun(*self._runs[-_FIELDS:]) if self._runs else None

    def begin_log(self, log_id: UUID | None) -> None:
        """Note in which log the next runs are; those of another log are dropped, since it is gone."""
        if self.log_id is not None and log_id is not None and log_id != self.log_id:
            self._runs = array("q")
            self._previous = self._taken_last = (-1, -1)
            self._last_synced_upstream = self._last_synced_downstream = -1
            self._taken_runs = 0  # a confirmation that is still to come confirms nothing of this log
            self.is_due = self.has_unsent = False
        self.log_id = log_id or self.log_id

    def resume(self, run: OffsetRun) -> None:
        """Start with an earlier task's last run, which ours may continue; it is sent again with what continues it."""
        self._runs = array("q", run)
        self._previous = (run.upstream + run.count - 1, run.downstream + run.count - 1)
        self._last_synced_upstream = self._previous[0]  # a sync that goes back would clear Java's store

    def note(self, run: OffsetRun) -> None:
        """Add a run of records that have been copied."""
        self.has_unsent = True
        self.is_due = self.is_due or self._makes_due(run)
        runs = self._runs
        continues = self._previous == (run.upstream - 1, run.downstream - 1) and bool(runs)
        if continues:
            runs[-1] += run.count
        else:
            self.is_due = self.is_due or bool(runs)
            runs.extend(run)
        self._previous = (run.upstream + run.count - 1, run.downstream + run.count - 1)
        if len(runs) > _MAX_UNSENT_RUNS * _FIELDS:  # a dropped run is translated to the run before: never too far
            del runs[: _MAX_UNSENT_RUNS // 2 * _FIELDS]
            self._taken_runs = max(0, self._taken_runs - _MAX_UNSENT_RUNS // 2)

    def note_all(self, runs: array[int]) -> None:
        """Add several runs in a row, as flat triples: a compacted batch may have thousands."""
        self.note(OffsetRun(*runs[:_FIELDS]))
        if len(runs) > _FIELDS:
            self._runs.extend(runs[_FIELDS:-_FIELDS])
            upstream, downstream, count = runs[-2 * _FIELDS : -_FIELDS]
            self._previous = (upstream + count - 1, downstream + count - 1)
            self.note(OffsetRun(*runs[-_FIELDS:]))

    def _makes_due(self, run: OffsetRun) -> bool:
        """Return whether a record of the run makes a sync due, by Java MM2's rule."""
        upstream, downstream = self._previous
        last = run.downstream + run.count - 1
        return (
            self._last_synced_downstream == -1
            or last - (self._last_synced_downstream + 1) >= self._lag_max
            or run.upstream - upstream != 1
            or run.downstream < downstream
        )

    def take(self) -> DueSync | None:
        """Return the next sync to write; without `confirm` the next call returns it again."""
        if not self.has_unsent:
            return None
        runs = self._runs[: MOST_RUNS_PER_SYNC * _FIELDS]
        self._taken_runs = len(runs) // _FIELDS
        upstream, downstream, count = runs[-_FIELDS:]
        self.has_unsent = self.is_due = False
        last = upstream + count - 1
        self._taken_last = (last, downstream + count - 1)
        after = self._last_synced_upstream if self._last_synced_upstream <= last else -1
        marks = marks_of(runs, after=after) if after < 0 or last - after > _MARKED_SPAN else ()
        return DueSync(last, downstream + count - 1, runs, marks)

    def confirm(self) -> None:
        """Drop the runs of the sync that was taken: it is written. Its last run is kept, since it may have grown."""
        self._last_synced_upstream, self._last_synced_downstream = self._taken_last
        del self._runs[: max(0, self._taken_runs - 1) * _FIELDS]
        if len(self._runs) > _FIELDS:
            self.has_unsent = self.is_due = True

    def give_back(self) -> None:
        """Make the sync that was taken due again: it could not be written."""
        self.has_unsent = self.is_due = True


def marks_of(runs: array[int], *, after: int) -> tuple[tuple[int, int], ...]:
    """Return records of the runs after an offset, in order, the further apart the further they are from the last.

    Java's store keeps syncs in this spacing; without them it could not translate a group that reads records which were
    copied at once.
    """
    starts = runs[::_FIELDS]
    last = starts[-1] + runs[-1] - 1
    first = max(starts[0], after + 1)
    wanted = [first]
    distance = 1
    while last - distance * _MARKS_APART > first:
        distance *= _MARKS_APART
        wanted.append(last - distance)
    found: dict[int, int] = {}
    for upstream in sorted(wanted):
        at = max(0, bisect_right(starts, upstream) - 1) * _FIELDS
        into = min(upstream - runs[at], runs[at + 2] - 1)  # in a gap: the record before it
        if after < runs[at] + into < last:
            found[runs[at] + into] = runs[at + 1] + into
    return tuple(found.items())

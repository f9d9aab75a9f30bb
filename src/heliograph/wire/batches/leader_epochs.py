"""Which leaders' epochs the copied records are of, and what a leader's answer about an epoch means (KIP-320).

Every batch carries the epoch of the leader that took it. A leader never has two logs, so two logs that have a record of
the same epoch at the same offset are equal up to there. Hence the one question that must be asked: is the batch at our
position of the epoch of the record before it? If not, the leader is asked where that epoch ends in its log. Ends it
before our position, the log was cut there and others have written since.

Invariants:
A. `judge` says CUT only where the leader's log cannot have the record before our position, and a newer leader's epoch
   explains it; the offset it gives is then before our position, and what was copied before that is in both logs.
B. Where the answer proves nothing, it says so (UNKNOWN); it never guesses.
"""

from __future__ import annotations

import struct
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from heliograph.wire.batches.batch_header import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable


_MAGIC_AT, _MAGIC = 16, 2
_PREFIX = struct.Struct(">qii")  # base offset, length of what is behind it, leader epoch
_LENGTH_END = 12
_LAST_DELTA_AT = 23
_LAST_DELTA = struct.Struct(">i")
MOST_EPOCHS = 8  # that are remembered: a cut goes back over one, seldom two
UNKNOWN_EPOCH = -1


class EpochStart(NamedTuple):
    """The first offset that was copied of an epoch."""

    epoch: int
    start: int


class EpochHistory:
    """The last epochs of one partition's copied records, ascending by where they start."""

    __slots__ = ("_starts",)

    def __init__(self, starts: Iterable[tuple[int, int]] = ()) -> None:
        self._starts = [EpochStart(*known) for known in starts]

    def note(self, epoch: int, start: int) -> None:
        """Records from `start` on are of an epoch; what was noted from there on is void, since it is read again."""
        starts = self._starts
        while starts and starts[-1].start >= start:
            starts.pop()
        if epoch < 0:
            starts.clear()  # a format without epochs: nothing can be said of what lies before it
        elif not starts or starts[-1].epoch != epoch:
            starts.append(EpochStart(epoch, start))
            del starts[:-MOST_EPOCHS]

    def note_all(self, starts: Iterable[EpochStart]) -> None:
        """Several epochs in a row."""
        for known in starts:
            self.note(*known)

    def before(self, position: int) -> int:
        """The epoch of the record before a position, or UNKNOWN_EPOCH."""
        return next((known.epoch for known in reversed(self._starts) if known.start < position), UNKNOWN_EPOCH)

    def end_of(self, epoch: int, position: int) -> int:
        """Where the copied records of this and older epochs end, of those before a position."""
        return next((known.start for known in self._starts if known.epoch > epoch and known.start < position), position)

    def up_to(self, offset: int) -> tuple[EpochStart, ...]:
        """What is known of the records up to an offset."""
        return tuple(known for known in self._starts if known.start <= offset)

    def clear(self) -> None:
        """It is another log from now on."""
        self._starts.clear()


class Doubt(NamedTuple):
    """A place that may not be in the leader's log any more.

    `epoch` is that of the record before `position`; `seen` that of the batch found there, None where there is none.
    """

    position: int
    epoch: int
    seen: int | None


class Finding(Enum):
    """What becomes of a doubt."""

    SAME = auto()  # the log still has what was copied
    CUT = auto()  # it was cut before our position, and led by others since
    ANOTHER_LOG = auto()  # it has never come as far as what was copied: created again, or restored from a copy
    UNKNOWN = auto()  # the leader keeps no account of that epoch, or contradicts itself


def epoch_at(records: memoryview, position: int) -> int:
    """The leader epoch of the first batch that reaches a position; UNKNOWN_EPOCH in formats that have none."""
    at = 0
    while at + HEADER_BYTES <= len(records) and records[at + _MAGIC_AT] == _MAGIC:
        base_offset, length, epoch = _PREFIX.unpack_from(records, at)
        if base_offset + _LAST_DELTA.unpack_from(records, at + _LAST_DELTA_AT)[0] >= position:
            return int(epoch)
        at += max(HEADER_BYTES, length + _LENGTH_END)  # what is behind a wrong length is judged by others
    return UNKNOWN_EPOCH


def doubt_at(history: EpochHistory, position: int, seen: int) -> Doubt | None:
    """The doubt that a batch of epoch `seen` raises; None where it continues what was copied, or none can tell."""
    epoch = history.before(position)
    return None if UNKNOWN_EPOCH in (epoch, seen) or epoch == seen else Doubt(position, epoch, seen)


def judge(
    doubt: Doubt, history: EpochHistory, current_epoch: int, answered_epoch: int, end_offset: int
) -> tuple[Finding, int]:
    """What the leader's answer means, and the offset from which on the logs differ.

    The answer: the newest epoch of its log that is not newer than the asked one, and where that ends. `current_epoch`
    is the leader's own, as far as known.
    """
    is_ahead = doubt.seen is not None and doubt.seen > doubt.epoch
    if end_offset < 0:  # nothing it knows of is newer than what was copied
        return (Finding.UNKNOWN if is_ahead else Finding.ANOTHER_LOG), doubt.position
    if not is_ahead and current_epoch <= doubt.epoch:
        # A log is cut only when another begins to lead, in a newer epoch; without one it is not the log it was.
        is_there = doubt.seen is None and end_offset >= doubt.position
        return (Finding.SAME if is_there else Finding.ANOTHER_LOG), doubt.position
    if is_ahead and answered_epoch < doubt.epoch and end_offset >= doubt.position:
        # It has no record of that epoch: compaction has removed them all, or it has others, as many, in their place.
        return Finding.UNKNOWN, doubt.position
    if end_offset >= doubt.position and (is_ahead or doubt.seen is None):
        return Finding.SAME, doubt.position
    cut = min(end_offset, history.end_of(answered_epoch, doubt.position))
    return (Finding.CUT if cut < doubt.position else Finding.UNKNOWN), cut

"""The leader epochs of copied records, and what a leader's response about an epoch means (KIP-320).

Every batch carries the epoch of the leader that appended it. A leader never has two logs, so two logs with a record of
the same epoch at the same offset are equal up to there. Hence one check: does the batch at our position have the epoch
of the record before it? If not, the leader is asked where that epoch ends in its log. If it ends before our position,
the log was truncated there and other leaders have appended since.

Invariants:
A. `judge` returns CUT only if the leader's log cannot have the record before our position, and a newer leader epoch
   explains that; the returned offset is then before our position, and both logs are equal up to it.
B. If the response proves nothing, `judge` returns UNKNOWN; it never guesses.
"""

from __future__ import annotations

import struct
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from heliograph.wire.batches.batch_header import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable


_MAGIC_AT, _MAGIC = 16, 2
_PREFIX = struct.Struct(">qii")  # base offset, length of the rest, leader epoch
_LENGTH_END = 12
_LAST_DELTA_AT = 23
_LAST_DELTA = struct.Struct(">i")
MAX_EPOCHS = 8  # that are remembered: a truncation goes back over one, seldom two
UNKNOWN_EPOCH = -1


class EpochStart(NamedTuple):
    """The first copied offset of an epoch."""

    epoch: int
    start: int


class EpochHistory:
    """The last epochs of one partition's copied records, in the order of their start offsets."""

    __slots__ = ("_starts",)

    def __init__(self, starts: Iterable[tuple[int, int]] = ()) -> None:
        self._starts = [EpochStart(*known) for known in starts]

    def note(self, epoch: int, start: int) -> None:
        """Note the epoch of records from `start` on; earlier notes from there on are void, as they are read again."""
        starts = self._starts
        while starts and starts[-1].start >= start:
            starts.pop()
        if epoch < 0:
            starts.clear()  # a format without epochs: nothing is known about the records before it
        elif not starts or starts[-1].epoch != epoch:
            starts.append(EpochStart(epoch, start))
            del starts[:-MAX_EPOCHS]

    def note_all(self, starts: Iterable[EpochStart]) -> None:
        """Note several epochs in a row."""
        for known in starts:
            self.note(*known)

    def before(self, position: int) -> int:
        """Return the epoch of the record before a position, or UNKNOWN_EPOCH."""
        return next((known.epoch for known in reversed(self._starts) if known.start < position), UNKNOWN_EPOCH)

    def end_of(self, epoch: int, position: int) -> int:
        """Return the offset before a position at which the copied records of this and older epochs end."""
        return next((known.start for known in self._starts if known.epoch > epoch and known.start < position), position)

    def up_to(self, offset: int) -> tuple[EpochStart, ...]:
        """Return the epochs of the records up to an offset."""
        return tuple(known for known in self._starts if known.start <= offset)

    def clear(self) -> None:
        """Forget all epochs: the log is another one from now on."""
        self._starts.clear()


class Doubt(NamedTuple):
    """A position that may not be in the leader's log any more.

    `epoch` is that of the record before `position`; `seen` that of the batch at `position`, None if there is none.
    """

    position: int
    epoch: int
    seen: int | None


class Finding(Enum):
    """The outcome of a doubt."""

    SAME = auto()  # the log still has what was copied
    CUT = auto()  # it was truncated before our position, and had other leaders since
    ANOTHER_LOG = auto()  # it never reached the copied records: created again, or restored from a copy
    UNKNOWN = auto()  # the leader does not know that epoch, or contradicts itself


def epoch_at(records: memoryview, position: int) -> int:
    """Return the leader epoch of the first batch that reaches a position; UNKNOWN_EPOCH in formats without epochs."""
    at = 0
    while at + HEADER_BYTES <= len(records) and records[at + _MAGIC_AT] == _MAGIC:
        base_offset, length, epoch = _PREFIX.unpack_from(records, at)
        if base_offset + _LAST_DELTA.unpack_from(records, at + _LAST_DELTA_AT)[0] >= position:
            return int(epoch)
        at += max(HEADER_BYTES, length + _LENGTH_END)  # `scan` judges the bytes after a wrong length
    return UNKNOWN_EPOCH


def doubt_at(history: EpochHistory, position: int, seen: int) -> Doubt | None:
    """Return the doubt that a batch of epoch `seen` raises; None if it continues the copied records or is unknown."""
    epoch = history.before(position)
    return None if UNKNOWN_EPOCH in (epoch, seen) or epoch == seen else Doubt(position, epoch, seen)


def judge(
    doubt: Doubt, history: EpochHistory, current_epoch: int, found_epoch: int, end_offset: int
) -> tuple[Finding, int]:
    """Return what the leader's response means, and the offset from which on the logs differ.

    `found_epoch` is the newest epoch of its log that is not newer than the requested one, and `end_offset` its end.
    `current_epoch` is the leader's own, if known.
    """
    is_ahead = doubt.seen is not None and doubt.seen > doubt.epoch
    if end_offset < 0:  # every epoch of its log is newer than the requested one
        return (Finding.UNKNOWN if is_ahead else Finding.ANOTHER_LOG), doubt.position
    if not is_ahead and current_epoch <= doubt.epoch:
        # A log is truncated only by a new leader, in a newer epoch; without one it is another log.
        is_there = doubt.seen is None and end_offset >= doubt.position
        return (Finding.SAME if is_there else Finding.ANOTHER_LOG), doubt.position
    if is_ahead and found_epoch < doubt.epoch and end_offset >= doubt.position:
        # It has no record of that epoch: compaction removed them all, or it has as many others in their place.
        return Finding.UNKNOWN, doubt.position
    if end_offset >= doubt.position and (is_ahead or doubt.seen is None):
        return Finding.SAME, doubt.position
    cut = min(end_offset, history.end_of(found_epoch, doubt.position))
    return (Finding.CUT if cut < doubt.position else Finding.UNKNOWN), cut

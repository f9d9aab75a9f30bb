"""Turns a fetched range into the batches to produce: unchanged if possible, rewritten if the target needs it.

A large batch that needs no change is a view into the fetched buffer and costs its checksum. Small neighbours of one
codec are merged, because a batch costs a broker and the network far more than a record does; a small batch without a
neighbour is forwarded unchanged, so that a trickle neither waits nor costs. Other changes (see `rewrite`) happen in the
same pass. Work is per batch here and per record only in the kernels.

Invariants:
A. Every visible record from `fetch_offset` up to `next_offset` is in exactly one piece, in order. Not visible are
   transaction markers and the records of aborted transactions.
B. No piece is made of a batch whose checksum was not verified.
C. Pieces before a batch that must not be forwarded are kept; `next_offset` is then the expected offset of that batch.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from crc32c import crc32c

from heliograph.errors import BatchError, CorruptBatchError
from heliograph.wire.batches import scan as s
from heliograph.wire.batches.batch_header import COMPRESSION_MASK, HEADER_BYTES, compression_of
from heliograph.wire.batches.codecs import NONE, compress, decompress
from heliograph.wire.batches.fingerprint import warm_up_fingerprints
from heliograph.wire.batches.kernel_cache import KernelCache
from heliograph.wire.batches.leader_epochs import EpochStart
from heliograph.wire.batches.rewrite import (
    MIN_MESSAGE_BYTES,
    NO_LIMIT,
    OUT_FIRST_RUN,
    RUN_INDEX,
    RUN_OFFSET,
    rewrite,
    room_for,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.wire.batches.kernel_bytes import Bytes, Table
    from heliograph.wire.messages.fetch_response import AbortedTransaction


_CRC = struct.Struct(">I")
_LENGTH = struct.Struct(">i")
_COUNT_AND_TIMES = struct.Struct(">iqq")  # last offset delta, base and max timestamp, at 23
_USUAL_GROWTH_BYTES = (
    5  # of a merged record: longer offset and time deltas; or a remainder would become a batch of its own
)
_REASONS: Final = {
    s.BAD_LENGTH: "its length field is less than a header",
    s.BAD_MAGIC: "its format version does not exist",
    s.BAD_CRC: "its checksum does not match its bytes",
    s.BAD_NUMBERS: "its offsets, counts or lengths contradict each other",
    s.BAD_CODEC: "its compression codec does not exist",
    s.BAD_MARKER: "it is a transaction marker that cannot be read",
}


class Piece(NamedTuple):
    """One batch ready to be re-stamped and produced; `view` is writable.

    `base_offset` is the source offset of its first record; `last_offset` is the last source offset it covers, which
    may be one that compaction has removed. If offsets are missing between its records, `runs` has a row (source offset,
    number in the piece) for the first and for each record after a gap.
    """

    base_offset: int
    last_offset: int
    record_count: int
    max_timestamp_ms: int
    view: memoryview
    is_shared: bool  # points into the fetched buffer
    runs: Table | None = None

    def offset_of(self, index: int) -> int:
        """Return the source offset of a record, by its number in the piece."""
        if self.runs is None:
            return self.base_offset + index
        run = self.runs[np.searchsorted(self.runs[:, RUN_INDEX], index, "right") - 1]
        return int(run[RUN_OFFSET] + index - run[RUN_INDEX])


class Prepared(NamedTuple):
    """The result for a fetched range; `epochs` has the leader epochs of its batches, and where each begins."""

    pieces: list[Piece]
    next_offset: int
    error: BatchError | None
    epochs: list[EpochStart]


@dataclass(frozen=True, slots=True)
class ForwardOptions:
    """The limits for merging batches, and whether aborted transactions are left out."""

    merge_below_bytes: int = 16 * 1024
    merge_to_bytes: int = 512 * 1024
    drops_aborted: bool = True


DEFAULT_OPTIONS: Final = ForwardOptions()


def prepare(
    records: memoryview,
    fetch_offset: int,
    aborted: Sequence[AbortedTransaction] = (),
    options: ForwardOptions = DEFAULT_OPTIONS,
) -> Prepared:
    """Return the pieces of a fetched range from `fetch_offset` on, up to the first batch that must not be forwarded.

    A partial batch at the end is left for the next fetch; batches before `fetch_offset` are skipped.
    """
    data = np.frombuffer(records, np.uint8)
    transactions = s.transactions_table(aborted if options.drops_aborted else ())
    rows, crc_open, next_offset, reason = s.scan(data, fetch_offset, transactions)
    damaged = _first_damaged(records, rows) if crc_open else -1
    if damaged >= 0:
        next_offset, reason, rows = int(rows[damaged, s.WANTED]), s.BAD_CRC, rows[:damaged]
    pieces: list[Piece] = []
    try:
        _make_pieces(_Source(records, data, rows), options, pieces)
    except CorruptBatchError as error:
        return Prepared(pieces, error.offset, error, _epochs(rows, error.offset))
    refusal = CorruptBatchError(_REASONS[reason], offset=next_offset) if reason != s.SOUND else None
    return Prepared(pieces, next_offset, refusal, _epochs(rows, next_offset))


def split(piece: Piece, max_bytes: int) -> list[Piece]:
    """Split a piece into batches of at most `max_bytes` with the same codec; only a single record may be longer.

    No part but the last covers an offset after its last record. The parts have memory of their own. Raises
    CorruptBatchError if the records, which have not been read so far, are damaged.
    """
    codec = compression_of(piece.view)
    section = decompress(codec, piece.view[HEADER_BYTES:])
    # A compressed part may become larger than its share, so the aim is a tenth lower, and it is split again if needed.
    share = len(section) * max_bytes // len(piece.view) * 9 // 10
    limit = max_bytes if codec == NONE else min(share, len(section) // 2) + HEADER_BYTES
    last_delta, base_timestamp, max_timestamp = _COUNT_AND_TIMES.unpack_from(piece.view, 23)
    row = np.zeros((1, s.COLUMNS), np.int64)
    row[0, s.SECTION_END] = len(section)
    row[0, s.LAST_OFFSET] = last_delta  # offsets are numbers in the piece until the parts are made
    row[0, s.COUNT], row[0, s.MAGIC], row[0, s.ACTION] = piece.record_count, 2, s.REWRITE
    row[0, s.BASE_TIMESTAMP], row[0, s.MAX_TIMESTAMP] = base_timestamp, max_timestamp
    parts: list[Piece] = []
    for numbered in _rewritten(section, row, codec, (len(section), piece.record_count), limit):
        part = _part_of(piece, numbered)
        is_too_large = len(part.view) > max_bytes and part.record_count > 1
        parts += split(part, max_bytes) if is_too_large else (part,)
    parts[-1] = parts[-1]._replace(last_offset=piece.last_offset)
    return parts


def _part_of(piece: Piece, numbered: Piece) -> Piece:
    """Return a part with the source offsets of its records."""
    first, last = numbered.base_offset, numbered.last_offset
    runs = None
    if piece.runs is not None:
        inner = piece.runs[(piece.runs[:, RUN_INDEX] > first) & (piece.runs[:, RUN_INDEX] <= last)]
        runs = np.concatenate([np.array([[piece.offset_of(first), first]], np.int64), inner])
        runs[:, RUN_INDEX] -= first
        runs = runs if len(runs) > 1 else None
    return numbered._replace(base_offset=piece.offset_of(first), last_offset=piece.offset_of(last), runs=runs)


def warm_up() -> int:
    """Load all kernels, compile those that never were: it takes seconds that a copy should not spend.

    Returns how many were compiled.
    """
    before, nothing = KernelCache.compiled, np.empty(0, np.uint8)
    rows, _open, _next, _reason = s.scan(nothing, 0, s.transactions_table(()))
    s.group(rows, 0)
    rewrite(nothing, rows, *room_for(0, 0, NO_LIMIT), NO_LIMIT)
    warm_up_fingerprints()
    return KernelCache.compiled - before


class _Source(NamedTuple):
    """A fetched range and its rows."""

    records: memoryview
    data: Bytes
    rows: Table


def _epochs(rows: Table, next_offset: int) -> list[EpochStart]:
    if not len(rows):
        return []
    column = rows[:, s.LEADER_EPOCH]
    firsts = [0]
    if column[0] != column[-1]:  # epochs only grow along a log
        firsts += (np.flatnonzero(np.diff(column)) + 1).tolist()
    starts = (EpochStart(int(column[k]), int(rows[k, s.WANTED])) for k in firsts)
    return [found for found in starts if found.start < next_offset]


def _first_damaged(records: memoryview, rows: Table) -> int:
    """Return the first row whose batch was too large for the kernel's checksum and has a wrong one; -1 if none."""
    large = np.flatnonzero(rows[:, s.CRC_OPEN])
    for k, (start, end) in zip(large.tolist(), rows[large, : s.END + 1].tolist(), strict=True):
        if crc32c(records[start + 21 : end]) != _CRC.unpack_from(records, start + 17)[0]:
            return int(k)
    return -1


def _make_pieces(source: _Source, options: ForwardOptions, pieces: list[Piece]) -> None:
    """Append the pieces; raise CorruptBatchError, with the offset at which to resume, after the last sound piece."""
    view = source.records
    for group in s.group(source.rows, options.merge_below_bytes).tolist():
        first, stop, members, is_rewritten, section_bytes, records, codec, start, end, base, last, count, latest = group
        if members == 1 and not is_rewritten:
            pieces.append(Piece(base, last, count, latest, view[start:end], True))
        elif codec == NONE:
            limit = options.merge_to_bytes if members > 1 else NO_LIMIT
            _rewrite_onto(pieces, source.data, source.rows[first:stop], NONE, (section_bytes, records), limit)
        else:
            _merge_compressed(source, first, stop, options.merge_to_bytes, pieces)


def _merge_compressed(source: _Source, first: int, stop: int, merge_to_bytes: int, pieces: list[Piece]) -> None:
    """Decompress a group's batches, only as many at a time as make one output batch."""
    pending: list[tuple[Table, Bytes]] = []
    pending_bytes = 0
    for row in source.rows[first:stop]:
        if row[s.ACTION] == s.DROP:
            continue
        try:
            view = source.records[row[s.SECTION] : row[s.SECTION_END]]
            section = decompress(int(row[s.CODEC]), view, is_magic_0=row[s.MAGIC] == 0)
        except CorruptBatchError as error:
            _flush(source.records, pending, merge_to_bytes, pieces)
            raise CorruptBatchError(str(error), offset=int(row[s.WANTED])) from None
        size = len(section) + int(row[s.COUNT]) * _USUAL_GROWTH_BYTES
        if pending and pending_bytes + size > merge_to_bytes:
            _flush(source.records, pending, merge_to_bytes, pieces)
            pending, pending_bytes = [], 0
        pending.append((row, section))
        pending_bytes += size
    _flush(source.records, pending, merge_to_bytes, pieces)


def _flush(records: memoryview, pending: list[tuple[Table, Bytes]], merge_to_bytes: int, pieces: list[Piece]) -> None:
    if len(pending) == 1 and pending[0][0][s.ACTION] == s.KEEP:
        row = pending[0][0].tolist()
        batch = records[row[s.START] : row[s.END]]
        pieces.append(Piece(row[s.BASE_OFFSET], row[s.LAST_OFFSET], row[s.COUNT], row[s.MAX_TIMESTAMP], batch, True))
        return
    if not pending:
        return
    rows = np.array([row for row, _section in pending])
    ends = np.cumsum([len(section) for _row, section in pending])
    rows[:, s.SECTION_END] = ends
    rows[0, s.SECTION], rows[1:, s.SECTION] = 0, ends[:-1]
    size = int(ends[-1])
    is_old = rows[0, s.MAGIC] < 2
    # An impossible count must not decide how much memory is allocated; the kernel refuses it anyway.
    records_most = size // MIN_MESSAGE_BYTES if is_old else min(int(rows[:, s.COUNT].sum()), size // s.MIN_RECORD_BYTES)
    limit = merge_to_bytes if len(pending) > 1 else NO_LIMIT
    data = np.concatenate([section for _row, section in pending]) if len(pending) > 1 else pending[0][1]
    _rewrite_onto(pieces, data, rows, int(rows[0, s.CODEC]), (size, records_most), limit)


def _rewrite_onto(
    pieces: list[Piece], data: Bytes, rows: Table, codec: int, size: tuple[int, int], limit_bytes: int
) -> None:
    """Append the batches made of rows; if a row is refused, those of the rows before it, and raise."""
    out, outs, runs = room_for(*size, limit_bytes)
    count, run_count, refused = rewrite(data, rows, out, outs, runs, limit_bytes)
    if refused > 0:
        _rewrite_onto(pieces, data, rows[:refused], codec, size, limit_bytes)
    if refused >= 0:
        reason = "its records contradict its header or are not records"
        raise CorruptBatchError(reason, offset=int(rows[refused, s.WANTED]))
    whole = out.data
    batches = outs[:count].tolist()
    run_ends = [*outs[1:count, OUT_FIRST_RUN].tolist(), run_count]
    for batch, run_end in zip(batches, run_ends, strict=False):
        start, end, record_count, _base, max_timestamp, base_offset, last_offset, first_run = batch
        view = whole[start:end] if codec == NONE else _compressed(whole[start:end], codec)
        gaps = (
            runs[first_run:run_end].copy() if run_end - first_run > 1 else None
        )  # a copy, so that the whole table is not kept
        pieces.append(Piece(base_offset, last_offset, record_count, max_timestamp, view, False, gaps))


def _rewritten(data: Bytes, rows: Table, codec: int, size: tuple[int, int], limit_bytes: int) -> list[Piece]:
    pieces: list[Piece] = []
    _rewrite_onto(pieces, data, rows, codec, size, limit_bytes)
    return pieces


def _compressed(batch: memoryview, codec: int) -> memoryview:
    """Return an uncompressed batch with its records compressed."""
    view = memoryview(bytearray(batch[:HEADER_BYTES]) + compress(codec, batch[HEADER_BYTES:]))
    _LENGTH.pack_into(view, 8, len(view) - 12)
    view[22] = codec & COMPRESSION_MASK
    return view

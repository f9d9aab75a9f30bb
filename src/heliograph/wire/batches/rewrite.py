"""Rewrites the records of one or several source batches as batches of format v2 with contiguous offsets.

One pass makes every change that a target needs to accept a batch as a produced one: several small batches become one
(merge), offsets with gaps from compaction become contiguous (renumber), records before the wanted offset are left out
(trim), the broker's time of a LogAppendTime batch becomes the time of each record, and messages of formats v0 and v1
become records.

Invariants:
A. Keys, values and headers are copied byte for byte, in order; a record's visible timestamp does not change.
B. The stated number of records must use up a section exactly, with ascending offsets inside the batch's range;
   otherwise its row is refused as a whole. The checksums of wrapped messages are checked here.
C. No output batch is longer than the limit, unless it has only one record.
D. Nothing is written outside `out`, `outs` and `runs`: too little room is a refusal.
E. `runs` has the source offset of every record written: a row where a batch begins, and after each missing offset.
"""

from __future__ import annotations

import numpy as np

from heliograph.wire.batches.batch_header import COMPRESSION_MASK
from heliograph.wire.batches.kernel_bytes import (
    MAX_VARINT_BYTES,
    MAX_VARLONG_BYTES,
    Bytes,
    Table,
    copy_bytes,
    crc32_of,
    int64,
    kernel,
    part_of_kernel,
    read_int32,
    read_int64,
    read_uint32,
    read_varint,
    varint_bytes,
    write_big_endian,
    write_varint,
)
from heliograph.wire.batches.scan import (
    ACTION,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    CODEC,
    COUNT,
    DROP,
    IS_APPEND_TIME,
    LAST_OFFSET,
    MAGIC,
    MAX_TIMESTAMP,
    MIN_RECORD_BYTES,
    SECTION,
    SECTION_END,
    WANTED,
)

# The columns of an output batch: its place in `out`, its records, the source offsets it covers, and its first run.
OUT_START, OUT_END, OUT_COUNT, OUT_BASE_TIMESTAMP, OUT_MAX_TIMESTAMP, OUT_BASE_OFFSET, OUT_LAST_OFFSET = range(7)
OUT_FIRST_RUN = 7
OUT_COLUMNS = 8
# The columns of a run: the source offset of its first record, and that record's number in its output batch.
RUN_OFFSET, RUN_INDEX = 0, 1
NO_LIMIT = 2**62
MAX_RECORD_GROWTH_BYTES = 17  # a length, a time and an offset that took one byte each may take 5, 10 and 5
MIN_MESSAGE_BYTES = 26
_HEADER = 61
_BATCHES, _LIMIT, _RUNS, _LAST_OFFSET = 0, 1, 2, 3  # of the cursor


def room_for(section_bytes: int, records: int, limit_bytes: int) -> tuple[Bytes, Table, Table]:
    """Return buffers large enough for the output of `rewrite`; memory that stays unused is not touched."""
    max_bytes = section_bytes + MAX_RECORD_GROWTH_BYTES * records
    # Two neighbours are together longer than the limit; half of it is left for headers, which are not in `max_bytes`.
    batches = records if limit_bytes < 4 * _HEADER else min(records, 4 * max_bytes // limit_bytes + 4)
    out = np.empty(max_bytes + _HEADER * batches, np.uint8)
    return out, np.empty((batches, OUT_COLUMNS), np.int64), np.empty((records, 2), np.int64)


@kernel
def rewrite(data: Bytes, rows: Table, out: Bytes, outs: Table, runs: Table, limit_bytes: int) -> tuple[int, int, int]:
    """Return how many batches and runs were written, and the row that was refused (-1 if none was)."""
    cursor = np.zeros(4, np.int64)
    cursor[_LIMIT] = limit_bytes
    for k in range(len(rows)):
        if rows[k, ACTION] == DROP:
            continue
        if rows[k, MAGIC] == 2:
            is_sound = _records(data, rows, k, out, outs, runs, cursor)
        else:
            is_sound = _message_set(data, rows, k, out, outs, runs, cursor)
        if not is_sound:
            return cursor[_BATCHES], cursor[_RUNS], k
        if cursor[_BATCHES] > 0:
            outs[cursor[_BATCHES] - 1, OUT_LAST_OFFSET] = rows[k, LAST_OFFSET]
    for k in range(cursor[_BATCHES]):
        _write_header(out, outs[k])
    return cursor[_BATCHES], cursor[_RUNS], -1


@part_of_kernel
def _records(data: Bytes, rows: Table, k: int, out: Bytes, outs: Table, runs: Table, cursor: Table) -> bool:
    """Write the records of a batch of format v2; return whether they are sound."""
    at, end, previous = rows[k, SECTION], rows[k, SECTION_END], -1
    last_delta = rows[k, LAST_OFFSET] - rows[k, BASE_OFFSET]
    for _ in range(rows[k, COUNT]):
        length, at = read_varint(data, at, end, MAX_VARINT_BYTES)
        if at < 0 or length < MIN_RECORD_BYTES - 1 or length > end - at:
            return False
        record_end = at + length
        timestamp, at = read_varint(data, at + 1, record_end, MAX_VARLONG_BYTES)
        if at < 0:
            return False
        delta, at = read_varint(data, at, record_end, MAX_VARINT_BYTES)
        if at < 0 or delta <= previous or delta > last_delta or record_end - at < 3:
            return False
        previous = delta
        if rows[k, BASE_OFFSET] + delta >= rows[k, WANTED]:
            timestamp = rows[k, MAX_TIMESTAMP] if rows[k, IS_APPEND_TIME] else rows[k, BASE_TIMESTAMP] + timestamp
            body = _begin_record(out, outs, runs, cursor, rows[k, BASE_OFFSET] + delta, timestamp, record_end - at)
            if body < 0:
                return False
            copy_bytes(data, at, record_end, out, body)
        at = record_end
    return bool(at == end)


@part_of_kernel
def _begin_record(
    out: Bytes, outs: Table, runs: Table, cursor: Table, offset: int, timestamp: int, body_bytes: int
) -> int:
    """Write the fields before key, value and headers, in a new batch if needed; return where those go (-1: no room)."""
    b, is_full = cursor[_BATCHES] - 1, True
    if b >= 0:
        length = _record_bytes(outs, b, timestamp, body_bytes)
        is_full = outs[b, OUT_END] - outs[b, OUT_START] + varint_bytes(length) + length > cursor[_LIMIT]
    if is_full:
        b += 1
        start = outs[b - 1, OUT_END] if b > 0 else 0
        if b >= len(outs) or start + _HEADER > len(out):
            return -1
        outs[b, OUT_START], outs[b, OUT_END], outs[b, OUT_COUNT] = start, start + _HEADER, 0
        outs[b, OUT_BASE_TIMESTAMP] = outs[b, OUT_MAX_TIMESTAMP] = timestamp
        outs[b, OUT_BASE_OFFSET], outs[b, OUT_FIRST_RUN] = offset, cursor[_RUNS]
        length = _record_bytes(outs, b, timestamp, body_bytes)
        cursor[_BATCHES] = b + 1
    at = outs[b, OUT_END]
    if at + varint_bytes(length) + length > len(out):
        return -1
    if outs[b, OUT_COUNT] == 0 or offset != cursor[_LAST_OFFSET] + 1:
        if cursor[_RUNS] >= len(runs):
            return -1
        runs[cursor[_RUNS], RUN_OFFSET], runs[cursor[_RUNS], RUN_INDEX] = offset, outs[b, OUT_COUNT]
        cursor[_RUNS] += 1
    cursor[_LAST_OFFSET] = offset
    at = write_varint(out, at, length)
    out[at] = 0
    at = write_varint(out, at + 1, timestamp - outs[b, OUT_BASE_TIMESTAMP])
    at = write_varint(out, at, outs[b, OUT_COUNT])
    outs[b, OUT_END] = at + body_bytes
    outs[b, OUT_COUNT] += 1
    outs[b, OUT_MAX_TIMESTAMP] = max(outs[b, OUT_MAX_TIMESTAMP], timestamp)
    outs[b, OUT_LAST_OFFSET] = offset
    return at


@part_of_kernel
def _record_bytes(outs: Table, b: int, timestamp: int, body_bytes: int) -> int:
    """Return the length field of a record that would come next in a batch."""
    return 1 + varint_bytes(timestamp - outs[b, OUT_BASE_TIMESTAMP]) + varint_bytes(outs[b, OUT_COUNT]) + body_bytes


@part_of_kernel
def _write_header(out: Bytes, batch: Table) -> None:
    """Write a batch's header except for the fields that `restamp` sets; the base offset is 0, as from a producer."""
    at = batch[OUT_START]
    out[at : at + _HEADER] = 0
    write_big_endian(out, at + 8, 4, batch[OUT_END] - at - 12)
    out[at + 16] = 2
    write_big_endian(out, at + 23, 4, batch[OUT_COUNT] - 1)
    write_big_endian(out, at + 27, 8, batch[OUT_BASE_TIMESTAMP])
    write_big_endian(out, at + 35, 8, batch[OUT_MAX_TIMESTAMP])
    write_big_endian(out, at + 43, 8, -1)
    write_big_endian(out, at + 51, 2, -1)
    write_big_endian(out, at + 53, 4, -1)
    write_big_endian(out, at + 57, 4, batch[OUT_COUNT])


@part_of_kernel
def _message_set(data: Bytes, rows: Table, k: int, out: Bytes, outs: Table, runs: Table, cursor: Table) -> bool:
    """Write the message of a plain row, or those of a wrapper (its checked, decompressed value)."""
    at, end, previous = rows[k, SECTION], rows[k, SECTION_END], -1
    last, shift = rows[k, LAST_OFFSET], 0
    if rows[k, MAGIC] == 1 and rows[k, CODEC] != 0:  # offsets are relative; the wrapper's offset is that of the last
        last = _last_inner_offset(data, at, end)
        shift = rows[k, LAST_OFFSET] - last
        if last < 0 or shift < 0:
            return False
    if at == end:
        return False
    while at < end:
        message_end = _message_end(data, at, end, rows, k)
        if message_end < 0:
            return False
        offset = read_int64(data, at)
        if offset <= previous or offset > last:
            return False
        previous = offset
        if offset + shift >= rows[k, WANTED] and not _message(data, at, rows[k], shift, out, outs, runs, cursor):
            return False
        at = message_end
    return True


@part_of_kernel
def _last_inner_offset(data: Bytes, at: int, end: int) -> int:
    """Return the offset of the last message of a set; -1 if it cannot be walked."""
    last = int64(-1)
    while at + MIN_MESSAGE_BYTES <= end:
        last = read_int64(data, at)
        length = read_int32(data, at + 8)
        if length < MIN_MESSAGE_BYTES - 12:
            return int64(-1)
        at += 12 + length
    return last if at == end else int64(-1)


@part_of_kernel
def _message_end(data: Bytes, at: int, end: int, rows: Table, k: int) -> int:
    """Return the end of a message whose frame, format, checksum, key and value are consistent; otherwise -1."""
    key_at = at + (18 if rows[k, MAGIC] == 0 else 26)
    if end - at < MIN_MESSAGE_BYTES or end - key_at < 8:
        return -1
    length = read_int32(data, at + 8)
    if length < key_at + 8 - at - 12 or length > end - at - 12 or data[at + 16] != rows[k, MAGIC]:
        return -1
    message_end = at + 12 + length
    if rows[k, CODEC] != 0 and (
        data[at + 17] & COMPRESSION_MASK != 0 or crc32_of(data, at + 16, message_end) != read_uint32(data, at + 12)
    ):
        return -1
    key_bytes = read_int32(data, key_at)
    if key_bytes < -1 or max(0, key_bytes) > message_end - key_at - 8:
        return -1
    value_at = key_at + 8 + max(0, key_bytes)
    value_bytes = read_int32(data, value_at - 4)
    return message_end if value_bytes >= -1 and max(0, value_bytes) == message_end - value_at else -1


@part_of_kernel
def _message(data: Bytes, at: int, row: Table, shift: int, out: Bytes, outs: Table, runs: Table, cursor: Table) -> bool:
    """Write a sound message as a record."""
    is_own_time = row[MAGIC] == 1 and row[CODEC] != 0 and row[IS_APPEND_TIME] == 0
    timestamp = read_int64(data, at + 18) if is_own_time else row[BASE_TIMESTAMP]
    key_at = at + (18 if row[MAGIC] == 0 else 26)
    key_bytes = read_int32(data, key_at)
    value_at = key_at + 8 + max(0, key_bytes)
    value_bytes = read_int32(data, value_at - 4)
    key_size, value_size = max(0, key_bytes), max(0, value_bytes)
    body_bytes = varint_bytes(key_bytes) + key_size + varint_bytes(value_bytes) + value_size + 1
    to = _begin_record(out, outs, runs, cursor, read_int64(data, at) + shift, timestamp, body_bytes)
    if to < 0:
        return False
    to = copy_bytes(data, key_at + 4, key_at + 4 + key_size, out, write_varint(out, to, key_bytes))
    to = copy_bytes(data, value_at, value_at + value_size, out, write_varint(out, to, value_bytes))
    out[to] = 0  # no headers
    return True

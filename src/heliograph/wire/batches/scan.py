"""Walks the batches of a fetched range and decides for each whether to drop, keep or rewrite it: one row per batch.

Formats v2 (record batches) and v0/v1 (messages from before Kafka 0.11, a row for each; a compressed one wraps many).
The walk also tracks aborted transactions as Kafka's consumer does: an entry of the broker's list applies from the first
batch that ends at or after its first offset; a producer's transactional batches are dropped while an entry of its
applies; its ABORT marker ends that.

Invariants:
A. No row is returned for a batch whose checksum is wrong, except that a batch of `CRC_IN_KERNEL_BYTES` or more is left
   to the caller (`CRC_OPEN`), which has a processor instruction for it. A marker is always checked here.
B. The rows are in order, and each begins (`WANTED`) where the one before ended; together they cover all offsets up to
   the returned position.
C. Any bytes at all are walked, refused or left; the walk advances by at least a header per step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from heliograph.wire.batches.batch_header import COMPRESSION_MASK, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL
from heliograph.wire.batches.kernel_bytes import (
    MAX_VARINT_BYTES,
    MAX_VARLONG_BYTES,
    Bytes,
    Table,
    crc32_of,
    crc32c_of,
    int64,
    kernel,
    part_of_kernel,
    read_int16,
    read_int32,
    read_int64,
    read_uint32,
    read_varint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.wire.messages.fetch_response import AbortedTransaction


# The columns of a row. A batch lies at START:END, its records (a wrapper message's value) at SECTION:SECTION_END.
START, END, SECTION, SECTION_END = 0, 1, 2, 3
BASE_OFFSET, LAST_OFFSET, WANTED, COUNT = 4, 5, 6, 7
MAGIC, CODEC, BASE_TIMESTAMP, MAX_TIMESTAMP, IS_APPEND_TIME = 8, 9, 10, 11, 12
ACTION, CRC_OPEN, LEADER_EPOCH = 13, 14, 15
COLUMNS = 16

DROP, KEEP, REWRITE = 0, 1, 2

SOUND, BAD_LENGTH, BAD_MAGIC, BAD_CRC, BAD_NUMBERS, BAD_CODEC, BAD_MARKER = 0, 1, 2, 3, 4, 5, 6

CRC_IN_KERNEL_BYTES = 4096
MIN_RECORD_BYTES = 7
_PREFIX = 12
_MAGIC_AT = 16
_HEADER = 61
_MAX_OFFSET = 0x7FFFFFFFFFFFFFFF - 0x80000000  # so that offset plus delta cannot overflow
_NOTHING_ABORTED: Final = np.empty((0, 2), np.int64)


def transactions_table(aborted: Sequence[AbortedTransaction]) -> Table:
    """Return a fetch response's aborted transactions as a table for `scan`."""
    if not aborted:
        return _NOTHING_ABORTED
    return np.array(sorted(aborted, key=lambda entry: entry.first_offset), np.int64)


@kernel
def scan(data: Bytes, wanted: int, aborted: Table) -> tuple[Table, int, int, int]:
    """Return the rows, how many of them wait for their CRC, the next offset, and why the walk ended (SOUND if well).

    `aborted` has a row (producer id, first offset) per transaction, by first offset.
    """
    rows = np.empty((_count(data), COLUMNS), np.int64)
    active = np.empty(
        len(aborted) + 2, np.int64
    )  # [0] entries taken from `aborted`, [1] active producers, the producers
    active[0] = active[1] = 0
    n, crc_open, wanted, reason = _walk(data, wanted, rows, aborted, active)
    return rows[:n], crc_open, wanted, reason


@part_of_kernel
def _walk(data: Bytes, wanted: int, rows: Table, aborted: Table, active: Table) -> tuple[int, int, int, int]:
    at, n, crc_open, reason = 0, 0, 0, SOUND
    while n < len(rows):
        row = rows[n]
        if int64(data[at + _MAGIC_AT]) == 2:
            reason = _batch(data, at, wanted, row)
            if reason == SOUND:
                reason = _transaction(data, row, aborted, active)
        else:
            reason = _message(data, at, wanted, row)
        if reason != SOUND:
            break
        crc_open += row[CRC_OPEN]
        wanted = max(wanted, row[LAST_OFFSET] + 1)
        at = row[END]
        n += 1
    else:
        reason = _rest(data, at)
    return n, crc_open, wanted, reason


@part_of_kernel
def _header_bytes(magic: int) -> int:
    """Return the least size of a batch or message of a format; 0 for a format that does not exist."""
    if magic == 2:
        return _HEADER
    if magic == 1:
        return 34
    return 26 if magic == 0 else 0


@part_of_kernel
def _count(data: Bytes) -> int:
    """Count the whole batches before the end or the first bytes that cannot be one."""
    at, n, size = 0, 0, len(data)
    while at + _MAGIC_AT < size:
        least = _header_bytes(int64(data[at + _MAGIC_AT]))
        length = read_int32(data, at + 8)
        if least == 0 or length < least - _PREFIX or at + _PREFIX + length > size:
            break
        at += _PREFIX + length
        n += 1
    return n


@part_of_kernel
def _rest(data: Bytes, at: int) -> int:
    """Judge the bytes after the last whole batch: part of one, or something that cannot be one."""
    if at + _MAGIC_AT >= len(data):
        return SOUND
    least = _header_bytes(int64(data[at + _MAGIC_AT]))
    if least == 0:
        return BAD_MAGIC
    return BAD_LENGTH if read_int32(data, at + 8) < least - _PREFIX else SOUND


@part_of_kernel
def _batch(data: Bytes, at: int, wanted: int, row: Table) -> int:
    """Read and judge a whole batch of format v2."""
    header = data[at : at + _HEADER]
    end = at + _PREFIX + read_int32(header, 8)
    base_offset, last_delta, count = read_int64(header, 0), read_int32(header, 23), read_int32(header, 57)
    attributes = read_int16(header, 21)
    is_control = attributes & CONTROL != 0
    if base_offset < 0 or base_offset > _MAX_OFFSET or last_delta < 0 or count < 0 or count > last_delta + 1:
        return BAD_NUMBERS
    last_offset = base_offset + last_delta
    row[START], row[END], row[SECTION], row[SECTION_END] = at, end, at + _HEADER, end
    row[BASE_OFFSET], row[LAST_OFFSET], row[WANTED], row[COUNT] = base_offset, last_offset, wanted, count
    row[MAGIC], row[CODEC], row[IS_APPEND_TIME] = (
        2,
        attributes & COMPRESSION_MASK,
        int64(attributes & LOG_APPEND_TIME != 0),
    )
    row[BASE_TIMESTAMP], row[MAX_TIMESTAMP] = read_int64(header, 27), read_int64(header, 35)
    row[CRC_OPEN], row[ACTION], row[LEADER_EPOCH] = 0, DROP, read_int32(header, 12)
    if last_offset >= wanted or is_control:
        if end - at < CRC_IN_KERNEL_BYTES or is_control:
            if crc32c_of(data, at + 21, end) != read_uint32(header, 17):
                return BAD_CRC
        else:
            row[CRC_OPEN] = 1
    if last_offset < wanted or is_control or count == 0:
        return SOUND
    needs_nothing = row[IS_APPEND_TIME] == 0 and last_delta + 1 == count and base_offset >= wanted
    row[ACTION] = KEEP if needs_nothing else REWRITE
    if row[CODEC] > 4:
        return BAD_CODEC
    return BAD_NUMBERS if row[CODEC] == 0 and count * MIN_RECORD_BYTES > end - at - _HEADER else SOUND


@part_of_kernel
def _transaction(data: Bytes, row: Table, aborted: Table, active: Table) -> int:
    """Drop a batch of an aborted transaction; end transactions at their markers."""
    at = row[START]
    attributes, producer_id = read_int16(data, at + 21), read_int64(data, at + 43)
    if len(aborted) == 0 or producer_id < 0:
        return SOUND
    while active[0] < len(aborted) and aborted[active[0], 1] <= row[LAST_OFFSET]:
        if _find(active, aborted[active[0], 0]) < 0:
            active[2 + active[1]] = aborted[active[0], 0]
            active[1] += 1
        active[0] += 1
    found = _find(active, producer_id)
    if attributes & CONTROL != 0:
        kind = _marker_kind(data, row)
        if kind == -1:
            return BAD_MARKER
        if kind == 0 and found >= 0:
            active[1] -= 1
            active[found] = active[2 + active[1]]
    elif attributes & TRANSACTIONAL != 0 and found >= 0:
        row[ACTION] = DROP
    return SOUND


@part_of_kernel
def _find(active: Table, producer_id: int) -> int:
    for k in range(2, 2 + active[1]):
        if active[k] == producer_id:
            return k
    return -1


@part_of_kernel
def _marker_kind(data: Bytes, row: Table) -> int:
    """Return 0 for abort, 1 for commit, the type of other control records; -1 unreadable, -2 compacted away."""
    if row[COUNT] == 0:
        return -2
    end = row[SECTION_END]
    length, at = read_varint(data, row[SECTION], end, MAX_VARINT_BYTES)
    if row[CODEC] != 0 or at < 0 or length < 0 or at + length > end or at >= end:
        return -1
    _timestamp, at = read_varint(data, at + 1, end, MAX_VARLONG_BYTES)
    if at < 0:
        return -1
    _offset, at = read_varint(data, at, end, MAX_VARINT_BYTES)
    if at < 0:
        return -1
    key_bytes, at = read_varint(data, at, end, MAX_VARINT_BYTES)
    if at < 0 or key_bytes < 4 or at + key_bytes > end:
        return -1
    kind = read_int16(data, at + 2)
    return kind if kind >= 0 else -2


@part_of_kernel
def _message(data: Bytes, at: int, wanted: int, row: Table) -> int:
    """Read and judge a whole message of format v0 or v1."""
    magic = int64(data[at + _MAGIC_AT])
    end = at + _PREFIX + read_int32(data, at + 8)
    offset, codec = read_int64(data, at), int64(data[at + 17]) & COMPRESSION_MASK
    row[START], row[END], row[SECTION], row[SECTION_END] = at, end, at, end
    row[BASE_OFFSET], row[LAST_OFFSET], row[WANTED], row[COUNT] = offset, offset, wanted, 1
    row[MAGIC], row[CODEC], row[CRC_OPEN], row[ACTION] = magic, codec, 0, DROP
    row[LEADER_EPOCH] = -1
    row[IS_APPEND_TIME] = int64(magic == 1 and data[at + 17] & LOG_APPEND_TIME != 0)
    row[BASE_TIMESTAMP] = row[MAX_TIMESTAMP] = read_int64(data, at + 18) if magic == 1 else -1
    if offset < 0 or offset > _MAX_OFFSET:
        return BAD_NUMBERS
    if offset < wanted:
        return SOUND
    row[ACTION] = REWRITE
    if crc32_of(data, at + _MAGIC_AT, end) != read_uint32(data, at + _PREFIX):
        return BAD_CRC
    if codec > 4:
        return BAD_CODEC
    if codec == 0:
        return SOUND
    return _unwrap(data, at + (18 if magic == 0 else 26), row)


@part_of_kernel
def _unwrap(data: Bytes, key_at: int, row: Table) -> int:
    """Find the value of a compressed message: the message set it wraps."""
    end = row[END]
    key_bytes = max(0, read_int32(data, key_at))
    if key_at + 8 + key_bytes > end:
        return BAD_NUMBERS
    value_at = key_at + 8 + key_bytes
    if read_int32(data, value_at - 4) != end - value_at:
        return BAD_NUMBERS
    row[SECTION] = value_at
    return SOUND


# The columns of a group: rows FIRST:STOP, how many of them are not dropped, whether one of those must be rewritten,
# their bytes and records together, and then values of the first.
FIRST, STOP, MEMBERS, IS_REWRITTEN, SECTION_BYTES, RECORDS = 0, 1, 2, 3, 4, 5
_GROUP_COLUMNS = 13


@kernel
def group(rows: Table, merge_below_bytes: int) -> Table:
    """Group neighbouring rows that may become one batch: small ones of one codec and format; a large one stays alone.

    Dropped rows do not separate neighbours. A group of one that need not be rewritten is forwarded unchanged.
    """
    groups = np.empty((len(rows), _GROUP_COLUMNS), np.int64)
    return groups[: _group(rows, groups, merge_below_bytes)]


@part_of_kernel
def _group(rows: Table, groups: Table, merge_below_bytes: int) -> int:
    n, is_open = 0, False
    for k in range(len(rows)):
        row = rows[k]
        if row[ACTION] == DROP:
            continue
        is_message = row[MAGIC] < 2 and row[CODEC] == 0
        is_small = row[END] - row[START] < merge_below_bytes or is_message
        if is_open and is_small:
            first = rows[groups[n - 1, FIRST]]
            is_open = first[CODEC] == row[CODEC] and (first[MAGIC] < 2) == (row[MAGIC] < 2)
        if not (is_open and is_small):
            _begin_group(groups[n], k, row)
            n += 1
        is_open = is_small
        last = groups[n - 1]
        last[STOP] = k + 1
        last[MEMBERS] += 1
        last[IS_REWRITTEN] |= int64(row[ACTION] == REWRITE)
        last[SECTION_BYTES] += row[SECTION_END] - row[SECTION]
        last[RECORDS] += row[COUNT]
    return n


@part_of_kernel
def _begin_group(group_row: Table, k: int, row: Table) -> None:
    group_row[:] = 0
    group_row[FIRST] = k
    group_row[6], group_row[7], group_row[8], group_row[9] = row[CODEC], row[START], row[END], row[BASE_OFFSET]
    group_row[10], group_row[11], group_row[12] = row[LAST_OFFSET], row[COUNT], row[MAX_TIMESTAMP]

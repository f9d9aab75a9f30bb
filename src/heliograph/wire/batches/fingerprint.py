"""Fingerprints of records, to find out what of the source is already on the target without keeping either in memory.

A fingerprint is 64 bits of a record's timestamp, key, value and headers: all a consumer sees but the offset. It does
not depend on how records are batched or compressed, so a merged copy has the fingerprints of its originals.

Invariant: what cannot be read for sure (a damaged batch, a message of before format v2) ends the list; it is never
guessed at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from crc32c import crc32c

from heliograph.errors import CorruptBatchError
from heliograph.wire.batches import scan as s
from heliograph.wire.batches.codecs import NONE, decompress
from heliograph.wire.batches.forward import transactions_table
from heliograph.wire.batches.kernel_bytes import (
    MAX_VARINT_BYTES,
    MAX_VARLONG_BYTES,
    Bytes,
    Table,
    kernel,
    part_of_kernel,
    read_uint32,
    read_varint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.wire.messages.fetch_response import AbortedTransaction


_CRC_AT, _CRC_FROM = 17, 21
_PRIME = 0x100000001B3
_SEED = 0x2545F4914F6CDD1D


class Fingerprints(NamedTuple):
    """Offset and fingerprint of each visible record, where to read on, and whether that is possible."""

    offsets: Table
    prints: Table
    next_offset: int
    is_sound: bool


def fingerprints(records: memoryview, fetch_offset: int, aborted: Sequence[AbortedTransaction] = ()) -> Fingerprints:
    """Of the visible records of a fetched range from `fetch_offset` on."""
    data = np.frombuffer(records, np.uint8)
    rows, _open, next_offset, reason = s.scan(data, fetch_offset, transactions_table(aborted))
    offsets: list[Table] = []
    prints: list[Table] = []
    for row in rows:
        if row[s.ACTION] == s.DROP:
            continue
        section = _section(records, data, row)
        # A count that cannot be true must not decide how much memory is taken.
        is_true = section is not None and int(row[s.COUNT]) * s.MIN_RECORD_BYTES <= len(section)
        found = np.empty((int(row[s.COUNT]) if is_true else 0, 2), np.int64)
        if section is None or not is_true or not _print_records(section, row, found):
            return Fingerprints(_joined(offsets), _joined(prints), int(row[s.WANTED]), is_sound=False)
        wanted = found[found[:, 0] >= row[s.WANTED]]
        offsets.append(wanted[:, 0])
        prints.append(wanted[:, 1])
    return Fingerprints(_joined(offsets), _joined(prints), int(next_offset), is_sound=reason == s.SOUND)


def _joined(parts: list[Table]) -> Table:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _section(records: memoryview, data: Bytes, row: Table) -> Bytes | None:
    """The plain records of a sound batch; None where they cannot be had."""
    start, end = int(row[s.START]), int(row[s.END])
    if row[s.MAGIC] != 2:
        return None
    if row[s.CRC_OPEN] and crc32c(records[start + _CRC_FROM : end]) != read_uint32(data, start + _CRC_AT):
        return None
    if row[s.CODEC] == NONE:
        return data[row[s.SECTION] : row[s.SECTION_END]]
    try:
        section = decompress(int(row[s.CODEC]), records[row[s.SECTION] : row[s.SECTION_END]])
    except CorruptBatchError:
        return None
    return section if row[s.COUNT] * s.MIN_RECORD_BYTES <= len(section) else None


@kernel
def _print_records(section: Bytes, row: Table, found: Table) -> bool:
    """Fill `found` with (offset, fingerprint) of a batch's records; False where they are not records."""
    at, end = 0, len(section)
    for k in range(len(found)):
        length, at = read_varint(section, at, end, MAX_VARINT_BYTES)
        if at < 0 or length < s.MIN_RECORD_BYTES - 1 or length > end - at:
            return False
        record_end = at + length
        timestamp, at = read_varint(section, at + 1, record_end, MAX_VARLONG_BYTES)
        if at < 0:
            return False
        delta, at = read_varint(section, at, record_end, MAX_VARINT_BYTES)
        if at < 0:
            return False
        timestamp = row[s.MAX_TIMESTAMP] if row[s.IS_APPEND_TIME] else row[s.BASE_TIMESTAMP] + timestamp
        found[k, 0] = row[s.BASE_OFFSET] + delta
        found[k, 1] = _mix(section, at, record_end, timestamp)
        at = record_end
    return at == end


@part_of_kernel
def _mix(section: Bytes, start: int, end: int, timestamp: int) -> int:
    """FNV-1a, of which only the multiplication's wrap-around is used; begun with the timestamp and the length."""
    mixed = (np.int64(_SEED) ^ timestamp) * np.int64(_PRIME)
    mixed = (mixed ^ (end - start)) * np.int64(_PRIME)
    for at in range(start, end):
        mixed = (mixed ^ np.int64(section[at])) * np.int64(_PRIME)
    return int(mixed)


@kernel
def match_in_order(source: Table, target: Table, target_at: int) -> tuple[int, int]:
    """How many of the source's records, from the first on, stand in the target's in order, and how far those reach.

    Others' records in between are passed over: what is found there was written, whoever else writes.
    """
    matched, at = 0, target_at
    for k in range(len(source)):
        j = at
        while j < len(target) and target[j] != source[k]:
            j += 1
        if j == len(target):
            break
        at = j + 1
        matched += 1
    return matched, at

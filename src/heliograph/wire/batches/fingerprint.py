"""Fingerprints of records, to find the records of the source that the target already has, without keeping either.

A fingerprint is 64 bits of a record's timestamp, key, value and headers: everything that a consumer sees except the
offset. It does not depend on batching or compression, so a merged copy has the fingerprints of its originals.

Invariant: bytes that cannot be read with certainty (a damaged batch, a message from before format v2) end the list;
nothing is guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from crc32c import crc32c

from heliograph.errors import CorruptBatchError
from heliograph.wire.batches import scan as s
from heliograph.wire.batches.codecs import NONE, decompress
from heliograph.wire.batches.kernel_bytes import (
    MAX_VARINT_BYTES,
    MAX_VARLONG_BYTES,
    Bytes,
    Table,
    kernel,
    part_of_kernel,
    read_varint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.wire.messages.fetch_response import AbortedTransaction


_CRC_AT, _CRC_FROM = 17, 21
_PRIME = 0x100000001B3
_SEED = 0x2545F4914F6CDD1D


class Fingerprints(NamedTuple):
    """Offset and fingerprint of each visible record, the next offset, and whether reading can continue there."""

    offsets: Table
    prints: Table
    next_offset: int
    is_sound: bool


def fingerprints(records: memoryview, fetch_offset: int, aborted: Sequence[AbortedTransaction] = ()) -> Fingerprints:
    """Return the fingerprints of the visible records of a fetched range from `fetch_offset` on."""
    data = np.frombuffer(records, np.uint8)
    rows, _open, next_offset, reason = s.scan(data, fetch_offset, s.transactions_table(aborted))
    offsets: list[Table] = []
    prints: list[Table] = []
    for row in rows:
        if row[s.ACTION] == s.DROP:
            continue
        section = _section(records, data, row)
        # An impossible count must not decide how much memory is allocated.
        is_possible = section is not None and int(row[s.COUNT]) * s.MIN_RECORD_BYTES <= len(section)
        found = np.empty((int(row[s.COUNT]) if is_possible else 0, 2), np.int64)
        if section is None or not is_possible or not _print_records(section, row, found):
            return Fingerprints(_joined(offsets), _joined(prints), int(row[s.WANTED]), is_sound=False)
        wanted = found[found[:, 0] >= row[s.WANTED]]
        offsets.append(wanted[:, 0])
        prints.append(wanted[:, 1])
    return Fingerprints(_joined(offsets), _joined(prints), int(next_offset), is_sound=reason == s.SOUND)


def warm_up_fingerprints() -> None:
    """Load the kernels of this module, or compile them."""
    nothing = np.empty(0, np.int64)
    _print_records(np.empty(0, np.uint8), np.zeros(s.COLUMNS, np.int64), np.empty((0, 2), np.int64))
    match_in_order(nothing, nothing, 0)


def _joined(parts: list[Table]) -> Table:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _section(records: memoryview, data: Bytes, row: Table) -> Bytes | None:
    """Return the uncompressed records of a sound batch; None if it is damaged or too old."""
    start, end = int(row[s.START]), int(row[s.END])
    if row[s.MAGIC] != 2:
        return None
    crc = int.from_bytes(records[start + _CRC_AT : start + _CRC_FROM])
    if row[s.CRC_OPEN] and crc32c(records[start + _CRC_FROM : end]) != crc:
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
    """Fill `found` with (offset, fingerprint) of a batch's records; return whether they are sound."""
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
    """Return a FNV-1a hash that starts with the timestamp and the length; its multiplications wrap around."""
    mixed = (np.int64(_SEED) ^ timestamp) * np.int64(_PRIME)
    mixed = (mixed ^ (end - start)) * np.int64(_PRIME)
    for at in range(start, end):
        mixed = (mixed ^ np.int64(section[at])) * np.int64(_PRIME)
    return int(mixed)


@kernel
def match_in_order(source: Table, target: Table, target_at: int) -> tuple[int, int]:
    """Return how many of the source's first records are among the target's in order, and the index after the last.

    Records of other producers in between are skipped: a record that is found was written, whichever others were.
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

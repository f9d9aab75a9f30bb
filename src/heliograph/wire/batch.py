"""Record batches of format v2: find them in a fetched byte range, check them, re-stamp them in place.

    offset  bytes  field                     who owns it on the target
    0       8      base offset               the target broker; must be 0 in a produce request
    8       4      batch length              kept (bytes behind this field)
    12      4      partition leader epoch    the target broker
    16      1      magic                     kept, must be 2
    17      4      CRC-32C of all below      ours: recomputed
    21      2      attributes                compression kept; transactional and delete-horizon bits cleared
    23      4      last offset delta         kept
    27      8      base timestamp            kept
    35      8      max timestamp             kept
    43      8      producer id               ours
    51      2      producer epoch            ours
    53      4      base sequence             ours
    57      4      record count              kept
    61      ...    records, maybe compressed kept byte for byte

This is the hot path: per batch, never per record. Invariants:
A. `restamp` changes no byte behind offset 61, so keys, values, headers, timestamps and compression arrive as they were.
B. A batch is never re-stamped before its CRC was found right: a recomputed CRC would hide damage.
C. A batch the target would refuse or misread as it is (see `_refusal`) raises; it is neither dropped nor altered.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from heliograph.errors import BatchError, CorruptBatchError, UnsupportedBatchError

HEADER_BYTES = 61
_PREFIX_BYTES = 12  # base offset and length stand before what the length counts
_MAGIC_AT = 16
_HEADER = struct.Struct(">qiibIhiqqqhii")
_BASE_AND_EPOCH = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
_CRC = struct.Struct(">I")

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
NO_LEADER_EPOCH = -1
MAX_SEQUENCE = 2**31 - 1


class Batch(NamedTuple):
    """One whole batch inside a fetched buffer; `view` is writable and shares the buffer's memory."""

    base_offset: int
    last_offset: int
    record_count: int
    max_timestamp_ms: int
    view: memoryview


def split_batches(records: memoryview, fetch_offset: int) -> tuple[list[Batch], BatchError | None]:
    """The whole batches of a fetched range from `fetch_offset` on, checked, up to the first that must not be forwarded.

    That one's error comes back beside the good ones before it. A partial batch at the end is left for the next fetch.
    """
    batches: list[Batch] = []
    try:
        _split(records, fetch_offset, batches)
    except BatchError as error:
        return batches, error
    return batches, None


def _split(records: memoryview, fetch_offset: int, batches: list[Batch]) -> None:
    at, size = 0, len(records)
    while at + HEADER_BYTES <= size:
        (
            base_offset,
            length,
            _epoch,
            magic,
            crc,
            attributes,
            last_delta,
            _base_timestamp,
            max_timestamp_ms,
            _producer_id,
            _producer_epoch,
            _sequence,
            count,
        ) = _HEADER.unpack_from(records, at)
        if magic != 2:
            raise _old_or_corrupt(magic, base_offset, fetch_offset)
        end = at + _PREFIX_BYTES + length
        if length < HEADER_BYTES - _PREFIX_BYTES:
            raise CorruptBatchError(f"its length field says {length} bytes, less than a header", offset=fetch_offset)
        if end > size:
            break
        last_offset = base_offset + last_delta
        if last_offset >= fetch_offset:  # a broker may send batches that end before the wanted offset: they are known
            view = records[at:end]
            if crc32c(view[21:]) != crc:
                raise CorruptBatchError("its checksum does not match its bytes", offset=base_offset)
            if (
                attributes & ~(COMPRESSION_MASK | TRANSACTIONAL)
                or last_delta + 1 != count
                or base_offset < fetch_offset
            ):
                _refuse_or_pass(attributes, last_delta, count, base_offset, fetch_offset)
            batches.append(Batch(base_offset, last_offset, count, max_timestamp_ms, view))
            fetch_offset = last_offset + 1
        at = end
    if at + _MAGIC_AT < size and at + HEADER_BYTES > size and records[at + _MAGIC_AT] != 2:
        raise _old_or_corrupt(records[at + _MAGIC_AT], fetch_offset, fetch_offset)


def restamp(view: memoryview, attributes: int, producer_id: int, producer_epoch: int, sequence: int) -> None:
    """Make a checked batch ours: the producer's identity and sequence in, the source's out. Changes only the header."""
    _BASE_AND_EPOCH.pack_into(view, 0, 0)
    _LEADER_EPOCH.pack_into(view, 12, NO_LEADER_EPOCH)
    _ATTRIBUTES.pack_into(view, 21, attributes)
    _PRODUCER.pack_into(view, 43, producer_id, producer_epoch, sequence)
    _CRC.pack_into(view, 17, crc32c(view[21:]))


def compression_of(view: memoryview) -> int:
    """The compression bits of a batch, which are all that is kept of its attributes."""
    return view[22] & COMPRESSION_MASK


def next_sequence(sequence: int, record_count: int) -> int:
    """The sequence of the batch that follows; wraps to 0 behind 2^31-1 as the broker expects."""
    return (sequence + record_count) & MAX_SEQUENCE


def _old_or_corrupt(magic: int, base_offset: int, fetch_offset: int) -> CorruptBatchError | UnsupportedBatchError:
    if magic in (0, 1):
        reason = f"it is in the message format v{magic} of before Kafka 0.11, which is not converted yet"
        return UnsupportedBatchError(reason, offset=max(base_offset, fetch_offset))
    return CorruptBatchError(f"its format version is {magic}", offset=fetch_offset)


def _refuse_or_pass(attributes: int, last_delta: int, count: int, base_offset: int, fetch_offset: int) -> None:
    """Raise the sentence for a batch that cannot be forwarded as it is."""
    refusal = _refusal(attributes, last_delta, count, base_offset, fetch_offset)
    if refusal is not None:
        raise UnsupportedBatchError(refusal, offset=max(base_offset, fetch_offset))


def _refusal(attributes: int, last_delta: int, count: int, base_offset: int, fetch_offset: int) -> str | None:
    if attributes & CONTROL:
        return "it is a transaction marker; topics written with transactions are not replicated yet"
    if attributes & LOG_APPEND_TIME:
        return "its topic has message.timestamp.type=LogAppendTime, which is not converted yet"
    if base_offset < fetch_offset:
        return f"it begins at {base_offset}, before the wanted offset; batches are not cut yet"
    if last_delta + 1 != count:
        return "compaction has removed records from its middle, which is not renumbered yet"
    return (
        None  # the delete-horizon bit only: record timestamps stay relative to the same base, so clearing it is exact
    )

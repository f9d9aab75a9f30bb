"""The header of a record batch of format v2, and how it is re-stamped in place.

    offset  bytes  field                     what the copy contains
    0       8      base offset               the target broker; must be 0 in a produce request
    8       4      batch length              kept (bytes after this field)
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

This is the hot path: per batch, never per record. Batches come from `forward`, which has checked them and rewritten
those that the target would refuse or misread.

Invariants:
A. `restamp` changes no byte after offset 61, so keys, values, headers, timestamps and compression arrive unchanged.
B. A batch is never re-stamped before its CRC was verified: a recomputed CRC would hide damage.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

HEADER_BYTES = 61
_BASE_OFFSET = struct.Struct(">q")
_BASE_TIMESTAMP = struct.Struct(">q")
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


def restamp(view: memoryview, attributes: int, producer_id: int, producer_epoch: int, sequence: int) -> None:
    """Replace the source's producer and sequence in a checked batch by ours. Changes only the header."""
    _BASE_OFFSET.pack_into(view, 0, 0)
    _LEADER_EPOCH.pack_into(view, 12, NO_LEADER_EPOCH)
    _ATTRIBUTES.pack_into(view, 21, attributes)
    _PRODUCER.pack_into(view, 43, producer_id, producer_epoch, sequence)
    _CRC.pack_into(view, 17, crc32c(view[21:]))


def base_timestamp_ms(view: memoryview) -> int:
    """Return the timestamp of the first record of a batch; negative if it has none."""
    return int(_BASE_TIMESTAMP.unpack_from(view, 27)[0])


def compression_of(view: memoryview) -> int:
    """Return the compression bits of a batch, which are all that is kept of its attributes."""
    return view[22] & COMPRESSION_MASK


def next_sequence(sequence: int, record_count: int) -> int:
    """Return the sequence of the batch that follows; it wraps to 0 after 2^31-1, as the broker expects."""
    return (sequence + record_count) & MAX_SEQUENCE

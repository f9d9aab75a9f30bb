"""The Produce request as a list of buffers, so that batches go from the fetch buffer to the socket without a copy.

Versions 3 to 8 (classic encoding) and 9 to 12 (flexible encoding); 13 names topics by id, which we do not need.
Everything but the batches is a few bytes per partition. A test compares the joined bytes with a generated encoder's.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PRODUCE_API_KEY = 0
MIN_VERSION, MAX_VERSION = 3, 12
FLEXIBLE_FROM = 9
_HEADER = struct.Struct(">hhi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ACKS_TIMEOUT = struct.Struct(">hi")
NO_TAGS = b"\x00"


def unsigned_varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_produce_request(
    version: int,
    correlation_id: int,
    client_id: str,
    timeout_ms: int,
    topics: Mapping[str, Sequence[tuple[int, memoryview | bytes]]],
    transactional_id: str | None = None,
) -> list[bytes | memoryview]:
    """Size, header and body with acks=all; `topics` maps a topic to one (partition, batch) each."""
    flexible = version >= FLEXIBLE_FROM
    client = client_id.encode()
    small = bytearray(_HEADER.pack(PRODUCE_API_KEY, version, correlation_id) + _INT16.pack(len(client)) + client)
    if flexible:
        small += NO_TAGS
    small += _nullable_string(transactional_id, flexible=flexible)
    small += _ACKS_TIMEOUT.pack(-1, timeout_ms)
    small += _array_length(len(topics), flexible=flexible)
    parts: list[bytes | memoryview] = []
    size = 0
    for topic, partitions in topics.items():
        small += _string(topic, flexible=flexible)
        small += _array_length(len(partitions), flexible=flexible)
        for index, batch in partitions:
            small += _INT32.pack(index)
            small += unsigned_varint(len(batch) + 1) if flexible else _INT32.pack(len(batch))
            parts += (bytes(small), batch)
            size += len(small) + len(batch)
            small = bytearray(NO_TAGS if flexible else b"")
        small += NO_TAGS if flexible else b""
    small += NO_TAGS if flexible else b""
    parts.append(bytes(small))
    parts.insert(0, _INT32.pack(size + len(small)))
    return parts


def _array_length(count: int, *, flexible: bool) -> bytes:
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def _string(text: str, *, flexible: bool) -> bytes:
    encoded = text.encode()
    return (unsigned_varint(len(encoded) + 1) if flexible else _INT16.pack(len(encoded))) + encoded


def _nullable_string(text: str | None, *, flexible: bool) -> bytes:
    if text is None:
        return b"\x00" if flexible else _INT16.pack(-1)
    return _string(text, flexible=flexible)

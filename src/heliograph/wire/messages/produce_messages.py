"""Encodes the Produce request as a list of buffers, and decodes the Produce response.

Batches go from the fetch buffer to the socket without a copy; the rest of a request is a few bytes per partition.
Of a response only the error code and base offset of each partition are decoded: kafka-python's decoder makes an object
of every structure, after a walk over the bytes, and the hot path gets a response for every request. Messages, record
errors and tags are skipped; codes and metadata are sufficient. Versions 3 to 8 (classic encoding) and 9 to 12
(flexible); 13 names topics by id, which is not needed. Tests compare both with kafka-python's encoder and decoder.

Invariants of decoding, whatever the bytes are:
A. A malformed response raises `MalformedResponseError`, and nothing outside the view is read.
B. There are no more topics, partitions, record errors and tags than the bytes can contain, nor than a Fetch response
   may have.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from heliograph.model import TopicPartition
from heliograph.wire.messages.fetch_response import MalformedResponseError, ResponseReader

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
# Index, error code, base offset (log append time and log start offset are skipped), and the fields of variable length
# as they are without an error, which is also their least size.
_PARTITION_V3, _NOTHING_V3 = struct.Struct(">ihq8x0s"), b""
_PARTITION_V5, _NOTHING_V5 = struct.Struct(">ihq16x0s"), b""
_PARTITION_V8, _NOTHING_V8 = struct.Struct(">ihq16x6s"), b"\0\0\0\0\xff\xff"  # no record errors, no message
_PARTITION_V9, _NOTHING_V9 = struct.Struct(">ihq16x3s"), b"\1\0\0"  # ... and no tags


def unsigned_varint(value: int) -> bytes:
    """Encode a number as seven bits a byte, the lowest first."""
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
    """Return size, header and body with acks=all; `topics` maps a topic to its (partition, batch) pairs."""
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


class PartitionProduceResponse(NamedTuple):
    """The result for one partition's batch."""

    tp: TopicPartition
    error_code: int
    base_offset: int


class ProduceResponseData(NamedTuple):
    """A decoded Produce response."""

    throttle_time_ms: int
    partitions: list[PartitionProduceResponse]


def decode_produce_response(view: memoryview, version: int) -> ProduceResponseData:
    """Decode the body of a response (after its header)."""
    try:
        return _ProduceReader(view, version).response()
    except (struct.error, IndexError, UnicodeDecodeError):
        raise MalformedResponseError("a produce response ends too early or is not one.") from None


def _layout_of(version: int) -> tuple[struct.Struct, bytes]:
    if version >= FLEXIBLE_FROM:
        return _PARTITION_V9, _NOTHING_V9
    if version >= 8:
        return _PARTITION_V8, _NOTHING_V8
    return (_PARTITION_V5, _NOTHING_V5) if version >= 5 else (_PARTITION_V3, _NOTHING_V3)


class _ProduceReader(ResponseReader):
    """A cursor over a Produce response."""

    __slots__ = ("layout", "nothing")

    def __init__(self, view: memoryview, version: int) -> None:
        super().__init__(view, flexible=version >= FLEXIBLE_FROM)
        self.layout, self.nothing = _layout_of(version)

    def response(self) -> ProduceResponseData:
        partitions: list[PartitionProduceResponse] = []
        for _ in range(self.array_length()):
            self.topic(partitions)
        throttle_time_ms = self.number(_INT32)
        self.skip_tags()
        return ProduceResponseData(throttle_time_ms, partitions)

    def topic(self, partitions: list[PartitionProduceResponse]) -> None:
        topic = self.string()
        view, unpack_from, size, nothing = self.view, self.layout.unpack_from, self.layout.size, self.nothing
        for _ in range(self.array_length()):
            index, error_code, base_offset, details = unpack_from(view, self.at)
            self.at += size
            if details != nothing:
                self.at -= len(nothing)
                self.skip_details()
            partitions.append(PartitionProduceResponse(TopicPartition(topic, index), error_code, base_offset))
        self.skip_tags()

    def skip_details(self) -> None:
        for _ in range(self.array_length()):
            self.number(_INT32)
            self.skip_message()
            self.skip_tags()
        self.skip_message()
        self.skip_tags()

    def skip_message(self) -> None:
        size = self.string_size()
        if size > 0:
            self.slice(size)

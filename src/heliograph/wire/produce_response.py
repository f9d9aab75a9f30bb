"""The Produce response, as far as a producer needs it: what became of each partition's batch.

kafka-python's decoder makes an object of every structure, and its bytes must be walked before; one answer comes for
every request of the hot path. Versions 3 to 8 (classic encoding) and 9 to 12 (flexible), those that we send. Messages,
record errors and tags (the leader to ask instead, its address) are passed over: codes and metadata tell as much.
A test compares every field with kafka-python's decoder. Invariants, whatever the bytes are:
A. A malformed response raises `MalformedResponseError`, and nothing outside of the view is read.
B. There are no more topics, partitions, record errors and tags than the bytes can hold, nor than a Fetch response has.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from heliograph.model import TopicPartition
from heliograph.wire.fetch_response import MalformedResponseError, ResponseReader
from heliograph.wire.produce_request import FLEXIBLE_FROM

_INT32 = struct.Struct(">i")
# Index, error code, base offset (log append time and log start offset are passed over), and the fields of varying
# length as they are when nothing went wrong, which is also the least they take.
_PARTITION_V3, _NOTHING_V3 = struct.Struct(">ihq8x0s"), b""
_PARTITION_V5, _NOTHING_V5 = struct.Struct(">ihq16x0s"), b""
_PARTITION_V8, _NOTHING_V8 = struct.Struct(">ihq16x6s"), b"\0\0\0\0\xff\xff"  # no record errors, no message
_PARTITION_V9, _NOTHING_V9 = struct.Struct(">ihq16x3s"), b"\1\0\0"  # ... and no tags


class PartitionAnswer(NamedTuple):
    """What became of one partition's batch."""

    tp: TopicPartition
    error_code: int
    base_offset: int


class ProduceAnswer(NamedTuple):
    """A whole response."""

    throttle_time_ms: int
    partitions: list[PartitionAnswer]


def decode_produce_response(view: memoryview, version: int) -> ProduceAnswer:
    """Decode a response body (behind its header)."""
    try:
        return _ProduceReader(view, version).answer()
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

    def answer(self) -> ProduceAnswer:
        partitions: list[PartitionAnswer] = []
        for _ in range(self.array_length()):
            self.topic(partitions)
        throttle_time_ms = self.number(_INT32)
        self.skip_tags()
        return ProduceAnswer(throttle_time_ms, partitions)

    def topic(self, partitions: list[PartitionAnswer]) -> None:
        topic = self.string()
        view, unpack_from, size, nothing = self.view, self.layout.unpack_from, self.layout.size, self.nothing
        for _ in range(self.array_length()):
            index, error_code, base_offset, details = unpack_from(view, self.at)
            self.at += size
            if details != nothing:
                self.at -= len(nothing)
                self.skip_details()
            partitions.append(PartitionAnswer(TopicPartition(topic, index), error_code, base_offset))
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

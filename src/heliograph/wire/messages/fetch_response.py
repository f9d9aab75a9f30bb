"""Decodes the Fetch response, with each partition's records as a view into the received buffer.

kafka-python's decoder copies the records, which the hot path cannot afford, and re-stamping needs writable bytes.
Versions 4 to 11 (classic encoding) and 12 (flexible). A test compares every field with kafka-python's decoder.
`ResponseReader`, the cursor over both encodings, serves the Produce response as well.

Invariants, whatever the bytes are:
A. A malformed response raises `MalformedResponseError`, and nothing outside the view is read.
B. There are at most `MAX_ENTRIES` topics, partitions, aborted transactions and tags, or it counts as malformed.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from heliograph.errors import HeliographError

MIN_VERSION, MAX_VERSION = 4, 12
FLEXIBLE_FROM = 12
MAX_ENTRIES = 1_000_000
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_PARTITION_V4 = struct.Struct(">ihqq")  # index, error code, high watermark, last stable offset
_PARTITION_V5 = struct.Struct(">ihqqq")  # ... and log start offset


class MalformedResponseError(HeliographError):
    """The bytes are not a response of the expected kind."""


class AbortedTransaction(NamedTuple):
    """A producer whose records from `first_offset` on were aborted."""

    producer_id: int
    first_offset: int


class PartitionData(NamedTuple):
    """The part of a response about one partition."""

    topic: str
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[AbortedTransaction, ...]
    preferred_read_replica: int
    records: memoryview | None


class FetchResponseData(NamedTuple):
    """A decoded Fetch response."""

    throttle_time_ms: int
    error_code: int
    session_id: int
    partitions: list[PartitionData]


def decode_fetch_response(view: memoryview, version: int) -> FetchResponseData:
    """Decode the body of a response (after its header)."""
    try:
        return _FetchReader(view, version).response()
    except (struct.error, IndexError, UnicodeDecodeError):
        raise MalformedResponseError("a fetch response ends too early or is not one.") from None


class ResponseReader:
    """A cursor over a response in either encoding; past the end it raises IndexError or struct.error."""

    __slots__ = ("at", "entries", "flexible", "view")

    def __init__(self, view: memoryview, *, flexible: bool) -> None:
        self.view = view
        self.flexible = flexible
        self.at = 0
        self.entries = 0

    def number(self, layout: struct.Struct) -> int:
        """Read a number of a fixed size."""
        (value,) = layout.unpack_from(self.view, self.at)
        self.at += layout.size
        return int(value)

    def unsigned_varint(self) -> int:
        """Read a number of seven bits a byte, the lowest first, five bytes at most."""
        byte = self.view[self.at]
        self.at += 1
        if byte < 0x80:  # nearly always
            return byte
        value, shift = byte & 0x7F, 7
        while shift <= 28:
            byte = self.view[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise MalformedResponseError("a number in a response is too long.")

    def array_length(self) -> int:
        """Read the number of elements of an array; a null array has none."""
        return self.counted(self.unsigned_varint() - 1 if self.flexible else self.number(_INT32))

    def counted(self, count: int) -> int:
        """Return a number of elements if the remaining bytes can contain so many; count them."""
        if count <= 0:
            return 0
        self.entries += count
        if count > len(self.view) - self.at or self.entries > MAX_ENTRIES:
            raise MalformedResponseError("an array in a response is longer than the response.")
        return count

    def string(self) -> str:
        """Read a string that must not be null."""
        return str(self.slice(self.string_size()), "utf-8")

    def string_size(self) -> int:
        """Read the number of bytes of a string; negative for a null one."""
        return self.unsigned_varint() - 1 if self.flexible else self.number(_INT16)

    def slice(self, size: int) -> memoryview:
        """Return a view of the next bytes."""
        end = self.at + size
        if size < 0 or end > len(self.view):
            raise MalformedResponseError("a field of a response is longer than the response.")
        start, self.at = self.at, end
        return self.view[start:end]

    def skip_tags(self) -> None:
        """Skip the tags that end a structure of the flexible encoding."""
        if self.flexible and (count := self.unsigned_varint()):
            for _ in range(self.counted(count)):
                self.unsigned_varint()
                self.slice(self.unsigned_varint())


class _FetchReader(ResponseReader):
    """A cursor over a Fetch response."""

    __slots__ = ("version",)

    def __init__(self, view: memoryview, version: int) -> None:
        super().__init__(view, flexible=version >= FLEXIBLE_FROM)
        self.version = version

    def response(self) -> FetchResponseData:
        throttle_time_ms = self.number(_INT32)
        error_code, session_id = (self.number(_INT16), self.number(_INT32)) if self.version >= 7 else (0, 0)
        partitions: list[PartitionData] = []
        for _ in range(self.array_length()):
            topic = self.string()
            partitions += [self.partition(topic) for _ in range(self.array_length())]
            self.skip_tags()
        self.skip_tags()
        return FetchResponseData(throttle_time_ms, error_code, session_id, partitions)

    def partition(self, topic: str) -> PartitionData:
        log_start = -1
        if self.version >= 5:
            index, error_code, high_watermark, stable, log_start = _PARTITION_V5.unpack_from(self.view, self.at)
            self.at += _PARTITION_V5.size
        else:
            index, error_code, high_watermark, stable = _PARTITION_V4.unpack_from(self.view, self.at)
            self.at += _PARTITION_V4.size
        aborted = tuple(self.aborted() for _ in range(self.array_length()))
        replica = self.number(_INT32) if self.version >= 11 else -1
        records = self.records()
        self.skip_tags()
        return PartitionData(topic, index, error_code, high_watermark, stable, log_start, aborted, replica, records)

    def aborted(self) -> AbortedTransaction:
        transaction = AbortedTransaction(self.number(_INT64), self.number(_INT64))
        self.skip_tags()
        return transaction

    def records(self) -> memoryview | None:
        size = self.unsigned_varint() - 1 if self.flexible else self.number(_INT32)
        return self.slice(size) if size > 0 else None

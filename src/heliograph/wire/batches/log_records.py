"""Decodes the records of a batch one by one, for small topics whose contents are read and not only forwarded.

Invariants, whatever the bytes are:
A. A batch whose records contradict its header raises CorruptBatchError; nothing outside it is read.
B. No batch is decompressed to more than `MAX_BATCH_BYTES`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from heliograph.errors import CorruptBatchError
from heliograph.wire.batches.batch_header import HEADER_BYTES, compression_of
from heliograph.wire.batches.codecs import decompress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.wire.batches.forward import Piece


MAX_BATCH_BYTES: Final = 64 << 20
_MAX_VARINT_BYTES = 10
_MIN_HEADER_BYTES = 2
_TIMES_AT, _TIMES = 21, struct.Struct(">h4xqq")  # attributes, and the first and the last timestamp
_APPEND_TIME = 0x08


class LogRecord(NamedTuple):
    """A record of a small topic; `timestamp_ms` is -1 if it has none."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int = -1


def records_of(piece: Piece) -> Iterator[LogRecord]:
    """Yield every record of a batch, with its offset at the source."""
    try:
        section = decompress(compression_of(piece.view), piece.view[HEADER_BYTES:], max_bytes=MAX_BATCH_BYTES)
    except CorruptBatchError as error:
        raise CorruptBatchError(str(error), offset=piece.base_offset) from None
    attributes, first_ms, max_ms = _TIMES.unpack_from(piece.view, _TIMES_AT)
    reader = _RecordReader(
        section.tobytes(), piece.base_offset, first_ms, max_ms if attributes & _APPEND_TIME else None
    )
    for index in range(piece.record_count):
        yield reader.record(piece.offset_of(index))
    if reader.at != len(reader.data):
        raise reader.corrupt()


class _RecordReader:
    """A cursor over the records of a batch."""

    def __init__(self, data: bytes, base_offset: int, first_ms: int, append_ms: int | None) -> None:
        self.data = data
        self._first_ms, self._append_ms = first_ms, append_ms
        self.at = 0
        self._base_offset = base_offset

    def corrupt(self) -> CorruptBatchError:
        return CorruptBatchError("its records contradict its header or are not records", offset=self._base_offset)

    def record(self, offset: int) -> LogRecord:
        end = self._varint() + self.at
        self.at += 1  # attributes, always 0
        since_first_ms = self._varint()
        timestamp_ms = self._first_ms + since_first_ms if self._append_ms is None else self._append_ms
        self._varint()  # offset delta
        key, value = self._bytes(), self._bytes()
        count = self._varint()
        if not 0 <= count * _MIN_HEADER_BYTES <= len(self.data) - self.at:
            raise self.corrupt()
        headers = [(str(self._bytes() or b"", "utf-8", "replace"), self._bytes()) for _ in range(count)]
        if self.at != end:
            raise self.corrupt()
        return LogRecord(offset, key, value, headers, timestamp_ms)

    def _varint(self) -> int:
        if self.at < len(self.data) and (byte := self.data[self.at]) < 0x80:  # nearly always
            self.at += 1
            return byte >> 1 ^ -(byte & 1)
        value = 0
        for k, byte in enumerate(self.data[self.at : self.at + _MAX_VARINT_BYTES]):
            value |= (byte & 0x7F) << 7 * k
            if byte < 0x80:
                self.at += k + 1
                return value >> 1 ^ -(value & 1)
        raise self.corrupt()

    def _bytes(self) -> bytes | None:
        size = self._varint()
        if size < 0:
            return None
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise self.corrupt()
        return self.data[start : self.at]

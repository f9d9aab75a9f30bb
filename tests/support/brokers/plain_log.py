"""A plain-Python writer and reader of logs, for what kafka-python cannot write: gaps, markers, codecs, old formats.

The reader is the other opinion the kernels are compared with, so it shares no code with them.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field, replace

import cramjam
from crc32c import crc32c
from hypothesis import strategies as st

from heliograph.wire.messages.fetch_response import AbortedTransaction
from tests.support.brokers.batches import Record, small_bytes

APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64
XERIAL = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"

timestamps = st.integers(-1, 2**41) | st.just(-1)
plain_records = st.builds(
    Record,
    key=st.none() | small_bytes,
    value=st.none() | small_bytes | st.binary(min_size=150, max_size=300),
    headers=st.lists(st.tuples(st.text(max_size=5), st.none() | small_bytes), max_size=2).map(tuple),
    timestamp_ms=timestamps,
)


@dataclass(frozen=True)
class PlainBatch:
    """A batch as it lies in a log: `records` by offset delta."""

    records: dict[int, Record]
    last_delta: int
    codec: int = 0
    attributes: int = 0
    base_timestamp: int = 0
    append_time: int = 0
    producer_id: int = -1
    raw_snappy: bool = False
    base_offset: int = 0
    marker: int | None = field(default=None)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_delta

    def visible(self) -> list[tuple[int, Record]]:
        """Offset and record as a consumer sees them."""
        if self.attributes & CONTROL:
            return []
        return [
            (
                self.base_offset + delta,
                replace(r, timestamp_ms=self.append_time) if self.attributes & APPEND_TIME else r,
            )
            for delta, r in sorted(self.records.items())
        ]

    def encode(self) -> bytearray:
        section = b"".join(
            framed_record(r.timestamp_ms - self.base_timestamp, delta, r) for delta, r in sorted(self.records.items())
        )
        times = [r.timestamp_ms for r in self.records.values()]
        latest = self.append_time if self.attributes & APPEND_TIME else max(times, default=-1)
        body = struct.pack(
            ">hiqqqhii",
            self.attributes | self.codec,
            self.last_delta,
            self.base_timestamp,
            latest,
            self.producer_id,
            0,
            0,
            len(self.records),
        ) + squeeze(self.codec, section, raw_snappy=self.raw_snappy)
        head = struct.pack(">qiibI", self.base_offset, len(body) + 9, 4, 2, crc32c(body))
        return bytearray(head + body)


def marker(base_offset: int, producer_id: int, kind: int) -> PlainBatch:
    record = Record(struct.pack(">hh", 0, kind), b"\0\0\0\0\0\0", (), 5)
    return PlainBatch(
        {0: record},
        0,
        attributes=CONTROL | TRANSACTIONAL,
        producer_id=producer_id,
        base_offset=base_offset,
        marker=kind,
    )


def varint(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def field_bytes(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def framed_record(timestamp_delta: int, offset_delta: int, record: Record) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + field_bytes(record.key) + field_bytes(record.value)
    body += varint(len(record.headers))
    for name, data in record.headers:
        body += field_bytes(name.encode()) + field_bytes(data)
    return varint(len(body)) + body


def squeeze(codec: int, data: bytes, *, raw_snappy: bool = False) -> bytes:
    if codec == 1:
        return bytes(cramjam.gzip.compress(data))
    if codec == 2 and raw_snappy:
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == 2:
        blocks = [bytes(cramjam.snappy.compress_raw(data[k : k + 64])) for k in range(0, len(data), 64)]
        return XERIAL + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    if codec == 3:
        return bytes(cramjam.lz4.compress(data))
    return bytes(cramjam.zstd.compress(data)) if codec == 4 else data


def unsqueeze(codec: int, data: bytes, *, is_for_java: bool) -> bytes:
    if codec == 2 and not data.startswith(XERIAL):
        assert not is_for_java, "Java's producer frames snappy"
        return bytes(cramjam.snappy.decompress_raw(data))
    if codec == 2:
        out, at = b"", len(XERIAL)
        while at < len(data):
            (size,) = struct.unpack_from(">i", data, at)
            out += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size]))
            at += 4 + size
        return out
    if codec == 3 and is_for_java:
        assert data[4] == 0x60, "Java reads independent blocks only"
    module = {1: cramjam.gzip, 3: cramjam.lz4, 4: cramjam.zstd}.get(codec)
    return bytes(module.decompress(data)) if module else data


class Cursor:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        assert 0 <= size <= len(self.data) - self.at
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    def field(self) -> bytes | None:
        size = self.varint()
        return None if size < 0 else self.take(size)


def read_batch(view: bytes | memoryview, *, is_for_java: bool = False) -> list[Record]:
    """The records of one whole produced batch, whose numbers must be those a producer writes."""
    data = bytes(view)
    _base, length, _epoch, magic = struct.unpack_from(">qiib", data)
    attributes, last_delta, base_timestamp, latest, _pid, _e, _seq, count = struct.unpack_from(">hiqqqhii", data, 21)
    assert (magic, length) == (2, len(data) - 12)
    assert attributes & ~7 == 0
    assert struct.unpack_from(">I", data, 17)[0] == crc32c(data[21:])
    cursor = Cursor(unsqueeze(attributes, data[61:], is_for_java=is_for_java))
    records = []
    for k in range(count):
        end = cursor.varint() + cursor.at
        assert cursor.take(1) == b"\0"
        timestamp = base_timestamp + cursor.varint()
        assert cursor.varint() == k, "offset deltas are contiguous"
        key, value = cursor.field(), cursor.field()
        headers = tuple(((cursor.field() or b"").decode(), cursor.field()) for _ in range(cursor.varint()))
        assert cursor.at == end
        records.append(Record(key, value, headers, timestamp))
    assert cursor.at == len(cursor.data)
    assert last_delta == count - 1
    assert latest == max(r.timestamp_ms for r in records)
    return records


def message(offset: int, magic: int, record: Record, *, attributes: int = 0, value: bytes | None = None) -> bytes:
    """One message of format v0 or v1."""
    value = record.value if value is None else value
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", record.timestamp_ms)
    for data in (record.key, value):
        body += struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(batch: PlainBatch, magic: int) -> bytes:
    """Messages inside of a compressed one."""
    deltas = sorted(batch.records)
    last = batch.base_offset + deltas[-1]
    inner = b"".join(
        message(delta if magic == 1 else batch.base_offset + delta, magic, batch.records[delta]) for delta in deltas
    )
    outer = Record(None, None, (), batch.append_time)
    value = squeeze(batch.codec, inner, raw_snappy=batch.raw_snappy)
    if batch.codec == 3 and magic == 0:
        value = value[:6] + bytes([value[6] ^ 0x5A]) + value[7:]  # KAFKA-3160: another header checksum
    return message(last, magic, outer, attributes=batch.codec | batch.attributes & APPEND_TIME, value=value)


@st.composite
def plain_batches(draw: st.DrawFn, codecs: tuple[int, ...] = (0, 1, 2, 3, 4)) -> PlainBatch:
    deltas = draw(st.lists(st.integers(0, 9), max_size=5, unique=True))
    if draw(st.booleans()):
        deltas = list(range(len(deltas)))
    last_delta = max(deltas, default=0) + draw(st.sampled_from([0, 0, 0, 3]))
    return PlainBatch(
        {delta: draw(plain_records) for delta in deltas},
        last_delta,
        codec=draw(st.sampled_from(codecs)),
        attributes=draw(st.sampled_from([0, 0, 0, APPEND_TIME, DELETE_HORIZON, APPEND_TIME | DELETE_HORIZON])),
        base_timestamp=draw(timestamps),
        append_time=draw(st.integers(0, 2**41)),
        raw_snappy=draw(st.booleans()),
    )


@st.composite
def plain_logs(draw: st.DrawFn, codecs: tuple[int, ...] = (0, 1, 2, 3, 4)) -> list[PlainBatch]:
    """Batches one behind the other, now and then with a hole between them; long runs of one codec are likely."""
    if draw(st.booleans()):
        codecs = (draw(st.sampled_from(codecs)),)
    log, offset = [], draw(st.sampled_from([0, 1000, 2**40]))
    for batch in draw(st.lists(plain_batches(codecs), max_size=7)):
        offset += draw(st.sampled_from([0, 0, 0, 4]))
        log.append(replace(batch, base_offset=offset))
        offset += batch.last_delta + 1
    return log


def read_committed(log: list[PlainBatch], aborted: list[AbortedTransaction]) -> list[tuple[int, Record]]:
    """What Kafka's consumer shows of a log, word for word as its loop does it."""
    queue = sorted(aborted, key=lambda entry: entry.first_offset)
    active: set[int] = set()
    seen = []
    for batch in log:
        if batch.producer_id >= 0:
            while queue and queue[0].first_offset <= batch.last_offset:
                active.add(queue.pop(0).producer_id)
            if batch.attributes & CONTROL:
                if batch.marker == 0 and batch.records:
                    active.discard(batch.producer_id)
            elif batch.attributes & TRANSACTIONAL and batch.producer_id in active:
                continue
        seen += batch.visible()
    return seen

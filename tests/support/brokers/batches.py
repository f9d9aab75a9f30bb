"""Builds record batches with kafka-python's encoder and decodes them with its decoder: a second opinion."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder


@dataclass(frozen=True)
class Record:
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


small_bytes = st.binary(max_size=40)
records = st.builds(
    Record,
    key=st.none() | small_bytes,
    value=st.none() | small_bytes,
    headers=st.lists(st.tuples(st.text(max_size=5), st.none() | small_bytes), max_size=3).map(tuple),
    timestamp_ms=st.integers(0, 2**41),
)


def encode(batch: list[Record], *, base_offset: int = 0, codec: int = 0, transactional: bool = False) -> bytearray:
    """One batch as it would lie in a log."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=77 if transactional else -1,
        producer_epoch=1 if transactional else -1,
        base_sequence=5 if transactional else -1,
        batch_size=1 << 20,
    )
    for delta, record in enumerate(batch):
        assert builder.append(delta, record.timestamp_ms, record.key, record.value, list(record.headers)) is not None
    data = bytearray(builder.build())
    data[0:8] = base_offset.to_bytes(8, "big")
    return data


def with_attributes(data: bytearray, bits: int) -> bytearray:
    """The batch with more attribute bits set, and a CRC that fits."""
    from crc32c import crc32c

    changed = bytearray(data)
    changed[22] |= bits
    changed[17:21] = crc32c(changed[21:]).to_bytes(4, "big")
    return changed


def decode(data: bytes | memoryview) -> list[tuple[int, Record]]:
    """Offset and record of everything in a byte range."""
    seen = []
    batches = MemoryRecords(bytes(data))
    while (batch := batches.next_batch()) is not None:
        for r in batch:
            seen.append((r.offset, Record(r.key, r.value, tuple(r.headers), r.timestamp)))
    return seen


__all__ = ["Record", "decode", "encode", "records", "with_attributes"]

"""Messages of before Kafka 0.11 become record batches in which a consumer sees the same."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from heliograph.wire.batches.batch_header import compression_of
from heliograph.wire.batches.forward import ForwardOptions, prepare
from tests.properties.test_kernels import check, some_rules
from tests.support.brokers.batches import Record
from tests.support.brokers.plain_log import APPEND_TIME, PlainBatch, message, plain_logs, wrapper

magics = st.integers(0, 1)


def old_view(batch: PlainBatch, magic: int) -> list[tuple[int, Record]]:
    """Offset and record of a batch as its old format can hold it: without headers, in v0 without time."""

    def seen(record: Record) -> Record:
        if magic == 0:
            return replace(record, headers=(), timestamp_ms=-1)
        is_broker_time = batch.attributes & APPEND_TIME and batch.codec
        return replace(record, headers=(), timestamp_ms=batch.append_time if is_broker_time else record.timestamp_ms)

    return [(batch.base_offset + delta, seen(r)) for delta, r in sorted(batch.records.items())]


def encode_old(batch: PlainBatch, magic: int) -> bytes:
    if not batch.records:
        return b""
    if batch.codec:
        return wrapper(batch, magic)
    return b"".join(
        message(batch.base_offset + delta, magic, r, attributes=batch.attributes & APPEND_TIME if magic else 0)
        for delta, r in sorted(batch.records.items())
    )


@given(plain_logs(), st.lists(magics, min_size=7, max_size=7), some_rules, st.data())
def test_old_messages_arrive_as_records(
    log: list[PlainBatch], formats: list[int], rules: ForwardOptions, data: st.DataObject
) -> None:
    pairs = [(batch, magic) for batch, magic in zip(log, formats, strict=False) if batch.records]
    everything = [entry for batch, magic in pairs for entry in old_view(batch, magic)]
    end = everything[-1][0] + 1 if everything else 0
    wanted = data.draw(st.integers(everything[0][0] if everything else 0, end))
    buffer = bytearray().join(encode_old(batch, magic) for batch, magic in pairs)
    prepared = prepare(memoryview(buffer), wanted, (), rules)
    check(prepared, [entry for entry in everything if entry[0] >= wanted], end)


@given(plain_logs(), st.lists(st.integers(0, 2), min_size=7, max_size=7))
def test_a_log_may_change_its_format(log: list[PlainBatch], formats: list[int]) -> None:
    buffer, everything, end = bytearray(), [], 0
    for batch, magic in zip(log, formats, strict=False):
        buffer += batch.encode() if magic == 2 else encode_old(batch, magic)
        everything += batch.visible() if magic == 2 else old_view(batch, magic)
        if magic == 2:
            end = batch.last_offset + 1
        elif batch.records:
            end = everything[-1][0] + 1
    check(prepare(memoryview(buffer), 0), everything, end)


@given(plain_logs(codecs=(0, 1)), magics)
def test_kafka_python_reads_the_same_in_the_old_messages(log: list[PlainBatch], magic: int) -> None:
    buffer = b"".join(encode_old(batch, magic) for batch in log)
    seen, batches = [], MemoryRecords(buffer)
    while (batch := batches.next_batch()) is not None:
        for r in batch:
            timestamp = -1 if r.timestamp is None else r.timestamp
            seen.append((r.offset, Record(r.key, r.value, (), timestamp)))
    assert seen == [entry for batch in log for entry in old_view(batch, magic)]


@given(plain_logs(codecs=(0, 1)), magics, st.integers(0, 1))
def test_what_kafka_python_writes_is_read(log: list[PlainBatch], magic: int, codec: int) -> None:
    written = [replace(r, headers=(), timestamp_ms=7) for batch in log for r in batch.records.values()]
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for offset, r in enumerate(written):
        builder.append(offset, r.timestamp_ms, r.key, r.value)
    data = bytearray(builder.build())
    if not written:
        return
    if codec:
        data[0:8] = (len(written) - 1).to_bytes(8, "big")  # the broker gives a wrapper the offset of its last message
    expected = list(enumerate(written if magic else [replace(r, timestamp_ms=-1) for r in written]))
    check(prepare(memoryview(data), 0), expected, len(written))


def test_a_wrapper_keeps_its_codec_and_messages_have_none() -> None:
    for codec in range(5):
        batch = PlainBatch({0: Record(b"k", b"v", (), 1), 4: Record(None, None, (), 2)}, 4, codec=codec)
        (piece,) = prepare(memoryview(bytearray(encode_old(batch, 1))), 0).pieces
        assert compression_of(piece.view) == codec
        assert (piece.base_offset, piece.last_offset, piece.record_count) == (0, 4, 2)


@given(plain_logs(), magics, st.data())
def test_a_partial_message_is_left(log: list[PlainBatch], magic: int, data: st.DataObject) -> None:
    pairs = [batch for batch in log if batch.records]
    buffer = bytearray().join(encode_old(batch, magic) for batch in pairs)
    cut = data.draw(st.integers(0, len(buffer)))
    prepared = prepare(memoryview(buffer)[:cut], 0)
    everything = [entry for batch in pairs for entry in old_view(batch, magic)]
    check(prepared, everything[: sum(piece.record_count for piece in prepared.pieces)], prepared.next_offset)


@given(plain_logs(), magics, st.data())
def test_a_flipped_bit_is_never_forwarded(log: list[PlainBatch], magic: int, data: st.DataObject) -> None:
    pairs = [batch for batch in log[:1] if batch.records]
    buffer = bytearray().join(encode_old(replace(batch, codec=batch.codec or 1), magic) for batch in pairs)
    if buffer:
        bit = data.draw(st.integers(12 * 8, len(buffer) * 8 - 1))
        buffer[bit // 8] ^= 1 << bit % 8
        prepared = prepare(memoryview(buffer), 0)
        assert prepared.pieces == []
        # With the format's bits flipped to those of a record batch, it may look like one that is not yet all here.
        assert prepared.error is not None or bit // 8 == 16

"""Whole batches: what is forwarded is what was written, and nothing damaged or doubtful is forwarded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.errors import CorruptBatchError, UnsupportedBatchError
from heliograph.wire.batch import DELETE_HORIZON, MAX_SEQUENCE, compression_of, next_sequence, restamp, split_batches
from tests.batches import CONTROL, LOG_APPEND_TIME, Record, decode, encode, records, with_attributes

batches_of_records = st.lists(st.lists(records, min_size=1, max_size=6), min_size=1, max_size=4)


def log_of(batches: list[list[Record]], codec: int = 0, *, transactional: bool = False) -> bytearray:
    log, offset = bytearray(), 0
    for batch in batches:
        log += encode(batch, base_offset=offset, codec=codec, transactional=transactional)
        offset += len(batch)
    return log


@given(batches_of_records, st.sampled_from([0, 1]), st.booleans())
def test_restamping_changes_nothing_a_consumer_sees(
    written: list[list[Record]],
    codec: int,
    transactional: bool,
) -> None:
    log = log_of(written, codec, transactional=transactional)
    batches, error = split_batches(memoryview(log), 0)
    assert error is None
    assert [b.record_count for b in batches] == [len(batch) for batch in written]
    for batch in batches:
        payload = bytes(batch.view[61:])
        restamp(batch.view, compression_of(batch.view), 9, 3, 100)
        assert bytes(batch.view[61:]) == payload
        (again,), broken = split_batches(memoryview(bytearray(batch.view)), 0)
        assert broken is None
        assert again.record_count == batch.record_count
    for batch, original in zip(batches, written, strict=True):
        assert [record for _, record in decode(batch.view)] == original


@given(batches_of_records, st.data())
def test_a_flipped_bit_is_never_forwarded(written: list[list[Record]], data: st.DataObject) -> None:
    log = log_of(written[:1])
    bit = data.draw(st.integers(16 * 8, len(log) * 8 - 1))  # from the magic on: what is before belongs to the broker
    log[bit // 8] ^= 1 << bit % 8
    batches, error = split_batches(memoryview(log), 0)
    assert batches == []
    assert error is not None


@given(batches_of_records, st.data())
def test_a_partial_batch_is_left_for_the_next_fetch(written: list[list[Record]], data: st.DataObject) -> None:
    log = log_of(written)
    cut = data.draw(st.integers(0, len(log) - 1))
    batches, error = split_batches(memoryview(log)[:cut], 0)
    assert error is None
    assert len(batches) < len(written)
    assert sum(len(b.view) for b in batches) <= cut


@given(st.binary(max_size=300), st.integers(0, 2**62))
def test_any_bytes_are_split_or_refused(noise: bytes, offset: int) -> None:
    batches, _error = split_batches(memoryview(bytearray(noise)), offset)
    assert batches == []


ONE = [Record(b"k", b"v", (), 1), Record(b"k2", b"v2", (), 2)]


def test_batches_before_a_bad_one_are_kept() -> None:
    good, bad = encode(ONE), encode(ONE, base_offset=2)
    bad[-1] ^= 1
    batches, error = split_batches(memoryview(good + bad), 0)
    assert [b.base_offset for b in batches] == [0]
    assert isinstance(error, CorruptBatchError)
    assert error.offset == 2


def test_batches_before_the_wanted_offset_are_passed_over() -> None:
    batches, error = split_batches(memoryview(encode(ONE) + encode(ONE, base_offset=2)), 2)
    assert error is None
    assert [b.base_offset for b in batches] == [2]


@pytest.mark.parametrize(
    ("data", "fetch_offset", "words"),
    [
        (with_attributes(encode(ONE), CONTROL), 0, "transaction marker"),
        (with_attributes(encode(ONE), LOG_APPEND_TIME), 0, "LogAppendTime"),
        (encode(ONE), 1, "begins at 0, before the wanted offset"),
    ],
)
def test_a_batch_that_needs_a_conversion_is_refused(data: bytearray, fetch_offset: int, words: str) -> None:
    batches, error = split_batches(memoryview(data), fetch_offset)
    assert batches == []
    assert isinstance(error, UnsupportedBatchError)
    assert words in str(error)
    assert error.offset == fetch_offset


def test_a_gap_inside_a_batch_is_refused() -> None:
    data = encode(ONE)
    data[23:27] = (5).to_bytes(4, "big")
    _batches, error = split_batches(memoryview(with_attributes(data, 0)), 0)
    assert isinstance(error, UnsupportedBatchError)
    assert "compaction" in str(error)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_refused_even_when_short(magic: int) -> None:
    data = bytearray(40)
    data[16] = magic
    data[11] = 28
    _batches, error = split_batches(memoryview(data), 0)
    assert isinstance(error, UnsupportedBatchError)
    assert f"v{magic}" in str(error)


def test_the_delete_horizon_bit_is_cleared() -> None:
    data = with_attributes(encode(ONE), DELETE_HORIZON)
    (batch,), error = split_batches(memoryview(data), 0)
    assert error is None
    restamp(batch.view, compression_of(batch.view), 1, 1, 1)
    assert batch.view[22] == 0
    assert [record for _, record in decode(batch.view)] == ONE


@given(st.integers(0, MAX_SEQUENCE), st.integers(1, 10_000))
def test_sequences_wrap_as_the_broker_expects(sequence: int, count: int) -> None:
    following = next_sequence(sequence, count)
    assert following == (sequence + count if sequence + count <= MAX_SEQUENCE else sequence + count - MAX_SEQUENCE - 1)

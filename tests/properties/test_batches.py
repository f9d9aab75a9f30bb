"""Whole batches: re-stamping changes nothing a consumer sees, and is what the target expects of its producer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.wire.batches.batch_header import DELETE_HORIZON, MAX_SEQUENCE, compression_of, next_sequence, restamp
from heliograph.wire.batches.forward import ForwardOptions, prepare
from tests.support.brokers.batches import Record, decode, encode, records, with_attributes

batches_of_records = st.lists(st.lists(records, min_size=1, max_size=6), min_size=1, max_size=4)
AS_IT_IS = ForwardOptions(merge_below_bytes=0)
ONE = [Record(b"k", b"v", (), 1), Record(b"k2", b"v2", (), 2)]


@given(batches_of_records, st.sampled_from([0, 1]), st.booleans())
def test_restamping_changes_nothing_a_consumer_sees(
    written: list[list[Record]],
    codec: int,
    transactional: bool,
) -> None:
    log, offset = bytearray(), 0
    for batch in written:
        log += encode(batch, base_offset=offset, codec=codec, transactional=transactional)
        offset += len(batch)
    pieces, next_offset, error, _epochs = prepare(memoryview(log), 0, (), AS_IT_IS)
    assert (error, next_offset) == (None, offset)
    for piece, original in zip(pieces, written, strict=True):
        payload = bytes(piece.view[61:])
        restamp(piece.view, compression_of(piece.view), 9, 3, 100)
        assert bytes(piece.view[61:]) == payload
        (again,), _next, broken, _epochs = prepare(memoryview(bytearray(piece.view)), 0)
        assert (broken, again.record_count) == (None, len(original))
        assert [record for _, record in decode(piece.view)] == original


def test_the_delete_horizon_bit_is_cleared() -> None:
    data = with_attributes(encode(ONE), DELETE_HORIZON)
    (piece,) = prepare(memoryview(data), 0).pieces
    restamp(piece.view, compression_of(piece.view), 1, 1, 1)
    assert piece.view[22] == 0
    assert [record for _, record in decode(piece.view)] == ONE


@given(st.integers(0, MAX_SEQUENCE), st.integers(1, 10_000))
def test_sequences_wrap_as_the_broker_expects(sequence: int, count: int) -> None:
    following = next_sequence(sequence, count)
    assert following == (sequence + count if sequence + count <= MAX_SEQUENCE else sequence + count - MAX_SEQUENCE - 1)

"""What is prepared of any log is what a consumer sees of it, in batches as a producer writes them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.wire.batches.batch_header import compression_of, restamp
from heliograph.wire.batches.forward import ForwardOptions, Piece, Prepared, prepare, split
from heliograph.wire.messages.fetch_response import AbortedTransaction
from tests.support.brokers.batches import Record, decode
from tests.support.brokers.plain_log import (
    CONTROL,
    TRANSACTIONAL,
    PlainBatch,
    marker,
    plain_batches,
    plain_logs,
    plain_records,
    read_batch,
    read_committed,
)

some_rules = st.builds(
    ForwardOptions,
    merge_below_bytes=st.sampled_from([0, 150, 400, 16 * 1024]),
    merge_to_bytes=st.sampled_from([1, 200, 600, 512 * 1024]),
)


def bytes_of(log: list[PlainBatch]) -> bytearray:
    return bytearray().join(batch.encode() for batch in log)


def produced(piece: Piece) -> list[Record]:
    """The records of a piece once it is stamped as the producer does it, in the opinion of two readers."""
    restamp(piece.view, compression_of(piece.view), 9, 3, 100)
    records = read_batch(piece.view, is_for_java=not piece.is_shared)
    assert len(records) == piece.record_count
    assert max(r.timestamp_ms for r in records) == piece.max_timestamp_ms
    if compression_of(piece.view) < 2:
        assert decode(piece.view) == list(enumerate(records))
    return records


def check(prepared: Prepared, visible: list[tuple[int, Record]], next_offset: int) -> None:
    assert prepared.error is None
    assert prepared.next_offset == next_offset
    left, before = list(visible), -1
    for piece in prepared.pieces:
        mine, left = left[: piece.record_count], left[piece.record_count :]
        assert produced(piece) == [record for _, record in mine]
        assert piece.base_offset == mine[0][0]
        assert [piece.offset_of(index) for index in range(piece.record_count)] == [offset for offset, _ in mine]
        assert before < piece.base_offset <= mine[-1][0] <= piece.last_offset < next_offset
        assert not left or piece.last_offset < left[0][0]
        before = piece.last_offset
    assert left == []


@given(plain_logs(), some_rules, st.data())
def test_what_is_visible_arrives_in_order(log: list[PlainBatch], rules: ForwardOptions, data: st.DataObject) -> None:
    end = log[-1].last_offset + 1 if log else 0
    first = log[0].base_offset if log else 0
    wanted = data.draw(st.integers(first, end)) if data.draw(st.booleans()) else first
    visible = [entry for batch in log for entry in batch.visible() if entry[0] >= wanted]
    prepared = prepare(memoryview(bytes_of(log)), wanted, (), rules)
    check(prepared, visible, max(wanted, end))


@given(plain_logs(codecs=(0,)), some_rules)
def test_merged_batches_keep_to_their_limit(log: list[PlainBatch], rules: ForwardOptions) -> None:
    sizes = {len(batch.encode()) for batch in log}
    for piece in prepare(memoryview(bytes_of(log)), 0, (), rules).pieces:
        is_rewritten_alone = any(len(piece.view) <= size + 40 for size in sizes)
        assert len(piece.view) <= rules.merge_to_bytes or piece.record_count == 1 or is_rewritten_alone


@given(st.lists(st.tuples(st.integers(0, 3), plain_records), min_size=2, max_size=40), st.integers(0, 4))
def test_small_neighbours_become_one_batch(written: list[tuple[int, Record]], codec: int) -> None:
    log, offset = [], 0
    for kind, record in written:
        is_marker = kind == 0 and log
        plain = PlainBatch({0: record}, 0, codec=codec, base_offset=offset)
        log.append(marker(offset, 5, 1) if is_marker else plain)
        offset += 1
    prepared = prepare(memoryview(bytes_of(log)), 0)
    check(prepared, read_committed(log, []), offset)
    assert len(prepared.pieces) == 1
    codecs = {compression_of(piece.view) for piece in prepared.pieces}
    assert codecs == {codec}


@given(plain_batches().filter(lambda batch: bool(batch.records)))
def test_a_small_batch_alone_goes_as_it_is(batch: PlainBatch) -> None:
    alone = replace(
        batch, attributes=0, records=dict(enumerate(batch.records.values())), last_delta=len(batch.records) - 1
    )
    data = alone.encode()
    (piece,) = prepare(memoryview(data), 0).pieces
    assert piece.is_shared
    assert bytes(piece.view) == bytes(data)


def test_a_large_batch_goes_as_it_is_between_small_ones() -> None:
    small = [PlainBatch({0: Record(None, b"v", (), k)}, 0, base_offset=k) for k in range(2)]
    large = PlainBatch({0: Record(None, bytes(20_000), (), 1)}, 0, base_offset=2)
    log = [*small, large, *(replace(batch, base_offset=3 + k) for k, batch in enumerate(small))]
    pieces = prepare(memoryview(bytes_of(log)), 0).pieces
    assert [(p.base_offset, p.last_offset, p.is_shared) for p in pieces] == [(0, 1, False), (2, 2, True), (3, 4, False)]


# --- transactions -----------------------------------------------------------------------------------------------------


@st.composite
def transactional_logs(draw: st.DrawFn) -> tuple[list[PlainBatch], list[AbortedTransaction]]:
    """Transactions of three producers through each other, and the broker's list of those aborted."""
    log: list[PlainBatch] = []
    aborted: list[AbortedTransaction] = []
    open_since: dict[int, int] = {}
    offset = draw(st.sampled_from([0, 500]))
    for producer_id in draw(st.lists(st.integers(1, 3), max_size=14)):
        what = draw(st.sampled_from(["write", "write", "plain", "end"]))
        if what == "end" and producer_id in open_since:
            kind = draw(st.integers(0, 1))
            log.append(marker(offset, producer_id, kind))
            first = open_since.pop(producer_id)
            if kind == 0:
                aborted.append(AbortedTransaction(producer_id, first))
            if draw(st.integers(0, 5)) == 0:
                log[-1] = replace(log[-1], records={}, marker=kind)
        else:
            batch = draw(plain_batches())
            is_transactional = what != "plain"
            if is_transactional:
                open_since.setdefault(producer_id, offset)
            bits = TRANSACTIONAL if is_transactional else 0
            log.append(replace(batch, base_offset=offset, producer_id=producer_id, attributes=batch.attributes | bits))
        offset = log[-1].last_offset + 1
    return log, draw(st.permutations(aborted))


@given(transactional_logs(), some_rules, st.data())
def test_aborted_records_are_left_out_as_a_consumer_leaves_them_out(
    written: tuple[list[PlainBatch], list[AbortedTransaction]], rules: ForwardOptions, data: st.DataObject
) -> None:
    log, aborted = written
    first, end = (log[0].base_offset, log[-1].last_offset + 1) if log else (0, 0)
    wanted = data.draw(st.integers(first, end))
    visible = [entry for entry in read_committed(log, aborted) if entry[0] >= wanted]
    check(prepare(memoryview(bytes_of(log)), wanted, tuple(aborted), rules), visible, max(end, wanted))


@given(transactional_logs())
def test_aborted_records_are_kept_if_the_rules_say_so(
    written: tuple[list[PlainBatch], list[AbortedTransaction]],
) -> None:
    log, aborted = written
    end = log[-1].last_offset + 1 if log else 0
    prepared = prepare(memoryview(bytes_of(log)), 0, tuple(aborted), ForwardOptions(drops_aborted=False))
    check(prepared, read_committed(log, []), end)


def test_a_marker_before_the_wanted_offset_ends_its_transaction_too() -> None:
    written = PlainBatch({0: Record(None, b"v", (), 1)}, 0, attributes=TRANSACTIONAL, producer_id=7)
    log = [written, marker(1, 7, 0), replace(written, base_offset=2), marker(3, 7, 1)]
    prepared = prepare(memoryview(bytes_of(log)), 2, (AbortedTransaction(7, 0),))
    check(prepared, [(2, written.records[0])], 4)


def test_an_unreadable_marker_is_refused() -> None:
    broken = replace(marker(0, 7, 0), records={0: Record(b"\0", None, (), 1)})
    assert broken.attributes & CONTROL
    prepared = prepare(memoryview(broken.encode()), 0, (AbortedTransaction(7, 0),))
    assert prepared.pieces == []
    assert "marker" in str(prepared.error)


# --- too large for the target -----------------------------------------------------------------------------------------


@given(
    st.lists(plain_records, min_size=1, max_size=30),
    st.integers(0, 4),
    st.sampled_from([1, 100, 200, 400, 1000]),
    st.integers(0, 5),
)
def test_a_batch_is_cut_to_size(written: list[Record], codec: int, max_bytes: int, gap: int) -> None:
    batch = PlainBatch(dict(enumerate(written)), len(written) - 1, codec=codec, base_offset=70, base_timestamp=5)
    (piece,) = prepare(memoryview(batch.encode()), 0).pieces
    restamp(piece.view, codec, 1, 1, 1)
    parts = split(piece._replace(last_offset=piece.last_offset + gap), max_bytes)
    assert [record for part in parts for record in produced(part)] == written
    assert all(compression_of(part.view) == codec for part in parts)
    assert all(len(part.view) <= max_bytes or part.record_count == 1 for part in parts)
    offset = 70
    for part in parts:
        assert (part.base_offset, part.is_shared) == (offset, False)
        offset += part.record_count
        assert part.last_offset == (offset - 1 if part is not parts[-1] else batch.last_offset + gap)


@given(st.sets(st.integers(0, 60), min_size=2, max_size=30), st.integers(0, 4), st.integers(70, 400))
def test_parts_of_a_batch_with_gaps_know_their_offsets(deltas: set[int], codec: int, max_bytes: int) -> None:
    records = {delta: Record(None, b"%d" % delta * 9, (), delta) for delta in deltas}
    batch = PlainBatch(records, 63, codec=codec, base_offset=500)
    (piece,) = prepare(memoryview(batch.encode()), 0).pieces
    parts = split(piece, max_bytes)
    offsets = [part.offset_of(index) for part in parts for index in range(part.record_count)]
    assert offsets == [500 + delta for delta in sorted(deltas)]
    assert [part.base_offset for part in parts] == [part.offset_of(0) for part in parts]
    assert [part.last_offset for part in parts[:-1]] == [part.offset_of(part.record_count - 1) for part in parts[:-1]]
    assert parts[-1].last_offset == piece.last_offset


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_of_uneven_records_is_cut_to_size(codec: int) -> None:
    noise = [Record(None, bytes((k * k * 31 + j * j * 7) % 251 for j in range(900)), (), k) for k in range(40)]
    flat = [Record(None, bytes(900), (), k) for k in range(200)]
    batch = PlainBatch(dict(enumerate(flat + noise)), 239, codec=codec)
    (piece,) = prepare(memoryview(batch.encode()), 0).pieces
    parts = split(piece, 8_000)
    assert [record for part in parts for record in produced(part)] == flat + noise
    assert all(len(part.view) <= 8_000 for part in parts)

"""Whatever the bytes are: refused or left for the next fetch, never a crash, never a wrong record."""

from __future__ import annotations

import struct
from dataclasses import replace

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from heliograph.errors import CorruptBatchError
from heliograph.wire.batches.forward import prepare, split
from tests.properties.test_kernels import bytes_of, check, some_rules
from tests.support.brokers.batches import Record
from tests.support.brokers.plain_log import PlainBatch, message, plain_batches, plain_logs, squeeze, wrapper

ONE = Record(b"k", b"v", (), 1)


def sealed(data: bytearray) -> bytearray:
    """With a checksum that fits."""
    data[17:21] = struct.pack(">I", crc32c(data[21:]))
    return data


@given(plain_logs(), some_rules, st.data())
def test_a_flipped_bit_is_never_forwarded(log: list[PlainBatch], rules: object, data: st.DataObject) -> None:
    if not log:
        return
    which = data.draw(st.integers(0, len(log) - 1))
    start, size = len(bytes_of(log[:which])), len(log[which].encode())
    buffer = bytes_of(log)
    bit = data.draw(st.integers(17 * 8, size * 8 - 1)) + start * 8
    buffer[bit // 8] ^= 1 << bit % 8
    prepared = prepare(memoryview(buffer), 0, (), rules)  # type: ignore[arg-type]
    assert isinstance(prepared.error, CorruptBatchError)
    assert prepared.error.offset == prepared.next_offset
    before = log[:which]
    expected = [entry for batch in before for entry in batch.visible()]
    check(prepared._replace(error=None), expected, before[-1].last_offset + 1 if before else 0)


@given(st.integers(5_000, 40_000), st.data())
def test_a_flipped_bit_of_a_large_batch_is_never_forwarded(size: int, data: st.DataObject) -> None:
    small, large = PlainBatch({0: ONE}, 0), PlainBatch({0: replace(ONE, value=bytes(size))}, 0, base_offset=1)
    buffer = small.encode() + large.encode() + replace(small, base_offset=2).encode()
    bit = data.draw(st.integers((len(small.encode()) + 17) * 8, (len(small.encode() + large.encode())) * 8 - 1))
    buffer[bit // 8] ^= 1 << bit % 8
    prepared = prepare(memoryview(buffer), 0)
    assert [piece.base_offset for piece in prepared.pieces] == [0]
    assert (prepared.next_offset, isinstance(prepared.error, CorruptBatchError)) == (1, True)


@given(plain_logs(), some_rules, st.data())
def test_a_partial_batch_is_left(log: list[PlainBatch], rules: object, data: st.DataObject) -> None:
    buffer = bytes_of(log)
    cut = data.draw(st.integers(0, len(buffer)))
    whole, size = [], 0
    for batch in log:
        size += len(batch.encode())
        if size <= cut:
            whole.append(batch)
    expected = [entry for batch in whole for entry in batch.visible()]
    end = whole[-1].last_offset + 1 if whole else 0
    check(prepare(memoryview(buffer)[:cut], 0, (), rules), expected, end)  # type: ignore[arg-type]


@given(st.binary(max_size=400), st.integers(0, 2**62), st.integers(0, 3))
def test_noise_is_refused_or_left(noise: bytes, offset: int, magic: int) -> None:
    for data in (bytearray(noise), bytearray(noise[:8] + b"\0\0\0\x50" + noise[12:16] + bytes([magic]) + noise[17:])):
        prepared = prepare(memoryview(data), offset)
        assert prepared.pieces == []
        assert prepared.next_offset == offset


@given(plain_batches(), st.lists(st.tuples(st.integers(21, 400), st.integers(0, 255)), max_size=4), some_rules)
def test_nonsense_with_a_right_checksum_is_refused_or_copied(
    batch: PlainBatch, changes: list[tuple[int, int]], rules: object
) -> None:
    """Right checksums over wrong contents: no claim about what comes out, but it must hold together."""
    data = batch.encode()
    for at, byte in changes:
        if at < len(data):
            data[at] = byte
    second = replace(batch, base_offset=batch.last_offset + 1).encode()
    prepared = prepare(memoryview(sealed(data) + second), 0, (), rules)  # type: ignore[arg-type]
    for piece in prepared.pieces:
        assert struct.unpack_from(">i", piece.view, 8)[0] == len(piece.view) - 12
        try:
            split(piece, 150)
        except CorruptBatchError:
            assert piece.is_shared


@given(plain_batches(codecs=(0,)), st.binary(max_size=60))
def test_any_records_section_is_walked_or_refused(batch: PlainBatch, noise: bytes) -> None:
    for codec in range(5):
        data = replace(batch, codec=codec).encode()[:61] + squeeze(codec, noise)
        data[8:12] = struct.pack(">i", len(data) - 12)
        prepare(memoryview(sealed(data)), 1)


def test_a_count_that_cannot_be_true_takes_no_memory() -> None:
    for codec in range(5):
        data = PlainBatch({0: ONE}, 2**31 - 1, codec=codec).encode()
        data[57:61] = struct.pack(">i", 2**31 - 1)
        prepared = prepare(memoryview(sealed(data)), 0)
        assert prepared.pieces == []
        assert isinstance(prepared.error, CorruptBatchError)


@given(plain_logs(), st.integers(0, 6), st.integers(1, 4))
def test_batches_before_one_that_cannot_be_rewritten_are_kept(log: list[PlainBatch], which: int, codec: int) -> None:
    whole = [replace(batch, codec=codec) for batch in log]
    if which >= len(whole) or not whole[which].records:
        return
    broken = whole[which].encode()[:61] + b"this is not compressed"
    broken[8:12] = struct.pack(">i", len(broken) - 12)
    broken[22] |= 8  # so that it cannot go as it is
    buffer = bytes_of(whole[:which]) + sealed(broken) + bytes_of(whole[which + 1 :])
    prepared = prepare(memoryview(buffer), 0)
    assert isinstance(prepared.error, CorruptBatchError)
    before = whole[:which]
    end = before[-1].last_offset + 1 if before else 0
    check(prepared._replace(error=None), [entry for batch in before for entry in batch.visible()], end)


@given(st.binary(max_size=120), st.integers(1, 4), st.integers(0, 1), st.integers(0, 100))
def test_any_wrapped_bytes_are_walked_or_refused(noise: bytes, codec: int, magic: int, offset: int) -> None:
    inner = message(0, magic, ONE)
    for section in (noise, inner + noise, inner[:12] + noise + inner[12:], inner[:8] + noise):
        data = message(offset, magic, ONE, attributes=codec, value=squeeze(codec, section))
        prepared = prepare(memoryview(bytearray(data)), 0)
        assert prepared.pieces == [] or noise == b""


def test_inner_messages_with_a_wrong_checksum_codec_or_format_are_refused() -> None:
    sound = message(0, 1, ONE)
    flipped = sound[:-1] + bytes([sound[-1] ^ 1])
    for inner in (flipped, message(0, 1, ONE, attributes=1), message(0, 0, ONE), b"", sound + sound, sound[:-1]):
        data = message(5, 1, ONE, attributes=1, value=squeeze(1, inner))
        prepared = prepare(memoryview(bytearray(data)), 0)
        assert prepared.pieces == []
        assert isinstance(prepared.error, CorruptBatchError)


def test_batches_before_the_wanted_offset_are_passed_over() -> None:
    log = [PlainBatch({0: ONE}, 0), PlainBatch({0: ONE}, 0, base_offset=1)]
    check(prepare(memoryview(bytes_of(log)), 1), [(1, ONE)], 2)
    old = wrapper(PlainBatch({0: ONE, 1: ONE}, 1, codec=1), 1) + message(2, 1, ONE)
    check(prepare(memoryview(bytearray(old)), 2), [(2, ONE)], 3)

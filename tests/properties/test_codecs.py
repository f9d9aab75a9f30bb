"""Codecs: both ways, both framings, and nothing but a corrupt-batch error for anything that is not compressed data."""

from __future__ import annotations

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.errors import CorruptBatchError
from heliograph.wire.batches.codecs import compress, decompress
from tests.support.brokers.plain_log import squeeze, unsqueeze

codecs = st.integers(0, 4)
long_data = st.binary(max_size=300) | st.builds(
    lambda seed, n: seed * n, st.binary(min_size=1, max_size=99), st.integers(1, 3000)
)


@given(codecs, long_data)
def test_what_is_compressed_is_read_by_others_and_by_us(codec: int, data: bytes) -> None:
    compressed = compress(codec, memoryview(data))
    assert unsqueeze(codec, compressed, is_for_java=True) == data
    assert bytes(decompress(codec, memoryview(compressed))) == data


@given(codecs, long_data, st.booleans())
def test_what_others_compress_is_read(codec: int, data: bytes, raw_snappy: bool) -> None:
    assert bytes(decompress(codec, memoryview(squeeze(codec, data, raw_snappy=raw_snappy)))) == data


def test_a_large_input_takes_many_blocks() -> None:
    data = bytes(k * k % 251 for k in range(200_000))
    for codec in range(5):
        assert unsqueeze(codec, compress(codec, memoryview(data)), is_for_java=True) == data


@given(long_data, st.integers(0, 255))
def test_the_wrong_header_checksum_of_old_lz4_is_read_in_old_messages_only(data: bytes, checksum: int) -> None:
    frame = bytearray(compress(3, memoryview(data)))
    frame[6] = checksum
    assert bytes(decompress(3, memoryview(frame), is_magic_0=True)) == data
    if checksum != 0x82:
        with pytest.raises(CorruptBatchError):
            decompress(3, memoryview(frame))


def test_old_lz4_with_a_content_size_in_its_header_is_read() -> None:
    frame = bytearray(bytes(cramjam.lz4.compress(b"abc" * 100)))
    assert bytes(decompress(3, memoryview(frame), is_magic_0=True)) == b"abc" * 100
    sized = bytearray(compress(3, memoryview(b"abc" * 100)))
    sized[4] |= 0x08
    sized[6:7] = (300).to_bytes(8, "little") + b"?"
    assert bytes(decompress(3, memoryview(sized), is_magic_0=True)) == b"abc" * 100


@given(st.integers(-1, 9), st.binary(max_size=200), st.booleans())
def test_noise_is_refused_or_read(codec: int, noise: bytes, is_magic_0: bool) -> None:
    framed = {
        2: b"\x82SNAPPY\0\0\0\0\1\0\0\0\1",
        3: b"\x04\x22\x4d\x18\x60\x40\x82",
        4: b"\x28\xb5\x2f\xfd",
        1: b"\x1f\x8b\x08",
    }
    for data in (noise, framed.get(codec, b"") + noise):
        try:
            decompress(codec, memoryview(data), is_magic_0=is_magic_0, max_bytes=1 << 20)
        except CorruptBatchError:
            continue


@given(codecs.filter(bool), long_data, st.data())
def test_damage_is_refused_or_read(codec: int, data: bytes, draw: st.DataObject) -> None:
    broken = bytearray(compress(codec, memoryview(data)))
    for _ in range(draw.draw(st.integers(1, 4))):
        broken[draw.draw(st.integers(0, len(broken) - 1))] = draw.draw(st.integers(0, 255))
    try:
        decompress(codec, memoryview(broken)[: draw.draw(st.integers(0, len(broken)))], max_bytes=1 << 20)
    except CorruptBatchError:
        return


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("raw_snappy", [False, True])
def test_a_bomb_is_refused(codec: int, raw_snappy: bool) -> None:
    bomb = squeeze(codec, bytes(1 << 20), raw_snappy=raw_snappy)
    assert len(decompress(codec, memoryview(bomb), max_bytes=1 << 20)) == 1 << 20
    with pytest.raises(CorruptBatchError, match="allowed"):
        decompress(codec, memoryview(bomb), max_bytes=(1 << 20) - 1)


def test_an_unknown_codec_is_refused_both_ways() -> None:
    with pytest.raises(CorruptBatchError, match="codec is 5"):
        decompress(5, memoryview(b""))
    with pytest.raises(CorruptBatchError, match="codec is 5"):
        compress(5, memoryview(b""))

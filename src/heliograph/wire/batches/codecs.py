"""Kafka's compression codecs by their id in a batch's attributes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.

The output is what a Java broker or client can read, which is less than the formats allow: snappy in snappy-java's
framing (both framings are read: librdkafka writes the raw one), lz4 as a frame of independent blocks without checksums
(Java refuses linked blocks, so the frame is assembled here).

Invariants:
A. Whatever the bytes are, bad data raises `CorruptBatchError` and nothing else.
B. No output is larger than `max_bytes`; a small input that claims or contains more is refused before memory for it is
   allocated: the output grows in steps, and only as far as data really comes out.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import cramjam
import numpy as np

from heliograph.errors import CorruptBatchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.wire.batches.kernel_bytes import Bytes


NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
MAX_BYTES: Final = 256 * 1024 * 1024

_GZIP_LEVEL = 6
_ZSTD_LEVEL = 3  # Java's default; cramjam's own is several times slower
_FIRST_GUESS_BYTES = 64 * 1024
_GUESSED_RATIO = 4
_TOO_SMALL = "failed to write whole buffer"

_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_SIZE = struct.Struct(">i")

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"  # version 1, independent blocks of at most 64 KiB, and the header's checksum
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_BLOCK_SIZE = struct.Struct("<I")
_LZ4_STORED = 0x80000000
_LZ4_END = b"\0\0\0\0"


def decompress(codec: int, data: memoryview, *, max_bytes: int = MAX_BYTES, is_magic_0: bool = False) -> Bytes:
    """Decompress; with `is_magic_0` an lz4 frame may have the wrong header checksum of KAFKA-3160."""
    try:
        if codec == NONE:
            return _bounded(len(data), max_bytes, lambda out: _copy(data, out))
        if codec == SNAPPY:
            return _decompress_snappy(data, max_bytes)
        if codec == LZ4:
            fit = memoryview(_with_correct_checksum(data)) if is_magic_0 else data
            return _grow(cramjam.lz4.decompress_into, fit, max_bytes)
        if codec in (GZIP, ZSTD):
            module = cramjam.gzip if codec == GZIP else cramjam.zstd
            return _grow(module.decompress_into, data, max_bytes)
    except CorruptBatchError:
        raise
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the codec's machine code is no Exception
        raise _corrupt(f"its {NAMES[codec]} data cannot be decompressed ({error})") from None
    raise _corrupt(f"its compression codec is {codec}, which does not exist")


def compress(codec: int, data: memoryview) -> bytes:
    """Compress as Kafka's own producer does."""
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data, level=_GZIP_LEVEL))
    if codec == SNAPPY:
        return _compress_snappy(data)
    if codec == LZ4:
        return _compress_lz4(data)
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
    raise _corrupt(f"its compression codec is {codec}, which does not exist")


def _corrupt(reason: str) -> CorruptBatchError:
    return CorruptBatchError(reason, offset=-1)  # the caller knows the offset


def _copy(data: memoryview, out: Bytes) -> int:
    out[:] = np.frombuffer(data, np.uint8)
    return len(data)


def _bounded(size: int, max_bytes: int, fill: Callable[[Bytes], int]) -> Bytes:
    """Return a buffer of exactly `size` bytes, filled."""
    if size > max_bytes:
        raise _corrupt(f"it has {size} bytes when decompressed, more than the {max_bytes} that are allowed")
    out = np.empty(size, np.uint8)
    if fill(out) != size:
        raise _corrupt("its compressed data is shorter than it states")
    return out


def _grow(decompress_into: Callable[[Any, Any], int], data: memoryview, max_bytes: int) -> Bytes:
    """Decompress data of unknown size: into a guessed size first, then into larger ones until the output fits."""
    size = min(max_bytes, max(_FIRST_GUESS_BYTES, len(data) * _GUESSED_RATIO))
    while True:
        out = np.empty(size, np.uint8)
        try:
            return out[: decompress_into(data, out.data)]
        except cramjam.DecompressionError as error:
            if str(error) != _TOO_SMALL:
                raise
        if size == max_bytes:
            raise _corrupt(f"it has more than the {max_bytes} bytes that are allowed when decompressed")
        size = min(max_bytes, size * _GUESSED_RATIO)


def _decompress_snappy(data: memoryview, max_bytes: int) -> Bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _bounded(
            cramjam.snappy.decompress_raw_len(data),
            max_bytes,
            lambda out: int(cramjam.snappy.decompress_raw_into(data, out.data)),
        )
    blocks = _xerial_blocks(data)
    sizes = [int(cramjam.snappy.decompress_raw_len(block)) for block in blocks]

    def fill(out: Bytes) -> int:
        at = 0
        for block, size in zip(blocks, sizes, strict=True):
            if cramjam.snappy.decompress_raw_into(block, out[at : at + size].data) != size:
                return -1
            at += size
        return at

    return _bounded(sum(sizes), max_bytes, fill)


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    blocks, at = [], len(_XERIAL_HEADER)
    while at < len(data):
        (size,) = _BLOCK_SIZE.unpack_from(data, at)
        at += _BLOCK_SIZE.size
        if size <= 0 or at + size > len(data):
            raise _corrupt("a snappy block is longer than its batch")
        blocks.append(data[at : at + size])
        at += size
    return blocks


def _compress_snappy(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_SIZE.pack(len(block)), block)
    return b"".join(parts)


def _compress_lz4(data: memoryview) -> bytes:
    parts = [_LZ4_HEADER]
    for at in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[at : at + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += (_LZ4_BLOCK_SIZE.pack(len(block)), block)
        else:
            parts += (_LZ4_BLOCK_SIZE.pack(len(plain) | _LZ4_STORED), bytes(plain))
    return b"".join((*parts, _LZ4_END))


def _with_correct_checksum(frame: memoryview) -> bytearray:
    """Return a frame with the standard header checksum: clients before Kafka 0.10 computed it over too many bytes."""
    corrected = bytearray(frame)
    if len(corrected) < len(_LZ4_HEADER) or corrected[:4] != _LZ4_MAGIC:
        return corrected
    flags = corrected[4]
    checksum_at = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    if checksum_at < len(corrected):
        corrected[checksum_at] = _short_xxh32(bytes(corrected[4:checksum_at])) >> 8 & 0xFF
    return corrected


def _short_xxh32(data: bytes) -> int:
    """Return XXH32 with seed 0 of less than 16 bytes, the most that a frame header has."""
    mask = 0xFFFFFFFF
    value = (374761393 + len(data)) & mask
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = (value + word * 3266489917) & mask
        value = ((value << 17 | value >> 15) & mask) * 668265263 & mask
    for byte in data[whole:]:
        value = (value + byte * 374761393) & mask
        value = ((value << 11 | value >> 21) & mask) * 2654435761 & mask
    value = (value ^ value >> 15) * 2246822519 & mask
    value = (value ^ value >> 13) * 3266489917 & mask
    return value ^ value >> 16

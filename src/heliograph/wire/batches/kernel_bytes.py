"""The building blocks of kernels: big-endian numbers, Kafka's varints and two checksums over byte arrays.

A kernel is a function that is compiled to machine code on first use and cached on disk. Compiled code has no bounds
checks of its own, so the rule of all kernels is: before it reads or writes at `at`, code compares `at` with the end.

Invariants:
A. `read_varint` never reads at or after `end` and gives up after `most` bytes; it then returns -1 as the position.
B. The other functions rely on their callers to ensure enough room; `write_varint` needs at most 10 bytes.
C. Numbers are int64 throughout, so nothing becomes a float by promotion; overflow wraps, as it does in Java.

The cache is renewed when any module of this package changes (`kernel_cache`): kernels contain functions and constants
of several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from heliograph.wire.batches.kernel_cache import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


Bytes: TypeAlias = npt.NDArray[np.uint8]
Table: TypeAlias = npt.NDArray[np.int64]
_F = TypeVar("_F", bound="Callable[..., Any]")

MAX_VARINT_BYTES = 5  # of an int32
MAX_VARLONG_BYTES = 10  # of an int64
_CASTAGNOLI = 0x82F63B78
_IEEE = 0xEDB88320
_LOGICAL_SHIFT_7 = 0x01FFFFFFFFFFFFFF
int64 = cast("Callable[[object], int]", np.int64)  # the type of numbers in kernels; an int to the type checker


def kernel(function: _F) -> _F:
    """Compile on first use; keep the machine code on disk."""
    compiled = numba.njit(nogil=True)(function)
    if not numba.config.DISABLE_JIT:
        compiled._cache = KernelCache(function)  # noqa: SLF001  (numba's own cache compares only the kernel's own file)
    return compiled  # type: ignore[no-any-return]


def part_of_kernel(function: _F) -> _F:
    """Compile into the kernels that call it, and without reference counts: the kernel holds the arrays.

    Both are for speed, by a factor of six: a record takes a dozen such calls, and a count is an atomic operation. The
    function cannot allocate arrays.
    """
    return numba.njit(nogil=True, forceinline=True, _nrt=False)(function)  # type: ignore[no-any-return]


def _slicing_tables(polynomial: int) -> npt.NDArray[np.uint32]:
    """Return eight tables that advance a checksum by eight bytes at once."""
    tables = np.zeros((8, 256), np.uint32)
    first = np.arange(256, dtype=np.uint32)
    for _bit in range(8):
        first = np.where(first & 1, first >> 1 ^ np.uint32(polynomial), first >> 1)
    tables[0] = first
    for k in range(1, 8):
        tables[k] = tables[k - 1] >> 8 ^ first[tables[k - 1] & 0xFF]
    return tables


CRC32C_TABLES = _slicing_tables(_CASTAGNOLI)
CRC32_TABLES = _slicing_tables(_IEEE)


@part_of_kernel
def _checksum(tables: npt.NDArray[np.uint32], data: Bytes, start: int, end: int) -> int:
    crc = int64(0xFFFFFFFF)
    if start < 0:  # never true; with it the compiler omits the code for negative indices
        return -1
    at = start
    while at + 8 <= end:
        low = crc ^ (int64(data[at]) | int64(data[at + 1]) << 8 | int64(data[at + 2]) << 16 | int64(data[at + 3]) << 24)
        crc = (
            int64(tables[7, low & 0xFF])
            ^ int64(tables[6, low >> 8 & 0xFF])
            ^ int64(tables[5, low >> 16 & 0xFF])
            ^ int64(tables[4, low >> 24 & 0xFF])
            ^ int64(tables[3, data[at + 4]])
            ^ int64(tables[2, data[at + 5]])
            ^ int64(tables[1, data[at + 6]])
            ^ int64(tables[0, data[at + 7]])
        )
        at += 8
    while at < end:
        crc = int64(tables[0, (crc ^ int64(data[at])) & 0xFF]) ^ crc >> 8
        at += 1
    return crc ^ 0xFFFFFFFF


@part_of_kernel
def crc32c_of(data: Bytes, start: int, end: int) -> int:
    """Return the checksum of record batches (Castagnoli)."""
    return _checksum(CRC32C_TABLES, data, start, end)


@part_of_kernel
def crc32_of(data: Bytes, start: int, end: int) -> int:
    """Return the checksum of message sets (that of zip)."""
    return _checksum(CRC32_TABLES, data, start, end)


@part_of_kernel
def read_uint32(data: Bytes, at: int) -> int:
    """Read an unsigned big-endian number of four bytes."""
    return int64(data[at]) << 24 | int64(data[at + 1]) << 16 | int64(data[at + 2]) << 8 | int64(data[at + 3])


@part_of_kernel
def read_int64(data: Bytes, at: int) -> int:
    """Read a signed big-endian number of eight bytes."""
    return read_uint32(data, at) << 32 | read_uint32(data, at + 4)


@part_of_kernel
def read_int32(data: Bytes, at: int) -> int:
    """Read a signed big-endian number of four bytes."""
    return (read_uint32(data, at) ^ 0x80000000) - 0x80000000


@part_of_kernel
def read_int16(data: Bytes, at: int) -> int:
    """Read a signed big-endian number of two bytes."""
    return ((int64(data[at]) << 8 | int64(data[at + 1])) ^ 0x8000) - 0x8000


@part_of_kernel
def write_big_endian(out: Bytes, at: int, width: int, value: int) -> None:
    """Write the lowest `width` bytes of a number."""
    for k in range(width):
        out[at + k] = value >> 8 * (width - 1 - k) & 0xFF


@part_of_kernel
def read_varint(data: Bytes, at: int, end: int, most: int) -> tuple[int, int]:
    """Read a zigzag number; return it and the position after it, -1 if it does not end by `end` or `most` bytes."""
    value = int64(0)
    for k in range(most):
        if at + k >= end:
            break
        byte = int64(data[at + k])
        value |= (byte & 0x7F) << 7 * k
        if byte < 0x80:
            return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at + k + 1
    return int64(0), int64(-1)


@part_of_kernel
def varint_bytes(value: int) -> int:
    """Return how many bytes a number takes as a varint."""
    zigzag = value << 1 ^ value >> 63
    size = 1
    while zigzag & ~0x7F != 0:
        zigzag = zigzag >> 7 & _LOGICAL_SHIFT_7
        size += 1
    return size


@part_of_kernel
def write_varint(out: Bytes, at: int, value: int) -> int:
    """Write a zigzag number; return the position after it."""
    zigzag = value << 1 ^ value >> 63
    while zigzag & ~0x7F != 0:
        out[at] = zigzag & 0x7F | 0x80
        zigzag = zigzag >> 7 & _LOGICAL_SHIFT_7
        at += 1
    out[at] = zigzag
    return at + 1


@part_of_kernel
def copy_bytes(data: Bytes, start: int, end: int, out: Bytes, at: int) -> int:
    """Copy a range; return the position after it."""
    if start < 0 or at < 0:  # never true; with it the compiler turns the loop into wide moves
        return -1
    for k in range(end - start):
        out[at + k] = data[start + k]
    return at + end - start

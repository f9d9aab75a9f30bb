"""What another user of the machine can get out of Spark: its network protocol, spoken without any secret.

A frame is its length (8 bytes, itself included), a type (1 byte) and a message. A block manager answers `OpenBlocks`
with a stream, whose chunks are the blocks; the functions of tasks are blocks named `broadcast_N_piece0`.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import cramjam
import psutil

Address = tuple[str, int]

NOBODY = 65_534
_CHUNK_FETCH, _CHUNK, _RPC, _RPC_ANSWER = 0, 1, 3, 4
_OPEN_BLOCKS = 0
_LZ4_MARK, _LZ4_HEADER_BYTES, _LZ4_PACKED = b"LZ4Block", 21, 0x20
_TIMEOUT_S = 5.0
_MOST_BLOCKS = 6
T = TypeVar("T")


def as_nobody(function: Callable[[], T]) -> T:
    """What the function returns in a process of the user `nobody`; only root can start one."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: the child uses none
        child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(function(), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    assert answer, "the process of nobody has ended without an answer"
    return pickle.loads(answer)  # type: ignore[no-any-return]  # noqa: S301  (written by our own child)


def hold_silent(addresses: list[Address]) -> int:
    """A process of the user `nobody` that connects to each address and says nothing; its process id.

    It does not wait for connections that a server with a full queue accepts late.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: the child uses none
        child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            connections = [socket.socket() for _ in addresses]
            for connection, address in zip(connections, addresses, strict=True):
                connection.setblocking(False)
                connection.connect_ex(address)
            os.write(writing, b"all")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read(3) == b"all", "the process of nobody could not connect"
    return child


def listening(pid: int) -> list[Address]:
    """Where a process and all it has started listen."""
    process = psutil.Process(pid)
    tree = [process, *process.children(recursive=True)]
    places = {each.laddr for one in tree for each in one.net_connections("tcp") if each.status == psutil.CONN_LISTEN}
    hosts = {"::": "127.0.0.1", "0.0.0.0": "127.0.0.1"}  # noqa: S104  (where others listen)
    return sorted((hosts.get(place.ip, place.ip.removeprefix("::ffff:")), place.port) for place in places)


def blocks_at(address: Address) -> list[bytes]:
    """The blocks of broadcasts, unpacked, that Spark hands at an address to a client that proves nothing."""
    names = [f"broadcast_{number}_piece0" for number in range(_MOST_BLOCKS)]
    return [_unpacked(block) for name in names if (block := _block(address, name)) is not None]


def answer_to_a_call(address: Address) -> bytes:
    """What is answered to a remote call of an unknown client; nothing where it is sent away, or speaks another way."""
    with suppress(OSError), socket.create_connection(address, timeout=_TIMEOUT_S) as connection:
        connection.settimeout(_TIMEOUT_S)
        _send_call(connection, b"\x00" * 16)
        return _receive(connection)[1]
    return b""


def readable_files(folders: list[Path]) -> list[tuple[str, bytes]]:
    """Files of folders, and what /proc shows of processes, as far as the caller may read them."""
    files = [
        *(file for folder in folders for file in _walk(folder)),
        *Path("/proc").glob("[0-9]*/cmdline"),
        *Path("/proc").glob("[0-9]*/environ"),
    ]
    found = []
    for file in files:
        with suppress(OSError):
            found.append((str(file), file.read_bytes()))
    return found


def _walk(folder: Path) -> list[Path]:
    places = (Path(place, name) for place, _folders, names in os.walk(folder) for name in names)
    return [file for file in places if file.is_file() and not file.is_symlink()]


def _block(address: Address, name: str) -> bytes | None:
    with suppress(OSError), socket.create_connection(address, timeout=_TIMEOUT_S) as connection:
        texts = [_text("any application"), _text("driver"), struct.pack(">i", 1), _text(name)]
        _send_call(connection, bytes([_OPEN_BLOCKS]) + b"".join(texts))
        kind, message = _receive(connection)
        if kind != _RPC_ANSWER:
            return None
        # After the call's id and the body's length: the kind of message, the stream's id, its number of chunks.
        stream_id, _chunks = struct.unpack_from(">qi", message, 8 + 4 + 1)
        _send(connection, _CHUNK_FETCH, struct.pack(">qi", stream_id, 0))
        kind, message = _receive(connection)
        return message[12:] if kind == _CHUNK else None
    return None


def _unpacked(block: bytes) -> bytes:
    """What lz4-java has packed: parts with a mark, a method, and the lengths packed and plain, in little endian."""
    plain, place = b"", 0
    while block.startswith(_LZ4_MARK, place):
        method, packed, length = struct.unpack_from("<bii", block, place + len(_LZ4_MARK))
        start = place + _LZ4_HEADER_BYTES
        part = block[start : start + packed]
        is_packed = method & 0xF0 == _LZ4_PACKED
        plain += bytes(cramjam.lz4.decompress_block(part, output_len=length)) if is_packed else part
        place = start + packed
    return plain or block


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


def _send_call(connection: socket.socket, body: bytes) -> None:
    _send(connection, _RPC, struct.pack(">qi", 1, len(body)) + body)


def _send(connection: socket.socket, kind: int, message: bytes) -> None:
    connection.sendall(struct.pack(">qb", 9 + len(message), kind) + message)


def _receive(connection: socket.socket) -> tuple[int, bytes]:
    length, kind = struct.unpack(">qb", _exactly(connection, 9))
    if not 9 <= length < 64 << 20:
        raise ConnectionError(f"a frame of {length} bytes is none of Spark's")
    return kind, _exactly(connection, length - 9)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        received = connection.recv(count - len(data))
        if not received:
            raise ConnectionResetError
        data += received
    return data

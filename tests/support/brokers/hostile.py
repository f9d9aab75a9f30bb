"""What a hostile or broken broker may send: any answer, damaged answers, and a listener that sends any bytes."""

from __future__ import annotations

import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from hypothesis import strategies as st

from heliograph.model import Address

_NUMBERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_HUGE = [b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 40, b"\0\x23", b"\0" * 8]


@st.composite
def answers(draw: st.DrawFn, response_class: Any, version: int) -> bytes:
    """The body of an answer with any content, in kafka-python's bytes."""
    fields = {name: draw(_values(field, version)) for name, field in _of(response_class.fields, version)}
    return bytes(response_class(version=version, **fields).encode(version=version))


def _of(fields: dict[str, Any], version: int) -> list[tuple[str, Any]]:
    return [(name, field) for name, field in fields.items() if field.for_version_q(version)]


def _values(field: Any, version: int) -> st.SearchStrategy[Any]:
    if field.is_struct_array():
        return st.lists(_structure(field, version), max_size=3)
    if field.is_array():
        return st.lists(_values(field.array_of, version), max_size=3)
    if field.is_struct():
        return _structure(field, version)
    return _simple(field.type_str)


def _structure(field: Any, version: int) -> st.SearchStrategy[Any]:
    parts = {name: _values(inner, version) for name, inner in _of(field.fields, version)}
    return st.fixed_dictionaries(parts).map(lambda values: field.data_class(version=version, **values))


def _simple(kind: str) -> st.SearchStrategy[Any]:
    if kind in _NUMBERS:
        most = 1 << _NUMBERS[kind] - 1
        return st.integers(-most, most - 1)
    others: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "uint16": st.integers(0, 65535),
        "float64": st.floats(),
        "uuid": st.builds(uuid.UUID, int=st.integers(0, 2**128 - 1)),
        "bitfield": st.sets(st.integers(0, 30)),
        "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    }
    return others.get(kind, st.binary(max_size=5))


@st.composite
def damaged(draw: st.DrawFn, sound: bytes) -> bytes:
    """The same bytes after some accidents: changed, cut, repeated, or with a number in them that cannot be true."""
    data = bytearray(sound)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["byte", "cut", "huge", "noise", "twice"]))
        if kind == "byte" and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif kind == "cut":
            del data[at:]
        elif kind == "huge":
            huge = draw(st.sampled_from(_HUGE))
            data[at : at + len(huge)] = huge
        elif kind == "noise":
            data[at:at] = draw(st.binary(max_size=20))
        else:
            data[at:at] = data[at : at + 50]
    return bytes(data)


def framed(body: bytes) -> bytes:
    """With its length in front."""
    return struct.pack(">i", len(body)) + body


Speech = Callable[[bytes], bytes | None]


class HostileBroker:
    """A listener that answers each request frame with whatever `speak` makes of it; None hangs up.

    With `pause_s` it sends one byte at a time.
    """

    def __init__(self, speak: Speech, host: str = "127.0.0.1", pause_s: float = 0.0) -> None:
        self._speak = speak
        self._pause_s = pause_s
        self._listener = socket.create_server((host, 0), backlog=1024)
        self.address = Address("127.0.0.1", int(self._listener.getsockname()[1]))
        self.connections = 0
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for sock in (self._listener, *self._sockets):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _address = self._listener.accept()
                self.connections += 1
                self._sockets.append(sock)
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with suppress(OSError), sock, sock.makefile("rb") as stream:
            while len(size := stream.read(4)) == 4:
                said = self._speak(stream.read(int.from_bytes(size, "big")))
                if said is None:
                    with suppress(OSError):
                        sock.shutdown(socket.SHUT_RDWR)
                    return
                pieces = [said[at : at + 1] for at in range(len(said))] if self._pause_s else [said]
                for piece in pieces:
                    sock.sendall(piece)
                    time.sleep(self._pause_s)


def correlation_of(frame: bytes) -> bytes:
    """The four bytes that an answer must repeat."""
    return frame[4:8]


def api_key_of(frame: bytes) -> int:
    """Which API a request asks."""
    return int.from_bytes(frame[0:2], "big")

"""A connection over TLS: what is sent arrives as it was, in full records, also where the socket takes little."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from heliograph.kafka.net.connection import Connection, ConnectionLost
from heliograph.model import Address

RECORD_BYTES = 16 << 10


class Wire:
    """Two ends of a TLS connection; the far one is read by a thread that notes each record."""

    def __init__(self, near: ssl.SSLContext, far: ssl.SSLContext) -> None:
        ours, theirs = socket.socketpair()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.received: list[bytes] = []
        self._reader = threading.Thread(target=self._read, args=(theirs, far))
        self._reader.start()
        sock = near.wrap_socket(ours, server_hostname="broker")
        sock.setblocking(False)
        self.connection = Connection(sock, Address("broker", 1), "test", {})

    def _read(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        with context.wrap_socket(sock, server_side=True) as wrapped:
            while record := wrapped.recv(1 << 20):  # never more than one
                self.received.append(record)

    def send(self, parts: list[bytes]) -> None:
        pending: Any = SimpleNamespace()
        self.connection.send(parts, pending)
        while self.connection.wants_write:
            self.connection.flush()
            if self.connection.wants_write:
                select.select([], [self.connection.sock], [], 10)

    def end(self) -> list[bytes]:
        self.connection.sock.close()
        self._reader.join()
        return self.received


@pytest.fixture(scope="module")
def contexts() -> Iterator[tuple[ssl.SSLContext, ssl.SSLContext]]:
    authority = trustme.CA()
    near, far = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(near)
    authority.issue_cert("broker").configure_cert(far)
    yield near, far


@given(
    st.lists(
        st.integers(1, 200) | st.integers(RECORD_BYTES - 2, RECORD_BYTES + 2) | st.integers(1, 90_000), max_size=30
    )
)
def test_any_parts_arrive_in_order_and_in_full_records(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], sizes: list[int]
) -> None:
    wire = Wire(*contexts)
    parts = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    wire.send(parts)
    received = wire.end()
    assert b"".join(received) == b"".join(parts)
    # Only what is left of a large part, or the very end, may be a record that is not full.
    short = [record for record in received if len(record) < RECORD_BYTES]
    assert len(short) <= 1 + sum(size >= RECORD_BYTES for size in sizes)


def test_an_end_that_hangs_up_is_a_lost_connection(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    wire = Wire(*contexts)
    wire.connection.sock.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ConnectionLost):
        wire.send([bytes(100_000)] * 3)
    wire.end()

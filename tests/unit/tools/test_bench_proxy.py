"""The benchmark's long way: what goes in comes out, in order, and so does the end of the stream."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import threading

import pytest
from bench.proxy import HOST, Pipe, _Chunks, free_port, running_proxy


def echo(listener: socket.socket) -> None:
    connection, _address = listener.accept()
    with connection:
        while data := connection.recv(65_536):
            connection.sendall(data)


def test_bytes_come_out_as_they_went_in_and_the_end_follows_them() -> None:
    port = free_port()
    sent = os.urandom(3_000_000)
    with socket.create_server((HOST, 0)) as listener, running_proxy(port, listener.getsockname()[1], 20):
        server = threading.Thread(target=echo, args=(listener,))
        server.start()
        with socket.create_connection((HOST, port)) as client:
            client.settimeout(30)
            sender = threading.Thread(target=lambda: (client.sendall(sent), client.shutdown(socket.SHUT_WR)))
            sender.start()
            received = b"".join(iter(lambda: client.recv(65_536), b""))
            sender.join()
        server.join()
    assert received == sent


def test_a_broker_that_is_not_there_ends_the_connection() -> None:
    port = free_port()
    with running_proxy(port, free_port(), 0), socket.create_connection((HOST, port)) as client:
        client.settimeout(30)
        assert client.recv(1) == b""


def test_a_pipe_that_may_not_grow_carries_bytes_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(errno.EPERM, "too many pages in pipes")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    client, near = socket.socketpair()
    far, server = socket.socketpair()
    with client, near, far, server:
        client.sendall(b"bytes")
        pipe = Pipe(near, far, 0.0, _Chunks())
        pipe.read()
        pipe.write(float("inf"))
        assert server.recv(10) == b"bytes"


def test_a_connection_that_breaks_leaves_no_descriptor_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def reset(*_arguments: object, **_options: object) -> int:
        raise ConnectionResetError(errno.ECONNRESET, "reset")

    monkeypatch.setattr(os, "splice", reset)
    near, far = socket.socketpair()
    chunks = _Chunks()
    with near, far:
        chunk = chunks.take()
        chunks.give_back(chunk)
        with pytest.raises(ConnectionResetError):
            Pipe(near, far, 0.0, chunks).read()
    assert chunks.take() is chunk
    chunk.close()

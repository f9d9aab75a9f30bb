"""A high-latency link on loopback: a proxy between copier and broker that forwards bytes half a round trip later.

It has a link's delay and no bandwidth limit of its own: bytes are read as soon as they come, wait in a queue with the
time of their release, and leave in order. It does not imitate lost packets, a receive window that is too small for the
link (the senders see loopback), and the round trip of TCP's own handshake. This is the same for both copiers.

The operating system moves the bytes (`splice`, on Linux), because the copiers lack the CPU that the proxy uses.
One thread, one selector: `python -m bench.proxy LISTEN_PORT UPSTREAM_PORT ROUND_TRIP_MS`. It prints `ready` to its
standard output when it listens, and ends when its standard input does, so it never outlives the benchmark.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 20
_MOST_QUEUED_BYTES = 256 << 20
_MOST_SPARE_CHUNKS = 256
_IDLE_S = 1.0
_AT_ONCE = os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK
_SET_PIPE_BYTES = 1031  # F_SETPIPE_SZ, which `fcntl` does not name everywhere


class _Chunk:
    """A pipe of the operating system: bytes go from socket to socket through it without being copied to us."""

    def __init__(self) -> None:
        self.out_of, self.into = os.pipe()
        # Who is not root may have only so many bytes in pipes; a smaller one splices less at a time, no more.
        with suppress(PermissionError):
            fcntl.fcntl(self.into, _SET_PIPE_BYTES, _CHUNK_BYTES)
        self.release_at = 0.0
        self.size_bytes = 0

    def close(self) -> None:
        os.close(self.out_of)
        os.close(self.into)


class _Chunks:
    """Empty chunks that are used again."""

    def __init__(self) -> None:
        self._spare: list[_Chunk] = []

    def take(self) -> _Chunk:
        return self._spare.pop() if self._spare else _Chunk()

    def give_back(self, chunk: _Chunk) -> None:
        if len(self._spare) < _MOST_SPARE_CHUNKS:
            self._spare.append(chunk)
        else:
            chunk.close()


class Pipe:
    """One direction of one connection: what was read from `origin`, until it has been written to `goal`."""

    def __init__(self, origin: socket.socket, goal: socket.socket, delay_s: float, chunks: _Chunks) -> None:
        self.origin = origin
        self.goal = goal
        self.is_at_end = False
        self.is_shut = False
        self.is_blocked = False
        self._delay_s = delay_s
        self._chunks = chunks
        self._queue: deque[_Chunk] = deque()
        self._queued_bytes = 0

    @property
    def wants_bytes(self) -> bool:
        """Return whether it may read more; the limit protects memory, it is not a bandwidth."""
        return not self.is_at_end and self._queued_bytes < _MOST_QUEUED_BYTES

    @property
    def next_release(self) -> float | None:
        """Return the time at which the oldest bytes may leave; None if there are none, or if the other side blocks."""
        return self._queue[0].release_at if self._queue and not self.is_blocked else None

    def read(self) -> None:
        """Queue what has come."""
        chunk = self._chunks.take()
        try:
            chunk.size_bytes = os.splice(self.origin.fileno(), chunk.into, _CHUNK_BYTES, flags=_AT_ONCE)
        except OSError as error:
            self._chunks.give_back(chunk)
            if not isinstance(error, BlockingIOError):
                raise
            return
        if not chunk.size_bytes:
            self._chunks.give_back(chunk)
            self.is_at_end = True
            return
        chunk.release_at = time.monotonic() + self._delay_s
        self._queued_bytes += chunk.size_bytes
        self._queue.append(chunk)

    def write(self, now: float) -> None:
        """Send what is due; the end of the stream follows the last byte."""
        self.is_blocked = False
        while self._queue and self._queue[0].release_at <= now:
            chunk = self._queue[0]
            try:
                sent = os.splice(chunk.out_of, self.goal.fileno(), chunk.size_bytes, flags=_AT_ONCE)
            except BlockingIOError:
                self.is_blocked = True
                return
            self._queued_bytes -= sent
            chunk.size_bytes -= sent
            if not chunk.size_bytes:
                self._chunks.give_back(self._queue.popleft())
        if self.is_at_end and not self._queue and not self.is_shut:
            self.is_shut = True
            self.goal.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Let go of what has not been sent."""
        while self._queue:
            self._queue.popleft().close()


class Link:
    """One connection through the proxy: both directions, and their sockets' places in the selector."""

    def __init__(self, near: socket.socket, far: socket.socket, delay_s: float, chunks: _Chunks) -> None:
        for sock in (near, far):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sockets = (near, far)
        self.pipes = (Pipe(near, far, delay_s, chunks), Pipe(far, near, delay_s, chunks))
        self._events = dict.fromkeys(self.sockets, 0)

    @property
    def is_over(self) -> bool:
        """Return whether both directions have ended."""
        return all(pipe.is_shut for pipe in self.pipes)

    def register(self, selector: selectors.BaseSelector) -> None:
        """Ask the selector for just what is of use now."""
        forth, back = self.pipes
        for sock, reading, writing in ((self.sockets[0], forth, back), (self.sockets[1], back, forth)):
            events = (selectors.EVENT_READ if reading.wants_bytes else 0) | (
                selectors.EVENT_WRITE if writing.is_blocked else 0
            )
            before, self._events[sock] = self._events[sock], events
            if before and events and before != events:
                selector.modify(sock, events, (self, sock))
            elif events and not before:
                selector.register(sock, events, (self, sock))
            elif before and not events:
                selector.unregister(sock)

    def serve(self, sock: socket.socket, events: int) -> None:
        """Read or write what the selector says is possible."""
        forth, back = self.pipes
        reading, writing = (forth, back) if sock is self.sockets[0] else (back, forth)
        if events & selectors.EVENT_READ:
            reading.read()
        if events & selectors.EVENT_WRITE:
            writing.is_blocked = False

    def write(self, now: float) -> None:
        """Send what is due in both directions."""
        for pipe in self.pipes:
            if not pipe.is_blocked:
                pipe.write(now)

    def close(self, selector: selectors.BaseSelector) -> None:
        """Let go of both sockets."""
        for sock in self.sockets:
            if self._events[sock]:
                selector.unregister(sock)
            sock.close()
        for pipe in self.pipes:
            pipe.close()


class Proxy:
    """Accepts connections and runs all links."""

    def __init__(self, listen_port: int, upstream_port: int, round_trip_s: float) -> None:
        self._upstream_port = upstream_port
        self._delay_s = round_trip_s / 2
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server((HOST, listen_port), backlog=128)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._links: set[Link] = set()
        self._chunks = _Chunks()

    def run(self) -> None:
        """Serve until standard input ends."""
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, events in self._selector.select(self._timeout_s()):
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    link, sock = key.data
                    self._serve(link, sock, events)
            self._write_due()

    def _timeout_s(self) -> float:
        releases = [at for link in self._links for pipe in link.pipes if (at := pipe.next_release) is not None]
        return max(0.0, min(releases) - time.monotonic()) if releases else _IDLE_S

    def _accept(self) -> None:
        near, _address = self._listener.accept()
        try:
            far = socket.create_connection((HOST, self._upstream_port))
        except OSError:
            near.close()
            return
        link = Link(near, far, self._delay_s, self._chunks)
        self._links.add(link)
        link.register(self._selector)

    def _serve(self, link: Link, sock: socket.socket, events: int) -> None:
        if link not in self._links:
            return
        try:
            link.serve(sock, events)
        except OSError:  # a connection that breaks takes only its own link down
            self._close(link)

    def _write_due(self) -> None:
        now = time.monotonic()
        for link in list(self._links):
            try:
                link.write(now)
                link.register(self._selector)
            except OSError:
                self._close(link)
                continue
            if link.is_over:
                self._close(link)

    def _close(self, link: Link) -> None:
        self._links.discard(link)
        link.close(self._selector)


def free_port() -> int:
    """A port nobody listens on just now."""
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def running_proxy(listen_port: int, upstream_port: int, round_trip_ms: float) -> Iterator[int]:
    """The proxy as a process of its own, so that it does not wait for this one; yields its process id."""
    command = [sys.executable, "-m", "bench.proxy", str(listen_port), str(upstream_port), str(round_trip_ms)]
    root = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError(f"The proxy did not start on port {listen_port}.")
            yield process.pid
        finally:
            process.stdin.close()


if __name__ == "__main__":
    Proxy(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000).run()

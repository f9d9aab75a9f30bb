"""Doors in front of a cluster's brokers, which can be slammed: connections cut, refused for a while, or gone silent.

A forwarding proxy in a thread: a broker advertises the door's port to those who come through its `FAR` listener, so a
client that was given the doors' addresses meets the brokers only through them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence

HOST = "127.0.0.1"
_CHUNK_BYTES = 256 << 10


class Gates:
    """The doors of one cluster: pairs of the port to listen on and the port behind it."""

    def __init__(self, ways: Sequence[tuple[int, int]]) -> None:
        self._ways = tuple(ways)
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._is_open = True
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._run, name="gates", daemon=True)
        listening = threading.Event()
        self._loop.call_soon(lambda: self._keep(asyncio.ensure_future(self._listen(listening), loop=self._loop)))
        self._thread.start()
        if not listening.wait(60):
            raise RuntimeError("the gates did not open")

    def close(self) -> None:
        """End all connections and the thread."""
        self._loop.call_soon_threadsafe(self._abort)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def cut(self) -> None:
        """Break every connection; new ones are let in at once."""
        self._loop.call_soon_threadsafe(self._abort)

    def shut(self) -> None:
        """Break every connection and let nobody in."""
        self._loop.call_soon_threadsafe(self._set_open, False)

    def silence(self) -> None:
        """Hand no byte on, without a word to either side."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def heal(self) -> None:
        """Let everyone in, and bytes through."""
        self._loop.call_soon_threadsafe(self._set_open, True)
        self._loop.call_soon_threadsafe(self._flowing.set)

    # --- in the loop's thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for server in self._servers:
            server.close()
        for task in self._pumps:
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    async def _listen(self, listening: threading.Event) -> None:
        for door, behind in self._ways:

            async def serve(
                near: asyncio.StreamReader, near_writer: asyncio.StreamWriter, behind: int = behind
            ) -> None:
                await self._serve(near, near_writer, behind)

            self._servers.append(await asyncio.start_server(serve, HOST, door))
        listening.set()

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._pumps.add(task)
        task.add_done_callback(self._pumps.discard)

    def _set_open(self, is_open: bool) -> None:
        self._is_open = is_open
        if not is_open:
            self._abort()

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, near: asyncio.StreamReader, near_writer: asyncio.StreamWriter, behind: int) -> None:
        if not self._is_open:
            near_writer.transport.abort()
            return
        try:
            far, far_writer = await asyncio.open_connection(HOST, behind)
        except OSError:  # the broker is down, which its client shall notice
            near_writer.transport.abort()
            return
        both = {near_writer, far_writer}
        self._writers |= both
        for reader, writer in ((near, far_writer), (far, near_writer)):
            self._keep(asyncio.ensure_future(self._pump(reader, writer, both)))

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, both: set[asyncio.StreamWriter]
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK_BYTES):
                await self._flowing.wait()
                writer.write(chunk)
                await writer.drain()
        for each in both:  # one direction's end is the connection's: Kafka knows no half-closed ones
            each.transport.abort() if writer.transport.is_closing() else each.close()
        self._writers -= both


def free_base(count: int) -> int:
    """A four-digit port with `count` free ones from it on, likewise with a 1 and a 2 in front.

    All are below the range outgoing connections are given ports from: a broker that is down keeps its ports.
    """
    for base in range(4100, 9990, 10):
        ports = [lead + base + i for i in range(count) for lead in (0, 10_000, 20_000)]
        if all(map(_is_free, ports)):
            return base
    raise RuntimeError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True

"""Limits the connections of a REST server, counted from accept to close, so that silent clients keep nobody out.

uvicorn counts a TLS connection only after its handshake, so the listening socket counts here. At the limit, a waiting
connection is closed for a new one: first one whose caller has not been admitted yet, then an idle one, and among these
the oldest of the peer that has most. A connection whose request is being served is never closed. The limit is below the
number of files that the process may open, since connections to Kafka need some too.
"""

from __future__ import annotations

import errno
import logging
import resource
import socket
import time
from collections import Counter
from contextlib import suppress
from enum import IntEnum
from typing import Any

from heliograph.web.repeated_warning import RepeatedWarning

_log = logging.getLogger(__name__)
MOST_CONNECTIONS = 500
ACCEPTED_AT_ONCE = 50
"""Connections accepted in a row; then requests are read, so that a connection that sent one does not look silent."""
_BACKLOG = 1024  # a client whose connection does not fit waits a second before it retries
_SHARE_OF_FILES = 4
_ACCEPT_PAUSE_S = 0.5  # shorter than asyncio waits before it accepts again
_NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class ConnectionUse(IntEnum):
    """The use of a connection; the lowest is closed first."""

    UNKNOWN = 0  # no request with an admitted caller yet
    IDLE = 1
    SERVING = 2


class RestConnection(socket.socket):
    """A connection that is no longer counted when it is closed."""

    use = ConnectionUse.UNKNOWN

    def __init__(self, accepted: socket.socket, peer: str, all_of_them: Connections) -> None:
        super().__init__(fileno=accepted.detach())
        self.peer = peer
        self._all = all_of_them

    def serve(self) -> None:
        """Note that the caller of a request was admitted."""
        self.use = ConnectionUse.SERVING

    def rest(self) -> None:
        """Note that a request was answered."""
        self.use = min(self.use, ConnectionUse.IDLE)

    def close(self) -> None:
        """Close, and count no longer."""
        self._all.remove(self)
        super().close()


class Connections:
    """The connections of one server, of all its listeners; used on its event loop only."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most or _most_connections()
        self._held: dict[int, RestConnection] = {}  # by file descriptor, the oldest first
        self._full = RepeatedWarning(_log, "REST holds %d connections, its limit: waiting ones are closed for new ones")
        self._exhausted = RepeatedWarning(_log, "REST cannot accept a connection: %s")

    def __len__(self) -> int:
        return len(self._held)

    def add(self, accepted: socket.socket, peer: str) -> RestConnection | None:
        """Add a connection that was just accepted; return None, and close it, if no other can be closed for it."""
        if len(self._held) >= self._most:
            self._full.log(self._most)
            if not self._close_one():
                accepted.close()
                return None
        connection = RestConnection(accepted, peer, self)
        self._held[connection.fileno()] = connection
        return connection

    def get(self, file: int) -> RestConnection | None:
        """Return the connection of a file descriptor; None if it was closed for another."""
        return self._held.get(file)

    def remove(self, connection: RestConnection) -> None:
        """Remove a connection."""
        if self._held.get(connection.fileno()) is connection:
            del self._held[connection.fileno()]

    def report_exhausted(self, error: OSError) -> None:
        """Log that the process cannot open another file, and free one."""
        self._exhausted.log(error.strerror or error)
        self._close_one()

    def _close_one(self) -> bool:
        waiting = [each for each in self._held.values() if each.use is not ConnectionUse.SERVING]
        if not waiting:
            return False
        least = min(each.use for each in waiting)
        peers = Counter(each.peer for each in waiting if each.use is least)
        peer = peers.most_common(1)[0][0]
        chosen = next(each for each in waiting if each.use is least and each.peer == peer)
        self.remove(chosen)
        # The event loop owns the socket; it closes a socket that is shut down.
        with suppress(OSError):
            chosen.shutdown(socket.SHUT_RDWR)
        return True


class CountedListener(socket.socket):
    """A listening socket that counts each connection as it is accepted."""

    def __init__(self, bound: socket.socket, connections: Connections) -> None:
        super().__init__(fileno=bound.detach())
        self._connections = connections
        self._paused_until = 0.0

    def listen(self, backlog: int = 0) -> None:
        """Listen with a longer backlog: asyncio also accepts that many at once."""
        super().listen(max(backlog, _BACKLOG))

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection; a refused one looks to asyncio like one that the client has aborted."""
        if time.monotonic() < self._paused_until:
            raise BlockingIOError
        try:
            accepted, address = super().accept()
        except OSError as error:
            # asyncio pauses too, but first retries, and logs, as many times as the backlog is long.
            if error.errno in _NO_RESOURCES:
                self._paused_until = time.monotonic() + _ACCEPT_PAUSE_S
            raise
        connection = self._connections.add(accepted, address[0])
        if connection is None:
            raise ConnectionAbortedError
        return connection, address


def _most_connections() -> int:
    files, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, files // _SHARE_OF_FILES)

"""The event loop of a copy task: one selector, all connections to both clusters, one thread.

Opening a connection blocks (TCP, TLS, SASL), so it happens on a helper thread, which wakes the loop when the connection
is ready; meanwhile the loop serves the other brokers. Everything else happens on the loop's thread, without a lock.
"""

from __future__ import annotations

import queue
import selectors
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kafka.protocol.sasl import SaslAuthenticateRequest

from heliograph.errors import HeliographError
from heliograph.kafka.net.connection import Connection, ConnectionLost, open_connection
from heliograph.kafka.security.sasl import NEWEST_AUTHENTICATE, SaslRequest, log_in

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from heliograph.kafka.net.buffers import Buffer, BufferPool
    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import Address


_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_MAX_OPENERS = 32


class Network:
    """Connections of one loop."""

    def __init__(self, pool: BufferPool, client_id: str, connect_timeout_s: float) -> None:
        self._pool = pool
        self._client_id = client_id
        self._connect_timeout_s = connect_timeout_s
        self._selector = selectors.DefaultSelector()
        self._waker, self._wakee = socket.socketpair()
        self._waker.setblocking(False)
        self._wakee.setblocking(False)
        self._selector.register(self._wakee, _READ, None)
        self._opened: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        # Many, since a broker that does not respond occupies one for seconds, and the others must not wait for it.
        self._openers = ThreadPoolExecutor(max_workers=_MAX_OPENERS, thread_name_prefix="connect")
        self._logins = ThreadPoolExecutor(max_workers=2, thread_name_prefix="login")
        self._lost_callbacks: dict[Connection, Callable[[HeliographError | str], None]] = {}
        self._writing: set[Connection] = set()
        self._worked: set[Address] = set()  # addresses to which a connection was once open

    def connect(
        self,
        address: Address,
        security: Security,
        on_open: Callable[[Connection], None],
        on_lost: Callable[[HeliographError | str], None],
    ) -> None:
        """Open a connection in the background; exactly one of the callbacks follows, on the loop's thread."""

        def opener() -> None:
            try:
                connection = open_connection(
                    address, security, self._client_id, self._connect_timeout_s, has_worked=address in self._worked
                )
            except HeliographError as error:
                failure = error
                self._opened.put(lambda: on_lost(failure))
            except Exception as error:  # noqa: BLE001  (a helper thread must call back, whatever went wrong)
                reason = f"{address}: {error}"
                self._opened.put(lambda: on_lost(reason))
            else:
                self._opened.put(lambda: self._adopt(connection, on_open, on_lost))
            self._wake()

        self._openers.submit(opener)

    def _adopt(
        self,
        connection: Connection,
        on_open: Callable[[Connection], None],
        on_lost: Callable[[HeliographError | str], None],
    ) -> None:
        self._selector.register(connection.sock, _READ, connection)
        self._worked.add(connection.address)
        self._lost_callbacks[connection] = on_lost
        on_open(connection)

    def _wake(self) -> None:
        try:
            self._waker.send(b"\0")
        except (BlockingIOError, OSError):
            return  # a full pipe wakes the loop anyway; a closed one has no loop to wake

    def poll(self, timeout_s: float) -> bool:
        """Wait for events and read what has arrived; return whether a callback was called.

        A large response arrives in many pieces; the loop need not look at its timers and queues for each of them.
        """
        has_called = False
        for key, _events in self._selector.select(timeout_s):
            if key.data is None:
                self._run_opened()
                has_called = True
            elif key.data in self._lost_callbacks:
                has_called |= self._serve(key.data)
        return has_called

    def _run_opened(self) -> None:
        with suppress(BlockingIOError):
            self._wakee.recv(4096)
        while not self._opened.empty():
            self._opened.get()()

    def _serve(self, connection: Connection) -> bool:
        has_called = False
        try:
            for pending, response, buffer in connection.receive(self._pool):
                pending.on_response(response, buffer)
                buffer.release()
                has_called = True
            if connection.wants_write:
                self.flush(connection)
        except ConnectionLost as lost:
            self.drop(connection, str(lost))
            return True
        return has_called

    def flush(self, connection: Connection) -> None:
        """Send what is queued; the loop sends what the socket does not take now."""
        try:
            connection.flush()
        except ConnectionLost as lost:
            self.drop(connection, str(lost))
            return
        if connection.wants_write != (connection in self._writing):
            if connection.wants_write:
                self._writing.add(connection)
                self._selector.modify(connection.sock, _READ | _WRITE, connection)
            else:
                self._writing.discard(connection)
                self._selector.modify(connection.sock, _READ, connection)

    def drop(self, connection: Connection, why: HeliographError | str) -> None:
        """Close a connection; call its owner, then the callers that wait for responses."""
        on_lost = self._lost_callbacks.pop(connection, None)
        if on_lost is None:
            return
        self._writing.discard(connection)
        self._selector.unregister(connection.sock)
        on_lost(why)  # first: it sees whether a caller waits, and no retry gets the lost connection
        connection.abandon(str(why))

    def maintain(self, now: float | None = None) -> None:
        """Drop stalled connections and renew SASL sessions; to be called about once a second."""
        moment = time.monotonic() if now is None else now
        self._drop_overdue(moment)
        self._renew_sessions(moment)

    def _drop_overdue(self, moment: float) -> None:
        """Drop stalled connections whose oldest request is past its deadline, such as those to a stopped broker."""
        for connection in list(self._lost_callbacks):
            is_moving = connection.is_moving(moment)
            if connection.pending and connection.pending[0].deadline < moment and not is_moving:
                api = connection.pending[0].api
                self.drop(connection, f"{connection.address} did not answer a {api} request in time")

    def _renew_sessions(self, moment: float) -> None:
        """Re-authenticate before a broker's session ends (KIP-368); requests are held meanwhile."""
        for connection in self._lost_callbacks:
            session = connection.session
            if session is not None and session.log_in_at <= moment and not session.is_renewing:
                session.is_renewing = True
                self._logins.submit(self._prepare_login, connection)

    def _prepare_login(self, connection: Connection) -> None:
        """Begin a login on a helper thread, since a token may have to be fetched."""
        assert connection.session is not None
        try:
            version = connection.version_of(SaslAuthenticateRequest, NEWEST_AUTHENTICATE)
            steps = log_in(connection.session.security, connection.address, version)
            step = next(steps)
        except HeliographError as error:
            failure = error
            self._opened.put(lambda: self.drop(connection, failure))
        except Exception as error:  # noqa: BLE001  (a helper thread must call back, whatever went wrong)
            reason = f"{connection.address}: {error}"
            self._opened.put(lambda: self.drop(connection, reason))
        else:
            self._opened.put(lambda: self._continue_login(connection, steps, step))
        self._wake()

    def _continue_login(
        self, connection: Connection, steps: Generator[SaslRequest, Any, int], step: SaslRequest
    ) -> None:
        if connection not in self._lost_callbacks:
            return
        connection.is_holding = False
        ahead = connection.pending[-1].deadline if connection.pending else 0.0  # a produce may wait for its replicas
        deadline = max(ahead, time.monotonic()) + self._connect_timeout_s

        def on_response(response: Any, _buffer: Buffer) -> None:
            try:
                self._continue_login(connection, steps, steps.send(response))
            except StopIteration as end:
                assert connection.session is not None
                connection.session.set_lifetime(end.value, time.monotonic())
                connection.stop_holding()
                self.flush(connection)
            except HeliographError as error:
                self.drop(connection, error)

        connection.request(step.request, step.response_class, on_response, lambda _why: None, deadline)
        connection.is_holding = True
        self.flush(connection)

    def close(self) -> None:
        """Close everything, without callbacks."""
        self._openers.shutdown(wait=False, cancel_futures=True)
        self._logins.shutdown(wait=False, cancel_futures=True)
        for connection in self._lost_callbacks:
            connection.sock.close()
        self._lost_callbacks.clear()
        self._selector.close()
        self._waker.close()
        self._wakee.close()

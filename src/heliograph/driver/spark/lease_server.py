"""The lease between the driver and its tasks: one TCP connection per task, one JSON line each way about once a second.

A task says where it stands; the answer says go on, go on with these partitions, or stop. A task that hears nothing
for the lease's time ends itself, so a partition never has two writers for longer than that. Where the driver's port
refuses the connection the driver is gone, and the task ends at once: a restarted process must not meet the tasks of
its predecessor. The same holds where somebody answers at that port who is not the driver: `lease_channel` has each
end prove to the other that it knows the token that only the driver and the task's payload have.


Where the driver listens for its tasks, and by which name they find it: Spark's own settings, used as Spark does.

Executors reach a driver in a container, or behind address translation, by a name that its own machine does not have:
`spark.driver.host` is the address that executors get, `spark.driver.bindAddress` the address to listen on. Such a
driver also needs a fixed port: `spark.heliograph.lease.port`, beside `spark.driver.port`.
"""

from __future__ import annotations

import secrets
import socket
import socketserver
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from heliograph.errors import EngineError
from heliograph.executor.contract.lease import NotOurPeerError, welcome
from heliograph.executor.contract.task_report import TaskReport
from heliograph.model import Address

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.executor.contract.lease import Channel

_PROOF_S = 5.0
_SILENT_S = 60.0  # a task reports every second; one that only was held up connects again
_MOST_STRANGERS = 256  # connections that have not authenticated yet


class TaskIdentity(NamedTuple):
    """Who reports. A task that connects again keeps its run id; the same task run a second time has another."""

    task_id: str
    attempt: int
    run_id: str


class ReportHandler(Protocol):
    """What the driver decides about a task when it reports."""

    def __call__(self, caller: TaskIdentity, report: TaskReport) -> dict[str, Any]:
        """The answer line: `{"go": true}`, with `assignment` where it changed; `{"stop": why}`; `{"gone": why}`."""


class LeaseServer:
    """The driver's end: listens, hears only those who know the token, asks `answer` what to say."""

    def __init__(self, place: LeaseEndpoint, answer: ReportHandler) -> None:
        """Raises OSError where it cannot listen there."""
        self.token = secrets.token_hex(32)
        outer = self
        families = {each[0] for each in socket.getaddrinfo(place.bind_address, place.port, type=socket.SOCK_STREAM)}

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            address_family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6

        self._answer = answer
        self._strangers: dict[socket.socket, None] = {}
        self._meeting = threading.Lock()
        self._server = Server((place.bind_address, place.port), Handler)
        self.address = Address(place.host, int(self._server.server_address[1]))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="leases", daemon=True)
        self._thread.start()

    def _serve(self, sock: socket.socket) -> None:
        # Whoever cannot prove itself is left without a word, and so is a task whose connection breaks: it comes again.
        with suppress(OSError, NotOurPeerError):
            channel, hello = self._meet(sock)
            # An executor that vanished closes no connection: without this its thread would wait for ever.
            sock.settimeout(_SILENT_S)
            caller = TaskIdentity(str(hello["task"]), int(hello["attempt"]), str(hello["run"]))
            while True:
                report = TaskReport.from_json(channel.receive())
                channel.send(self._answer(caller, report))

    def _meet(self, sock: socket.socket) -> tuple[Channel, dict[str, Any]]:
        with self._meeting:
            self._strangers[sock] = None
            if len(self._strangers) > _MOST_STRANGERS:  # the one that has kept us waiting longest gives way
                with suppress(OSError):
                    next(iter(self._strangers)).shutdown(socket.SHUT_RDWR)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return welcome(sock, self.token, _PROOF_S)
        finally:
            with self._meeting:
                self._strangers.pop(sock, None)

    def close(self) -> None:
        """Stop listening; tasks that are still there end themselves."""
        self._server.shutdown()
        self._server.server_close()


_HOST, _BIND_ADDRESS, _PORT = "spark.driver.host", "spark.driver.bindAddress", "spark.heliograph.lease.port"
_MOST_PORTS = 65_536


class LeaseEndpoint(NamedTuple):
    """`bind_address` and `port` (0: any) are where to listen, `host` is what tasks are told."""

    bind_address: str
    host: str
    port: int = 0

    def refusal(self, error: OSError) -> EngineError:
        """The driver cannot listen there."""
        why = error.strerror or str(error)
        return EngineError(
            f"The driver cannot listen for its tasks at {self.bind_address} (port {self.port or 'any'}): {why}. Set"
            f" {_BIND_ADDRESS} to an address of its own machine, and {_HOST} to the name by which executors reach it."
        )


OWN_MACHINE = LeaseEndpoint("127.0.0.1", "127.0.0.1")


def lease_place(setting: Callable[[str, str], str]) -> LeaseEndpoint:
    """By the settings of a running Spark; `setting` takes a name and what holds where it is not set."""
    host = setting(_HOST, "")
    port = setting(_PORT, "0")
    if not port.isdecimal() or int(port) >= _MOST_PORTS:
        raise EngineError(f"{_PORT} must be a port, or 0 for any; it is '{port}'.")
    return LeaseEndpoint(_bare(setting(_BIND_ADDRESS, host)), _bare(host), int(port))


def _bare(host: str) -> str:
    """Spark writes an IPv6 address in brackets; sockets want it without."""
    return host.removeprefix("[").removesuffix("]")

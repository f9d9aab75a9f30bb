"""The driver's end of leases: one TCP connection per task, with a report and an answer about once a second.

The answer to a report is: continue, continue with these partitions, or stop. A task without an answer for the time of
its lease ends itself, so a partition never has two writers for longer than that. If the driver's port refuses the
connection, or another process answers there, the driver has ended and the task ends at once: a restarted driver must
not meet tasks of its predecessor. Both ends prove that they know the token (`executor/contract/lease`), which only the
driver and the payload of its tasks hold.

The endpoint follows Spark's own settings: executors reach a driver in a container, or one behind address translation,
by a name that its own machine does not have. `spark.driver.host` is the address that executors get,
`spark.driver.bindAddress` the address to listen on; such a driver also needs a fixed port,
`spark.heliograph.lease.port`, beside `spark.driver.port`.
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
_HOST, _BIND_ADDRESS, _PORT = "spark.driver.host", "spark.driver.bindAddress", "spark.heliograph.lease.port"
_MOST_PORTS = 65_536


class LeaseEndpoint(NamedTuple):
    """The address to listen on (port 0: any), and the host name that tasks connect to."""

    bind_address: str
    host: str
    port: int = 0

    def refusal(self, error: OSError) -> EngineError:
        """Return the error of a driver that cannot listen there."""
        reason = error.strerror or str(error)
        return EngineError(
            f"The driver cannot listen for its tasks at {self.bind_address} (port {self.port or 'any'}): {reason}. Set"
            f" {_BIND_ADDRESS} to an address of its own machine, and {_HOST} to the name by which executors reach it."
        )


OWN_MACHINE = LeaseEndpoint("127.0.0.1", "127.0.0.1")


def lease_endpoint(setting: Callable[[str, str], str]) -> LeaseEndpoint:
    """Return the endpoint by the settings of a running Spark; `setting` takes a name and a default."""
    host = setting(_HOST, "")
    port = setting(_PORT, "0")
    if not port.isdecimal() or int(port) >= _MOST_PORTS:
        raise EngineError(f"{_PORT} must be a port, or 0 for any; it is '{port}'.")
    return LeaseEndpoint(_bare(setting(_BIND_ADDRESS, host)), _bare(host), int(port))


def _bare(host: str) -> str:
    """Return the host without the brackets that Spark writes around an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")


class TaskIdentity(NamedTuple):
    """The run that reports. A task that reconnects keeps its run id; a second run of the same task has another."""

    task_id: str
    attempt: int
    run_id: str


class ReportHandler(Protocol):
    """Decides on the answer to a report."""

    def __call__(self, caller: TaskIdentity, report: TaskReport) -> dict[str, Any]:
        """Return `{"go": true}`, with `assignment` if it changed; `{"stop": reason}`; or `{"gone": reason}`."""


class LeaseServer:
    """Listens for tasks, authenticates them by the token, and answers their reports by `answer`."""

    def __init__(self, endpoint: LeaseEndpoint, answer: ReportHandler) -> None:
        """Raises OSError if it cannot listen there."""
        self.token = secrets.token_hex(32)
        outer = self
        families = {
            each[0] for each in socket.getaddrinfo(endpoint.bind_address, endpoint.port, type=socket.SOCK_STREAM)
        }

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            address_family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6

        self._answer = answer
        self._strangers: dict[socket.socket, None] = {}
        self._strangers_lock = threading.Lock()
        self._server = Server((endpoint.bind_address, endpoint.port), Handler)
        self.address = Address(endpoint.host, int(self._server.server_address[1]))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="leases", daemon=True)
        self._thread.start()

    def _serve(self, sock: socket.socket) -> None:
        # A peer that does not authenticate gets no answer; a task whose connection broke connects again.
        with suppress(OSError, NotOurPeerError):
            channel, hello = self._authenticate(sock)
            # An executor that vanished closes no connection: without this its thread would wait for ever.
            sock.settimeout(_SILENT_S)
            caller = TaskIdentity(str(hello["task"]), int(hello["attempt"]), str(hello["run"]))
            while True:
                report = TaskReport.from_json(channel.receive())
                channel.send(self._answer(caller, report))

    def _authenticate(self, sock: socket.socket) -> tuple[Channel, dict[str, Any]]:
        with self._strangers_lock:
            self._strangers[sock] = None
            if len(self._strangers) > _MOST_STRANGERS:  # the oldest gives way
                with suppress(OSError):
                    next(iter(self._strangers)).shutdown(socket.SHUT_RDWR)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return welcome(sock, self.token, _PROOF_S)
        finally:
            with self._strangers_lock:
                self._strangers.pop(sock, None)

    def close(self) -> None:
        """Stop listening; tasks that still run end themselves."""
        self._server.shutdown()
        self._server.server_close()

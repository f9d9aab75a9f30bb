"""The Java processes of an embedded cluster, brokers and ZooKeeper, and free ports for them.

A process outlives the command that started it (it has a session of its own). It counts as ours only if its command line
carries the cluster's mark, so that a process id that was given to another program is never stopped. Its folder has its
log (`server.log`, of this start only, because readiness is read from it) and its output (`console.log`).

A Kafka before 4.0 needs a ZooKeeper. It starts before the brokers and stops after them, because a broker writes to it
when it stops. A broker that was killed stays registered until its session ends, and cannot start again before:
`wait_until_gone` waits for that. Registrations are read from ZooKeeper's `dump` command, so no client is needed.
"""

from __future__ import annotations

import random
import re
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from heliograph.embedded.java import java_command, private_folder
from heliograph.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from heliograph.embedded.layouts import Layout


HOST = "127.0.0.1"
_STOP_TIMEOUT_S = 20.0

_LOWEST_PORT = 10_240
_SYSTEM_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_LOWEST_SYSTEM_PORT = 32_768
_MOST_TRIES = 1_000
_given: set[int] = set()  # ports that were returned before

ZOOKEEPER_FOLDER = "zookeeper"
SESSION_TIMEOUT_MS = 6_000
_ZOOKEEPER_TIMEOUT_S = 180.0
# reload4j has no JMX classes, which the ZooKeeper of the oldest versions would look for.
_ZOOKEEPER_JVM_OPTIONS = ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-Dzookeeper.jmx.log4j.disable=true"]


def mark_of(cluster: str, part: str | int) -> str:
    """Return the argument by which a process is recognised; `part` is a node id or a name."""
    return f"-Dheliograph.cluster={cluster}/{part}"


def is_ours(pid: int, mark: str) -> bool:
    """Return whether that process is alive and carries the mark."""
    try:
        process = psutil.Process(pid)
        command = process.cmdline()
        # A process that is just being executed has no command line for a moment; the pid is the one we stored.
        return process.status() != psutil.STATUS_ZOMBIE and (not command or mark in command)
    except psutil.Error:
        return False


def launch(folder: Path, layout: Layout, libs: Path, options: list[str], program: list[str]) -> int:
    """Start `program` (a class and its arguments) with the JVM's `options`, and return the process id."""
    log = folder / "server.log"
    log.unlink(missing_ok=True)
    log_config = folder / "log4j.properties"
    log_config.write_text(layout.log_config.format(log=log))
    command = [java_command(), *options, f"{layout.log_option}{log_config}", "-cp", f"{libs}/*", *program]
    with (folder / "console.log").open("wb") as console:
        process = subprocess.Popen(
            command,
            stdout=console,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            cwd=folder,
        )
    return process.pid


def stop_all(pids: Iterable[int]) -> None:
    """Stop processes and wait for them; one that does not end in time is killed."""
    processes = [psutil.Process(pid) for pid in pids]
    for process in processes:
        process.terminate()
    _gone, alive = psutil.wait_procs(processes, timeout=_STOP_TIMEOUT_S)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=_STOP_TIMEOUT_S)  # its folder may be deleted next


def last_error(folder: Path) -> str:
    """Return the error with which a process ended, from its log."""
    for name in ("server.log", "console.log"):
        lines = (
            [line.strip() for line in (folder / name).read_text(errors="replace").splitlines() if line.strip()]
            if (folder / name).exists()
            else []
        )
        causes = [line for line in lines if line.startswith("Caused by")]
        errors = [line for line in lines if "Exception" in line or "ERROR" in line or "FATAL" in line]
        if causes or errors:
            return f"{causes[-1] if causes else errors[0]} (more in {folder / name})"
    return f"see {folder}"


# --- free ports -------------------------------------------------------------------------------------------------------


def free_ports(count: int) -> list[int]:
    """Return different ports that nobody listens on now, and that were not returned before.

    They are not from the system's own range: before the server starts, the system could use such a port for any
    outgoing connection, and on a busy machine it does.
    """
    among = candidates()
    found: set[int] = set()
    for _try in range(_MOST_TRIES):
        if len(found) == count:
            _given.update(found)
            return sorted(found)
        port = random.choice(among)  # noqa: S311  (not a secret)
        if port not in found | _given and _is_free(port):
            found.add(port)
    return [_any_port() for _ in range(count)]


def candidates() -> Sequence[int]:
    """Return the ports to choose from; processes that start servers at the same time may have a share each."""
    return range(_LOWEST_PORT, _lowest_system_port())


def _lowest_system_port() -> int:
    try:
        lowest = int(_SYSTEM_PORT_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_LOWEST_SYSTEM_PORT
    return lowest if lowest > 2 * _LOWEST_PORT else _USUAL_LOWEST_SYSTEM_PORT


def _is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def _any_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


# --- ZooKeeper --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ZooKeeper:
    """The ZooKeeper of one cluster."""

    port: int
    pid: int = 0

    @property
    def address(self) -> str:
        """The `host:port` that clients connect to."""
        return f"{HOST}:{self.port}"

    def is_running(self, cluster: str) -> bool:
        """Return whether its process is alive."""
        return is_ours(self.pid, mark_of(cluster, ZOOKEEPER_FOLDER))


def launch_zookeeper(cluster: str, folder: Path, port: int, layout: Layout, libs: Path) -> ZooKeeper:
    """Start a ZooKeeper on the data in the cluster's folder; it serves after `wait_until_gone`."""
    own = private_folder(folder / ZOOKEEPER_FOLDER)
    data = own / "data"
    data.mkdir(parents=True, exist_ok=True)
    properties = own / "zookeeper.properties"
    settings = {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": HOST,
        "maxClientCnxns": 0,
        "tickTime": 1000,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "dump",
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    program = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(properties)]
    return ZooKeeper(
        port, launch(own, layout, libs, [*_ZOOKEEPER_JVM_OPTIONS, mark_of(cluster, ZOOKEEPER_FOLDER)], program)
    )


def wait_until_gone(zookeeper: ZooKeeper, cluster: str, folder: Path, node_ids: Iterable[int]) -> None:
    """Wait until ZooKeeper serves and none of the brokers is registered."""
    wanted = set(node_ids)
    deadline = time.monotonic() + _ZOOKEEPER_TIMEOUT_S
    while True:
        registered = _registered_brokers(zookeeper.port)
        if registered is not None and not registered & wanted:
            return
        if not zookeeper.is_running(cluster):
            raise EmbeddedError(
                f"The ZooKeeper of '{cluster}' ended at its start: {last_error(folder / ZOOKEEPER_FOLDER)}"
            )
        if time.monotonic() > deadline:
            issue = "did not start" if registered is None else f"still knows broker {min(registered & wanted)}"
            raise EmbeddedError(f"The ZooKeeper of '{cluster}' {issue} after {_ZOOKEEPER_TIMEOUT_S:.0f} s.")
        time.sleep(0.05)


def _registered_brokers(port: int) -> set[int] | None:
    """Return the brokers that have a session; None while ZooKeeper does not serve."""
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(b"dump")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    except OSError:
        return None
    # While it loads its data, it answers that it does not serve requests.
    if b"phemeral" not in answer:
        return None
    return {int(node_id) for node_id in re.findall(rb"/brokers/ids/(\d+)", answer)}

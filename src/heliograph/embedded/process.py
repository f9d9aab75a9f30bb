"""One Java process of an embedded cluster: a broker or its ZooKeeper, started in a folder of its own.

The process outlives us (a session of its own). It counts as ours only if its command line carries the cluster's mark,
so a process id that was given to another program is never stopped. The folder keeps its log (`server.log`, of this
start only, because readiness is read from it) and what it printed (`console.log`).


Ports for servers that are about to start.

Not those the system itself would choose: between our look and the server's start it could give such a one to any
connection that leaves this machine, and on a busy machine it does.

The ZooKeeper of an embedded cluster of a Kafka before 4.0: one process, bound to 127.0.0.1, part of its cluster.

It starts before the brokers and stops after them, because a broker that ends writes to it. A broker that was killed
stays registered until its session ends, and until then the same broker cannot start again: `wait_until_gone` waits
for that. Both are read from ZooKeeper's own `dump` command, so no client is needed.
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


def mark_of(cluster: str, part: str | int) -> str:
    """The argument by which a process is recognised; `part` is a node id or a word."""
    return f"-Dheliograph.cluster={cluster}/{part}"


def is_ours(pid: int, mark: str) -> bool:
    """Whether that process lives and carries the mark."""
    try:
        process = psutil.Process(pid)
        command = process.cmdline()
        # A process that is just being executed has no command line for a moment; the pid is the one we noted.
        return process.status() != psutil.STATUS_ZOMBIE and (not command or mark in command)
    except psutil.Error:
        return False


def launch(folder: Path, layout: Layout, libs: Path, options: list[str], program: list[str]) -> int:
    """Start `program` (a class and its arguments) with the JVM's `options`; returns the process id."""
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
    """End processes and wait for it; one that does not end in time is killed."""
    processes = [psutil.Process(pid) for pid in pids]
    for process in processes:
        process.terminate()
    _gone, alive = psutil.wait_procs(processes, timeout=_STOP_TIMEOUT_S)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=_STOP_TIMEOUT_S)  # its folder may be deleted next


def last_error(folder: Path) -> str:
    """Why a process ended, as far as its log tells."""
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


_LOWEST = 10_240
_SYSTEMS_OWN = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_LOWEST_OF_THE_SYSTEM = 32_768
_MOST_TRIES = 1_000
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """So many different ports that nobody listens on just now, and that were not given out here before."""
    among = candidates()
    found: set[int] = set()
    for _try in range(_MOST_TRIES):
        if len(found) == count:
            _given.update(found)
            return sorted(found)
        port = random.choice(among)  # noqa: S311  (nobody need be surprised)
        if port not in found | _given and _is_free(port):
            found.add(port)
    return [_any_port() for _ in range(count)]


def candidates() -> Sequence[int]:
    """The ports to choose from; processes that start servers at the same time may agree on a share each."""
    return range(_LOWEST, _lowest_of_the_system())


def _lowest_of_the_system() -> int:
    try:
        lowest = int(_SYSTEMS_OWN.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_LOWEST_OF_THE_SYSTEM
    return lowest if lowest > 2 * _LOWEST else _USUAL_LOWEST_OF_THE_SYSTEM


def _is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def _any_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


ZOOKEEPER_FOLDER = "zookeeper"
SESSION_TIMEOUT_MS = 6_000
_TIMEOUT_S = 180.0
# reload4j has no JMX classes, which the ZooKeeper of the oldest versions would look for.
_JVM_OPTIONS = ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-Dzookeeper.jmx.log4j.disable=true"]


@dataclass(frozen=True, slots=True)
class ZooKeeper:
    """The ZooKeeper of one cluster."""

    port: int
    pid: int = 0

    @property
    def address(self) -> str:
        """`host:port` of its clients."""
        return f"{HOST}:{self.port}"

    def is_running(self, cluster: str) -> bool:
        """Whether its process lives."""
        return is_ours(self.pid, mark_of(cluster, ZOOKEEPER_FOLDER))


def launch_zookeeper(cluster: str, folder: Path, port: int, layout: Layout, libs: Path) -> ZooKeeper:
    """Start it on the data in the cluster's folder; it serves after `wait_until_gone`."""
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
    return ZooKeeper(port, launch(own, layout, libs, [*_JVM_OPTIONS, mark_of(cluster, ZOOKEEPER_FOLDER)], program))


def wait_until_gone(zookeeper: ZooKeeper, cluster: str, folder: Path, node_ids: Iterable[int]) -> None:
    """Wait until ZooKeeper serves and none of the brokers is registered."""
    wanted = set(node_ids)
    deadline = time.monotonic() + _TIMEOUT_S
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
            raise EmbeddedError(f"The ZooKeeper of '{cluster}' {issue} after {_TIMEOUT_S:.0f} s.")
        time.sleep(0.05)


def _registered_brokers(port: int) -> set[int] | None:
    """The brokers that have a session; None while ZooKeeper does not serve."""
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

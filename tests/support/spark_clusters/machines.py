"""Machines for the workers of a Spark cluster, on this machine: each with an address, and processes of its own.

As root on Linux a machine is a network namespace, joined to a bridge by a veth pair: `cut_off` sets its link down, and
connections break as they do between hosts. Its only route is the bridge's own subnet, so nothing leaves this machine.
Anywhere else a machine is another address of 127.0.0.0/8, and `cut_off` suspends its processes: its peers hear nothing
from it, but it does not notice. `MachineNetwork.kind` names which of both it is, and tests print it.

Names carry the process id of the test run. What a killed run left behind, its processes included, is removed when the
next network is made.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Self

import psutil

# 198.18.0.0/15 is reserved for tests of networks (RFC 2544): no host of a real network has such an address.
_SUBNETS = [f"198.{18 + n // 256}.{n % 256}" for n in range(512)]
_MARK = "-Dheliograph.test.machines="
_NAME = re.compile(r"hg(\d+)x\d+(-\d+)?")
_networks = itertools.count(1)
_GONE_S = 20.0
_IP = shutil.which("ip")
NAMESPACES = "network namespaces"
LOOPBACK = "loopback addresses"


class Machine:
    """A host of a Spark worker."""

    def __init__(self, network: MachineNetwork, name: str, address: str) -> None:
        self.network, self.name, self.address = network, name, address
        self._is_namespace = network.kind == NAMESPACES and bool(name)
        self._launched: list[psutil.Process] = []
        self._suspended: list[psutil.Process] = []

    def launch(self, command: list[str], log: Path, variables: Mapping[str, str]) -> psutil.Process:
        """Start a process on this machine; its variables are these and no others, but for PATH and JAVA_HOME."""
        prefix = [_IP or "ip", "netns", "exec", self.name] if self._is_namespace else []
        kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
        with log.open("ab") as output:
            child = subprocess.Popen(
                [*prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**kept, **variables},
                start_new_session=True,
                cwd=log.parent,
            )
        process = psutil.Process(child.pid)
        self._launched.append(process)
        return process

    def processes(self) -> list[psutil.Process]:
        """Every process that runs on it, also one whose parent has ended, if the machine is a namespace."""
        if self._is_namespace:
            return _in_namespace(self.name)
        families = [[process, *_children(process)] for process in self._launched]
        return [process for family in families for process in family if is_alive(process)]

    def kill(self) -> None:
        """Lose the machine: every process of it is killed."""
        while processes := self.processes():  # a worker may be starting an executor
            kill_all(processes)

    def cut_off(self) -> None:
        """Let nothing reach it or leave it."""
        if self._is_namespace:
            _ip("link", "set", self.name, "down")  # our end of its veth pair
            return
        self._suspended = self.processes()
        for process in self._suspended:
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    def bring_back(self) -> None:
        """End a `cut_off`."""
        if self._is_namespace:
            _ip("link", "set", self.name, "up")
            return
        for process in self._suspended:
            with suppress(psutil.NoSuchProcess):
                process.resume()
        self._suspended = []


class MachineNetwork:
    """The machines of one test cluster, and the address by which they reach this process and its brokers."""

    def __init__(self, *, namespaces: bool | None = None) -> None:
        """Make the network; by default of namespaces if this user may create them."""
        remove_stale()
        self.kind = NAMESPACES if (_may_have_namespaces() if namespaces is None else namespaces) else LOOPBACK
        self.machines: list[Machine] = []
        self._name = f"hg{os.getpid()}x{next(_networks)}"
        self._numbers = itertools.count(2)
        self._is_closed = False
        if self.kind == LOOPBACK:
            self._subnet, self.address = f"127.{1 + os.getpid() % 250}.0", "127.0.0.1"
            self.here = Machine(self, "", self.address)
            return
        self._subnet = _free_subnet()
        self.address = f"{self._subnet}.1"
        self.here = Machine(self, "", self.address)  # this machine: drivers, masters and brokers
        _ip("link", "add", self._name, "type", "bridge")
        _ip("address", "add", f"{self.address}/24", "dev", self._name)
        _ip("link", "set", self._name, "up")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def mark(self) -> str:
        """An argument for the JVMs started here, by which a later run finds those that were left behind."""
        return f"{_MARK}{os.getpid()}"

    def add_machine(self) -> Machine:
        """Add a host."""
        number = next(self._numbers)
        machine = Machine(self, f"{self._name}-{number}", f"{self._subnet}.{number}")
        if self.kind == NAMESPACES:
            self._join(machine)
        self.machines.append(machine)
        return machine

    def _join(self, machine: Machine) -> None:
        _ip("netns", "add", machine.name)
        _ip("link", "add", machine.name, "type", "veth", "peer", "name", "eth0", "netns", machine.name)
        _ip("link", "set", machine.name, "master", self._name, "up")
        for command in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{machine.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            _ip("-n", machine.name, *command)

    def close(self) -> None:
        """Kill every process of the machines and remove the network."""
        if self._is_closed:
            return
        self._is_closed = True
        self.here.kill()
        for machine in self.machines:
            machine.kill()
            if self.kind == NAMESPACES:
                _ip("netns", "del", machine.name)
        if self.kind == NAMESPACES:
            _ip("link", "del", self._name)


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process has not ended."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def kill_all(processes: list[psutil.Process]) -> None:
    """Kill -9 and wait."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=_GONE_S)


def remove_stale() -> None:
    """Remove the networks and processes of test runs that have ended."""
    for process in psutil.process_iter(["cmdline"]):
        marks = [each for each in process.info["cmdline"] or () if each.startswith(_MARK)]
        if marks and not _is_running(int(marks[0].removeprefix(_MARK))):
            kill_all([*_children(process), process])
    if not _may_have_namespaces():
        return
    for name in [line.split()[0] for line in _ip("netns", "list").splitlines() if line]:
        if _is_stale(name):
            kill_all(_in_namespace(name))
            _ip("netns", "del", name)
    for _index, name in socket.if_nameindex():
        if _is_stale(name):  # the links of its machines have gone with their namespaces
            _ip("link", "del", name)


def _is_stale(name: str) -> bool:
    named = _NAME.fullmatch(name)
    return named is not None and not _is_running(int(named[1]))


def _is_running(pid: int) -> bool:
    """Return whether a process is a test run; its id may belong to another program now."""
    try:
        return "python" in " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _in_namespace(name: str) -> list[psutil.Process]:
    found = []
    for pid in _ip("netns", "pids", name).split():
        with suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(int(pid)))
    return [process for process in found if is_alive(process)]


@cache
def _may_have_namespaces() -> bool:
    """Return whether this user may create namespaces and links, by creating one of each."""
    name = f"hg{os.getpid()}x0"
    commands = (
        ("netns", "add", name),
        ("-n", name, "link", "add", "probe", "type", "bridge"),
        ("-n", name, "link", "add", "one", "type", "veth", "peer", "name", "two"),
        ("netns", "exec", name, "true"),
    )
    if _IP is None:
        return False
    try:
        return all(_run_ip(*command).returncode == 0 for command in commands)
    finally:
        _run_ip("netns", "del", name)


def _free_subnet() -> str:
    """Return the first three numbers of a subnet that no interface has; runs at the same time begin at different."""
    used = _ip("-o", "-4", "address", "show")
    start = os.getpid() % len(_SUBNETS)
    return next(net for net in _SUBNETS[start:] + _SUBNETS[:start] if f" {net}." not in used)


def _ip(*arguments: str) -> str:
    done = _run_ip(*arguments)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr.strip()}"
    return done.stdout


def _run_ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([_IP or "ip", *arguments], capture_output=True, text=True, check=False)

"""One Java process of an embedded cluster: a broker or its ZooKeeper, started in a folder of its own.

The process outlives us (a session of its own). It counts as ours only if its command line carries the cluster's mark,
so a process id that was given to another program is never stopped. The folder keeps its log (`server.log`, of this
start only, because readiness is read from it) and what it printed (`console.log`).
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import psutil

from heliograph.embedded.java import java_command

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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


def last_words(folder: Path) -> str:
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

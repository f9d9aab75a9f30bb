"""Runs `heliograph run` as a user does: a file, a process, signals, an exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import psutil

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.runs.copying import PATIENCE_S


def write_file(
    folder: Path, source: EmbeddedCluster, target: EmbeddedCluster, alias: str, topics: str, *lines: str
) -> Path:
    """A dedicated-mode file of the shape of document 000's."""
    file = folder / f"{alias}.properties"
    text = [
        f"clusters={alias}, target",
        f"{alias}.bootstrap.servers={source.bootstrap}",
        f"target.bootstrap.servers={target.bootstrap}",
        "# enable and configure individual replication flows",
        f"{alias}->target.enabled=true",
        f"{alias}->target.topics={topics}",
        "# the clusters are shared by tests that count what is copied",
        "emit.heartbeats.enabled=false",
        "heartbeats.replication.enabled=false",
        *lines,
    ]
    file.write_text("\n".join(text) + "\n")
    return file


def run(*arguments: object, timeout_s: float = PATIENCE_S, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [sys.executable, "-m", "heliograph", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_s, env={**os.environ, **variables}, check=False
    )


class Running:
    """`heliograph run FILE` in the background."""

    def __init__(self, file: Path, *options: str, **variables: str) -> None:
        self.log = file.with_suffix(".log")
        command = [sys.executable, "-m", "heliograph", "run", str(file), *options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **variables}
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.process.poll() is None:
            self.kill()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; the exit code."""
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """kill -9 the process; what it started must end by itself."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        _gone, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
        assert not alive, f"left behind by a killed process: {alive}"

    def python_workers(self) -> list[psutil.Process]:
        """Those that run copy tasks."""
        return python_workers(self.process.pid)

    def output(self) -> str:
        return self.log.read_text()


def python_workers(pid: int) -> list[psutil.Process]:
    """Spark's Python workers of a process: children of Spark's Python daemon."""
    found = psutil.Process(pid).children(recursive=True)
    daemons = [p for p in found if is_python_daemon(p)]
    return [worker for daemon in daemons for worker in daemon.children() if is_python_daemon(worker)]


def is_python_daemon(process: psutil.Process) -> bool:
    try:
        return "pyspark.daemon" in process.cmdline()
    except psutil.Error:
        return False

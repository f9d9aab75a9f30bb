"""A SIGTERM in the first seconds of `run` and `worker` ends them with 0, whatever they have come to."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psutil
import pytest

from heliograph.embedded.process import free_ports
from tests.support.connect.connect_worker import RunningWorker
from tests.support.runs.copying import PATIENCE_S, wait_for
from tests.support.runs.running import Running

pytestmark = pytest.mark.spark
DELAYS_S = (0.0, 0.05, 0.3, 0.8, 1.5, 3.0, 5.0)


def nobodys_file(folder: Path) -> Path:
    """Two clusters that do not answer: what starts besides is the same, and no broker is needed."""
    first, second = free_ports(2)
    file = folder / "mm2.properties"
    file.write_text(
        "clusters=a,b\n"
        f"a.bootstrap.servers=127.0.0.1:{first}\nb.bootstrap.servers=127.0.0.1:{second}\n"
        "a->b.enabled=true\na->b.topics=t\n"
    )
    return file


def nobodys_worker(folder: Path) -> tuple[Path, int]:
    port, cluster = free_ports(2)
    file = folder / "worker.properties"
    file.write_text(
        f"bootstrap.servers=127.0.0.1:{cluster}\ngroup.id=early\noffset.storage.topic=o\nconfig.storage.topic=c\n"
        f"status.storage.topic=s\nlisteners=http://127.0.0.1:{port}\n"
        "key.converter=org.apache.kafka.connect.converters.ByteArrayConverter\n"
        "value.converter=org.apache.kafka.connect.converters.ByteArrayConverter\n"
    )
    return file, port


def catches(process_id: int) -> bool:
    """Whether a process has a handler for SIGTERM; until Python has begun it has none, and the signal ends it."""
    status = Path(f"/proc/{process_id}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def stopped_after(process: Running | RunningWorker, delay_s: float) -> tuple[int, list[psutil.Process]]:
    """The exit code, and what is left of the processes it had started."""
    wait_for(lambda: catches(process.process.pid))
    time.sleep(delay_s)
    children = psutil.Process(process.process.pid).children(recursive=True)
    process.process.send_signal(signal.SIGTERM)
    code = process.process.wait(PATIENCE_S)
    return code, psutil.wait_procs(children, timeout=PATIENCE_S)[1]


@pytest.mark.parametrize("delay_s", DELAYS_S)
def test_run_that_is_stopped_while_it_starts_ends_with_0(delay_s: float, tmp_path: Path) -> None:
    with Running(nobodys_file(tmp_path)) as running:
        assert stopped_after(running, delay_s) == (0, []), running.output()
    assert "Traceback" not in running.output()


@pytest.mark.parametrize("delay_s", DELAYS_S)
def test_a_worker_that_is_stopped_while_it_starts_ends_with_0(delay_s: float, tmp_path: Path) -> None:
    with RunningWorker(*nobodys_worker(tmp_path)) as worker:
        assert stopped_after(worker, delay_s) == (0, []), worker.output()
    assert "Traceback" not in worker.output()


def test_a_worker_that_waits_for_its_cluster_ends_with_0(tmp_path: Path) -> None:
    file, port = nobodys_worker(tmp_path)
    file.write_text(file.read_text() + "heliograph.connect.timeout.ms=3600000\n")
    with RunningWorker(file, port) as worker:
        wait_for(lambda: "REST is reached from this machine only" in worker.output())
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(PATIENCE_S) == 0, worker.output()

"""Another user of the machine, at every port of a running `heliograph run`: nothing stops and nothing is started."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.spark.test_run import count
from tests.support.clusters.clients import make_topic, write
from tests.support.clusters.spark_stranger import Address, hold_silent, listening
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running, write_file

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user"),
]

EACH = 20  # connections to each port


@contextmanager
def strangers(addresses: list[Address]) -> Iterator[None]:
    """Silent connections of the user nobody, held until the end of the block."""
    child = hold_silent([address for address in addresses for _ in range(EACH)])
    try:
        yield
    finally:
        psutil.Process(child).kill()
        os.waitpid(child, 0)


def processes_of(running: Running) -> int:
    return len(psutil.Process(running.process.pid).children(recursive=True))


def test_silent_strangers_start_no_process_and_hold_up_no_task(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic)
    write(source, topic, ({"value": f"{n}".encode(), "partition": n % 2} for n in range(100)))
    file = write_file(tmp_path, source, target, alias, topic)
    with Running(file, "--master", "local[2]") as running:
        wait_for(lambda: count(target, f"{alias}.{topic}") == 100 or running.process.poll() is not None)
        assert running.process.poll() is None, running.output()
        before = processes_of(running)
        with strangers(listening(running.process.pid)):
            time.sleep(2)  # a daemon that forks for each connection has forked by now
            assert processes_of(running) == before
            # The end of a task passes through Spark's scheduler, which waits for each connection's answer.
            assert running.stop() == 0, running.output()
    assert "did not stop" not in running.output()
    assert "100 records" in running.output()

"""A partition moves between two Spark tasks of a running process, by its load: through leases and Spark jobs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import make_topic, read, wait_for_markers, write
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running, write_file

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COMMITTED = {"isolation.level": "read_committed"}
BATCH = [0] * 1000 + [2] * 500 + [1] * 100 + [3] * 100


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lines", [(), ("target.exactly.once.source.support=enabled",)])
def test_a_partition_of_the_busier_task_moves_and_nothing_is_lost_or_repeated(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    make_topic(source, topic, 4)
    file = write_file(tmp_path, source, target, alias, topic, "tasks.max=2", *lines)
    stopping = threading.Event()

    def load() -> None:
        number = 0
        while not stopping.wait(0.2):
            write(source, topic, [{"value": b"%0800d" % (number + n), "partition": p} for n, p in enumerate(BATCH)])
            number += len(BATCH)

    thread = threading.Thread(target=load, daemon=True)
    with Running(file, "--master", "local[2]") as process:
        thread.start()
        wait_for(lambda: "moving 1 partition to another task" in process.output(), 300, pause_s=1)
        wait_for(lambda: not stopping.wait(10))  # it is copied by the other task meanwhile
        stopping.set()
        thread.join()
        written = read(source, topic, 4)

        def count() -> int:
            return sum(map(len, read(target, f"{alias}.{topic}", 4, **COMMITTED).values()))

        wait_for(lambda: count() >= sum(map(len, written.values())), 120, pause_s=1)
        assert process.stop() == 0, process.output()
    wait_for_markers(target, f"{alias}.{topic}", 4)
    assert read(target, f"{alias}.{topic}", 4, **COMMITTED) == written
    assert "failed" not in process.output()

"""A standalone Spark cluster whose executors have no home: they get code and kernels, and compile nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import make_topic, read, write
from tests.support.runs.running import run, write_file
from tests.support.spark_clusters.machines import MachineNetwork
from tests.support.spark_clusters.standalone import StandaloneCluster

pytestmark = pytest.mark.spark

RECORDS = 1000


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Two workers on other addresses of this machine, which reach the brokers of the tests."""
    with (
        MachineNetwork(namespaces=False) as network,
        StandaloneCluster(network, tmp_path_factory.mktemp("spark")) as cluster,
    ):
        yield cluster


def test_executors_without_a_home_copy_and_compile_nothing(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path, spark: StandaloneCluster
) -> None:
    make_topic(source, topic, 4)
    write(source, topic, [{"key": b"k", "value": b"%d" % n, "partition": n % 4} for n in range(RECORDS)])
    file = write_file(tmp_path, source, target, alias, topic)
    options = ["--once", *spark.driver_options, "--conf", "spark.executorEnv.HOME=/nonexistent"]
    done = run("run", file, *options, "--conf", f"spark.executorEnv.TMPDIR={tmp_path}", **spark.driver_variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(map(len, read(target, f"{alias}.{topic}", 4).values())) == RECORDS
    assert "compiled" not in done.stdout
    assert list(tmp_path.glob("heliograph-executors-*/code-*/heliograph")), "the executors' machines have unpacked it"
    assert not list(tmp_path.glob("heliograph-executors-*/kernels/*/*.nbi"))

"""Executors without a home, without packages, or without our Python: what they need is shipped, or named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import make_topic, read, write
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running, run, write_file
from tests.support.spark_clusters.machines import MachineNetwork
from tests.support.spark_clusters.standalone import StandaloneCluster

pytestmark = pytest.mark.spark

RECORDS = 1000
STOPPED = """
import json, sys, time
from heliograph.driver.spark.spark_session import SparkDriver, SparkSettings
driver = SparkDriver(SparkSettings(sys.argv[1], json.loads(sys.argv[2])))
first, slots = driver.context(), driver.slots
before = first.applicationId
first._jsc.sc().stop()
while driver.current_context() in (first, None):
    assert driver.error is None, driver.error
    time.sleep(0.1)
second = driver.context()
is_new = second.applicationId != before
print(json.dumps([slots, driver.slots, second.parallelize([1, 2], 2).sum(), is_new]))
driver.stop()
"""


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


def test_an_executor_without_a_package_is_one_sentence_that_names_it(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path, spark: StandaloneCluster
) -> None:
    make_topic(source, topic, 1)
    venv.create(tmp_path / "bare", with_pip=False)
    file = write_file(tmp_path, source, target, alias, topic)
    options = [*spark.driver_options, "--conf", f"spark.pyspark.python={tmp_path / 'bare' / 'bin' / 'python'}"]
    with Running(file, *options, **spark.driver_variables) as heliograph:
        wait_for(lambda: "task 0 failed" in heliograph.output())
        assert heliograph.stop() == 0
    failed = next(line for line in heliograph.output().splitlines() if "task 0 failed" in line)
    assert "has no Python package" in failed
    assert "heliograph pack" in failed
    assert "Spark lost the task" not in failed


def test_an_application_that_is_stopped_from_outside_is_started_again_with_all_slots(spark: StandaloneCluster) -> None:
    command = [sys.executable, "-c", STOPPED, spark.master_url, json.dumps(spark.driver_settings)]
    variables = {**os.environ, **spark.driver_variables}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [4, 4, 3, True]


@pytest.mark.slow
def test_a_packed_environment_is_all_that_executors_need(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path, spark: StandaloneCluster
) -> None:
    make_topic(source, topic, 2)
    write(source, topic, [{"value": b"%d" % n, "partition": n % 2} for n in range(RECORDS)])
    packed = tmp_path / "heliograph-environment.tar.gz"
    assert run("pack", packed).returncode == 0
    file = write_file(tmp_path, source, target, alias, topic)
    options = [*spark.driver_options, "--conf", f"spark.archives={packed}#environment"]
    with Running(file, *options, **spark.driver_variables) as heliograph:
        wait_for(lambda: "begins with" in heliograph.output())
        wait_for(lambda: sum(map(len, read(target, f"{alias}.{topic}", 2).values())) == RECORDS, pause_s=1)
        programs = {Path(each.exe()) for worker in spark.workers for each in worker.python_workers()}
        opened = {
            Path(each.path) for worker in spark.workers for one in worker.python_workers() for each in one.memory_maps()
        }
        assert heliograph.stop() == 0
    assert {path.parts[-3:-1] for path in programs} == {("environment", "bin")}
    here = Path(sys.prefix)
    assert not [path for path in opened if path.is_relative_to(here)], "nothing of this machine's packages is used"
    assert "compiled" not in heliograph.output()

"""`heliograph run` on YARN: client and cluster mode, containers and applications killed, secrets, a home of nobody.

Each NodeManager is a machine of its own (`spark_clusters/machines.py`). Kafka asks them for a password.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running
from tests.support.spark_clusters.brokers import SharedKafka, shared_kafka
from tests.support.spark_clusters.machines import MachineNetwork
from tests.support.spark_clusters.numbered_copy import NumberedCopy
from tests.support.spark_clusters.standalone import spark_home
from tests.support.spark_clusters.yarn import NodeManager, YarnCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

RECORDS = 200_000
PARTITIONS = 4
PASSWORD = "s3cret-of-the-brokers"
EXACTLY_ONCE = "there.exactly.once.source.support=enabled"
SLOWLY = "here->there.heliograph.throttle.bytes.per.second=3000000"  # twenty seconds
TWO_EXECUTORS = ("--conf", "spark.executor.instances=2")


@pytest.fixture(scope="module")
def network() -> Iterator[MachineNetwork]:
    with MachineNetwork() as network:
        print(f"\nThe workers' machines are {network.kind}.")
        yield network


@pytest.fixture(scope="module")
def here(network: MachineNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedKafka]:
    with shared_kafka("here", tmp_path_factory.mktemp("here"), network, PASSWORD) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def there(network: MachineNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedKafka]:
    with shared_kafka("there", tmp_path_factory.mktemp("there"), network, PASSWORD) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def yarn(network: MachineNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    with YarnCluster(network, tmp_path_factory.mktemp("yarn") / "cluster") as cluster:
        yield cluster


@pytest.fixture
def copy(here: SharedKafka, there: SharedKafka, topic: str) -> Iterator[NumberedCopy]:
    copy = NumberedCopy(here, there, topic, PARTITIONS)
    copy.write(RECORDS)
    yield copy
    copy.close()


def start(yarn: YarnCluster, file: Path, *options: str) -> Running:
    return Running(file, *yarn.driver_options, *TWO_EXECUTORS, *options, **yarn.driver_variables)


def wait_for_all(copy: NumberedCopy) -> None:
    wait_for(lambda: copy.count() == copy.written, 300, pause_s=0.2)


def busiest(yarn: YarnCluster) -> NodeManager:
    return max(yarn.nodes, key=lambda node: len(node.python_workers()))


def test_a_killed_container_loses_and_repeats_nothing(yarn: YarnCluster, copy: NumberedCopy, tmp_path: Path) -> None:
    file = copy.write_file(tmp_path, EXACTLY_ONCE, SLOWLY)
    began = time.monotonic()
    with start(yarn, file) as heliograph:
        copy.wait_for_first_record()
        print(f"first record {time.monotonic() - began:.1f} s after the start")
        wait_for(lambda: copy.count() > 0)
        tasks = [len(node.python_workers()) for node in yarn.nodes]
        assert busiest(yarn).kill_executors() > 0
        seconds = copy.wait_until_all_advance()
        print(f"tasks on the nodes: {tasks}; all partitions copied again {seconds:.1f} s after the container's death")
        wait_for_all(copy)
        assert heliograph.stop() == 0, heliograph.output()
    copy.assert_complete()


def test_executors_need_no_home_that_can_be_written_to(yarn: YarnCluster, copy: NumberedCopy, tmp_path: Path) -> None:
    nowhere = "spark.executorEnv.HOME=/dev/null"  # not even root can create files there
    with start(yarn, copy.write_file(tmp_path), "--conf", nowhere) as heliograph:
        wait_for(lambda: copy.count() == copy.written or "failed" in heliograph.output(), 300, pause_s=0.2)
        assert copy.count() == copy.written, heliograph.output()
        assert heliograph.stop() == 0, heliograph.output()
    copy.assert_complete()


def test_secrets_travel_encrypted_and_are_in_no_file(yarn: YarnCluster, copy: NumberedCopy, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    settings = ("enabled=true", "compress=false", f"dir=file://{events}")
    log_events = [word for setting in settings for word in ("--conf", f"spark.eventLog.{setting}")]
    with start(yarn, copy.write_file(tmp_path), *log_events) as heliograph:
        wait_for_all(copy)
        assert heliograph.stop() == 0, heliograph.output()
    assert "spark.authenticate is not true" not in heliograph.output()
    logged = b"".join(file.read_bytes() for file in events.rglob("*") if file.is_file())
    for name in (b"spark.authenticate", b"spark.network.crypto.enabled"):
        assert b'"%s":"true"' % name in logged
    assert files_with(PASSWORD, events, yarn.folder) == []
    copy.assert_complete()


def test_secrets_are_not_sent_if_the_user_turns_encryption_off(
    yarn: YarnCluster, copy: NumberedCopy, tmp_path: Path
) -> None:
    off = ("--conf", "spark.authenticate=true", "--conf", "spark.network.crypto.enabled=false")
    with start(yarn, copy.write_file(tmp_path), *off) as heliograph:
        wait_for(lambda: "would send passwords and keys" in heliograph.output())
        assert heliograph.process.wait(60) == 3, heliograph.output()
    assert copy.count() == 0


def test_an_application_killed_from_outside_is_noticed(yarn: YarnCluster, copy: NumberedCopy, tmp_path: Path) -> None:
    """Either the process copies on in a new application, or it exits with 3 and a supervisor starts it again."""
    file = copy.write_file(tmp_path, EXACTLY_ONCE, SLOWLY)
    with start(yarn, file) as heliograph:
        wait_for(lambda: copy.count() > 0)
        yarn.kill_application()
        before, began = copy.committed(), time.monotonic()
        wait_for(lambda: heliograph.process.poll() is not None or not copy.behind(before), 120, pause_s=0.2)
        code, seconds = heliograph.process.poll(), time.monotonic() - began
        print(f"{seconds:.1f} s after the kill: {'copying again' if code is None else f'exit code {code}'}")
        assert code in {None, 3}, heliograph.output()
        if code is None:
            wait_for_all(copy)
            assert heliograph.stop() == 0, heliograph.output()
    if code is not None:
        with start(yarn, file) as heliograph:
            wait_for_all(copy)
            assert heliograph.stop() == 0, heliograph.output()
    copy.assert_complete()


def test_the_driver_runs_in_a_container_by_spark_submit(yarn: YarnCluster, copy: NumberedCopy, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text("from heliograph.cli.main import main\n\nmain()\n")
    file = copy.write_file(tmp_path, EXACTLY_ONCE).rename(tmp_path / "mm2.properties")
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", "cluster"]
    command += ["--files", str(file), *TWO_EXECUTORS]
    command += [str(app), "run", "mm2.properties", "--master", "yarn", "--once"]
    variables = {**os.environ, **yarn.driver_variables, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:] + containers_output(yarn)
    assert copy.count() == copy.written
    copy.assert_complete()


def files_with(word: str, *folders: Path) -> list[Path]:
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if word.encode() in file.read_bytes()]


def containers_output(yarn: YarnCluster) -> str:
    newest = str(yarn.applications()[0]["id"])
    files = [file for node in yarn.nodes for file in node.folder.glob(f"logs/{newest}/*/std*")]
    return "".join(f"\n--- {file}\n{file.read_text(errors='replace')[-4000:]}" for file in sorted(files))

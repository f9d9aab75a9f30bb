"""A secured standalone cluster: master, machines, application and driver stopped in mid-copy, a worker decommissioned.

The site's spark-defaults.conf demands authentication and encryption; Kafka asks the tasks for a password. Nothing is
lost, repeated or disordered in any case.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running
from tests.support.spark_clusters.brokers import SharedKafka, shared_kafka
from tests.support.spark_clusters.machines import MachineNetwork
from tests.support.spark_clusters.numbered_copy import NumberedCopy
from tests.support.spark_clusters.standalone import SparkWorker, StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

RECORDS = 300_000
PARTITIONS = 4
PASSWORD = "s3cret-of-the-brokers"
SITE = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "s3cret-of-the-site",
    "spark.network.crypto.enabled": "true",
    "spark.decommission.enabled": "true",
}
EXACTLY_ONCE = "there.exactly.once.source.support=enabled"
SLOWLY = "here->there.heliograph.throttle.bytes.per.second=3000000"  # half a minute


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


@pytest.fixture
def spark(network: MachineNetwork, tmp_path: Path) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(network, tmp_path / "standalone", settings=SITE) as cluster:
        yield cluster


@pytest.fixture
def copy(here: SharedKafka, there: SharedKafka, topic: str) -> Iterator[NumberedCopy]:
    copy = NumberedCopy(here, there, topic, PARTITIONS)
    copy.write(RECORDS)
    yield copy
    copy.close()


@pytest.fixture
def heliograph(spark: StandaloneCluster, copy: NumberedCopy, tmp_path: Path) -> Iterator[Running]:
    """The copy under way."""
    file = copy.write_file(tmp_path, EXACTLY_ONCE, SLOWLY)
    with Running(file, *spark.driver_options, **spark.driver_variables) as running:
        wait_for(lambda: copy.count() > 0 or running.process.poll() is not None)
        assert running.process.poll() is None, running.output()
        yield running


def finish(heliograph: Running, copy: NumberedCopy) -> None:
    wait_for(lambda: copy.count() == copy.written, 300, pause_s=0.2)
    assert heliograph.stop() == 0, heliograph.output()
    copy.assert_complete()


def busiest(spark: StandaloneCluster) -> SparkWorker:
    return max(spark.workers, key=lambda worker: len(worker.python_workers()))


def test_a_master_that_is_killed_and_started_again_does_not_disturb_the_copy(
    spark: StandaloneCluster, copy: NumberedCopy, heliograph: Running
) -> None:
    spark.stop_master()
    before = copy.count()
    wait_for(lambda: copy.count() > before + RECORDS // 10)
    spark.start_master()
    spark.wait_for_workers(2)
    wait_for(lambda: spark.registered().applications == 1)
    assert "Starting it again" not in heliograph.output()
    assert busiest(spark).kill_executors() == 1  # the master that recovered replaces it
    print(f"all partitions copied again {copy.wait_until_all_advance():.1f} s after an executor's death")
    finish(heliograph, copy)


def test_the_tasks_of_a_lost_machine_continue_on_another(
    spark: StandaloneCluster, copy: NumberedCopy, heliograph: Running
) -> None:
    busiest(spark).machine.kill()
    print(f"all partitions copied again {copy.wait_until_all_advance():.1f} s after the machine's loss")
    finish(heliograph, copy)


def test_a_cut_of_a_few_seconds_restarts_no_task(
    spark: StandaloneCluster, copy: NumberedCopy, heliograph: Running
) -> None:
    for worker in spark.workers:
        worker.machine.cut_off()
    time.sleep(3)  # the cut, shorter than a lease
    for worker in spark.workers:
        worker.machine.bring_back()
    print(f"all partitions copied again {copy.wait_until_all_advance():.1f} s after the cut")
    finish(heliograph, copy)
    assert "Starting it again" not in heliograph.output()


def test_a_decommissioned_worker_loses_and_repeats_nothing(
    spark: StandaloneCluster, copy: NumberedCopy, heliograph: Running
) -> None:
    worker = busiest(spark)
    worker.process.send_signal(signal.SIGPWR)  # as a node that is taken away gets it
    print(f"all partitions copied again {copy.wait_until_all_advance():.1f} s after the notice")
    wait_for(lambda: not worker.executors())
    finish(heliograph, copy)


def test_an_application_killed_at_the_master_is_noticed(
    spark: StandaloneCluster, copy: NumberedCopy, heliograph: Running, tmp_path: Path
) -> None:
    """Either the process copies on in a new application, or it exits with 3 and a supervisor starts it again."""
    spark.kill_application()
    before, began = copy.committed(), time.monotonic()
    wait_for(lambda: heliograph.process.poll() is not None or not copy.behind(before), 120, pause_s=0.2)
    code, seconds = heliograph.process.poll(), time.monotonic() - began
    print(f"{seconds:.1f} s after the kill: {'copying again' if code is None else f'exit code {code}'}")
    if code is None:
        finish(heliograph, copy)
        return
    assert code == 3, heliograph.output()
    file = copy.write_file(tmp_path, EXACTLY_ONCE, SLOWLY)
    with Running(file, *spark.driver_options, **spark.driver_variables) as again:
        finish(again, copy)


def test_a_killed_driver_is_replaced_and_its_executors_end(
    spark: StandaloneCluster, copy: NumberedCopy, heliograph: Running, tmp_path: Path
) -> None:
    began = time.monotonic()
    heliograph.kill()
    wait_for(lambda: not any(worker.executors() for worker in spark.workers))
    print(f"the executors ended {time.monotonic() - began:.1f} s after the driver's death")
    file = copy.write_file(tmp_path, EXACTLY_ONCE, SLOWLY)
    with Running(file, *spark.driver_options, **spark.driver_variables) as again:
        finish(again, copy)

"""`heliograph run` on a standalone Spark cluster whose executors and machines fail, return and join in mid-copy.

Each worker is a machine of its own (`spark_clusters/machines.py`). Two million records are copied with exactly-once, a
quarter of them around each fault, and every record on the target is compared with what was written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running
from tests.support.spark_clusters.brokers import SharedKafka, shared_kafka
from tests.support.spark_clusters.machines import MachineNetwork
from tests.support.spark_clusters.numbered_copy import NumberedCopy, used_slots
from tests.support.spark_clusters.standalone import SparkWorker, StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

QUARTER = 500_000
PARTITIONS = 8
EXACTLY_ONCE = "there.exactly.once.source.support=enabled"
# A quarter, 150 MB, takes at least ten seconds: a fault in its middle finds tasks that are copying.
BYTES_PER_S = 15_000_000
CUT_S = 40.0  # longer than three lease periods, after which the driver starts the tasks of a silent machine elsewhere


@pytest.fixture(scope="module")
def network() -> Iterator[MachineNetwork]:
    with MachineNetwork() as network:
        print(f"\nThe workers' machines are {network.kind}.")
        yield network


@pytest.fixture(scope="module")
def here(network: MachineNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedKafka]:
    with shared_kafka("here", tmp_path_factory.mktemp("here"), network) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def there(network: MachineNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedKafka]:
    with shared_kafka("there", tmp_path_factory.mktemp("there"), network) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def spark(network: MachineNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(network, tmp_path_factory.mktemp("spark") / "standalone") as cluster:
        yield cluster


def test_two_million_records_arrive_once_and_in_order_while_executors_and_machines_fail_and_join(
    spark: StandaloneCluster, here: SharedKafka, there: SharedKafka, tmp_path: Path
) -> None:
    copy = NumberedCopy(here, there, "orders", PARTITIONS)
    file = copy.write_file(
        tmp_path,
        EXACTLY_ONCE,
        "here->there.tasks.max=6",
        f"here->there.heliograph.throttle.bytes.per.second={BYTES_PER_S}",
    )
    copy.write(QUARTER)
    began = time.monotonic()
    with Running(file, *spark.driver_options, **spark.driver_variables) as heliograph:
        copy.wait_for_first_record()
        print(f"first record {time.monotonic() - began:.1f} s after the start")
        in_mid_copy(copy)
        kill_a_busy_executor(spark, copy)
        with another_quarter(copy):
            cut_a_busy_machine_off(spark, copy)
        with another_quarter(copy):
            add_a_worker(spark)
        copy.write(QUARTER)
        wait_for(lambda: copy.count() == copy.written, 300, pause_s=0.2)
        assert heliograph.stop() == 0, heliograph.output()
    print(heliograph.output())
    copy.assert_complete()
    copy.close()


@contextmanager
def another_quarter(copy: NumberedCopy) -> Iterator[None]:
    """Write the next quarter in the background: on a busy machine writing it may take longer than copying it."""
    writing = threading.Thread(target=copy.write, args=(QUARTER,))
    wait_for(lambda: copy.count() == copy.written, 300, pause_s=0.2)
    writing.start()
    wait_for(lambda: copy.written > copy.count())
    in_mid_copy(copy)
    yield
    writing.join()


def kill_a_busy_executor(spark: StandaloneCluster, copy: NumberedCopy) -> None:
    worker = busiest(spark)
    print(f"{tasks_of(spark)} tasks on the workers; the executor of {worker.machine.address} is killed")
    assert worker.kill_executors() == 1
    print(f"all partitions copied again {copy.wait_until_all_advance():.1f} s after the executor's death")


def cut_a_busy_machine_off(spark: StandaloneCluster, copy: NumberedCopy) -> None:
    worker = busiest(spark)
    print(f"{tasks_of(spark)} tasks on the workers; {worker.machine.address} is cut off")
    began, before = time.monotonic(), copy.committed()
    worker.machine.cut_off()
    wait_for(lambda: not copy.behind(before) or time.monotonic() - began > CUT_S, pause_s=0.2)
    left = len(copy.behind(before))
    cut_s = time.monotonic() - began
    worker.machine.bring_back()
    print(f"after {cut_s:.1f} s {left} of {copy.partitions} partitions waited for the machine, which is brought back")
    print(f"all partitions copied again after {copy.wait_until_all_advance():.1f} s more")


def add_a_worker(spark: StandaloneCluster) -> None:
    worker, joined = spark.add_worker(), time.monotonic()
    print(f"{worker.machine.address} joins; {tasks_of(spark)} tasks on the workers")
    wait_for(lambda: all(len(each.python_workers()) == 2 for each in spark.workers))
    print(f"{tasks_of(spark)} tasks {time.monotonic() - joined:.1f} s after it joined")


def in_mid_copy(copy: NumberedCopy) -> None:
    """Wait until some of the newest quarter is copied, and most of it is not."""
    wait_for(lambda: copy.count() > copy.written - QUARTER * 9 // 10, pause_s=0.1)
    assert copy.count() < copy.written - QUARTER // 10, "the copy is over before the fault"


def busiest(spark: StandaloneCluster) -> SparkWorker:
    return max(spark.workers, key=lambda worker: len(worker.python_workers()))


def tasks_of(spark: StandaloneCluster) -> str:
    return used_slots(len(worker.python_workers()) for worker in spark.workers)


@pytest.mark.slow  # a minute, and in short above
def test_an_executor_added_in_mid_copy_is_used(
    network: MachineNetwork, here: SharedKafka, there: SharedKafka, tmp_path: Path
) -> None:
    copy = NumberedCopy(here, there, "growing", PARTITIONS)
    throttle = f"here->there.heliograph.throttle.bytes.per.second={BYTES_PER_S // 5}"
    file = copy.write_file(tmp_path, EXACTLY_ONCE, "here->there.tasks.max=8", throttle)
    copy.write(QUARTER)
    with (
        StandaloneCluster(network, tmp_path / "spark", workers=1) as spark,
        Running(file, *spark.driver_options, **spark.driver_variables) as heliograph,
    ):
        in_mid_copy(copy)
        worker, joined = spark.add_worker(), time.monotonic()
        wait_for(lambda: len(worker.python_workers()) == 2)
        assert copy.count() < copy.written, "the copy is over before the worker was used"
        print(f"{tasks_of(spark)} tasks on the workers {time.monotonic() - joined:.1f} s after the second joined")
        wait_for(lambda: copy.count() == copy.written, 300, pause_s=0.2)
        assert heliograph.stop() == 0, heliograph.output()
    copy.assert_complete()
    copy.close()

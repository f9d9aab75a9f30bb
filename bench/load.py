"""Test data: the same records for every copier, written once per workload; and a steady load during latency probes."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer

from bench.measure import EndOffsets, admin_of
from bench.single_batches import write_single_batches
from bench.workloads import Workload
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.model import CreateTopic, TopicPartition

_WRITERS = 2  # processes: Python makes the records
_VALUES_BYTES = 16 << 20
_TICK_S = 0.005
_SPAWN = multiprocessing.get_context("spawn")  # a fork would inherit the threads that measure


def make_topics(cluster: EmbeddedCluster, topics: tuple[str, ...], partitions: int) -> None:
    admin = admin_of(cluster)
    failures = admin.create_topics([CreateTopic(topic, partitions, 1, ()) for topic in topics])
    assert not failures, failures
    admin.wait_for_leaders(dict.fromkeys(topics, partitions))
    # A new leader accepts records once it returns the end of its log.
    admin.end_offsets(TopicPartition(topic, number) for topic in topics for number in range(partitions))
    admin.close()


def write(cluster: EmbeddedCluster, workload: Workload) -> int:
    """Create the workload's topics and fill them.

    The last record of every partition has a time ahead of all others, which is returned: once that time can be found
    in a copied partition, everything before it is there too, however many offsets transaction markers took.
    """
    make_topics(cluster, workload.topics, workload.partitions)
    mark_ms = int(time.time() * 1000) + 1_800_000  # brokers refuse times more than an hour ahead
    if workload.has_single_batches:
        write_single_batches(cluster, workload, _values(workload), mark_ms)
    else:
        with _SPAWN.Pool(_WRITERS) as pool:
            pool.starmap(_fill, [(cluster.bootstrap, workload, mark_ms, number) for number in range(_WRITERS)])
    _check(cluster, workload)
    return mark_ms


def _check(cluster: EmbeddedCluster, workload: Workload) -> None:
    admin = admin_of(cluster)
    written = EndOffsets(admin, workload.topics, workload.partitions).total()
    admin.close()
    if written != workload.records:
        raise RuntimeError(f"{workload.name}: {written} of {workload.records} records were written.")


def _fill(bootstrap: str, workload: Workload, mark_ms: int, writer: int) -> None:
    """Write every `_WRITERS`th partition; each gets a batch's worth of records at a time, whatever their number."""
    tps = [(topic, number) for number in range(workload.partitions) for topic in workload.topics]
    quotas = [len(range(place, workload.records, len(tps))) for place in range(len(tps))]
    block = max(1, workload.batch_bytes // (workload.record_bytes + 64))
    producer = _producer(bootstrap, workload)
    values = _values(workload)
    mine = range(writer, len(tps), _WRITERS)
    for begin in range(0, max(quotas), block):
        for place in mine:
            topic, partition = tps[place]
            for number in range(begin, min(begin + block, quotas[place])):
                at = mark_ms if number == quotas[place] - 1 else 0
                _produce(producer, topic, values[number % len(values)], partition, at)
            producer.poll(0)
    producer.flush()


def _values(workload: Workload) -> list[bytes]:
    """Half of each value is random, half is not, so that codecs have work."""
    half = workload.record_bytes // 2
    count = max(8, min(256, _VALUES_BYTES // workload.record_bytes))
    return [os.urandom(half) + b"x" * (workload.record_bytes - half) for _ in range(count)]


def _producer(bootstrap: str, workload: Workload) -> Any:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": workload.compression,
            "batch.size": workload.batch_bytes,
            "compression.level": 1 if workload.compression == "gzip" else -1,  # higher ones take minutes to write
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 512 * 1024,
        }
    )


def _produce(producer: Any, topic: str, value: bytes, partition: int, timestamp_ms: int) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=partition, timestamp=timestamp_ms)
        except BufferError:
            producer.poll(0.01)
        else:
            return


class Load:
    """Progress of a steady load, shared with the process that produces it."""

    def __init__(self) -> None:
        self._done = _SPAWN.Array("d", [0.0, 0.0])

    @property
    def records(self) -> int:
        """Records handed to the producer."""
        return int(self._done[0])

    @property
    def records_per_s(self) -> float:
        """The rate it reached: less than was asked for where the machine has no room for more."""
        records, seconds = self._done[:]
        return float(records / seconds) if seconds else 0.0

    def report(self, records: int, seconds: float) -> None:
        """Note how far it is."""
        self._done[:] = [float(records), seconds]


@contextmanager
def background(
    cluster: EmbeddedCluster, workload: Workload, topic: str, *, rate: float, records: int
) -> Iterator[Load]:
    """So many records of the workload's size, `rate` a second, from a process of its own; ended with the block.

    Large records make load cheaply: what Python and librdkafka do for each is small against its bytes, so
    the two cores stay with the brokers and the copier.
    """
    stop, load = _SPAWN.Event(), Load()
    arguments = (cluster.bootstrap, workload, topic, rate, records, stop, load)
    process = _SPAWN.Process(target=_send_steadily, args=arguments, daemon=True)
    process.start()
    try:
        yield load
    finally:
        stop.set()
        process.join()


def _send_steadily(
    bootstrap: str, workload: Workload, topic: str, rate: float, records: int, stop: Any, load: Load
) -> None:
    producer = _producer(bootstrap, workload)
    values = _values(workload)
    block = max(1, workload.batch_bytes // (workload.record_bytes + 64))
    begin, number = time.monotonic(), 0
    while number < records and not stop.is_set():
        due = min(records, int((time.monotonic() - begin) * rate))
        while number < due and not stop.is_set():
            _produce(producer, topic, values[number % len(values)], number // block % workload.partitions, 0)
            number += 1
        load.report(number, time.monotonic() - begin)
        producer.poll(0)
        time.sleep(_TICK_S)
    producer.flush(30)

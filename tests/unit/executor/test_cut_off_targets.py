"""One target broker that cannot be written to: the others' partitions continue, and nothing of its own is lost."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from kafka.protocol.producer import ProduceRequest

from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
from heliograph.executor.copy import copy_loop
from heliograph.executor.copy.copy_loop import CopyLoop
from heliograph.kafka.net.buffers import BufferPool
from heliograph.kafka.net.event_loop import Network
from heliograph.kafka.produce.target_partition import TargetPartition
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import Address, TopicPartition
from heliograph.wire.batches.forward import warm_up
from tests.support.brokers.batches import Record, encode
from tests.support.brokers.producing import Producing
from tests.support.brokers.scripted_broker import ScriptedCluster, Seen
from tests.support.runs.copying import HandLease, wait_for
from tests.unit.executor.test_cut_sources import OFFSETS, Mirror

PARTITIONS, BUFFER_BYTES = 6, 1 << 20
LARGE = encode([Record(None, bytes(50_000), (), 1_700_000_000_000)])


class Spread(Mirror):
    """A flow of several partitions, of which the second target broker leads one."""

    def __init__(self) -> None:
        super().__init__()
        self.source = ScriptedCluster(topics={"t": PARTITIONS})
        self.target = ScriptedCluster(2, topics={"A.t": PARTITIONS, OFFSETS: 1})
        for partition in range(PARTITIONS):
            self.target.leaders["A.t", partition] = 2 if partition == 0 else 1

    def whole(self) -> TaskSpec:
        partitions = tuple(PartitionSpec(TopicPartition("t", p), "A.t") for p in range(PARTITIONS))
        return replace(self.spec(buffer_bytes=BUFFER_BYTES), partitions=partitions)

    def write(self, batches: int) -> None:
        """So much of each partition that what is for the second broker alone would fill the memory."""
        with self.source.lock:
            for partition in range(PARTITIONS):
                for _batch in range(batches):
                    self.source.logs["t", partition].put(bytearray(LARGE))

    def copied(self, partition: int) -> int:  # type: ignore[override]
        with self.target.lock:
            return len(self.target.logs["A.t", partition].batches)

    def is_copied(self, batches: int, first: int = 1) -> bool:
        return all(self.copied(partition) == batches for partition in range(first, PARTITIONS))

    @property
    def has_begun(self) -> bool:
        return hasattr(self, "loop") and len(self.targets()) == PARTITIONS

    def targets(self) -> list[TargetPartition]:
        return [target for tp, target in list(self.loop._clients.producer.partitions.items()) if tp.topic == "A.t"]

    def issues(self) -> set[str | None]:
        """Those of now: a report's rows are the partitions' own."""
        return {row.issue for row in self.rows()}


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spread]:
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.05)
    warm_up()
    mirror = Spread()
    with mirror.source, mirror.target:
        yield mirror
        mirror.lease.stop_reason = "test"


def test_a_broker_that_cannot_be_reached_stops_only_its_own_partitions(mirror: Spread) -> None:
    mirror.target.brokers[2].stop()
    mirror.write(100)
    join = mirror.run(mirror.whole())
    wait_for(lambda: mirror.is_copied(100))
    wait_for(lambda: "broker 2 cannot be reached" in mirror.issues())
    with mirror.target.lock:
        mirror.target.leaders["A.t", 0] = 1
    wait_for(lambda: mirror.is_copied(100, first=0))
    mirror.stop(join)


def test_a_broker_that_wants_a_long_pause_stops_only_its_own_partitions(mirror: Spread) -> None:
    pauses_ms = [5000]

    def throttled(seen: Seen) -> object:
        answer = mirror.target.ordinary(seen)
        answer.throttle_time_ms = pauses_ms.pop() if seen.node_id == 2 and pauses_ms else 0
        return answer

    mirror.target.script(ProduceRequest, *[throttled] * 1000)
    mirror.write(100)
    join = mirror.run(mirror.whole())
    wait_for(lambda: "broker 2 wants a pause, since we are over its quota" in mirror.issues())
    wait_for(lambda: mirror.is_copied(100, first=0))
    mirror.stop(join)


def test_what_waits_for_the_end_of_a_pause_is_not_read_again(mirror: Spread) -> None:
    pauses_ms = [5000]

    def throttled(seen: Seen) -> object:
        answer = mirror.target.ordinary(seen)
        answer.throttle_time_ms = pauses_ms.pop() if seen.node_id == 2 and pauses_ms else 0
        return answer

    mirror.target.script(ProduceRequest, *[throttled] * 1000)
    mirror.write(10)
    join = mirror.run(mirror.whole())
    wait_for(lambda: "broker 2 wants a pause, since we are over its quota" in mirror.issues())
    target = mirror.loop._clients.producer.partitions[TopicPartition("A.t", 0)]
    assert all(outgoing.buffer is not None and outgoing.buffer.is_parked for outgoing in target.queue)
    assert len(target.queue) > 0
    mirror.target.brokers[2].stop()
    wait_for(lambda: "broker 2 cannot be reached" in mirror.issues())
    with mirror.target.lock:
        mirror.target.leaders["A.t", 0] = 1
    wait_for(lambda: mirror.is_copied(10, first=0))
    mirror.stop(join)


def _is_set_aside(target: TargetPartition) -> bool:
    return all(outgoing.buffer is not None and outgoing.buffer.is_parked for outgoing in list(target.queue))


def test_a_pause_of_many_partitions_does_not_outgrow_the_memory(mirror: Spread) -> None:
    """What is queued is kept for the end of a pause only as far as the task's memory reaches."""
    with mirror.target.lock:
        for partition in range(PARTITIONS):
            mirror.target.leaders["A.t", partition] = 2

    def throttled(seen: Seen) -> object:
        answer = mirror.target.ordinary(seen)
        answer.throttle_time_ms = 20_000 if seen.node_id == 2 else 0
        return answer

    mirror.target.script(ProduceRequest, *[throttled] * 1000)
    mirror.write(100)
    join = mirror.run(mirror.whole())
    waits = "broker 2 wants a pause, since we are over its quota"
    wait_for(lambda: mirror.has_begun and all(target.issue == waits for target in mirror.targets()))
    pool = mirror.loop._clients.pool
    wait_for(lambda: pool.parked_bytes and all(_is_set_aside(target) for target in mirror.targets()))
    assert pool.parked_bytes <= BUFFER_BYTES + 100 * len(LARGE)
    mirror.stop(join)


def test_a_lane_that_was_never_used_is_not_taken_for_full() -> None:
    with ScriptedCluster(2, topics={"t": 2}) as brokers, Producing(brokers) as ours:
        brokers.leaders["t", 1] = 2
        ours.send(1)
        ours.until_acked(1)
        brokers.hold(ProduceRequest)
        ours.send(2, 3, 4, 5, 6, 7, 8)
        ours.until(lambda: len(brokers.seen_of(ProduceRequest)) == 1 + 5)
        ours.send(9, tp=TopicPartition("t", 1))
        ours.until(lambda: brokers.requests(ProduceRequest, node_id=2))
        brokers.release(ProduceRequest)
        ours.until(lambda: len(ours.acked) == 9)
        assert sorted(tag for tag, _base in ours.acked) == list(range(1, 10))


def test_what_is_parked_leaves_memory_for_what_moves() -> None:
    mirror = Spread()
    with mirror.source, mirror.target:
        loop = CopyLoop(mirror.whole(), HandLease())
        assert loop._budget.moving_bytes() == BUFFER_BYTES
        loop._clients.pool.park(memoryview(bytes(BUFFER_BYTES // 2)))
        assert loop._budget.moving_bytes() == BUFFER_BYTES // 2
        loop._clients.pool.park(memoryview(bytes(BUFFER_BYTES)))
        assert loop._budget.moving_bytes() == BUFFER_BYTES // 4
        loop._clients.network.close()


def test_brokers_that_say_nothing_do_not_keep_us_from_those_that_do() -> None:
    reported: list[str] = []
    network = Network(BufferPool(1 << 20), "test", 30.0)
    with ExitStack() as stack:
        brokers = stack.enter_context(ScriptedCluster(topics={"t": 1}))
        for _broker in range(10):
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            address = Address("127.0.0.1", silent.getsockname()[1])
            network.connect(address, Security(), lambda _c: None, lambda why: reported.append(f"lost: {why}"))
        network.connect(brokers.bootstrap[0], Security(), lambda _c: reported.append("open"), lambda _why: None)
        stack.callback(network.close)
        wait_for(lambda: network.poll(0.05) and reported)
    assert reported == ["open"]

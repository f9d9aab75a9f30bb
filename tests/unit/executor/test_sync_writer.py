"""Kafka's OffsetSyncWriterTest against a scripted broker: what is sent at once, what waits, what is sent again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from kafka.protocol.producer import ProduceRequest
from kafka.record import MemoryRecords

from heliograph.executor.copy import sync_writer
from heliograph.executor.copy.sync_writer import SyncWriter
from heliograph.kafka.net.buffers import BufferPool
from heliograph.kafka.net.cluster import Cluster
from heliograph.kafka.net.event_loop import Network
from heliograph.kafka.security.connection_spec import Security
from heliograph.mirror.groups.offset_syncs import PartitionSyncs
from heliograph.model import OffsetRun, TopicPartition
from heliograph.wire.records.mirror_records import decode_offset_sync
from tests.support.brokers.scripted_broker import ScriptedCluster

SYNCS = "mm2-offset-syncs.B.internal"
ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
NOT_AUTHORIZED = 29


class Writing:
    """A writer of offset syncs on a network of its own, one step at a time."""

    def __init__(self, brokers: ScriptedCluster) -> None:
        self.brokers = brokers
        self.network = Network(BufferPool(1 << 20), "test", 5.0)
        self.cluster = Cluster("source", brokers.bootstrap, Security(), self.network, 10.0)
        self.writer = SyncWriter(self.cluster, self.network, SYNCS, lag_max=10)
        self.partitions = {tp: self.writer.add(tp) for tp in (ONE, TWO)}

    def note(self, tp: TopicPartition, offset: int) -> None:
        """One record more was acknowledged."""
        self.partitions[tp].note(OffsetRun(offset, offset, 1))
        self.writer.wake(tp)

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "it did not come in time"
            self.step()

    def step(self) -> None:
        self.network.poll(0.005)
        self.writer.pump(time.monotonic())

    def sent(self) -> list[list[tuple[TopicPartition, int]]]:
        """The partition and upstream offset of every sync with runs, request by request; marks for Java aside."""
        return [
            _syncs_of(bytes(data.records))
            for request in self.brokers.requests(ProduceRequest)
            for topic in request.topic_data
            for data in topic.partition_data
        ]


def _syncs_of(batches: bytes) -> list[tuple[TopicPartition, int]]:
    records = MemoryRecords(batches)
    found = []
    while (batch := records.next_batch()) is not None:
        for record in batch:
            sync = decode_offset_sync(record.key, record.value, record.headers)
            assert sync is not None
            found += [(sync.tp, sync.upstream)] if sync.runs else []
    return found


@pytest.fixture
def writing() -> Iterator[Writing]:
    with ScriptedCluster(topics={SYNCS: 1}) as brokers:
        made = Writing(brokers)
        yield made
        made.network.close()


def test_maybe_queue_offset_syncs(writing: Writing) -> None:
    """The first sync of a partition is sent at once; the next, which is not due, waits."""
    writing.note(ONE, 0)
    writing.until(lambda: writing.writer.is_idle)
    writing.note(ONE, 1)
    assert writing.writer.wait_s == float("inf"), "nothing is to be done before the commit"
    assert not writing.writer.is_idle
    assert writing.sent() == [[(ONE, 0)]]


def test_fire_pending_offset_syncs(writing: Writing) -> None:
    """One request is under way at a time; what becomes due meanwhile goes together in the next one."""
    writing.brokers.hold(ProduceRequest)
    writing.note(ONE, 0)
    writing.until(lambda: len(writing.sent()) == 1)
    for offset in range(0, 40, 20):
        writing.note(TWO, offset)
        writing.step()
    assert writing.sent() == [[(ONE, 0)]]
    writing.brokers.release(ProduceRequest)
    writing.until(lambda: writing.writer.is_idle)
    assert writing.sent() == [[(ONE, 0)], [(TWO, 20)]]


def test_promote_delayed_offset_syncs(writing: Writing) -> None:
    """A commit sends what waited: of each partition one sync, the latest."""
    writing.note(ONE, 0)
    writing.until(lambda: writing.writer.is_idle)
    for offset in range(1, 6):
        writing.note(ONE, offset)
    writing.writer.flush()
    writing.until(lambda: writing.writer.is_idle)
    assert writing.sent() == [[(ONE, 0)], [(ONE, 5)]]


def test_a_sync_that_was_refused_is_sent_again_and_reported(writing: Writing) -> None:
    writing.brokers.script(ProduceRequest, NOT_AUTHORIZED)
    writing.note(ONE, 0)
    writing.until(lambda: writing.writer.issue)
    assert "the principal needs WRITE on it" in str(writing.writer.issue)
    writing.until(lambda: writing.writer.is_idle)
    assert writing.writer.issue is None
    assert writing.sent() == [[(ONE, 0)], [(ONE, 0)]]


def many_busy(writing: Writing, count: int) -> list[TopicPartition]:
    """Partitions that were copied far in one go: each is written as a sync and a dozen marks before it."""
    tps = [TopicPartition("busy", number) for number in range(count)]
    for tp in tps:
        writing.partitions[tp] = writing.writer.add(tp)
        writing.partitions[tp].note(OffsetRun(0, 0, 1_000_000))
        writing.writer.wake(tp)
    return tps


def test_the_pause_grows_with_the_partitions_written_and_not_with_their_marks(writing: Writing) -> None:
    sent_at = 0.0
    tps = many_busy(writing, 100)
    while not writing.writer._under_way:
        writing.network.poll(0.005)
        sent_at = time.monotonic()
        writing.writer.pump(sent_at)
    writing.until(lambda: writing.writer.is_idle)
    assert [tp for tp, _upstream in writing.sent()[0]] == tps
    writing.note(ONE, 0)
    told_in_s = sync_writer._INTERVAL_S + 100 * sync_writer._PAUSE_PER_PARTITION_S
    assert writing.writer.wait_s <= told_in_s
    writing.writer.pump(sent_at + told_in_s - 0.001)
    assert not writing.writer._under_way
    writing.writer.pump(sent_at + told_in_s + 0.001)
    assert writing.writer._under_way == [ONE]


def test_of_many_busy_partitions_each_is_taken_once_and_none_is_cut_off(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    take = PartitionSyncs.take
    monkeypatch.setattr(PartitionSyncs, "take", lambda syncs: taken.append(syncs) or take(syncs))
    monkeypatch.setattr(sync_writer, "_PAUSE_PER_PARTITION_S", 0.0)
    tps = many_busy(writing, 1000)
    writing.until(lambda: writing.writer.is_idle)
    assert [tp for request in writing.sent() for tp, _upstream in request] == tps
    assert len(taken) == len(tps)


def test_what_is_hurried_does_not_pause(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_writer, "_PAUSE_PER_PARTITION_S", 3600.0)
    writing.note(ONE, 0)
    writing.until(lambda: writing.writer.is_idle)
    writing.note(TWO, 0)
    writing.step()
    assert writing.sent() == [[(ONE, 0)]]
    writing.writer.flush(at_once=True)
    writing.until(lambda: writing.writer.is_idle)
    assert writing.sent() == [[(ONE, 0)], [(TWO, 0)]]


def test_hurry_does_not_press_a_cluster_that_refuses(writing: Writing) -> None:
    writing.brokers.script(ProduceRequest, NOT_AUTHORIZED)
    writing.note(ONE, 0)
    writing.until(lambda: len(writing.sent()) == 1)
    while not writing.writer.issue:
        writing.network.poll(0.005)
    writing.writer.flush(at_once=True)
    writing.writer.pump(writing.writer._next_at - 0.001)
    assert not writing.writer._under_way
    writing.until(lambda: writing.writer.is_idle)
    assert writing.sent() == [[(ONE, 0)], [(ONE, 0)]]


class Garbled:
    """An answer of the right length and correlation id whose content is nothing."""

    API_VERSION = 0

    def with_header(self, correlation_id: int) -> None:
        self._correlation_id = correlation_id

    def encode(self, **_how: bool) -> bytes:
        return (24).to_bytes(4, "big") + self._correlation_id.to_bytes(4, "big") + b"\x00" + b"\x7f" * 19


def test_an_answer_that_is_none_costs_the_connection_and_the_sync_is_sent_again(writing: Writing) -> None:
    writing.brokers.script(ProduceRequest, lambda _seen: Garbled())
    writing.note(ONE, 0)
    writing.until(lambda: len(writing.sent()) == 2 and writing.writer.is_idle)
    assert writing.sent() == [[(ONE, 0)], [(ONE, 0)]]
    assert len({seen.connection for seen in writing.brokers.seen_of(ProduceRequest)}) == 2


def test_a_sync_names_the_remote_topic(writing: Writing) -> None:
    log_id = UUID(int=7)
    writing.partitions[ONE].begin_log(log_id)
    writing.note(ONE, 0)
    writing.until(lambda: len(writing.sent()) == 1)
    (request,) = writing.brokers.requests(ProduceRequest)
    batch = MemoryRecords(bytes(request.topic_data[0].partition_data[0].records)).next_batch()
    assert batch is not None
    syncs = [decode_offset_sync(record.key, record.value, record.headers) for record in batch]
    assert {sync and sync.log_id for sync in syncs} == {log_id}

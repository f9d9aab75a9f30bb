"""A producer of ours against scripted brokers: the real loop, one step at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

from kafka.protocol.producer import ProduceRequest

from heliograph.kafka.net.buffers import BufferPool
from heliograph.kafka.net.cluster import Cluster
from heliograph.kafka.net.event_loop import Network
from heliograph.kafka.produce.producer import BatchProducer
from heliograph.kafka.produce.producer_session import ProducerSession
from heliograph.kafka.produce.target_partition import Outgoing
from heliograph.kafka.request_options import ProduceLimits
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import TopicPartition
from tests.support.brokers.batches import Record, encode
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.support.brokers.scripted_log import Stamp, stamp_of

TP = TopicPartition("t", 0)


def batch_of(number: int, records: int = 2) -> bytearray:
    return encode([Record(None, f"{number}-{n}".encode(), (), 1_700_000_000_000) for n in range(records)])


class Producing:
    """Session and producer on one network, and what they reported to their listener."""

    def __init__(
        self,
        brokers: ScriptedCluster,
        *,
        transactional_id: str | None = None,
        request_timeout_s: float = 10.0,
        **limits: int,
    ) -> None:
        self.brokers = brokers
        self.acked: list[tuple[Any, int]] = []
        self.failed: list[str] = []
        self.instead: list[Outgoing] | str = "it is too large"
        self.reads_again = False
        self.network = Network(pool := BufferPool(1 << 20), "test", 5.0)
        self.cluster = Cluster("target", brokers.bootstrap, Security(), self.network, request_timeout_s)
        self.session = ProducerSession(self.cluster, self.network, transactional_id=transactional_id)
        self.producer = BatchProducer(
            self.cluster, self.network, pool, self.session, self, ProduceLimits(**{"lanes": 1, **limits})
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.network.close()

    # --- what the producer says ---------------------------------------------------------------------------------------

    def on_acked(self, _tp: TopicPartition, outgoing: Outgoing, base_offset: int) -> None:
        self.acked.append((outgoing.tag, base_offset))

    def on_target_failed(self, _tp: TopicPartition, _outgoing: Outgoing, why: str) -> None:
        self.failed.append(why)

    def on_stuck(self, tp: TopicPartition) -> None:
        """Forget what was not sent, as a copy does, which reads it again; or keep the queue."""
        if self.reads_again:
            self.producer.discard(tp)

    def on_too_large(self, _tp: TopicPartition, _outgoing: Outgoing) -> list[Outgoing] | str:
        return self.instead

    # --- what a test does ---------------------------------------------------------------------------------------------

    def send(self, *numbers: int, tp: TopicPartition = TP, passes_hold: bool = False) -> None:
        """Queue batches of two records each."""
        for number in numbers:
            outgoing = Outgoing(memoryview(batch_of(number)), 2, None, number, passes_hold=passes_hold)
            self.producer.enqueue(self.producer.add(tp), outgoing)

    def step(self) -> None:
        self.network.poll(0.005)
        now = time.monotonic()
        self.cluster.maintain(now)
        self.producer.pump(now)

    def until(self, condition: Callable[[], object], timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, "it did not come in time"
            self.step()

    def until_acked(self, *numbers: int) -> None:
        self.until(lambda: len(self.acked) >= len(numbers))
        assert [tag for tag, _base in self.acked] == list(numbers)

    def for_a_moment(self, seconds: float = 0.1) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.step()

    # --- what the brokers saw -----------------------------------------------------------------------------------------

    def stamps(self, node_id: int | None = None) -> list[Stamp]:
        return [stamp_of(batch) for batch in self.sent(node_id)]

    def sequences(self, node_id: int | None = None) -> list[int]:
        return [stamp.sequence for stamp in self.stamps(node_id)]

    def sent(self, node_id: int | None = None) -> list[bytes]:
        """The batches of every produce request, in order of arrival."""
        return [
            bytes(data.records)
            for request in self.brokers.requests(ProduceRequest, node_id)
            for topic in request.topic_data
            for data in topic.partition_data
        ]

    def in_log(self, tp: TopicPartition = TP) -> list[int]:
        """The sequences a log holds."""
        return [stamp_of(batch).sequence for batch in self.brokers.logs[tp.topic, tp.partition].batches]

"""A transaction of our own records against scripted brokers: what is tried again, and what a refusal says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest, ProduceRequest

from heliograph.errors import ClusterError
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.produce.fenced_writer import FencedWriter
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import TopicPartition
from tests.support.brokers.scripted_broker import LOST_AFTER, LOST_BEFORE, ScriptedCluster

CONFIGS = TopicPartition("configs", 0)
RECORDS = [OwnRecord(b"a", b"1"), OwnRecord(b"b", None)]
TOPIC_AUTHORIZATION_FAILED, ID_AUTHORIZATION_FAILED, CONCURRENT, TOO_LARGE = 29, 53, 51, 10


@pytest.fixture(params=[0, 2])
def cluster(request: pytest.FixtureRequest) -> Iterator[ScriptedCluster]:
    """Brokers of the first transaction protocol, and of the second."""
    with ScriptedCluster(2, topics={"configs": 1}, transaction_version=request.param) as cluster:
        yield cluster


def writer_to(cluster: ScriptedCluster) -> FencedWriter:
    return FencedWriter("worker", cluster.bootstrap, Security, "connect-cluster-g", timeout_s=20)


def test_answers_that_are_lost_are_asked_for_again(cluster: ScriptedCluster) -> None:
    cluster.script(InitProducerIdRequest, LOST_BEFORE, CONCURRENT)
    cluster.script(ProduceRequest, LOST_AFTER)
    cluster.script(EndTxnRequest, LOST_BEFORE)
    with closing(writer_to(cluster)) as writer:
        writer.claim()
        for _write in range(2):
            writer.write(CONFIGS, RECORDS)
    assert len(cluster.requests(EndTxnRequest)) == 3
    assert {request.transactional_id for request in cluster.requests(ProduceRequest)} == {"connect-cluster-g"}


def test_a_permission_that_lacks_is_named(cluster: ScriptedCluster) -> None:
    cluster.script(InitProducerIdRequest, ID_AUTHORIZATION_FAILED)
    with closing(writer_to(cluster)) as writer:
        with pytest.raises(ClusterError, match="needs WRITE and DESCRIBE on the transactional id connect-cluster-g"):
            writer.claim()
        writer.claim()
        cluster.script(ProduceRequest, TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(ClusterError, match=r"let us write configs .*; the principal needs WRITE on it"):
            writer.write(CONFIGS, RECORDS)
        with pytest.raises(ClusterError, match="must be claimed first"):
            writer.write(CONFIGS, RECORDS)
        writer.claim()
        writer.write(CONFIGS, RECORDS)


def test_records_that_no_broker_accepts_are_reported(cluster: ScriptedCluster) -> None:
    cluster.script(ProduceRequest, TOO_LARGE)
    with closing(writer_to(cluster)) as writer:
        writer.claim()
        with pytest.raises(ClusterError, match=r"records for configs: .*larger than the topic's max\.message\.bytes"):
            writer.write(CONFIGS, RECORDS)


def test_a_silent_coordinator_is_not_waited_for_for_ever(cluster: ScriptedCluster) -> None:
    cluster.hold(EndTxnRequest)
    with closing(writer_to(cluster)) as writer:
        writer.claim()
        writer._timeout_s = 1
        with pytest.raises(ClusterError, match="has not decided our transaction as connect-cluster-g within 1 s"):
            writer.write(CONFIGS, RECORDS)
    cluster.release(EndTxnRequest)

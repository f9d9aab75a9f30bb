"""Our own records, written one blocking request at a time, against scripted brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.producer import ProduceRequest

from heliograph.errors import BrokerError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.security.connection_spec import Security
from heliograph.kafka.topics.record_writer import write_records
from heliograph.model import TopicPartition
from tests.support.brokers.scripted_broker import LOST_AFTER, ScriptedCluster, Seen

TP = TopicPartition("heartbeats", 0)
RECORDS = [OwnRecord(b"k", b"1"), OwnRecord(b"k", None, (("h", b"2"),))]
NOT_LEADER, DENIED, TOO_LARGE = 6, 29, 10


@pytest.fixture
def brokers() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={TP.topic: 1}) as cluster:
        yield cluster


@pytest.fixture
def admin(brokers: ScriptedCluster) -> Iterator[Admin]:
    made = Admin("B", brokers.bootstrap, Security(), "test", timeout_s=5.0)
    yield made
    made.close()


def requests_with_records(brokers: ScriptedCluster) -> int:
    return len(brokers.requests(ProduceRequest))


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_records_are_written_in_every_version_of_the_request(
    brokers: ScriptedCluster, admin: Admin, version: int
) -> None:
    brokers.newest[ProduceRequest] = version
    write_records(admin, TP, RECORDS)
    (request,) = brokers.requests(ProduceRequest)
    assert version == request.API_VERSION
    assert (request.acks, request.transactional_id) == (-1, None)
    assert brokers.logs[TP.topic, 0].end == len(RECORDS)


@pytest.mark.parametrize("failure", [NOT_LEADER, LOST_AFTER])
def test_a_write_that_may_succeed_later_is_tried_again(brokers: ScriptedCluster, admin: Admin, failure: Any) -> None:
    brokers.script(ProduceRequest, failure)
    write_records(admin, TP, RECORDS)
    assert requests_with_records(brokers) == 2


def test_an_answer_without_our_partition_is_tried_again(brokers: ScriptedCluster, admin: Admin) -> None:
    def empty(seen: Seen) -> Any:
        answer = brokers.ordinary(seen)
        answer.responses = []
        return answer

    brokers.script(ProduceRequest, empty)
    write_records(admin, TP, RECORDS)
    assert requests_with_records(brokers) == 2


def test_a_denied_write_names_the_permission(brokers: ScriptedCluster, admin: Admin) -> None:
    brokers.script(ProduceRequest, DENIED)
    with pytest.raises(BrokerError) as refused:
        write_records(admin, TP, RECORDS)
    assert refused.value.code == TOPIC_AUTHORIZATION_FAILED
    assert str(refused.value) == (
        "'B' does not take our records for heartbeats: TOPIC_AUTHORIZATION_FAILED; the principal needs WRITE on it."
    )
    assert requests_with_records(brokers) == 1


def test_a_write_that_can_never_succeed_is_not_tried_again(brokers: ScriptedCluster, admin: Admin) -> None:
    brokers.script(ProduceRequest, TOO_LARGE)
    with pytest.raises(BrokerError, match="TOO_LARGE"):
        write_records(admin, TP, RECORDS)
    assert requests_with_records(brokers) == 1


def test_a_write_of_a_step_fails_soon_though_an_administrator_would_wait_longer(
    brokers: ScriptedCluster, admin: Admin
) -> None:
    brokers.__exit__()
    assert admin.timeout_s > 1
    began = time.monotonic()
    with pytest.raises(BrokerError, match="cannot be reached"):
        write_records(admin, TP, RECORDS, timeout_s=0.3)
    assert time.monotonic() - began < admin.timeout_s


def test_nothing_is_sent_once_the_caller_may_not_write(brokers: ScriptedCluster, admin: Admin) -> None:
    def refuse() -> None:
        raise RuntimeError("not the leader any more")

    with pytest.raises(RuntimeError):
        write_records(admin, TP, RECORDS, refuse)
    assert requests_with_records(brokers) == 0

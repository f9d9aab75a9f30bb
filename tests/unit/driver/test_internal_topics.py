"""Creating MM2's own topics, as MirrorUtilsTest has it: what is tolerated, and what is an error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.protocol.admin import CreateTopicsRequest

from heliograph.driver.clusters.internal_topic_creation import ensure_internal_topic
from heliograph.errors import BrokerError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import CreateTopic
from tests.support.brokers.scripted_broker import ScriptedCluster

TOPIC = CreateTopic("mm2-offset-syncs.B.internal", 1, 1, (("cleanup.policy", "compact"),))
EXISTS, UNSUPPORTED, TOPIC_DENIED, CLUSTER_DENIED = 36, 35, 29, 31
INVALID_CONFIG, TIMED_OUT, INVALID_FACTOR = 40, 7, 38


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={"there": 3}) as scripted:
        yield scripted


@pytest.fixture
def admin(cluster: ScriptedCluster) -> Iterator[Admin]:
    client = Admin("A", cluster.bootstrap, Security(), "test", timeout_s=10)
    yield client
    client.close()


def ensure(admin: Admin, topic: CreateTopic = TOPIC, *, explicit: bool = True) -> CreateTopic:
    return ensure_internal_topic(admin, topic, is_explicit_factor=explicit, factor_key="x.replication.factor")


def test_create_compacted_topic(cluster: ScriptedCluster, admin: Admin) -> None:
    assert ensure(admin) == TOPIC
    (request,) = cluster.requests(CreateTopicsRequest)
    (created,) = request.topics
    assert (created.name, created.num_partitions, created.replication_factor) == (TOPIC.name, 1, 1)
    assert [(config.name, config.value) for config in created.configs] == [("cleanup.policy", "compact")]


def test_a_topic_that_is_there_is_taken_as_it_is(cluster: ScriptedCluster, admin: Admin) -> None:
    assert ensure(admin, CreateTopic("there", 1, 1, ())).partition_count == 3
    assert cluster.requests(CreateTopicsRequest) == []


@pytest.mark.parametrize("code", [UNSUPPORTED, TOPIC_DENIED, CLUSTER_DENIED])
def test_create_compacted_topic_assumes_it_exists(
    cluster: ScriptedCluster, admin: Admin, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.script(CreateTopicsRequest, code)
    assert ensure(admin) == TOPIC
    (reported,) = caplog.messages
    assert "assumed to exist" in reported
    assert ("needs CREATE on the topic or on the cluster" in reported) == (code != UNSUPPORTED)


def test_create_compacted_topic_that_another_created_meanwhile(cluster: ScriptedCluster, admin: Admin) -> None:
    def other_was_first(seen: object) -> object:
        cluster.leaders[TOPIC.name, 0] = 1
        return cluster.ordinary(seen, EXISTS)  # type: ignore[arg-type]

    cluster.script(CreateTopicsRequest, other_was_first)
    assert ensure(admin) == TOPIC


@pytest.mark.parametrize("code", [INVALID_CONFIG, TIMED_OUT])
def test_create_compacted_topic_fails(cluster: ScriptedCluster, admin: Admin, code: int) -> None:
    cluster.script(CreateTopicsRequest, code)
    with pytest.raises(BrokerError, match=f"The topic {TOPIC.name} cannot be created on 'A'"):
        ensure(admin)


def test_a_default_factor_bends_and_one_that_was_written_does_not(cluster: ScriptedCluster, admin: Admin) -> None:
    three = CreateTopic(TOPIC.name, 1, 3, ())
    cluster.script(CreateTopicsRequest, INVALID_FACTOR)
    with pytest.raises(BrokerError, match=r"x\.replication\.factor is 3, but the cluster 'A' has 1 broker;"):
        ensure(admin, three)
    assert ensure(admin, three, explicit=False).replication_factor == 1


def test_a_topic_that_is_made_and_gets_no_leader_is_an_error(cluster: ScriptedCluster, admin: Admin) -> None:
    def made_without_leader(seen: object) -> object:
        answer = cluster.ordinary(seen)  # type: ignore[arg-type]
        cluster.leaders[TOPIC.name, 0] = -1
        return answer

    assert admin.view([]).brokers  # connected, while there is time
    admin.timeout_s = 2.0
    cluster.script(CreateTopicsRequest, made_without_leader)
    with pytest.raises(BrokerError, match=f"The topic {TOPIC.name} on 'A' cannot be used: partition 0 has no leader"):
        ensure(admin)

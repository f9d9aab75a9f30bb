"""A day of faults on real brokers: what an operator sees within ten seconds, and that it clears by itself.

Each fault is looked for in the states of partitions, the sums of the flow, the probe, Connect's traces, and the log: a
line when it begins, and one when it ends. Lag is measured from outside as well: by a client, not by ours.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster, find_cluster
from heliograph.kafka.admin.admin import alter_topic_configs
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import AlterConfigs, CommittedOffset, ConfigChange, TopicPartition
from tests.conftest import running_cluster
from tests.support.clusters.clients import admin_of, make_topic, read
from tests.support.runs.copying import wait_for
from tests.support.runs.day import Day, day

pytestmark = pytest.mark.broker

# Less than its default, so that the test sees what follows when a request is given up.
GIVEN_UP = "target.producer.request.timeout.ms=10000"
GROUPS = "refresh.groups.interval.seconds=1"


@pytest.fixture(scope="module")
def own_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    yield from running_cluster("day-source", tmp_path_factory.mktemp("day-source"))


@pytest.fixture(scope="module")
def own_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    yield from running_cluster("day-target", tmp_path_factory.mktemp("day-target"))


def commit(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    """Commit an offset of a group."""
    admin = admin_of(cluster)
    assert GroupAdmin(admin).commit(f"{topic}-readers", {TopicPartition(topic, 0): CommittedOffset(offset)}) == {}
    admin.close()


def test_a_record_that_is_too_large_fails_its_partition_until_the_target_takes_it(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(own_source, topic)
    remote = f"{alias}.{topic}"
    make_topic(own_target, remote, max_message_bytes="2000")
    with day(own_source, own_target, alias, topic, "sync.topic.configs.enabled=false") as flow:
        flow.write(10)
        flow.wait_until_caught_up()
        since = flow.begin_fault()
        flow.write(1, size=5000)
        flow.write(40)
        flow.write(7, partition=1)
        flow.noticed(
            "record too large",
            since,
            state=lambda: flow.state() == "failed" and "offset 10" in flow.partition()["reason"],
            lag=lambda: flow.lag_is(10, flow.outside_lag(remote)),
            sums=lambda: flow.whole()["partitions"]["failed"] == 1 and flow.whole()["lag_records"] == 41,
            trace=lambda: flow.is_any("Source", "FAILED") and "offset 10" in flow.trace(),
            log=lambda: flow.log("^ERROR .*offset 10"),
        )
        flow.write(100)
        wait_for(lambda: flow.lag_is(10, flow.outside_lag(remote)))
        assert flow.partition()["lag_seconds"] is not None
        assert flow.ready() == (200, ""), "its neighbour is copied"
        assert flow.state(1) == "caught_up"
        admin = admin_of(own_target)
        taken = AlterConfigs(remote, (ConfigChange("max.message.bytes", None, "9000"),))
        assert alter_topic_configs(admin, [taken]) == {}
        admin.close()
        flow.cleared("record too large", f"^INFO {flow.name}: {topic}-0: no longer held up")
        assert len(flow.log("offset 10")) == 1, "however often it was tried again"
        assert len(flow.log("no longer held up")) == 1
    assert read(own_target, remote, 2) == read(own_source, topic, 2)


@contextmanager
def stopped(cluster: EmbeddedCluster) -> Iterator[None]:
    (find_cluster(cluster.name) or cluster).stop()
    try:
        yield
    finally:
        for broker in cluster.brokers:
            cluster.start_broker(broker.node_id)


@contextmanager
def hung(cluster: EmbeddedCluster) -> Iterator[None]:
    """Its sockets stay open, and nobody answers."""
    running = find_cluster(cluster.name)  # another test may have started its broker again
    assert running is not None
    (broker,) = running.running
    process = running.broker_process(broker.node_id)
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def has_failed(flow: Day, kind: str, words: str) -> Callable[[], bool]:
    """Whether a connector of one task says that it does not work, and why."""
    return lambda: flow.is_only(kind, "FAILED") and words in flow.trace(kind)


@pytest.mark.parametrize("fault", [stopped, hung])
def test_a_target_that_is_away_is_named_and_its_return_noticed(
    own_source: EmbeddedCluster,
    own_target: EmbeddedCluster,
    topic: str,
    alias: str,
    fault: Callable[[EmbeddedCluster], Iterator[None]],
) -> None:
    make_topic(own_source, topic)
    (broker,) = own_target.brokers
    address = f"127.0.0.1:{broker.port}"
    words = f"broker {broker.node_id} at {address} has not answered a" if fault is hung else f"{address} cannot be"
    with day(own_source, own_target, alias, topic, GROUPS, GIVEN_UP) as flow:
        flow.write(10)
        commit(own_source, topic, 5)
        flow.wait_until_caught_up()
        wait_for(lambda: flow.end(own_target, f"{alias}.checkpoints.internal"))
        since = flow.begin_fault()
        with fault(own_target):
            flow.write(25)
            commit(own_source, topic, 9)
            flow.noticed(
                f"target {fault.__name__}",
                since,
                state=lambda: flow.state() == "retrying" and words in flow.partition()["reason"],
                lag=lambda: flow.lag_is(10, 25),
                sums=lambda: flow.whole()["partitions"]["retrying"] >= 1 and flow.whole()["lag_records"] >= 25,
                ready=lambda: flow.ready()[0] == 503 and f"cluster 'target': {words}" in flow.ready()[1],
                trace=lambda: f"cluster 'target': {words}" in flow.trace(),
                log=lambda: flow.log(f"^WARNING .*cluster 'target': {words}"),
                heartbeats=has_failed(flow, "Heartbeat", address),
                checkpoints=has_failed(flow, "Checkpoint", address),
            )
            if fault is hung:  # longer than a request may take, and a connection that is opened again
                wait_for(lambda: f"{address} accepts connections and does not answer" in flow.ready()[1])
                assert "TLS or SASL" not in flow.ready()[1] + flow.trace(), "it has worked before"
        flow.cleared(f"target {fault.__name__}", f"recovered: cluster 'target': {words}")
        wait_for(lambda: flow.is_only("Heartbeat", "RUNNING") and flow.is_only("Checkpoint", "RUNNING"))
        assert_each_end_is_logged(flow)
    assert read(own_target, f"{alias}.{topic}", 2) == read(own_source, topic, 2)


@pytest.mark.parametrize("fault", [stopped, hung])
def test_a_source_that_is_away_is_named_and_nobody_claims_to_know_its_end(
    own_source: EmbeddedCluster,
    own_target: EmbeddedCluster,
    topic: str,
    alias: str,
    fault: Callable[[EmbeddedCluster], Iterator[None]],
) -> None:
    make_topic(own_source, topic)
    (broker,) = own_source.brokers
    address = f"127.0.0.1:{broker.port}"
    words = f"broker {broker.node_id} at {address} has not answered a" if fault is hung else f"{address} cannot be"
    with day(own_source, own_target, alias, topic, GROUPS) as flow:
        flow.write(10)
        commit(own_source, topic, 5)
        flow.wait_until_caught_up()
        wait_for(lambda: flow.end(own_target, f"{alias}.checkpoints.internal"))
        since = flow.begin_fault()
        with fault(own_source):
            flow.noticed(
                f"source {fault.__name__}",
                since,
                state=lambda: flow.state() == "retrying" and words in flow.partition()["reason"],
                lag=lambda: flow.lag_is(10, None) and flow.partition()["log_end"] is None,
                sums=lambda: flow.whole()["partitions"]["caught_up"] == 0 and flow.whole()["lag_records"] is None,
                ready=lambda: flow.ready()[0] == 503 and f"cluster '{alias}': {words}" in flow.ready()[1],
                trace=lambda: f"cluster '{alias}': {words}" in flow.trace(),
                log=lambda: flow.log(f"^WARNING .*cluster '{alias}': {words}"),
                checkpoints=has_failed(flow, "Checkpoint", address),
            )
        flow.cleared(f"source {fault.__name__}", f"recovered: cluster '{alias}': {words}")
        wait_for(lambda: flow.is_only("Checkpoint", "RUNNING"))
        flow.write(5)
        flow.wait_until_caught_up()
        assert_each_end_is_logged(flow)
    assert read(own_target, f"{alias}.{topic}", 2) == read(own_source, topic, 2)


def assert_each_end_is_logged(flow: Day) -> None:
    """What tasks retried is logged once, however many they are, and once when it has passed."""
    begun = [line.removeprefix(f"WARNING {flow.name}: ") for line in flow.log(r"\(retrying\)$")]
    ended = [line.removeprefix(f"INFO {flow.name}: recovered: ") for line in flow.log("recovered: ")]
    assert begun
    assert sorted(begun) == sorted(f"{text} (retrying)" for text in ended)
    assert len(begun) == len(set(begun))


def test_partitions_of_a_flow_that_cannot_begin_are_not_ready(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(own_source, topic)
    with day(own_source, own_target, alias, topic, "target.bootstrap.servers=127.0.0.1:1",
             "heliograph.connect.timeout.ms=1000") as flow:  # fmt: skip
        wait_for(lambda: flow.ready()[0] == 503)
        wait_for(lambda: "'target'" in flow.ready()[1])
        assert flow.get("/health/live")[0] == 200

"""Brokers that die, restart and hand over: the copy waits, retries, and neither loses nor repeats."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition as KafkaTopicPartition

from heliograph.embedded.kafka_cluster import Broker, EmbeddedCluster, find_cluster
from heliograph.errors import TaskError
from heliograph.executor.contract.task_report import TaskReport
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.request_options import FetchLimits
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import Address, ChangeActions, CommittedOffset, TopicPartition
from tests.support.clusters.clients import Seen, admin_of, make_topic, read, write
from tests.support.runs.copying import Copy, HandLease, run_in_background, wait_for

pytestmark = pytest.mark.broker

RECORDS = 60_000


def numbered(start: int, count: int) -> list[dict[str, object]]:
    return [{"value": f"{n}".encode(), "partition": n % 3} for n in range(start, start + count)]


class Load:
    """Somebody who writes numbered records to the source all the while."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, partitions: int = 3) -> None:
        self.written = 0
        self._cluster, self._topic, self._partitions = cluster, topic, partitions
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        self._thread.join(180)

    def _write(self) -> None:
        for start in itertools.count(0, 300):
            if self._ended.wait(0.02):
                return
            write(self._cluster, self._topic, numbered(start, 300), **{"enable.idempotence": True})
            self.written = start + 300


class Watch(HandLease):
    """A lease that knows how much was copied."""

    def __init__(self) -> None:
        super().__init__(self._note)
        self.copied = 0

    def _note(self, report: TaskReport) -> None:
        self.copied = sum(row.records for row in report.partitions)

    def wait_until_copied(self, records: int) -> None:
        try:
            wait_for(lambda: self.copied >= records)
        except AssertionError:
            raise AssertionError(f"{self.copied} of {records} were copied: {self.reports[-1]}") from None


def cluster_now(cluster: EmbeddedCluster) -> EmbeddedCluster:
    known = find_cluster(cluster.name)  # a test may have started a broker again
    assert known is not None
    return known


def restart(cluster: EmbeddedCluster, node_id: int, topic: str) -> None:
    """Stop a broker as an operator does, start it again, and wait until its replicas have caught up."""
    victim = cluster_now(cluster).broker_process(node_id)
    victim.send_signal(signal.SIGTERM)
    victim.wait(120)
    cluster_now(cluster).start_broker(node_id)
    wait_for(lambda: is_in_sync(cluster, topic))


def describe(cluster: EmbeddedCluster, topic: str) -> list[dict[str, Any]]:
    """A topic's partitions, as soon as the broker that is asked knows them."""
    partitions: list[dict[str, Any]] = []

    def is_known() -> bool:
        client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        (found,) = client.describe_topics([topic])
        client.close()
        partitions[:] = found["partitions"]
        return bool(partitions)

    wait_for(is_known)
    return partitions


def is_in_sync(cluster: EmbeddedCluster, topic: str) -> bool:
    return all(len(p["isr_nodes"]) == len(p["replica_nodes"]) for p in describe(cluster, topic))


def leader_of(cluster: EmbeddedCluster, topic: str, partition: int = 0) -> int:
    return next(int(p["leader_id"]) for p in describe(cluster, topic) if p["partition_index"] == partition)


def finish(copy: Copy, lease: Watch, join: Callable[[], TaskReport], written: int) -> dict[int, list[Seen]]:
    """Wait for the end of a copy and compare; what was copied."""
    lease.wait_until_copied(written)
    lease.stop_reason = "test"
    join()
    copied = read(copy.target, copy.remote, copy.partitions)
    assert copied == read(copy.source, copy.topic, copy.partitions)
    return copied


@pytest.fixture
def admin(three_brokers: EmbeddedCluster) -> Iterator[Admin]:
    admin = admin_of(three_brokers)
    yield admin
    admin.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_target_broker_goes_away_in_mid_copy(
    source: EmbeddedCluster, three_brokers: EmbeddedCluster, topic: str, alias: str, how: signal.Signals
) -> None:
    make_topic(source, topic, 3)
    write(source, topic, numbered(0, RECORDS), **{"batch.size": 1500})
    copy = Copy(source, three_brokers, alias, topic, partitions=3)
    lease = Watch()
    join = copy.background(lease)
    wait_for(lambda: any(map(len, read(three_brokers, copy.remote, 3).values())))
    node_id = leader_of(three_brokers, copy.remote)
    victim = cluster_now(three_brokers).broker_process(node_id)
    victim.send_signal(how)
    try:
        write(source, topic, numbered(RECORDS, 3000))
        if how is signal.SIGSTOP:  # on a busy machine another broker may lead before the records are written
            wait_for(
                lambda: (
                    any(row.issue for report in lease.reports for row in report.partitions)
                    or sum(row.records for row in lease.reports[-1].partitions) == RECORDS + 3000
                )
            )
    finally:
        if how is signal.SIGSTOP:
            victim.send_signal(signal.SIGCONT)
        else:
            victim.wait(120)
            cluster_now(three_brokers).start_broker(node_id)
    finish(copy, lease, join, RECORDS + 3000)


@pytest.mark.slow
def test_source_and_target_restart_broker_by_broker_under_a_copy(
    three_brokers: EmbeddedCluster, topic: str, alias: str
) -> None:
    """One cluster is both sides: each restart takes a source and a target broker at once."""
    make_topic(three_brokers, topic, 3, factor=3)
    copy = Copy(three_brokers, three_brokers, alias, topic, partitions=3)
    lease = Watch()
    join = copy.background(lease)
    with Load(three_brokers, topic) as load:
        lease.wait_until_copied(1000)
        for node_id in (1, 2, 3):
            restart(three_brokers, node_id, topic)
            lease.wait_until_copied(load.written)
    copied = finish(copy, lease, join, load.written)
    assert sum(map(len, copied.values())) == load.written


def test_leaders_that_are_moved_under_load_lose_and_repeat_nothing(
    three_brokers: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(three_brokers, topic, 3, factor=3)
    copy = Copy(three_brokers, three_brokers, alias, topic, partitions=3)
    lease = Watch()
    join = copy.background(lease)
    client = KafkaAdminClient(bootstrap_servers=three_brokers.bootstrap)
    moved = [KafkaTopicPartition(name, p) for name in (topic, copy.remote) for p in range(3)]

    def is_led_by(node_id: int) -> bool:
        # Asked for again: a replica that is not in sync at that moment is not elected.
        client.elect_leaders(0, {name: [0, 1, 2] for name in (topic, copy.remote)}, raise_errors=False)
        return leader_of(three_brokers, topic) == leader_of(three_brokers, copy.remote) == node_id

    with Load(three_brokers, topic) as load:
        lease.wait_until_copied(1000)
        for first in (1, 2, 3, 1):
            order = [1 + (first + n - 1) % 3 for n in range(3)]
            client.alter_partition_reassignments(dict.fromkeys(moved, order))
            wait_for(lambda: not client.list_partition_reassignments(moved))
            wait_for(lambda n=first: is_led_by(n))
            lease.wait_until_copied(load.written)
    client.close()
    finish(copy, lease, join, load.written)


def test_partitions_added_to_a_topic_are_copied_by_the_running_loop(
    three_brokers: EmbeddedCluster, admin: Admin, topic: str, alias: str
) -> None:
    make_topic(three_brokers, topic, 2, factor=3)
    copy = Copy(three_brokers, three_brokers, alias, topic)
    lease = Watch()
    join = copy.background(lease)
    write(three_brokers, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(100)))
    lease.wait_until_copied(100)
    for name in (topic, copy.remote):
        grow(three_brokers, name, 3)
    # A producer refuses a partition that the broker it asks does not know yet.
    wait_for(lambda: all(knows(broker, topic, 3) for broker in three_brokers.brokers))
    write(three_brokers, topic, numbered(0, 300))
    copy.partitions = 3
    assert admin.wait_for_leaders({topic: 3, copy.remote: 3}) == {}
    lease.assignment = copy.spec(once=False).partitions
    copied = finish(copy, lease, join, 400)
    assert len(copied[2]) == 100


def knows(broker: Broker, topic: str, partitions: int) -> bool:
    admin = Admin("three", (Address("127.0.0.1", broker.port),), Security(), "test", timeout_s=60)
    leaders = admin.view([topic]).leaders
    admin.close()
    return all(leaders.get(TopicPartition(topic, p), -1) >= 0 for p in range(partitions))


def grow(cluster: EmbeddedCluster, topic: str, partitions: int) -> None:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    client.create_partitions({topic: partitions})
    client.close()


def test_a_follower_in_our_rack_is_read_and_left_when_it_dies(
    three_brokers: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(three_brokers, topic, 3, factor=3)
    copy = Copy(three_brokers, target, alias, topic, partitions=3)
    leader = leader_of(three_brokers, topic)
    near = next(broker for broker in three_brokers.brokers if broker.node_id != leader)
    lease = Watch()
    loop = copy.loop(lease, limits=FetchLimits(rack=f"rack-{near.port}"))
    join = run_in_background(loop)
    write(three_brokers, topic, numbered(0, 3000))
    lease.wait_until_copied(3000)
    fetched = loop._clients.fetcher.partitions[TopicPartition(topic, 0)]
    wait_for(lambda: fetched.read_replica == near.node_id)
    wait_for(lambda: fetched.lane is not None and fetched.lane.node_id == near.node_id)
    write(three_brokers, topic, numbered(3000, 3000))
    lease.wait_until_copied(6000)
    victim = cluster_now(three_brokers).broker_process(near.node_id)
    victim.kill()
    victim.wait(120)
    write(three_brokers, topic, numbered(6000, 3000))
    lease.wait_until_copied(9000)
    assert fetched.lane is not None
    assert fetched.lane.node_id != near.node_id
    cluster_now(three_brokers).start_broker(near.node_id)
    wait_for(lambda: is_in_sync(three_brokers, topic))
    finish(copy, lease, join, 9000)


def test_a_log_cut_by_an_unclean_election_is_told_and_what_follows_is_copied(
    three_brokers: EmbeddedCluster, target: EmbeddedCluster, admin: Admin, topic: str, alias: str
) -> None:
    """The follower stops, more is written and copied, the leader dies, and the follower leads with what it has."""
    make_topic(three_brokers, topic, 1, factor=2, unclean_leader_election_enable="true", min_insync_replicas="1")
    leader = leader_of(three_brokers, topic)
    follower = next(n for n in describe(three_brokers, topic)[0]["replica_nodes"] if n != leader)
    copy = Copy(three_brokers, target, alias, topic, partitions=1)
    lease = Watch()
    join = copy.background(lease)
    write(three_brokers, topic, letters("both", 10))
    wait_for(lambda: is_in_sync(three_brokers, topic))
    stop(three_brokers, follower, signal.SIGTERM)  # it says goodbye, and nobody waits for it
    write(three_brokers, topic, letters("lost", 5))
    lease.wait_until_copied(15)
    stop(three_brokers, leader, signal.SIGKILL)
    try:
        cluster_now(three_brokers).start_broker(follower)
        wait_for(lambda: admin.view([topic]).leaders.get(TopicPartition(topic, 0)) == follower)
        write(three_brokers, topic, letters("new", 30))
        lease.wait_until_copied(45)
    finally:
        cluster_now(three_brokers).start_broker(leader)
    lease.stop_reason = "test"
    report = join()
    reported = [event.message for each in [*lease.reports, report] for event in each.events if "cut" in event.message]
    assert len(reported) == 1
    assert "cut at offset 10" in reported[0]
    assert "records of offsets 10 to 14 (5) that the source no longer has" in reported[0]
    assert report.partitions[0].cut_offsets == 5
    values = [record.value for record in read(target, copy.remote, 1)[0]]
    assert values == [record["value"] for record in letters("both", 10) + letters("lost", 5) + letters("new", 30)]
    wait_for(lambda: is_in_sync(three_brokers, topic))


def letters(word: str, count: int) -> list[dict[str, object]]:
    return [{"value": f"{word}-{n}".encode(), "partition": 0} for n in range(count)]


def stop(cluster: EmbeddedCluster, node_id: int, how: signal.Signals) -> None:
    victim = cluster_now(cluster).broker_process(node_id)
    victim.send_signal(how)
    victim.wait(120)


def test_transactions_outlive_their_coordinators_broker(three_brokers: EmbeddedCluster, topic: str, alias: str) -> None:
    make_topic(three_brokers, topic, 3, factor=3)
    copy = Copy(three_brokers, three_brokers, alias, topic, partitions=3)
    lease = Watch()
    transactional_id = f"{alias}-mm2-MirrorSourceConnector-0"
    join = copy.background(lease, transactional_id=transactional_id, commit_interval_ms=300)
    with Load(three_brokers, topic) as load:
        lease.wait_until_copied(1000)
        coordinator = coordinator_of(three_brokers, transactional_id)
        victim = cluster_now(three_brokers).broker_process(coordinator)
        victim.kill()
        victim.wait(120)
        before = committed(lease)
        # While the broker is still down: another one must have become the coordinator, and we must have found it.
        wait_for(lambda: committed(lease) > before + 1000)
        cluster_now(three_brokers).start_broker(coordinator)
        wait_for(lambda: is_in_sync(three_brokers, topic))
    lease.wait_until_copied(load.written)
    lease.stop_reason = "test"
    join()
    written = read(three_brokers, topic, 3)
    only_committed = {"isolation.level": "read_committed"}
    wait_for(lambda: read(three_brokers, copy.remote, 3, **only_committed) == written)


def coordinator_of(cluster: EmbeddedCluster, transactional_id: str) -> int:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    described = client.describe_transactions([transactional_id])[transactional_id]
    client.close()
    return int(described.coordinator_id)


def committed(lease: HandLease) -> int:
    return sum((row.committed_offset or 0) for row in lease.reports[-1].partitions)


def test_a_target_topic_deleted_and_created_again_is_waited_for_and_continued_by_the_next_run(
    source: EmbeddedCluster, three_brokers: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic, 3)
    copy = Copy(source, three_brokers, alias, topic, partitions=3)
    lease = Watch()
    join = copy.background(lease)
    write(source, topic, numbered(0, 3000))
    lease.wait_until_copied(3000)
    client = KafkaAdminClient(bootstrap_servers=three_brokers.bootstrap)
    client.delete_topics([copy.remote])
    client.close()
    wait_for(lambda: not logs_of(three_brokers, copy.remote))  # or a broker that has not heard yet would take the next
    write(source, topic, numbered(3000, 3000), **{"batch.size": 1500})
    wait_for(lambda: lease.reports and any(row.issue for row in lease.reports[-1].partitions))
    make_topic(three_brokers, copy.remote, 3, factor=3)
    with pytest.raises(TaskError, match="the task begins again"):
        join()
    report = copy.once(ChangeActions(target_deleted="continue"))
    assert [(loss.first_offset, loss.last_offset, loss.count) for loss in report.losses] == [(0, 999, 1000)] * 3
    written = read(source, topic, 3)
    assert read(three_brokers, copy.remote, 3) == {p: records[1000:] for p, records in written.items()}


def logs_of(cluster: EmbeddedCluster, topic: str) -> list[Path]:
    """The folders in which brokers keep a topic's partitions."""
    return [folder for p in range(3) for folder in Path(cluster.folder).glob(f"node-*/data/{topic}-{p}")]


def test_many_groups_are_asked_about_at_once_and_again_where_their_coordinators_moved(
    three_brokers: EmbeddedCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heliograph.kafka.admin.coordinators._GROUPS_PER_REQUEST", 20)
    make_topic(three_brokers, topic, 3, factor=3)
    names = [f"{topic}-{n}" for n in range(60)]
    tp = TopicPartition(topic, 0)
    admin = admin_of(cluster_now(three_brokers))
    groups = GroupAdmin(admin)
    for n, name in enumerate(names):
        assert groups.commit(name, {tp: CommittedOffset(n)}) == {}
    committed = {name: {tp: CommittedOffset(n)} for n, name in enumerate(names)}
    assert groups.committed(names) == committed
    restart(three_brokers, 1, topic)
    assert groups.committed(names) == committed
    # Each broker lists those it has loaded.
    wait_for(lambda: set(names) <= groups.list_groups().keys())
    assert groups.states([*names, "nobody"]) == dict.fromkeys(names, "Empty") | {"nobody": "Dead"}
    admin.close()

"""Workers in one Kafka group agree on who leads, and never two of them believe it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException

from heliograph.connect.group.group_protocol import GroupSettings
from heliograph.connect.group.membership import Membership, Standing
from heliograph.embedded.kafka_cluster import EmbeddedCluster, find_cluster
from heliograph.errors import BrokerError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import Address
from tests.conftest import running_cluster

pytestmark = pytest.mark.broker

SESSION_TIMEOUT_MS = 6_000  # the least a broker takes without being told otherwise
_PATIENCE_S = 180
LONG_SESSION_MS = 10 * 60_000  # nobody who only waits for the processor is thrown out
_numbers = itertools.count()


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A broker that may be disturbed."""
    yield from running_cluster("lone", tmp_path_factory.mktemp("lone"))


@pytest.fixture
def group() -> str:
    return f"workers-{next(_numbers)}"


class Group:
    """Members of a group, and a watch that notes every moment in which two believe to lead."""

    def __init__(self, cluster: EmbeddedCluster, group: str) -> None:
        self.cluster = cluster
        self.group = group
        self.members: dict[str, Membership] = {}
        self.reported: dict[str, list[Standing]] = {}
        self.two_led: list[list[str]] = []
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def add(self, name: str, **settings: int) -> Membership:
        addresses = tuple(Address("127.0.0.1", broker.port) for broker in self.cluster.brokers)

        def make_admin(timeout_s: float) -> Admin:
            return Admin("target", addresses, Security(), name, timeout_s=timeout_s)

        reported = self.reported.setdefault(name, [])
        wanted = {"session_timeout_ms": SESSION_TIMEOUT_MS, "heartbeat_interval_ms": 500} | settings
        member = Membership(make_admin, GroupSettings(self.group, **wanted), f"http://{name}:8083", reported.append)
        self.members[name] = member
        member.start()
        return member

    def leaders(self) -> list[str]:
        return [name for name, member in list(self.members.items()) if member.is_leader]

    def _look(self) -> None:
        while not self._ended.wait(0.002):
            # They are asked one after the other: only who leads before and after led while the others were asked.
            if len(leaders := self.leaders()) > 1 and len(both := set(leaders) & set(self.leaders())) > 1:
                self.two_led.append(sorted(both))

    def close(self) -> None:
        for member in self.members.values():
            member.stop()
        self._ended.set()
        self._watch.join()
        assert not self.two_led


@pytest.fixture
def workers(target: EmbeddedCluster, group: str) -> Iterator[Group]:
    workers = Group(target, group)
    yield workers
    workers.close()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def all_follow(workers: Group, leader: str, *names: str) -> bool:
    url = f"http://{leader}:8083"
    members = [workers.members[name] for name in (leader, *names)]
    known = {(member.leader_url, member.generation) for member in members}
    return workers.leaders() == [leader] and known == {(url, members[0].generation)}


def test_the_first_leads_and_newcomers_follow(workers: Group) -> None:
    for name in ("a", "b"):
        workers.add(name, session_timeout_ms=LONG_SESSION_MS).wait_until_joined(_PATIENCE_S)
    wait_for(lambda: all_follow(workers, "a", "b"))
    workers.add("c", session_timeout_ms=LONG_SESSION_MS).wait_until_joined(_PATIENCE_S)
    wait_for(lambda: all_follow(workers, "a", "b", "c"))
    assert all(standing.is_leader for standing in workers.reported["a"]), "the leader stayed through every rebalance"
    assert {standing.leader_url for standing in workers.reported["b"]} == {"http://a:8083"}, (
        "and was known all the time"
    )
    generations = [standing.generation for standing in workers.reported["a"]]
    assert generations == sorted(set(generations))


def test_a_leader_that_leaves_is_replaced_without_waiting_for_its_session(workers: Group) -> None:
    a = workers.add("a", session_timeout_ms=LONG_SESSION_MS)
    a.wait_until_joined(_PATIENCE_S)
    b = workers.add("b", session_timeout_ms=LONG_SESSION_MS)
    b.wait_until_joined(_PATIENCE_S)
    a.stop()
    assert workers.reported["a"][-1].leader_url is None
    wait_for(lambda: b.is_leader)
    assert b.leader_url == "http://b:8083"


def test_a_leader_that_dies_is_replaced_after_its_session(workers: Group) -> None:
    a = workers.add("a")
    a.wait_until_joined(_PATIENCE_S)
    b = workers.add("b")
    b.wait_until_joined(_PATIENCE_S)
    generation = b.generation
    a.stop(leave=False)
    assert not a.is_leader
    wait_for(lambda: b.is_leader)
    assert time.monotonic() > a._lease.until, "it leads before the session of the other has ended"
    standing = b.standing
    assert standing.leads_since == standing.generation > generation


def test_a_leader_stays_while_a_dead_follower_is_waited_for(workers: Group) -> None:
    """A follower is killed and started again: Kafka completes the join only when the dead one's session ends."""
    workers.add("a", session_timeout_ms=LONG_SESSION_MS).wait_until_joined(_PATIENCE_S)
    b = workers.add("b")
    b.wait_until_joined(_PATIENCE_S)
    wait_for(lambda: all_follow(workers, "a", "b"))
    b.stop(leave=False)
    workers.add("b again").wait_until_joined(_PATIENCE_S)
    wait_for(lambda: all_follow(workers, "a", "b again"))
    assert all(standing.is_leader for standing in workers.reported["a"])


def test_members_go_on_when_their_coordinator_is_back(lone: EmbeddedCluster, group: str) -> None:
    workers = Group(lone, group)
    workers.add("a").wait_until_joined(_PATIENCE_S)
    workers.add("b").wait_until_joined(_PATIENCE_S)
    wait_for(lambda: all_follow(workers, "a", "b"))
    process = psutil.Process((find_cluster(lone.name) or lone).brokers[0].pid)
    process.terminate()
    psutil.wait_procs([process])
    wait_for(lambda: not workers.leaders())
    lone.start_broker(lone.brokers[0].node_id)
    workers.add("c").wait_until_joined(_PATIENCE_S)
    names = {"a", "b", "c"}
    wait_for(lambda: any(all_follow(workers, leader, *(names - {leader})) for leader in names))
    workers.close()


def test_a_leader_that_is_cut_off_stops_leading(lone: EmbeddedCluster, group: str) -> None:
    """The broker stands still, as behind a cut cable: no connection breaks, and only the lease tells."""
    workers = Group(lone, group)
    workers.add("a").wait_until_joined(_PATIENCE_S)
    workers.add("b").wait_until_joined(_PATIENCE_S)
    wait_for(lambda: all_follow(workers, "a", "b"))
    broker = psutil.Process((find_cluster(lone.name) or lone).brokers[0].pid)
    broker.suspend()
    try:
        wait_for(lambda: not workers.reported["a"][-1].is_leader)
    finally:
        broker.resume()
    wait_for(lambda: len(workers.leaders()) == 1)
    workers.close()


def test_members_of_another_kind_are_named(workers: Group, target: EmbeddedCluster) -> None:
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": workers.group})
    consumer.subscribe(["__consumer_offsets"])
    try:
        wait_for(lambda: bool(consumer.poll(0.1) is not None or consumer.assignment()))
        member = workers.add("a")
        with pytest.raises(BrokerError) as refused:
            member.wait_until_joined(_PATIENCE_S)
        assert str(refused.value) == (
            f"The group '{workers.group}' on 'target' has members that are not Heliograph's workers (Java's Connect, or"
            " consumers); stop them, or give this worker a group.id of its own."
        )
        assert member.issue == str(refused.value)
    finally:
        with suppress(KafkaException):
            consumer.close()
    wait_for(lambda: member.is_leader and member.issue is None)  # it went on trying


def test_a_session_the_brokers_do_not_take_is_named(workers: Group) -> None:
    member = workers.add("a", session_timeout_ms=10)
    with pytest.raises(BrokerError, match=r"does not take session\.timeout\.ms=10 for the group"):
        member.wait_until_joined(_PATIENCE_S)

"""Fetch sessions, moved positions and read replicas: the content of fetches, and which responses count."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, Self
from uuid import UUID

import pytest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from heliograph.kafka.fetch import fetch_requests
from heliograph.kafka.fetch.fetch_lanes import FetchPartition
from heliograph.kafka.fetch.fetcher import Fetcher
from heliograph.kafka.net.buffers import Buffer, BufferPool
from heliograph.kafka.net.cluster import Cluster
from heliograph.kafka.net.event_loop import Network
from heliograph.kafka.request_options import FetchLimits
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import TopicPartition
from heliograph.wire.messages.fetch_response import PartitionData
from tests.support.brokers.producing import batch_of
from tests.support.brokers.scripted_broker import LOST_AFTER, LOST_BEFORE, ScriptedCluster, Seen
from tests.support.brokers.scripted_log import stamp_of

MEMORY_BYTES = 64 << 20
SESSION_NOT_FOUND, INVALID_SESSION_EPOCH, NOT_LEADER, OUT_OF_RANGE, TOPIC_DENIED = 70, 71, 6, 1, 29


class Fetching:
    """A fetcher of ours against scripted brokers, and what it gave its listener."""

    def __init__(self, brokers: ScriptedCluster, *, request_timeout_s: float = 10.0, **limits: Any) -> None:
        self.brokers = brokers
        self.taken: list[tuple[TopicPartition, int, int]] = []
        self.failed: list[str] = []
        self.unwanted: set[TopicPartition] = set()
        self.network = Network(BufferPool(1 << 20), "test", 5.0)
        self.cluster = Cluster("source", brokers.bootstrap, Security(), self.network, request_timeout_s)
        self.fetcher = Fetcher(self.cluster, self.network, FetchLimits(**{"max_wait_ms": 50, **limits}), self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.network.close()

    def on_records(self, partition: FetchPartition, data: PartitionData, _buffer: Buffer) -> None:
        assert data.records is not None
        assert partition.position is not None
        raw, at, records = bytes(data.records), 0, 0
        while at < len(raw):
            records += stamp_of(raw[at:]).records
            at += 12 + int.from_bytes(raw[at + 8 : at + 12], "big")
        self.taken.append((partition.tp, partition.position, records))
        partition.position += records

    def decide_position(self, partition: FetchPartition, earliest: int, latest: int) -> int | None:
        position = earliest if partition.position is None else partition.position
        return min(max(position, earliest), latest)

    def on_recreated(self, _partition: FetchPartition, _why: str) -> bool:
        return True

    def on_cut(self, _partition: FetchPartition, _offset: int) -> bool:
        return True

    def on_unchecked(self, _partition: FetchPartition, why: str) -> None:
        self.failed.append(why)

    def on_source_failed(self, tp: TopicPartition, why: str) -> None:
        self.failed.append(why)
        self.fetcher.remove(tp)

    def step(self) -> None:
        self.network.poll(0.005)
        now = time.monotonic()
        self.cluster.maintain(now)
        self.fetcher.pump(now, lambda p: p.tp not in self.unwanted, self.room_bytes)

    def room_bytes(self) -> int:
        return MEMORY_BYTES - self.fetcher.in_flight_bytes

    def until(self, condition: Callable[[], object], timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, "it did not come in time"
            self.step()

    def for_a_moment(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.step()

    def until_read(self, records: int) -> None:
        self.until(lambda: sum(n for _tp, _at, n in self.taken) >= records)

    def until_asked(self, count: int) -> list[Any]:
        """The first `count` fetches."""
        self.until(lambda: len(self.requests()) >= count)
        return self.requests()[:count]

    def until_request(self, is_it: Callable[[Any], object], since: int = 1) -> Any:
        """Return the first fetch after the first `since` ones that matches; a later one may have come meanwhile."""
        self.until(lambda: any(map(is_it, self.requests()[since:])))
        return next(filter(is_it, self.requests()[since:]))

    def requests(self, node_id: int | None = None) -> list[Any]:
        return self.brokers.requests(FetchRequest, node_id)

    def put(self, partition: int, batches: int = 1) -> None:
        for number in range(batches):
            with self.brokers.lock:
                self.brokers.logs["t", partition].put(batch_of(number))


def asked_for(request: Any) -> dict[int, int]:
    """Partition to position."""
    return {p.partition: p.fetch_offset for topic in request.topics for p in topic.partitions}


def forgotten(request: Any) -> set[int]:
    return {p for topic in request.forgotten_topics_data for p in topic.partitions}


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


@pytest.fixture
def brokers() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(2, topics={"t": 4}) as cluster:
        yield cluster


@pytest.fixture
def ours(brokers: ScriptedCluster) -> Iterator[Fetching]:
    with Fetching(brokers) as fetching:
        for number in range(3):
            fetching.fetcher.add(tp(number), None)
        fetching.until_asked(2)
        yield fetching


def test_after_the_first_request_only_changes_are_named(ours: Fetching) -> None:
    first, second = ours.until_asked(2)
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert asked_for(first) == {0: 0, 1: 0, 2: 0}
    assert second.session_id > 0
    assert (second.session_epoch, asked_for(second)) == (1, {})
    ours.put(1)
    ours.until_read(2)
    assert asked_for(ours.until_request(asked_for)) == {1: 2}
    assert len(ours.brokers.sessions.open) == 1


def test_epochs_of_a_session_count_up_without_a_gap(ours: Fetching) -> None:
    requests = ours.until_asked(8)
    assert [request.session_epoch for request in requests] == list(range(8))
    assert len({request.session_id for request in requests[1:]}) == 1


def test_a_thousand_idle_partitions_cost_nothing_after_the_first_request() -> None:
    with ScriptedCluster(topics={"t": 1000}) as brokers, Fetching(brokers) as ours:
        for number in range(1000):
            ours.fetcher.add(tp(number), 0)
        ours.until(lambda: len(ours.requests()) >= 2)
        sizes = [seen.size for seen in brokers.seen_of(FetchRequest)]
        assert len(asked_for(ours.requests()[0])) == 1000
        assert asked_for(ours.requests()[1]) == {}
        assert sizes[0] > 10_000
        assert sizes[1] < 100
        ours.put(777)
        ours.until_read(2)
        assert asked_for(ours.until_request(asked_for)) == {777: 2}


@pytest.mark.parametrize(("far_from_s", "turns"), [(0.0, [{0, 2}, {1, 3}]), (60.0, [{0, 1, 2, 3}])])
def test_two_connections_take_turns_if_the_broker_is_distant(
    monkeypatch: pytest.MonkeyPatch, far_from_s: float, turns: list[set[int]]
) -> None:
    monkeypatch.setattr(fetch_requests, "_LONG_ROUND_TRIP_S", far_from_s)
    with ScriptedCluster(topics={"t": 4}) as brokers, Fetching(brokers, grows_to_bytes=32 << 20) as ours:
        for number in range(4):
            ours.put(number)
            ours.fetcher.add(tp(number), None)
        ours.until_read(8)
        by_connection: dict[int, set[int]] = {}
        for seen in brokers.seen_of(FetchRequest):
            by_connection.setdefault(seen.connection, set()).update(asked_for(seen.request))
        assert sorted(map(sorted, by_connection.values())) == sorted(map(sorted, turns))


@pytest.mark.parametrize(("broker_count", "far_from_s"), [(9, 60.0), (3, 0.0)])
def test_every_broker_is_asked_while_the_others_keep_their_requests(
    monkeypatch: pytest.MonkeyPatch, broker_count: int, far_from_s: float
) -> None:
    monkeypatch.setattr(fetch_requests, "_LONG_ROUND_TRIP_S", far_from_s)
    monkeypatch.setattr(fetch_requests, "_SHORT_ROUND_TRIP_S", far_from_s / 10 or 1e-9)
    partitions = broker_count * 10
    limits = {"grows_to_bytes": MEMORY_BYTES // 2, "max_wait_ms": 60_000}
    with ScriptedCluster(broker_count, topics={"t": partitions}) as brokers, Fetching(brokers, **limits) as ours:
        for number in range(partitions):
            brokers.leaders["t", number] = number % broker_count + 1
            ours.fetcher.add(tp(number), None)
        ours.until(lambda: len(set().union(*map(asked_for, ours.requests()))) == partitions)
        assert ours.fetcher.in_flight_bytes <= MEMORY_BYTES


def test_no_more_is_requested_than_the_partitions_may_bring(ours: Fetching) -> None:
    assert {request.max_bytes for request in ours.until_asked(3)} == {3 << 20}


def test_a_partition_that_is_read_no_more_is_forgotten_by_name(ours: Fetching) -> None:
    ours.fetcher.remove(tp(1))
    assert forgotten(ours.until_request(forgotten)) == {1}
    ours.until_asked(len(ours.requests()) + 2)
    assert [forgotten(request) for request in ours.requests()].count({1}) == 1


def test_a_partition_held_back_is_forgotten_and_named_again_when_it_is_wanted(ours: Fetching) -> None:
    ours.unwanted.add(tp(0))
    ours.put(0)
    ours.until_read(2)  # the request under way was asked before
    held_back = ours.until_request(forgotten)
    assert forgotten(held_back) == {0}
    assert held_back.max_wait_ms == 10, "the broker must not keep the lane for the idle ones"
    ours.unwanted.clear()
    assert asked_for(ours.until_request(asked_for)) == {0: 2}


def test_the_longer_a_partition_is_held_back_the_longer_the_broker_may_wait_for_the_others(ours: Fetching) -> None:
    ours.unwanted.add(tp(0))
    ours.put(0)
    ours.until_read(2)
    held_back = ours.until_request(forgotten)
    since = next(at for at, request in enumerate(ours.requests()) if request is held_back)
    waits = [request.max_wait_ms for request in ours.until_asked(since + 5)[since:]]
    assert waits == [10, 20, 40, 50, 50]
    ours.put(1)
    ours.until_request(lambda request: request.max_wait_ms == 10, len(ours.requests()))


@pytest.mark.parametrize("code", [SESSION_NOT_FOUND, INVALID_SESSION_EPOCH])
def test_a_session_the_broker_does_not_know_begins_again_with_all(
    brokers: ScriptedCluster, ours: Fetching, code: int
) -> None:
    brokers.script(FetchRequest, code)
    again = ours.until_request(lambda request: request.session_epoch == 0)
    assert asked_for(again) == {0: 0, 1: 0, 2: 0}
    ours.put(2)
    ours.until_read(2)
    assert all(p.issue is None for p in ours.fetcher.partitions.values())


def test_a_broker_without_room_for_sessions_gets_all_partitions_each_time(brokers: ScriptedCluster) -> None:
    brokers.sessions.grants = False
    with Fetching(brokers) as ours:
        for number in range(3):
            ours.fetcher.add(tp(number), 0)
        ours.put(1)
        requests = ours.until_asked(4)
        assert {(request.session_id, request.session_epoch) for request in requests} == {(0, 0)}
        assert asked_for(requests[0]) == {0: 0, 1: 0, 2: 0}
        assert [asked_for(request) for request in requests[1:]] == [{0: 0, 1: 2, 2: 0}] * 3
        assert ours.taken == [(tp(1), 0, 2)]


@pytest.mark.parametrize("lost", [LOST_BEFORE, LOST_AFTER])
def test_a_lost_response_is_requested_again_in_a_new_session(brokers: ScriptedCluster, lost: object) -> None:
    with Fetching(brokers) as ours:
        ours.put(0, batches=2)
        brokers.script(FetchRequest, lost)
        ours.fetcher.add(tp(0), 0)
        ours.until_read(4)
        assert ours.taken == [(tp(0), 0, 4)]
        assert [(request.session_epoch, asked_for(request)) for request in ours.requests()[:2]] == [(0, {0: 0})] * 2


def test_a_response_for_a_partition_removed_meanwhile_is_dropped(brokers: ScriptedCluster) -> None:
    with Fetching(brokers) as ours:
        brokers.hold(FetchRequest)
        for number in range(2):
            ours.put(number)
            ours.fetcher.add(tp(number), 0)
        (request,) = ours.until_asked(1)
        assert asked_for(request) == {0: 0, 1: 0}
        ours.fetcher.remove(tp(0))
        brokers.release(FetchRequest)
        ours.until_read(2)
        assert forgotten(ours.until_request(forgotten)) == {0}
        assert ours.taken == [(tp(1), 0, 2)]


def test_a_topic_that_was_unknown_is_not_read_before_it_is_known_to_be_the_same() -> None:
    with ScriptedCluster(topics={"t": 1}) as brokers, Fetching(brokers) as ours:
        ours.put(0, batches=2)
        ours.fetcher.add(tp(0), None)
        ours.until_read(4)
        brokers.hold(MetadataRequest)
        with brokers.lock:
            del brokers.leaders["t", 0], brokers.logs["t", 0]
        ours.until(lambda: ours.fetcher.partitions[tp(0)].issue)
        with brokers.lock:
            brokers.leaders["t", 0], brokers.topic_ids["t"] = 1, UUID(int=9)
        ours.put(0, batches=3)
        ours.for_a_moment(0.5)
        assert ours.taken == [(tp(0), 0, 4)], "the new topic would be read where the old one ended"
        brokers.release(MetadataRequest)
        ours.until_read(10)
        assert ours.taken == [(tp(0), 0, 4), (tp(0), 0, 6)]


def test_a_lost_response_is_requested_in_half_the_size_until_one_has_come(
    brokers: ScriptedCluster, ours: Fetching
) -> None:
    for number in (1, 2):
        ours.fetcher.remove(tp(number))
    before = len(ours.requests())
    brokers.script(FetchRequest, LOST_BEFORE, LOST_BEFORE, LOST_BEFORE)
    ours.until_asked(before + 9)
    full = whole = ours.requests()[0].topics[0].partitions[0].partition_max_bytes
    since = [request for request in ours.requests() if request.max_bytes < full]
    assert [request.max_bytes for request in since] == [full // 2, full // 4, full // 8, full // 4, full // 2]
    assert since[2].topics[0].partitions[0].partition_max_bytes == whole // 8
    assert ours.requests()[-1].max_bytes == full


def test_a_position_changed_during_a_request_is_not_overwritten(brokers: ScriptedCluster) -> None:
    with Fetching(brokers) as ours:
        ours.put(0, batches=5)
        brokers.hold(FetchRequest)
        ours.fetcher.add(tp(0), 2)
        ours.until_asked(1)
        ours.fetcher.seek(tp(0), 6)
        brokers.release(FetchRequest)
        ours.until_read(4)
        assert ours.taken == [(tp(0), 6, 4)]
        assert [asked_for(request) for request in ours.until_asked(2)] == [{0: 2}, {0: 6}]


def test_no_fetch_leaves_before_a_throttle_is_over(brokers: ScriptedCluster, ours: Fetching) -> None:
    def throttled(seen: Seen) -> object:
        answer = brokers.ordinary(seen)
        answer.throttle_time_ms = 400
        return answer

    before = len(ours.requests())
    brokers.script(FetchRequest, throttled)
    ours.until(lambda: ours.fetcher.throttled_ms)
    assert ours.fetcher.has_retries
    ours.until_asked(before + 3)
    times = [seen.at for seen in brokers.seen_of(FetchRequest)]
    assert max(later - at for at, later in itertools.pairwise(times)) >= 0.4
    assert ours.fetcher.throttled_ms == 400


def test_a_leader_that_moves_is_followed_and_its_old_broker_forgets(brokers: ScriptedCluster, ours: Fetching) -> None:
    brokers.leaders["t", 1] = 2
    ours.put(1)
    ours.until_read(2)
    assert {1 for request in ours.requests(node_id=2) if 1 in asked_for(request)}
    assert ours.taken == [(tp(1), 0, 2)]
    assert 1 not in next(s for s in brokers.sessions.open.values() if s.node_id == 1).places


def test_a_position_outside_of_the_log_is_placed_anew(brokers: ScriptedCluster, ours: Fetching) -> None:
    brokers.sessions.refusals[1, ("t", 0)] = OUT_OF_RANGE
    looked_up = len(brokers.requests(ListOffsetsRequest))
    ours.until(lambda: len(brokers.requests(ListOffsetsRequest)) > looked_up)
    del brokers.sessions.refusals[1, ("t", 0)]
    ours.put(0)
    ours.until_read(2)
    assert ours.taken == [(tp(0), 0, 2)]


def test_log_ends_that_leave_a_partition_out_are_requested_again() -> None:
    with ScriptedCluster(topics={"t": 1}) as brokers, Fetching(brokers) as fetching:
        brokers.script(ListOffsetsRequest, lambda seen: type(brokers.ordinary(seen))(throttle_time_ms=0, topics=[]))
        fetching.put(0)
        fetching.fetcher.add(tp(0), 0)
        fetching.until_read(2)
        assert len(brokers.requests(ListOffsetsRequest)) == 4


def test_a_partition_we_may_not_read_fails_alone(brokers: ScriptedCluster, ours: Fetching) -> None:
    brokers.sessions.refusals[1, ("t", 0)] = TOPIC_DENIED
    ours.until(lambda: ours.failed)
    assert "TOPIC_AUTHORIZATION_FAILED" in ours.failed[0]
    ours.put(1)
    ours.until_read(2)
    assert not ours.fetcher.has_retries


# --- read replicas (KIP-392) ------------------------------------------------------------------------------------------


@pytest.fixture
def near(brokers: ScriptedCluster) -> Iterator[Fetching]:
    """A fetcher in the rack of broker 2, which the leader names for partition 0."""
    brokers.read_replicas["t", 0] = 2
    with Fetching(brokers, rack="b") as fetching:
        fetching.put(0)
        fetching.fetcher.add(tp(0), 0)
        fetching.until_read(2)
        yield fetching


def test_the_replica_the_leader_names_is_read(near: Fetching) -> None:
    assert {request.rack_id for request in near.requests()} == {"b"}
    assert asked_for(near.requests(node_id=1)[0]) == {0: 0}
    assert asked_for(near.requests(node_id=2)[0]) == {0: 0}
    before = len(near.requests(node_id=1))
    near.put(0, batches=3)
    near.until_read(8)
    assert len(near.requests(node_id=1)) == before
    assert near.fetcher.partitions[tp(0)].read_replica == 2


@pytest.mark.parametrize("code", [NOT_LEADER, OUT_OF_RANGE])
def test_an_error_of_the_replica_sends_us_back_to_the_leader(
    brokers: ScriptedCluster, near: Fetching, code: int
) -> None:
    before, looked_up = len(near.requests(node_id=1)), len(brokers.requests(ListOffsetsRequest))
    del brokers.read_replicas["t", 0]
    brokers.sessions.refusals[2, ("t", 0)] = code
    near.until(lambda: len(near.requests(node_id=1)) > before)
    near.put(0)
    near.until_read(4)
    assert near.taken == [(tp(0), 0, 2), (tp(0), 2, 2)]
    assert near.fetcher.partitions[tp(0)].read_replica is None
    assert len(brokers.requests(ListOffsetsRequest)) == looked_up, "only the leader's word counts"


def test_a_replica_that_always_refuses_is_not_asked_without_a_pause(brokers: ScriptedCluster, near: Fetching) -> None:
    brokers.sessions.refusals[2, ("t", 0)] = OUT_OF_RANGE
    before = len(near.requests())
    near.for_a_moment(1.0)
    assert len(near.requests()) - before < 60
    brokers.sessions.refusals.clear()
    near.put(0)
    near.until_read(4)


def test_a_replica_that_dies_is_left_for_the_leader(brokers: ScriptedCluster, near: Fetching) -> None:
    brokers.brokers[2].stop()
    del brokers.brokers[2]
    brokers.read_replicas.clear()
    near.put(0)
    near.until_read(4)
    assert near.fetcher.partitions[tp(0)].read_replica is None


def test_a_dead_replica_that_the_leader_still_names_stops_the_reading_only_as_long(
    brokers: ScriptedCluster, near: Fetching
) -> None:
    """The leader, and the metadata, take a while to notice."""
    brokers.brokers[2].stop()
    near.put(0)
    near.for_a_moment(0.5)
    del brokers.brokers[2]
    brokers.read_replicas.clear()
    near.until_read(4)

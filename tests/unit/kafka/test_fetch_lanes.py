"""The lanes of a task: which one reads a partition, the size of its requests, and their turns; retries."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from heliograph.kafka.fetch.fetch_lanes import FetchLanes, FetchPartition, FetchRetries
from heliograph.model import TopicPartition

MEMORY_BYTES = 64 << 20


def partitions(count: int) -> list[FetchPartition]:
    return [FetchPartition(TopicPartition("t", number), 0) for number in range(count)]


def sizes(lanes: Iterable[object]) -> list[int]:
    return sorted(len(lane.members) for lane in lanes)  # type: ignore[attr-defined]


@given(st.integers(1, 4), st.lists(st.integers(1, 3), max_size=40))
def test_a_brokers_partitions_are_spread_evenly_over_its_lanes(per_broker: int, leaders: list[int]) -> None:
    lanes = FetchLanes(per_broker, lambda: MEMORY_BYTES)
    for partition, node_id in zip(partitions(len(leaders)), leaders, strict=True):
        lanes.assign(partition, node_id)
    for node_id in set(leaders):
        of_broker = sizes(lane for lane in lanes if lane.node_id == node_id)
        assert len(of_broker) == per_broker
        assert sum(of_broker) == leaders.count(node_id)
        assert of_broker[-1] - of_broker[0] <= 1


@given(st.lists(st.integers(1, 3), min_size=1, max_size=40))
def test_partitions_of_far_brokers_get_a_second_lane_once(leaders: list[int]) -> None:
    lanes = FetchLanes(1, lambda: MEMORY_BYTES)
    all_of_them = partitions(len(leaders))
    for partition, node_id in zip(all_of_them, leaders, strict=True):
        lanes.assign(partition, node_id)
    assert lanes.spread(leaders[0])
    assert not lanes.spread(leaders[0])
    count = leaders.count(leaders[0])
    assert sizes(lane for lane in lanes if lane.node_id == leaders[0]) == [count // 2, count - count // 2]
    assert all(p.lane is not None and p.lane.members[p.tp] is p for p in all_of_them)
    assert sum(sizes(lanes)) == len(leaders)


def test_several_configured_lanes_are_enough_for_a_distant_broker() -> None:
    lanes = FetchLanes(2, lambda: MEMORY_BYTES)
    for partition in partitions(4):
        lanes.assign(partition, 1)
    assert not lanes.spread(1)
    assert sizes(lanes) == [2, 2]


def test_a_partition_stays_on_its_lane_until_another_broker_leads_it() -> None:
    lanes = FetchLanes(2, lambda: MEMORY_BYTES)
    one, other = partitions(2)
    lane = lanes.assign(one, 1)
    lanes.assign(other, 1)
    assert lanes.assign(one, 1) is lane
    moved = lanes.assign(one, 2)
    assert (moved.node_id, one.tp in lane.members, one.lane) == (2, False, moved)


def test_a_lane_that_has_sent_a_request_is_the_last_to_send_again() -> None:
    lanes = FetchLanes(3, lambda: MEMORY_BYTES)
    lanes.assign(partitions(1)[0], 1)
    first, second, third = lanes
    lanes.move_to_back(first)
    assert list(lanes) == [second, third, first]


@given(st.integers(1, 200), st.integers(1 << 20, 1 << 30))
def test_there_is_room_for_a_request_of_every_lane(brokers: int, memory_bytes: int) -> None:
    lanes = FetchLanes(1, lambda: memory_bytes)
    for node_id, partition in enumerate(partitions(brokers)):
        lanes.assign(partition, node_id)
    assert lanes.share_bytes * brokers <= memory_bytes or lanes.share_bytes == 64 * 1024
    assert lanes.share_bytes <= memory_bytes


class Cluster:
    """Counts the requests for metadata."""

    wanted = 0

    def want_metadata(self) -> None:
        self.wanted += 1


def test_a_partition_that_failed_waits_longer_each_time_until_it_can_be_read() -> None:
    (partition,) = partitions(1)
    cluster = Cluster()
    retries = FetchRetries({partition.tp: partition}, cluster)  # type: ignore[arg-type]
    retries.retry([partition.tp, TopicPartition("t", 7)], "the leader is gone")
    assert (bool(retries), partition.issue, cluster.wanted) == (True, "the leader is gone", 1)
    assert retries.is_waiting(partition.tp, partition.retry_at - 0.01)
    assert not retries.is_waiting(partition.tp, partition.retry_at)
    retries.clear_issue(partition)
    assert (bool(retries), partition.issue, partition.backoff.failures) == (False, None, 1)
    retries.reset_failures(partition)
    assert partition.backoff.failures == 0


def test_a_partition_that_is_removed_is_not_waited_for() -> None:
    (partition,) = partitions(1)
    retries = FetchRetries({partition.tp: partition}, Cluster())  # type: ignore[arg-type]
    retries.retry([partition.tp], "the leader is gone")
    retries.remove(partition.tp)
    assert not retries

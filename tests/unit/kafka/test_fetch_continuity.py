"""Another leader epoch at our position: when the leader is asked, and the effect of its responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest

from heliograph.kafka.fetch.fetch_lanes import FetchPartition
from heliograph.kafka.net import cluster
from heliograph.kafka.net.buffers import Buffer
from heliograph.model import TopicPartition
from heliograph.wire.batches.leader_epochs import EpochHistory, epoch_at
from heliograph.wire.messages.fetch_response import PartitionData
from tests.support.brokers.producing import batch_of
from tests.support.brokers.scripted_broker import LOST_BEFORE, ScriptedCluster
from tests.unit.kafka.test_fetch_sessions import Fetching

T = TopicPartition("t", 0)
LOG = ("t", 0)
NOT_LEADER, CLUSTER_DENIED, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH = 6, 31, 74, 75


class Following(Fetching):
    """A fetcher of ours that keeps the epochs of the records it read, and the changes of the log that were reported."""

    def __init__(self, brokers: ScriptedCluster, **limits: Any) -> None:
        super().__init__(brokers, **limits)
        self.cuts: list[int] = []
        self.unchecked: list[str] = []
        self.recreated: list[str] = []
        self.accepts_cuts = True

    def on_records(self, partition: FetchPartition, data: PartitionData, buffer: Buffer) -> None:
        assert data.records is not None
        assert partition.position is not None
        partition.epochs.note(epoch_at(data.records, partition.position), partition.position)
        super().on_records(partition, data, buffer)

    def on_cut(self, _partition: FetchPartition, offset: int) -> bool:
        self.cuts.append(offset)
        return self.accepts_cuts

    def on_unchecked(self, _partition: FetchPartition, why: str) -> None:
        self.unchecked.append(why)

    def on_recreated(self, partition: FetchPartition, why: str) -> bool:
        self.recreated.append(why)
        partition.epochs.clear()
        return True

    def led(self, epoch: int, batches: int, *, after: int | None = None) -> None:
        """Let a new leader append batches of two records each, after only so many of those that are there."""
        with self.brokers.lock:
            log = self.brokers.logs[LOG]
            if after is not None:
                log.cut(after)
            self.brokers.leader_epochs[LOG] = epoch
            for number in range(batches):
                log.put(batch_of(number), epoch)

    def asked(self) -> list[tuple[int, int]]:
        """Epochs that were asked for, with the one the leader was taken for."""
        requests = self.brokers.requests(OffsetForLeaderEpochRequest)
        return [(p.leader_epoch, p.current_leader_epoch) for r in requests for t in r.topics for p in t.partitions]

    def read(self) -> list[tuple[int, int]]:
        return [(position, count) for _tp, position, count in self.taken]


@pytest.fixture
def brokers() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={"t": 1}) as cluster:
        yield cluster


@pytest.fixture
def ours(brokers: ScriptedCluster) -> Iterator[Following]:
    """A fetcher that has read the ten records of epoch 5."""
    with Following(brokers) as following:
        following.led(5, 5)
        following.fetcher.add(T, 0)
        following.until_read(10)
        yield following


def test_batches_of_the_same_leader_raise_no_doubt(ours: Following) -> None:
    ours.led(5, 3)
    ours.until_read(16)
    assert ours.asked() == []


def test_a_new_leader_with_the_same_log_is_asked_once_and_read_on(ours: Following) -> None:
    ours.led(6, 2)
    ours.until_read(14)
    ours.led(6, 2)
    ours.until_read(18)
    assert ours.read()[1] == (10, 4)
    assert ours.asked() == [(5, 6)]
    assert (ours.cuts, ours.unchecked, ours.recreated) == ([], [], [])


def test_a_fetch_names_the_leaders_epoch_and_one_that_is_outdated_is_looked_up(
    brokers: ScriptedCluster, ours: Following
) -> None:
    looked_up = len(brokers.requests(MetadataRequest))
    ours.led(6, 1)
    ours.until_read(12)
    named = [p.current_leader_epoch for r in ours.requests() for t in r.topics for p in t.partitions]
    assert set(named) == {5, 6}
    assert len(brokers.requests(MetadataRequest)) > looked_up
    ours.for_a_moment(0.2)
    assert ours.fetcher.partitions[T].issue is None


@pytest.mark.parametrize("code", [FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH])
def test_a_broker_that_knows_another_epoch_is_tried_again_with_new_metadata(
    brokers: ScriptedCluster, ours: Following, code: int
) -> None:
    looked_up = len(brokers.requests(MetadataRequest))
    brokers.sessions.refusals[1, LOG] = code
    ours.until(lambda: len(brokers.requests(MetadataRequest)) > looked_up + 1)
    brokers.sessions.refusals.clear()
    ours.led(5, 1)
    ours.until_read(12)
    assert ours.failed == []


def test_a_log_that_was_cut_and_has_grown_past_our_position_is_noticed(ours: Following) -> None:
    ours.led(6, 9, after=3)
    ours.until_read(10 + 18)
    assert ours.cuts == [6]
    assert ours.read()[1] == (6, 18)


def test_a_log_that_was_cut_and_ends_before_our_position_is_noticed(ours: Following) -> None:
    ours.led(6, 1, after=3)
    ours.until_read(12)
    assert ours.cuts == [6]
    assert ours.read()[1] == (6, 2)
    assert ours.recreated == []


def test_a_cut_goes_back_over_epochs_that_the_new_leader_never_had(ours: Following) -> None:
    """Ours: epoch 5 up to 10, then 7. The new leader's: epoch 5 up to 14, then 8. Our records of 7 are all void."""
    ours.led(7, 4)
    ours.until_read(18)
    with ours.brokers.lock:
        ours.led(5, 2, after=5)
        ours.led(8, 5)
    ours.until_read(18 + 14)
    assert ours.cuts == [10]
    assert ours.read()[2] == (10, 14)


def test_records_of_an_older_leader_after_ours_are_never_delivered(ours: Following) -> None:
    """A replica whose own tail is longer than our position leads again."""
    ours.led(7, 1)
    ours.until_read(12)
    with ours.brokers.lock:
        ours.led(5, 4, after=5)
        ours.led(8, 1)
    ours.until_read(12 + 10)
    assert ours.cuts == [10]


def test_a_cut_is_asked_about_again_until_it_is_taken(ours: Following) -> None:
    ours.accepts_cuts = False
    ours.led(6, 9, after=3)
    ours.until(lambda: len(ours.cuts) >= 2)
    assert ours.fetcher.partitions[T].position == 10
    assert sum(count for _at, count in ours.read()) == 10
    assert "cut at offset 6" in str(ours.fetcher.partitions[T].issue)
    ours.accepts_cuts = True
    ours.until_read(10 + 18)


@pytest.mark.parametrize("answer", [NOT_LEADER, LOST_BEFORE])
def test_an_answer_that_does_not_come_is_asked_for_again(
    brokers: ScriptedCluster, ours: Following, answer: Any
) -> None:
    brokers.script(OffsetForLeaderEpochRequest, answer)
    ours.led(6, 9, after=3)
    ours.until_read(10 + 18)
    assert ours.cuts == [6]
    assert len(ours.asked()) == 3, "unanswered, answered, and whether the place of the cut is right"


def test_a_leader_that_refuses_the_request_is_read_and_that_is_reported(
    brokers: ScriptedCluster, ours: Following
) -> None:
    brokers.script(OffsetForLeaderEpochRequest, CLUSTER_DENIED)
    ours.led(6, 2)
    ours.until_read(14)
    assert "CLUSTER_AUTHORIZATION_FAILED" in ours.unchecked[0]
    assert ours.cuts == []


def test_a_leader_that_does_not_know_the_epoch_is_read_and_that_is_reported(
    brokers: ScriptedCluster, ours: Following
) -> None:
    def knows_nothing(seen: Any) -> Any:
        answer = brokers.ordinary(seen)
        data = answer.topics[0].partitions[0]
        data.leader_epoch, data.end_offset = -1, -1
        return answer

    brokers.script(OffsetForLeaderEpochRequest, knows_nothing)
    ours.led(6, 2)
    ours.until_read(14)
    assert "keeps no account of the epoch 5" in ours.unchecked[0]


def test_a_log_that_never_came_as_far_as_ours_is_another_one(ours: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a restore from an old copy: it has grown past our position, in older epochs."""
    monkeypatch.setattr(cluster, "_OUTDATED_EPOCH_GRACE_S", 0.3)
    ours.led(3, 8, after=0)
    ours.until_read(10 + 16)
    assert "epoch 3 only, and we have copied records of 5" in ours.recreated[0]
    assert ours.read()[1] == (0, 16)


def test_a_log_that_ends_before_our_position_in_the_same_epoch_is_another_one(ours: Following) -> None:
    """No other leader has led since, so no leader can have truncated it."""
    ours.led(5, 0, after=3)
    ours.until(lambda: ours.fetcher.partitions[T].position == 6)
    assert ours.cuts == []
    assert ours.recreated == [], "the listener decides by the ends, as without epochs"


def test_the_epochs_of_an_earlier_task_count(brokers: ScriptedCluster) -> None:
    with Following(brokers) as ours:
        ours.led(6, 9)
        with brokers.lock:
            brokers.logs[LOG].cut(0)
            ours.led(4, 3)
            ours.led(6, 9)
        ours.fetcher.add(T, 10, None, EpochHistory([(4, 0), (5, 6)]))
        ours.until_read(18)
        assert ours.cuts == [6]


def test_a_partition_that_moves_back_meanwhile_is_not_cut_at_the_wrong_place(
    brokers: ScriptedCluster, ours: Following
) -> None:
    brokers.hold(OffsetForLeaderEpochRequest)
    ours.led(6, 9, after=3)
    ours.until(ours.asked)
    ours.fetcher.seek(T, 4)
    brokers.release(OffsetForLeaderEpochRequest)
    ours.until_read(10 + 20)
    assert ours.cuts == []
    assert ours.read()[1] == (4, 20)


class TestOfOldBrokers:
    """Sources from Kafka 1.1 on: no epochs in metadata, none named in fetches, plainer answers."""

    @pytest.fixture
    def brokers(self) -> Iterator[ScriptedCluster]:
        with ScriptedCluster(topics={"t": 1}) as cluster:
            cluster.newest = {MetadataRequest: 5, FetchRequest: 7, OffsetForLeaderEpochRequest: 0}
            yield cluster

    def test_a_cut_is_noticed(self, ours: Following) -> None:
        ours.led(6, 9, after=3)
        ours.until_read(10 + 18)
        assert ours.asked() == [(5, -1), (5, -1)], "and whether the place of the cut is right"
        assert ours.cuts == [6]

    def test_a_clean_change_of_leaders_is_read_on(self, ours: Following) -> None:
        ours.led(6, 2)
        ours.until_read(14)
        assert (ours.cuts, ours.unchecked) == ([], [])

    def test_a_broker_that_does_not_support_the_request_is_read_and_that_is_reported(
        self, brokers: ScriptedCluster
    ) -> None:
        brokers.newest[OffsetForLeaderEpochRequest] = -1
        with Following(brokers) as ours:
            ours.led(5, 5)
            ours.fetcher.add(T, 0)
            ours.until_read(10)
            ours.led(6, 2)
            ours.until_read(14)
            assert "does not know that request" in ours.unchecked[0]


def test_a_broker_that_has_not_heard_of_the_newest_leader_is_not_believed(
    brokers: ScriptedCluster, ours: Following
) -> None:
    ours.led(6, 1)
    ours.until_read(12)
    looked_up = len(brokers.requests(MetadataRequest))
    brokers.leader_epochs[LOG] = 5
    ours.cluster.want_metadata()
    ours.until(lambda: len(brokers.requests(MetadataRequest)) > looked_up + 1)
    assert ours.cluster.leader_epochs[T] == 6

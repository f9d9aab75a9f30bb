"""Races that real brokers rarely show: lost answers, late errors, moved leaders. Each batch is taken once, in order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest

from heliograph.errors import TaskError
from heliograph.kafka.produce.target_partition import DRAINING_STATES, Outgoing
from heliograph.model import TopicPartition
from tests.support.brokers.producing import TP, Producing, batch_of
from tests.support.brokers.scripted_broker import LOST_AFTER, LOST_BEFORE, AppendedBut, ScriptedCluster, Seen

NOT_LEADER, TIMED_OUT, TOO_LARGE, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_AFTER_APPEND = 6, 7, 10, 19, 20
OUT_OF_ORDER, DUPLICATE, INVALID_EPOCH, CONCURRENT, UNKNOWN_PRODUCER = 45, 46, 47, 51, 59


@pytest.fixture
def brokers() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(2, topics={"t": 2}) as cluster:
        yield cluster


@pytest.fixture
def ours(brokers: ScriptedCluster) -> Iterator[Producing]:
    with Producing(brokers) as producing:
        yield producing


def test_a_partitions_first_batch_travels_alone(brokers: ScriptedCluster, ours: Producing) -> None:
    brokers.hold(ProduceRequest)
    ours.send(1, 2, 3)
    ours.until(lambda: ours.sequences() == [0])
    ours.for_a_moment()
    assert ours.sequences() == [0]
    brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 3)
    assert ours.in_log() == [0, 2, 4]


def test_later_batches_fill_the_pipeline_up_to_its_limit(brokers: ScriptedCluster, ours: Producing) -> None:
    ours.send(1)
    ours.until_acked(1)
    brokers.hold(ProduceRequest)
    ours.send(2, 3, 4, 5, 6, 7, 8)
    ours.until(lambda: len(ours.sequences()) == 6)
    ours.for_a_moment()
    assert ours.sequences() == [0, 2, 4, 6, 8, 10]
    brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 3, 4, 5, 6, 7, 8)


def test_a_lost_answer_is_retried_with_the_same_bytes_and_reported_once(
    brokers: ScriptedCluster, ours: Producing
) -> None:
    brokers.script(ProduceRequest, LOST_AFTER)
    ours.send(1)
    ours.until_acked(1)
    first, again = ours.sent()
    assert first == again
    assert ours.in_log() == [0]
    assert ours.acked == [(1, 0)]


def test_a_request_lost_on_its_way_is_sent_again_with_the_same_bytes(brokers: ScriptedCluster, ours: Producing) -> None:
    brokers.script(ProduceRequest, LOST_BEFORE)
    ours.send(1, 2)
    ours.until_acked(1, 2)
    first, again, _second = ours.sent()
    assert first == again
    assert ours.in_log() == [0, 2]


@pytest.mark.parametrize("lost", [LOST_BEFORE, LOST_AFTER])
def test_a_connection_lost_under_a_full_pipeline_repeats_and_skips_nothing(
    brokers: ScriptedCluster, ours: Producing, lost: object
) -> None:
    ours.send(1)
    ours.until_acked(1)
    brokers.script(ProduceRequest, None, lost)
    brokers.hold(ProduceRequest)
    ours.send(2, 3, 4, 5)
    ours.until(lambda: len(ours.sequences()) == 5)
    brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 3, 4, 5)
    assert ours.in_log() == [0, 2, 4, 6, 8]
    assert [base for _tag, base in ours.acked] == [0, 2, 4, 6, 8]


def test_a_second_batch_acknowledged_before_the_first_is_reported_after_it(
    brokers: ScriptedCluster, ours: Producing
) -> None:
    ours.send(1)
    ours.until_acked(1)
    brokers.script(ProduceRequest, AppendedBut(NOT_ENOUGH_AFTER_APPEND))
    brokers.hold(ProduceRequest)
    ours.send(2, 3)
    ours.until(lambda: len(ours.sequences()) == 3)
    brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 3)
    assert ours.in_log() == [0, 2, 4]
    assert ours.acked == [(1, 0), (2, 2), (3, 4)]
    assert ours.producer.unsettled_batches == 0


def test_batches_after_a_refused_one_are_out_of_order_and_are_sent_again_after_it(
    brokers: ScriptedCluster, ours: Producing
) -> None:
    ours.send(1)
    ours.until_acked(1)
    brokers.script(ProduceRequest, NOT_ENOUGH_REPLICAS)  # the log itself refuses the later ones
    brokers.hold(ProduceRequest)
    ours.send(2, 3, 4)
    ours.until(lambda: len(ours.sequences()) == 4)
    brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 3, 4)
    assert ours.sequences() == [0, 2, 4, 6, 2, 4, 6]
    assert ours.in_log() == [0, 2, 4, 6]


def test_nothing_is_sent_while_an_error_drains(brokers: ScriptedCluster, ours: Producing) -> None:
    ours.send(1)
    ours.until_acked(1)
    ours.send(2, 3)
    brokers.script(ProduceRequest, TIMED_OUT, _held_answer(brokers))
    ours.until(lambda: ours.producer.partitions[TP].state in DRAINING_STATES)
    ours.send(4, 5)
    ours.for_a_moment(0.3)
    assert ours.sequences() == [0, 2, 4]
    brokers.release(_held_answer)
    ours.until_acked(1, 2, 3, 4, 5)
    assert ours.in_log() == [0, 2, 4, 6, 8]


def _held_answer(brokers: ScriptedCluster) -> object:
    """An action that waits for a gate of its own, so that the answer before it can come."""
    brokers.hold(_held_answer)

    def answer(seen: Seen) -> object:
        brokers.wait_for(_held_answer)
        return brokers.ordinary(seen)

    return answer


def test_out_of_order_for_the_oldest_batch_ends_the_task(brokers: ScriptedCluster, ours: Producing) -> None:
    ours.send(1)
    ours.until_acked(1)
    brokers.script(ProduceRequest, OUT_OF_ORDER)
    ours.send(2)
    with pytest.raises(TaskError, match="begins again"):
        ours.for_a_moment(60)


def test_a_duplicate_is_an_acknowledgement_without_an_offset(brokers: ScriptedCluster, ours: Producing) -> None:
    brokers.script(ProduceRequest, AppendedBut(DUPLICATE))
    ours.send(1, 2)
    ours.until_acked(1, 2)
    assert ours.acked == [(1, -1), (2, 2)]
    assert ours.sequences() == [0, 2]


@pytest.mark.parametrize("code", [UNKNOWN_PRODUCER, INVALID_EPOCH])
def test_a_producer_the_broker_does_not_take_ends_the_task(
    brokers: ScriptedCluster, ours: Producing, code: int
) -> None:
    brokers.script(ProduceRequest, None, code)
    ours.send(1, 2)
    with pytest.raises(TaskError, match="refused our producer for t-0"):
        ours.for_a_moment(60)
    assert ours.sequences() == [0, 2]


# --- leaders that move ------------------------------------------------------------------------------------------------


def test_a_leader_that_moves_under_a_full_pipeline_takes_all_in_order(
    brokers: ScriptedCluster, ours: Producing
) -> None:
    ours.send(1)
    ours.until_acked(1)
    brokers.hold(ProduceRequest)
    ours.send(2, 3, 4)
    ours.until(lambda: len(ours.sequences()) == 4)
    brokers.leaders["t", 0] = 2
    brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 3, 4)
    assert ours.sequences(node_id=1) == [0, 2, 4, 6]
    assert ours.sequences(node_id=2)[:3] == [2, 4, 6]
    assert ours.in_log() == [0, 2, 4, 6]


def test_a_moved_partition_waits_for_the_old_leaders_answers(brokers: ScriptedCluster, ours: Producing) -> None:
    ours.send(1)
    ours.until_acked(1)
    brokers.hold(ProduceRequest)
    ours.send(2)
    ours.until(lambda: len(ours.sequences()) == 2)
    asked = len(brokers.requests(MetadataRequest))
    brokers.leaders["t", 0] = 2
    ours.cluster.want_metadata()
    ours.until(lambda: ours.cluster.leaders[TP] == 2)
    assert len(brokers.requests(MetadataRequest)) == asked + 1
    ours.send(3)
    ours.for_a_moment()
    assert ours.sequences() == [0, 2]
    brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 3)
    assert ours.sequences(node_id=2) == [2, 4]
    assert ours.in_log() == [0, 2, 4]


def test_the_first_batch_after_an_error_travels_alone(brokers: ScriptedCluster, ours: Producing) -> None:
    """A topic created again has no state of ours: were two under way, the second could be taken before the first."""
    ours.send(1)
    ours.until_acked(1)
    brokers.script(ProduceRequest, NOT_LEADER, NOT_LEADER)
    brokers.hold(ProduceRequest)
    ours.send(2, 3)
    ours.until(lambda: len(ours.sequences()) == 3)
    del brokers.logs["t", 0]
    brokers.script(ProduceRequest, NOT_LEADER)  # the new topic's leader is not ready, and is a moment later
    brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 3)
    assert ours.in_log() == [2, 4]


def test_a_broker_that_dies_leaves_its_partitions_to_the_next(brokers: ScriptedCluster, ours: Producing) -> None:
    ours.send(1)
    ours.until_acked(1)
    brokers.brokers[1].stop()
    del brokers.brokers[1]
    brokers.leaders.update({("t", 0): 2, ("t", 1): 2})
    ours.send(2, 3)
    ours.until_acked(1, 2, 3)
    assert ours.in_log() == [0, 2, 4]


def test_a_partition_without_a_leader_is_wanted_again_when_it_has_one(
    brokers: ScriptedCluster, ours: Producing
) -> None:
    """What waited for it was given back to be read later: no batch is left whose success could end the issue."""
    ours.reads_again = True
    del brokers.leaders["t", 0]
    ours.send(1)
    ours.until(lambda: ours.producer.partitions[TP].issue)
    assert ours.producer.is_idle
    brokers.leaders["t", 0] = 2
    ours.until(lambda: ours.producer.partitions[TP].issue is None)
    ours.send(1)
    ours.until_acked(1)


def test_markers_that_are_not_written_for_long_are_asked_about_less_and_less_often(
    brokers: ScriptedCluster, ours: Producing
) -> None:
    """For a moment that is the rule at each transaction's begin; a partition without a leader can make it hours."""
    pauses: list[int] = []

    def unfinished(seen: Seen) -> object:
        pauses.append(ours.producer.partitions[TP].backoff.failures)
        return brokers.ordinary(seen, CONCURRENT)

    brokers.script(ProduceRequest, *[unfinished] * 23, None, unfinished)
    ours.send(1)
    ours.until_acked(1)
    ours.send(2)
    ours.until_acked(1, 2)
    assert pauses == [0] * 21 + [1, 2] + [0]
    assert ours.in_log() == [0, 2]


# --- too large, throttled, held ---------------------------------------------------------------------------------------


def test_sequences_continue_where_a_batch_too_large_was_refused(brokers: ScriptedCluster, ours: Producing) -> None:
    ours.send(1)
    ours.until_acked(1)
    halves = [Outgoing(memoryview(batch_of(20 + n, records=1)), 1, None, 20 + n) for n in range(2)]
    ours.instead = halves
    brokers.script(ProduceRequest, TOO_LARGE)
    brokers.hold(ProduceRequest)
    ours.send(2, 3, 4)
    ours.until(lambda: len(ours.sequences()) == 4)
    brokers.release(ProduceRequest)
    ours.until_acked(1, 20, 21, 3, 4)
    assert ours.in_log() == [0, 2, 3, 4, 6]
    assert ours.producer.unsettled_batches == 0
    assert ours.producer.partitions[TP].queued_bytes == 0


def test_a_batch_left_out_leaves_no_gap_in_the_sequences(brokers: ScriptedCluster, ours: Producing) -> None:
    ours.instead = []
    brokers.script(ProduceRequest, TOO_LARGE)
    ours.send(1, 2, 3)
    ours.until_acked(2, 3)
    assert ours.in_log() == [0, 2]
    assert ours.producer.unsettled_batches == 0


@pytest.mark.parametrize("records", [1, 2])
def test_a_batch_too_large_that_may_be_there_already_is_neither_left_out_nor_cut(
    brokers: ScriptedCluster, ours: Producing, records: int
) -> None:
    """Others would have its sequences: the broker would take the next of its size for a repeat and lose it."""
    ours.instead = [Outgoing(memoryview(batch_of(20 + n, records=1)), 1, None, 20 + n) for n in range(records - 1)]
    brokers.script(ProduceRequest, LOST_AFTER, TOO_LARGE)
    for number in (1, 2):
        outgoing = Outgoing(memoryview(batch_of(number, records=records)), records, None, number)
        ours.producer.enqueue(ours.producer.add(TP), outgoing)
    with pytest.raises(TaskError, match="t-0: the target finds it too large, and an earlier try of the batch may have"):
        ours.for_a_moment(60)
    assert ours.acked == []
    assert ours.in_log() == [0]


def test_a_batch_left_out_with_none_after_it_leaves_no_issue(brokers: ScriptedCluster, ours: Producing) -> None:
    """An issue holds the reading back, and with an empty queue nothing would end it."""
    ours.reads_again = True
    ours.instead = []
    brokers.script(ProduceRequest, TOO_LARGE)
    ours.send(1, 2)
    ours.until(lambda: ours.producer.is_idle)
    assert ours.producer.partitions[TP].issue is None


def test_a_batch_too_large_after_a_lost_one_is_replaced_in_its_turn(brokers: ScriptedCluster, ours: Producing) -> None:
    ours.send(1)
    ours.until_acked(1)
    ours.instead = []
    brokers.script(ProduceRequest, NOT_ENOUGH_REPLICAS, TOO_LARGE, None, None, TOO_LARGE)
    brokers.hold(ProduceRequest)
    ours.send(2, 3, 4)
    ours.until(lambda: len(ours.sequences()) == 4)
    brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 4)
    assert ours.in_log() == [0, 2, 4]


def test_a_partition_given_up_does_not_hold_up_its_neighbour(brokers: ScriptedCluster, ours: Producing) -> None:
    other = TopicPartition("t", 1)
    brokers.script(ProduceRequest, 29)
    ours.send(1, 2)
    ours.until(lambda: ours.failed)
    assert "the principal needs WRITE on it" in ours.failed[0]
    ours.send(3, tp=other)
    ours.until_acked(3)
    assert ours.producer.unsettled_batches == 0
    assert ours.producer.is_idle


def test_no_produce_request_leaves_before_a_throttle_is_over(brokers: ScriptedCluster, ours: Producing) -> None:
    def throttled(seen: Seen) -> object:
        answer = brokers.ordinary(seen)
        answer.throttle_time_ms = 400
        return answer

    brokers.script(ProduceRequest, throttled)
    ours.send(1, 2)
    ours.until_acked(1, 2)
    first, second = brokers.seen_of(ProduceRequest)
    assert second.at - first.at >= 0.4
    assert ours.producer.throttled_ms == 400


def test_a_throttle_that_is_over_keeps_nobody_awake(brokers: ScriptedCluster, ours: Producing) -> None:
    def throttled(seen: Seen) -> object:
        answer = brokers.ordinary(seen)
        answer.throttle_time_ms = 1000
        return answer

    brokers.script(ProduceRequest, throttled)
    ours.send(1)
    ours.until_acked(1)
    assert ours.producer.has_retries
    ours.until(lambda: not ours.producer.has_retries)


def test_a_held_producer_sends_only_what_was_sent_and_what_may_pass(brokers: ScriptedCluster, ours: Producing) -> None:
    ours.send(1)
    ours.until_acked(1)
    brokers.script(ProduceRequest, LOST_BEFORE)
    ours.send(2)
    ours.until(lambda: len(ours.sequences()) == 2)
    ours.producer.hold()
    ours.send(3)
    ours.send(9, tp=TopicPartition("t", 1), passes_hold=True)
    ours.until(lambda: len(ours.acked) == 3)
    ours.for_a_moment()
    assert {tag for tag, _base in ours.acked} == {1, 2, 9}
    ours.producer.release()
    ours.until(lambda: len(ours.acked) == 4)
    assert ours.in_log() == [0, 2, 4]

"""The talk with the transaction coordinator, in both of Kafka's protocols, where answers are late, lost or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kafka.protocol.admin import DescribeTransactionsRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest

from heliograph.errors import FencedError, TaskError
from heliograph.model import TopicPartition
from tests.support.brokers.producing import Producing
from tests.support.brokers.scripted_broker import LOST_AFTER, LOST_BEFORE, ScriptedCluster, Seen

NOT_COORDINATOR, LOADING, CONCURRENT, UNKNOWN_TOPIC, NOT_ATTEMPTED = 16, 14, 51, 3, 55
INVALID_EPOCH, UNKNOWN_PRODUCER, INVALID_STATE, ID_NOT_FOUND = 47, 59, 48, 105
TOO_LARGE, NOT_ENOUGH_REPLICAS, TOPIC_DENIED = 10, 19, 29
TALK = (FindCoordinatorRequest, InitProducerIdRequest, AddPartitionsToTxnRequest, ProduceRequest, EndTxnRequest)

Opened = Callable[[int], Producing]


@pytest.fixture(autouse=True)
def _rivals_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scripted rival leaves its mark at once."""
    monkeypatch.setattr("heliograph.kafka.produce.producer_session._RIVALS_TIME_S", 0.5)


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Makes a transactional producer on two brokers that have finalized a transaction version."""
    closing = []

    def make(transaction_version: int) -> Producing:
        brokers = ScriptedCluster(2, topics={"t": 2}, transaction_version=transaction_version)
        ours = Producing(brokers, transactional_id="us")
        closing.extend((ours, brokers))
        return ours

    yield make
    for each in closing:
        each.__exit__()


def talk(ours: Producing) -> list[str]:
    """What was said to the brokers, in order, in short."""
    with ours.brokers.lock:
        return [type(s.request).__name__.removesuffix("Request") for s in ours.brokers.seen if type(s.request) in TALK]


def end(ours: Producing) -> None:
    ended: list[bool] = []
    ours.session.end(lambda: ended.append(True))
    ours.until(lambda: ended)


def test_the_first_protocol_adds_a_partition_before_its_first_batch(opened: Opened) -> None:
    ours = opened(0)
    ours.send(1, 2)
    ours.until_acked(1, 2)
    end(ours)
    ours.send(3)
    ours.until_acked(1, 2, 3)
    first = ["FindCoordinator", "InitProducerId", "AddPartitionsToTxn", "Produce", "Produce", "EndTxn"]
    assert talk(ours) == [*first, "AddPartitionsToTxn", "Produce"]
    assert [stamp.epoch for stamp in ours.stamps()] == [0, 0, 0]
    assert ours.sequences() == [0, 2, 4]
    assert {request.transactional_id for request in ours.brokers.requests(ProduceRequest)} == {"us"}
    assert max(request.API_VERSION for request in ours.brokers.requests(ProduceRequest)) == 11


def test_the_second_protocol_adds_nothing_and_begins_each_transaction_at_sequence_0(opened: Opened) -> None:
    ours = opened(2)
    ours.send(1, 2)
    ours.until_acked(1, 2)
    end(ours)
    ours.send(3, 4)
    ours.until_acked(1, 2, 3, 4)
    assert "AddPartitionsToTxn" not in talk(ours)
    assert [(stamp.epoch, stamp.sequence) for stamp in ours.stamps()] == [(0, 0), (0, 2), (1, 0), (1, 2)]
    assert [request.API_VERSION for request in ours.brokers.requests(EndTxnRequest)] == [5]
    assert {request.API_VERSION for request in ours.brokers.requests(ProduceRequest)} == {12}


def test_the_first_batch_under_a_new_epoch_travels_alone(opened: Opened) -> None:
    ours = opened(2)
    ours.send(1)
    ours.until_acked(1)
    end(ours)
    ours.brokers.hold(ProduceRequest)
    ours.send(2, 3)
    ours.until(lambda: len(ours.sequences()) == 2)
    ours.for_a_moment()
    assert ours.sequences() == [0, 0]
    ours.brokers.release(ProduceRequest)
    ours.until_acked(1, 2, 3)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("lost", [LOST_AFTER, LOST_BEFORE])
def test_a_lost_end_is_repeated_under_the_same_epoch(opened: Opened, version: int, lost: object) -> None:
    ours = opened(version)
    ours.send(1)
    ours.until_acked(1)
    ours.brokers.script(EndTxnRequest, lost)
    end(ours)
    ends = ours.brokers.requests(EndTxnRequest)
    assert [(r.producer_id, r.producer_epoch, r.committed) for r in ends] == [(1000, 0, True)] * 2
    assert len(ours.brokers.requests(FindCoordinatorRequest)) >= 2
    ours.send(2)
    ours.until_acked(1, 2)
    assert ours.stamps()[-1].epoch == (1 if version else 0)


@pytest.mark.parametrize("request_class", [InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest])
def test_markers_still_being_written_are_waited_for_at_the_same_coordinator(
    opened: Opened, request_class: type
) -> None:
    ours = opened(0)
    ours.brokers.script(request_class, CONCURRENT, CONCURRENT)
    ours.send(1)
    ours.until_acked(1)
    end(ours)
    assert len(ours.brokers.requests(request_class)) == 3
    assert len(ours.brokers.requests(FindCoordinatorRequest)) == 1


@pytest.mark.parametrize("request_class", [InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest])
def test_markers_that_are_not_written_for_long_are_asked_about_less_and_less_often(
    opened: Opened, request_class: type
) -> None:
    ours = opened(0)
    pauses: list[int] = []

    def unfinished(seen: Seen) -> object:
        pauses.append(ours.session._backoff.failures)
        return ours.brokers.ordinary(seen, CONCURRENT)

    ours.brokers.script(request_class, *[unfinished] * 23)
    ours.send(1)
    ours.until_acked(1)
    end(ours)
    assert pauses == [0] * 21 + [1, 2]
    assert len(ours.brokers.requests(FindCoordinatorRequest)) == 1


@pytest.mark.parametrize("request_class", [InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest])
@pytest.mark.parametrize("code", [NOT_COORDINATOR, LOADING])
def test_a_coordinator_that_moved_is_looked_for_again(opened: Opened, request_class: type, code: int) -> None:
    ours = opened(0)

    def moved(seen: Seen) -> object:
        ours.brokers.coordinator = 2
        return ours.brokers.ordinary(seen, code)

    ours.brokers.script(request_class, moved)
    ours.send(1)
    ours.until_acked(1)
    end(ours)
    assert [seen.node_id for seen in ours.brokers.seen_of(request_class)] == [1, 2]


def test_a_coordinator_that_died_between_two_requests_is_looked_for_again(opened: Opened) -> None:
    ours = opened(0)
    ours.brokers.leaders.update({("t", 0): 2, ("t", 1): 2})
    ours.send(1)
    ours.until_acked(1)
    ours.brokers.brokers[1].stop()
    del ours.brokers.brokers[1]
    ours.brokers.coordinator = 2
    ours.for_a_moment(0.2)  # the connection is lost while nothing is asked
    end(ours)
    assert [seen.node_id for seen in ours.brokers.seen_of(EndTxnRequest)] == [2]


def test_a_partition_that_could_not_be_added_does_not_abort_its_neighbours(opened: Opened) -> None:
    """Where one partition is refused, a coordinator attempts none of the others, and says so."""
    ours = opened(0)

    def one_unknown(seen: Seen) -> object:
        answer = ours.brokers.ordinary(seen, NOT_ATTEMPTED)
        answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code = UNKNOWN_TOPIC
        return answer

    ours.brokers.script(AddPartitionsToTxnRequest, one_unknown)
    ours.send(1)
    ours.send(2, tp=TopicPartition("t", 1))
    ours.until(lambda: len(ours.acked) == 2)
    assert len(ours.brokers.requests(AddPartitionsToTxnRequest)) == 2


def test_a_topic_that_is_gone_keeps_no_other_partition_out_of_the_transaction_and_does_not_keep_it_open(
    opened: Opened,
) -> None:
    ours = opened(0)
    ours.brokers.leaders["gone", 0] = 1
    gone = TopicPartition("gone", 0)
    ours.producer.add(gone)
    ours.until(lambda: gone in ours.cluster.leaders and ours.session.is_ready)
    del ours.brokers.leaders["gone", 0]

    def all_or_none(seen: Seen) -> object:
        names = [topic.name for topic in seen.request.v3_and_below_topics]
        answer = ours.brokers.ordinary(seen, NOT_ATTEMPTED if "gone" in names else None)
        for topic in answer.results_by_topic_v3_and_below:
            if topic.name == "gone":
                topic.results_by_partition[0].partition_error_code = UNKNOWN_TOPIC
        return answer

    ours.brokers.script(AddPartitionsToTxnRequest, *[all_or_none] * 1000)
    ours.send(1, tp=gone)
    ours.send(2)
    ours.until_acked(2)
    end(ours)
    assert ours.producer.partitions[gone].issue == (
        "the target has no topic gone; the next topic refresh creates it, if refresh.topics.enabled"
    )


# --- refused for good -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("code", [TOPIC_DENIED, TOO_LARGE])
def test_a_batch_whose_answer_was_lost_and_that_is_then_refused_takes_its_transaction_along(
    opened: Opened, version: int, code: int
) -> None:
    """Its first try is in the log: committed, it would be there twice after the next start, which begins with it."""
    ours = opened(version)
    ours.brokers.script(ProduceRequest, LOST_AFTER, code)
    ours.send(1)
    with pytest.raises(TaskError, match=r"t-0: .*an earlier try of the batch may have come through"):
        ours.for_a_moment(60)
    assert ours.in_log() == [0]
    assert ours.failed == []
    assert ours.producer.unsettled_batches == 1, "or the transaction would be committed"


@pytest.mark.parametrize("version", [0, 2])
def test_a_batch_that_was_only_ever_refused_fails_its_partition_and_the_others_are_committed(
    opened: Opened, version: int
) -> None:
    ours = opened(version)
    ours.brokers.script(ProduceRequest, NOT_ENOUGH_REPLICAS, TOPIC_DENIED)
    ours.send(1)
    ours.until(lambda: ours.failed)
    ours.send(2, tp=TopicPartition("t", 1))
    ours.until_acked(2)
    assert ours.producer.unsettled_batches == 0
    end(ours)


# --- who is fenced, and who is not ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [INVALID_EPOCH, UNKNOWN_PRODUCER, INVALID_STATE])
def test_a_refused_producer_whose_mark_is_not_the_coordinators_is_fenced(opened: Opened, code: int) -> None:
    ours = opened(0)
    ours.brokers.script(ProduceRequest, None, code)
    ours.send(1)
    ours.until_acked(1)
    ours.brokers.transaction_timeout_ms += 1  # another instance has begun with its own
    ours.send(2)
    with pytest.raises(FencedError, match="another instance has taken over as the producer us"):
        ours.for_a_moment(60)
    assert len(ours.brokers.requests(DescribeTransactionsRequest)) == 1


@pytest.mark.parametrize("code", [INVALID_EPOCH, UNKNOWN_PRODUCER, INVALID_STATE])
def test_a_refused_producer_whose_mark_is_still_there_begins_again(opened: Opened, code: int) -> None:
    ours = opened(0)
    ours.brokers.script(ProduceRequest, None, code)
    ours.send(1, 2)
    with pytest.raises(TaskError) as ended:
        ours.for_a_moment(60)
    assert not isinstance(ended.value, FencedError)
    assert "begins again" in str(ended.value)
    assert ours.sequences() == [0, 2], "a doomed producer sends nothing more"


def test_the_coordinators_refusal_to_end_is_asked_about_too(opened: Opened) -> None:
    ours = opened(2)
    ours.send(1)
    ours.until_acked(1)
    ours.brokers.transaction_timeout_ms += 1
    ours.brokers.script(EndTxnRequest, INVALID_EPOCH)
    with pytest.raises(FencedError):
        end(ours)


@pytest.mark.parametrize("issue", [NOT_COORDINATOR, LOST_BEFORE])
def test_the_question_who_we_are_is_repeated_until_it_is_answered(opened: Opened, issue: object) -> None:
    ours = opened(0)
    ours.brokers.script(DescribeTransactionsRequest, issue)
    ours.brokers.script(ProduceRequest, INVALID_EPOCH)
    ours.send(1)
    with pytest.raises(TaskError) as ended:
        ours.for_a_moment(60)
    assert not isinstance(ended.value, FencedError)
    assert len(ours.brokers.requests(DescribeTransactionsRequest)) >= 2


def test_an_id_the_coordinator_has_forgotten_is_not_taken_for_a_rival(opened: Opened) -> None:
    ours = opened(0)
    ours.brokers.script(DescribeTransactionsRequest, ID_NOT_FOUND)
    ours.brokers.script(ProduceRequest, INVALID_EPOCH)
    ours.send(1)
    with pytest.raises(TaskError) as ended:
        ours.for_a_moment(60)
    assert not isinstance(ended.value, FencedError)

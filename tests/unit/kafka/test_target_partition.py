"""The states of a target partition, and the batches it holds in each."""

from __future__ import annotations

import pytest

from heliograph.kafka.net.buffers import BufferPool
from heliograph.kafka.produce.producer_session import Identity
from heliograph.kafka.produce.target_partition import (
    TARGET_PARTITION_STATES,
    Backlog,
    Outgoing,
    TargetPartition,
    TargetPartitionState,
)
from heliograph.states import IllegalTransitionError
from heliograph.wire.batches.forward import Piece
from tests.support.brokers.producing import TP, batch_of

State = TargetPartitionState
IDENTITY = Identity(7, 0)


@pytest.fixture
def partition() -> TargetPartition:
    return TargetPartition(TP, Backlog())


def queue(partition: TargetPartition, *numbers: int, pool: BufferPool | None = None) -> list[Outgoing]:
    views = [memoryview(batch_of(number)) for number in numbers]
    queued = [Outgoing(view, 2, lambda *_acked: None, buffer=pool.own(view) if pool else None) for view in views]
    for outgoing in queued:
        partition.enqueue(outgoing)
    return queued


def send(partition: TargetPartition, identity: Identity = IDENTITY) -> Outgoing:
    if not partition.queue[0].is_sent:
        partition.stamp_head(identity, is_transactional=False)
    return partition.take_head(node_id=1)


def test_every_state_can_be_reached_and_only_failure_is_final() -> None:
    reached, found = set(), {TARGET_PARTITION_STATES.initial}
    while found - reached:
        state = (found - reached).pop()
        reached.add(state)
        found |= TARGET_PARTITION_STATES.transitions[state]
    assert reached == set(State)
    assert [state for state in State if not TARGET_PARTITION_STATES.transitions[state]] == [State.FAILED]


def test_the_first_acknowledgement_opens_the_pipeline_and_a_new_identity_closes_it(partition: TargetPartition) -> None:
    queue(partition, 1, 2)
    assert partition.state is State.FIRST_BATCH_ALONE
    partition.acknowledge(send(partition), 0)
    assert partition.state is State.OPEN
    send(partition, Identity(7, 1))
    assert partition.state is State.FIRST_BATCH_ALONE
    assert partition.in_flight[-1].sequence == 0


def test_an_acknowledgement_while_draining_does_not_open_the_pipeline(partition: TargetPartition) -> None:
    queue(partition, 1, 2, 3)
    partition.acknowledge(send(partition), 0)
    second, _third = send(partition), send(partition)
    partition.drain(soon=True)
    partition.acknowledge(second, 2)
    assert partition.state is State.DRAINING
    partition.drain(soon=False)
    assert partition.state is State.DRAINING_TO_BACK_OFF
    partition.drain(soon=True)
    assert partition.state is State.DRAINING_TO_BACK_OFF
    assert not partition.may_send(now=1e9)


def test_a_back_off_ends_at_its_time_with_one_batch_alone(partition: TargetPartition) -> None:
    partition.drain(soon=False)
    partition.become(State.BACKING_OFF)
    partition.retry_at = 5.0
    assert not partition.may_send(now=4.9)
    assert partition.state is State.BACKING_OFF
    assert partition.may_send(now=5.0)
    assert partition.state is State.FIRST_BATCH_ALONE


def test_a_failed_partition_stays_failed(partition: TargetPartition) -> None:
    partition.fail()
    with pytest.raises(IllegalTransitionError, match="FAILED cannot become DRAINING_TO_BACK_OFF"):
        partition.drain(soon=False)


def test_a_failed_partition_frees_the_memory_of_batches_in_flight_after_the_last_answer(
    partition: TargetPartition,
) -> None:
    pool = BufferPool(1 << 20)
    queue(partition, 1, 2, 3, pool=pool)
    assert len(partition.acknowledge(send(partition), 0)) == 1
    for _batch in (2, 3):
        send(partition)
    partition.awaited -= 1  # the answer that fails it
    partition.fail()
    assert pool.held_bytes > 0
    partition.answered_after_failure()
    assert pool.held_bytes == 0
    assert partition.is_idle
    assert partition.backlog.unsettled_batches == 0


def test_acknowledged_batches_come_out_in_order(partition: TargetPartition) -> None:
    queue(partition, 1, 2)
    first, second = send(partition), send(partition)
    assert partition.acknowledge(second, 2) == []
    assert partition.acknowledge(first, 0) == [first, second]


def test_the_backlog_holds_exactly_the_partitions_with_a_queue(partition: TargetPartition) -> None:
    ready = partition.backlog.ready
    sent = queue(partition, 1, 2)
    assert list(ready) == [TP]
    send(partition)
    send(partition)
    assert not ready
    partition.requeue()
    (unsent,) = queue(partition, 3)
    assert list(ready) == [TP]
    assert partition.drop_unsent() is unsent
    assert list(partition.queue) == sent
    partition.replace_head([])
    assert [outgoing.is_sent for outgoing in partition.queue] == [False]
    partition.drop_unsent()
    assert not ready
    assert partition.backlog.unsettled_batches == 0
    assert partition.queued_bytes == 0


def test_only_fetched_records_that_are_not_acknowledged_are_counted(partition: TargetPartition) -> None:
    own, *fetched = queue(partition, 1, 2, 3)
    for number, outgoing in enumerate(fetched):
        outgoing.piece = Piece(2 * number, 2 * number + 1, 2, 0, outgoing.view, is_shared=False)
    assert own.piece is None
    assert partition.unacknowledged_records == 4
    partition.acknowledge(send(partition), 0)
    second = send(partition)
    assert partition.unacknowledged_records == 4
    partition.acknowledge(second, 2)
    assert partition.unacknowledged_records == 2
    partition.drop_unsent()
    assert partition.unacknowledged_records == 0

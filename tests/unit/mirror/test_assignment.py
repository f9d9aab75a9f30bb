"""Partitions are spread over tasks, and stay where they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.mirror.topics.task_assignment import assign, task_count
from heliograph.model import TopicPartition

partitions = st.lists(st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 20)), unique=True)


def test_the_first_assignment_is_mm2s_round_robin() -> None:
    tps = [TopicPartition("t0", n) for n in range(8)] + [TopicPartition("t1", n) for n in range(2)]
    tps += [TopicPartition("t2", n) for n in range(2)]
    expected = ["t0-0,t0-3,t0-6,t1-1", "t0-1,t0-4,t0-7,t2-0", "t0-2,t0-5,t1-0,t2-1"]
    assert [",".join(map(str, sorted(task))) for task in assign(tps, 3)] == expected


def test_tasks_are_as_many_as_asked_for_or_as_can_be_used() -> None:
    assert task_count(partitions=8, tasks_max=0, slots=4).tasks == 4
    assert task_count(partitions=3, tasks_max=0, slots=4).tasks == 3
    assert task_count(partitions=8, tasks_max=2, slots=4).tasks == 2
    assert task_count(partitions=0, tasks_max=0, slots=4).tasks == 1


def test_flows_share_the_slots() -> None:
    assert task_count(partitions=8, tasks_max=3, slots=4, flows=2) == (2, 2)
    assert task_count(partitions=8, tasks_max=2, slots=4, flows=2) == (2, None)


def test_with_fewer_slots_than_flows_each_flow_has_a_task_that_may_wait() -> None:
    assert task_count(partitions=8, tasks_max=0, slots=1, flows=2) == (1, None)
    assert task_count(partitions=8, tasks_max=3, slots=0, flows=2) == (1, 1)


def test_where_spark_grows_for_tasks_their_maximum_decides() -> None:
    assert task_count(partitions=8, tasks_max=6, slots=1, grows=True) == (6, None)
    assert task_count(partitions=8, tasks_max=0, slots=2, grows=True) == (2, None), "without one its slots do"


def test_running_tasks_are_not_taken_away() -> None:
    assert task_count(partitions=1, tasks_max=0, slots=4, running=3).tasks == 3


@given(partitions, partitions, st.integers(1, 5), st.integers(0, 3))
def test_every_partition_has_one_task_and_none_moves(
    before: list[TopicPartition], after: list[TopicPartition], tasks: int, more: int
) -> None:
    first = assign(before, tasks)
    assert max(map(len, first)) - min(map(len, first)) <= 1
    second = assign(after, tasks + more, first)
    assert sorted(tp for task in second for tp in task) == sorted(after)
    for number, task in enumerate(first):
        assert task & set(after) <= second[number]
    assert assign(after, tasks + more, second) == second

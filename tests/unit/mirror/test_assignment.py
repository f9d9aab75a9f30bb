"""Partitions are spread over tasks, and move only if that helps."""

from __future__ import annotations

import time
from collections.abc import Iterable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from heliograph.mirror.topics.task_assignment import assign, rebalance, task_count
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


loads = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 20)),
    st.one_of(st.just(0.0), st.floats(0, 1e9)),
    min_size=1,
)


def spread(tps: Iterable[TopicPartition], tasks: int, seed: int) -> list[frozenset[TopicPartition]]:
    chance = Random(seed)
    shares: list[set[TopicPartition]] = [set() for _ in range(tasks)]
    for tp in tps:
        chance.choice(shares).add(tp)
    return [frozenset(share) for share in shares]


@given(loads, st.integers(1, 5), st.integers(1, 5), st.integers(0, 99), st.integers(0, 5))
def test_rebalancing_makes_no_task_busier_than_the_busiest_and_comes_to_rest(
    bytes_per_s: dict[TopicPartition, float], before: int, after: int, seed: int, fixed_count: int
) -> None:
    shares = spread(bytes_per_s, before, seed)
    fixed = frozenset(sorted(bytes_per_s)[:fixed_count])
    balanced = rebalance(shares, bytes_per_s, after, fixed)
    assert len(balanced) == after
    assert sorted(tp for share in balanced for tp in share) == sorted(bytes_per_s)
    assert rebalance(balanced, bytes_per_s, after, fixed) == balanced
    for old, new in zip(shares, balanced, strict=False):
        assert old & fixed <= new
    if after >= before:
        heaviest = max(sum(map(bytes_per_s.__getitem__, share)) for share in shares)
        assert max(sum(map(bytes_per_s.__getitem__, share)) for share in balanced) <= heaviest * 1.02 + 1
    if not fixed and after <= len(bytes_per_s):
        assert all(balanced), "each task has something to do"


@given(loads, st.integers(1, 5), st.integers(0, 99), st.sets(st.integers(0, 5)))
def test_idle_tasks_have_no_partition_while_others_can_have_them(
    bytes_per_s: dict[TopicPartition, float], tasks: int, seed: int, idle: set[int]
) -> None:
    balanced = rebalance(spread(bytes_per_s, tasks, seed), bytes_per_s, tasks, idle=idle)
    assert sorted(tp for share in balanced for tp in share) == sorted(bytes_per_s)
    assert rebalance(balanced, bytes_per_s, tasks, idle=idle) == balanced
    if not idle >= set(range(tasks)):
        assert not any(balanced[number] for number in idle if number < tasks)


@given(loads, st.integers(2, 5), st.integers(0, 99))
def test_no_single_move_would_help_much_after_rebalancing(
    bytes_per_s: dict[TopicPartition, float], tasks: int, seed: int
) -> None:
    balanced = rebalance(spread(bytes_per_s, tasks, seed), bytes_per_s, tasks)
    sums = [sum(bytes_per_s[tp] for tp in share) for share in balanced]
    mean = sum(sums) / tasks
    busiest, idlest = max(range(tasks), key=sums.__getitem__), min(sums)
    if max(sums) - idlest > 0.6 * mean:
        gap = max(sums) - idlest
        assert all(min(load, gap - load) < 0.2 * mean for load in (bytes_per_s[tp] for tp in balanced[busiest]))


def test_a_small_difference_moves_nothing_and_a_hot_partition_is_left_alone_with_its_task() -> None:
    a, b, c, d = (TopicPartition("t", n) for n in range(4))
    even = (frozenset({a, b}), frozenset({c, d}))
    assert rebalance(even, {a: 10e6, b: 12e6, c: 8e6, d: 9e6}, 2) == even
    assert rebalance(even, {a: 90e6, b: 10e6, c: 5e6, d: 5e6}, 2) == (frozenset({a}), frozenset({b, c, d}))


def test_idle_partitions_are_spread_by_their_number() -> None:
    tps = frozenset(TopicPartition("t", n) for n in range(9))
    assert sorted(map(len, rebalance([tps], {}, 3))) == [3, 3, 3]
    assert sorted(map(len, rebalance([tps], {}, 2))) == [4, 5]


def test_ten_thousand_partitions_are_spread_within_a_second() -> None:
    tps = frozenset(TopicPartition("t", n) for n in range(10_000))
    began = time.perf_counter()
    shares = rebalance([tps], {tp: float(tp.partition % 97) for tp in tps}, 8)
    assert time.perf_counter() - began < 5
    sums = [sum(tp.partition % 97 for tp in share) for share in shares]
    assert max(sums) < 1.3 * min(sums)

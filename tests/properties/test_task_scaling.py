"""The number of tasks follows a simulated load: enough of them, no more than needed, and no flapping."""

from __future__ import annotations

from itertools import pairwise
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.mirror.topics.task_scaling import (
    FEWER_SLOTS_S,
    QUIET_S,
    WATCHED_S,
    FlowLoad,
    TaskChange,
    TaskLimits,
    TaskScaling,
)

TICK_S = 5.0
CAPACITY = 50_000  # records a second of one task
RECORD_BYTES = 500


class Simulation:
    """A flow whose tasks copy so many records a second each."""

    def __init__(self, limits: TaskLimits, tasks: int | None = None) -> None:
        self.limits = limits
        self.tasks = limits.least if tasks is None else tasks
        self.now = self.lag = 0.0
        self.changes: list[tuple[float, int, int]] = []
        self.scaling = TaskScaling()

    def run(self, seconds: float, records_per_s: float) -> None:
        for _tick in range(int(seconds / TICK_S)):
            self.now += TICK_S
            copied = min(self.lag + records_per_s * TICK_S, self.tasks * CAPACITY * TICK_S)
            self.lag += records_per_s * TICK_S - copied
            rate = copied / TICK_S
            load = FlowLoad(int(self.lag), rate, rate * RECORD_BYTES)
            change = self.scaling.decide(self.now, load, self.tasks, self.limits)
            if change is not None:
                assert change.tasks != self.tasks
                assert change.tasks <= max(self.limits.most, self.tasks)
                assert change.tasks >= min(self.limits.least, self.limits.most)
                self.changes.append((self.now, self.tasks, change.tasks))
                self.tasks = change.tasks
                self.scaling.changed()


limits = st.tuples(st.integers(1, 4), st.integers(0, 28)).map(lambda pair: TaskLimits(pair[0], sum(pair)))


@given(limits, st.floats(0, 0.9))
def test_at_a_constant_load_the_number_becomes_enough_and_then_never_changes(limits: TaskLimits, part: float) -> None:
    simulation, load = Simulation(limits), part * limits.most * CAPACITY
    simulation.run(4 * 3600, load)
    before = simulation.tasks
    simulation.run(4 * 3600, load)
    assert simulation.tasks == before, simulation.changes
    assert simulation.tasks * CAPACITY >= load
    assert simulation.lag == 0
    fewer = max(limits.least, (before + 1) // 2)
    assert before == limits.least or load > 0.4 * fewer * CAPACITY, "it has no more than it needs"


@given(limits, st.lists(st.tuples(st.floats(30, 3000), st.floats(0, 1.5)), max_size=30))
def test_whatever_the_load_changes_are_rare(limits: TaskLimits, profile: list[tuple[float, float]]) -> None:
    simulation = Simulation(limits)
    for seconds, part in profile:
        simulation.run(seconds, part * limits.most * CAPACITY)
    for (earlier, _from, _to), (later, before, after) in pairwise(simulation.changes):
        assert later - earlier >= (WATCHED_S if after > before else QUIET_S)
    hours = 1 + simulation.now / 3600
    assert len(simulation.changes) <= hours * (3600 / QUIET_S) * 0.5 * (1 + log2(limits.most))
    simulation.run(3 * 3600, 0)
    simulation.run(6 * 3600, 0)
    assert simulation.tasks == limits.least, "tasks that are not needed are given back"


def test_a_lag_that_does_not_fall_doubles_the_tasks_and_says_why() -> None:
    simulation = Simulation(TaskLimits(1, 8))
    simulation.run(300, 3.5 * CAPACITY)
    assert [change[1:] for change in simulation.changes] == [(1, 2), (2, 4)]
    assert simulation.changes[0][0] <= WATCHED_S + 3 * TICK_S


def test_a_lag_that_falls_fast_enough_needs_no_further_task() -> None:
    simulation = Simulation(TaskLimits(2, 8))
    simulation.lag = 6_000_000
    simulation.run(600, CAPACITY)
    assert simulation.changes == []
    assert simulation.lag == 0


def test_a_load_that_comes_back_soon_makes_the_next_quiet_time_longer() -> None:
    simulation = Simulation(TaskLimits(1, 2))
    for _round in range(8):
        simulation.run(120, 1.8 * CAPACITY)
        simulation.run(QUIET_S + 60, 0.1 * CAPACITY)
    assert len(simulation.changes) <= 5, simulation.changes


@pytest.mark.parametrize(("most", "after_s"), [(1, FEWER_SLOTS_S + 2 * TICK_S), (4, 10 + 2 * TICK_S)])
def test_a_fixed_number_follows_slots_that_come_and_go_once_they_last(most: int, after_s: float) -> None:
    simulation = Simulation(TaskLimits(2, 2))
    simulation.run(600, CAPACITY)
    simulation.limits = TaskLimits(most, most)
    simulation.run(TICK_S, CAPACITY)
    simulation.limits = TaskLimits(2, 2)
    simulation.run(600, CAPACITY)
    assert simulation.changes == [], "an executor that comes back at once changes nothing"
    simulation.limits = TaskLimits(most, most)
    simulation.run(after_s, CAPACITY)
    assert [change[1:] for change in simulation.changes] == [(2, most)]


def test_limits_are_the_smallest_of_what_is_set_and_what_is_there() -> None:
    def of(tasks_min: int, tasks_max: int, slots: int, partitions: int = 100) -> TaskLimits:
        return TaskLimits.of(partitions=partitions, tasks_min=tasks_min, tasks_max=tasks_max, slots=slots, flows=2)

    assert of(0, 0, 8) == (4, 4)
    assert of(0, 3, 8) == (3, 3)
    assert of(2, 0, 8) == (2, 4)
    assert of(9, 3, 8) == (3, 3)
    assert of(1, 16, 8, partitions=2) == (1, 2)
    assert of(1, 16, 0) == (1, 1)


def test_a_change_has_its_reason() -> None:
    scaling, load = TaskScaling(), FlowLoad(1_000_000, 10.0, 1e6)
    changes = [scaling.decide(now, load, 1, TaskLimits(1, 4)) for now in (0.0, 15.0, 30.0)]
    assert changes == [None, None, TaskChange(2, "the lag of 1,000,000 records has not fallen in 30 s")]


def test_where_spark_adds_executors_for_tasks_slots_are_no_limit() -> None:
    few = TaskLimits.of(partitions=8, tasks_min=0, tasks_max=6, slots=2, flows=1)
    assert few == TaskLimits(2, 2)
    assert TaskLimits.of(partitions=8, tasks_min=0, tasks_max=6, slots=2, flows=1, grows=True) == TaskLimits(6, 6)
    assert TaskLimits.of(partitions=8, tasks_min=1, tasks_max=6, slots=0, flows=2, grows=True) == TaskLimits(1, 6)
    assert TaskLimits.of(partitions=8, tasks_min=0, tasks_max=6, slots=0, flows=2) == TaskLimits(1, 1)

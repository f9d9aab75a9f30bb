"""When a failed task is started again, and the states shown meanwhile."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config import keys
from heliograph.config.resolve.settings import Settings
from heliograph.driver.flow.tasks import flow_task
from heliograph.driver.flow.tasks.flow_task import FlowTask, TaskPhase
from heliograph.driver.steps.restart_policy import RestartLimits, Restarts
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import SourceOffset, TopicPartition

FOR_EVER = RestartLimits(30.0, -1)
TWICE = RestartLimits(30.0, 2)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def short_pauses() -> None:
    """They are what is tested here: as long as ever."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(flow_task, "time", clock)
    return clock


def running(limits: RestartLimits = FOR_EVER) -> FlowTask:
    """A task that copies, as its report says."""
    task = FlowTask.new(0, limits)
    task.tps = frozenset({TopicPartition("t", 0)})
    start(task)
    task.reported()
    return task


def start(task: FlowTask) -> None:
    if task.phase is TaskPhase.RUNNING:
        task.request_restart()
        task.ended_as_requested()
    task.begin()
    task.running = object()  # type: ignore[assignment]


def fail(task: FlowTask, reason: str = "the broker said no.") -> float | None:
    task.running = None
    return task.failed(reason)


def test_the_limits_are_of_the_settings_and_unlimited_unless_they_say_so() -> None:
    assert RestartLimits.of(Settings({})) == FOR_EVER
    given_limits = Settings({keys.RESTART_BACKOFF_MAX_MS.name: "5000", keys.RESTART_ATTEMPTS_MAX.name: "3"})
    assert RestartLimits.of(given_limits) == RestartLimits(5.0, 3)


@given(most_s=st.floats(0.001, 3600), failures=st.integers(1, 60))
def test_pauses_grow_and_never_exceed_the_longest(most_s: float, failures: int) -> None:
    restarts = Restarts(RestartLimits(most_s, -1))
    pauses = [restarts.pause_s() or 0.0 for _failure in range(failures)]
    assert all(0 < pause <= most_s for pause in pauses)
    assert pauses[-1] >= 0.8 * min(most_s, min(0.5, most_s) * 2 ** (failures - 1))


@given(attempts_max=st.integers(0, 20))
def test_there_are_as_many_attempts_as_the_limit_says(attempts_max: int) -> None:
    restarts = Restarts(RestartLimits(30.0, attempts_max))
    pauses = [restarts.pause_s() for _failure in range(attempts_max + 2)]
    assert [pause is None for pause in pauses] == [False] * attempts_max + [True, True]
    restarts.reset_failures()
    assert (restarts.pause_s() is None) == (attempts_max == 0)


def test_a_long_life_makes_earlier_failures_count_no_more() -> None:
    restarts = Restarts(TWICE)
    assert [restarts.pause_s(), restarts.pause_s()] != [None, None]
    assert restarts.pause_s(ran_s=59.0) is None
    assert restarts.pause_s(ran_s=61.0) is not None


def test_a_task_waits_for_a_slot_of_spark_until_it_has_spoken_up() -> None:
    task = FlowTask.new(0, FOR_EVER)
    assert task.state([]).state == "UNASSIGNED"
    start(task)
    assert task.state([]).state == "UNASSIGNED"
    task.reported()
    assert task.state([]) == (0, "RUNNING", None, frozenset())


def test_a_failed_task_says_why_until_its_successor_has_spoken_up() -> None:
    task = running()
    assert fail(task) is not None
    assert task.state([])[1:3] == ("FAILED", "the broker said no.")
    assert task.restart_at is not None
    start(task)
    assert task.state([])[1:3] == ("RESTARTING", "the broker said no.")
    assert task.state([]).state == "RESTARTING"
    task.reported()
    assert task.state([])[1:3] == ("RUNNING", None)
    assert task.state([], "t-0 waits: no leader.")[1:3] == ("RUNNING", "t-0 waits: no leader.")


def test_after_the_last_attempt_a_task_stays_failed_until_somebody_asks() -> None:
    task = running(TWICE)
    for _attempt in range(2):
        assert fail(task) is not None
        start(task)
    assert fail(task) is None
    assert (task.phase, task.restart_at, task.state([]).state) == (TaskPhase.GIVEN_UP, None, "FAILED")
    task.restart_by_hand()
    assert (task.phase, task.restart_at is not None) == (TaskPhase.BACKING_OFF, True)
    assert task.state([]).state == "RESTARTING"
    start(task)
    assert fail(task) is not None


def test_other_limits_give_a_task_that_was_given_up_another_chance() -> None:
    task = running(RestartLimits(30.0, 0))
    assert fail(task) is None
    task.set_limits(FOR_EVER)
    assert task.restart_at is not None
    assert task.phase is TaskPhase.BACKING_OFF


def test_a_running_task_ends_before_it_is_restarted() -> None:
    task = running()
    task.request_restart()
    assert (task.state([]).state, task.restart_at) == ("RESTARTING", None)
    task.running = None
    task.ended_as_requested()
    assert (task.state([]).state, task.restart_at is not None) == ("RESTARTING", True)


def test_a_task_with_failed_partitions_begins_again_after_a_longer_pause(clock: Clock) -> None:
    task = running()
    assert task.state(["t-0: no."])[1:3] == ("FAILED", "t-0: no.")
    assert not task.is_due_for_failed_partitions(["t-0: no."])
    clock.now += 20
    assert not task.is_due_for_failed_partitions(["t-0: no."])
    clock.now += 11
    assert task.is_due_for_failed_partitions(["t-0: no."])
    assert not task.is_due_for_failed_partitions([])


def test_partitions_that_recover_by_themselves_restart_nothing(clock: Clock) -> None:
    task = running()
    assert not task.is_due_for_failed_partitions(["t-0: no."])
    clock.now += 10
    assert not task.is_due_for_failed_partitions([])
    clock.now += 1000
    assert not task.is_due_for_failed_partitions(["t-0: no."])


def test_failed_partitions_are_tried_no_more_often_than_the_limit_says(clock: Clock) -> None:
    task = running(RestartLimits(1.0, 1))
    due = 0
    for _look in range(100):
        clock.now += 0.5
        if task.is_due_for_failed_partitions(["t-0: no."]):
            due += 1
            start(task)
            task.reported()
    assert due == 1
    task.restart_by_hand()
    assert task.retry_partitions_at is None


def test_only_a_report_by_the_assignment_that_took_a_partition_away_proves_that_it_was_released() -> None:
    a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    task = running()
    task.tps = frozenset({a, b})
    task.take_over(frozenset({a}), 2, 60.0)
    assert task.take_released(TaskReport(assignment=1)) == frozenset()
    assert task.take_released(TaskReport(assignment=2, releasing=[b])) == frozenset()
    task.take_over(frozenset({a, b}), 3, 60.0)
    assert task.take_released(TaskReport(assignment=2)) == frozenset(), "it was given back"
    task.take_over(frozenset({a}), 4, 60.0)
    assert task.take_released(TaskReport(assignment=3)) == frozenset()
    assert task.take_released(TaskReport(assignment=5)) == {b}
    assert task.take_released(TaskReport(assignment=5)) == frozenset()


def test_failed_partitions_that_stop_no_others_are_tried_again_after_the_longest_pause_of_a_task(clock: Clock) -> None:
    task = FlowTask.new(0, RestartLimits(10.0, -1), restarts_for_partitions=False)
    task.tps = frozenset({TopicPartition("t", 0)})
    start(task)
    task.reported()
    tries = []
    for _look in range(1_000):
        clock.now += 0.1
        if task.is_due_for_failed_partitions(["t-0: no."]):
            tries.append(clock.now)
            task.open_again(task.tps)
    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert len(pauses) > 3
    assert all(5 < pause < 15 for pause in pauses)
    assert task.openings == {TopicPartition("t", 0): len(tries)}


def test_a_report_of_an_earlier_opening_does_not_count() -> None:
    task = running()
    tp = TopicPartition("t", 0)
    task.moves[tp] = SourceOffset(tp, 6)
    task.open_again([tp])
    task.note_committed([PartitionReport("t", 0, committed_offset=9)])
    assert task.moves
    task.note_committed([PartitionReport("t", 0, opening=1)])
    assert task.moves
    task.note_committed([PartitionReport("t", 0, opening=1, committed_offset=6)])
    assert not task.moves

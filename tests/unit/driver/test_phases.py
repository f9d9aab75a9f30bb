"""The phases of flows and of their tasks: the tables are whole, and whatever happens to tasks stays within them."""

from __future__ import annotations

import time
from enum import Enum
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph import model
from heliograph.driver.flow.flow_life_cycle import FLOW_PHASES, FlowLifeCycle, FlowPhase
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.flow.flow_task import TASK_PHASES, TaskPhase
from heliograph.driver.flow.source_flow import RestartTask, RunStepsNow
from heliograph.driver.spark.spark_engine import TaskEnd
from heliograph.errors import UnreachableError
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import TopicPartition
from heliograph.states import IllegalTransitionError, StateMachine
from tests.unit.driver.test_source_flow import Flow

TPS = [TopicPartition(topic, 0) for topic in "amz"]


@pytest.mark.parametrize(("machine", "phases"), [(FLOW_PHASES, FlowPhase), (TASK_PHASES, TaskPhase)])
def test_every_phase_has_a_row_and_can_be_reached(machine: StateMachine[Any], phases: type[Enum]) -> None:
    assert set(machine.transitions) == set(phases)
    reached, new = {machine.initial}, {machine.initial}
    while new:
        new = set().union(*(machine.transitions[phase] for phase in new)) - reached
        reached |= new
    assert reached == set(phases)


def test_the_last_phases_are_left_by_nothing() -> None:
    last = {FlowPhase.ABANDONED, FlowPhase.STOPPED, FlowPhase.DONE, FlowPhase.FAILED}
    assert {phase for phase, successors in FLOW_PHASES.transitions.items() if not successors} == last
    assert {phase for phase, successors in TASK_PHASES.transitions.items() if not successors} == {TaskPhase.DONE}


def test_a_flow_that_was_stopped_before_it_began_neither_begins_nor_fails() -> None:
    for has_failed_before in (False, True):
        status = FlowStatus(model.Flow("A", "B"))
        life = FlowLifeCycle(status)
        if has_failed_before:
            assert life.begin()
            assert life.cannot_begin(UnreachableError("b:1 cannot be reached."))
            assert status.state == "FAILED"
        life.stop()
        error = life.error
        assert not life.begin()
        assert not life.cannot_begin(UnreachableError("late."))
        assert not life.fail(UnreachableError("late."))
        assert (life.phase, life.error, status.state) == (FlowPhase.ABANDONED, error, "STOPPED")


def test_a_flow_that_was_stopped_while_it_began_ends_its_tasks() -> None:
    life = FlowLifeCycle(FlowStatus(model.Flow("A", "B")))
    assert life.begin()
    life.stop()
    assert not life.cannot_begin(UnreachableError("late."))
    life.enter(FlowPhase.STOPPING)
    life.enter(FlowPhase.STOPPED)
    with pytest.raises(IllegalTransitionError, match="STOPPED cannot become RUNNING"):
        life.enter(FlowPhase.RUNNING)


HAPPENINGS = st.one_of(
    st.tuples(st.just("report"), st.integers(0, 9)),
    st.tuples(st.just("end"), st.integers(0, 9)),
    st.tuples(st.just("fail"), st.integers(0, 9)),
    st.tuples(st.just("restart"), st.integers(0, 2)),
    st.tuples(st.just("topics"), st.integers(1, 7)),
    st.tuples(st.just("wait"), st.sampled_from([1, 40, 600])),
)


@settings(max_examples=200, deadline=None)
@given(attempts_max=st.integers(-1, 2), happenings=st.lists(HAPPENINGS, max_size=30))
def test_whatever_happens_no_partition_is_in_two_runs_and_no_transition_is_illegal(
    attempts_max: int, happenings: list[tuple[str, int]]
) -> None:
    clock = SimpleNamespace(now=1000.0)
    with patch.object(time, "monotonic", lambda: clock.now):
        flow = Flow(*TPS, settings=("tasks.max=2", f"heliograph.restart.attempts.max={attempts_max}"))
        for what, number in happenings:
            started = flow.engine.started[number % len(flow.engine.started)]  # also one that has ended before
            is_running = any(task.running is started for task in flow.tasks)
            row = PartitionReport("a", 0, failure="a-0: no." if number % 2 else None)
            if what == "report":
                flow.report(started.spec, TaskReport([row]))
            elif what == "end" and is_running:
                flow.handle(TaskEnd(started.spec, TaskReport([row])))
            elif what == "fail" and is_running:
                flow.handle(TaskEnd(started.spec, error="no."))
            elif what == "restart":
                flow.handle(RestartTask(number))
            elif what == "topics":
                flow.copy(*(tp for at, tp in enumerate(TPS) if number >> at & 1))
            elif what == "wait":
                clock.now += number
                flow._supervisor.look_after()
                flow.handle(RunStepsNow())
            running = [task for task in flow.tasks if task.running is not None]
            assert sum(len(task.tps) for task in running) == len(frozenset().union(*(task.tps for task in running)))
            in_run = {TaskPhase.WAITING_FOR_SLOT, TaskPhase.RUNNING, TaskPhase.RESTARTING}
            assert all((task.running is not None) == (task.phase in in_run) for task in flow.tasks)
            assert all((task.restart_at is not None) == (task.phase is TaskPhase.BACKING_OFF) for task in flow.tasks)
            assert len(flow.task_states) == len(flow.tasks)

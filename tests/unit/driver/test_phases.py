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
from heliograph.driver.flow.source_flow import RestartTask, RunStepsNow
from heliograph.driver.flow.tasks.flow_task import TASK_PHASES, TaskPhase
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
    st.tuples(st.just("move"), st.integers(0, 26)),
    st.tuples(st.just("take"), st.integers(0, 9)),
    st.tuples(st.just("release"), st.integers(0, 9)),
)


class Runs:
    """The partitions that each run really holds: what it took, and has not released."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._held: dict[int, set[TopicPartition]] = {}
        self._taken: dict[int, tuple[int, set[TopicPartition]]] = {}

    def holds(self, run: Any) -> set[TopicPartition]:
        return self._held.setdefault(id(run), {each.tp for each in run.first})

    def take(self, run: Any) -> None:
        """It gets the newest assignment with the answer to a report."""
        number, tps = self._flow.engine.newest.get(id(run), (0, self.holds(run)))
        self._taken[id(run)] = number, set(tps)
        self._held[id(run)] = self.holds(run) | tps

    def release(self, run: Any) -> None:
        _number, tps = self._taken.get(id(run), (0, self.holds(run)))
        self._held[id(run)] = self.holds(run) & tps

    def report(self, run: Any, row: PartitionReport) -> TaskReport:
        number, tps = self._taken.get(id(run), (0, self.holds(run)))
        return TaskReport([row], assignment=number, releasing=sorted(self.holds(run) - tps))


def happen_to_run(flow: Flow, runs: Runs, run: Any, what: str, number: int) -> None:
    row = PartitionReport("a", 0, failure="a-0: no." if number % 2 else None)
    if what == "report":  # also of a run that has ended before
        flow.report(run.spec, runs.report(run, row))
    if not any(task.running is run for task in flow.tasks):
        return
    if what == "take":
        runs.take(run)
    elif what == "release":
        runs.release(run)
    elif what == "end":
        flow.handle(TaskEnd(run.spec, TaskReport([row])))
    elif what == "fail":
        flow.handle(TaskEnd(run.spec, error="no."))


def happen_to_flow(flow: Flow, clock: Any, what: str, number: int) -> None:
    if what == "restart":
        flow.handle(RestartTask(number))
    elif what == "topics":
        flow.copy(*(tp for at, tp in enumerate(TPS) if number >> at & 1))
    elif what == "move" and len(flow.tasks) == 2:
        supervisor = flow._supervisor
        wanted = supervisor._plan.partitions
        first = frozenset(tp for at, tp in enumerate(TPS) if tp in wanted and number // 3**at % 3 == 0)
        if supervisor.rebalancing.move((first, wanted - first)):
            supervisor._settle_at = clock.now
        flow.handle(RunStepsNow())
    elif what == "wait":
        clock.now += number
        flow._supervisor.look_after()
        flow.handle(RunStepsNow())


@settings(max_examples=200, deadline=None)
@given(attempts_max=st.integers(-1, 2), happenings=st.lists(HAPPENINGS, max_size=40))
def test_whatever_happens_no_partition_is_in_two_runs_and_no_transition_is_illegal(
    attempts_max: int, happenings: list[tuple[str, int]]
) -> None:
    clock = SimpleNamespace(now=1000.0)
    with patch.object(time, "monotonic", lambda: clock.now):
        flow = Flow(*TPS, settings=("tasks.max=2", f"heliograph.restart.attempts.max={attempts_max}"))
        runs = Runs(flow)
        for what, number in happenings:
            happen_to_run(flow, runs, flow.engine.started[number % len(flow.engine.started)], what, number)
            happen_to_flow(flow, clock, what, number)
            held = [tp for task in flow.tasks if task.running is not None for tp in runs.holds(task.running)]
            assigned = [tp for task in flow.tasks for tp in task.tps]
            assert len(held) == len(set(held)), "two runs hold a partition"
            assert len(assigned) == len(set(assigned))
            in_run = {TaskPhase.WAITING_FOR_SLOT, TaskPhase.RUNNING, TaskPhase.RESTARTING}
            assert all((task.running is not None) == (task.phase in in_run) for task in flow.tasks)
            assert all((task.restart_at is not None) == (task.phase is TaskPhase.BACKING_OFF) for task in flow.tasks)
            assert len(flow.task_states) == len(flow.tasks)

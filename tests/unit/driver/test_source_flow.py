"""A flow's care for its tasks, without clusters: where partitions go, and when a task that has ended begins again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from heliograph import model
from heliograph.config.validate.dedicated_file import load
from heliograph.diagnostics import Severity
from heliograph.driver.flow import task_supervisor
from heliograph.driver.flow.flow_life_cycle import FlowPhase
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.flow.pending_reports import PendingReports
from heliograph.driver.flow.source_flow import Event, RestartTask, RunStepsNow, SetSuspended, SourceFlow
from heliograph.driver.flow.tasks import flow_task
from heliograph.driver.flow.tasks.flow_task import NO_SLOT, FlowTask, TaskPhase
from heliograph.driver.flow.topic_sync import Replicated
from heliograph.driver.losses import loss_log
from heliograph.driver.losses.loss_log import LossLog
from heliograph.driver.spark.spark_engine import TaskEnd
from heliograph.errors import ConfigError, EngineError, UnreachableError
from heliograph.executor.contract.source_offsets import SourceOffsets
from heliograph.executor.contract.task_report import PartitionReport, TaskEvent, TaskReport
from heliograph.model import ChangeActions, TopicPartition
from heliograph.status.flow_snapshot import LossTotal
from heliograph.status.losses import Loss, LossCause
from heliograph.status.process_snapshot import EngineSnapshot
from tests.support.config_files import FakeLookup, minimal

LOSS = Loss(1_000, model.Flow("A", "B"), "a", 0, 3, 4, 2, LossCause.SOURCE_TRUNCATED)
A0, Z0 = TopicPartition("a", 0), TopicPartition("z", 0)


class Engine:
    """Keeps what it is told."""

    slots = 4

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.stopped: list[Any] = []
        self.leaving: list[Any] = []  # on executors that are decommissioned
        self.shares: dict[str, int] = {}
        self.assignments = 0
        self.newest: dict[int, tuple[int, set[TopicPartition]]] = {}  # by run: number and partitions

    def start(self, spec: Any, _on_report: Any, _on_end: Any, _launch: Any) -> Any:
        spec = replace(spec, attempt=len(self.started) + 1)
        self.started.append(SimpleNamespace(spec=spec, first=spec.partitions))
        return self.started[-1]

    def assign(self, task: Any, partitions: Any) -> int:
        task.spec = SimpleNamespace(task_id=task.spec.task_id, attempt=task.spec.attempt, partitions=partitions)
        self.assignments += 1
        self.newest[id(task)] = self.assignments, {partition.tp for partition in partitions}
        return self.assignments

    def share(self, task: Any, bytes_per_s: int) -> None:
        self.shares[task.spec.task_id] = bytes_per_s

    grows_for_tasks = False

    def snapshot(self) -> EngineSnapshot:
        return EngineSnapshot(self.slots, len(self.started), 0)

    def is_leaving(self, task: Any) -> bool:
        return any(task is each for each in self.leaving)

    def take_back_if_lost(self, task: Any) -> None:
        """None is."""

    def stop(self, task: Any, _why: str) -> None:
        self.stopped.append(task)


class Flow(SourceFlow):
    """A flow whose topics and source offsets are the test's."""

    def __init__(
        self, *tps: TopicPartition, settings: tuple[str, ...] = ("tasks.max=2",), status: FlowStatus | None = None
    ) -> None:
        config = load(minimal(*settings), FakeLookup({}))
        self.engine = Engine()
        super().__init__(config, config.flows[0], self.engine, flow_count=1, status=status)  # type: ignore[arg-type]
        steps: Any = self._steps
        steps.offsets_topic = SimpleNamespace(name="mm2-offsets.A.internal", partition_count=1)
        steps.read_source_offsets = self._read_source_offsets
        steps._sync_topics = lambda: self._topics_of_now
        self.asked = 0
        self.are_offsets_there = True
        self.copy(*tps)

    def _read_source_offsets(self) -> SourceOffsets:
        self.asked += 1
        if not self.are_offsets_there:
            raise UnreachableError("b:1 cannot be reached.")
        return SourceOffsets({}, frozenset())

    def copy(self, *tps: TopicPartition) -> None:
        self._topics_of_now = Replicated(tps, {tp.topic: f"A.{tp.topic}" for tp in tps})
        self._refresh()

    @property
    def tasks(self) -> list[FlowTask]:
        return self._supervisor.tasks

    def handle(self, *events: Event) -> None:
        """One round of the flow's thread, after these events."""
        for event in events:
            self._events.put(event)
        self._handle_next()

    def report(self, spec: Any, report: TaskReport) -> None:
        """One round of the flow's thread, after this report of a task."""
        self._put_report(spec, report)
        self._handle_next()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(flow_task.time, "monotonic", lambda: clock.now)
    return clock


def test_a_partition_that_comes_back_goes_to_the_task_that_still_drains_it() -> None:
    flow = Flow(A0, Z0)
    assert [task.tps for task in flow.tasks] == [{A0}, {Z0}]
    flow.copy(A0)
    flow.copy(A0, Z0)
    assert [task.tps for task in flow.tasks] == [{A0}, {Z0}]
    assert flow.engine.stopped == [], "it continues where it was"


def moved(flow: Flow, *shares: set[TopicPartition]) -> None:
    """Plan other shares, as the load of the partitions might have it."""
    assert flow._supervisor.rebalancing.move([frozenset(share) for share in shares])
    flow._supervisor._settle_at = time.monotonic()
    flow.handle(RunStepsNow())


@pytest.mark.usefixtures("clock")
def test_a_partition_goes_to_another_task_only_when_the_first_has_released_it() -> None:
    flow = Flow(A0, Z0)
    first, second = flow.engine.started
    moved(flow, set(), {A0, Z0})
    assert [task.tps for task in flow.tasks] == [set(), {Z0}]
    number, _tps = flow.engine.newest[id(first)]
    flow.report(first.spec, TaskReport([PartitionReport("a", 0, records=5)], assignment=number, releasing=[A0]))
    flow.report(first.spec, TaskReport([PartitionReport("a", 0, records=6)], assignment=number - 1))
    assert [task.tps for task in flow.tasks] == [set(), {Z0}]
    flow.report(first.spec, TaskReport([PartitionReport("a", 0, records=7)], assignment=number))
    assert [task.tps for task in flow.tasks] == [set(), {A0, Z0}]
    assert {spec.tp: spec.opening for spec in second.spec.partitions} == {A0: 1, Z0: 0}
    flow.report(first.spec, TaskReport([PartitionReport("a", 0, records=7, next_offset=3)], assignment=number))
    flow.report(second.spec, TaskReport([PartitionReport("a", 0, records=1, next_offset=8, opening=1)]))
    assert (flow.status.counts.records, flow.status.partitions.next_offset_of(A0)) == (8, 8)


def test_a_partition_that_is_not_released_in_time_stays_where_it_is(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    flow = Flow(A0, Z0)
    first, _second = flow.engine.started
    moved(flow, set(), {A0, Z0})
    clock.now += 29
    flow._supervisor.look_after()
    flow.handle(RunStepsNow())
    assert [task.tps for task in flow.tasks] == [set(), {Z0}]
    clock.now += 2
    flow._supervisor.look_after()
    flow.handle(RunStepsNow())
    assert [task.tps for task in flow.tasks] == [{A0}, {Z0}]
    assert [spec.tp for spec in first.spec.partitions] == [A0]
    assert "A->B: task 0 could not release a-0 within 30 s, and continues with it" in caplog.messages
    assert A0 in flow._supervisor._plan.fixed(clock.now + 200)
    assert A0 not in flow._supervisor._plan.fixed(clock.now + 400)


def test_a_run_that_ends_before_it_has_released_a_partition_holds_it_no_longer(clock: Any) -> None:
    flow = Flow(A0, Z0)
    first, second = flow.engine.started
    moved(flow, set(), {A0, Z0})
    flow.handle(TaskEnd(first.spec, error="killed."))
    assert flow.tasks[1].tps == {Z0}, "a broker may still append what it has sent"
    clock.now += 2
    flow.handle(RunStepsNow())
    assert [task.tps for task in flow.tasks] == [set(), {A0, Z0}]
    assert {spec.tp for spec in second.spec.partitions} == {A0, Z0}


@pytest.mark.usefixtures("clock")
def test_with_transactions_the_producer_of_a_run_that_ended_is_fenced_before_another_task_continues() -> None:
    flow = Flow(A0, Z0, settings=("tasks.max=2", "B.exactly.once.source.support=enabled"))
    first = flow.engine.started[0]
    fenced: list[int] = []
    steps: Any = flow._steps

    def fence(numbers: Iterable[int]) -> None:
        assert flow.tasks[1].tps == {Z0}
        fenced.extend(numbers)

    steps.fence_tasks = fence
    moved(flow, set(), {A0, Z0})
    flow.handle(TaskEnd(first.spec, error="killed."))
    assert (fenced, flow.tasks[1].tps) == ([0], {A0, Z0})


def test_with_transactions_the_producer_of_a_run_that_ended_is_fenced_before_it_is_started_again(clock: Any) -> None:
    flow = Flow(A0, Z0, settings=("tasks.max=2", "B.exactly.once.source.support=enabled"))
    fenced: list[int] = []
    steps: Any = flow._steps
    steps.fence_tasks = fenced.extend
    flow.handle(TaskEnd(flow.engine.started[0].spec, error="killed."))
    clock.now += 60
    flow.handle(RunStepsNow())
    assert (fenced, len(flow.engine.started)) == ([0], 3)
    moved(flow, set(), {A0, Z0})
    flow.handle(TaskEnd(flow.engine.started[2].spec))
    assert fenced == [0, 0, 0], "before another task reads the source offset, and before it starts"
    assert flow.tasks[1].tps == {A0, Z0}


def running(flow: Flow) -> None:
    for run in flow.engine.started:
        if any(task.runs(run.spec) for task in flow.tasks):
            number, _tps = flow.engine.newest.get(id(run), (0, None))
            flow.report(run.spec, TaskReport(assignment=number))


def look_after(flow: Flow, clock: Any, after_s: float) -> None:
    clock.now += after_s
    flow._supervisor.look_after()
    flow.handle(RunStepsNow())


def test_a_task_that_waits_because_slots_were_lost_gives_its_partitions_to_others_until_it_runs(clock: Any) -> None:
    flow = Flow(A0, Z0)
    running(flow)
    first, second = flow.engine.started
    flow.engine.slots = 1
    flow.handle(TaskEnd(first.spec, error="killed.", is_lost=True))
    look_after(flow, clock, 2)
    waiting = flow.engine.started[2]
    assert [task.tps for task in flow.tasks] == [{A0}, {Z0}]
    look_after(flow, clock, 8)
    assert flow.engine.stopped == [], "an executor that was killed may be back soon"
    look_after(flow, clock, 2)
    assert flow.engine.stopped == [], "the other task has not reported for long: its machine may be lost, too"
    flow.report(second.spec, TaskReport())
    look_after(flow, clock, 0)
    assert flow.engine.stopped == [waiting]
    flow.handle(TaskEnd(waiting.spec))
    assert [task.tps for task in flow.tasks] == [set(), {A0, Z0}]
    empty = flow.engine.started[3]
    assert empty.first == (), "it waits for a slot with nothing that could be copied meanwhile"
    flow.engine.slots = 2
    flow.report(empty.spec, TaskReport())
    flow.report(second.spec, TaskReport(assignment=flow.engine.newest[id(second)][0]))
    look_after(flow, clock, 5)
    running(flow)
    assert sorted(len(task.tps) for task in flow.tasks) == [1, 1]


def test_a_task_keeps_its_partitions_while_there_are_slots_for_all_but_not_for_ever(clock: Any) -> None:
    flow = Flow(A0, Z0)
    _first, second = flow.engine.started
    flow.report(second.spec, TaskReport())
    look_after(flow, clock, 50)
    assert flow.engine.stopped == []
    clock.now += 15
    flow.report(second.spec, TaskReport())
    look_after(flow, clock, 0)
    assert flow.engine.stopped == [flow.engine.started[0]]


def test_no_partition_moves_to_a_task_that_is_silent(clock: Any) -> None:
    flow = Flow(A0, Z0, settings=("tasks.max=3",))
    running(flow)
    first, second = flow.engine.started
    third = TopicPartition("z", 1)
    flow.copy(A0, Z0, third)
    running(flow)
    flow._supervisor._plan.shares = (frozenset(), frozenset({Z0}), frozenset({A0, third}))
    clock.now += 6
    flow.report(second.spec, TaskReport())
    flow._supervisor._rebalance()
    assert flow._supervisor._plan.shares[0] == set(), "its machine may be lost"
    running(flow)
    flow._supervisor._rebalance()
    assert len(flow._supervisor._plan.shares[0]) == 1
    assert first in flow.engine.started


def test_tasks_of_lost_slots_are_given_up_and_started_with_new_ones(clock: Any) -> None:
    flow = Flow(A0, Z0)
    running(flow)
    first, second = flow.engine.started
    look_after(flow, clock, 5)
    flow.engine.slots = 1
    flow.handle(TaskEnd(first.spec, error="killed.", is_lost=True))
    for _round in range(20):
        look_after(flow, clock, 5)
        for run in flow.engine.stopped:
            if any(task.runs(run.spec) for task in flow.tasks):
                flow.handle(TaskEnd(run.spec))
        flow.report(second.spec, TaskReport(assignment=flow.engine.newest.get(id(second), (0, None))[0]))
    assert len(flow.tasks) == 1
    assert flow.tasks[0].tps == {A0, Z0}
    flow.engine.slots = 2
    for _round in range(5):
        running(flow)
        look_after(flow, clock, 5)
    running(flow)
    assert sorted(len(task.tps) for task in flow.tasks) == [1, 1]


@pytest.mark.parametrize(("slots", "shares"), [(2, [{A0}, {Z0}]), (1, [set(), {A0, Z0}])])
def test_a_task_leaves_a_decommissioned_executor_with_its_partitions_if_there_is_a_slot_elsewhere(
    clock: Any, slots: int, shares: list[set[TopicPartition]]
) -> None:
    flow = Flow(A0, Z0)
    running(flow)
    first = flow.engine.started[0]
    flow.engine.slots, flow.engine.leaving = slots, [first]
    look_after(flow, clock, 5)
    assert flow.engine.stopped == [first], "it commits first"
    flow.handle(TaskEnd(first.spec, TaskReport()))
    assert [task.tps for task in flow.tasks] == shares
    assert {spec.tp for spec in flow.engine.started[2].first} == shares[0]


@pytest.mark.usefixtures("clock")
def test_a_user_moves_a_partition_that_is_on_its_way_to_another_task() -> None:
    flow = Flow(A0, Z0)
    first, second = flow.engine.started
    steps: Any = flow._steps
    steps.positions = lambda tps, _start: dict.fromkeys(tps, 7)
    written: list[Any] = []
    steps.write_source_offsets = written.extend
    moved(flow, set(), {A0, Z0})
    flow._supervisor.restart_partitions(model.RestartRequest("a", 0, 7))
    number, _tps = flow.engine.newest[id(first)]
    flow.report(first.spec, TaskReport(assignment=number))
    (spec,) = [spec for spec in second.spec.partitions if spec.tp == A0]
    assert (spec.position, spec.is_moved, spec.opening) == (7, True, 2)
    assert [each.offset for each in written] == [6]
    row = PartitionReport("a", 0, committed_offset=3)
    flow.report(first.spec, TaskReport([row], assignment=number))
    assert flow._supervisor._moves, "the first task has committed its own place"
    flow.report(second.spec, TaskReport([replace(row, opening=2, committed_offset=6)]))
    assert not flow._supervisor._moves


QUIET = ("sync.topic.acls.enabled=false", "sync.topic.configs.enabled=false", "emit.offset-syncs.enabled=false")


def test_a_partition_has_the_actions_of_its_topic_also_if_it_is_assigned_later() -> None:
    flow = Flow(A0, settings=("tasks.max=1", "heliograph.on.recreated=z=restart", "heliograph.on.truncation=a=fail"))
    flow.copy(A0, Z0)
    (task,) = flow.engine.started
    actions = {partition.tp: partition.actions for partition in task.spec.partitions}
    assert actions == {A0: ChangeActions(truncation="fail"), Z0: ChangeActions(recreated="restart")}


def test_other_actions_reach_the_running_tasks_concerned_and_no_other_task(clock: Any) -> None:
    flow = Flow(A0, Z0, settings=("tasks.max=2", *QUIET))
    first = flow.engine.started[0].spec
    changed = minimal("tasks.max=2", *QUIET, "heliograph.on.recreated=z=restart, fail")
    flow.adopt(load(changed, FakeLookup({})))
    flow.handle()
    assert (len(flow.engine.started), flow.engine.stopped) == (2, [])
    assert flow.engine.started[0].spec is first
    (partition,) = flow.engine.started[1].spec.partitions
    assert (partition.tp, partition.actions.recreated, partition.opening) == (Z0, "restart", 0)
    flow.handle(TaskEnd(flow.engine.started[1].spec, error="no."))
    clock.now += 600
    flow.handle(RunStepsNow())
    assert flow.engine.started[2].spec.partitions == (partition,)


def test_a_configuration_with_a_pattern_that_cannot_be_read_is_not_adopted() -> None:
    flow = Flow(A0)
    with pytest.raises(ConfigError, match=r"heliograph\.on\.recreated: '\(z=restart'"):
        flow.adopt(load(minimal("heliograph.on.recreated=(z=restart"), FakeLookup({})))


def test_the_tasks_that_copy_share_the_flows_limit(clock: Any) -> None:
    flow = Flow(A0, Z0, settings=("tasks.max=3", "heliograph.throttle.bytes.per.second=900"))

    def shares_after(*events: Event) -> dict[str, int]:
        flow.engine.shares.clear()
        flow.handle(*events)
        return flow.engine.shares

    assert [task.spec.bytes_per_s for task in flow.engine.started] == [450, 450]
    flow.copy(A0, Z0, TopicPartition("m", 0))
    assert shares_after(RunStepsNow()) == {f"A->B-{n}": 300 for n in range(3)}
    assert flow.engine.started[2].spec.bytes_per_s == 300
    assert shares_after(TaskEnd(flow.engine.started[0].spec, error="no.")) == {"A->B-1": 450, "A->B-2": 450}
    clock.now += 600
    assert shares_after(RunStepsNow()) == {f"A->B-{n}": 300 for n in range(3)}
    flow.copy(A0)
    assert shares_after(RunStepsNow()) == {"A->B-0": 900}


def test_while_source_offsets_cannot_be_read_a_task_is_not_started_without_a_pause(clock: Any) -> None:
    flow = Flow(A0)
    flow.handle(RestartTask(0))
    flow._events.put(TaskEnd(flow.engine.started[0].spec))
    flow.are_offsets_there, flow.asked = False, 0
    for _round in range(100):
        clock.now += 0.01
        flow.handle(RunStepsNow())
    assert flow.asked == 1
    assert flow.status.issue == "b:1 cannot be reached."
    flow.are_offsets_there = True
    clock.now += 60
    flow.handle(RunStepsNow())
    assert flow.tasks[0].running is not None
    assert flow.status.issue is None


def test_a_failed_step_runs_again_as_soon_as_the_tasks_recover(clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    flow = Flow(A0)
    flow._steps.runner.repeat_later("topics", lambda: (), 600)
    flow._steps.runner.report("topics", ["a:1 cannot be reached."])
    spec = flow.engine.started[0].spec
    for _second in range(7):
        flow.report(spec, TaskReport([], unavailable_clusters=["cluster 'A': a:1 cannot be reached"]))
        clock.now += 1
    flow.report(spec, TaskReport([]))
    assert flow.status.issue is None
    assert caplog.messages == [
        "A->B: a:1 cannot be reached (will be tried again)",
        "A->B: cluster 'A': a:1 cannot be reached (retrying)",
        "A->B: recovered: cluster 'A': a:1 cannot be reached",
        "A->B: topics: recovered",
    ]


def test_a_task_without_a_slot_is_reported_after_a_minute(clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    flow = Flow(A0)
    clock.now += 59
    flow._supervisor.look_after()
    assert flow.task_states[0][1:3] == ("UNASSIGNED", None)
    clock.now += 1
    flow._supervisor.look_after()
    flow._supervisor.look_after()
    assert flow.task_states[0][1:3] == ("UNASSIGNED", NO_SLOT)
    assert caplog.messages == [f"A->B: task 0: {NO_SLOT}"]


def test_each_start_of_a_task_is_logged_once_it_knows_where_it_resumes(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    flow = Flow(A0, Z0)
    first, second = (running.spec for running in flow.engine.started)
    for report in (TaskReport([]), TaskReport([PartitionReport("a", 0, already_there=7)])):
        flow.report(first, report)
        flow.report(first, report)
    reported = [
        (
            "A->B: task 0 begins with 1 partition: 1 without source offsets;"
            " 7 records after that found on the target, not copied again"
        )
    ]
    assert caplog.messages == reported, "the other task has not spoken up yet"
    flow.handle(TaskEnd(second, TaskReport([PartitionReport("z", 0)])))
    reported.append("A->B: task 1 begins with 1 partition: 1 without source offsets")
    assert caplog.messages[:2] == reported, "also of a task that ends before its first report"
    caplog.clear()
    flow.handle(TaskEnd(first, error="it fell over."))
    clock.now += 600
    flow.handle(RunStepsNow())
    flow.report(flow.engine.started[-2].spec, TaskReport([PartitionReport("a", 0)]))
    assert caplog.messages[1:] == ["A->B: task 0 begins with 1 partition: 1 without source offsets"]


def test_a_task_that_fails_at_every_start_is_logged_once_until_it_copies_again(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    flow = Flow(A0)

    def fail(reason: str) -> int:
        caplog.clear()
        flow.handle(TaskEnd(flow.engine.started[-1].spec, error=reason))
        clock.now += 60
        flow.handle(RunStepsNow())
        return sum("task 0 failed" in line for line in caplog.messages)

    assert [fail("refused."), fail("refused."), fail("unreachable."), fail("unreachable.")] == [1, 0, 1, 0]
    copies = TaskReport([PartitionReport("a", 0)])
    flow.report(flow.engine.started[-1].spec, copies)
    assert caplog.messages[-1:] == ["A->B: task 0 begins with 1 partition: 1 without source offsets"]
    assert fail("unreachable.") == 0, "it began, and failed in the same way"
    flow.report(flow.engine.started[-1].spec, copies)
    assert not [line for line in caplog.messages if "begins" in line]
    clock.now += 6
    for _report in range(2):
        flow.report(flow.engine.started[-1].spec, copies)
    assert [line for line in caplog.messages if "again" in line] == ["A->B: task 0 runs again"]
    assert fail("unreachable.") == 1


def test_many_partitions_that_fail_at_once_are_a_few_lines_with_their_topics(caplog: pytest.LogCaptureFixture) -> None:
    tps = [TopicPartition("a", number) for number in range(30)]
    flow = Flow(*tps, settings=("tasks.max=1",))
    rows = [PartitionReport("a", tp.partition, failure=f"A->B {tp}: no.") for tp in tps]
    flow.report(flow.engine.started[0].spec, TaskReport(rows))
    assert caplog.messages == [
        *(f"A->B a-{number}: no." for number in range(10)),
        "A->B: 20 more partitions failed at the same time",
    ]
    first = caplog.records[0]
    assert (first.levelname, first.topic, first.partition, first.task) == ("ERROR", "a", 0, 0)  # type: ignore[attr-defined]


def test_failures_of_topics_that_are_no_longer_copied_are_forgotten_and_their_counts_kept() -> None:
    flow = Flow(A0, Z0)
    row = PartitionReport("z", 0, records=7, failure="z-0: no.")
    flow.status.take("A->B-1", TaskReport([row]))
    assert flow.status.failures == ["z-0: no."]
    flow.copy(A0)
    assert flow.status.failures == []
    assert [row.topic for row in flow.status.rows()] == ["a"]
    assert flow.status.counts.records == 7


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_a_flow_that_rests_on_request_is_shown_so_and_is_not_unready(clock: Any, state: Any) -> None:
    flow = Flow(A0, status=FlowStatus(model.Flow("A", "B"), lambda: clock.now))
    flow.status.state = "RUNNING"
    flow.handle(SetSuspended(state), TaskEnd(flow.engine.started[0].spec))
    flow.snapshot("f", "f")
    clock.now += 60
    snapshot = flow.snapshot("f", "f")
    assert (snapshot.state, snapshot.unready, snapshot.partitions[0].state.value) == (state, (), "waiting")
    flow.handle(SetSuspended(None))
    clock.now += 60
    snapshot = flow.snapshot("f", "f")
    assert (snapshot.state, len(snapshot.unready)) == ("RUNNING", 1), "its task has not reported"


def test_the_next_run_of_a_flow_keeps_counts_and_losses_and_shows_no_old_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Flow(A0)
    row = PartitionReport("a", 0, next_offset=7, log_end=9, log_end_age_ms=0, records=7)
    flow.report(flow.engine.started[0].spec, TaskReport([row], losses=[LOSS]))
    assert flow.snapshot("f", "f").lag.records == 2
    flow.life.begin()
    flow.life.enter(FlowPhase.RUNNING)
    flow._reach_and_begin = lambda: None  # type: ignore[method-assign]
    flow._events.put(TaskEnd(flow.engine.started[0].spec))
    flow.stop()
    flow._run()
    status = flow.status
    assert status.state == "STOPPED"
    assert status.snapshot("f", "f", ()).losses == (LOSS,)
    status.restart()
    after = Flow(A0, status=status)
    monkeypatch.setattr(threading.Thread, "start", lambda _thread: None)
    after.start()
    snapshot = after.snapshot("f", "f")
    assert (snapshot.counts.records, snapshot.lag.records, snapshot.losses) == (7, None, (LOSS,))
    assert (after.written, after.written_by_this_run) == ({"A.a": 7}, {"A.a": 0})


def restarts_of(flow: Flow, number: int = 0) -> dict[str, int]:
    return {reason.value: count for reason, count in flow.snapshot("f", "f").tasks[number].restarts.items()}


def begin_again(flow: Flow, clock: Any) -> Any:
    """Let the flow start what is due; the spec of the newest run."""
    clock.now += 600
    flow.handle(RunStepsNow())
    clock.now += 1  # or readers share the last snapshot
    return flow.engine.started[-1].spec


def test_restarts_of_a_task_are_counted_by_their_reason(clock: Any) -> None:
    flow = Flow(A0, settings=("tasks.max=1",))
    assert restarts_of(flow) == {}
    spec = flow.engine.started[0].spec
    flow.report(spec, TaskReport([PartitionReport("a", 0)]))
    flow.handle(TaskEnd(spec, error="no."))
    spec = begin_again(flow, clock)
    assert restarts_of(flow) == {"failed": 1}
    flow.handle(TaskEnd(spec, error="Spark lost the task: it was killed.", is_lost=True))
    spec = begin_again(flow, clock)
    flow.report(spec, TaskReport([PartitionReport("a", 0)]))
    flow.handle(RestartTask(0), TaskEnd(spec))
    spec = begin_again(flow, clock)
    assert restarts_of(flow) == {"failed": 1, "lost": 1, "requested": 1}


def test_a_failed_partition_that_is_tried_again_counts_for_its_task(clock: Any) -> None:
    flow = Flow(A0, Z0, settings=("tasks.max=1",))
    failed = [PartitionReport("a", 0, failure="no."), PartitionReport("z", 0, failure="no.")]
    flow.report(flow.engine.started[0].spec, TaskReport(failed))
    flow._supervisor.look_after()
    clock.now += 600
    flow._supervisor.look_after()
    clock.now += 1
    assert restarts_of(flow) == {"partition": 2}


def test_the_snapshot_has_the_configured_limit_and_follows_a_change(clock: Any) -> None:
    flow = Flow(A0, settings=("tasks.max=1", "heliograph.throttle.bytes.per.second=900"))
    assert flow.snapshot("f", "f").throttle_bytes_per_s == 900
    flow.adopt(load(minimal("tasks.max=1"), FakeLookup({})))
    flow.handle()
    clock.now += 1
    assert flow.snapshot("f", "f").throttle_bytes_per_s == 0


def test_the_snapshot_has_the_path_of_each_replicated_topic_with_heartbeats() -> None:
    flow = Flow(*(TopicPartition(topic, 0) for topic in ("a", "heartbeats", "D.C.heartbeats", "my-heartbeats")))
    assert flow.snapshot("f", "f").heartbeat_paths == {
        "heartbeats": ("A", "B"),
        "D.C.heartbeats": ("C", "D", "A", "B"),
    }


def test_loss_totals_are_kept_by_the_next_run_and_unknown_before_the_topic_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loss_log, "read_losses", lambda *_args: iter([LOSS]))
    flow = Flow(A0)
    assert flow.snapshot("f", "f").loss_totals == {}
    flow._losses.begin()
    flow.life.begin()
    flow._reach_and_begin = lambda: None  # type: ignore[method-assign]
    flow._events.put(TaskEnd(flow.engine.started[0].spec))
    flow.stop()
    flow._run()
    after = Flow(A0, status=flow.status)
    monkeypatch.setattr(threading.Thread, "start", lambda _thread: None)
    after.start()
    totals = after.snapshot("f", "f").loss_totals
    assert set(totals) == set(LossCause)
    assert totals[LossCause.SOURCE_TRUNCATED] == LossTotal(1, 2)
    assert totals[LossCause.LEFT_OUT] == LossTotal(0, 0)


def test_a_status_names_some_of_many_failures() -> None:
    flow = Flow(A0)
    flow.tasks[0].reported()
    state = flow.tasks[0].state([f"t-{p}: no." for p in range(9000)])
    assert state.trace is not None
    assert state.trace.splitlines()[-2:] == ["t-19: no.", "and 8980 more"]


def test_events_of_tasks_are_logged_by_their_severity(caplog: pytest.LogCaptureFixture) -> None:
    flow = Flow(A0)
    tp = TopicPartition("a", 0)
    events = [TaskEvent(Severity.ERROR, "records are lost", tp), TaskEvent(Severity.WARNING, "a record was left out")]
    flow.report(flow.engine.started[0].spec, TaskReport(events=events))
    logged = [(record.levelname, record.message) for record in caplog.records]
    assert logged == [("ERROR", "records are lost"), ("WARNING", "a record was left out")]
    fields = [(record.flow, record.topic, record.partition) for record in caplog.records[:1]]  # type: ignore[attr-defined]
    assert fields == [("A->B", "a", 0)]


def test_a_late_report_of_a_run_that_failed_leaves_the_reason_and_the_counts(caplog: pytest.LogCaptureFixture) -> None:
    flow = Flow(A0)
    spec = flow.engine.started[0].spec
    flow.report(spec, TaskReport([PartitionReport("a", 0, records=5)]))
    flow._put_report(
        spec, TaskReport([PartitionReport("a", 0, records=7)], [TaskEvent(Severity.ERROR, "a-0: no.")])
    )  # on a lease thread
    assert flow.status.counts.records == 7, "shown as it arrives, however busy the flow's thread is"
    flow._events.put(TaskEnd(spec, error="it fell over."))
    flow.handle()
    flow.report(spec, TaskReport([PartitionReport("a", 0, records=9)], [TaskEvent(Severity.WARNING, "a-0: again no.")]))
    assert flow.task_states[0][1:3] == ("FAILED", "it fell over.")
    assert flow.status.counts.records == 7, "what the failed run had counted is not counted twice"
    events = [(record.levelname, record.getMessage()) for record in caplog.records if record.msg == "%s"]
    assert events == [("ERROR", "a-0: no."), ("WARNING", "a-0: again no.")], "events are logged by their severity"


def test_reports_that_wait_for_the_flows_thread_become_one_with_all_events() -> None:
    reports = PendingReports()
    first, other = (SimpleNamespace(task_id="A->B-0", attempt=attempt) for attempt in (1, 2))
    one, two = (TaskEvent(Severity.ERROR, message) for message in ("one.", "two."))
    assert reports.put(first, TaskReport([], [one]))  # type: ignore[arg-type]
    assert not reports.put(first, TaskReport([PartitionReport("a", 0, records=9)], [two]))  # type: ignore[arg-type]
    assert reports.put(other, TaskReport([]))  # type: ignore[arg-type]
    newest = reports.take(first)  # type: ignore[arg-type]
    assert (newest.events, newest.partitions[0].records) == ([one, two], 9)
    assert reports.put(first, TaskReport([]))  # type: ignore[arg-type]


class FaultyFilter:
    """A user's class that raises when it is called."""

    def __init__(self) -> None:
        self.is_faulty = True

    def __call__(self) -> Replicated:
        if self.is_faulty:
            raise ZeroDivisionError("a mistake of the user's")
        return Replicated((A0,), {"a": "A.a"})


def test_a_users_class_that_raises_is_an_issue_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    flow = Flow(A0)
    topics: Any = FaultyFilter()
    flow._steps._sync_topics = topics  # type: ignore[method-assign]
    flow._steps.runner.repeat_later("topics", flow._refresh, 600)
    flow.handle(RunStepsNow())
    assert flow.status.issue == "unexpected ZeroDivisionError: a mistake of the user's"
    assert "(will be tried again)" in caplog.text
    due_at = flow._steps.runner.schedule.next_at
    assert due_at is not None
    assert due_at < time.monotonic() + 31, "before its interval"
    topics.is_faulty = False
    flow.handle(RunStepsNow())
    assert flow.status.issue is None


def test_without_spark_a_flow_fails_at_a_refresh() -> None:
    flow = Flow(A0)

    def no_spark() -> Replicated:
        raise EngineError("Spark's JVM has ended.")

    flow._steps._sync_topics = no_spark  # type: ignore[method-assign]
    flow._steps.runner.repeat_later("topics", flow._refresh, 600)
    with pytest.raises(EngineError):
        flow.handle(RunStepsNow())


def test_a_flow_that_only_waits_for_its_clusters_ends_as_soon_as_it_is_stopped() -> None:
    flow = Flow(A0)
    flow.stop()
    assert flow.join(0)
    assert (flow.life.phase, flow.status.state) == (FlowPhase.ABANDONED, "STOPPED")


def test_a_task_that_restarts_while_a_removed_topic_is_still_assigned_to_it_copies_the_others(clock: Any) -> None:
    flow = Flow(A0, Z0, settings=("tasks.max=1",))
    flow.handle(TaskEnd(flow.engine.started[0].spec, error="no."))
    flow.are_offsets_there = False
    with pytest.raises(UnreachableError):
        flow.copy(A0)
    assert flow.tasks[0].tps == {A0, Z0}, "the new assignment was not completed"
    flow.are_offsets_there = True
    clock.now += 60
    flow.handle(RunStepsNow())
    assert [partition.tp for partition in flow.engine.started[1].spec.partitions] == [A0]
    assert flow.tasks[0].running is not None


def test_a_task_that_cannot_be_started_is_tried_again_whatever_the_cause(
    clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow(A0)
    flow.handle(RestartTask(0))
    with monkeypatch.context() as patch:
        patch.setattr(task_supervisor, "task_spec", lambda *_args: 1 / 0)
        flow.handle(TaskEnd(flow.engine.started[0].spec))
    assert (flow.tasks[0].phase, len(flow.engine.started)) == (TaskPhase.BACKING_OFF, 1)
    assert "ZeroDivisionError" in str(flow.task_states[0].trace)
    clock.now += 60
    flow.handle(RunStepsNow())
    assert flow.tasks[0].phase is TaskPhase.WAITING_FOR_SLOT
    assert flow.tasks[0].running is flow.engine.started[1]


def test_source_offsets_that_cannot_be_read_for_an_unknown_reason_are_read_again_after_a_pause(clock: Any) -> None:
    flow = Flow(A0)
    flow.handle(RestartTask(0))
    reads: list[float] = []

    def damaged() -> SourceOffsets:
        reads.append(clock.now)
        raise ValueError

    steps: Any = flow._steps
    steps.read_source_offsets = damaged
    flow._events.put(TaskEnd(flow.engine.started[0].spec))
    for _round in range(20):
        clock.now += 0.01
        flow.handle(RunStepsNow())
    assert len(reads) == 1


def test_a_flow_that_gets_events_faster_than_it_handles_them_still_runs_its_steps_and_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow = Flow(A0)
    handled: list[Event] = []

    def handle(event: Event) -> None:
        handled.append(event)
        assert len(handled) < 100, "it never comes to its steps"
        flow._events.put(event)

    monkeypatch.setattr(flow, "_handle", handle)
    flow.handle(RunStepsNow(), RunStepsNow())
    assert len(handled) == 3, "the first, and the two that were there when it had been handled"


def test_a_flow_that_is_stopped_while_it_waits_for_its_clusters_reports_nothing_into_its_next_run() -> None:
    flow = Flow(A0)
    flow.stop()
    assert flow.join(0), "its next run may begin, although its threads still wait"
    flow._loss_loop._steps.report("start", ["B does not answer."])
    assert flow.status.issues == {}


@pytest.mark.parametrize(("state", "shown"), [("STOPPED", []), ("PAUSED", ["PAUSED", "PAUSED"])])
def test_a_flow_that_a_user_has_suspended_begins_suspended_after_a_restart(state: Any, shown: list[str]) -> None:
    last_run, flow = Flow(A0, Z0), Flow()
    last_run.set_suspended(state)
    last_run.stop()  # the request may not have been handled yet
    flow.continue_from(last_run)
    flow.copy(A0, Z0)
    flow._supervisor.assign()  # as its beginning does
    flow.handle(RunStepsNow())
    assert flow.engine.started == []
    assert (flow.connector_state, [task.state for task in flow.task_states]) == ((state, None), shown)
    assert flow.is_suspended
    (row,) = [row for row in flow.status.snapshot("A->B", "c", ()).partitions if row.tp == A0]
    assert "stopped on request" in str(row.reason)
    flow.handle(SetSuspended(None))
    assert {tp for each in flow.engine.started for tp in (spec.tp for spec in each.spec.partitions)} == {A0, Z0}


def test_a_loss_that_the_last_run_of_a_flow_could_not_write_is_written_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[Loss] = []
    monkeypatch.setattr(LossLog, "_append", lambda _log, losses: written.extend(losses))
    last_run, flow = Flow(A0), Flow(A0)
    loss = Loss(1, flow.flow, "a", 0, 0, 4, 5, LossCause.TARGET_DELETED)
    last_run.report(last_run.engine.started[0].spec, TaskReport([], losses=[loss]))
    flow.continue_from(last_run)
    assert flow.snapshot("A->B", "c").losses == (loss,)
    assert flow._losses.write() == ()
    assert written == [loss]
    assert flow.unwritten_losses == ()

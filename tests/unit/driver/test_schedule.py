"""Repeated steps: when they are due, and how long their issues are kept."""

from __future__ import annotations

from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.steps.issues import Change, by_reason
from heliograph.driver.steps.step_runner import Schedule
from heliograph.model import Flow


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def nothing() -> tuple[str, ...]:
    return ()


def test_a_step_is_due_at_once_or_later_and_then_every_interval() -> None:
    clock = Clock()
    schedule = Schedule(clock)
    assert schedule.next_at is None
    schedule.repeat("configs", nothing, 10)
    schedule.repeat("topics", nothing, 3, first_in_s=3)
    assert schedule.take_due() == [("configs", nothing)]
    assert schedule.next_at == 103
    clock.now = 104
    assert schedule.take_due() == [("topics", nothing)]
    assert schedule.take_due() == []
    assert schedule.next_at == 107


def test_a_step_that_was_late_is_not_made_up_for() -> None:
    clock = Clock()
    schedule = Schedule(clock)
    schedule.repeat("topics", nothing, 3)
    clock.now = 1000
    assert len(schedule.take_due()) == 1
    assert schedule.next_at == 1003


def test_a_failed_step_runs_again_sooner_but_never_later() -> None:
    clock = Clock()
    schedule = Schedule(clock)
    schedule.repeat("ACLs", nothing, 600)
    schedule.repeat("topics", nothing, 5)
    schedule.take_due()
    for name in ("ACLs", "topics"):
        schedule.hasten(name, 30)
    clock.now = 105
    assert [name for name, _step in schedule.take_due()] == ["topics"]
    clock.now = 130
    assert [name for name, _step in schedule.take_due()] == ["ACLs", "topics"]


def test_an_issue_is_kept_until_its_own_steps_next_success() -> None:
    status = FlowStatus(Flow("A", "B"))
    assert status.note("ACLs", ["no DESCRIBE"]) is Change.NEW
    assert status.note("configs", []) is Change.NONE
    assert status.note("ACLs", ["no DESCRIBE"]) is Change.NONE, "the same again is no change"
    assert status.note("configs", ["no ALTER_CONFIGS"]) is Change.NEW
    assert status.issue == "no DESCRIBE; no ALTER_CONFIGS"
    assert status.note("ACLs", []) is Change.CLEARED
    assert status.issue == "no ALTER_CONFIGS"
    assert status.issues == {"configs": ("no ALTER_CONFIGS",)}


def test_many_topics_with_one_reason_are_one_sentence() -> None:
    failures = {f"t{n}": "x" for n in range(7)} | {"u": "y"}
    assert by_reason("The topics {names} cannot be created", failures) == (
        "The topics t0, t1, t2, t3, t4 and 2 more cannot be created: x",
        "The topics u cannot be created: y",
    )

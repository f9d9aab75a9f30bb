"""Control loops: steps in their order, issues until the next success, an end when stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import pytest

from heliograph.driver.steps.issues import Change
from heliograph.driver.steps.step_runner import ControlLoop, Schedule
from heliograph.errors import ClusterError
from tests.support.runs.copying import wait_for


class FakeWork:
    """Two steps, of which the second fails as often as the test says."""

    def __init__(self, begin_failures: int = 0, step_failures: int = 0, *, interval_s: float = 0.01) -> None:
        self.done: list[str] = []
        self.closed = threading.Event()
        self._begin_failures, self._step_failures, self._interval_s = begin_failures, step_failures, interval_s

    def begin(self) -> Iterable[str]:
        self.done.append("begin")
        if self._begin_failures:
            self._begin_failures -= 1
            raise ClusterError("not there yet")
        return ()

    def plan(self, schedule: Schedule) -> None:
        schedule.repeat("first", self._first, self._interval_s)
        schedule.repeat("second", self._second, self._interval_s)

    def _first(self) -> Iterable[str]:
        self.done.append("first")
        return ()

    def _second(self) -> Iterable[str]:
        self.done.append("second")
        if self._step_failures:
            self._step_failures -= 1
            raise ZeroDivisionError("a mistake of ours")
        return ()

    def close(self) -> None:
        self.closed.set()


class Issues:
    """An issue log that keeps all issues."""

    def __init__(self) -> None:
        self.now: dict[str, tuple[str, ...]] = {}
        self.ever: list[tuple[str, ...]] = []

    def note(self, step: str, issues: Iterable[str]) -> Change:
        before, self.now[step] = self.now.get(step, ()), tuple(issues)
        if self.now[step]:
            self.ever.append(self.now[step])
        return Change.between(before, self.now[step])

    @property
    def issues(self) -> dict[str, tuple[str, ...]]:
        return {step: issues for step, issues in self.now.items() if issues}


@pytest.fixture
def issues() -> Issues:
    return Issues()


def test_steps_come_in_order_and_again(issues: Issues) -> None:
    work = FakeWork()
    loop = ControlLoop("A->B test", work, issues)
    loop.start()
    wait_for(lambda: work.done.count("second") > 2)
    loop.stop()
    assert loop.join(60)
    assert work.closed.is_set()
    assert work.done[:3] == ["begin", "first", "second"]
    assert issues.ever == []


def test_a_step_that_fails_after_the_stop_is_not_reported_to_the_log_of_the_next_loop(issues: Issues) -> None:
    asked, may_fail = threading.Event(), threading.Event()

    class SlowWork(FakeWork):
        def begin(self) -> Iterable[str]:
            asked.set()
            may_fail.wait(60)
            raise ClusterError("not there yet")

    loop = ControlLoop("A->B test", SlowWork(), issues)
    loop.start()
    assert asked.wait(60)
    loop.stop()
    may_fail.set()
    assert loop.join(60)
    assert issues.ever == []


def test_a_beginning_that_fails_is_reported_and_tried_again(issues: Issues) -> None:
    work = FakeWork(begin_failures=1)
    loop = ControlLoop("A->B test", work, issues)
    loop.start()
    wait_for(lambda: "second" in work.done)
    loop.stop()
    assert loop.join(60)
    assert issues.ever == [("not there yet",)]
    assert issues.now["A->B test: start"] == ()
    assert work.done.index("first") > 1


def test_a_step_that_fails_is_reported_and_runs_again_before_its_interval(issues: Issues) -> None:
    work = FakeWork(step_failures=1, interval_s=3600)
    loop = ControlLoop("A->B test", work, issues)
    loop.start()
    wait_for(lambda: work.done.count("second") == 2)
    wait_for(lambda: issues.now["A->B test: second"] == ())
    loop.stop()
    assert loop.join(60)
    assert issues.ever == [("unexpected ZeroDivisionError: a mistake of ours",)]
    assert work.done.count("first") == 1


def test_once_is_every_step_once_and_the_end(issues: Issues) -> None:
    work = FakeWork(step_failures=1)
    ControlLoop("A->B test", work, issues).run_once()
    assert work.done == ["begin", "first", "second"]
    assert work.closed.is_set()
    assert len(issues.ever) == 1


class SlowWork(FakeWork):
    """Its second step takes until the test lets it go on, and writes then if it may."""

    def __init__(self) -> None:
        super().__init__()
        self.is_under_way, self.may_go_on = threading.Event(), threading.Event()

    def check_before_writes(self, check: Callable[[], None]) -> None:
        self._check = check

    def _second(self) -> Iterable[str]:
        self._check()
        self.is_under_way.set()
        assert self.may_go_on.wait(60)
        self._check()
        self.done.append("written")
        return ()


def test_a_step_under_way_when_the_loop_is_stopped_writes_no_more(issues: Issues) -> None:
    work = SlowWork()
    loop = ControlLoop("A->B test", work, issues)
    loop.start()
    assert work.is_under_way.wait(60)
    loop.stop()
    work.may_go_on.set()
    assert loop.join(60)
    assert work.closed.is_set()
    assert work.done == ["begin", "first"]
    assert issues.ever == []


class UnansweredWork(FakeWork):
    """Its beginning takes until the test lets it end, and fails."""

    def __init__(self) -> None:
        super().__init__()
        self.is_under_way, self.may_end = threading.Event(), threading.Event()

    def begin(self) -> Iterable[str]:
        self.is_under_way.set()
        assert self.may_end.wait(60)
        raise ClusterError("no answer")


def test_a_loop_that_was_stopped_reports_nothing_into_the_issues_of_its_successor(
    issues: Issues, caplog: pytest.LogCaptureFixture
) -> None:
    work, next_work = UnansweredWork(), FakeWork()
    loop, successor = (ControlLoop("A->B test", each, issues) for each in (work, next_work))
    loop.start()
    assert work.is_under_way.wait(60)
    loop.stop()
    successor.start()
    wait_for(lambda: "second" in next_work.done)
    work.may_end.set()
    assert loop.join(60)
    assert issues.issues == {}
    assert caplog.messages == []
    successor.stop()
    assert successor.join(60)


def test_a_loop_that_never_began_can_be_stopped(issues: Issues) -> None:
    loop = ControlLoop("A->B test", FakeWork(), issues)
    loop.stop()
    assert loop.join(60)

"""The status of a flow: issues, counts and rates."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

from heliograph.diagnostics import note, warning
from heliograph.driver.flow.flow_status import FlowStatus, SourceStep
from heliograph.driver.steps import issues
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import Flow, TopicPartition
from heliograph.status.flow_snapshot import Lag
from heliograph.status.json_views import flow_json
from heliograph.status.partition_status import RETRY_SHOWN_S

if TYPE_CHECKING:
    import pytest


def test_a_partition_that_waits_is_an_issue_until_it_continues() -> None:
    status = FlowStatus(Flow("A", "B"))
    status.take("A->B-0", TaskReport([PartitionReport("t", 1, issue="NOT_ENOUGH_REPLICAS")]))
    status.take("A->B-1", TaskReport([PartitionReport("t", 2)]))
    assert status.issue == "t-1 waits: NOT_ENOUGH_REPLICAS"
    status.take("A->B-0", TaskReport([PartitionReport("t", 1)]))
    assert status.issue is None


def test_where_a_cluster_is_away_its_partitions_last_words_do_not_hide_it() -> None:
    status = FlowStatus(Flow("A", "B"))
    rows = [PartitionReport("t", p, issue="FENCED_LEADER_EPOCH") for p in range(2)]
    status.take(
        "A->B-0", TaskReport(rows, unavailable_clusters=["cluster 'A': a:9092 cannot be reached: Connection refused"])
    )
    assert status.issue == "cluster 'A': a:9092 cannot be reached: Connection refused; 2 partitions wait"


def test_of_a_partition_that_is_to_begin_again_only_the_counters_are_taken() -> None:
    status = FlowStatus(Flow("A", "B"))
    tp = TopicPartition("t", 0)
    refused = PartitionReport("t", 0, records=7, next_offset=7, failure="t-0: refused.")
    status.take("A->B-0", TaskReport([refused]))
    status.partitions.open_again({tp: 1}, note("task 0 begins with it again"), is_requested=True)
    refused.records = 8
    status.take("A->B-0", TaskReport([refused]))
    (row,) = status.partitions.statuses()
    assert (row.state, str(row.reason), row.records) == ("waiting", "task 0 begins with it again", 8)
    assert status.failures == []
    status.take("A->B-0", TaskReport([PartitionReport("t", 0, records=9, next_offset=7, failure="no.", opening=1)]))
    assert [str(each.state) for each in status.partitions.statuses()] == ["failed"]
    status.restart()
    status.take("A->B-0", TaskReport([PartitionReport("t", 0, failure="again.")]))
    assert status.failures == ["again."]


def flow_of(*partitions: PartitionReport) -> tuple[FlowStatus, SimpleNamespace]:
    """Return a running flow of a task with these partitions, and the clock."""
    clock = SimpleNamespace(now=100.0)
    status = FlowStatus(Flow("A", "B"), lambda: clock.now)
    status.partitions.set_replicated({each.tp: f"A.{each.topic}" for each in partitions})
    status.state = "RUNNING"
    return status, clock


def unready_after(status: FlowStatus, clock: SimpleNamespace, seconds: int, *rows: PartitionReport) -> tuple[str, ...]:
    """Return why a flow is not ready after its task has reported the same for some time."""
    for _second in range(seconds):
        clock.now += 1
        status.take("A->B-0", TaskReport(list(rows)))
    return status.snapshot("A->B", "A->B", ()).unready


def test_an_idle_partition_does_not_hide_that_all_others_wait() -> None:
    idle = PartitionReport("idle", 0, 5, None, 5, 0)
    stuck = [PartitionReport("t", n, 5, None, 9, 0, issue="NOT_ENOUGH_REPLICAS") for n in range(99)]
    status, clock = flow_of(idle, *stuck)
    assert unready_after(status, clock, 4, idle, *stuck) == (), "a leader may be moving"
    assert unready_after(status, clock, 20, idle, *stuck) == (
        "99 partitions of 100 are not copied: NOT_ENOUGH_REPLICAS",
    )
    moving = PartitionReport("idle", 0, 6, None, 9, 0, acked_age_ms=0)
    assert unready_after(status, clock, 1, moving, *stuck) == (), "one of those that are behind is copied"


def test_one_failed_partition_is_no_stall_but_all_are() -> None:
    failed, idle = PartitionReport("t", 0, 5, None, 9, 0, failure="no."), PartitionReport("t", 1, 5, None, 5, 0)
    status, clock = flow_of(failed, idle)
    assert unready_after(status, clock, 30, failed, idle) == ()
    also = PartitionReport("t", 1, 5, None, 9, 0, failure="no.")
    assert unready_after(status, clock, 1, failed, also) == ("all its partitions have failed: no.",)


def test_a_task_that_fails_again_and_again_is_never_ready_in_between() -> None:
    tp = TopicPartition("t", 0)
    row = PartitionReport("t", 0, 5, None, 9, 0)
    status, clock = flow_of(row)
    seen = []
    for attempt in range(1, 10):
        status.partitions.hold([tp], warning("task 0 failed: it fell over. It is started again."))
        seen.append(unready_after(status, clock, 0))
        clock.now += 20
        status.partitions.hold([tp], note("task 0 waits for a Spark slot"))
        clock.now += 4
        seen.append(unready_after(status, clock, 0))
        status.take("A->B-0", TaskReport([row]), attempt)
        seen.append(unready_after(status, clock, 0))
        status.task_ended("A->B-0", [tp], attempt)
    assert all(seen[2:]), seen


def test_a_suspended_flow_is_ready() -> None:
    row = PartitionReport("t", 0, 5, None, 9, 0)
    status, clock = flow_of(row)
    status.partitions.hold([row.tp], note("the connector is stopped on request"))
    clock.now += 60
    found = status.snapshot("A->B", "A->B", (), "STOPPED")
    assert (found.state, found.unready) == ("STOPPED", ())


def test_an_open_transaction_of_the_source_is_no_stall() -> None:
    row = PartitionReport("t", 0, 5, None, 125, 0, stable_end=5)
    status, clock = flow_of(row)
    assert unready_after(status, clock, 60, row) == ()
    (seen,) = status.partitions.statuses()
    assert (seen.state, seen.lag_records) == ("copying", 120)
    assert str(seen.reason) == "an open transaction of the source holds back what follows"


def test_the_lag_over_another_log_is_unknown_and_never_zero() -> None:
    row = PartitionReport("t", 0, 10, None, 6, 0)
    status, clock = flow_of(row)
    unready_after(status, clock, 1, row)
    assert [each.lag_records for each in status.partitions.statuses()] == [None]
    unready_after(status, clock, 1, PartitionReport("t", 0, None, None, None, failure="it was created again."))
    status.partitions.set_log_ends({row.tp: 60}, clock.now)
    assert [(each.state, each.next_offset, each.lag_records) for each in status.partitions.statuses()] == [
        ("failed", None, None)
    ]


def refused(offset: int, **changes: object) -> TaskReport:
    failure = f"A->B t-0: the batch at offset {offset} was refused."
    fields = {"next_offset": offset, "log_end": 20, "log_end_age_ms": 0, "failure": failure, **changes}
    return TaskReport([PartitionReport("t", 0, **fields)])  # type: ignore[arg-type]


def test_the_lag_of_a_flow_is_unknown_until_it_has_found_its_partitions() -> None:
    """Also in another run: a source that is down at the start hides what there is to copy."""
    status = FlowStatus(Flow("A", "B"))
    for state in ("STARTING", "FAILED"):
        status.state = state
        snapshot = status.snapshot("f", "f", ())
        assert (snapshot.lag, snapshot.catch_up_seconds) == (Lag.unknown(), None)
        assert flow_json(snapshot)["lag_records"] is None
    status.partitions.set_replicated({})
    snapshot = status.snapshot("f", "f", (), "STOPPED")
    assert (snapshot.lag.records, snapshot.lag.seconds, snapshot.catch_up_seconds) == (0, 0.0, 0.0), "it has none"
    status.restart()
    assert status.snapshot("f", "f", ()).lag == Lag.unknown()


def test_a_partition_that_fails_at_every_try_is_failed_in_between_and_reported_once() -> None:
    clock = SimpleNamespace(now=100.0)
    status, tp = FlowStatus(Flow("A", "B"), lambda: clock.now), TopicPartition("t", 0)
    status.state = "RUNNING"
    status.partitions.set_replicated({tp: "A.t"})

    def shown() -> tuple[str, bool, bool]:
        (row,) = status.partitions.statuses()
        return str(row.state), bool(status.partitions.failures([tp])), not status.snapshot("A->B", "", ()).unready

    for opening in range(3):
        status.take("A->B-0", refused(7, opening=opening))
        assert list(status.partitions.take_new_failures()) == ([tp] if opening == 0 else [])
        clock.now += 6
        assert shown() == ("failed", True, False)
        assert status.partitions.failed_of([tp]) == [tp]
        status.partitions.open_again({tp: opening + 1}, note("task 0 begins with it again"))
        assert shown() == ("failed", True, False)
        assert status.partitions.failed_of([tp]) == [], "it is not tried twice at once"
        clock.now += 1
        status.take("A->B-0", refused(7, opening=opening + 1, failure=None))
        assert shown() == ("failed", True, False), "it has copied nothing yet"
    status.take("A->B-0", refused(12, opening=3, failure=None, acked_age_ms=0))
    assert shown() == ("copying", False, True)
    status.take("A->B-0", refused(12, opening=3))
    assert list(status.partitions.take_new_failures()) == [tp]


def test_a_retry_of_which_nothing_is_heard_does_not_keep_the_old_failure() -> None:
    clock = SimpleNamespace(now=100.0)
    status, tp = FlowStatus(Flow("A", "B"), lambda: clock.now), TopicPartition("t", 0)
    status.take("A->B-0", refused(7))
    status.partitions.retry([tp])
    status.partitions.hold([tp], note("task 0 waits for a Spark slot"))
    clock.now += RETRY_SHOWN_S + 1
    (row,) = status.partitions.statuses()
    assert (str(row.state), str(row.reason)) == ("waiting", "task 0 waits for a Spark slot")


def test_a_partition_that_has_nothing_left_to_copy_has_not_failed_any_more() -> None:
    clock = SimpleNamespace(now=100.0)
    status, tp = FlowStatus(Flow("A", "B"), lambda: clock.now), TopicPartition("t", 0)
    status.take("A->B-0", refused(20, failure="the principal needs READ."))
    status.partitions.open_again({tp: 1}, note("task 0 begins with it again"))
    clock.now += 1
    status.take("A->B-0", refused(20, opening=1, failure=None, log_end=None, log_end_age_ms=None))
    assert [str(each.state) for each in status.partitions.statuses()] == ["failed"], "the end of its log is an old one"
    status.take("A->B-0", refused(20, opening=1, failure=None))
    assert [str(each.state) for each in status.partitions.statuses()] == ["caught_up"]


def test_a_flow_that_may_not_see_any_of_its_topics_is_not_ready() -> None:
    status = FlowStatus(Flow("A", "B"))
    status.state = "RUNNING"
    assert status.snapshot("A->B", "", ()).unready == ()
    status.note(SourceStep.TOPICS, ["'A' does not show us t"])
    assert status.snapshot("A->B", "", ()).unready == ("'A' does not show us t",)


def test_many_issues_are_cut_short() -> None:
    status = FlowStatus(Flow("A", "B"))
    status.take("A->B-0", TaskReport([PartitionReport("t", p, issue="x") for p in range(9)]))
    assert status.issue is not None
    assert status.issue.endswith("and 6 more")


def test_a_tasks_issue_is_logged_once_it_lasts_and_when_it_clears(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(issues, "time", clock)
    caplog.set_level(logging.INFO)
    status = FlowStatus(Flow("A", "B"))

    def report_at(now: float, *stuck: int) -> str | None:
        clock.now = now
        rows = [PartitionReport("t", p, issue="no leader.") for p in stuck]
        unavailable = ["cluster 'B': b:1 cannot be reached"] if stuck and now >= 115 else []
        status.take("A->B-0", TaskReport(rows, unavailable_clusters=unavailable))
        return status.tasks.issue_of("A->B-0")

    assert [report_at(100, 1), report_at(103, 1), report_at(103.5)] == [None] * 3
    assert caplog.messages == [], "a leader that moves wakes nobody"
    assert [report_at(105, 1), report_at(108.9, 1)] == [None] * 2
    assert report_at(109, 1) == "t-1 waits: no leader."
    assert report_at(111, 1, 2) == "t-1 waits: no leader.", "what is shown does not change with every report"
    assert report_at(112.9, 1, 2) == "t-1 waits: no leader."
    assert caplog.messages == [], "partitions are logged by the state of the flow"
    assert report_at(115, 1, 2) == "cluster 'B': b:1 cannot be reached; 2 partitions wait"
    assert report_at(116) is None
    assert caplog.messages == [
        "A->B: cluster 'B': b:1 cannot be reached (retrying)",
        "A->B: recovered: cluster 'B': b:1 cannot be reached",
    ]


def test_an_issue_that_several_tasks_have_is_one_line_and_one_when_none_has_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(issues, "time", clock)
    caplog.set_level(logging.INFO)
    status = FlowStatus(Flow("A", "B"))
    gone = TaskReport([], unavailable_clusters=["cluster 'B': b:1 cannot be reached"])
    for second in range(10):
        clock.now = 100.0 + second
        for task in range(4):
            status.take(f"A->B-{task}", gone)
    for task in range(3):
        status.take(f"A->B-{task}", TaskReport([]))
    assert caplog.messages == ["A->B: cluster 'B': b:1 cannot be reached (retrying)"]
    status.take("A->B-3", TaskReport([]))
    assert caplog.messages[1:] == ["A->B: recovered: cluster 'B': b:1 cannot be reached"]


def test_counts_survive_the_restart_of_a_task() -> None:
    status = FlowStatus(Flow("A", "B"))
    for _attempt in range(2):
        status.take("A->B-0", TaskReport([PartitionReport("t", 0, records=5, bytes=50)]))
        status.task_ended("A->B-0", (TopicPartition("t", 0),))
    assert (status.counts.records, status.counts.bytes) == (10, 100)


def test_rates_are_sampled_once_a_second_however_many_tasks_report() -> None:
    clock = SimpleNamespace(now=100.0)
    status = FlowStatus(Flow("A", "B"), lambda: clock.now)
    for second in range(11):
        for task in range(20):
            clock.now = 100.0 + second + task / 20
            copied = 100 * (second + 1)
            row = PartitionReport("t", task, records=copied, bytes=10 * copied, latency_sum_ms=70 * second)
            row.latency_count = 10 * second
            status.take(f"A->B-{task}", TaskReport([row]))
    assert [at for at, *_counts in status.sums.by_topic["t"].samples] == [105.0, 106.0, 107.0, 108.0, 109.0, 110.0]
    (shown,) = status.rows()
    assert (shown.records_per_s, shown.bytes_per_s, shown.latency_ms) == (2000.0, 20_000.0, 7.0)

"""What a log says of copying that goes well: one line for each start of a task, one now and then of each connector."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from heliograph.driver.flow.flow_status import FlowStatus, ProgressLines, resume_summary
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.executor.contract.task_spec import PartitionSpec
from heliograph.model import Flow, SourceOffset, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(autouse=True)
def _all_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_the_rate_of_a_connector_is_logged_now_and_then_unless_it_is_idle(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = SimpleNamespace(now=100.0)
    status = FlowStatus(Flow("A", "B"))
    status.partitions.set_replicated({TopicPartition("t", p): "A.t" for p in range(2)})
    lines = ProgressLines("mirror", status, lambda: clock.now)

    def look_at(now: float, *records: int) -> list[str]:
        """After so many records, one number for each partition."""
        clock.now = now
        rows = [
            PartitionReport(
                "t", p, next_offset=count, log_end=200_000, log_end_age_ms=0, records=count, bytes=count * 1000
            )
            for p, count in enumerate(records)
        ]
        status.take("mirror-0", TaskReport(rows))
        caplog.clear()
        lines.report()
        return caplog.messages

    assert look_at(101, 5, 0) == [], "a line at each look would be too many"
    first = "mirror: 2 partitions (2 copying), 5,000 records/s, 5.0 MB/s, lag 250,000 records, unknown s"
    assert look_at(130, 60_000, 90_000) == [first]
    assert look_at(159, 60_000, 90_000) == []
    assert look_at(600, 60_000, 90_000) == [], "nothing was copied"
    later = "mirror: 2 partitions (2 copying), 20 records/s, 0.0 MB/s, lag 249,400 records, unknown s"
    assert look_at(630, 60_000, 90_600) == [later], "the rate is that of the last half minute, not of the idle time"


def test_what_earlier_runs_have_copied_is_not_the_rate_of_the_next(caplog: pytest.LogCaptureFixture) -> None:
    clock, status = SimpleNamespace(now=0.0), FlowStatus(Flow("A", "B"))
    status.take("mirror-0", TaskReport([PartitionReport("t", 0, records=90_000)]))
    lines = ProgressLines("mirror", status, lambda: clock.now)
    clock.now = 31.0
    lines.report()
    assert " 0 records/s" in caplog.messages[-1]


def test_records_of_a_restarted_task_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = SimpleNamespace(now=0.0)
    status = FlowStatus(Flow("A", "B"))
    lines = ProgressLines("mirror", status, lambda: clock.now)
    for _attempt in range(2):
        status.take("mirror-0", TaskReport([PartitionReport("t", 0, records=30)]))
        status.task_ended("mirror-0", (T0,))
    clock.now = 30.0
    lines.report()
    assert caplog.messages == ["mirror: 1 partition (1 waiting), 2 records/s, 0.0 MB/s, lag unknown"]


@pytest.mark.parametrize(
    ("committed", "already_there", "words"),
    [
        ((4, 9), (0, 0), "begins with 2 partitions: 2 after the committed offset"),
        ((None,), (0,), "begins with 1 partition: 1 without source offsets"),
        (
            (4, None),
            (1000, 234),
            (
                "begins with 2 partitions: 1 after the committed offset, 1 without source offsets;"
                " 1,234 records after that found on the target, not copied again"
            ),
        ),
        (
            (4,),
            (1,),
            (
                "begins with 1 partition: 1 after the committed offset;"
                " 1 record after that found on the target, not copied again"
            ),
        ),
    ],
)
def test_the_log_says_where_the_partitions_of_a_task_resume(
    committed: tuple[int | None, ...], already_there: tuple[int, ...], words: str
) -> None:
    specs = [
        PartitionSpec(tp, "A.t", None if offset is None else SourceOffset(tp, offset))
        for tp, offset in zip((T0, T1), committed, strict=False)
    ]
    rows = [PartitionReport("t", p, already_there=count) for p, count in enumerate(already_there)]
    assert resume_summary(specs, rows) == words

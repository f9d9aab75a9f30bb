"""How many lines a log without a terminal gets: few, however many topics a flow has."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.cli.output import LogLines
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import Flow, TopicPartition

if TYPE_CHECKING:
    import pytest

TOPICS = 1_000
_HOUR_S = 3_600


@dataclass
class Simulated:
    """A flow whose task reports once a second, looked at twice a second as `run` does."""

    topics: int = TOPICS
    now: float = 1_000.0
    records: int = 0
    issues: dict[int, str] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.status = FlowStatus(Flow("A", "B"), lambda: self.now)
        self.status.state = "RUNNING"
        self.lines = LogLines(lambda: self.now)
        self.status.partitions.set_replicated({TopicPartition(f"t{n:04}", 0): f"A.t{n:04}" for n in range(self.topics)})

    def run(self, seconds: int, *, per_topic: int = 0, lag: int = 0, step_s: int = 5) -> None:
        """Let time pass; each topic gets this many records a second, and stays this far behind."""
        for _step in range(seconds // step_s):
            self.now += step_s
            self.records += per_topic * step_s
            rows = [
                PartitionReport(
                    *(f"t{n:04}", 0),
                    next_offset=self.records,
                    log_end=self.records + lag * (n + 1),
                    log_end_age_ms=0,
                    acked_age_ms=0,
                    records=self.records,
                    bytes=self.records * 100,
                    issue=self.issues.get(n),
                    failure=self.failures.get(n),
                )
                for n in range(self.topics)
            ]
            self.status.take("A->B-0", TaskReport(rows))
            self.lines.show([self.status])


def test_an_hour_of_a_thousand_busy_topics_is_a_line_each_half_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Simulated().run(_HOUR_S, per_topic=1, lag=1)
    print(f"busy: {len(caplog.messages)} lines")
    assert len(caplog.messages) <= _HOUR_S // 30
    assert caplog.messages[-1] == (
        "A->B: 1,000 partitions (1,000 copying), 1,000 records/s, 0.1 MB/s, lag 500,500 records, unknown s;"
        " most behind: t0999 1,000, t0998 999, t0997 998"
    )


def test_an_idle_hour_is_a_line_each_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Simulated().run(_HOUR_S)
    print(f"idle: {len(caplog.messages)} lines")
    assert len(caplog.messages) <= _HOUR_S // 600 + 1
    assert caplog.messages[-1] == "A->B: 1,000 partitions (1,000 caught up), 0 records/s, 0.0 MB/s, lag 0 records, 0 s"


def test_the_first_records_after_an_idle_hour_have_the_rate_of_their_half_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    simulated = Simulated(topics=1)
    simulated.run(_HOUR_S)
    caplog.clear()
    simulated.run(60, per_topic=10)
    assert caplog.messages[-1] == "A->B: 1 partition (1 caught up), 10 records/s, 0.0 MB/s, lag 0 records, 0 s"
    assert len(caplog.messages) == 2


def test_topics_that_fail_or_wait_are_one_line_and_one_when_they_go_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    simulated = Simulated()
    simulated.run(60, per_topic=1)
    simulated.failures = {7: "the target refuses it."}
    simulated.issues = dict.fromkeys(range(100, 200), "the leader is not available")
    simulated.run(300, per_topic=1)
    own = [record for record in caplog.records if record.name.endswith("flow_status")]
    assert [record.getMessage() for record in own] == [
        "A->B: 100 partitions of t0100, t0101, t0102 and 97 more topics: retrying: the leader is not available",
    ]
    assert [(record.flow, record.topic, record.partition) for record in own] == [  # type: ignore[attr-defined]
        ("A->B", None, None),
    ]
    caplog.clear()
    caplog.set_level(logging.INFO)
    simulated.failures, simulated.issues = {}, {}
    simulated.run(20, per_topic=1)
    ended = [line for line in caplog.messages if "no longer" in line]
    assert ended == ["A->B: 101 partitions of t0007, t0100, t0101 and 98 more topics: no longer held up"]


def test_a_wait_that_does_not_last_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    simulated = Simulated(topics=3)
    simulated.run(60, per_topic=1)
    simulated.issues = {0: "the leader moves"}
    simulated.run(5, per_topic=1)
    simulated.issues = {}
    simulated.run(60, per_topic=1)
    assert [record for record in caplog.records if record.name.endswith("flow_status")] == []


def test_what_is_unknown_is_shown_as_unknown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    simulated = Simulated(topics=1)
    for _second in range(31):
        simulated.now += 1
        simulated.status.take("A->B-0", TaskReport([PartitionReport("t0000", 0, records=simulated.records)]))
        simulated.records += 1
        simulated.lines.show([simulated.status])
    assert caplog.messages[-1].endswith("lag unknown")

"""What the screen and the log are told about a flow."""

from __future__ import annotations

from heliograph.engine.report import PartitionReport, TaskReport
from heliograph.model import Flow, TopicPartition
from heliograph.worker.status import FlowStatus


def test_a_partition_that_waits_is_told_until_it_goes_on() -> None:
    status = FlowStatus(Flow("A", "B"))
    status.take("A->B-0", TaskReport([PartitionReport("t", 1, trouble="NOT_ENOUGH_REPLICAS")]))
    status.take("A->B-1", TaskReport([PartitionReport("t", 2)]))
    assert status.trouble == "t-1 waits: NOT_ENOUGH_REPLICAS"
    status.take("A->B-0", TaskReport([PartitionReport("t", 1)]))
    assert status.trouble is None


def test_many_troubles_are_cut_short() -> None:
    status = FlowStatus(Flow("A", "B"))
    status.take("A->B-0", TaskReport([PartitionReport("t", p, trouble="x") for p in range(9)]))
    assert status.trouble is not None
    assert status.trouble.endswith("and 6 more")


def test_counts_survive_the_restart_of_a_task() -> None:
    status = FlowStatus(Flow("A", "B"))
    for _attempt in range(2):
        status.take("A->B-0", TaskReport([PartitionReport("t", 0, records=5, bytes=50)]))
        status.task_ended("A->B-0", (TopicPartition("t", 0),))
    assert status.totals == (10, 100)

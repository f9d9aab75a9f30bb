"""A source whose log was cut, as the whole copy sees it: what is reported, counted, committed and copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.producer import ProduceRequest

from heliograph.diagnostics import Severity
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
from heliograph.executor.copy.copy_loop import CopyLoop
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.model import ChangeActions, Flow, SourceOffset, TopicPartition
from heliograph.status.losses import LossCause
from tests.support.brokers.batches import Record, decode, encode
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.support.runs.copying import CONNECTOR, HandLease, run_in_background, wait_for

TP = TopicPartition("t", 0)
LOG, COPY = ("t", 0), ("A.t", 0)
OFFSETS = "mm2-offsets.A.internal"


class Mirror:
    """A flow of one partition between scripted clusters."""

    def __init__(self) -> None:
        self.source = ScriptedCluster(topics={"t": 1})
        self.target = ScriptedCluster(topics={"A.t": 1, OFFSETS: 1})
        self.lease = HandLease()

    def led(self, epoch: int, values: str, *, keep: int | None = None) -> None:
        """Let a leader append a record for each letter, after it has kept only so many of those that are there."""
        with self.source.lock:
            log = self.source.logs[LOG]
            if keep is not None:
                log.cut(keep)
            self.source.leader_epochs[LOG] = epoch
            for value in values:
                log.put(encode([Record(None, value.encode(), (), 1_700_000_000_000)]), epoch)

    def spec(
        self,
        source_offsets: SourceOffset | None = None,
        stop_offset: int | None = None,
        actions: ChangeActions | None = None,
        **changes: Any,
    ) -> TaskSpec:
        return TaskSpec(
            task_id="A-0",
            flow=Flow("A", "B"),
            source=ClusterSpec("A", self.source.bootstrap, Security(), 5000),
            target=ClusterSpec("B", self.target.bootstrap, Security(), 5000),
            partitions=(PartitionSpec(TP, "A.t", source_offsets, stop_offset, actions=actions or ChangeActions()),),
            connector=CONNECTOR,
            offsets_topic=OFFSETS,
            offsets_partition_count=1,
            commit_interval_ms=50,
            **changes,
        )

    def run(self, spec: TaskSpec) -> Any:
        self.lease = HandLease()
        self.target.epoch += 1  # a producer of its own
        self.loop = CopyLoop(spec, self.lease)
        return run_in_background(self.loop)

    def stop(self, join: Any) -> TaskReport:
        self.lease.stop_reason = "test"
        report: TaskReport = join()
        return report

    def copied(self) -> str:
        with self.target.lock:
            return b"".join(r.value or b"" for b in self.target.logs[COPY].batches for _at, r in decode(b)).decode()

    def until_copied(self, values: str) -> None:
        wait_for(lambda: len(self.copied()) >= len(values))
        assert self.copied() == values

    def rows(self) -> list[PartitionReport]:
        return [row for report in self.lease.reports for row in report.partitions]

    def reported(self) -> list[str]:
        return [event.message for report in self.lease.reports for event in report.events]


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    mirror = Mirror()
    with mirror.source, mirror.target:
        yield mirror
        mirror.lease.stop_reason = "test"


def test_a_cut_is_reported_and_counted_and_the_new_records_are_copied(mirror: Mirror) -> None:
    mirror.led(5, "abcdefgh")
    join = mirror.run(mirror.spec())
    mirror.until_copied("abcdefgh")
    mirror.led(6, "UVWXYZ", keep=5)
    mirror.until_copied("abcdefgh" + "UVWXYZ")
    report = mirror.stop(join)
    (row,) = report.partitions
    assert (row.cut_offsets, row.lost_offsets, row.next_offset, row.committed_offset) == (3, 0, 11, 10)
    events = [event for each in [*mirror.lease.reports, report] for event in each.events]
    (reported,) = [event.message for event in events if "cut" in event.message]
    assert {event.severity for event in events} == {Severity.ERROR}
    assert reported.startswith("A->B t-0: the source's log was cut at offset 5")
    assert "records of offsets 5 to 7 (3) that the source no longer has" in reported
    source_offsets = mirror.loop.partitions[TP].source_offsets
    assert source_offsets is not None
    assert source_offsets.epochs == ((5, 0), (6, 5))


def test_a_cut_can_stop_the_partition(mirror: Mirror) -> None:
    mirror.led(5, "abcdefgh")
    join = mirror.run(mirror.spec(actions=ChangeActions(truncation="fail")))
    mirror.until_copied("abcdefgh")
    mirror.led(6, "UVWXYZ", keep=5)
    wait_for(lambda: any("cut at offset 5" in str(row.failure) for row in mirror.rows()))
    report = mirror.stop(join)
    (row,) = report.partitions
    (loss,) = [loss for each in [*mirror.lease.reports, report] for loss in each.losses]
    assert (loss.cause, loss.first_offset, loss.last_offset, loss.count) == (LossCause.SOURCE_CUT, 5, 7, 3)
    assert "heliograph.on.truncation=fail" in str(row.failure)
    assert row.committed_offset == 7
    assert mirror.copied() == "abcdefgh"


def test_another_action_takes_effect_in_a_running_task_without_a_restart(mirror: Mirror) -> None:
    mirror.led(5, "abcdefgh")
    join = mirror.run(mirror.spec())
    mirror.until_copied("abcdefgh")
    producer = mirror.loop.partitions[TP].target
    mirror.lease.assignment = mirror.spec(actions=ChangeActions(truncation="fail")).partitions
    wait_for(lambda: mirror.loop.partitions[TP].actions.truncation == "fail")
    mirror.led(6, "UVWXYZ", keep=5)
    wait_for(lambda: any("cut at offset 5" in str(row.failure) for row in mirror.rows()))
    assert mirror.loop.partitions[TP].target is producer, "it did not begin again"
    (row,) = mirror.stop(join).partitions
    assert "heliograph.on.truncation=fail" in str(row.failure)
    assert mirror.copied() == "abcdefgh"


def test_a_cut_while_we_were_away_is_noticed_by_the_epochs_that_were_committed(mirror: Mirror) -> None:
    mirror.led(4, "ab")
    mirror.led(5, "cdefgh")
    join = mirror.run(mirror.spec())
    mirror.until_copied("abcdefgh")
    mirror.stop(join)
    source_offsets = mirror.loop.partitions[TP].source_offsets
    mirror.led(6, "UVWXYZ", keep=5)
    join = mirror.run(mirror.spec(source_offsets))
    mirror.until_copied("abcdefgh" + "UVWXYZ")
    assert mirror.stop(join).partitions[0].cut_offsets == 3


def test_a_restart_that_does_not_know_the_epoch_reads_on_where_it_was(mirror: Mirror) -> None:
    """As with source offsets of Java MM2: nothing is known that could contradict the current log."""
    mirror.led(6, "abcdefgh")
    join = mirror.run(mirror.spec(SourceOffset(TP, 4)))
    mirror.until_copied("fgh")
    assert mirror.stop(join).partitions[0].cut_offsets == 0


def test_what_is_under_way_is_safe_before_the_copy_goes_back(mirror: Mirror) -> None:
    mirror.led(5, "abcdefgh")
    join = mirror.run(mirror.spec())
    mirror.until_copied("abcdefgh")
    mirror.target.hold(ProduceRequest)
    mirror.led(5, "ij")
    wait_for(lambda: mirror.loop.partitions[TP].passed_offset == 9)
    mirror.led(6, "UVWXYZ", keep=5)
    wait_for(lambda: any("still under way" in str(row.issue) for row in mirror.rows()))
    mirror.target.release(ProduceRequest)
    mirror.until_copied("abcdefghij" + "UVWXYZ")
    report = mirror.stop(join)
    assert (report.partitions[0].cut_offsets, report.partitions[0].committed_offset) == (5, 10)


def test_a_copy_of_what_is_there_ends_where_the_cut_log_ends(mirror: Mirror) -> None:
    mirror.led(5, "abcdefgh")
    join = mirror.run(mirror.spec())
    mirror.until_copied("abcdefgh")
    mirror.stop(join)
    source_offsets = mirror.loop.partitions[TP].source_offsets
    mirror.led(6, "U", keep=5)
    report = mirror.run(mirror.spec(source_offsets, stop_offset=20))()
    assert mirror.copied() == "abcdefghU"
    assert (report.partitions[0].is_done, report.partitions[0].cut_offsets) == (True, 3)


def test_records_that_came_to_the_same_offset_again_are_committed_with_their_own_epoch(mirror: Mirror) -> None:
    """Or the next start would find the same cut again."""
    mirror.led(5, "abcdefgh")
    join = mirror.run(mirror.spec())
    mirror.until_copied("abcdefgh")
    wait_for(lambda: mirror.loop._commits.committed.get(TP) == 7)
    mirror.led(6, "XYZ", keep=5)
    mirror.led(6, "!")
    mirror.until_copied("abcdefghXYZ!")
    mirror.stop(join)
    source_offsets = mirror.loop.partitions[TP].source_offsets
    join = mirror.run(mirror.spec(source_offsets))
    mirror.led(6, "?")
    mirror.until_copied("abcdefghXYZ!?")
    assert mirror.stop(join).partitions[0].cut_offsets == 0

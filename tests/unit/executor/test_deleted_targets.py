"""A topic deleted on the target while batches of it are in flight: nothing waits for ever, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
from heliograph.executor.copy import copy_loop, log_changes
from heliograph.model import TopicPartition
from heliograph.wire.batches.forward import warm_up
from tests.support.brokers.batches import Record, decode, encode
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.support.runs.copying import wait_for
from tests.unit.executor.test_cut_sources import OFFSETS, Mirror

T, U = TopicPartition("t", 0), TopicPartition("u", 0)
GONE = "the batch at offset 3 was refused: the target has no topic A.u any more."


class TwoTopics(Mirror):
    """A flow of `t`, which continues, and of `u`, whose copy is deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.source = ScriptedCluster(topics={"t": 1, "u": 1})
        self.target = ScriptedCluster(topics={"A.t": 1, "A.u": 1, OFFSETS: 1}, transaction_version=2)

    def both(self, *, stop_offset: int | None = None, transactional_id: str | None = None) -> TaskSpec:
        partitions = tuple(PartitionSpec(tp, f"A.{tp.topic}", None, stop_offset) for tp in (T, U))
        return replace(self.spec(transactional_id=transactional_id), partitions=partitions)

    def write(self, values: str) -> None:
        with self.source.lock:
            for tp in (T, U):
                for value in values:
                    self.source.logs[tp].put(encode([Record(None, value.encode(), (), 1_700_000_000_000)]))

    def copy_of(self, topic: str) -> str:
        with self.target.lock:
            batches = self.target.logs[f"A.{topic}", 0].batches
            return b"".join(record.value or b"" for batch in batches for _at, record in decode(batch)).decode()

    def delete_copy_of_u(self) -> None:
        """Topic and records."""
        wait_for(lambda: self.loop._commits.committed == {T: 2, U: 2})
        with self.target.lock:
            del self.target.leaders["A.u", 0]
            del self.target.logs["A.u", 0]

    def issues(self) -> list[str]:
        return [str(row.issue) for row in self.lease.reports[-1].partitions] if self.lease.reports else []

    @property
    def is_settled(self) -> bool:
        """Return whether nothing is in flight, and no metadata requested."""
        return (
            self.loop._clients.producer.is_idle
            and not self.loop._clients.target.is_unsettled
            and not self.loop._clients.producer.has_retries
        )


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoTopics]:
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.05)
    monkeypatch.setattr(log_changes, "_MISSING_TOPIC_TIMEOUT_S", 1.0)  # in which a busy machine reports the wait
    warm_up()  # compiling must not count as waiting
    mirror = TwoTopics()
    mirror.write("abc")
    with mirror.source, mirror.target:
        yield mirror
        mirror.lease.stop_reason = "test"


def test_a_transaction_ends_without_the_batch_and_the_others_continue(mirror: TwoTopics) -> None:
    join = mirror.run(mirror.both(transactional_id="us"))
    mirror.delete_copy_of_u()
    mirror.write("d")
    wait_for(lambda: mirror.loop._commits.committed.get(T) == 3)
    mirror.write("e")
    wait_for(lambda: mirror.loop._commits.committed.get(T) == 4)
    report = mirror.stop(join)
    row = {row.tp: row for row in report.partitions}[U]
    assert row.failure == f"A->B u-0: {GONE}"
    assert (row.acked_offset, row.committed_offset) == (2, 2), "it is copied again after the next start"
    assert mirror.copy_of("t") == "abcde"
    waited = [issue for each in mirror.lease.reports for issue in each.issue if "transaction" in issue]
    assert waited[0].startswith("the transaction waits for A.u-0: ")


def test_what_was_taken_from_the_task_is_not_waited_for(mirror: TwoTopics) -> None:
    join = mirror.run(mirror.both())
    mirror.delete_copy_of_u()
    mirror.write("d")
    wait_for(lambda: any("no topic A.u" in issue for issue in mirror.issues()))
    mirror.lease.assignment = mirror.both().partitions[:1]
    wait_for(lambda: f"A->B u-0: {GONE}" in mirror.reported())
    wait_for(lambda: mirror.is_settled)
    mirror.stop(join)
    assert mirror.loop._commits.committed == {T: 3, U: 2}


def test_a_copy_of_what_is_there_ends(mirror: TwoTopics) -> None:
    join = mirror.run(mirror.both(stop_offset=4))
    mirror.delete_copy_of_u()
    mirror.write("d")
    rows = {row.tp: row for row in join().partitions}
    assert (rows[T].failure, rows[T].committed_offset) == (None, 3)
    assert (rows[U].failure, rows[U].committed_offset) == (f"A->B u-0: {GONE}", 2)


def test_a_copy_of_what_is_there_ends_where_nothing_of_a_topic_has_left_yet(mirror: TwoTopics) -> None:
    del mirror.target.leaders["A.u", 0]
    rows = {row.tp: row for row in mirror.run(mirror.both(stop_offset=3))().partitions}
    assert (rows[T].failure, rows[T].committed_offset) == (None, 2)
    assert (rows[U].failure, rows[U].acked_offset) == ("A->B u-0: the target has no topic A.u any more.", None)


def test_a_partition_that_the_task_does_not_wait_for_continues_when_its_topic_is_there_again(mirror: TwoTopics) -> None:
    join = mirror.run(mirror.both())
    mirror.delete_copy_of_u()
    mirror.write("d")
    wait_for(lambda: "A.u" in mirror.loop._clients.target.missing_since)
    since = mirror.loop._clients.target.missing_since["A.u"]
    wait_for(lambda: mirror.loop._clients.target._metadata_at > since + 1)
    mirror.target.leaders["A.u", 0] = 1
    wait_for(lambda: mirror.loop._commits.committed == {T: 3, U: 3})
    report = mirror.stop(join)
    assert mirror.copy_of("u") == "d"
    assert (report.events, [row.failure for row in report.partitions]) == ([], [None, None])

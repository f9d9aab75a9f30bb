"""Partitions that a running task must release: it holds them until nothing of them can be written any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kafka.protocol.producer import EndTxnRequest, ProduceRequest

from heliograph.executor.contract.task_report import TaskReport
from heliograph.executor.contract.task_spec import PartitionSpec
from heliograph.executor.copy import copy_loop
from heliograph.wire.batches.forward import warm_up
from tests.support.runs.copying import wait_for
from tests.unit.executor.test_deleted_targets import T, TwoTopics, U


class Released(TwoTopics):
    """A task of `t` and `u`, of which `u` is taken away."""

    def begin(self, **changes: Any) -> Any:
        self.whole = self.both(**changes)
        join = self.run(self.whole)
        wait_for(lambda: self.loop._commits.committed == {T: 2, U: 2})
        return join

    def assign(self, *partitions: PartitionSpec) -> None:
        self.lease.assignment = partitions
        wait_for(lambda: self.lease.assignment is None)

    @property
    def t(self) -> PartitionSpec:
        return self.whole.partitions[0]

    @property
    def u(self) -> PartitionSpec:
        return self.whole.partitions[1]

    @property
    def last_report(self) -> TaskReport:
        return self.lease.reports[-1]

    def is_held(self) -> bool:
        return self.last_report.releasing == [U]

    def is_released(self) -> bool:
        return U in self.loop._partitions.released and self.last_report.releasing == []


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Released]:
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.05)
    warm_up()
    mirror = Released()
    mirror.write("abc")
    with mirror.source, mirror.target:
        yield mirror
        mirror.lease.stop_reason = "test"


def test_a_partition_is_held_until_what_was_sent_is_acknowledged_and_committed(mirror: Released) -> None:
    join = mirror.begin()
    mirror.target.hold(ProduceRequest)
    mirror.write("d", U)
    wait_for(lambda: mirror.loop.partitions[U].target.in_flight)
    mirror.assign(mirror.t)
    wait_for(mirror.is_held)
    mirror.write("e", U)
    mirror.target.release(ProduceRequest)
    wait_for(mirror.is_released)
    assert mirror.loop._commits.committed[U] == 3
    report = mirror.stop(join)
    assert mirror.copy_of("u") == "abcd"
    assert {row.tp: row.records for row in report.partitions}[U] == 4, "the last counts are not lost"


def test_with_transactions_a_partition_is_held_until_its_transaction_has_ended(mirror: Released) -> None:
    join = mirror.begin(transactional_id="us")
    mirror.target.hold(EndTxnRequest)
    mirror.write("d", U)
    wait_for(lambda: mirror.copy_of("u") == "abcd")
    mirror.assign(mirror.t)
    wait_for(mirror.is_held)
    assert not mirror.is_released()
    mirror.target.release(EndTxnRequest)
    wait_for(mirror.is_released)
    assert mirror.loop._commits.committed[U] == 3
    mirror.stop(join)


def test_a_partition_that_is_given_back_before_it_is_released_continues_where_it_was(mirror: Released) -> None:
    join = mirror.begin()
    mirror.target.hold(ProduceRequest)
    mirror.write("d", U)
    wait_for(lambda: mirror.loop.partitions[U].target.in_flight)
    mirror.assign(mirror.t)
    wait_for(mirror.is_held)
    mirror.write("e", U)
    mirror.assign(mirror.t, mirror.u)
    wait_for(lambda: U in mirror.loop.partitions)
    mirror.target.release(ProduceRequest)
    mirror.write("f")
    wait_for(lambda: mirror.loop._commits.committed == {T: 3, U: 5})
    assert (mirror.copy_of("t"), mirror.copy_of("u")) == ("abcf", "abcdef")
    mirror.stop(join)


@pytest.mark.parametrize("transactional_id", [None, "us"])
def test_a_partition_that_comes_back_continues_under_the_same_producer(
    mirror: Released, transactional_id: str | None
) -> None:
    """No other task has had it: the offset of the assignment may be an older one."""
    join = mirror.begin(transactional_id=transactional_id)
    for number in range(3):
        mirror.write("d")
        wait_for(lambda: mirror.loop._commits.committed[U] == 3 + number)  # noqa: B023
        mirror.assign(mirror.t)
        wait_for(mirror.is_released)
        mirror.assign(mirror.t, mirror.u)
    mirror.write("e")
    wait_for(lambda: mirror.loop._commits.committed.get(U) == 6)
    report = mirror.stop(join)
    assert mirror.copy_of("u") == "abcddde"
    assert mirror.loop._partitions.by_source[U].target.session is None
    assert {row.tp: row.records for row in report.partitions}[U] == 7


def test_a_partition_that_another_task_has_copied_meanwhile_continues_after_it(mirror: Released) -> None:
    join = mirror.begin()
    mirror.assign(mirror.t)
    wait_for(mirror.is_released)
    known = mirror.loop._partitions.released[U].source_offsets
    assert known is not None
    mirror.write("de", U)
    other = replace(known, offset=4)
    mirror.assign(mirror.t, replace(mirror.u, source_offsets=other, opening=1))
    mirror.write("f", U)
    wait_for(lambda: mirror.loop._commits.committed.get(U) == 5)
    report = mirror.stop(join)
    assert mirror.copy_of("u") == "abcf"
    (row,) = [row for row in report.partitions if row.tp == U]
    assert (row.opening, row.records) == (1, 1), "the counts of before were reported with the first opening"


def test_a_failed_partition_is_released_at_once(mirror: Released) -> None:
    join = mirror.begin()
    mirror.loop._records.fail(mirror.loop.partitions[U], "no")
    mirror.write("d")
    mirror.assign(mirror.t)
    wait_for(mirror.is_released)
    wait_for(lambda: mirror.copy_of("t") == "abcd")
    mirror.stop(join)
    assert mirror.copy_of("u") == "abc"

"""Partitions that a task gets while it copies: they resume as at a start, while the others continue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from kafka.protocol.consumer import ListOffsetsRequest

from heliograph.errors import ClusterError
from heliograph.executor.contract.task_report import TaskEvents
from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
from heliograph.executor.copy import copy_loop, resume
from heliograph.executor.copy.resume import ResumeLookup, ResumePoint
from heliograph.model import ChangeActions, SourceOffset, TopicPartition
from heliograph.wire.batches.forward import warm_up
from heliograph.wire.records.connect_offsets import encode_key, encode_value
from tests.support.brokers.batches import Record, encode
from tests.support.runs.copying import CONNECTOR, wait_for
from tests.unit.executor.test_cut_sources import OFFSETS
from tests.unit.executor.test_deleted_targets import T, TwoTopics, U


class LateTopic(TwoTopics):
    """A task that copies `t`, and gets `u` later; of `u` the target has the first records, written before a crash."""

    def begin(self, **changes: Any) -> Any:
        with self.target.lock:
            for value in "ab":
                self.target.logs["A.u", 0].put(encode([Record(None, value.encode(), (), 1_700_000_000_000)]))
        self.first = replace(self.both(**changes), partitions=self.both().partitions[:1])
        join = self.run(self.first)
        wait_for(lambda: self.copy_of("t") == "abc")
        return join

    def give(self) -> None:
        self.lease.assignment = self.both().partitions

    def take_away(self) -> None:
        self.lease.assignment = self.first.partitions
        wait_for(lambda: self.lease.assignment is None)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[LateTopic]:
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.05)
    monkeypatch.setattr(resume, "_RETRY_PAUSE_S", 0.05)
    warm_up()
    mirror = LateTopic()
    mirror.write("abc")
    with mirror.source, mirror.target:
        yield mirror
        mirror.lease.stop_reason = "test"


def test_a_partition_given_later_repeats_nothing_that_the_target_has(mirror: LateTopic) -> None:
    join = mirror.begin()
    mirror.give()
    wait_for(lambda: mirror.loop._commits.committed.get(U) == 2)
    report = mirror.stop(join)
    assert mirror.copy_of("u") == "abc"
    assert {row.tp: row.already_there for row in report.partitions} == {T: 0, U: 2}


def test_the_others_are_copied_while_the_target_is_compared(mirror: LateTopic) -> None:
    join = mirror.begin()
    mirror.target.hold(ListOffsetsRequest)
    mirror.give()
    wait_for(lambda: mirror.target.seen_of(ListOffsetsRequest))
    mirror.write("d")
    wait_for(lambda: mirror.copy_of("t") == "abcd")
    assert U not in mirror.loop.partitions
    mirror.target.release(ListOffsetsRequest)
    wait_for(lambda: mirror.copy_of("u") == "abcd")
    mirror.stop(join)


def test_a_partition_that_is_taken_away_before_it_was_compared_is_not_copied(mirror: LateTopic) -> None:
    join = mirror.begin()
    mirror.target.hold(ListOffsetsRequest)
    mirror.give()
    wait_for(lambda: not mirror.loop._lookup.is_idle)
    mirror.take_away()
    wait_for(lambda: mirror.loop._lookup.is_idle)
    mirror.target.release(ListOffsetsRequest)
    mirror.give()
    wait_for(lambda: mirror.copy_of("u") == "abc")
    mirror.take_away()
    wait_for(lambda: U not in mirror.loop.partitions)
    assert mirror.stop(join).releasing == []


def test_a_partition_that_waits_for_its_comparison_gets_the_actions_of_the_last_assignment(mirror: LateTopic) -> None:
    join = mirror.begin()
    mirror.target.hold(ListOffsetsRequest)
    mirror.give()
    wait_for(lambda: not mirror.loop._lookup.is_idle)
    mirror.lease.assignment = mirror.both(on_u=ChangeActions(target_deleted="fail")).partitions
    wait_for(lambda: mirror.lease.assignment is None)
    mirror.target.release(ListOffsetsRequest)
    wait_for(lambda: mirror.copy_of("u") == "abc")
    assert mirror.loop.partitions[U].actions.target_deleted == "fail"
    mirror.stop(join)


def test_a_comparison_that_fails_is_reported_and_tried_again(
    mirror: LateTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    join = mirror.begin()
    resume_points, failures = resume.resume_points, ["twice", "once"]

    def fail_twice(spec: TaskSpec, *rest: Any) -> Any:
        if failures:
            raise ClusterError(f"No broker answers, {failures.pop()}.")
        return resume_points(spec, *rest)

    monkeypatch.setattr(resume, "resume_points", fail_twice)
    mirror.give()
    waiting = "1 partition assigned later must wait: No broker answers, once."
    wait_for(lambda: any(waiting in report.issue for report in mirror.lease.reports))
    wait_for(lambda: mirror.copy_of("u") == "abc")
    wait_for(lambda: not mirror.lease.reports[-1].issue)
    mirror.stop(join)


def test_nothing_is_reported_of_a_partition_that_was_taken_away(
    mirror: LateTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any) -> Any:
        raise ClusterError("No broker answers.")

    join = mirror.begin()
    monkeypatch.setattr(resume, "resume_points", fail)
    mirror.give()
    wait_for(lambda: mirror.lease.reports[-1].issue)
    mirror.take_away()
    wait_for(lambda: not mirror.lease.reports[-1].issue)
    mirror.stop(join)


def test_with_transactions_a_partition_given_later_resumes_after_what_is_committed_now(mirror: LateTopic) -> None:
    """As at the start, not after what the driver has read at some time before."""
    join = mirror.begin(transactional_id="us")
    with mirror.target.lock:
        committed = Record(encode_key(CONNECTOR, "A", U), encode_value(1), (), 1_700_000_000_000)
        mirror.target.logs[OFFSETS, 0].put(encode([committed]))
    mirror.give()
    wait_for(lambda: mirror.loop._commits.committed.get(U) == 2)
    mirror.stop(join)
    assert mirror.copy_of("u") == "abc"


def test_a_failed_lookup_that_is_no_longer_wanted_delays_no_other(
    mirror: LateTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, second), began, may_fail = mirror.both().partitions, Event(), Event()

    def find(_spec: TaskSpec, partitions: tuple[PartitionSpec, ...], _events: Any) -> list[ResumePoint]:
        if partitions == (first,):
            began.set()
            may_fail.wait(10)
            raise ClusterError("No broker answers.")
        return [ResumePoint(partition) for partition in partitions]

    monkeypatch.setattr(resume, "resume_points", find)
    monkeypatch.setattr(resume, "_RETRY_PAUSE_S", 1000.0)
    lookup = ResumeLookup(mirror.both(), TaskEvents(mirror.both().flow))
    lookup.follow([first])
    lookup.take(0.0)
    assert began.wait(10)
    lookup.follow([second])
    may_fail.set()
    found: list[ResumePoint] = []

    def take() -> bool:
        found.extend(lookup.take(1.0))
        return bool(found)

    wait_for(take)
    assert [point.spec for point in found] == [second]
    assert lookup.issue is None


def test_all_failed_partitions_that_are_tried_again_are_looked_up_by_one_look_at_what_is_committed(
    mirror: LateTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a task of thousands would look at all of them for each of them, longer than its lease lasts."""
    join = mirror.run(mirror.both())
    wait_for(lambda: mirror.loop._commits.committed == {T: 2, U: 2})
    partitions, looks = mirror.loop._partitions, 0
    source_offsets, to_open = partitions.source_offsets, partitions.to_open
    most_looks: list[int] = []

    def counted_offsets() -> dict[TopicPartition, SourceOffset]:
        nonlocal looks
        looks += 1
        return source_offsets()

    def counted_looks(uncommitted: Any) -> list[PartitionSpec]:
        nonlocal looks
        looks = 0
        ready = to_open(uncommitted)
        most_looks.append(looks)
        return ready

    monkeypatch.setattr(mirror.loop._commits, "_source_offsets", counted_offsets)
    monkeypatch.setattr(partitions, "to_open", counted_looks)
    mirror.lease.assignment = tuple(replace(each, opening=1) for each in mirror.both().partitions)
    wait_for(lambda: [each.spec.opening for each in mirror.loop.partitions.values()] == [1, 1])
    mirror.stop(join)
    assert max(most_looks) == 1

"""A topic deleted on the target while batches of it are in flight: nothing waits for ever, each loss is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.producer import ProduceRequest

from heliograph.diagnostics import Severity
from heliograph.errors import LeaseLostError, TaskError
from heliograph.executor.contract.task_report import TaskReport
from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
from heliograph.executor.copy import copy_loop, log_changes, resume
from heliograph.model import ChangeActions, SourceOffset, TargetLog, TopicPartition
from heliograph.status.losses import Loss, LossCause
from heliograph.wire.batches.forward import warm_up
from tests.support.brokers.batches import Record, decode, encode
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.support.runs.copying import HandLease, wait_for
from tests.unit.executor.test_cut_sources import OFFSETS, Mirror

DELETED = LossCause.TARGET_DELETED
T, U = TopicPartition("t", 0), TopicPartition("u", 0)
INVALID_RECORD = 87
GONE = "the batch at offset 3 was refused: the target has no topic A.u any more."


class TwoTopics(Mirror):
    """A flow of `t`, which continues, and of `u`, whose copy is deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.source = ScriptedCluster(topics={"t": 1, "u": 1})
        self.target = ScriptedCluster(topics={"A.t": 1, "A.u": 1, OFFSETS: 1}, transaction_version=2)

    def both(
        self,
        *,
        stop_offset: int | None = None,
        on_t: ChangeActions | None = None,
        on_u: ChangeActions | None = None,
        **changes: Any,
    ) -> TaskSpec:
        partitions = tuple(
            PartitionSpec(tp, f"A.{tp.topic}", None, stop_offset, actions=actions or ChangeActions())
            for tp, actions in ((T, on_t), (U, on_u))
        )
        return replace(self.spec(**changes), partitions=partitions)

    def write(self, values: str, *tps: TopicPartition) -> None:
        with self.source.lock:
            for tp in tps or (T, U):
                for value in values:
                    self.source.logs[tp].put(encode([Record(None, value.encode(), (), 1_700_000_000_000)]))

    def copy_of(self, topic: str) -> str:
        with self.target.lock:
            batches = self.target.logs[f"A.{topic}", 0].batches
            return b"".join(record.value or b"" for batch in batches for _at, record in decode(batch)).decode()

    def delete_copy_of_u(self) -> None:
        """Topic and records."""
        wait_for(lambda: self.loop._commits.committed == {T: 2, U: 2})
        self.remove_copy_of_u()

    def remove_copy_of_u(self) -> None:
        with self.target.lock:
            del self.target.leaders["A.u", 0]
            self.target.logs.pop(("A.u", 0), None)

    def known(self) -> dict[TopicPartition, SourceOffset | None]:
        """The source offsets that the next start reads."""
        return {tp: part.source_offsets or part.spec.source_offsets for tp, part in self.loop.partitions.items()}

    def after(self, known: dict[TopicPartition, SourceOffset | None], **changes: Any) -> TaskSpec:
        spec = self.both(**changes)
        return replace(spec, partitions=tuple(replace(p, source_offsets=known[p.tp]) for p in spec.partitions))

    def recreate_copy_of_u(self) -> None:
        """Deleted and created again between two looks."""
        with self.target.lock:
            self.target.logs.pop(("A.u", 0), None)
            self.target.topic_ids["A.u"] = UUID(int=7)

    def log_of_u(self) -> TargetLog | None:
        partition = self.loop.partitions.get(U)
        known = partition.source_offsets if partition is not None else None
        return known.target_log if known is not None else None

    def losses(self, *reports: TaskReport) -> list[Loss]:
        return [loss for report in (*self.lease.reports, *reports) for loss in report.losses]

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
    monkeypatch.setattr(log_changes, "_IDS_INTERVAL_S", 0.2)
    for module in (log_changes, resume):
        monkeypatch.setattr(module, "_MISSING_TOPIC_TIMEOUT_S", 1.0)  # in which a busy machine reports the wait
    warm_up()  # compiling must not count as waiting
    mirror = TwoTopics()
    mirror.write("abc")
    with mirror.source, mirror.target:
        yield mirror
        mirror.lease.stop_reason = "test"


def test_a_transaction_ends_with_its_task_and_the_next_one_copies_again_without_holding_up_the_others(
    mirror: TwoTopics,
) -> None:
    join = mirror.run(mirror.both(transactional_id="us"))
    mirror.delete_copy_of_u()
    mirror.write("d")
    with pytest.raises(TaskError, match=r"the target has no topic A\.u any more; the task begins again"):
        join()
    join = mirror.run(mirror.both(transactional_id="us"))
    wait_for(lambda: mirror.loop._commits.committed.get(T) == 3)
    mirror.write("e")
    wait_for(lambda: mirror.loop._commits.committed.get(T) == 4)
    report = mirror.stop(join)
    (loss,) = mirror.losses(report)
    assert (loss.tp, loss.cause, loss.first_offset, loss.last_offset, loss.count) == (U, DELETED, 0, 2, 3)
    row = {row.tp: row for row in report.partitions}[U]
    assert (row.next_offset, row.committed_offset) == (0, -1), "it is copied again from its start"
    assert mirror.copy_of("t") == "abcdde", "the first d is of the aborted transaction"


def after_deletion(mirror: TwoTopics, **changes: Any) -> TaskSpec:
    """Run until the copy of `u` is found to be deleted; return what the next task starts with."""
    join = mirror.run(mirror.both(**changes))
    mirror.delete_copy_of_u()
    mirror.write("d")
    with pytest.raises(TaskError, match=r"the target has no topic A\.u any more; the task begins again"):
        join()
    committed = {tp: partition.source_offsets for tp, partition in mirror.loop.partitions.items()}
    spec = mirror.both(**changes)
    return replace(spec, partitions=tuple(replace(p, source_offsets=committed[p.tp]) for p in spec.partitions))


def losses_of(mirror: TwoTopics) -> list[tuple[TopicPartition, LossCause]]:
    return [(loss.tp, loss.cause) for report in mirror.lease.reports for loss in report.losses]


@pytest.mark.parametrize("transactional_id", [None, "us"])
def test_what_follows_from_a_loss_is_not_committed_before_the_driver_has_the_loss(
    mirror: TwoTopics, monkeypatch: pytest.MonkeyPatch, transactional_id: str | None
) -> None:
    def end_with_the_driver(lease: HandLease) -> None:
        if any(report.losses for report in lease.reports):
            raise LeaseLostError("the driver is gone")

    spec = after_deletion(mirror, transactional_id=transactional_id)
    with monkeypatch.context() as patch:
        patch.setattr(HandLease, "await_losses", end_with_the_driver)
        with pytest.raises(LeaseLostError):
            mirror.run(spec)()
    assert losses_of(mirror) == [(U, DELETED)]
    assert U not in mirror.loop._commits.committed
    join = mirror.run(spec)
    wait_for(lambda: U in mirror.loop._commits.committed)
    assert losses_of(mirror) == [(U, DELETED)], "the next task has found it again, and reported it before it committed"
    mirror.stop(join)


def test_a_task_that_fails_reports_the_losses_of_its_last_moment(
    mirror: TwoTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 60.0)

    def fail(_lease: HandLease) -> None:
        if mirror.loop._events.has_losses:
            raise TaskError("it fails")

    spec = after_deletion(mirror)
    monkeypatch.setattr(HandLease, "check", fail)
    with pytest.raises(TaskError, match="it fails"):
        mirror.run(spec)()
    assert losses_of(mirror) == [(U, DELETED)]


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
    assert (rows[U].failure, rows[U].next_offset) == ("A->B u-0: the target has no topic A.u any more.", 0)


@pytest.mark.parametrize(
    ("on_deleted", "copied", "told"),
    [
        ("recopy", "abcd", "copying again what the source still has, from offset 0 on"),
        ("continue", "d", "continuing after offset 2"),
        ("fail", "", "and heliograph.on.target.deleted=fail"),
    ],
)
def test_a_topic_that_is_there_again_is_copied_as_configured(
    mirror: TwoTopics, on_deleted: str, copied: str, told: str
) -> None:
    spec = after_deletion(mirror, on_u=ChangeActions(target_deleted=on_deleted))
    mirror.target.leaders["A.u", 0] = 1
    mirror.target.topic_ids["A.u"] = UUID(int=7)
    join = mirror.run(spec)
    wait_for(lambda: U in mirror.loop.partitions)
    wait_for(lambda: mirror.loop._commits.committed.get(U) == 3 or mirror.loop.partitions[U].is_over)
    report = mirror.stop(join)
    (loss,) = mirror.losses(report)
    assert (loss.tp, loss.cause, loss.first_offset, loss.last_offset, loss.count) == (U, DELETED, 0, 2, 3)
    reports = [*mirror.lease.reports, report]
    errors = [event.message for each in reports for event in each.events if event.severity is Severity.ERROR]
    failures = {row.failure for each in reports for row in each.partitions if row.failure}
    assert (len(errors), len(failures)) == ((0, 1) if on_deleted == "fail" else (1, 0))
    (sentence,) = (*errors, *failures)
    assert sentence.startswith("A->B u-0: the remote topic A.u was deleted on the target: 3 records")
    assert told in sentence
    assert (mirror.copy_of("u"), mirror.copy_of("t")) == (copied, "abcd")


def test_a_log_that_was_replaced_unnoticed_is_noticed_by_the_offset_of_the_next_batch(mirror: TwoTopics) -> None:
    join = mirror.run(mirror.both())
    wait_for(lambda: mirror.loop._commits.committed == {T: 2, U: 2})
    with mirror.target.lock:
        del mirror.target.logs["A.u", 0]
    mirror.write("d")
    with pytest.raises(TaskError, match=r"the target's log of A\.u-0 is another one than before"):
        join()
    known = mirror.loop.partitions[U].source_offsets
    assert known is not None
    assert known.target_log is not None
    assert (known.offset, known.target_log.records) == (2, 3), "the batch in the new log does not count"


@pytest.mark.parametrize("changes", [{}, {"transactional_id": "us"}], ids=["", "exactly-once"])
def test_the_others_are_copied_while_a_start_waits_for_a_missing_topic(
    mirror: TwoTopics, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    for module in (log_changes, resume):
        monkeypatch.setattr(module, "_MISSING_TOPIC_TIMEOUT_S", 1000.0)
    join = mirror.run(mirror.both(**changes))
    mirror.delete_copy_of_u()
    mirror.target.topic_ids["A.u"] = UUID(int=0)
    known = mirror.known()
    mirror.stop(join)
    join = mirror.run(mirror.after(known, **changes))
    mirror.write("d")
    wait_for(lambda: mirror.loop._commits.committed.get(T) == 3)
    assert U not in mirror.loop.partitions
    mirror.target.leaders["A.u", 0] = 1
    mirror.target.topic_ids["A.u"] = UUID(int=7)
    wait_for(lambda: mirror.loop._commits.committed.get(U) == 3)
    (loss,) = mirror.losses(mirror.stop(join))
    assert (loss.tp, loss.cause, loss.count) == (U, DELETED, 3)
    assert (mirror.copy_of("t"), mirror.copy_of("u")) == ("abcd", "abcd")


@pytest.mark.parametrize("written", ["ijklmn", "ijklmnopqrst"], ids=["shorter", "longer"])
def test_a_log_that_went_back_is_a_loss_of_all_that_is_gone_and_a_restart_repeats_nothing(
    mirror: TwoTopics, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """As after the only replica lost its disk: the topic is the same, and takes what follows until it is noticed."""
    mirror.write("defgh", U)
    join = mirror.run(mirror.both())
    wait_for(lambda: mirror.loop._commits.committed == {T: 2, U: 7})
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 3.0)
    before = len(mirror.lease.reports)
    wait_for(lambda: len(mirror.lease.reports) > before)
    with mirror.target.lock:
        del mirror.target.logs["A.u", 0]
    for value in written:
        mirror.write(value, U)
        wait_for(lambda value=value: value in mirror.copy_of("u"))
    with pytest.raises(TaskError, match=r"the target's log of A\.u-0 is another one than before"):
        join()
    assert mirror.copy_of("u") == written
    join = mirror.run(mirror.after(mirror.known()))
    mirror.write("z", U)
    wait_for(lambda: mirror.copy_of("u").endswith("z"))
    (loss,) = mirror.losses(mirror.stop(join))
    assert (loss.tp, loss.cause, loss.last_offset, loss.count) == (U, LossCause.TARGET_CUT, 7, 8)
    assert mirror.copy_of("u") == f"{written}z"


def test_what_is_copied_again_is_not_repeated_by_a_task_that_was_killed_before_it_could_commit(
    mirror: TwoTopics,
) -> None:
    mirror.remove_copy_of_u()
    join = mirror.run(mirror.after({T: None, U: SourceOffset(U, 2, 3, target_log=TargetLog(UUID(int=3), 0, 3))}))
    wait_for(lambda: mirror.loop._commits.committed.get(U) == -1)
    known = mirror.known()
    mirror.stop(join)
    with mirror.target.lock:
        mirror.target.leaders["A.u", 0] = 1
        mirror.target.topic_ids["A.u"] = UUID(int=7)
        for value in "abc":  # written by the task that could not commit them
            mirror.target.logs["A.u", 0].put(encode([Record(None, value.encode(), (), 1_700_000_000_000)]))
    join = mirror.run(mirror.after(known))
    mirror.write("d")
    wait_for(lambda: mirror.loop._commits.committed == {T: 3, U: 3})
    mirror.stop(join)
    assert mirror.copy_of("u") == "abcd"


def test_a_partition_that_a_user_has_moved_once_is_copied_again_like_any_other_when_it_is_tried_again(
    mirror: TwoTopics,
) -> None:
    def open_u(opening: int, **how: Any) -> None:
        t, u = mirror.both().partitions
        mirror.target.epoch += 1  # another producer
        mirror.lease.assignment = (t, replace(u, opening=opening, **how))
        wait_for(lambda: U in mirror.loop.partitions and mirror.loop.partitions[U].spec.opening == opening)

    join = mirror.run(mirror.both())
    wait_for(lambda: mirror.loop._commits.committed == {T: 2, U: 2})
    open_u(1, is_moved=True, source_offsets=SourceOffset(U, -1))
    wait_for(lambda: mirror.copy_of("u") == "abcabc" and mirror.loop._commits.committed.get(U) == 2)
    mirror.target.script(ProduceRequest, *[INVALID_RECORD] * 3)
    mirror.write("d", U)
    wait_for(lambda: mirror.loop.partitions[U].counters.failure)
    mirror.target._script.clear()
    mirror.recreate_copy_of_u()
    open_u(2)
    wait_for(lambda: mirror.loop._commits.committed.get(U) == 3)
    assert [loss.count for loss in mirror.losses(mirror.stop(join))] == [6]
    assert mirror.copy_of("u") == "abcd"


EMPTY = {T: 2, U: -1}


@pytest.fixture
def half_empty(mirror: TwoTopics) -> TwoTopics:
    """As `mirror`, but nothing was written to `u` yet."""
    with mirror.source.lock:
        del mirror.source.logs[tuple(U)]
    return mirror


def test_a_task_continues_when_a_topic_to_which_nothing_was_copied_is_created_again(half_empty: TwoTopics) -> None:
    mirror = half_empty
    join = mirror.run(mirror.both())
    wait_for(lambda: mirror.loop._commits.committed == EMPTY and mirror.log_of_u() is not None)
    mirror.recreate_copy_of_u()
    wait_for(lambda: mirror.log_of_u() == TargetLog(UUID(int=7), 0))
    mirror.write("d")
    wait_for(lambda: mirror.loop._commits.committed == {T: 3, U: 0})
    assert mirror.losses(mirror.stop(join)) == []
    assert (mirror.copy_of("t"), mirror.copy_of("u")) == ("abcd", "d")


def test_a_task_starts_where_a_topic_to_which_nothing_was_copied_was_created_again(half_empty: TwoTopics) -> None:
    """Others had written to it: their records are no loss of ours."""
    mirror = half_empty
    mirror.recreate_copy_of_u()
    join = mirror.run(mirror.after({T: None, U: SourceOffset(U, -1, 5, target_log=TargetLog(UUID(int=3), 0))}))
    wait_for(lambda: mirror.log_of_u() == TargetLog(UUID(int=7), 0))
    mirror.write("d")
    wait_for(lambda: mirror.loop._commits.committed == {T: 3, U: 0})
    assert mirror.losses(mirror.stop(join)) == []
    assert (mirror.copy_of("t"), mirror.copy_of("u")) == ("abcd", "d")

"""Exactly once with transactions, and next to it without: what a crash leaves is neither lost nor repeated."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import TransactionalIdNotFoundError

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.errors import FencedError, TaskError
from heliograph.executor.contract.task_spec import TaskSpec
from heliograph.executor.copy import log_changes, offset_commits, resume
from heliograph.executor.copy.copy_loop import CopyLoop
from heliograph.kafka.admin.producer_fencing import fence_producers
from heliograph.kafka.produce.target_partition import Outgoing
from heliograph.model import TopicPartition
from tests.support.clusters.clients import admin_of, make_topic, read, wait_for_markers, write
from tests.support.runs.copying import Copy, HandLease, run_in_background, wait_for

pytestmark = pytest.mark.broker

COMMITTED = {"isolation.level": "read_committed"}


def numbered(start: int, count: int) -> list[dict[str, object]]:
    return [{"value": f"{n:08}".encode() * 10, "partition": n % 2} for n in range(start, start + count)]


def wait_for_equal(copy: Copy) -> None:
    """A transaction is decided a moment before its markers are in the logs."""
    wait_for(lambda: read(copy.target, copy.remote, 2, **COMMITTED) == read(copy.source, copy.topic, 2))


def abandon(copy: Copy, after_records: int, **changes: object) -> None:
    """Begin to copy and vanish without a word in the middle, as a killed task does."""

    class Vanished(BaseException):
        pass

    loop = CopyLoop(copy.spec(once=False, **changes), HandLease())
    count_acked = loop._records._on_acked

    def trap(tp: TopicPartition, outgoing: Outgoing, base_offset: int) -> None:
        count_acked(tp, outgoing, base_offset)
        if sum(p.counters.records for p in loop.partitions.values()) >= after_records:
            raise Vanished

    loop._records._on_acked = trap  # type: ignore[method-assign]
    with pytest.raises(Vanished):
        loop.run()


@pytest.mark.usefixtures("both_protocols")
def test_records_and_progress_become_visible_together(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    copy = Copy(source, target, alias, topic)
    for number in range(3):
        write(source, topic, numbered(number * 1000, 1000))
        copy.once(transactional_id=f"{alias}-mm2-MirrorSourceConnector-0", commit_interval_ms=50)
        wait_for_equal(copy)
    assert set(copy.committed().values()) == {1499}


@pytest.mark.usefixtures("both_protocols")
def test_a_deleted_target_topic_holds_up_no_other_and_is_copied_again(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (log_changes, resume):
        monkeypatch.setattr(module, "_MISSING_TOPIC_TIMEOUT_S", 1.0)
    make_topic(source, topic)
    copy = Copy(source, target, alias, topic)
    deleted = f"{alias}.{topic}.deleted"
    make_topic(target, deleted)
    settings = {"transactional_id": f"{alias}-mm2-MirrorSourceConnector-0", "commit_interval_ms": 50}

    def spec(*, once: bool) -> TaskSpec:
        stays, goes = (whole := copy.spec(once=once, **settings)).partitions
        return replace(whole, partitions=(stays, replace(goes, remote_topic=deleted)))

    lease = HandLease()
    join = run_in_background(CopyLoop(spec(once=False), lease))
    write(source, topic, numbered(0, 1000))
    stays, goes = (TopicPartition(topic, p) for p in range(2))
    wait_for(lambda: copy.committed() == {stays: 499, goes: 499})
    client = KafkaAdminClient(bootstrap_servers=target.bootstrap)
    client.delete_topics([deleted])
    # The controller answers first: a broker that has not heard yet would take the next records.
    wait_for(lambda: not list(Path(target.folder).glob(f"node-*/data/{deleted}-1")))
    write(source, topic, numbered(1000, 1000))
    with pytest.raises(TaskError, match=f"the target has no topic {deleted} any more; the task begins again"):
        join()
    lease = HandLease()
    join = run_in_background(CopyLoop(spec(once=False), lease))
    wait_for(lambda: copy.committed()[stays] == 999)
    write(source, topic, numbered(2000, 1000))
    wait_for(lambda: copy.committed()[stays] == 1499)
    reported = f"the target has no topic {deleted}"
    wait_for(lambda: any(reported in f"{row.failure}{row.issue}" for row in lease.reports[-1].partitions))
    lease.stop_reason = "test"
    join()
    assert copy.committed()[goes] == -1
    assert [(loss.tp, loss.count) for report in lease.reports for loss in report.losses] == [(goes, 500)]
    make_topic(target, deleted)
    client.close()
    CopyLoop(spec(once=True), HandLease()).run()
    written = read(source, topic, 2)
    wait_for_markers(target, deleted, 2)
    wait_for_markers(target, copy.remote, 2)
    assert read(target, deleted, 2, **COMMITTED)[1] == written[1]
    assert read(target, copy.remote, 2, **COMMITTED)[0] == written[0]


@pytest.mark.usefixtures("both_protocols")
def test_a_task_that_vanished_leaves_nothing_double_with_transactions(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, numbered(0, 20_000), **{"batch.size": 3000})
    copy = Copy(source, target, alias, topic)
    transactional_id = f"{alias}-mm2-MirrorSourceConnector-0"
    for after in (3000, 4000, 2000):
        abandon(copy, after, transactional_id=transactional_id, commit_interval_ms=20)
    copy.once(transactional_id=transactional_id)
    wait_for_equal(copy)


@pytest.mark.usefixtures("both_protocols")
def test_of_two_instances_the_first_is_fenced_and_says_so(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    copy = Copy(source, target, alias, topic)
    settings = {"transactional_id": f"{alias}-mm2-MirrorSourceConnector-0", "commit_interval_ms": 100}
    first, second = HandLease(), HandLease()
    join_first = copy.background(first, **settings)
    write(source, topic, numbered(0, 2000))
    wait_for_equal(copy)
    join_second = copy.background(second, **settings)
    # An instance with nothing to write learns nothing: what the first one is to fail at comes after the take-over.
    wait_for(lambda: second.reports and second.reports[-1].partitions)
    write(source, topic, numbered(2000, 2000))
    with pytest.raises(FencedError, match="another instance has taken over"):
        join_first()
    write(source, topic, numbered(4000, 2000))
    wait_for_equal(copy)
    second.stop_reason = "test"
    join_second()


@pytest.mark.usefixtures("both_protocols")
def test_a_transaction_the_target_gave_up_is_begun_again_not_taken_for_a_rival(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_commits, "_QUIET_INTERVAL_S", 600.0)
    make_topic(source, topic)
    copy = Copy(source, target, alias, topic)
    write(source, topic, numbered(0, 100))
    settings = {
        "transactional_id": f"{alias}-mm2-MirrorSourceConnector-0",
        "commit_interval_ms": 60_000,
        "transaction_timeout_ms": 1000,
        "max_commit_interval_ms": 100_000,
    }
    lease = HandLease()
    join = copy.background(lease, **settings)
    # The target looks for overdue transactions every 10 s.
    wait_for(lambda: state_of(target, str(settings["transactional_id"])) == "CompleteAbort", pause_s=0.5)
    write(source, topic, numbered(100, 100))
    with pytest.raises(TaskError) as ended:
        join()
    assert not isinstance(ended.value, FencedError), ended.value
    copy.once(transactional_id=settings["transactional_id"])
    wait_for_equal(copy)


def state_of(cluster: EmbeddedCluster, transactional_id: str) -> str | None:
    """Of a transaction; None before the first."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        return str(client.describe_transactions([transactional_id])[transactional_id].state.value)
    except TransactionalIdNotFoundError:
        return None
    finally:
        client.close()


def test_producers_of_an_earlier_instance_with_more_tasks_are_fenced(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    copy = Copy(source, target, alias, topic)
    prefix = f"{alias}-mm2-MirrorSourceConnector-"
    lease = HandLease()
    join = copy.background(lease, transactional_id=f"{prefix}7", commit_interval_ms=100)
    write(source, topic, numbered(0, 100))
    wait_for_equal(copy)
    admin = admin_of(target)
    assert fence_producers(admin, prefix) == (f"{prefix}7",)
    admin.close()
    write(source, topic, numbered(100, 100))
    with pytest.raises(FencedError):
        join()


# --- without transactions: tail resume -------------------------------------------------------------------------------


def test_a_task_that_vanished_leaves_nothing_double_without_transactions(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, numbered(0, 30_000), **{"batch.size": 3000})
    copy = Copy(source, target, alias, topic)
    for after in (3000, 4000, 2000):
        abandon(copy, after, commit_interval_ms=600_000)  # what it has written is behind its progress
    report = copy.once()
    assert sum(row.already_there for row in report.partitions) >= 2000
    assert read(target, copy.remote, 2) == read(source, topic, 2)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_merged_and_identical_records_are_recognised(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, codec: str
) -> None:
    make_topic(source, topic)
    same = ({"value": b"same", "partition": n % 2, "timestamp": 1_700_000_000_000} for n in range(6000))
    write(source, topic, same, **{"batch.num.messages": 3, "compression.type": codec})
    copy = Copy(source, target, alias, topic)
    abandon(copy, 500)
    copy.once()
    assert read(target, copy.remote, 2) == read(source, topic, 2)


def test_another_writer_on_the_target_costs_no_loss(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, numbered(0, 30_000), **{"batch.size": 3000})
    copy = Copy(source, target, alias, topic)
    ended = threading.Event()

    def rival() -> None:
        while not ended.wait(0.005):
            write(target, copy.remote, [{"value": b"rival", "partition": p} for p in range(2)])

    writer = threading.Thread(target=rival)
    writer.start()
    try:
        for after in (3000, 4000):
            abandon(copy, after)
        copy.once()
    finally:
        ended.set()
        writer.join()
    ours = {p: [r for r in rs if r.value != b"rival"] for p, rs in read(target, copy.remote, 2).items()}
    assert ours == read(source, topic, 2)


def test_progress_that_was_forgotten_on_purpose_is_made_again(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, numbered(0, 1000))
    copy = Copy(source, target, alias, topic)
    copy.once()
    first, second = copy.spec().partitions
    copy.once(partitions=(replace(first, source_offsets=None, is_reset=True), replace(second, source_offsets=None)))
    assert {p: len(records) for p, records in read(target, copy.remote, 2).items()} == {0: 1000, 1: 500}


def test_java_progress_without_our_notes_counts_as_it_is(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, numbered(0, 1000))
    copy = Copy(source, target, alias, topic)
    copy.once()
    bare = tuple(
        replace(p, source_offsets=replace(p.source_offsets, offset=399, target_end=None, topic_id=None))
        for p in copy.spec().partitions
        if p.source_offsets
    )
    copy.once(partitions=bare)
    assert [len(records) for records in read(target, copy.remote, 2).values()] == [600, 600]

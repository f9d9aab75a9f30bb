"""The end of a task against scripted brokers: what is still written, and what is not compared over and over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka.protocol.producer import ProduceRequest

from heliograph.executor.contract.task_spec import SyncsSpec
from heliograph.executor.copy import copy_loop, sync_writer
from heliograph.executor.copy.offset_commits import OffsetCommits
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.model import TopicPartition
from heliograph.wire.records.mirror_records import decode_offset_sync
from tests.support.brokers.batches import decode
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.support.runs.copying import wait_for
from tests.unit.executor.test_cut_sources import TP, Mirror

if TYPE_CHECKING:
    import pytest

SYNCS = "mm2-offset-syncs.B.internal"
NOT_ENOUGH_REPLICAS = 19


def last_sync(cluster: ScriptedCluster) -> int | None:
    """The upstream offset of the last sync that was sent."""
    requests = cluster.requests(ProduceRequest)
    if not requests:
        return None
    _offset, record = decode(bytes(requests[-1].topic_data[0].partition_data[0].records))[-1]
    sync = decode_offset_sync(record.key, record.value)
    assert sync is not None
    return sync.upstream


def test_a_task_that_is_stopped_writes_its_last_syncs_without_the_pause_of_the_ones_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sync_writer, "_PAUSE_PER_PARTITION_S", 3600.0)
    mirror = Mirror()
    with mirror.source, mirror.target, ScriptedCluster(topics={SYNCS: 1}) as cluster:
        mirror.led(5, "abc")
        syncs = SyncsSpec(ClusterSpec("A", cluster.bootstrap, Security(), 5000), SYNCS)
        join = mirror.run(mirror.spec(syncs=syncs))
        wait_for(lambda: last_sync(cluster) is not None)
        mirror.led(5, "def")
        mirror.until_copied("abcdef")
        report = mirror.stop(join)
        next_offset = report.partitions[0].next_offset
        assert next_offset is not None
        assert next_offset > 3
        assert last_sync(cluster) == next_offset - 1


def test_a_task_does_not_compare_all_source_offsets_while_records_are_in_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.05)
    mirror = Mirror()
    has_all = OffsetCommits.has_all
    idle_when_asked: list[bool] = []

    def asked(commits: OffsetCommits, tps: Iterable[TopicPartition]) -> bool:
        idle_when_asked.append(all(p.target.is_idle for p in mirror.loop.partitions.values()))
        return has_all(commits, tps)

    monkeypatch.setattr(OffsetCommits, "has_all", asked)
    with mirror.source, mirror.target:
        mirror.led(5, "abc")
        mirror.target.hold(ProduceRequest)
        join = mirror.run(mirror.spec())
        wait_for(lambda: mirror.target.seen_of(ProduceRequest))
        mirror.lease.stop_reason = "test"
        before = len(mirror.lease.reports)
        wait_for(lambda: len(mirror.lease.reports) > before + 3)
        mirror.target.release(ProduceRequest)
        (row,) = join().partitions
    assert row.next_offset is not None
    assert row.committed_offset == row.next_offset - 1
    assert idle_when_asked
    assert all(idle_when_asked)


def test_what_is_acknowledged_only_while_a_task_stops_is_committed() -> None:
    mirror = Mirror()
    with mirror.source, mirror.target:
        mirror.led(1, "ab")
        join = mirror.run(replace(mirror.spec(), commit_interval_ms=2000))
        wait_for(lambda: mirror.loop._commits.committed.get(TP) == 1)
        mirror.target.script(ProduceRequest, *[NOT_ENOUGH_REPLICAS] * 4)
        mirror.led(1, "c")
        wait_for(lambda: mirror.loop.partitions[TP].target.issue)
        (row,) = mirror.stop(join).partitions
        assert mirror.copied() == "abc"
        assert row.committed_offset == 2

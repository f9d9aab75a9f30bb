"""The counters that a task reports, against scripted clusters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from kafka.protocol.producer import ProduceRequest

from heliograph.errors import TaskError
from heliograph.executor.copy import copy_loop
from heliograph.executor.copy.offset_commits import CommitTimes
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.wire.batches.forward import warm_up
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.support.runs.copying import wait_for
from tests.unit.executor.test_cut_sources import OFFSETS, TP, Mirror

_POLICY_VIOLATION = 44


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.05)
    monkeypatch.setattr(copy_loop, "MEASURE_INTERVAL_S", 0.0)
    warm_up()
    mirror = Mirror()
    with mirror.source, mirror.target:
        yield mirror
        mirror.lease.stop_reason = "test"


def test_a_task_counts_what_it_fetches_sends_and_commits(mirror: Mirror) -> None:
    mirror.led(5, "abcde")
    join = mirror.run(mirror.spec())
    mirror.until_copied("abcde")
    wait_for(lambda: mirror.loop._commits.committed.get(TP) == 4)
    wait_for(lambda: mirror.lease.reports[-1].counts.commits)
    running = mirror.lease.reports[-1]
    report = mirror.stop(join)
    counts, (row,) = report.counts, report.partitions
    assert (counts.fetched_records, counts.latency.records, row.records) == (5, 5, 5)
    assert counts.received_bytes > row.bytes
    assert counts.sent_bytes > row.bytes
    assert (counts.commits >= 1, counts.failed_commits) == (True, 0)
    gauges = running.gauges
    assert (gauges.source_connections, gauges.buffer_bytes) == (2, mirror.spec().buffer_bytes)
    assert gauges.target_connections
    assert gauges.unacknowledged_records == 0
    assert gauges.commit_mean_ms is not None
    assert gauges.commit_highest_ms is not None
    assert gauges.commit_highest_ms >= gauges.commit_mean_ms >= 0


def test_a_task_measures_the_age_of_records_and_their_latency(mirror: Mirror) -> None:
    began_ms = time.time() * 1000
    mirror.led(5, "abc")  # written in 2023
    join = mirror.run(mirror.spec())
    wait_for(lambda: any(row.latency_ms is not None for row in mirror.rows()))
    mirror.stop(join)
    row = next(row for row in mirror.rows() if row.latency_ms is not None)
    assert row.age_ms is not None
    assert row.latency_ms is not None
    least_ms = began_ms - 1_700_000_000_000
    assert least_ms <= row.age_ms.last <= row.latency_ms.last <= least_ms + 600_000


def test_a_commit_that_is_refused_has_failed(mirror: Mirror) -> None:
    mirror.led(5, "abc")
    with ScriptedCluster(topics={OFFSETS: 1}) as cluster:
        cluster.script(ProduceRequest, _POLICY_VIOLATION)
        join = mirror.run(replace(mirror.spec(), source_offsets=ClusterSpec("C", cluster.bootstrap, Security(), 5000)))
        with pytest.raises(TaskError):
            join()
    counts = mirror.lease.reports[-1].counts
    assert (counts.commits, counts.failed_commits) == (0, 1)


def test_commits_of_the_last_minute_have_a_mean_and_a_maximum() -> None:
    times = CommitTimes()
    assert times.last_minute(0.0) is None
    times.add(1_000.0, 10.0)
    times.add(2_000.0, 30.0)
    found = times.last_minute(3_000.0)
    assert found is not None
    assert (times.done, times.sum_ms, found.mean, found.highest) == (2, 40.0, 20, 30)

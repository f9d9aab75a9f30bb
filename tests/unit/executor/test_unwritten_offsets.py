"""Source offsets that cannot be written: the copy continues, and the task reports it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kafka.protocol.producer import ProduceRequest

from heliograph.diagnostics import Severity
from heliograph.errors import TaskError
from heliograph.executor.contract.task_spec import TaskSpec
from heliograph.executor.copy import copy_loop
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.support.runs.copying import wait_for
from tests.unit.executor.test_cut_sources import OFFSETS, TP, Mirror

_NOT_ENOUGH_REPLICAS, _POLICY_VIOLATION = 19, 44
_NO_LEADER = -1


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.05)
    monkeypatch.setattr(copy_loop, "_DRAIN_TIMEOUT_S", 0.3)
    mirror = Mirror()
    mirror.led(5, "abc")
    with mirror.source, mirror.target:
        yield mirror
        mirror.lease.stop_reason = "test"


def reported(mirror: Mirror, words: str) -> bool:
    return any(words in issue for report in mirror.lease.reports for issue in report.issue)


def kept_elsewhere(mirror: Mirror, cluster: ScriptedCluster) -> TaskSpec:
    """A task whose source offsets are on a cluster of their own."""
    return replace(mirror.spec(), source_offsets=ClusterSpec("C", cluster.bootstrap, Security(), 5000))


def test_an_offsets_topic_without_a_leader_is_reported_until_it_has_one(mirror: Mirror) -> None:
    mirror.target.leaders[OFFSETS, 0] = _NO_LEADER
    join = mirror.run(mirror.spec())
    mirror.until_copied("abc")
    wait_for(lambda: reported(mirror, f"source offsets wait: {OFFSETS}-0 on 'B': the target has no leader for it"))
    mirror.target.leaders[OFFSETS, 0] = 1
    wait_for(lambda: mirror.loop._commits.committed.get(TP) == 2)
    wait_for(lambda: not mirror.lease.reports[-1].issue)
    report = mirror.stop(join)
    assert (report.events, report.issue) == ([], [])


def test_an_offsets_topic_below_min_insync_replicas_is_reported_with_its_cluster(mirror: Mirror) -> None:
    with ScriptedCluster(topics={OFFSETS: 1}) as cluster:
        cluster.script(ProduceRequest, *[_NOT_ENOUGH_REPLICAS] * 1000)
        join = mirror.run(kept_elsewhere(mirror, cluster))
        mirror.until_copied("abc")
        wait_for(lambda: reported(mirror, f"source offsets wait: {OFFSETS}-0 on 'C': NOT_ENOUGH_REPLICAS"))
        mirror.stop(join)


def test_a_task_that_ends_without_having_written_its_source_offsets_reports_it(mirror: Mirror) -> None:
    mirror.target.leaders[OFFSETS, 0] = _NO_LEADER
    join = mirror.run(mirror.spec())
    mirror.until_copied("abc")
    wait_for(lambda: reported(mirror, "source offsets wait"))
    (event,) = mirror.stop(join).events
    sentence = "A->B: the task ends before it could write the source offsets of 1 partition, t-0 first (source offsets"
    assert event.message.startswith(sentence)
    assert event.severity is Severity.WARNING


def test_source_offsets_that_are_refused_end_the_task_and_name_their_cluster(mirror: Mirror) -> None:
    with ScriptedCluster(topics={OFFSETS: 1}) as cluster:
        cluster.script(ProduceRequest, _POLICY_VIOLATION)
        join = mirror.run(kept_elsewhere(mirror, cluster))
        with pytest.raises(TaskError, match=rf"source offsets cannot be written to {OFFSETS}-0 on 'C'"):
            join()

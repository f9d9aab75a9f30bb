"""Progress that cannot be written: copying goes on, and it is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kafka.protocol.producer import ProduceRequest

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


def kept_elsewhere(mirror: Mirror, holder: ScriptedCluster) -> TaskSpec:
    """A task whose progress is on a cluster of its own."""
    return replace(mirror.spec(), source_offsets=ClusterSpec("C", holder.bootstrap, Security(), 5000))


def test_a_topic_of_progress_without_a_leader_is_told_until_it_has_one(mirror: Mirror) -> None:
    mirror.target.leaders[OFFSETS, 0] = _NO_LEADER
    join = mirror.run(mirror.spec())
    mirror.until_copied("abc")
    wait_for(lambda: reported(mirror, f"progress waits: {OFFSETS}-0 on 'B': the target has no leader for it"))
    mirror.target.leaders[OFFSETS, 0] = 1
    wait_for(lambda: mirror.loop._commits.committed.get(TP) == 2)
    wait_for(lambda: not mirror.lease.reports[-1].issue)
    report = mirror.stop(join)
    assert (report.events, report.issue) == ([], [])


def test_a_topic_of_progress_below_its_least_replicas_is_told_with_its_cluster(mirror: Mirror) -> None:
    with ScriptedCluster(topics={OFFSETS: 1}) as holder:
        holder.script(ProduceRequest, *[_NOT_ENOUGH_REPLICAS] * 1000)
        join = mirror.run(kept_elsewhere(mirror, holder))
        mirror.until_copied("abc")
        wait_for(lambda: reported(mirror, f"progress waits: {OFFSETS}-0 on 'C': NOT_ENOUGH_REPLICAS"))
        mirror.stop(join)


def test_a_task_that_ends_without_having_written_its_progress_says_so(mirror: Mirror) -> None:
    mirror.target.leaders[OFFSETS, 0] = _NO_LEADER
    join = mirror.run(mirror.spec())
    mirror.until_copied("abc")
    wait_for(lambda: reported(mirror, "progress waits"))
    (event,) = mirror.stop(join).events
    assert event.startswith("A->B: the task ends before it could write the progress of 1 partition, t-0 first (prog")


def test_progress_that_is_refused_ends_the_task_and_names_the_cluster_of_progress(mirror: Mirror) -> None:
    with ScriptedCluster(topics={OFFSETS: 1}) as holder:
        holder.script(ProduceRequest, _POLICY_VIOLATION)
        join = mirror.run(kept_elsewhere(mirror, holder))
        with pytest.raises(TaskError, match=rf"progress cannot be written to {OFFSETS}-0 on 'C'"):
            join()

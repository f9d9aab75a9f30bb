"""A worker without work: it sends few requests, and is quick again as soon as something happens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from kafka.protocol.consumer import HeartbeatRequest, ListOffsetsRequest

from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime import connect_worker, reconciler
from heliograph.connect.runtime.connect_worker import ConnectWorker
from heliograph.connect.runtime.reconciler import _PollSchedule
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.support.config_files import FakeLookup
from tests.support.runs.copying import wait_for

SETTLE_S, COUNT_S = 2.5, 4.0
MOST_REQUESTS_PER_S = 7  # it sent 16 when both topics were polled at every tick


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={"configs": 1, "statuses": 5}) as made:
        yield made


@pytest.fixture
def worker(cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectWorker]:
    """A worker that leads its group and has no connectors."""
    monkeypatch.setattr(connect_worker, "create_worker_topics", lambda *_args: None)
    lines = {
        "bootstrap.servers": ",".join(map(str, cluster.bootstrap)),
        "group.id": "g",
        "config.storage.topic": "configs",
        "offset.storage.topic": "offsets",
        "status.storage.topic": "statuses",
    }
    config = load_worker("\n".join(f"{key} = {value}" for key, value in lines.items()), FakeLookup())
    made = ConnectWorker(config, cast("Any", SimpleNamespace(slots=1, driver=Mock())), "http://here:8083", LogLevels())
    made.start()
    yield made
    made.stop()


@pytest.mark.usefixtures("worker")
def test_an_idle_worker_sends_few_requests(cluster: ScriptedCluster) -> None:
    time.sleep(SETTLE_S)
    before = len(cluster.seen)
    time.sleep(COUNT_S)
    sent = [type(seen.request).__name__ for seen in cluster.seen[before:]]
    assert len(sent) <= MOST_REQUESTS_PER_S * COUNT_S, sent
    assert HeartbeatRequest.__name__ in sent
    assert ListOffsetsRequest.__name__ in sent, "the topics are still followed"


def test_a_worker_that_is_woken_reads_both_topics_at_once(worker: ConnectWorker, cluster: ScriptedCluster) -> None:
    time.sleep(SETTLE_S)

    def polls() -> set[str]:
        return {topic.name for request in cluster.requests(ListOffsetsRequest)[before:] for topic in request.topics}

    before = len(cluster.requests(ListOffsetsRequest))
    worker._reconciler.wake()
    wait_for(lambda: polls() == {"configs", "statuses"}, timeout_s=2)


def test_a_topic_is_polled_less_often_while_it_does_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(reconciler, "time", clock)
    monkeypatch.setattr(reconciler, "_TICK_S", 0.25)
    polls = _PollSchedule(longest_s=1.0)

    def pause_s() -> float:
        assert polls.is_due()
        polls.done(has_changed=False)
        began = clock.now
        while not polls.is_due():
            clock.now += 0.25
        return float(clock.now - began)

    assert [pause_s() for _poll in range(4)] == [0.25, 0.5, 1.0, 1.0]
    polls.done(has_changed=True)
    assert polls.is_due(), "where one record came more may follow"
    assert pause_s() == 0.25
    polls.done(has_changed=False)
    assert not polls.is_due()
    polls.reset()
    assert polls.is_due()

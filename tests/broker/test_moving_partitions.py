"""Partitions move between running tasks: nothing is lost, copied twice or out of order, and offsets stay translatable."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from heliograph.driver.flow import source_flow, task_supervisor
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.model import TopicPartition
from tests.support.clusters.clients import make_topic, read, wait_for_markers, write
from tests.support.runs.copying import wait_for
from tests.support.runs.flow_clusters import Clusters
from tests.support.runs.thread_engine import ThreadEngine

pytestmark = pytest.mark.broker

PARTITIONS = 6
ROUNDS = 25
COMMITTED = {"isolation.level": "read_committed"}
MODES = {"at-least-once": (), "exactly-once": ("exactly.once.source.support = enabled",)}


@pytest.fixture
def clusters(source: EmbeddedCluster, target: EmbeddedCluster, alias: str, monkeypatch: pytest.MonkeyPatch) -> Clusters:
    monkeypatch.setattr(source_flow, "_TASKS_INTERVAL_S", 0.1)
    return Clusters(source, target, alias)


@contextmanager
def load(cluster: EmbeddedCluster, topic: str, pause_s: float = 0.01) -> Iterator[None]:
    """Write to all partitions of a topic until the block ends."""
    stopping = threading.Event()

    def run() -> None:
        number = 0
        while not stopping.wait(pause_s):
            write(
                cluster,
                topic,
                [{"value": b"%08d" % n + b"x" * 100, "partition": n % PARTITIONS} for n in range(number, number + 300)],
            )
            number += 300

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


class Mover:
    """Plans random shares instead of balanced ones, once all partitions of the last plan are where they are to be."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rounds = 0
        self.moves = 0

    def plan(self, flow: SourceFlow) -> None:
        supervisor = flow._supervisor
        plan = supervisor._plan
        if supervisor._settle_at is not None or not supervisor.tasks.are_settled:
            return
        if plan.shares != supervisor.tasks.shares or any(task.running is None for task in supervisor.tasks):
            return
        self.rounds += 1
        shares = [set(share) for share in plan.shares]
        for _move in range(self.random.randint(1, 3)):
            one, other = self.random.sample(range(len(shares)), 2)
            if shares[one]:
                tp = self.random.choice(sorted(shares[one]))
                shares[one].discard(tp)
                shares[other].add(tp)
                self.moves += 1
        supervisor._move(tuple(map(frozenset, shares)))


@contextmanager
def moving(flow: SourceFlow, seed: int) -> Iterator[Mover]:
    mover = Mover(seed)
    flow._supervisor._rebalance = lambda: mover.plan(flow)  # type: ignore[method-assign]
    yield mover


def wait_until_equal(clusters: Clusters, topic: str) -> None:
    remote = f"{clusters.alias}.{topic}"
    written = read(clusters.source, topic, PARTITIONS)
    wait_for(
        lambda: (
            sum(map(len, read(clusters.target, remote, PARTITIONS, **COMMITTED).values()))
            >= sum(map(len, written.values()))
        ),
        pause_s=0.5,
    )
    wait_for_markers(clusters.target, remote, PARTITIONS)
    assert read(clusters.target, remote, PARTITIONS, **COMMITTED) == written


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tasks", [2, 4])
def test_partitions_that_move_at_random_are_copied_once_and_in_order(
    clusters: Clusters, topic: str, mode: str, tasks: int
) -> None:
    make_topic(clusters.source, topic, PARTITIONS)
    engine = ThreadEngine()
    config = clusters.file(topic, f"tasks.max = {tasks}", "offset.flush.interval.ms = 500", *MODES[mode])
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    with clusters.running(config, engine) as flow, moving(flow, seed) as mover:
        began = time.monotonic()
        with load(clusters.source, topic):
            wait_for(lambda: mover.rounds >= ROUNDS)
        print(f"{mover.moves} moves in {mover.rounds} rounds, {time.monotonic() - began:.1f} s")
        wait_until_equal(clusters, topic)
    assert len(engine.started) == tasks, "no task was restarted"
    assert flow.status.counts.records == sum(map(len, read(clusters.source, topic, PARTITIONS).values()))

"""Partitions move between running tasks: none is lost, copied twice or out of order, and offsets stay translatable."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from heliograph.driver.flow import source_flow
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.task_spec import SyncsSpec
from heliograph.executor.copy import copy_loop
from heliograph.model import TopicPartition
from tests.broker.test_offset_syncs import assert_exact, known_from
from tests.support.clusters.clients import make_topic, read, wait_for_markers, write
from tests.support.runs.copying import Copy, cluster_spec, wait_for
from tests.support.runs.flow_clusters import Clusters
from tests.support.runs.thread_engine import ThreadEngine

pytestmark = pytest.mark.broker

PARTITIONS = 6
ROUNDS = 40
COMMITTED = {"isolation.level": "read_committed"}
EXACTLY_ONCE = "target.exactly.once.source.support=enabled"
MODES = {"at-least-once": (), "exactly-once": (EXACTLY_ONCE,)}


@pytest.fixture
def clusters(source: EmbeddedCluster, target: EmbeddedCluster, alias: str, monkeypatch: pytest.MonkeyPatch) -> Clusters:
    monkeypatch.setattr(source_flow, "_TASKS_INTERVAL_S", 0.1)
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.2)
    return Clusters(source, target, alias)


@contextmanager
def load(cluster: EmbeddedCluster, topic: str) -> Iterator[None]:
    """Write to all partitions of a topic until the block ends."""
    stopping = threading.Event()

    def run() -> None:
        start = 0
        while not stopping.wait(0.02):
            numbers = range(start, start + 200)
            write(cluster, topic, [{"value": b"%08d" % n + b"x" * 100, "partition": n % PARTITIONS} for n in numbers])
            start += 200

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


class Mover:
    """Plans random shares instead of balanced ones, once all partitions of the last plan are where they are to be.

    Every `kills_every` rounds a task is killed while it releases a partition, or is about to take one.
    """

    def __init__(self, flow: SourceFlow, engine: ThreadEngine, seed: int, kills_every: int = 0) -> None:
        self.rounds = self.moves = self.kills = 0
        self._random = random.Random(seed)
        self._supervisor = flow._supervisor
        self._engine = engine
        self._kills_every = kills_every
        flow._supervisor._rebalance = self.plan  # type: ignore[method-assign]

    def plan(self) -> None:
        supervisor = self._supervisor
        shares = [set(share) for share in supervisor._plan.shares]
        is_settled = supervisor._settle_at is None and supervisor.tasks.are_settled
        if not is_settled or tuple(map(frozenset, shares)) != supervisor.tasks.shares:
            return
        if any(task.running is None for task in supervisor.tasks):
            return
        self.rounds += 1
        for _move in range(self._random.randint(1, 3)):
            one, other = self._random.sample(range(len(shares)), 2)
            if shares[one]:
                tp = self._random.choice(sorted(shares[one]))
                shares[one].discard(tp)
                shares[other].add(tp)
                self.moves += 1
        if supervisor.rebalancing.move(tuple(map(frozenset, shares))):
            supervisor._settle_at = time.monotonic()
        if self._kills_every and not self.rounds % self._kills_every:
            supervisor.settle()
            changing = [task for task in supervisor.tasks if task.departed] or supervisor.tasks
            victim = self._random.choice(changing).running
            assert victim is not None
            time.sleep(self._random.choice([0.0, 0.1, 0.3]))
            self._engine.kill(victim)
            self.kills += 1


def wait_until_equal(clusters: Clusters, topic: str) -> None:
    """Also with exactly-once: a transaction is decided a moment before its markers are in the logs."""
    remote = f"{clusters.alias}.{topic}"
    written = read(clusters.source, topic, PARTITIONS)

    def count() -> int:
        return sum(map(len, read(clusters.target, remote, PARTITIONS, **COMMITTED).values()))

    wait_for(lambda: count() >= sum(map(len, written.values())), pause_s=0.5)
    wait_for_markers(clusters.target, remote, PARTITIONS)
    assert read(clusters.target, remote, PARTITIONS, **COMMITTED) == written


@pytest.mark.parametrize("tasks", [2, 4])
def test_partitions_that_move_at_random_are_copied_once_and_in_order(
    clusters: Clusters, topic: str, tasks: int
) -> None:
    move_at_random(clusters, topic, tasks)


@pytest.mark.usefixtures("both_protocols")
def test_with_transactions_partitions_that_move_at_random_are_copied_exactly_once(
    clusters: Clusters, topic: str
) -> None:
    move_at_random(clusters, topic, 3, EXACTLY_ONCE)


def move_at_random(clusters: Clusters, topic: str, tasks: int, *lines: str) -> None:
    """Under load; then every record and every translated offset is compared."""
    make_topic(clusters.source, topic, PARTITIONS)
    engine, seed = ThreadEngine(), random.randrange(1 << 30)
    config = clusters.file(topic, f"tasks.max = {tasks}", *lines)
    with clusters.running(config, engine) as flow:
        mover, began = Mover(flow, engine, seed), time.monotonic()
        with load(clusters.source, topic):
            wait_for(lambda: mover.rounds >= ROUNDS)
        print(f"seed {seed}: {mover.moves} moves in {mover.rounds} rounds, {time.monotonic() - began:.1f} s")
        wait_until_equal(clusters, topic)
        total = sum(map(len, read(clusters.source, topic, PARTITIONS).values()))
        wait_for(lambda: flow.status.counts.records == total)
        flow._supervisor._rebalance = lambda: None  # type: ignore[method-assign]
    assert len(engine.started) == tasks, "no task was restarted"
    copy = Copy(clusters.source, clusters.target, clusters.alias, topic, PARTITIONS)
    syncs = SyncsSpec(cluster_spec(clusters.alias, clusters.source), "mm2-offset-syncs.target.internal")
    assert_exact(copy, known_from(clusters.source, syncs))


@pytest.mark.parametrize("mode", MODES)
def test_tasks_that_are_killed_while_partitions_move_lose_nothing_and_copy_nothing_twice(
    clusters: Clusters, topic: str, mode: str
) -> None:
    make_topic(clusters.source, topic, PARTITIONS)
    engine, seed = ThreadEngine(), random.randrange(1 << 30)
    with clusters.running(clusters.file(topic, "tasks.max = 3", *MODES[mode]), engine) as flow:
        mover = Mover(flow, engine, seed, kills_every=3)
        with load(clusters.source, topic):
            wait_for(lambda: mover.kills >= 8)
        print(f"seed {seed}: {mover.moves} moves in {mover.rounds} rounds, {len(engine.started) - 3} restarts")
        flow._supervisor._rebalance = lambda: None  # type: ignore[method-assign]
        wait_until_equal(clusters, topic)
    assert len(engine.started) > 3


def test_a_failed_partition_can_move_to_another_task(clusters: Clusters, topic: str) -> None:
    make_topic(clusters.source, topic, 2)
    remote = f"{clusters.alias}.{topic}"
    make_topic(clusters.target, remote, 2, max_message_bytes="2000")
    records = [{"value": b"%d" % n + b"x" * 100 * n, "partition": n % 2 and 0} for n in range(40)]
    write(clusters.source, topic, [{**record, "partition": 0} for record in records])
    engine, bad = ThreadEngine(), TopicPartition(topic, 0)
    with clusters.running(clusters.file(topic, "tasks.max = 2"), engine) as flow:
        wait_for(lambda: flow.status.failures)
        supervisor, tps = flow._supervisor, frozenset({bad, TopicPartition(topic, 1)})

        def move() -> None:
            if supervisor.rebalancing.move((frozenset(), tps)):
                supervisor._settle_at = time.monotonic()

        supervisor._rebalance = move  # type: ignore[method-assign]
        wait_for(lambda: supervisor.tasks.shares == (frozenset(), tps))
        wait_for(lambda: any("message" in failure for failure in flow.status.failures))
        copied = read(clusters.target, remote, 2)[0]
        assert copied == read(clusters.source, topic, 2)[0][: len(copied)]
    assert len(engine.started) == 2

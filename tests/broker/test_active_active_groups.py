"""Active-active: groups that read a topic of both clusters fail over and back, and same-named groups skip nothing."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from heliograph.cli.inputs import MachineLookup
from heliograph.cli.main import cli
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import Flow, TopicPartition
from tests.support.clusters.clients import admin_of, make_topic
from tests.support.runs.copying import wait_for
from tests.support.runs.thread_engine import thread_engine

pytestmark = pytest.mark.broker

GONE = "127.0.0.1:1"
PARTITIONS = 2


class Load:
    """Writes numbered records to a topic until it is stopped."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, name: str) -> None:
        self.values: list[bytes] = []
        self._cluster, self._topic, self._name = cluster, topic, name
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap, "linger.ms": 5})
        while not self._stop.wait(0.02):
            for _ in range(10):
                value = f"{self._name}-{len(self.values)}".encode()
                producer.produce(self._topic, value, partition=len(self.values) % PARTITIONS)
                self.values.append(value)
            producer.flush()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


class Pair:
    """Two clusters that copy one topic to each other."""

    def __init__(self, folder: Path, a: EmbeddedCluster, b: EmbeddedCluster, topic: str, alias: str) -> None:
        self.clusters = {f"{alias}a": a, f"{alias}b": b}
        self.a, self.b = self.clusters
        self.topic, self.folder = topic, folder
        self.forth, self.back = Flow(self.a, self.b), Flow(self.b, self.a)
        for cluster in (a, b):
            make_topic(cluster, topic)

    def file(self, *lines: str, gone: str = "", flows: tuple[Flow, ...] = ()) -> Path:
        addresses = {alias: GONE if alias == gone else cluster.bootstrap for alias, cluster in self.clusters.items()}
        text = [
            f"clusters = {self.a}, {self.b}",
            *(f"{alias}.bootstrap.servers = {address}" for alias, address in addresses.items()),
            *(f"{flow}.enabled = true" for flow in flows or (self.forth, self.back)),
            f"topics = {self.topic}",
            f"groups = {self.topic}.*",
            "emit.heartbeats.enabled = false",
            "heartbeats.replication.enabled = false",
            "sync.topic.configs.enabled = false",
            "sync.topic.acls.enabled = false",
            "refresh.topics.interval.seconds = 1",
            *lines,
        ]
        path = self.folder / f"{len(list(self.folder.iterdir()))}.properties"
        path.write_text("\n".join(text))
        return path

    @contextmanager
    def running(self, file: Path) -> Iterator[None]:
        config = load(file.read_text(), MachineLookup())
        flows = [SourceFlow(config, flow, thread_engine(), flow_count=2, keeps_trying=True) for flow in config.flows]
        for flow in flows:
            flow.start()
        try:
            yield
        finally:
            for flow in flows:
                flow.stop()
            for flow in flows:
                assert flow.join(180)

    def topics(self, alias: str) -> list[str]:
        other = self.b if alias == self.a else self.a
        return [self.topic, f"{other}.{self.topic}"]

    def wait_until_copied(self) -> None:
        def ends(alias: str, topic: str) -> list[int]:
            with closing(admin_of(self.clusters[alias])) as admin:
                tps = [TopicPartition(topic, p) for p in range(PARTITIONS)]
                return [*admin.end_offsets(tps).values()] if topic in admin.view([topic]).partition_counts else []

        for flow in (self.forth, self.back):
            wait_for(
                lambda flow=flow: ends(flow.source, self.topic) == ends(flow.target, f"{flow.source}.{self.topic}"),
                pause_s=0.2,
            )

    def read(self, alias: str, group: str, count: int | None, topics: list[str] | None = None) -> list[bytes]:
        """Read as a member of the group: so many records, or all that there are; commit, leave."""
        settings = {"bootstrap.servers": self.clusters[alias].bootstrap, "group.id": group}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
        wanted = topics or self.topics(alias)
        with closing(admin_of(self.clusters[alias])) as admin:
            wait_for(lambda: set(wanted) <= admin.view(wanted).partition_counts.keys(), pause_s=0.2)
        consumer.subscribe(wanted)
        values: list[bytes] = []
        places: dict[tuple[str, int], int] = {}
        partitions = {(topic, p) for topic in wanted for p in range(PARTITIONS)}

        def is_done() -> bool:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                values.append(message.value())
                places[message.topic(), message.partition()] = message.offset() + 1
            if count is not None:
                return len(values) >= count and places.keys() == partitions
            if message is not None or {(each.topic, each.partition) for each in consumer.assignment()} != partitions:
                return False
            return all(has_ended(Place(*each)) for each in partitions)

        def has_ended(place: Place) -> bool:
            end = consumer.get_watermark_offsets(place, timeout=10)[1]
            found = [*consumer.position([place]), *consumer.committed([place], timeout=10)]
            return max(0, *(each.offset for each in found)) >= end

        wait_for(is_done, pause_s=0)
        if places:
            consumer.commit(offsets=[Place(*each, offset) for each, offset in places.items()], asynchronous=False)
        consumer.close()
        return values

    def committed(self, alias: str, group: str) -> dict[TopicPartition, int]:
        with closing(admin_of(self.clusters[alias])) as admin:
            return {tp: found.offset for tp, found in GroupAdmin(admin).committed([group])[group].items()}

    def checkpoint_sync(self, file: Path, flow: Flow) -> CheckpointSync:
        sync = CheckpointSync(load(file.read_text(), MachineLookup()), flow)
        assert [*sync.begin(), *sync.refresh_groups(), *sync.emit()] == []
        return sync


@pytest.fixture
def pair(tmp_path: Path, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> Pair:
    return Pair(tmp_path, source, target, topic, alias)


def heliograph(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout


def moved(*arguments: object, code: int = 0) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(heliograph(*arguments, "--json", code=code))
    (group,) = data["groups"]
    return dict(group)


def is_exact(file: Path, flow: Flow, group: str, command: str = "failover") -> bool:
    """The translation has caught up with where the group stopped."""
    arguments = [command, str(file), "--flow", str(flow), "--group", group, "--dry-run", "--json"]
    result = CliRunner().invoke(cli, arguments)
    return result.exit_code == 0 and json.loads(result.stdout)["groups"][0]["records_again"] == 0


def test_groups_on_both_sides_move_over_and_back_under_load_without_loss_or_repetition(pair: Pair) -> None:
    file = pair.file()
    at_a, at_b = f"{pair.topic}-at-a", f"{pair.topic}-at-b"
    with ExitStack() as stack:
        stack.enter_context(pair.running(file))
        loads = [Load(pair.clusters[alias], pair.topic, alias) for alias in pair.clusters]
        for each in loads:
            stack.callback(each.stop)
        seen_a = pair.read(pair.a, at_a, 300)
        seen_b = pair.read(pair.b, at_b, 300)
        wait_for(lambda: is_exact(file, pair.forth, at_a), pause_s=0.5)
        wait_for(lambda: is_exact(file, pair.back, at_b), pause_s=0.5)
        assert moved("failover", file, "--flow", pair.forth, "--group", at_a)["records_again"] == 0
        assert moved("failover", file, "--flow", pair.back, "--group", at_b)["records_again"] == 0
        seen_a += pair.read(pair.b, at_a, 300)
        seen_b += pair.read(pair.a, at_b, 300)
        wait_for(lambda: is_exact(file, pair.forth, at_a, "failback"), pause_s=0.5)
        wait_for(lambda: is_exact(file, pair.back, at_b, "failback"), pause_s=0.5)
        assert moved("failback", file, "--flow", pair.forth, "--group", at_a)["records_again"] == 0
        assert moved("failback", file, "--flow", pair.back, "--group", at_b)["records_again"] == 0
        for each in loads:
            each.stop()
        pair.wait_until_copied()
        seen_a += pair.read(pair.a, at_a, None)
        seen_b += pair.read(pair.b, at_b, None)
    written = Counter(value for each in loads for value in each.values)
    assert Counter(seen_a) == written
    assert Counter(seen_b) == written


def test_a_lost_cluster_loses_nothing_of_both_topics(pair: Pair) -> None:
    """The checkpoints of A->B cover the copies of B's topic on A, too."""
    file, group = pair.file(), pair.topic
    with pair.running(file):
        loads = [Load(pair.clusters[alias], pair.topic, alias) for alias in pair.clusters]
        seen = pair.read(pair.a, group, 300)
        wait_for(lambda: is_exact(file, pair.forth, group), pause_s=0.5)
        for each in loads:
            each.stop()
        pair.wait_until_copied()
    with closing(pair.checkpoint_sync(file, pair.forth)):
        pass
    dark = pair.file(gone=pair.a)
    result = moved("failover", dark, "--flow", pair.forth, "--group", group)
    seen += (rest := pair.read(pair.b, group, None))
    assert (result["moved"], result["records_again"], len(result["partitions"])) == (True, 0, 2 * PARTITIONS)
    assert result["since_checkpoint_at_most"] == len(rest)
    assert Counter(seen) == Counter(value for each in loads for value in each.values)


@pytest.mark.parametrize("missing", ["the flow", "its offset syncs"])
def test_without_the_syncs_of_the_reverse_flow_the_repetition_is_counted(pair: Pair, missing: str) -> None:
    lines = (
        ()
        if missing == "the flow"
        else (f"{pair.back}.emit.offset-syncs.enabled = false", f"{pair.back}.emit.checkpoints.enabled = false")
    )
    group = pair.topic
    with pair.running(pair.file(*lines)):
        loads = [Load(pair.clusters[alias], pair.topic, alias) for alias in pair.clusters]
        seen = pair.read(pair.a, group, 300)
        for each in loads:
            each.stop()
        pair.wait_until_copied()
    file = pair.file(flows=(pair.forth,)) if missing == "the flow" else pair.file(*lines)
    for _dry in ("--dry-run",), ():
        result = moved("failover", file, "--flow", pair.forth, "--group", group, *_dry, code=1)
        assert not result["moved"]
        text_again = result["records_again"]
    again = Counter(seen) & Counter(pair.read(pair.b, group, None))
    assert text_again == again.total() > 0
    by_partition = {(each["topic"], each["partition"]): each for each in result["partitions"]}
    assert [by_partition[pair.topic, p]["outcome"] for p in range(PARTITIONS)] == ["impossible"] * PARTITIONS
    assert sum(by_partition[pair.topic, p]["again"] for p in range(PARTITIONS)) == again.total()


def test_group_sync_skips_nothing_for_a_group_of_the_same_name_on_both_sides(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Each side reads everything; B is stopped while A goes on."""
    file, group = pair.file("sync.group.offsets.enabled = true"), pair.topic
    with ExitStack() as stack:
        stack.enter_context(pair.running(file))
        loads = [Load(pair.clusters[alias], pair.topic, alias) for alias in pair.clusters]
        for each in loads:
            stack.callback(each.stop)
        seen = {alias: pair.read(alias, group, 200) for alias in pair.clusters}
        syncs = [stack.enter_context(closing(pair.checkpoint_sync(file, flow))) for flow in (pair.forth, pair.back)]

        def sync_all() -> None:
            for sync in syncs:
                assert [*sync.refresh_groups(), *sync.emit(), *sync.sync_groups()] == []

        with caplog.at_level(logging.WARNING):
            for alias in (pair.a, pair.a, pair.b, pair.a):
                sync_all()
                seen[alias] += pair.read(alias, group, 200)
            sync_all()
        for each in loads:
            each.stop()
        pair.wait_until_copied()
        sync_all()
        for alias in pair.clusters:
            seen[alias] += pair.read(alias, group, None)
            sync_all()
    written = Counter(value for each in loads for value in each.values)
    for alias in pair.clusters:
        assert Counter(seen[alias]) == written
    plans = json.loads(heliograph("plan", file, "--json"))["flows"]
    assert [group in flow["warnings"][0] for flow in plans] == [True, True]
    told = [record.getMessage() for record in caplog.records if "is on both clusters" in record.getMessage()]
    assert sorted(each.split(":")[0] for each in told) == sorted(map(str, (pair.forth, pair.back)))


def test_group_sync_moves_a_group_that_only_reads_at_the_source_also_after_restarts(pair: Pair) -> None:
    file, group = pair.file("sync.group.offsets.enabled = true"), pair.topic
    with pair.running(file):
        loads = [Load(pair.clusters[alias], pair.topic, alias) for alias in pair.clusters]
        seen = []
        for _round in range(3):
            seen += pair.read(pair.a, group, 150)
            wait_for(lambda: is_exact(file, pair.forth, group), pause_s=0.5)
            with closing(pair.checkpoint_sync(file, pair.forth)) as sync:
                assert list(sync.sync_groups()) == []
        for each in loads:
            each.stop()
        pair.wait_until_copied()
    assert len(pair.committed(pair.b, group)) == 2 * PARTITIONS
    seen += pair.read(pair.b, group, None)
    assert Counter(seen) == Counter(value for each in loads for value in each.values)


def test_group_sync_moves_a_group_again_once_failback_has_released_it(pair: Pair) -> None:
    file, group = pair.file("sync.group.offsets.enabled = true", flows=(pair.forth,)), pair.topic
    remote = f"{pair.a}.{pair.topic}"
    with pair.running(file):
        load = Load(pair.clusters[pair.a], pair.topic, pair.a)

        def sync_exactly() -> None:
            wait_for(lambda: is_exact(file, pair.forth, group), pause_s=0.5)
            with closing(pair.checkpoint_sync(file, pair.forth)) as sync:
                for _round in range(2):  # a release takes effect once it is saved
                    assert [*sync.sync_groups(), *sync.emit()] == []

        seen = pair.read(pair.a, group, 100, [pair.topic])
        sync_exactly()
        assert [tp.topic for tp in pair.committed(pair.b, group)] == [remote] * PARTITIONS
        seen += pair.read(pair.b, group, 100, [remote])
        at_b = pair.committed(pair.b, group)
        wait_for(lambda: is_exact(file, pair.forth, group, "failback"), pause_s=0.5)
        result = moved("failback", file, "--flow", pair.forth, "--group", group)
        assert (result["records_again"], result["not_released"]) == (0, None)
        assert pair.committed(pair.b, group) == at_b
        seen += pair.read(pair.a, group, 100, [pair.topic])
        sync_exactly()
        load.stop()
        wait_for(lambda: len(set(ends_of(pair, remote))) == 1, pause_s=0.2)
        seen += pair.read(pair.b, group, None, [remote])
    assert Counter(seen) == Counter(load.values)


def ends_of(pair: Pair, remote: str) -> list[tuple[int, ...]]:
    """The ends of a topic on A and of its copy on B."""
    found = []
    for alias, topic in ((pair.a, pair.topic), (pair.b, remote)):
        with closing(admin_of(pair.clusters[alias])) as admin:
            ends = admin.end_offsets([TopicPartition(topic, p) for p in range(PARTITIONS)])
            found.append(tuple(end for _tp, end in sorted(ends.items())))
    return found

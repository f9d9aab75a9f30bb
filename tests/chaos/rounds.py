"""A round: two clusters of three brokers, a writer, the copier, faults in every lane; then quiet, and the comparison.

Every record a committed reader sees on the source must be on the target, and its first sight in the source's order.
With exactly-once both sides must be equal; without it, records that came twice are counted.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from heliograph.embedded.kafka_cluster import find_cluster, forget_cluster, start_cluster
from tests.chaos.faults import Copier, Lane, Side, plan
from tests.chaos.gates import HOST, Gates, free_base
from tests.chaos.load import Writer
from tests.support.clusters.clients import Seen, make_topic, read

BROKERS = 3
PARTITIONS = 6
PER_SECOND = 2000
_HEAP = "-Xms128m -Xmx384m -XX:TieredStopAtLevel=1"
_FIRST_RECORD_TIMEOUT_S = 300.0
_CATCH_UP_TIMEOUT_S = 300.0
_BROKER_CONFIG = {
    "listeners": f"PLAINTEXT://{HOST}:{{port}},CONTROLLER://{HOST}:{{controller_port}},FAR://{HOST}:2{{port}}",
    "advertised.listeners": f"PLAINTEXT://{HOST}:{{port}},FAR://{HOST}:1{{port}}",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "4000",  # a broker that is stopped for longer loses its partitions to others
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "5000",
    # On a busy machine three controllers with the usual second of patience would vote and vote again.
    "controller.quorum.election.timeout.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "5000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "6",
}


@dataclass
class Outcome:
    """What a round showed."""

    seed: int
    exactly_once: bool
    faults: Counter[str] = field(default_factory=Counter)
    records: int = 0
    lost: int = 0
    out_of_order: int = 0
    duplicates: int = 0
    strangers: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether the copy kept what it promises in this mode."""
        wrong = self.lost or self.out_of_order or self.strangers or (self.exactly_once and self.duplicates)
        return not wrong and not self.problems

    def __str__(self) -> str:
        mode = "exactly-once" if self.exactly_once else "at-least-once"
        strangers = f", strangers {self.strangers}" if self.strangers else ""
        return (
            f"seed {self.seed} {mode}: {self.faults.total()} faults, {self.records} records, lost {self.lost},"
            f" out of order {self.out_of_order}, duplicates {self.duplicates}{strangers}, {self.seconds:.0f} s,"
            f" {'good' if self.is_good else 'BAD'}"
        )


class Arena:
    """A source and a target cluster, each behind doors; rounds come one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self.source = self._stack.enter_context(_side("source", folder))
        self.target = self._stack.enter_context(_side("target", folder))

    def close(self) -> None:
        """Stop everything."""
        self._stack.close()

    def play(self, seed: int, *, exactly_once: bool, seconds: float) -> Outcome:
        """One round; its files stay only where it went wrong."""
        outcome = Outcome(seed, exactly_once)
        began = time.monotonic()
        for side in (self.source, self.target):
            side.wait_until_in_sync()
        game = _Round(self, outcome)
        try:
            game.play(seconds)
        except BaseException as error:
            outcome.problems.append(repr(error))  # its files stay
            raise
        finally:
            outcome.seconds = time.monotonic() - began
            game.close()
        return outcome


@contextlib.contextmanager
def arena(folder: Path) -> Iterator[Arena]:
    """Two clusters with small heaps, stopped at the end."""
    before = os.environ.get("KAFKA_HEAP_OPTS")
    os.environ["KAFKA_HEAP_OPTS"] = _HEAP
    try:
        with contextlib.closing(Arena(folder)) as made:
            yield made
    finally:
        os.environ.pop("KAFKA_HEAP_OPTS")
        if before is not None:
            os.environ["KAFKA_HEAP_OPTS"] = before


@contextlib.contextmanager
def _side(name: str, folder: Path) -> Iterator[Side]:
    base = free_base(BROKERS)
    unique = f"chaos-{os.getpid()}-{name}"
    cluster = start_cluster(unique, port=base, brokers=BROKERS, data=folder / name, config=_BROKER_CONFIG)
    doors = [(10_000 + broker.port, 20_000 + broker.port) for broker in cluster.brokers]
    try:
        with contextlib.closing(Gates(doors)) as gates:
            yield Side(cluster, gates, ",".join(f"{HOST}:{door}" for door, _behind in doors))
    finally:
        newest = find_cluster(unique) or cluster
        for broker in newest.running:  # an orderly end would wait for a quorum that is ending too
            newest.broker_process(broker.node_id).kill()
        forget_cluster(unique)


class _Round:
    def __init__(self, arena: Arena, outcome: Outcome) -> None:
        self._source, self._target = arena.source, arena.target
        self._outcome = outcome
        self._name = f"r{outcome.seed}{'e' if outcome.exactly_once else 'a'}"
        self._topic, self._remote = f"load-{self._name}", f"{self._name}.load-{self._name}"
        self._folder = arena.folder / self._name
        self._folder.mkdir(parents=True)
        make_topic(self._source.cluster, self._topic, PARTITIONS, BROKERS)
        self._writer: Writer | None = None
        self._copier = Copier(self._write_file())

    def _write_file(self) -> Path:
        rng = random.Random(f"settings-{self._outcome.seed}")
        timeout_ms = rng.choice([5_000, 30_000])  # with the shorter one, a silent broker is given up
        file = self._folder / "mm2.properties"
        lines = [
            f"clusters={self._name}, target",
            f"{self._name}.bootstrap.servers={self._source.far_bootstrap}",
            f"target.bootstrap.servers={self._target.far_bootstrap}",
            f"{self._name}->target.enabled=true",
            f"{self._name}->target.topics={self._topic}",
            f"{self._name}.consumer.isolation.level=read_committed",
            f"{self._name}.consumer.request.timeout.ms={timeout_ms}",
            f"target.producer.request.timeout.ms={timeout_ms}",
            "replication.factor=3",
            "tasks.max=2",
            f"target.exactly.once.source.support={'enabled' if self._outcome.exactly_once else 'disabled'}",
        ]
        file.write_text("\n".join(lines) + "\n")
        return file

    def play(self, seconds: float) -> None:
        outcome = self._outcome
        self._writer = Writer(self._source.cluster.bootstrap, self._topic, PARTITIONS, PER_SECOND, outcome.seed)
        if not self._wait_for_first_record():
            outcome.problems.append(f"nothing was copied within {_FIRST_RECORD_TIMEOUT_S:.0f} s of a calm start")
            return
        self._bring_faults(seconds)
        for side in (self._source, self._target):
            side.wait_until_in_sync()
        self._writer.stop()
        outcome.problems += [f"the writer failed: {error}" for error in self._writer.errors[:3]]
        wanted = self._read(self._source, self._topic)
        if [len(wanted.get(p, [])) for p in range(PARTITIONS)] != self._writer.written:
            outcome.problems.append("the source does not have what it has acknowledged")
        if not self._wait_until_caught_up(wanted):
            outcome.problems.append(f"it did not catch up within {_CATCH_UP_TIMEOUT_S:.0f} s")
        self._copier.stop()
        self._compare(wanted, self._read(self._target, self._remote))
        outcome.notes += self._copier.ended_by_itself
        outcome.problems += self._copier.left_behind

    def _bring_faults(self, seconds: float) -> None:
        over, seed = threading.Event(), self._outcome.seed
        doors = [self._source, self._target]

        def wait(event: threading.Event, pause_s: float) -> object:
            return event.wait(pause_s)

        lanes = [
            Lane("source", plan(seed, "source", Side.kinds, (1, 6), 8), self._source.disturb, over, wait),
            Lane("target", plan(seed, "target", Side.kinds, (1, 6), 8), self._target.disturb, over, wait),
            Lane(
                "copier", plan(seed, "copier", Copier.kinds, (1, 9), 8), self._copier.disturb, over, self._copier.pause
            ),
            Lane(
                "network",
                plan(seed, "network", Side.network_kinds, (1, 6), 6),
                lambda fault, event: doors[fault.which % 2].disturb_network(fault, event),
                over,
                wait,
            ),
        ]
        over.wait(seconds)
        over.set()
        for lane in lanes:
            lane.join()
            self._outcome.faults.update(lane.done)

    def _wait_for_first_record(self) -> bool:
        deadline = time.monotonic() + _FIRST_RECORD_TIMEOUT_S
        while time.monotonic() < deadline:
            self._copier.keep()
            if self._has_records():
                return True
            time.sleep(0.5)
        return False

    def _has_records(self) -> bool:
        # A broker may take its time, and a topic that was just created is not known to every one yet.
        with contextlib.suppress(KafkaException), contextlib.closing(_consumer(self._target)) as consumer:
            if self._remote not in _admin(self._target).list_topics(timeout=10).topics:
                return False
            marks = consumer.get_watermark_offsets(TopicPartition(self._remote, 0), timeout=10)
            return bool(marks and marks[1])
        return False

    def _read(self, side: Side, topic: str) -> dict[int, list[Seen]]:
        return read(side.cluster, topic, PARTITIONS, **{"isolation.level": "read_committed"})

    def _wait_until_caught_up(self, wanted: dict[int, list[Seen]]) -> bool:
        """Wait until the last record of every partition has come."""
        last = {p: records[-1].value for p, records in wanted.items() if records}
        deadline = time.monotonic() + _CATCH_UP_TIMEOUT_S
        with contextlib.closing(_consumer(self._target)) as consumer:
            consumer.assign([TopicPartition(self._remote, p, OFFSET_BEGINNING) for p in last])
            while last and time.monotonic() < deadline:
                self._copier.keep()
                for message in consumer.consume(10_000, timeout=0.5):
                    if message.error() is None and message.value() == last.get(message.partition()):
                        del last[message.partition()]
        return not last

    def _compare(self, wanted: dict[int, list[Seen]], found: dict[int, list[Seen]]) -> None:
        outcome = self._outcome
        for p, records in wanted.items():
            places = {record: place for place, record in enumerate(records)}
            seen: set[int] = set()
            highest = -1
            for record in found.get(p, []):
                place = places.get(record)
                if place is None:
                    outcome.strangers += 1
                elif place in seen:
                    outcome.duplicates += 1
                else:
                    outcome.out_of_order += place < highest
                    highest = max(highest, place)
                    seen.add(place)
            outcome.records += len(records)
            outcome.lost += len(records) - len(seen)

    def close(self) -> None:
        """End what runs; forget the round's topics and files where it was good."""
        for side in (self._source, self._target):
            side.gates.heal()
        if self._writer is not None:
            self._writer.stop(10)
        self._copier.close()
        if self._outcome.is_good:
            shutil.rmtree(self._folder, ignore_errors=True)
            for side in (self._source, self._target):
                admin = _admin(side)
                topics = [topic for topic in admin.list_topics(timeout=60).topics if self._name in topic]
                for future in admin.delete_topics(topics).values() if topics else ():
                    future.result(120)


def _admin(side: Side) -> AdminClient:
    return AdminClient({"bootstrap.servers": side.cluster.bootstrap, "log_level": 0})


def _consumer(side: Side) -> Consumer:
    return Consumer(
        {"bootstrap.servers": side.cluster.bootstrap, "group.id": "chaos", "isolation.level": "read_committed"}
    )

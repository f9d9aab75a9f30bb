"""Our copy of Java's store of offset syncs beside the original: the same 64 slots after any sequence of syncs."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from heliograph.mirror.groups.offset_map import SLOTS, Pair, PartitionSyncStore
from heliograph.model import OffsetSync, TopicPartition
from heliograph.wire.records.mirror_records import encode_offset_sync
from tests.interop.gateway import MIRROR, Java

pytestmark = pytest.mark.broker

TP = TopicPartition("topic1", 2)
_MOST = 2**63 - 1
_SHOWN = re.compile(r"upstreamOffset=(-?\d+), downstreamOffset=(-?\d+)")
_CHECK_EVERY = 8
_SEEDS = 25  # for each kind of steps and each way to begin

# How far apart syncs are: one kind per sequence, since a single leap leaves the steps before it no room.
STEPS: dict[str, Callable[[random.Random], int]] = {
    "every record, or nearly": lambda chance: chance.randrange(4),
    "near offset.lag.max": lambda chance: chance.choice((100, 100, 100, 200, 1, 2, 37)),
    "up to 200": lambda chance: chance.randrange(1, 200),
    "small powers of two": lambda chance: 1 << chance.randrange(12),
    "beside powers of two": lambda chance: max(0, (1 << chance.randrange(20)) + chance.randrange(-1, 2)),
    "leaps of any length": lambda chance: 1 << chance.randrange(56),
    "to the end of all offsets": lambda chance: chance.randrange(1 << 60),
}


def sequence(chance: random.Random, step: Callable[[random.Random], int]) -> list[Pair]:
    """Syncs as a topic may hold them: mostly ahead, now and then the source rewinds, downstream has its own gaps."""
    pairs = [Pair(chance.randrange(30), chance.randrange(1000))]
    is_rewinding = chance.random() < 0.3
    for _ in range(chance.randrange(20, 90)):
        upstream, downstream = pairs[-1]
        if is_rewinding and upstream and chance.random() < 0.03:
            upstream = chance.randrange(upstream)
        else:
            upstream = min(_MOST, upstream + step(chance))
        pairs.append(Pair(upstream, downstream + chance.randrange(5)))
    return pairs


class JavaStore:
    """`OffsetSyncStore` without a topic behind it."""

    def __init__(self, java: Java, *, must_read_to_end: bool) -> None:
        self._java = java
        self._store = java.new(f"{MIRROR}.OffsetSyncStore")
        self._take = java.caller(self._store, "handleRecord")
        self._tp = java.tp(*TP)
        self._is_started = False
        java.set_field(self._store, "initializationMustReadToEnd", must_read_to_end)

    def take(self, pair: Pair) -> None:
        self._take(self._java.record("syncs", *encode_offset_sync(OffsetSync(TP, *pair))))

    def started(self) -> None:
        """The topic has been read to its end."""
        if not self._is_started:
            self._java.set_field(self._store, "readToEnd", True)
            self._is_started = True

    def slots(self) -> list[Pair]:
        by_partition = self._java.field(self._store, "offsetSyncs")
        shown = self._java.call("java.util.Arrays", "deepToString", by_partition.get(self._tp))
        return [Pair(int(upstream), int(downstream)) for upstream, downstream in _SHOWN.findall(shown)]

    def slot(self, number: int) -> Any:
        return self._java.call(self._store, "syncFor", self._tp, number)

    def translate(self, upstream: int) -> int | None:
        found = self._store.translateDownstream("group", self._tp, self._java.jvm.java.lang.Long.valueOf(upstream))
        return found.getAsLong() if found.isPresent() else None


@pytest.mark.parametrize("must_read_to_end", [False, True], ids=["keeps history", "reads to the end first"])
@pytest.mark.parametrize("kind", STEPS)
def test_the_slots_are_those_of_java_after_any_syncs(java: Java, kind: str, must_read_to_end: bool) -> None:
    for seed in range(_SEEDS):
        chance = random.Random(seed)
        pairs = sequence(chance, STEPS[kind])
        before_start = chance.randrange(len(pairs))
        original = JavaStore(java, must_read_to_end=must_read_to_end)
        original.take(pairs[0])
        ours = PartitionSyncStore(pairs[0])
        for number, pair in enumerate(pairs[1:], start=1):
            if number >= before_start:
                original.started()
            original.take(pair)
            ours.add(pair, keep_history=number >= before_start or not must_read_to_end)
            if number % _CHECK_EVERY == 0 or number + 1 == len(pairs):
                assert original.slots() == ours._slots, f"seed {seed}, after sync {number}"
        original.started()
        for asked in [min(_MOST, pair.upstream + near) for pair in pairs[-3:] + pairs[:1] for near in (-1, 0, 1)]:
            assert original.translate(asked) == ours.translate(asked), f"seed {seed}: {asked}"


def test_java_shows_all_its_slots(java: Java) -> None:
    """What the comparison above rests on: the slots' text is what `syncFor` gives one by one."""
    original = JavaStore(java, must_read_to_end=False)
    for upstream in (0, 7, 100, 101, 5000):
        original.take(Pair(upstream, 2 * upstream))
    slots = [original.slot(number) for number in range(SLOTS)]
    assert original.slots() == [Pair(slot.upstreamOffset(), slot.downstreamOffset()) for slot in slots]
    assert len(original.slots()) == SLOTS


def test_a_store_that_has_not_read_to_the_end_translates_nothing(java: Java) -> None:
    original = JavaStore(java, must_read_to_end=False)
    original.take(Pair(100, 200))
    assert original.translate(100) is None
    original.started()
    assert [original.translate(upstream) for upstream in (0, 100, 200)] == [-1, 200, 201]

"""Our copy of Java's store of offset syncs beside the original: the same 64 slots after any sequence of syncs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.mirror.sync_store import SLOTS, Pair, PartitionSyncStore
from heliograph.model import OffsetSync, TopicPartition
from heliograph.wire.mirror_records import encode_offset_sync
from tests.interop.gateway import MIRROR, Java

pytestmark = pytest.mark.broker

TP = TopicPartition("topic1", 2)
_MOST = 2**63 - 1
_SHOWN = re.compile(r"upstreamOffset=(-?\d+), downstreamOffset=(-?\d+)")
_CHECK_EVERY = 8

# How far apart syncs are: every record, `offset.lag.max`, small gaps, powers of two and beside them, great leaps.
STEPS = st.one_of(
    st.integers(0, 3),
    st.just(100),
    st.integers(1, 5000),
    st.integers(0, 61).map(lambda bits: 1 << bits),
    st.integers(1, 61).map(lambda bits: (1 << bits) - 1),
    st.integers(0, 2**55),
)


@st.composite
def sequences(draw: st.DrawFn) -> list[Pair]:
    """Syncs as a topic may hold them: mostly ahead, by steps of one kind or of any, sometimes the source rewinds."""
    upstream = draw(st.one_of(st.integers(0, 30), st.integers(0, 2**62)))
    steady = draw(st.one_of(st.none(), STEPS))
    pairs = [Pair(upstream, draw(st.integers(0, 1000)))]
    for _ in range(draw(st.integers(1, 90))):
        is_rewind = draw(st.integers(0, 60)) == 0
        step = -draw(st.integers(1, upstream)) if is_rewind and upstream else draw(STEPS) if steady is None else steady
        upstream = min(_MOST, upstream + step)
        pairs.append(Pair(upstream, pairs[-1].downstream + draw(st.integers(0, 5))))
    return pairs


class JavaStore:
    """`OffsetSyncStore` without a topic behind it."""

    def __init__(self, java: Java, *, must_read_to_end: bool) -> None:
        self._java = java
        self._store = java.new(f"{MIRROR}.OffsetSyncStore")
        self._take = java.caller(self._store, "handleRecord")
        self._tp = java.tp(*TP)
        java.set_field(self._store, "initializationMustReadToEnd", must_read_to_end)

    def take(self, pair: Pair) -> None:
        self._take(self._java.record("syncs", *encode_offset_sync(OffsetSync(TP, *pair))))

    def started(self) -> None:
        """The topic has been read to its end."""
        self._java.set_field(self._store, "readToEnd", True)

    def slots(self) -> list[Pair]:
        by_partition = self._java.field(self._store, "offsetSyncs")
        shown = self._java.call("java.util.Arrays", "deepToString", by_partition.get(self._tp))
        return [Pair(int(upstream), int(downstream)) for upstream, downstream in _SHOWN.findall(shown)]

    def slot(self, number: int) -> Any:
        return self._java.call(self._store, "syncFor", self._tp, number)

    def translate(self, upstream: int) -> int | None:
        found = self._store.translateDownstream("group", self._tp, self._java.jvm.java.lang.Long.valueOf(upstream))
        return found.getAsLong() if found.isPresent() else None


@settings(max_examples=300)
@given(sequences(), st.booleans(), st.data())
def test_the_slots_are_those_of_java_after_any_syncs(
    java: Java, pairs: list[Pair], must_read_to_end: bool, data: st.DataObject
) -> None:
    before_start = data.draw(st.integers(0, len(pairs)))
    original = JavaStore(java, must_read_to_end=must_read_to_end)
    ours: PartitionSyncStore | None = None
    for number, pair in enumerate(pairs):
        if number == before_start:
            original.started()
        original.take(pair)
        if ours is None:
            ours = PartitionSyncStore(pair)
        else:
            ours.add(pair, keep_history=number >= before_start or not must_read_to_end)
        if number % _CHECK_EVERY == 0 or number + 1 == len(pairs):
            assert original.slots() == ours._slots, f"after sync {number}"
    assert ours is not None
    original.started()
    for asked in [pair.upstream + near for pair in pairs[-3:] + pairs[:1] for near in (-1, 0, 1)]:
        assert original.translate(min(asked, _MOST)) == ours.translate(min(asked, _MOST)), asked


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

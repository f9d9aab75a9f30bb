"""Translation of offsets: exact in runs, Java's rule elsewhere, and never past an unread record."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.mirror.groups.offset_map import OffsetMap, Pair, PartitionSyncStore, RunMap
from heliograph.mirror.groups.offset_syncs import DueSync, PartitionSyncs, marks_of
from heliograph.model import OffsetRun, OffsetSync, TopicPartition

TP = TopicPartition("t", 0)
FIRST_LOG, SECOND_LOG = UUID(int=1), UUID(int=2)


# --- Java's store, by vectors taken from Kafka 4.3.1's classes --------------------------------------------------------


def store_of(upstreams: list[int], factor: int = 1, *, keep_history: bool = True) -> PartitionSyncStore:
    first, *others = [Pair(upstream, upstream * factor) for upstream in upstreams]
    store = PartitionSyncStore(first)
    for pair in others:
        store.add(pair, keep_history=keep_history)
    return store


def shown(store: PartitionSyncStore) -> str:
    return " ".join(f"{slot}:{pair.upstream}" for slot, pair in store.distinct.items())


def test_past_offset_translation_of_evenly_spaced_syncs() -> None:
    store = store_of(list(range(0, 1_000_001, 100)))
    assert shown(store) == (
        "0:1000000 8:999900 9:999800 10:999600 11:999200 12:998400 13:995200 14:992000 15:985600 16:972800 17:921600"
        " 18:819200 19:614400 20:409600 21:0"
    )
    asked = (0, 99, 500_000, 900_000, 999_000, 999_999, 1_000_000, 2_000_000)
    answers = [0, 1, 409_601, 819_201, 998_401, 999_901, 1_000_000, 1_000_001]
    assert [store.translate(upstream) for upstream in asked] == answers


def test_past_offset_translation_of_every_record() -> None:
    store = store_of(list(range(101)), factor=2)
    assert shown(store) == "0:100 1:99 2:98 3:96 4:88 5:80 6:64 7:0"
    assert [store.translate(u) for u in (50, 68, 84, 92, 96, 99, 101)] == [1, 129, 161, 177, 192, 198, 201]


def test_history_that_must_not_be_trusted_leaves_only_the_last_sync() -> None:
    store = store_of(list(range(0, 1001, 10)), keep_history=False)
    assert shown(store) == "0:1000"
    assert store.translate(999) == -1


def test_a_rewind_of_the_source_forgets_what_was_before() -> None:
    store = store_of(list(range(0, 1001, 10)))
    assert shown(store) == "0:1000 5:990 6:960 7:900 8:840 9:720 10:480 11:0"
    store.add(Pair(500, 9000))
    assert shown(store) == "0:500"
    assert [store.translate(u) for u in (499, 500, 2000)] == [-1, 9000, 9001]


def test_past_offset_translation_of_unevenly_spaced_syncs() -> None:
    store = store_of([5, 6, 7, 107, 207, 300, 301, 1000, 1001, 1002, 5000, 5100, 5105])
    assert shown(store) == "0:5105 4:5100 8:5000 14:5"


def test_past_offset_translation_without_initialization_read_to_end() -> None:
    store = store_of(list(range(0, 10_001, 10)))
    kept = sorted(pair.upstream for pair in store.distinct.values())
    assert kept == [0, 3840, 7680, 8640, 9120, 9600, 9840, 9900, 9960, 9990, 10_000]


def test_past_offset_translation() -> None:
    store = store_of(list(range(0, 1001, 10)), keep_history=False)
    for upstream in range(1010, 10_001, 10):
        store.add(Pair(upstream, upstream))
    kept = sorted(pair.upstream for pair in store.distinct.values())
    assert kept == [1000, 4840, 6760, 8680, 9160, 9640, 9880, 9940, 9970, 9990, 10_000]


def assert_few_expire_at_once(first: int, steps: Iterable[int], most: int) -> None:
    """Feed a store; the newest and the first sync must stay, and each new one may drive out only so many others."""
    store, upstream, known = PartitionSyncStore(Pair(first, first)), first, 1
    for step in steps:
        upstream += step
        assert upstream < 2**63, "the test leaves the range of offsets"
        store.add(Pair(upstream, upstream))
        distinct = store.distinct
        assert (distinct[0].upstream, store._slots[-1].upstream) == (upstream, first)
        assert known + 1 - len(distinct) <= most, f"after {upstream}"
        known = len(distinct)


@pytest.mark.parametrize("first", [0, 1, 2, 13, 29])
def test_consistently_spaced_syncs(first: int) -> None:
    """Each new sync drives out one other at most, however far apart they are."""
    for bits in range(1, 57, 3):
        assert_few_expire_at_once(first, [(1 << bits) - 1] * 100, most=1)


def test_randomly_spaced_syncs() -> None:
    """Steps that differ by n bits drive out n + 2 at once at worst."""
    chance = random.Random(0)
    for bits in range(1, 54, 3):
        assert_few_expire_at_once(0, (chance.randrange(1 << bits) for _ in range(1 << 9)), most=bits + 2)


def test_dropped_syncs_spacing() -> None:
    """Every other sync was lost on its way: two are driven out at once at worst."""
    chance = random.Random(0)
    assert_few_expire_at_once(0, (100 * chance.choice((1, 2)) for _ in range(10_000)), most=2)


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=60))
def test_any_syncs_keep_the_invariants(upstreams: list[int]) -> None:
    store = store_of(sorted(upstreams))
    slots = list(store.distinct.items())
    assert slots[0][1].upstream == max(upstreams)
    for (_low, newer), (_high, older) in pairwise(slots):
        assert newer.upstream >= older.upstream + 1 or newer.upstream == older.upstream
    for upstream in upstreams:
        translated = store.translate(upstream)
        assert translated == -1 or translated <= upstream


def test_offset_translation() -> None:
    known = OffsetMap()
    known.take(OffsetSync(TP, 100, 200))
    assert known.translate(TP, 150) == 201
    known.take(OffsetSync(TP, 150, 251))
    assert known.translate(TP, 150) == 251
    assert known.translate(TP, 5) == -1
    known.take(OffsetSync(TP, 150, 10))
    assert known.translate(TP, 150) == 10
    known.take(OffsetSync(TP, 20, 10))
    assert known.translate(TP, 20) == 10


def test_no_translation_if_no_offset_sync() -> None:
    assert OffsetMap().translate(TP, 0) is None


def test_no_translation_if_store_not_started() -> None:
    """Nothing is read yet: nothing is translated; then the vectors of Java's test."""
    known = OffsetMap()
    assert [known.translate(TP, upstream) for upstream in (0, 100, 200)] == [None, None, None]
    known.take(OffsetSync(TP, 100, 200))
    assert [known.translate(TP, upstream) for upstream in (0, 100, 200)] == [-1, 200, 201]


# --- our runs ---------------------------------------------------------------------------------------------------------


@st.composite
def copies(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Records copied in order, with gaps on both sides: (upstream, downstream)."""
    upstream = downstream = draw(st.integers(0, 5))
    pairs = []
    for _ in range(draw(st.integers(1, 60))):
        pairs.append((upstream, downstream))
        upstream += 1 + draw(st.sampled_from([0, 0, 0, 1, 7]))
        downstream += 1 + draw(st.sampled_from([0, 0, 0, 1, 3]))
    return pairs


class JavaReader:
    """Java's reader of our syncs: it sees a sync's two offsets, and no runs."""

    def __init__(self) -> None:
        self.store: PartitionSyncStore | None = None

    def take(self, sync: OffsetSync) -> None:
        pair = Pair(sync.upstream, sync.downstream)
        if self.store is None:
            self.store = PartitionSyncStore(pair)
        else:
            self.store.add(pair)


def reported(pairs: list[tuple[int, int]], chance: random.Random, *, lag_max: int = 10, loss: float = 0.0) -> OffsetMap:
    """What a reader knows after a task has copied the records, telling its syncs now and then, some of them slowly."""
    known = OffsetMap()
    tell_now_and_then(known, pairs, chance, lag_max, loss)
    return known


def tell_now_and_then(
    known: OffsetMap | JavaReader, pairs: list[tuple[int, int]], chance: random.Random, lag_max: int, loss: float
) -> None:
    syncs = PartitionSyncs(lag_max)
    under_way: DueSync | None = None
    for upstream, downstream in pairs:
        syncs.note(OffsetRun(upstream, downstream, 1))
        if under_way is not None and chance.random() < 0.4:
            syncs.give_back() if chance.random() < loss else arrive(syncs, known, under_way)
            under_way = None
        elif under_way is None and syncs.is_due and chance.random() < 0.5:
            under_way = syncs.take()
    if under_way is not None:
        arrive(syncs, known, under_way)
    report(syncs, known)


def arrive(syncs: PartitionSyncs, known: OffsetMap | JavaReader, sync: DueSync) -> None:
    for upstream, downstream in sync.marks:
        known.take(OffsetSync(TP, upstream, downstream, ()))
    flat = sync.runs
    runs = tuple(OffsetRun(*flat[at : at + 3]) for at in range(0, len(flat), 3))
    known.take(OffsetSync(TP, sync.upstream, sync.downstream, runs))
    syncs.confirm()


def report(syncs: PartitionSyncs, known: OffsetMap | JavaReader) -> None:
    while (sync := syncs.take()) is not None:
        arrive(syncs, known, sync)


@given(copies(), st.randoms(use_true_random=False))
def test_translation_points_at_the_next_unread_record(pairs: list[tuple[int, int]], chance: random.Random) -> None:
    known = reported(pairs, chance, loss=0.3)
    for position in range(pairs[0][0], pairs[-1][0] + 3):
        translated = known.translate(TP, position)
        assert translated is not None
        unread = [downstream for upstream, downstream in pairs if upstream >= position]
        read = [downstream for upstream, downstream in pairs if upstream < position]
        assert all(downstream >= translated for downstream in unread), "it passes an unread record"
        assert all(downstream < translated for downstream in read), "it goes back to a record that was read"


@given(copies(), st.randoms(use_true_random=False))
def test_the_way_back_points_at_the_next_unread_record(pairs: list[tuple[int, int]], chance: random.Random) -> None:
    known = reported(pairs, chance, loss=0.3)
    for position in range(pairs[0][1], pairs[-1][1] + 3):
        back = known.upstream_of(TP, position)
        assert back is not None
        assert all(upstream >= back for upstream, downstream in pairs if downstream >= position), "it passes a record"
        assert all(upstream < back for upstream, downstream in pairs if downstream < position), "it goes too far back"


@given(copies(), st.randoms(use_true_random=False), st.data())
def test_the_way_back_never_passes_a_record_that_was_copied_again(
    pairs: list[tuple[int, int]], chance: random.Random, data: st.DataObject
) -> None:
    known = reported(pairs, chance)
    again = data.draw(st.integers(0, len(pairs) - 1))
    end = pairs[-1][1] + 1
    copied = [(upstream, end + n) for n, (upstream, _) in enumerate(pairs[again:])]
    syncs = PartitionSyncs(10)
    for upstream, downstream in copied:
        syncs.note(OffsetRun(upstream, downstream, 1))
    report(syncs, known)
    for position in range(copied[-1][1] + 2):
        back = known.upstream_of(TP, position)
        assert back is not None
        read = {upstream for upstream, downstream in [*pairs, *copied] if downstream < position}
        assert all(upstream >= back for upstream, _ in pairs if upstream not in read)


@given(copies(), st.randoms(use_true_random=False))
def test_the_way_back_by_javas_syncs_never_passes_a_record(pairs: list[tuple[int, int]], chance: random.Random) -> None:
    known = OffsetMap()
    known.take_all(OffsetSync(TP, *pair) for pair in pairs if chance.random() < 0.3 or pair is pairs[0])
    for position in range(pairs[-1][1] + 3):
        back = known.upstream_of(TP, position)
        assert back is not None
        assert (back == -1) is (position < pairs[0][1])
        assert all(upstream >= back for upstream, downstream in pairs if downstream >= position)


def test_there_is_no_way_back_without_offset_syncs() -> None:
    assert OffsetMap().upstream_of(TP, 0) is None


@given(copies(), st.randoms(use_true_random=False))
def test_a_reader_as_java_never_passes_an_unread_record(pairs: list[tuple[int, int]], chance: random.Random) -> None:
    reader = JavaReader()
    tell_now_and_then(reader, pairs, chance, lag_max=10, loss=0.0)
    assert reader.store is not None
    for position in range(pairs[0][0], pairs[-1][0] + 3):
        translated = reader.store.translate(position)
        assert all(downstream >= translated for upstream, downstream in pairs if upstream >= position)


@given(copies(), st.randoms(use_true_random=False), st.data())
def test_copying_again_after_a_crash_moves_translation_to_the_new_copies(
    pairs: list[tuple[int, int]], chance: random.Random, data: st.DataObject
) -> None:
    known = reported(pairs, chance)
    again = data.draw(st.integers(0, len(pairs) - 1))
    end = pairs[-1][1] + 1
    copied = [(upstream, end + n) for n, (upstream, _) in enumerate(pairs[again:])]
    syncs = PartitionSyncs(10)
    for upstream, downstream in copied:
        syncs.note(OffsetRun(upstream, downstream, 1))
    report(syncs, known)
    for upstream, downstream in [*pairs[:again], *copied]:
        assert known.translate(TP, upstream) == downstream


@given(st.integers(1, 300), st.data())
def test_a_source_log_that_was_cut_is_translated_to_the_new_records(copied: int, data: st.DataObject) -> None:
    """The copy goes back at the source and on at the target; what follows may end before what was copied first."""
    cut = data.draw(st.integers(0, copied - 1))
    new_end = data.draw(st.integers(cut + 1, copied + 100))
    known, syncs = OffsetMap(), PartitionSyncs(10)
    syncs.note(OffsetRun(0, 0, copied))
    report(syncs, known)
    syncs.note(OffsetRun(cut, copied, new_end - cut))
    report(syncs, known)
    for upstream in range(cut):
        assert known.translate(TP, upstream) == upstream
    for upstream in range(cut, new_end + 1):
        assert known.translate(TP, upstream) == copied + upstream - cut


def test_after_a_new_beginning_of_the_target_nothing_is_translated_by_the_old_log() -> None:
    known, syncs = OffsetMap(), PartitionSyncs(10)
    for n in range(1000):
        syncs.note(OffsetRun(n, n, 1))
        report(syncs, known)
    assert known.take_replaced_logs() == set()
    for n in range(500):
        syncs.note(OffsetRun(1000 + n, n, 1))
        report(syncs, known)
    assert known.take_replaced_logs() == {TP}
    assert known.take_replaced_logs() == set()
    assert [known.translate(TP, position) for position in (0, 500, 999, 1000, 1400)] == [-1, -1, -1, 0, 400]


@pytest.mark.parametrize(
    "copied_again",
    [
        pytest.param(OffsetSync(TP, 700, 200, (OffsetRun(500, 0, 201),)), id="back on both sides"),
        pytest.param(OffsetSync(TP, 4999, 4499, (OffsetRun(500, 0, 4500),)), id="past the end of the old log at once"),
        pytest.param(
            OffsetSync(TP, 4999, 3998, (OffsetRun(0, 0, 1000), OffsetRun(1001, 0, 3999))),
            id="with the last run resumed",
        ),
        pytest.param(OffsetSync(TP, 700, 200), id="by Java"),
    ],
)
@pytest.mark.parametrize("runs", [(OffsetRun(0, 0, 1000),), None], ids=["ours", "java"])
def test_a_target_topic_that_is_copied_again_is_another_log(
    runs: tuple[OffsetRun, ...] | None, copied_again: OffsetSync
) -> None:
    """It was deleted; meanwhile the source has lost its first records, so both offsets go back."""
    known = OffsetMap()
    known.take_all(OffsetSync(TP, n, n, runs and (OffsetRun(0, 0, n + 1),)) for n in range(0, 1000, 111))
    known.take(OffsetSync(TP, 999, 999, runs))
    assert known.contradicts(TP, 999, 999) is False
    known.take(copied_again)
    assert known.take_replaced_logs() == {TP}
    first = copied_again.runs[-1].upstream if copied_again.runs else copied_again.upstream
    assert known.translate(TP, first - 1) == -1
    assert known.contradicts(TP, first, 999)
    assert known.contradicts(TP, 300, 300)
    assert not known.contradicts(TP, copied_again.upstream + 1, 999), (
        "a record that is not copied yet contradicts nothing"
    )


@given(copies(), st.randoms(use_true_random=False), st.data())
def test_translations_of_the_same_log_are_never_contradicted(
    pairs: list[tuple[int, int]], chance: random.Random, data: st.DataObject
) -> None:
    known = reported(pairs, chance)
    positions = range(pairs[0][0], pairs[-1][0] + 3)
    before = {position: known.translate(TP, position) for position in positions}
    again = data.draw(st.integers(0, len(pairs) - 1))
    end = pairs[-1][1] + 1
    copied = [(upstream, end + n) for n, (upstream, _) in enumerate(pairs[again:])]
    tell_now_and_then(known, copied, chance, lag_max=10, loss=0.3)
    assert known.take_replaced_logs() == set()
    assert not any(known.contradicts(TP, position, place or 0) for position, place in before.items())


def test_a_target_log_that_was_replaced_drops_its_old_offsets() -> None:
    known = RunMap()
    known.add(OffsetRun(0, 0, 100))
    known.add(OffsetRun(100, 0, 10))
    assert known.translate(50) is None
    assert known.translate(105) == (5, True)


def test_a_sync_with_another_topic_id_is_of_another_log_whatever_its_offsets() -> None:
    known = OffsetMap()
    known.take(OffsetSync(TP, 99, 99, (OffsetRun(0, 0, 100),), FIRST_LOG))
    assert (known.translate(TP, 50), known.log_of(TP)) == (50, FIRST_LOG)
    assert known.take_replaced_logs() == set()
    known.take(OffsetSync(TP, 150, 100, (OffsetRun(150, 100, 1),), SECOND_LOG))
    assert (known.translate(TP, 50), known.translate(TP, 151), known.log_of(TP)) == (-1, 101, SECOND_LOG)
    assert known.take_replaced_logs() == {TP}
    known.take(OffsetSync(TP, 151, 101))
    assert known.log_of(TP) == SECOND_LOG, "a sync of Java MM2 has no id"
    assert known.log_of(TopicPartition("t", 1)) is None


def test_the_runs_of_a_log_that_was_deleted_are_never_sent_with_the_id_of_the_next() -> None:
    syncs = PartitionSyncs(100)
    syncs.begin_log(FIRST_LOG)
    syncs.note(OffsetRun(0, 0, 500))
    sync = syncs.take()
    syncs.begin_log(SECOND_LOG)
    syncs.confirm()
    assert sync is not None
    assert (syncs.take(), syncs.log_id) == (None, SECOND_LOG)
    syncs.note(OffsetRun(500, 0, 10))
    assert syncs.is_due, "the first of a log is sent at once"
    sync = syncs.take()
    assert sync is not None
    assert (sync.upstream, sync.downstream, list(sync.runs)) == (509, 9, [500, 0, 10])
    syncs.begin_log(None)
    assert syncs.log_id == SECOND_LOG, "a broker that gives no id says nothing new"


def test_forgotten_runs_are_translated_to_the_run_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.mirror.groups.offset_map._MOST_RUNS", 8)
    known = RunMap()
    for n in range(20):
        known.add(OffsetRun(10 * n, 5 * n, 5))
    assert len(known) <= 8
    for position in range(200):
        translated = known.translate(position)
        assert translated is not None
        unread = [5 * n + into for n in range(20) for into in range(5) if 10 * n + into >= position]
        assert all(downstream >= translated[0] for downstream in unread)
    for position in range(100):
        back = known.upstream_of(position)
        assert back is not None
        unread = [10 * n + into for n in range(20) for into in range(5) if 5 * n + into >= position]
        assert all(upstream >= back[0] for upstream in unread)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=200), st.integers(0, 40))
def test_the_runs_of_all_partitions_together_are_bounded(copied: list[tuple[int, int]], most: int) -> None:
    """Whatever is forgotten for that, no translation passes an unread record, and the newest run stays exact."""
    known = OffsetMap()
    pairs: dict[TopicPartition, list[tuple[int, int]]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heliograph.mirror.groups.offset_map._MOST_RUNS_IN_ALL", most)
        for partition, count in copied:
            tp = TopicPartition("t", partition)
            records = pairs.setdefault(tp, [])
            first, place = (records[-1][0] + 3, records[-1][1] + 2) if records else (0, 0)
            records += [(first + n, place + n) for n in range(count)]
            known.take(OffsetSync(tp, *records[-1], (OffsetRun(first, place, count),)))
            sizes = [len(runs) for runs in known._runs.values()]
            assert known._run_count == sum(sizes)
            assert sum(sizes) <= most or max(sizes) < 4, "too few in each to spare any"
    for tp, records in pairs.items():
        assert known.translate(tp, records[-1][0]) == records[-1][1]
        for position in range(records[-1][0] + 3):
            translated, back = known.translate(tp, position), known.upstream_of(tp, position)
            assert all(downstream >= (translated or 0) for upstream, downstream in records if upstream >= position)
            assert all(upstream >= (back or 0) for upstream, downstream in records if downstream >= position)


def test_where_there_is_no_room_the_partitions_with_the_most_runs_are_thinned_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("heliograph.mirror.groups.offset_map._MOST_RUNS_IN_ALL", 1000)
    known = OffsetMap()
    large, small = TopicPartition("large", 0), TopicPartition("small", 0)

    def copy(tp: TopicPartition, first: int, count: int) -> None:
        for n in range(first, first + count):
            known.take(OffsetSync(tp, 2 * n, n, (OffsetRun(2 * n, n, 1),)))

    copy(small, 0, 100)
    copy(large, 0, 900)
    assert known._run_count == 1000
    copy(small, 100, 1)
    assert (len(known._runs[large]), len(known._runs[small])) == (675, 101)
    copy(small, 101, 224)
    assert known._run_count == 1000, "nothing more is forgotten until it is full again"


@pytest.mark.parametrize(
    "sync",
    [
        pytest.param(OffsetSync(TP, 5, 3, (OffsetRun(5, 3, 1),)), id="another log"),
        pytest.param(OffsetSync(TP, 40, 200), id="Java copies again"),
    ],
)
def test_runs_that_are_forgotten_with_their_log_are_counted_no_more(sync: OffsetSync) -> None:
    known = OffsetMap()
    known.take(OffsetSync(TP, 99, 98, (OffsetRun(0, 0, 30), OffsetRun(31, 30, 69))))
    known.take(sync)
    assert known._run_count == sum(len(runs) for runs in known._runs.values()) < 2


def test_a_run_goes_on_after_a_restart() -> None:
    syncs = PartitionSyncs(100)
    syncs.resume(OffsetRun(0, 0, 500))
    syncs.note(OffsetRun(500, 500, 10))
    sync = syncs.take()
    assert sync is not None
    assert (sync.upstream, sync.downstream, list(sync.runs)) == (509, 509, [0, 0, 510])


def test_java_that_continues_after_our_runs_is_followed() -> None:
    known = OffsetMap()
    known.take(OffsetSync(TP, 99, 99, (OffsetRun(0, 0, 100),)))
    known.take(OffsetSync(TP, 150, 150))
    assert [known.translate(TP, position) for position in (50, 100, 140, 150, 160)] == [50, 100, 100, 150, 151]
    known.take(OffsetSync(TP, 40, 200))  # Java has begun again
    assert [known.translate(TP, position) for position in (39, 40, 50)] == [-1, 200, 201]


# --- when a sync is due -----------------------------------------------------------------------------------------------


def test_offset_sync() -> None:
    """Java's vectors (PartitionState, offset.lag.max=50); T: due, taken and confirmed."""
    syncs = PartitionSyncs(50)
    vectors = [
        *[(0, 100, True), (2, 102, True), (3, 152, False), (4, 153, True), (5, 154, False), (6, 203, False)],
        *[(7, 204, True), (2, 206, True), (3, 207, False), (4, 3, True), (5, 4, False)],
    ]
    for upstream, downstream, is_due in vectors:
        run = OffsetRun(upstream, downstream, 1)
        assert syncs._makes_due(run) is is_due, run
        syncs.note(run)
        if is_due:
            sync = syncs.take()
            assert sync is not None
            syncs.confirm()
    for upstream, downstream in ((7, 6), (7, 6), (8, 7), (10, 57)):  # not taken yet: it stays due
        syncs.note(OffsetRun(upstream, downstream, 1))
        assert syncs.is_due
    assert syncs.take() is not None
    syncs.confirm()
    assert not syncs._makes_due(OffsetRun(11, 58, 1))


def test_zero_offset_sync() -> None:
    syncs = PartitionSyncs(0)
    for n in range(5):
        syncs.note(OffsetRun(n, n, 1))
        assert syncs.is_due
        sync = syncs.take()
        assert sync is not None
        syncs.confirm()


def test_a_sync_that_is_not_due_waits_for_the_commit() -> None:
    syncs = PartitionSyncs(100)
    for n in range(2):
        syncs.note(OffsetRun(n, n, 1))
        assert syncs.is_due is (n == 0)
        sync = syncs.take()
        assert sync is not None
        assert (sync.upstream, list(sync.runs)) == (n, [0, 0, n + 1])
        syncs.confirm()
    assert syncs.take() is None


def test_very_many_runs_are_sent_in_several_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.mirror.groups.offset_syncs.MOST_RUNS_PER_SYNC", 3)
    syncs, known = PartitionSyncs(10), OffsetMap()
    syncs.note_all(array("q", [number for n in range(10) for number in (10 * n, 2 * n, 1)]))
    report(syncs, known)
    assert [known.translate(TP, 10 * n) for n in range(10)] == [2 * n for n in range(10)]


@given(copies(), st.integers(-1, 30))
def test_marks_are_true_pairs_in_order_between_the_last_sync_and_this(pairs: list[tuple[int, int]], after: int) -> None:
    flat = array("q", [number for upstream, downstream in pairs for number in (upstream, downstream, 1)])
    marks = marks_of(flat, after=after)
    assert set(marks) <= set(pairs)
    assert list(marks) == sorted(marks)
    assert all(after < upstream < pairs[-1][0] for upstream, _ in marks)


def test_what_is_copied_in_one_go_is_marked_from_its_beginning() -> None:
    marks = marks_of(array("q", [100, 5, 100_000]), after=-1)
    assert [upstream for upstream, _ in marks] == [100, 34563, 83715, 96003, 99075, 99843, 100035, 100083, 100095]
    assert all(downstream == upstream - 95 for upstream, downstream in marks)
    assert marks_of(array("q", [100, 5, 100_000]), after=100_098) == ()

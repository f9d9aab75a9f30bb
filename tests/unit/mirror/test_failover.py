"""Moves of groups between clusters: never past an unread record, never back, never while someone reads."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.mirror.groups.group_moves import (
    GroupPosition,
    LogBounds,
    Outcome,
    plan_group,
    position_on_source,
    position_on_target,
)
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.model import Checkpoint, CommittedOffset, OffsetRun, OffsetSync, TopicPartition
from tests.unit.mirror.test_offset_map import TP, copies, reported

REMOTE = TopicPartition("a.t", 0)

Pairs = list[tuple[int, int]]


def java_syncs(pairs: Pairs, chance: random.Random) -> OffsetMap:
    """What a reader knows where Java MM2 copied: some records' offsets."""
    known = OffsetMap()
    known.take_all(OffsetSync(TP, *pair) for pair in pairs if pair is pairs[0] or chance.random() < 0.2)
    return known


def last_run(pairs: Pairs) -> OffsetMap:
    """What a reader knows if only the flow's source offsets can be read."""
    count = 1
    while count < len(pairs) and pairs[-count - 1] == (pairs[-count][0] - 1, pairs[-count][1] - 1):
        count += 1
    known = OffsetMap()
    known.take(OffsetSync(TP, *pairs[-1], runs=(OffsetRun(*pairs[-count], count),)))
    return known


def knowledge(kind: str, pairs: Pairs, chance: random.Random) -> OffsetMap:
    if kind == "ours":
        return reported(pairs, chance)
    if kind == "java":
        return java_syncs(pairs, chance)
    return last_run(pairs) if kind == "source offsets" else OffsetMap()


KINDS = st.sampled_from(["ours", "java", "source offsets", "nothing"])


@given(copies(), st.randoms(use_true_random=False), st.data(), KINDS, st.booleans())
def test_a_move_to_the_target_never_passes_an_unread_record(
    pairs: Pairs, chance: random.Random, data: st.DataObject, kind: str, source_is_there: bool
) -> None:
    position = data.draw(st.integers(0, pairs[-1][0] + 3))
    earlier = data.draw(st.integers(0, position + 2))  # beyond it: the group went back since
    translated = java_syncs(pairs, chance).translate(TP, earlier)
    checkpoint = Checkpoint("g", REMOTE, earlier, translated) if translated is not None and translated >= 0 else None
    known = knowledge(kind, pairs, chance)
    committed = CommittedOffset(position) if source_is_there else None
    place = position_on_target(known, TP, committed, checkpoint)
    if place is None:
        return
    read_to = position if source_is_there else earlier
    assert all(downstream >= place.offset for upstream, downstream in pairs if upstream >= read_to)
    comes_again = sum(upstream < read_to and downstream >= place.offset for upstream, downstream in pairs)
    assert place.again is None or comes_again <= place.again
    if kind == "ours" and position <= pairs[-1][0] and source_is_there and position >= pairs[0][0]:
        assert comes_again == 0
        # In a gap on both sides a record that no sync covers would be possible.
        assert place.again == 0 or position not in dict(pairs)


@given(copies(), st.randoms(use_true_random=False), st.data(), KINDS)
def test_a_failback_never_passes_an_unread_record(
    pairs: Pairs, chance: random.Random, data: st.DataObject, kind: str
) -> None:
    position = data.draw(st.integers(0, pairs[-1][1] + 3))
    place = position_on_source(knowledge(kind, pairs, chance), TP, CommittedOffset(position, "note"))
    if place is None:
        return
    assert place.metadata == "note"
    assert all(upstream >= place.offset for upstream, downstream in pairs if downstream >= position)
    comes_again = sum(downstream < position and upstream >= place.offset for upstream, downstream in pairs)
    assert place.again is None or comes_again <= place.again
    if kind == "ours" and pairs[0][1] <= position <= pairs[-1][1]:
        assert comes_again == 0


def test_nothing_known_gives_no_place() -> None:
    assert position_on_target(OffsetMap(), TP, CommittedOffset(5), None) is None
    assert position_on_target(OffsetMap(), TP, None, None) is None
    assert position_on_source(OffsetMap(), TP, CommittedOffset(5)) is None


def test_a_checkpoint_alone_gives_a_place_but_not_how_many_records_come_again() -> None:
    place = position_on_target(OffsetMap(), TP, None, Checkpoint("g", REMOTE, 20, 15, "note"))
    assert place == GroupPosition(15, None, "note")


def test_a_checkpoint_in_the_last_run_of_the_flow_is_known_to_be_exact() -> None:
    known = OffsetMap()
    known.take(OffsetSync(TP, 99, 89, (OffsetRun(10, 0, 90),)))
    assert position_on_target(known, TP, None, Checkpoint("g", REMOTE, 20, 8)) == GroupPosition(10, 0)


def test_a_checkpoint_from_before_the_group_went_back_does_not_count() -> None:
    known = OffsetMap()
    known.take(OffsetSync(TP, 10, 10))
    place = position_on_target(known, TP, CommittedOffset(12), Checkpoint("g", REMOTE, 50, 45))
    assert place == GroupPosition(11, 1)


@pytest.mark.parametrize("committed", [CommittedOffset(2000), None])
def test_a_checkpoint_into_a_log_that_is_gone_does_not_count(committed: CommittedOffset | None) -> None:
    """The copy was made again, only its records from 1390 on are known, from the flow's source offsets."""
    known = OffsetMap()
    known.take(OffsetSync(TP, 1399, 899, (OffsetRun(1390, 890, 10),)))
    place = position_on_target(known, TP, committed, Checkpoint("g", REMOTE, 900, 910))
    assert place is not None
    assert place.offset == (900 if committed else 0)


@given(copies(), copies(), st.randoms(use_true_random=False), st.data(), KINDS, st.booleans())
def test_a_move_never_passes_an_unread_record_of_a_topic_that_was_copied_again(
    before: Pairs, pairs: Pairs, chance: random.Random, data: st.DataObject, kind: str, source_is_there: bool
) -> None:
    """The checkpoint is of the copy that was there before; the offset syncs of this one are enough."""
    position = data.draw(st.integers(0, before[-1][0] + 3))
    translated = reported(before, chance).translate(TP, position)
    assert translated is not None
    checkpoint = Checkpoint("g", REMOTE, position, translated) if translated >= 0 else None
    known = reported(pairs, chance) if kind == "ours" else java_syncs(pairs, chance)
    place = position_on_target(known, TP, CommittedOffset(position) if source_is_there else None, checkpoint)
    unread = [downstream for upstream, downstream in pairs if upstream >= position]
    is_known = kind == "ours" or known.contradicts(TP, position, translated)
    assert place is None or not is_known or all(downstream >= place.offset for downstream in unread)


# --- the plan ---------------------------------------------------------------------------------------------------------


def decided(place: int, before: int | None, log: LogBounds | None) -> tuple[Outcome, int | None, str]:
    committed = {} if before is None else {REMOTE: CommittedOffset(before)}
    logs = {} if log is None else {REMOTE: log}
    (move,) = plan_group("g", "Empty", {REMOTE: GroupPosition(place, 0)}, committed, logs).moves
    return move.outcome, move.offset, move.why


@pytest.mark.parametrize(
    ("place", "before", "log", "outcome", "offset", "why"),
    [
        (50, None, (0, 100), Outcome.SET, 50, "has no offset"),
        (50, 20, (0, 100), Outcome.SET, 50, "is behind"),
        (50, 50, (0, 100), Outcome.STAYS, 50, "there already"),
        (50, 60, (0, 100), Outcome.STAYS, 60, "not set back"),
        (50, 500, (0, 100), Outcome.SET, 50, "past the end of the log"),
        (50, None, (70, 100), Outcome.SET, 70, "has no offset"),
        (50, 50, (70, 100), Outcome.SET, 70, "is behind"),
        (50, None, (0, 40), Outcome.IMPOSSIBLE, 50, "re-created"),
        (50, 20, None, Outcome.IMPOSSIBLE, 50, "does not exist"),
    ],
)
def test_an_offset_is_set_only_forward_and_only_inside_the_log(
    place: int, before: int | None, log: tuple[int, int] | None, outcome: Outcome, offset: int, why: str
) -> None:
    found = decided(place, before, None if log is None else LogBounds(*log))
    assert found[:2] == (outcome, offset)
    assert why in found[2]


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance", ""])
def test_a_group_with_members_is_refused(state: str) -> None:
    plan = plan_group("g", state, {REMOTE: GroupPosition(5, 0)}, {}, {REMOTE: LogBounds(0, 9)})
    assert plan.offsets == {}
    assert not plan.is_whole
    assert plan.refused is not None
    assert "active members" in plan.refused


def test_a_group_of_which_nothing_is_known_is_refused() -> None:
    plan = plan_group("g", "Dead", {}, {}, {})
    assert plan.refused == "it has read nothing that this flow copies"
    assert plan_group("g", "Dead", {}, {}, {}, "it has no name").refused == "it has no name"


@pytest.mark.parametrize(("gone", "place"), [("gone", GroupPosition(5, 0)), ("there", None)])
def test_a_partition_that_cannot_be_set_makes_a_plan_not_whole(gone: str, place: GroupPosition | None) -> None:
    places = {REMOTE: GroupPosition(5, 0, "note"), TopicPartition(gone, 0): place}
    logs = {REMOTE: LogBounds(0, 9), TopicPartition("there", 0): LogBounds(0, 9)}
    plan = plan_group("g", "Empty", places, {}, logs)
    assert plan.offsets == {REMOTE: CommittedOffset(5, "note")}
    assert not plan.is_whole


def test_records_that_come_again_are_not_more_than_there_are() -> None:
    logs = {REMOTE: LogBounds(0, 12)}
    assert plan_group("g", "Empty", {REMOTE: GroupPosition(10, 400)}, {}, logs).again == 2
    assert plan_group("g", "Empty", {REMOTE: GroupPosition(10, None)}, {}, logs).again is None


@given(
    st.integers(0, 30),
    st.none() | st.integers(0, 40),
    st.tuples(st.integers(0, 10), st.integers(10, 30)),
    st.sampled_from(["Dead", "Empty", "Stable"]),
)
def test_a_plan_never_goes_back_and_has_nothing_left_to_do(
    place: int, before: int | None, bounds: tuple[int, int], state: str
) -> None:
    log = LogBounds(*bounds)
    committed = {} if before is None else {REMOTE: CommittedOffset(before)}
    plan = plan_group("g", state, {REMOTE: GroupPosition(place, 0)}, committed, {REMOTE: log})
    for offset in plan.offsets.values():
        assert state != "Stable"
        assert log.start <= offset.offset <= log.end
        assert before is None or before > log.end or offset.offset > before
    after = plan_group("g", state, {REMOTE: GroupPosition(place, 0)}, {**committed, **plan.offsets}, {REMOTE: log})
    assert after.offsets == {}

"""What is known of groups on both clusters: plans for moves, and the report with its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest

from heliograph.config.resolve.settings import Settings
from heliograph.mirror.groups.group_moves import LogBounds, Outcome
from heliograph.mirror.groups.group_view import (
    ClusterGroups,
    GroupView,
    left_behind,
    plan_failback,
    plan_failover,
    report_groups,
)
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.mirror.topics.topic_rules import TopicRules
from heliograph.model import Checkpoint, CommittedOffset, Flow, OffsetRun, OffsetSync, SourceOffset, TopicPartition

GROUP, FLOW = "g", Flow("a", "b")
T, A_T = TopicPartition("t", 0), TopicPartition("a.t", 0)
IDENTITY = {"replication.policy.class": "IdentityReplicationPolicy"}
RENAME = {"replication.policy.class": "RenameReplicationPolicy", "heliograph.rename.topics": "t=t-copy"}


def cluster(state: str, committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> ClusterGroups:
    offsets = {tp: CommittedOffset(offset) for tp, offset in committed.items()}
    return ClusterGroups({GROUP: state}, {GROUP: offsets}, {tp: LogBounds(0, end) for tp, end in ends.items()})


def retained(
    state: str, committed: Mapping[TopicPartition, int], bounds: Mapping[TopicPartition, tuple[int, int]]
) -> ClusterGroups:
    """A cluster whose logs no longer start at 0."""
    groups = cluster(state, committed, {})
    return replace(groups, logs={tp: LogBounds(*ends) for tp, ends in bounds.items()})


def copied(tp: TopicPartition, *runs: OffsetRun) -> OffsetMap:
    known = OffsetMap()
    last = runs[-1]
    known.take(OffsetSync(tp, last.upstream + last.count - 1, last.downstream + last.count - 1, runs))
    return known


def view_of(
    source: ClusterGroups | None,
    target: ClusterGroups,
    known: OffsetMap,
    *,
    flow: Flow = FLOW,
    checkpoints: tuple[Checkpoint, ...] = (),
    **values: str,
) -> GroupView:
    aliases = {"source.cluster.alias": flow.source, "target.cluster.alias": flow.target}
    by_partition = {checkpoint.tp: checkpoint for checkpoint in checkpoints}
    rules = TopicRules.of(Settings(aliases | values))
    source_offsets = {T: SourceOffset(T, 99)}
    return GroupView(flow, rules, (GROUP,), known, {GROUP: by_partition}, source_offsets, source, target)


NOWHERE = cluster("Dead", {}, {A_T: 100, T: 100, TopicPartition("t-copy", 0): 100})
SHIFTED = copied(T, OffsetRun(10, 0, 90))


@pytest.mark.parametrize(("values", "remote"), [({}, "a.t"), (IDENTITY, "t"), (RENAME, "t-copy")])
def test_a_group_moves_to_the_copies_and_back_whatever_their_names(values: dict[str, str], remote: str) -> None:
    remote_tp = TopicPartition(remote, 0)
    there = view_of(cluster("Empty", {T: 30}, {T: 100}), NOWHERE, SHIFTED, **values)
    (plan,) = plan_failover(there)
    assert plan.offsets == {remote_tp: CommittedOffset(20)}
    assert plan.again == 0
    back = view_of(cluster("Empty", {T: 30}, {T: 100}), cluster("Empty", {remote_tp: 50}, {}), SHIFTED, **values)
    (plan,) = plan_failback(back, None)
    assert plan.offsets == {T: CommittedOffset(60)}


def test_checkpoints_are_used_if_the_source_is_gone() -> None:
    view = view_of(None, NOWHERE, OffsetMap(), checkpoints=(Checkpoint(GROUP, A_T, 30, 20, "note"),))
    (plan,) = plan_failover(view)
    assert plan.offsets == {A_T: CommittedOffset(20, "note")}
    assert plan.again is None
    assert view.not_replicated(T) is None
    assert plan_failback(view, None) == []


def test_a_partition_whose_position_is_not_known_is_not_set() -> None:
    (plan,) = plan_failover(view_of(cluster("Empty", {T: 30}, {T: 100}), NOWHERE, OffsetMap()))
    (move,) = plan.moves
    assert (move.outcome, move.offset) == (Outcome.IMPOSSIBLE, None)
    assert not plan.is_whole


def test_the_flows_own_syncs_win_over_the_reverse_flow_if_names_stay() -> None:
    """The source has 20 records it had not sent, then 50 that the other flow brought; the group has read those 50."""
    source = cluster("Empty", {}, {T: 170})
    view = view_of(source, cluster("Empty", {T: 150}, {T: 150}), copied(T, OffsetRun(0, 0, 100)), **IDENTITY)
    reverse = view_of(
        cluster("Empty", {T: 150}, {T: 150}),
        source,
        copied(T, OffsetRun(100, 120, 50)),
        flow=Flow("b", "a"),
        **IDENTITY,
    )
    (plan,) = plan_failback(view, reverse)
    assert plan.offsets == {T: CommittedOffset(100)}
    assert plan.again == 50


def test_what_no_flow_copies_is_left_behind() -> None:
    other, own = TopicPartition("other", 0), TopicPartition("own", 0)
    view = view_of(cluster("Empty", {T: 1, other: 1}, {}), cluster("Empty", {A_T: 1, own: 1}, {}), SHIFTED, topics="t")
    assert left_behind(view, GROUP, is_failback=False) == [other]
    assert left_behind(view, GROUP, is_failback=True) == [own]


# --- the report -------------------------------------------------------------------------------------------------------

SOURCE = cluster("Stable", {T: 30}, {T: 100})


def checked(downstream: int) -> tuple[Checkpoint, ...]:
    return (Checkpoint(GROUP, A_T, 30, downstream),)


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (view_of(SOURCE, NOWHERE, SHIFTED, topics="x"), "the topic is not replicated: no pattern in topics matches it"),
        (view_of(SOURCE, cluster("Dead", {}, {}), SHIFTED), "the target has no a.t-0 yet"),
        (view_of(SOURCE, NOWHERE, OffsetMap()), "its position on the target is not known yet"),
        (
            view_of(cluster("Stable", {T: 120}, {T: 130}), NOWHERE, SHIFTED),
            "replication is 20 offsets behind",
        ),
        (view_of(SOURCE, cluster("Stable", {A_T: 5}, {A_T: 90}), SHIFTED), "active on the target (Stable)"),
        (view_of(SOURCE, cluster("Empty", {A_T: 50}, {A_T: 90}), SHIFTED), "30 offsets ahead"),
        (view_of(SOURCE, NOWHERE, SHIFTED), "no checkpoint yet"),
        (view_of(SOURCE, NOWHERE, SHIFTED, checkpoints=checked(15)), "not up to date yet"),
        (view_of(SOURCE, NOWHERE, SHIFTED, checkpoints=checked(20)), "is set next"),
        (view_of(SOURCE, cluster("Empty", {A_T: 95}, {A_T: 90}), SHIFTED, checkpoints=checked(20)), "is set next"),
        (view_of(SOURCE, cluster("Empty", {}, {A_T: 15}), SHIFTED), "is 20, but the log ends before it, at 15"),
        (view_of(SOURCE, cluster("Empty", {A_T: 20}, {A_T: 15}), SHIFTED), "is 20, but the log ends before it, at 15"),
        (view_of(SOURCE, retained("Empty", {A_T: 25}, {A_T: (25, 90)}), SHIFTED), None),
        (view_of(SOURCE, retained("Empty", {A_T: 30}, {A_T: (25, 90)}), SHIFTED), "5 offsets ahead"),
        (view_of(SOURCE, cluster("Empty", {A_T: 20}, {A_T: 90}), SHIFTED), None),
        (view_of(SOURCE, cluster("Stable", {A_T: 20}, {A_T: 90}), SHIFTED), None),
    ],
)
def test_the_report_says_why_a_group_is_not_in_sync(view: GroupView, why: str | None) -> None:
    (row,) = report_groups(view, follows_groups=True)
    assert row.is_in_sync is (why is None)
    assert why is None or (row.why_not is not None and why in row.why_not)


def test_the_report_names_the_command_where_groups_do_not_follow() -> None:
    (row,) = report_groups(view_of(SOURCE, NOWHERE, SHIFTED, checkpoints=checked(20)), follows_groups=False)
    assert row.why_not == "sync.group.offsets.enabled is false; `heliograph failover` sets the offset"


def test_the_report_counts_lags_on_both_sides() -> None:
    (row,) = report_groups(view_of(SOURCE, cluster("Empty", {A_T: 20}, {A_T: 90}), SHIFTED), follows_groups=True)
    assert (row.source_offset, row.source_lag, row.translated_offset) == (30, 70, 20)
    assert (row.target_offset, row.target_lag) == (20, 70)


def test_what_is_not_replicated_counts_from_the_source_offsets_of_the_flow() -> None:
    view = view_of(cluster("Empty", {T: 30}, {T: 120}), NOWHERE, SHIFTED)
    assert view.not_replicated(T) == 20
    assert replace(view, source_offsets={}, known=OffsetMap()).not_replicated(T) == 120


def test_how_much_is_not_replicated_is_not_known_if_source_offsets_have_another_name() -> None:
    view = view_of(cluster("Empty", {T: 30}, {T: 120}), NOWHERE, SHIFTED)
    assert replace(view, source_offsets={}).not_replicated(T) is None


# --- active-active ----------------------------------------------------------------------------------------------------

B_T = TopicPartition("b.t", 0)
BOTH = cluster("Empty", {T: 30, B_T: 50}, {T: 100, B_T: 80})
AT_B = cluster("Dead", {}, {A_T: 90, T: 95})


def active_active(source: ClusterGroups | None, target: ClusterGroups = AT_B, **changes: object) -> GroupView:
    """On A the group reads `t` and `b.t`; B->A copied `t` of B from offset 15 on."""
    flow = Flow("b", "a")
    rules = TopicRules.of(Settings({"source.cluster.alias": flow.source, "target.cluster.alias": flow.target}))
    view = view_of(source, target, SHIFTED)
    reverse = {"reverse_rules": rules, "reverse_known": copied(T, OffsetRun(15, 0, 80)), **changes}
    return replace(view, **reverse)  # type: ignore[arg-type]


def test_offsets_in_copies_of_the_targets_topic_are_translated_back_to_it() -> None:
    view = active_active(BOTH)
    (plan,) = plan_failover(view)
    assert plan.offsets == {A_T: CommittedOffset(20), T: CommittedOffset(65)}
    assert (plan.again, plan.is_whole) == (0, True)
    assert left_behind(view, GROUP, is_failback=False) == []
    assert view.not_replicated(B_T) == 0


def test_a_checkpoint_covers_them_if_the_source_is_gone() -> None:
    view = active_active(None)
    by_partition = {each.tp: each for each in (Checkpoint(GROUP, A_T, 30, 20), Checkpoint(GROUP, T, 50, 65))}
    (plan,) = plan_failover(replace(view, checkpoints={GROUP: by_partition}))
    assert plan.offsets == {A_T: CommittedOffset(20), T: CommittedOffset(65)}
    assert plan.again == 0


@pytest.mark.parametrize("changes", [{"reverse_rules": None, "reverse_known": None}, {"reverse_known": OffsetMap()}])
def test_without_syncs_of_the_reverse_flow_what_is_read_again_is_counted(changes: dict[str, object]) -> None:
    (plan,) = plan_failover(active_active(BOTH, **changes))
    move = next(move for move in plan.moves if move.tp == T)
    assert (move.outcome, move.again, move.skipped) == (Outcome.IMPOSSIBLE, 50, 45)
    assert "reads at most 50 again, from the latest it skips 45 or more" in move.why
    assert (plan.again, plan.is_whole) == (50, False)


def test_a_topic_that_only_looks_like_a_copy_is_left_behind() -> None:
    target = cluster("Dead", {}, {A_T: 90})
    view = active_active(BOTH, target, reverse_rules=None, reverse_known=None)
    assert left_behind(view, GROUP, is_failback=False) == [B_T]
    assert [move.tp for plan in plan_failover(view) for move in plan.moves] == [A_T]


def test_with_unchanged_names_nothing_is_taken_for_a_copy_of_the_target() -> None:
    view = view_of(BOTH, NOWHERE, SHIFTED, **IDENTITY)
    rules = TopicRules.of(Settings({"source.cluster.alias": "b", "target.cluster.alias": "a", **IDENTITY}))
    view = replace(view, reverse_rules=rules, reverse_known=copied(T, OffsetRun(0, 0, 80)))
    assert view.original(T) is None


def test_records_that_are_not_copied_yet_are_read_again_later() -> None:
    source = cluster("Empty", {T: 108}, {T: 110})
    (plan,) = plan_failover(view_of(source, cluster("Dead", {}, {A_T: 90}), SHIFTED))
    assert plan.again == 8


def test_a_report_says_how_far_the_target_is_behind() -> None:
    checkpoint = Checkpoint(GROUP, A_T, 27, 17)
    view = view_of(SOURCE, cluster("Empty", {A_T: 12}, {A_T: 90}), SHIFTED, checkpoints=(checkpoint,))
    view = replace(view, checkpoint_times={(GROUP, A_T): 40_000})
    (row,) = report_groups(view, follows_groups=True, now_ms=55_500)
    assert (row.behind, row.checkpoint_behind, row.checkpoint_age_s, row.again) == (8, 3, 15.5, 0)
    assert (row.is_catching_up, row.is_in_sync) == (True, False)


def test_what_is_not_known_is_not_reported_as_zero() -> None:
    (row,) = report_groups(view_of(SOURCE, NOWHERE, OffsetMap()), follows_groups=True, now_ms=1)
    assert (row.behind, row.checkpoint_behind, row.checkpoint_age_s, row.again) == (None, None, None, None)
    assert not row.is_catching_up


def test_a_checkpoint_of_a_topic_that_was_deleted_moves_no_group() -> None:
    """The group is gone on the source, and source and remote topic were created again: the offset means nothing."""
    before, now = UUID(int=1), UUID(int=2)
    gone, there = cluster("Dead", {}, {T: 100}), NOWHERE
    checkpoint = Checkpoint(GROUP, A_T, 50, 40, log_id=before)
    view = view_of(gone, there, OffsetMap(), checkpoints=(checkpoint,))
    (plan,) = plan_failover(replace(view, remote_ids={"a.t": now}))
    (move,) = plan.moves
    assert (move.outcome, move.offset) == (Outcome.IMPOSSIBLE, None)
    assert move.why == "its checkpoint is of an earlier topic of this name, which was deleted"
    for ids in ({}, {"a.t": before}):
        (plan,) = plan_failover(replace(view, remote_ids=ids))
        assert plan.offsets == {A_T: CommittedOffset(40)}, "the same topic, or not known"

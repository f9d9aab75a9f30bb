"""A flow's groups on both clusters at one time, the plans to move them, and the report of how far they are.

`operations` reads the clusters into a `GroupView`; everything here is pure. `plan_failover` and `plan_failback` plan
moves, `report_groups` says of each group and partition whether the group could move now.

The source may be unavailable: then `source` is None, and checkpoints and the flow's source offsets, which are on the
target, are used as far as they reach. The same holds for a single group that the source does not let us describe. A
group that the cluster it would move to hides is not moved: it may have members there, or be ahead.

Share groups have start offsets instead of committed ones, and no checkpoints. Streams groups are not moved: their state
is in topics that only they know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.mirror.groups.checkpoints import (
    is_of_another_log,
    name_clash,
    original_partition,
    remote_partition,
    source_partition,
)
from heliograph.mirror.groups.group_moves import (
    DEAD,
    GroupPlan,
    GroupPosition,
    LogBounds,
    Outcome,
    UnknownPosition,
    decide_offset,
    is_movable,
    plan_group,
    position_on_source,
    position_on_target,
)
from heliograph.mirror.groups.offset_map import InverseMap
from heliograph.model import GroupType, counted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from heliograph.mirror.groups.offset_map import OffsetMap, Translator
    from heliograph.mirror.topics.topic_rules import TopicRules
    from heliograph.model import Checkpoint, CommittedOffset, Flow, SourceOffset, TopicPartition


UNKNOWN = "Unknown"  # Kafka's name for the state of a group that no broker describes
STREAMS_NOT_FOLLOWED = "it is a streams group, and only consumer and share groups are followed"


@dataclass(frozen=True)
class ClusterGroups:
    """The groups of one cluster, and the logs their offsets are in.

    `hidden` are groups that we may not describe, and why; `types` has those that exist; `unsupported` are share groups
    that the cluster cannot have, and why.
    """

    states: Mapping[str, str]
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    logs: Mapping[TopicPartition, LogBounds] = field(default_factory=dict)
    hidden: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, GroupType] = field(default_factory=dict)
    unsupported: Mapping[str, str] = field(default_factory=dict)

    def offsets(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return what a group has committed here."""
        return self.committed.get(group, {})

    def state(self, group: str) -> str:
        """Return a group's state here; dead if it does not exist."""
        return self.states.get(group, DEAD)

    def why_unavailable(self, group: str) -> str | None:
        """Return why a group can be neither described nor moved here, or None."""
        return self.hidden.get(group) or self.unsupported.get(group)


@dataclass(frozen=True)
class GroupView:
    """A flow's groups: their offsets on the source, their checkpoints, and their offsets on the target.

    `known` is built from the offset syncs or, if they cannot be read, from the last run in the flow's source offsets.
    In active-active, a group also reads copies of the target's own topics on the source: `reverse_known`, from the
    offset syncs of the reverse flow, translates its offsets in them to these topics (None: no such flow, or not read).
    `remote_ids` are the ids of the topics on the target: a checkpoint of a topic that was deleted is not used.
    """

    flow: Flow
    rules: TopicRules
    groups: tuple[str, ...]
    known: OffsetMap
    checkpoints: Mapping[str, Mapping[TopicPartition, Checkpoint]]
    source_offsets: Mapping[TopicPartition, SourceOffset]
    source: ClusterGroups | None
    target: ClusterGroups
    reverse_rules: TopicRules | None = None
    reverse_known: OffsetMap | None = None
    checkpoint_times: Mapping[tuple[str, TopicPartition], int] = field(default_factory=dict)
    remote_ids: Mapping[str, UUID] = field(default_factory=dict)

    def original(self, tp: TopicPartition) -> TopicPartition | None:
        """Return the target's own partition that a source partition is a copy of, or None.

        Without the reverse flow the topic must exist: another topic may happen to have such a name.
        """
        original = original_partition(self.rules, tp, self.reverse_rules)
        is_sure = self.reverse_rules is not None or original in self.target.logs
        return original if is_sure else None

    def remote(self, tp: TopicPartition) -> TopicPartition:
        """Return the partition on the target that has the records of a source partition."""
        return self.original(tp) or remote_partition(self.rules, tp)

    def translator(self, tp: TopicPartition) -> Translator:
        """Return the map that translates offsets of a source partition to the target."""
        if self.original(tp) is None or self.reverse_known is None:
            return self.known
        return InverseMap(self.reverse_known, self.original)

    def reads(self, tp: TopicPartition) -> bool:
        """Return whether the target has, or gets, the records of a source partition."""
        return self.rules.replicates(tp.topic) or self.original(tp) is not None

    def type_of(self, group: str) -> GroupType:
        """Return the type of a group on the source; one with checkpoints that is not seen there is a consumer group."""
        at_source = None if self.source is None else self.source.types.get(group)
        if at_source is not None:
            return at_source
        return GroupType.CONSUMER if group in self.checkpoints else self.target.types.get(group, GroupType.CONSUMER)

    def partitions(self, group: str) -> list[TopicPartition]:
        """Return the source partitions whose records the group reads and the flow copies, or has copied."""
        tps = {source_partition(self.rules, tp) for tp in self.checkpoints.get(group, {})}
        if self.source is not None:
            tps |= {tp for tp in self.source.offsets(group) if self.reads(tp)}
        return sorted(tps)

    def has_checkpoint_of_another_log(self, group: str, remote_tp: TopicPartition) -> bool:
        """Return whether the group's checkpoint is of an earlier topic of that name."""
        checkpoint = self.checkpoints.get(group, {}).get(remote_tp)
        return checkpoint is not None and is_of_another_log(checkpoint, self.remote_ids.get(remote_tp.topic))

    def checkpoint(self, group: str, remote_tp: TopicPartition) -> Checkpoint | None:
        """Return the group's checkpoint of a partition of the target; None without one of its present log."""
        is_void = self.has_checkpoint_of_another_log(group, remote_tp)
        return None if is_void else self.checkpoints.get(group, {}).get(remote_tp)

    def position(self, group: str, tp: TopicPartition) -> GroupPosition | None:
        """Return where the group resumes in the copy of a source partition; None if that is not known."""
        committed = None if self.source is None else self.source.offsets(group).get(tp)
        checkpoint = self.checkpoint(group, self.remote(tp))
        position = position_on_target(self.translator(tp), tp, committed, checkpoint)
        return None if position is None else position._replace(to_come=self.not_replicated(tp))

    def not_replicated(self, tp: TopicPartition) -> int | None:
        """Return how many offsets of a source partition the flow has not copied yet; None if that is not known."""
        if self.original(tp) is not None:
            return 0  # the target has the originals
        log = None if self.source is None else self.source.logs.get(tp)
        source_offsets = self.source_offsets.get(tp)
        # Copied, but by a connector whose source offsets we do not find: they are stored under its name.
        is_elsewhere = source_offsets is None and self.known.translate(tp, 0) is not None
        if log is None or is_elsewhere:
            return None
        copied = log.start if source_offsets is None else max(log.start, source_offsets.offset + 1)
        return max(0, log.end - copied)

    @property
    def hidden(self) -> dict[str, str]:
        """The groups that one of the clusters does not let us describe, and why."""
        on_source = {} if self.source is None else self.source.hidden
        return {**on_source, **self.target.hidden}


# --- plans ------------------------------------------------------------------------------------------------------------


def plan_failover(view: GroupView) -> list[GroupPlan]:
    """Plan the move of every group of the view to the target."""
    target = view.target
    plans = []
    for group in view.groups:
        type_ = view.type_of(group)
        refused = _why_refused(type_, target, view.flow.target, group)
        if refused is not None:
            plans.append(_refused_plan(group, target, type_, refused))
            continue
        positions = _positions_on_target(view, group)
        why_nothing = _why_nothing(view.source, view.flow.source, group, type_)
        plans.append(
            plan_group(group, target.state(group), positions, target.offsets(group), target.logs, why_nothing, type_)
        )
    return plans


def plan_failback(view: GroupView, reverse: GroupView | None) -> list[GroupPlan]:
    """Plan the move of every group of the view back to the source; `reverse` is the reverse flow, if there is one.

    Records that came from the source are translated back by the flow's own offset syncs. Records that were first
    written on the target reach the source by the reverse flow, whose offset syncs translate them.
    """
    source = view.source
    if source is None:
        return []
    logs = source.logs if reverse is None else {**reverse.target.logs, **source.logs}
    hidden = view.hidden if reverse is None else {**reverse.hidden, **view.hidden}
    plans = []
    for group in view.groups:
        type_ = view.target.types.get(group, GroupType.CONSUMER)
        refused = hidden.get(group) or _why_refused(type_, source, view.flow.source, group)
        if refused is not None:
            plans.append(_refused_plan(group, source, type_, refused))
            continue
        positions = {} if reverse is None else _positions_on_target(reverse, group)
        # With the Identity policy both may have a position in one partition. Only the flow's own syncs know what the
        # source had not sent yet: the reverse flow's records come after it, and its position would skip it.
        own = _positions_on_source(view, group)
        is_known = {tp: isinstance(position, GroupPosition) for tp, position in own.items()}
        positions |= {tp: position for tp, position in own.items() if is_known[tp] or tp not in positions}
        why_nothing = _why_nothing(view.target, view.flow.target, group, type_)
        plans.append(plan_group(group, source.state(group), positions, source.offsets(group), logs, why_nothing, type_))
    return plans


def _why_refused(type_: GroupType, cluster: ClusterGroups, alias: str, group: str) -> str | None:
    """Return why a group cannot move to a cluster at all, or None."""
    if type_ is GroupType.STREAMS:
        return STREAMS_NOT_FOLLOWED
    return cluster.why_unavailable(group) or name_clash(type_, cluster.types.get(group), alias)


def _refused_plan(group: str, cluster: ClusterGroups, type_: GroupType, why: str) -> GroupPlan:
    state = UNKNOWN if cluster.why_unavailable(group) else cluster.states.get(group, UNKNOWN)
    return GroupPlan(group, state, (), why, type_)


_Positions = dict["TopicPartition", GroupPosition | UnknownPosition | None]


def _positions_on_target(view: GroupView, group: str) -> _Positions:
    return {
        view.remote(tp): view.position(group, tp) or _unknown_on_target(view, group, tp)
        for tp in view.partitions(group)
    }


def _unknown_on_target(view: GroupView, group: str, tp: TopicPartition) -> UnknownPosition | None:
    unknown = _unknown(None if view.source is None else view.source.offsets(group).get(tp))
    if unknown is None and view.has_checkpoint_of_another_log(group, view.remote(tp)):
        return UnknownPosition(None, "its checkpoint is of an earlier topic of this name, which was deleted")
    return unknown


def _positions_on_source(view: GroupView, group: str) -> _Positions:
    positions: _Positions = {}
    for remote_tp, committed in view.target.offsets(group).items():
        if _is_copy(view, remote_tp):
            tp = source_partition(view.rules, remote_tp)
            positions[tp] = position_on_source(view.known, tp, committed) or _unknown(committed)
    return positions


def _unknown(committed: CommittedOffset | None) -> UnknownPosition | None:
    """Return what is known of a group without a position: it has read no more records than offsets."""
    return None if committed is None else UnknownPosition(committed.offset)


def _why_nothing(left: ClusterGroups | None, alias: str, group: str, type_: GroupType) -> str:
    """Return the reason for a group that has no position in any partition."""
    is_share = type_ is GroupType.SHARE
    unknown = "share groups have no checkpoints" if is_share else "it has no checkpoint"
    if left is None:
        return f"{unknown}, and '{alias}' is unavailable"
    if why := left.why_unavailable(group):
        return f"{unknown}, and {why}"
    if left.offsets(group):
        return "it has read nothing that this flow copies"
    return f"it has {'acknowledged' if is_share else 'committed'} nothing on '{alias}'"


def left_behind(view: GroupView, group: str, *, is_failback: bool) -> list[TopicPartition]:
    """Return the partitions a group has read whose records the flow does not copy to the cluster it moves to."""
    if is_failback:
        return sorted(tp for tp in view.target.offsets(group) if not _is_copy(view, tp))
    offsets = {} if view.source is None else view.source.offsets(group)
    return sorted(tp for tp in offsets if not view.reads(tp))


def is_unknown(view: GroupView, group: str) -> bool:
    """Return whether neither cluster knows anything of a group: its name may be a typo."""
    if group in view.hidden:
        return False
    offsets = [each.offsets(group) for each in (view.source, view.target) if each is not None]
    return not any(offsets) and group not in view.checkpoints


def _is_copy(view: GroupView, tp: TopicPartition) -> bool:
    return view.rules.policy.topic_source(tp.topic) == view.flow.source


# --- the report -------------------------------------------------------------------------------------------------------


class GroupRow(NamedTuple):
    """One group in one partition. Offsets that are not known, or do not exist, are None.

    `behind` is how many records on the source lie between the group's offset on the target and its offset on the
    source, `checkpoint_behind` how many between its checkpoint and that offset, `checkpoint_age_s` the age of that
    checkpoint, and `again` how many records the group reads again at most if it fails over now. None: not known.
    """

    group: str
    tp: TopicPartition
    remote_tp: TopicPartition
    source_offset: int | None
    source_lag: int | None
    translated_offset: int | None
    checkpoint_offset: int | None
    target_offset: int | None
    target_lag: int | None
    target_state: str
    why_not: str | None
    type: GroupType = GroupType.CONSUMER
    behind: int | None = None
    checkpoint_behind: int | None = None
    checkpoint_age_s: float | None = None
    again: int | None = None
    is_catching_up: bool = False

    @property
    def is_in_sync(self) -> bool:
        """True if a consumer that starts on the target now resumes where the group is."""
        return self.why_not is None


def report_groups(view: GroupView, *, follows_groups: bool, now_ms: int | None = None) -> list[GroupRow]:
    """Return a row for each group and partition; `follows_groups` is `sync.group.offsets.enabled`.

    `now_ms` is the time from which the age of checkpoints is counted; without it no age is known.

    A group that the target hides has no row, since it is not known whether it is in sync. Nor has a group that cannot
    move (`unfollowed`). Of several reasons a row has the one to fix first: a topic that is not copied has no
    checkpoint, a partition without a checkpoint has no offset on the target.
    """
    rows = []
    no_rows = view.target.hidden.keys() | unfollowed(view).keys()
    for group in (group for group in view.groups if group not in no_rows):
        tps = set(view.partitions(group))
        tps |= set(view.source.offsets(group)) if view.source is not None else set()
        rows += [_row(view, group, tp, follows_groups=follows_groups) for tp in sorted(tps)]
    return [row._replace(checkpoint_age_s=_age_s(view, row, now_ms)) for row in rows]


def _age_s(view: GroupView, row: GroupRow, now_ms: int | None) -> float | None:
    written_ms = view.checkpoint_times.get((row.group, row.remote_tp), -1)
    return None if now_ms is None or written_ms < 0 else max(0, now_ms - written_ms) / 1000


def unfollowed(view: GroupView) -> dict[str, str]:
    """Return the groups of a type that does not move to the target, and why."""
    streams = {group: STREAMS_NOT_FOLLOWED for group in view.groups if view.type_of(group) is GroupType.STREAMS}
    on_source = {} if view.source is None else view.source.unsupported
    return {**on_source, **view.target.unsupported, **streams}


def _row(view: GroupView, group: str, tp: TopicPartition, *, follows_groups: bool) -> GroupRow:
    remote_tp = view.remote(tp)
    committed = None if view.source is None else view.source.offsets(group).get(tp)
    source_log = None if view.source is None else view.source.logs.get(tp)
    position = view.position(group, tp)
    checkpoint = view.checkpoint(group, remote_tp)
    there = view.target.offsets(group).get(remote_tp)
    target_log = view.target.logs.get(remote_tp)
    row = GroupRow(
        group=group,
        tp=tp,
        remote_tp=remote_tp,
        source_offset=None if committed is None else committed.offset,
        source_lag=_lag(source_log, None if committed is None else committed.offset),
        translated_offset=None if position is None else position.offset,
        checkpoint_offset=None if checkpoint is None else checkpoint.downstream,
        target_offset=None if there is None else there.offset,
        target_lag=_lag(target_log, None if there is None else there.offset),
        target_state=view.target.state(group),
        why_not=None,
        type=view.type_of(group),
    )
    row = row._replace(
        behind=_behind(row.source_offset, None if there is None else view.translator(tp).upstream_of(tp, there.offset)),
        checkpoint_behind=_behind(row.source_offset, None if checkpoint is None else checkpoint.upstream),
        again=_again(position, target_log),
    )
    clash = name_clash(row.type, view.target.types.get(group), view.flow.target)
    why_not = clash or _why_not_copied(view, row)
    if why_not is None and position is not None and target_log is not None:
        why_not = _why_not_moved(row, position.offset, target_log, follows_groups=follows_groups)
    is_waiting = follows_groups and row.behind is not None and is_movable(row.target_state)
    is_catching_up = why_not is not None and clash is None and is_waiting and why_not in _waits(view, row)
    return row._replace(why_not=why_not, is_catching_up=is_catching_up)


def _waits(view: GroupView, row: GroupRow) -> set[str | None]:
    """Return the reasons that only say that the next interval moves the group on."""
    return {_waits_for(row, follows_groups=True), _replication_behind(view, row)} - {None}


def _behind(source_offset: int | None, upstream: int | None) -> int | None:
    if source_offset is None or upstream is None or upstream < 0:
        return None
    return max(0, source_offset - upstream)


def _again(position: GroupPosition | None, log: LogBounds | None) -> int | None:
    """Return how many records the group reads again at most if `failover` sets its position now."""
    if position is None or log is None or position.offset > log.end:
        return None
    return position.reads_again(log)


def _lag(log: LogBounds | None, offset: int | None) -> int | None:
    return None if log is None or offset is None else max(0, log.end - offset)


def _why_not_copied(view: GroupView, row: GroupRow) -> str | None:
    """Return why the records are not on the target, or the group's position there is not known."""
    excluded = None if view.original(row.tp) else view.rules.why_not(row.tp.topic)
    if excluded is not None:
        return f"the topic is not replicated: {excluded}"
    if row.remote_tp not in view.target.logs:
        return f"the target has no {row.remote_tp} yet"
    if row.translated_offset is None:
        return "its position on the target is not known yet (no offset sync reaches back to it)"
    return _replication_behind(view, row)


def _replication_behind(view: GroupView, row: GroupRow) -> str | None:
    copied = view.source_offsets.get(row.tp)
    if row.source_offset is None or copied is None or row.source_offset <= copied.offset + 1:
        return None
    if row.again == 0:
        return None  # the offset syncs reach to the group: source offsets are committed later than records are copied
    return f"replication is {counted(row.source_offset - copied.offset - 1, 'offset')} behind the group"


def _why_not_moved(row: GroupRow, wanted: int, log: LogBounds, *, follows_groups: bool) -> str | None:
    """Return why the group's offset on the target is not its position, by the rule that group sync follows."""
    outcome, offset, why = decide_offset(wanted, row.target_offset, log)
    resumes_at = max(wanted, log.start)
    if outcome is not Outcome.IMPOSSIBLE and row.target_offset in (wanted, resumes_at):
        return None
    if not is_movable(row.target_state):
        return f"the group is active on the target ({row.target_state}), so its offset is not set"
    if outcome is Outcome.STAYS:
        return f"the group on the target is {counted(offset - resumes_at, 'offset')} ahead: it has worked there"
    if outcome is Outcome.IMPOSSIBLE:
        return f"its position on the target is {wanted}, but {why}"
    return _waits_for(row, follows_groups=follows_groups)


def _waits_for(row: GroupRow, *, follows_groups: bool) -> str:
    """Return what has to happen next for a group whose offset on the target is missing, behind or not valid."""
    has_checkpoints = row.type is GroupType.CONSUMER
    if has_checkpoints and row.checkpoint_offset is None:
        return "no checkpoint yet"
    if not follows_groups:
        return "sync.group.offsets.enabled is false; `heliograph failover` sets the offset"
    if has_checkpoints and row.checkpoint_offset != row.translated_offset:
        return "its checkpoint is not up to date yet (emit.checkpoints.interval.seconds)"
    return "the group's offset on the target is set next (sync.group.offsets.interval.seconds)"

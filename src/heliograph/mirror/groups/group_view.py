"""What is known of a flow's groups on both sides at one time: plain values, read by `worker`, judged here.

The source may be gone: then `source` is None, and checkpoints and the flow's progress, which are on the target, tell
what they can. The same holds of a single group that the source does not let us look at. One that the cluster it would
move to hides is not moved: nothing would tell whether it has members there, or is ahead.

Share groups have start offsets where consumer groups have committed ones, and no checkpoints. Streams groups are not
moved: their state is in topics that only they know.


How far each group of a flow is on both sides, and whether it could move now; if not, the first reason to look at.

Reasons are told in the order in which they would have to be mended: a topic that is not copied has no checkpoint, a
partition without a checkpoint has no offset on the target.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.mirror.groups.checkpoints import name_clash, remote_partition, source_partition
from heliograph.mirror.groups.group_moves import (
    DEAD,
    GroupPlan,
    GroupPosition,
    LogBounds,
    is_movable,
    place_at_home,
    place_on_target,
    plan_group,
)
from heliograph.model import GroupType, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.mirror.groups.offset_map import OffsetMap
    from heliograph.mirror.topics.topic_rules import TopicRules
    from heliograph.model import Checkpoint, CommittedOffset, Flow, SourceOffset, TopicPartition


UNKNOWN = "Unknown"  # Kafka's word for the state of a group that nobody tells
STREAMS_STAY = "it is a streams group, and only consumer and share groups are followed"


@dataclass(frozen=True)
class ClusterGroups:
    """The groups of one cluster, and the logs their offsets are in; `hidden` are groups we may not look at, and why.

    `types` has those that are there; `unsupported` are share groups that the cluster cannot have, and why.
    """

    states: Mapping[str, str]
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    logs: Mapping[TopicPartition, LogBounds] = field(default_factory=dict)
    hidden: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, GroupType] = field(default_factory=dict)
    unsupported: Mapping[str, str] = field(default_factory=dict)

    def offsets(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        """What a group has committed here."""
        return self.committed.get(group, {})

    def state(self, group: str) -> str:
        """A group's state here; dead where it is not."""
        return self.states.get(group, DEAD)

    def why_closed(self, group: str) -> str | None:
        """Why nothing can be known or set of a group here, if so."""
        return self.hidden.get(group) or self.unsupported.get(group)


@dataclass(frozen=True)
class GroupView:
    """A flow's groups: what they have read on the source, what the flow has told of it, where they are on the target.

    `known` is what offset syncs tell, or, where they cannot be read, the last run of the flow's progress.
    """

    flow: Flow
    rules: TopicRules
    groups: tuple[str, ...]
    known: OffsetMap
    checkpoints: Mapping[str, Mapping[TopicPartition, Checkpoint]]
    source_offsets: Mapping[TopicPartition, SourceOffset]
    source: ClusterGroups | None
    target: ClusterGroups

    def type_of(self, group: str) -> GroupType:
        """The type of a group on the source; of one that is not seen there, only a consumer group has checkpoints."""
        at_source = None if self.source is None else self.source.types.get(group)
        if at_source is not None:
            return at_source
        return GroupType.CONSUMER if group in self.checkpoints else self.target.types.get(group, GroupType.CONSUMER)

    def partitions(self, group: str) -> list[TopicPartition]:
        """The source partitions whose records the group reads and the flow copies, or has copied."""
        tps = {source_partition(self.rules, tp) for tp in self.checkpoints.get(group, {})}
        if self.source is not None:
            tps |= {tp for tp in self.source.offsets(group) if self.rules.replicates(tp.topic)}
        return sorted(tps)

    def place(self, group: str, tp: TopicPartition) -> GroupPosition | None:
        """Where the group goes on in the copy of a source partition."""
        remote_tp = remote_partition(self.rules, tp)
        committed = None if self.source is None else self.source.offsets(group).get(tp)
        checkpoint = self.checkpoints.get(group, {}).get(remote_tp)
        return place_on_target(self.known, tp, committed, checkpoint)

    def not_replicated(self, tp: TopicPartition) -> int | None:
        """How many offsets of a source partition the flow has not copied yet; None where that is not known."""
        log = None if self.source is None else self.source.logs.get(tp)
        source_offsets = self.source_offsets.get(tp)
        # Copied, but by someone whose progress we do not find: a connector keeps its own under its own name.
        is_elsewhere = source_offsets is None and self.known.translate(tp, 0) is not None
        if log is None or is_elsewhere:
            return None
        copied = log.start if source_offsets is None else max(log.start, source_offsets.offset + 1)
        return max(0, log.end - copied)

    @property
    def hidden(self) -> dict[str, str]:
        """The groups that one of the clusters does not let us look at, and why."""
        on_source = {} if self.source is None else self.source.hidden
        return {**on_source, **self.target.hidden}


def plan_failover(view: GroupView) -> list[GroupPlan]:
    """Move every group of the view to the target."""
    target = view.target
    plans = []
    for group in view.groups:
        type_ = view.type_of(group)
        refused = _why_refused(type_, target, view.flow.target, group)
        if refused is not None:
            plans.append(_refused_plan(group, target, type_, refused))
            continue
        offsets, why_nothing = target.offsets(group), _why_nothing(view.source, view.flow.source, group, type_)
        places = _places_there(view, group)
        plans.append(plan_group(group, target.state(group), places, offsets, target.logs, why_nothing, type_))
    return plans


def plan_failback(view: GroupView, reverse: GroupView | None) -> list[GroupPlan]:
    """Move every group of the view home to the source; `reverse` is the flow the other way, where there is one.

    What the source itself had sent is translated back by the flow's own offset syncs. What was first written on the
    target comes home by the reverse flow, which tells where.
    """
    home = view.source
    if home is None:
        return []
    logs = home.logs if reverse is None else {**reverse.target.logs, **home.logs}
    hidden = view.hidden if reverse is None else {**reverse.hidden, **view.hidden}
    plans = []
    for group in view.groups:
        type_ = view.target.types.get(group, GroupType.CONSUMER)
        refused = hidden.get(group) or _why_refused(type_, home, view.flow.source, group)
        if refused is not None:
            plans.append(_refused_plan(group, home, type_, refused))
            continue
        places = {} if reverse is None else _places_there(reverse, group)
        # With names that stay (Identity) both may speak of a partition. Only the way back knows what the source had
        # not sent yet: the reverse flow's records stand behind it, and would lead past it.
        places |= {tp: place for tp, place in _places_back(view, group).items() if place or tp not in places}
        why_nothing = _why_nothing(view.target, view.flow.target, group, type_)
        plans.append(plan_group(group, home.state(group), places, home.offsets(group), logs, why_nothing, type_))
    return plans


def is_unknown(view: GroupView, group: str) -> bool:
    """Whether nothing on either side tells of a group: its name may be a typo."""
    if group in view.hidden:
        return False
    offsets = [each.offsets(group) for each in (view.source, view.target) if each is not None]
    return not any(offsets) and group not in view.checkpoints


def _why_refused(type_: GroupType, cluster: ClusterGroups, alias: str, group: str) -> str | None:
    """Why a group cannot move to a cluster at all."""
    if type_ is GroupType.STREAMS:
        return STREAMS_STAY
    return cluster.why_closed(group) or name_clash(type_, cluster.types.get(group), alias)


def _refused_plan(group: str, cluster: ClusterGroups, type_: GroupType, why: str) -> GroupPlan:
    state = UNKNOWN if cluster.why_closed(group) else cluster.states.get(group, UNKNOWN)
    return GroupPlan(group, state, (), why, type_)


def left_behind(view: GroupView, group: str, *, is_going_home: bool) -> list[TopicPartition]:
    """The partitions a group has read that the flow does not bring to where it goes."""
    if is_going_home:
        return sorted(tp for tp in view.target.offsets(group) if not _is_copy(view, tp))
    offsets = {} if view.source is None else view.source.offsets(group)
    return sorted(tp for tp in offsets if not view.rules.replicates(tp.topic))


def _places_there(view: GroupView, group: str) -> dict[TopicPartition, GroupPosition | None]:
    return {remote_partition(view.rules, tp): view.place(group, tp) for tp in view.partitions(group)}


def _why_nothing(left: ClusterGroups | None, alias: str, group: str, type_: GroupType) -> str:
    """Why a group has no place to go to, where it has none."""
    is_share = type_ is GroupType.SHARE
    unknown = "share groups have no checkpoints" if is_share else "no checkpoint tells of it"
    if left is None:
        return f"{unknown}, and '{alias}' cannot be asked"
    if why := left.why_closed(group):
        return f"{unknown}, and {why}"
    if left.offsets(group):
        return "it has read nothing that this flow copies"
    return f"it has {'acknowledged' if is_share else 'committed'} nothing on '{alias}'"


def _places_back(view: GroupView, group: str) -> dict[TopicPartition, GroupPosition | None]:
    places = {}
    for remote_tp, committed in view.target.offsets(group).items():
        if _is_copy(view, remote_tp):
            tp = source_partition(view.rules, remote_tp)
            places[tp] = place_at_home(view.known, tp, committed)
    return places


def _is_copy(view: GroupView, tp: TopicPartition) -> bool:
    return view.rules.policy.topic_source(tp.topic) == view.flow.source


class GroupRow(NamedTuple):
    """One group in one partition. Offsets that are not known, or not there, are None."""

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

    @property
    def is_in_sync(self) -> bool:
        """Whether a consumer that starts on the target now goes on where the group is."""
        return self.why_not is None


def report_groups(view: GroupView, *, follows_groups: bool) -> list[GroupRow]:
    """A row for each group and partition; `follows_groups` is `sync.group.offsets.enabled`.

    Of a group that the target hides there is none: whether it is in sync is not known. Nor is there one of a group that
    cannot move (`unfollowed`).
    """
    rows = []
    no_rows = view.target.hidden.keys() | unfollowed(view).keys()
    for group in (group for group in view.groups if group not in no_rows):
        tps = set(view.partitions(group))
        tps |= set(view.source.offsets(group)) if view.source is not None else set()
        rows += [_row(view, group, tp, follows_groups=follows_groups) for tp in sorted(tps)]
    return rows


def unfollowed(view: GroupView) -> dict[str, str]:
    """The groups that are of a type that does not move to the target, and why."""
    streams = {group: STREAMS_STAY for group in view.groups if view.type_of(group) is GroupType.STREAMS}
    on_source = {} if view.source is None else view.source.unsupported
    return {**on_source, **view.target.unsupported, **streams}


def _row(view: GroupView, group: str, tp: TopicPartition, *, follows_groups: bool) -> GroupRow:
    remote_tp = remote_partition(view.rules, tp)
    committed = None if view.source is None else view.source.offsets(group).get(tp)
    source_log = None if view.source is None else view.source.logs.get(tp)
    place = view.place(group, tp)
    checkpoint = view.checkpoints.get(group, {}).get(remote_tp)
    there = view.target.offsets(group).get(remote_tp)
    target_log = view.target.logs.get(remote_tp)
    row = GroupRow(
        group=group,
        tp=tp,
        remote_tp=remote_tp,
        source_offset=None if committed is None else committed.offset,
        source_lag=_lag(source_log, None if committed is None else committed.offset),
        translated_offset=None if place is None else place.offset,
        checkpoint_offset=None if checkpoint is None else checkpoint.downstream,
        target_offset=None if there is None else there.offset,
        target_lag=_lag(target_log, None if there is None else there.offset),
        target_state=view.target.state(group),
        why_not=None,
        type=view.type_of(group),
    )
    clash = name_clash(row.type, view.target.types.get(group), view.flow.target)
    why_not = clash or _why_not_copied(view, row, place) or _why_not_there(row, follows_groups=follows_groups)
    return row._replace(why_not=why_not)


def _lag(log: LogBounds | None, offset: int | None) -> int | None:
    return None if log is None or offset is None else max(0, log.end - offset)


def _why_not_copied(view: GroupView, row: GroupRow, place: GroupPosition | None) -> str | None:
    """What keeps the records, or the place among them, from the target."""
    excluded = view.rules.why_not(row.tp.topic)
    if excluded is not None:
        return f"the topic is not replicated: {excluded}"
    if row.remote_tp not in view.target.logs:
        return f"the target has no {row.remote_tp} yet"
    if place is None:
        return "nothing tells yet where its offset is on the target (no offset sync reaches back to it)"
    copied = view.source_offsets.get(row.tp)
    if row.source_offset is not None and copied is not None and row.source_offset > copied.offset + 1:
        return f"replication is {counted(row.source_offset - copied.offset - 1, 'offset')} behind the group"
    return None


def _why_not_there(row: GroupRow, *, follows_groups: bool) -> str | None:
    """What keeps the group on the target from its place; that it reads there itself is reason enough."""
    if row.target_offset == row.translated_offset:
        return None
    if not is_movable(row.target_state):
        return f"the group is active on the target ({row.target_state}) and goes its own way"
    ahead = (row.target_offset or 0) - (row.translated_offset or 0)
    if ahead > 0:
        return f"the group on the target is {counted(ahead, 'offset')} ahead: it has worked there"
    return _waits_for(row, follows_groups=follows_groups)


def _waits_for(row: GroupRow, *, follows_groups: bool) -> str:
    """What comes next for a group whose offset on the target is missing or behind."""
    has_checkpoints = row.type is GroupType.CONSUMER
    if has_checkpoints and row.checkpoint_offset is None:
        return "no checkpoint yet"
    if not follows_groups:
        return "sync.group.offsets.enabled is false; `heliograph failover` sets the offset"
    if has_checkpoints and row.checkpoint_offset != row.translated_offset:
        return "its checkpoint is not up to date yet (emit.checkpoints.interval.seconds)"
    return "the group's offset on the target is set next (sync.group.offsets.interval.seconds)"

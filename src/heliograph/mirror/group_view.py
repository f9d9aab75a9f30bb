"""What is known of a flow's groups on both sides at one time: plain values, read by `worker`, judged here.

The source may be gone: then `source` is None, and checkpoints and the flow's progress, which are on the target, tell
what they can. The same holds of a single group that the source does not let us look at. One that the cluster it would
move to hides is not moved: nothing would tell whether it has members there, or is ahead.

Share groups have start offsets where consumer groups have committed ones, and no checkpoints. Streams groups are not
moved: their state is in topics that only they know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.mirror.checkpoints import DEAD, name_clash, remote_partition, source_partition
from heliograph.mirror.failover import GroupPlan, LogBounds, Place, place_at_home, place_on_target, plan_group
from heliograph.model import GroupType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.mirror.offset_map import OffsetMap
    from heliograph.mirror.topics import TopicRules
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
    progress: Mapping[TopicPartition, SourceOffset]
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

    def place(self, group: str, tp: TopicPartition) -> Place | None:
        """Where the group goes on in the copy of a source partition."""
        remote_tp = remote_partition(self.rules, tp)
        committed = None if self.source is None else self.source.offsets(group).get(tp)
        checkpoint = self.checkpoints.get(group, {}).get(remote_tp)
        return place_on_target(self.known, tp, committed, checkpoint)

    def not_replicated(self, tp: TopicPartition) -> int | None:
        """How many offsets of a source partition the flow has not copied yet; None where that is not known."""
        log = None if self.source is None else self.source.logs.get(tp)
        progress = self.progress.get(tp)
        # Copied, but by someone whose progress we do not find: a connector keeps its own under its own name.
        is_elsewhere = progress is None and self.known.translate(tp, 0) is not None
        if log is None or is_elsewhere:
            return None
        copied = log.start if progress is None else max(log.start, progress.offset + 1)
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


def _places_there(view: GroupView, group: str) -> dict[TopicPartition, Place | None]:
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


def _places_back(view: GroupView, group: str) -> dict[TopicPartition, Place | None]:
    places = {}
    for remote_tp, committed in view.target.offsets(group).items():
        if _is_copy(view, remote_tp):
            tp = source_partition(view.rules, remote_tp)
            places[tp] = place_at_home(view.known, tp, committed)
    return places


def _is_copy(view: GroupView, tp: TopicPartition) -> bool:
    return view.rules.policy.topic_source(tp.topic) == view.flow.source

"""Moves consumer and share groups to the target of a flow, or back to its source.

`failover_groups` and `failback_groups` read both clusters (`flow_groups`), plan by the rule that group sync follows
(`mirror/groups`), and set the planned offsets, unless it is a dry run. They set only offsets of groups without members.
A group has moved only if all its offsets are set: consumers that start without them resume by `auto.offset.reset` (a
share group: by `share.auto.offset.reset`), and may skip records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.resolve.suggestions import nearest
from heliograph.errors import ClusterError
from heliograph.mirror.groups.group_moves import GroupPlan, is_movable
from heliograph.mirror.groups.group_view import is_unknown, left_behind, plan_failback, plan_failover
from heliograph.mirror.groups.moved_offsets import RELEASED
from heliograph.model import CommittedOffset, Flow, GroupType
from heliograph.operations.flow_groups import FlowGroups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.kafka.admin.consumer_groups import GroupAdmin
    from heliograph.mirror.groups.group_view import ClusterGroups, GroupView
    from heliograph.model import TopicPartition


class GroupResult(NamedTuple):
    """The outcome for one group: its plan without the offsets that the cluster refused, and what does not come along.

    `issue` is why none of its offsets could be committed; `not_replicated` counts records that the flow has not copied
    yet (None: not known); `left_behind` are partitions that it never copies; `reads_still_on` is the cluster the group
    comes from, if it still has members there; `hidden` is why that cluster does not describe the group, so that its
    checkpoints are used. Then `since_checkpoint` is how many records it may have read since, and reads again, at most.
    `not_released` is why group sync will not move it on the cluster that it has left.
    """

    plan: GroupPlan
    issue: str | None = None
    not_replicated: int | None = None
    left_behind: tuple[TopicPartition, ...] = ()
    reads_still_on: str | None = None
    hidden: str | None = None
    since_checkpoint: int | None = None
    not_released: str | None = None

    @property
    def is_moved(self) -> bool:
        """True if the group has, or in a dry run would get, all its offsets."""
        return self.plan.is_whole


class GroupResults(NamedTuple):
    """The outcome for several groups; `source_issue` is why the source was unavailable and checkpoints were used."""

    groups: list[GroupResult]
    source_issue: str | None = None


def failover_groups(config: MirrorConfig, flow: Flow, names: Sequence[str], *, dry_run: bool) -> GroupResults:
    """Move groups to the target of a flow; without names, all groups that the flow follows."""
    with FlowGroups(config, flow, moves_to=flow.target) as flow_groups:
        view = flow_groups.view(names or flow_groups.followed())
        plans = _with_near_names(plan_failover(view), view, flow_groups.followed)
        reverse = Flow(flow.target, flow.source)
        releases = view.source is not None and reverse in config.enabled_flows and _syncs_groups(config, reverse)
        results = [
            _release(
                _carry_out(plan, flow_groups.target_groups, dry_run=dry_run),
                *(flow_groups.source_groups, view.source if releases and not dry_run else None),
            )._replace(
                not_replicated=_not_replicated(view, plan.group),
                left_behind=tuple(left_behind(view, plan.group, is_failback=False)),
                reads_still_on=flow.source if _has_members(view.source, plan.group) else None,
                hidden=view.hidden.get(plan.group),
                since_checkpoint=_since_checkpoint(view, plan),
            )
            for plan in plans
        ]
        return GroupResults(results, flow_groups.source_issue)


def failback_groups(config: MirrorConfig, flow: Flow, names: Sequence[str], *, dry_run: bool) -> GroupResults:
    """Move groups back to the source of a flow; without names, all groups that have read its copies on the target.

    Offsets in the target's own topics are translated if the reverse flow is enabled. Raises ClusterError if the source
    is unavailable.
    """
    reverse = Flow(flow.target, flow.source)
    with FlowGroups(config, flow, moves_to=flow.source) as flow_groups:
        _require_source(flow_groups)
        view = flow_groups.view(names or flow_groups.at_target())
        _require_source(flow_groups)  # it may have failed half-way through the view
        reverse_view = None
        if reverse in config.flows:
            with FlowGroups(config, reverse, moves_to=flow.source) as reverse_groups:
                reverse_view = reverse_groups.view(view.groups)
        plans = _with_near_names(plan_failback(view, reverse_view), view, flow_groups.at_target)
        return GroupResults(
            [
                _release(
                    _carry_out(plan, flow_groups.source_groups, dry_run=dry_run),
                    *(flow_groups.target_groups, view.target if _syncs_groups(config, flow) and not dry_run else None),
                )._replace(
                    not_replicated=None if reverse_view is None else _not_replicated(reverse_view, plan.group),
                    left_behind=_left_behind_by_both(view, reverse_view, plan.group),
                    reads_still_on=flow.target if _has_members(view.target, plan.group) else None,
                )
                for plan in plans
            ]
        )


def _carry_out(plan: GroupPlan, admin: GroupAdmin, *, dry_run: bool) -> GroupResult:
    """Set the offsets of a plan."""
    if dry_run or not plan.offsets:
        return GroupResult(plan)
    try:
        refused: Mapping[TopicPartition, str] = admin.set_offsets(plan.group, plan.type, plan.offsets)
    except ClusterError as error:
        return GroupResult(plan.without(dict.fromkeys(plan.offsets, "its offsets could not be committed")), str(error))
    return GroupResult(plan.without(refused))


def _syncs_groups(config: MirrorConfig, flow: Flow) -> bool:
    enabled: bool = config.settings(flow)[keys.SYNC_GROUP_OFFSETS_ENABLED]
    return enabled


def _release(result: GroupResult, admin: GroupAdmin, left: ClusterGroups | None) -> GroupResult:
    """Let group sync move the group again on the cluster that it has left: its consumers there have stopped.

    Its offsets there stay as they are, and get a mark as their metadata (`moved_offsets`).
    """
    plan = result.plan
    if left is None or not result.is_moved or plan.type is not GroupType.CONSUMER:
        return result
    offsets = {tp: CommittedOffset(found.offset, RELEASED) for tp, found in left.offsets(plan.group).items()}
    if not offsets:
        return result
    try:
        refused: Iterable[str] = admin.commit(plan.group, offsets).values()
    except ClusterError as error:
        refused = [str(error).rstrip(".")]
    why = next(iter(refused), None)
    return result._replace(not_released=why)


def _require_source(flow_groups: FlowGroups) -> None:
    if flow_groups.source_issue is not None:
        raise ClusterError(f"Groups cannot move back to '{flow_groups.flow.source}': {flow_groups.source_issue}")


def _with_near_names(
    plans: list[GroupPlan], view: GroupView, known_groups: Callable[[], Iterable[str]]
) -> list[GroupPlan]:
    """Add the name that may be meant to the refusal of a group that neither cluster knows."""
    refused = [plan.group for plan in plans if plan.refused and is_movable(plan.state)]
    unknown = [group for group in refused if is_unknown(view, group)]
    if not unknown:
        return plans
    try:
        known = list(known_groups())
    except ClusterError:
        return plans  # a hint is not worth a failure
    near = {group: found for group in unknown if (found := nearest(group, known)) is not None}
    return [
        replace(plan, refused=f"{plan.refused}; did you mean '{near[plan.group]}'?") if plan.group in near else plan
        for plan in plans
    ]


def _not_replicated(view: GroupView, group: str) -> int | None:
    """Return how many offsets of the partitions a group reads are not copied yet; None if that is not known."""
    counts = [view.not_replicated(tp) for tp in view.partitions(group)]
    return None if None in counts else sum(count for count in counts if count is not None)


def _since_checkpoint(view: GroupView, plan: GroupPlan) -> int | None:
    """Return how many records of the target the group may have read since its checkpoints; None if they are not used.

    The source would know; on the target every record from the group's position on may be one of them.
    """
    if view.source is not None and plan.group not in view.source.hidden:
        return None
    logs = view.target.logs
    return sum(logs[move.tp].end - move.offset for move in plan.moves if move.offset is not None and move.tp in logs)


def _has_members(cluster: ClusterGroups | None, group: str) -> bool:
    return cluster is not None and not is_movable(cluster.state(group))


def _left_behind_by_both(view: GroupView, reverse_view: GroupView | None, group: str) -> tuple[TopicPartition, ...]:
    """Return the partitions that neither the flow's own offset syncs nor the reverse flow translate."""
    tps = left_behind(view, group, is_failback=True)
    stays = tps if reverse_view is None else left_behind(reverse_view, group, is_failback=False)
    return tuple(tp for tp in tps if tp in stays)

"""How far each group of a flow is on both sides, and whether it could move now; if not, the first reason to look at.

Reasons are told in the order in which they would have to be mended: a topic that is not copied has no checkpoint, a
partition without a checkpoint has no offset on the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.mirror.checkpoints import is_movable, name_clash, remote_partition
from heliograph.mirror.group_view import STREAMS_STAY
from heliograph.model import GroupType, counted

if TYPE_CHECKING:
    from heliograph.mirror.failover import LogBounds, Place
    from heliograph.mirror.group_view import GroupView
    from heliograph.model import TopicPartition


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


def _why_not_copied(view: GroupView, row: GroupRow, place: Place | None) -> str | None:
    """What keeps the records, or the place among them, from the target."""
    excluded = view.rules.why_not(row.tp.topic)
    if excluded is not None:
        return f"the topic is not replicated: {excluded}"
    if row.remote_tp not in view.target.logs:
        return f"the target has no {row.remote_tp} yet"
    if place is None:
        return "nothing tells yet where its offset is on the target (no offset sync reaches back to it)"
    copied = view.progress.get(row.tp)
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

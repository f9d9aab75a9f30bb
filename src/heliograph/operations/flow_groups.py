"""Reads everything that is known of a flow's groups from both clusters, for `groups`, `failover` and `failback`.

Nothing is kept between calls, and only the callers change offsets. A source that is unavailable is no error: that is
when a group has to move. Nor is a group that we may not describe: the view has the reason, and the other groups.

Order matters: offsets are read before the offset syncs that translate them, and the ends of logs last, so that what was
read first is never ahead of what is read later.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

from heliograph.config import keys
from heliograph.config.input_limits import is_group_name
from heliograph.driver.clusters.cluster_clients import TargetClients, make_admin
from heliograph.driver.clusters.log_bounds import log_bounds
from heliograph.errors import ClusterError
from heliograph.executor.contract.source_offsets import read_offsets
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.mirror.groups.checkpoints import (
    latest_checkpoints,
    original_partition,
    remote_partition,
    source_partition,
)
from heliograph.mirror.groups.group_moves import is_movable, unsettled_partitions
from heliograph.mirror.groups.group_view import STREAMS_NOT_FOLLOWED, ClusterGroups, GroupView
from heliograph.mirror.groups.moved_offsets import MovedOffsets
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.mirror.policy.filters import group_filter
from heliograph.mirror.topics.internal_topics import checkpoints_topic, offset_syncs_topic, offsets_topic
from heliograph.mirror.topics.topic_rules import topic_rules
from heliograph.model import Flow, GroupType, OffsetSync, TopicPartition
from heliograph.wire.records.mirror_records import decode_checkpoint, decode_offset_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.config.resolve.settings import Settings
    from heliograph.kafka.admin.admin import Admin
    from heliograph.kafka.admin.consumer_groups import ListedGroups
    from heliograph.kafka.admin.coordinators import GroupAnswers
    from heliograph.mirror.groups.group_moves import LogBounds
    from heliograph.model import Checkpoint, CommittedOffset, SourceOffset


T = TypeVar("T")
_Checkpoints = dict[str, dict["TopicPartition", "Checkpoint"]]


class FlowGroups:
    """The groups of one flow; a context manager. `source_issue` is why the source is unavailable, or None.

    Groups that are to move to one of the two clusters (`moves_to`, its alias) need another permission there.
    """

    def __init__(self, config: MirrorConfig, flow: Flow, moves_to: str | None = None) -> None:
        self.flow = flow
        self._connector = config.source_connector(flow)
        self.settings = config.settings(flow)
        self.rules = topic_rules(config, flow)
        self.names = group_filter(self.settings)
        self._source = make_admin(config, flow.source, flow)
        self._target_clients = TargetClients(config, flow)
        self._target = self._target_clients.target
        self.source_groups = GroupAdmin(self._source, "READ" if moves_to == flow.source else "DESCRIBE")
        self.target_groups = GroupAdmin(self._target, "READ" if moves_to == flow.target else "DESCRIBE")
        self.source_issue: str | None = None
        self._checkpoint_times: dict[tuple[str, TopicPartition], int] = {}
        reverse = Flow(flow.target, flow.source)
        self._reverse_rules = topic_rules(config, reverse) if reverse in config.enabled_flows else None
        self._original = partial(original_partition, self.rules, reverse=self._reverse_rules)
        self._reverse_syncs: Callable[[], OffsetMap] = lambda: _read_reverse(config, reverse, self._ask_source)

    def __enter__(self) -> Self:
        try:
            self._target.view([])
        except ClusterError:
            self.__exit__()
            raise
        try:
            self._source.view([])
        except ClusterError as error:
            self.source_issue = str(error)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._source.close()
        self._target_clients.close()

    # --- which groups -------------------------------------------------------------------------------------------------

    def followed(self) -> tuple[str, ...]:
        """Return the groups that the filter accepts and that have read topics the flow copies, or may have.

        If the source is unavailable, those that have checkpoints.
        """
        if self.source_issue is not None:
            return tuple(sorted(group for group in self._checkpoints() if self.names.accepts(group)))
        is_enabled = self._reverse_rules is not None
        return self._readers(
            self.source_groups,
            lambda topic: (
                self.rules.replicates(topic) or (is_enabled and self._original(TopicPartition(topic, 0)) is not None)
            ),
        )

    def at_target(self) -> tuple[str, ...]:
        """Return the groups that the filter accepts and that have read the flow's copies on the target, or may have."""
        policy = self.rules.policy
        return self._readers(self.target_groups, lambda topic: policy.topic_source(topic) == self.flow.source)

    def why_not(self, group: str) -> str | None:
        """Return why the flow does not follow a group of this name, or None if it does."""
        return self.names.why_not(group)

    def of_other_types(self) -> dict[str, str]:
        """Return groups on the source that the filter accepts but whose type the flow does not follow, and why."""
        listed = self._ask_source(self.source_groups.groups_answered)
        off = None if self.settings[keys.SHARE_GROUPS_ENABLED] else f"{keys.SHARE_GROUPS_ENABLED.name} is false"
        reasons = {GroupType.STREAMS: STREAMS_NOT_FOLLOWED, GroupType.SHARE: off and f"it is a share group, and {off}"}
        return {
            group: why
            for group, other in sorted(listed.others.items() if listed is not None else ())
            if is_group_name(group) and self.names.accepts(group) and (why := reasons.get(other.type)) is not None
        }

    def _readers(self, admin: GroupAdmin, counts: Callable[[str], bool]) -> tuple[str, ...]:
        """Return the groups that have read topics that count; those we may not describe are included, as hidden."""
        listed = admin.groups_answered()
        if listed.issue is not None:
            raise listed.issue
        types = {group: type_ for group, type_ in listed.types.items() if is_group_name(group)}
        followed = {GroupType.CONSUMER}.union({GroupType.SHARE} if self.settings[keys.SHARE_GROUPS_ENABLED] else ())
        taken = [group for group, type_ in types.items() if type_ in followed and self.names.accepts(group)]
        found = admin.offsets_of(taken, types)
        readers = (group for group, offsets in found.of.items() if any(counts(tp.topic) for tp in offsets))
        return tuple(sorted({*readers, *found.refused}))

    def on_both_sides(self) -> list[str]:
        """Return the consumer groups that the flow follows and that also consume on the target, by group sync's rule.

        Groups that the target does not let us describe are left out.
        """
        listed = self.target_groups.groups_answered()
        there = [group for group in self.followed() if listed.types.get(group) is GroupType.CONSUMER]
        written = [each for each, _timestamp_ms in _read_checkpoints(self._target, self.settings)]
        checkpoints = {group: found.values() for group, found in latest_checkpoints(written).items()}
        states = self.target_groups.states_answered(there, listed).of
        committed = self.target_groups.committed_answered(there).of
        policy = self.rules.policy

        def may_be_copy(topic: str) -> bool:
            return policy.topic_source(topic) is not None

        moved = MovedOffsets(written)
        logs = log_bounds(self._target, unsettled_partitions(checkpoints, committed))
        return [
            group
            for group, offsets in sorted(committed.items())
            if not is_movable(states.get(group))
            or moved.own(group, offsets, checkpoints.get(group, ()), logs, may_be_copy)
        ]

    # --- what is known of them ----------------------------------------------------------------------------------------

    def view(self, groups: Iterable[str]) -> GroupView:
        """Return everything that is known of these groups now."""
        names = tuple(dict.fromkeys(groups))
        source_list = self._ask_source(self.source_groups.groups_answered)
        target_list = self.target_groups.groups_answered()
        source_types = {} if source_list is None else source_list.types
        # A share group is looked up as such even if it does not exist: the answer says whether the cluster supports it.
        types = {**target_list.types, **source_types}
        on_source = self._ask_source(lambda: self.source_groups.offsets_of(names, types))
        on_target = self.target_groups.offsets_of(names, types | target_list.types)
        all_checkpoints = self._checkpoints()
        consumers = [group for group in names if source_types.get(group, GroupType.CONSUMER) is GroupType.CONSUMER]
        checkpoints = {group: all_checkpoints[group] for group in consumers if group in all_checkpoints}
        source_offsets = self._source_offsets()
        known = self._known(source_offsets)
        tps = self._source_partitions({} if on_source is None else on_source.of, on_target.of, checkpoints)
        originals = {tp: original for tp in tps if (original := self._original(tp)) is not None}
        reverse_known = self._reverse_syncs() if originals and self._reverse_rules is not None else None
        states = self._ask_source(lambda: self.source_groups.states_answered(names, source_list))
        bounds = self._ask_source(lambda: log_bounds(self._source, tps))
        source = None
        if source_list is not None and on_source is not None and states is not None and bounds is not None:
            source = _cluster_groups(source_list, states, on_source, bounds)
        remote = {originals.get(tp) or remote_partition(self.rules, tp) for tp in tps}
        states = self.target_groups.states_answered(names, target_list)
        target = _cluster_groups(target_list, states, on_target, log_bounds(self._target, remote))
        return GroupView(
            *(self.flow, self.rules, names, known, checkpoints, source_offsets, source, target),
            reverse_rules=self._reverse_rules,
            reverse_known=reverse_known,
            checkpoint_times=dict(self._checkpoint_times),
            remote_ids=self._target.view({tp.topic for tp in remote}).topic_ids,
        )

    def _ask_source(self, ask: Callable[[], T]) -> T | None:
        """Return an answer of the source; None once a request has failed: it counts as unavailable from then on."""
        if self.source_issue is None:
            try:
                return ask()
            except ClusterError as error:
                self.source_issue = str(error)
        return None

    def _source_partitions(
        self,
        on_source: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        on_target: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        checkpoints: _Checkpoints,
    ) -> set[TopicPartition]:
        read = {
            tp
            for offsets in on_source.values()
            for tp in offsets
            if self.rules.replicates(tp.topic) or self._original(tp) is not None
        }
        topic_source = self.rules.policy.topic_source
        copies = {tp for offsets in on_target.values() for tp in offsets if topic_source(tp.topic) == self.flow.source}
        copies |= {tp for by_partition in checkpoints.values() for tp in by_partition}
        return read | {source_partition(self.rules, tp) for tp in copies}

    def _checkpoints(self) -> _Checkpoints:
        written = _read_checkpoints(self._target, self.settings)
        self._checkpoint_times = {(each.group, each.tp): timestamp_ms for each, timestamp_ms in written}
        return latest_checkpoints(each for each, _timestamp_ms in written)

    def _source_offsets(self) -> dict[TopicPartition, SourceOffset]:
        topic = offsets_topic(self.settings).name
        return read_offsets(self._target_clients.source_offsets, topic, self._connector, self.flow.source)

    def _known(self, source_offsets: Mapping[TopicPartition, SourceOffset]) -> OffsetMap:
        """Return the map of the offset syncs; for partitions without one, of the last run in the source offsets."""
        if self.settings[keys.OFFSET_SYNCS_LOCATION] == "source":
            # If the source fails half-way, nothing is used: a later sync may invalidate what was read.
            known = self._ask_source(lambda: _read_syncs(self._source, self.settings)) or OffsetMap()
        else:
            known = _read_syncs(self._target, self.settings)
        for tp, reported in source_offsets.items():
            run = reported.run
            if run is not None and known.translate(tp, 0) is None:
                log_id = None if reported.target_log is None else reported.target_log.topic_id
                known.take(OffsetSync(tp, reported.offset, run.downstream + run.count - 1, (run,), log_id))
        return known


def _read_reverse(
    config: MirrorConfig, reverse: Flow, ask_target: Callable[[Callable[[], OffsetMap]], OffsetMap | None]
) -> OffsetMap:
    """Return the map of the reverse flow; an empty one if its offset syncs are on its target, and that is gone."""
    settings = config.settings(reverse)
    is_at_source = settings[keys.OFFSET_SYNCS_LOCATION] == "source"
    with closing(make_admin(config, reverse.source if is_at_source else reverse.target, reverse)) as cluster:
        if is_at_source:
            return _read_syncs(cluster, settings)
        return ask_target(lambda: _read_syncs(cluster, settings)) or OffsetMap()


def _read_checkpoints(cluster: Admin, settings: Settings) -> list[tuple[Checkpoint, int]]:
    """Return the checkpoints with their times in milliseconds, in the order of their topic."""
    decoded = (
        (decode_checkpoint(record.key, record.value, record.headers), record.timestamp_ms)
        for record in read_topic(cluster, checkpoints_topic(settings).name)
    )
    return [(checkpoint, timestamp_ms) for checkpoint, timestamp_ms in decoded if checkpoint is not None]


def _read_syncs(cluster: Admin, settings: Settings) -> OffsetMap:
    """Read the offset syncs record by record: there can be millions."""
    known = OffsetMap()
    records = read_topic(cluster, offset_syncs_topic(settings).name)
    known.take_all(decode_offset_sync(record.key, record.value, record.headers) for record in records)
    return known


def _cluster_groups(
    listed: ListedGroups,
    states: GroupAnswers[str],
    offsets: GroupAnswers[dict[TopicPartition, CommittedOffset]],
    bounds: Mapping[TopicPartition, LogBounds],
) -> ClusterGroups:
    unsupported = {group: offsets.refused[group] for group in offsets.unsupported}
    hidden = {group: why for group, why in {**states.refused, **offsets.refused}.items() if group not in unsupported}
    return ClusterGroups(states.of, offsets.of, bounds, hidden, listed.types, unsupported)

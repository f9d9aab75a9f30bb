"""The checkpoint connector: follows groups, translates their offsets, writes checkpoints, moves groups on the target.

A `StepRunner` runs its steps; there are no threads here. Its state is that of the topics: checkpoints are read
once at the start, offset syncs are followed.

Invariants:
A. A checkpoint never points past an unread record, and while a group's offset grows its checkpoint never goes back.
B. A group on the target is moved only forward, and only while it has no members; an offset past the end of its log
   counts as none. A group whose consumers on the target have committed offsets is not moved (`moved_offsets`).
C. A group that was deleted on the source is neither checkpointed nor moved any more; a followed group whose coordinator
   is unavailable was not deleted.
D. Once the loop is stopped nothing more is written: the new leader may already have written newer checkpoints.
"""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.input_limits import is_group_name, is_topic_name, unusable_sentence
from heliograph.driver.clusters.cluster_clients import TargetClients, make_admin
from heliograph.driver.clusters.hidden_names import hidden_groups
from heliograph.driver.clusters.internal_topic_creation import ensure_internal_topic, ensure_offset_syncs_topic
from heliograph.driver.clusters.log_bounds import log_bounds
from heliograph.driver.loops.checkpoint_status import CheckpointStatus, ReadPartition
from heliograph.driver.loops.followed_syncs import ReverseSyncs, SyncsTail
from heliograph.driver.loops.noted_offsets import NotedOffsets
from heliograph.driver.steps.issues import LogOnce
from heliograph.driver.steps.matching_time import within_matching_time
from heliograph.errors import BrokerError, ClusterError, GroupActiveError
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.error_codes import UNSUPPORTED_VERSION
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.topics.record_writer import STEP_TIMEOUT_S, write_records
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.mirror.acls.flow_acls import wanted_groups
from heliograph.mirror.groups.checkpoints import (
    WrittenCheckpoints,
    name_clash,
    remote_partition,
    share_positions,
)
from heliograph.mirror.groups.group_moves import is_movable, plan_group_sync, unsettled_partitions
from heliograph.mirror.groups.moved_offsets import MovedOffsets
from heliograph.mirror.groups.offset_map import InverseMap
from heliograph.mirror.policy.filters import group_filter
from heliograph.mirror.topics.internal_topics import checkpoints_topic, offset_syncs_topic
from heliograph.mirror.topics.topic_rules import topic_rules
from heliograph.model import GroupType, TopicPartition, counted
from heliograph.wire.records.mirror_records import (
    decode_checkpoint,
    encode_checkpoint,
    encode_checkpoint_headers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.steps.step_runner import Schedule
    from heliograph.kafka.admin.consumer_groups import ListedGroups
    from heliograph.kafka.admin.coordinators import GroupAnswers
    from heliograph.mirror.groups.group_moves import LogBounds
    from heliograph.mirror.groups.offset_map import Translator
    from heliograph.model import Checkpoint, CommittedOffset, Flow


log = logging.getLogger(__name__)

_GROUP_KEYS = f"{keys.GROUPS.name}, {keys.GROUPS_EXCLUDE.name}"
_MOVED_AT_ONCE = 100  # groups: the fewer, the less time between reading a group's offsets and setting them


class CheckpointSync:
    """The groups of one flow."""

    def __init__(self, config: MirrorConfig, flow: Flow) -> None:
        self.flow = flow
        self.groups: tuple[str, ...] = ()
        self.share_groups: tuple[str, ...] = ()
        self.checkpoints_written = 0
        self._settings = config.settings(flow)
        self.status = CheckpointStatus(flow, self._settings[keys.EMIT_CHECKPOINTS_INTERVAL_SECONDS])
        self._rules = topic_rules(config, flow)
        self._names = group_filter(self._settings)
        self._source = make_admin(config, flow.source, flow)
        self._target_clients = TargetClients(config, flow)
        self._target = self._target_clients.target
        self._noted = NotedOffsets(config, flow, self._target_clients, "checkpoint")
        self._source_groups = GroupAdmin(self._source)
        self._target_groups = GroupAdmin(self._target, "READ")
        self._topic = TopicPartition(checkpoints_topic(self._settings).name, 0)
        is_at_source = self._settings[keys.OFFSET_SYNCS_LOCATION] == "source"
        syncs_tp = TopicPartition(offset_syncs_topic(self._settings).name, 0)
        self._syncs_cluster = self._source if is_at_source else self._target
        self._syncs = SyncsTail(self._syncs_cluster, syncs_tp)
        self._reverse = ReverseSyncs(config, flow)
        self._known = WrittenCheckpoints()
        self._moved = MovedOffsets()
        self._read: dict[str, set[TopicPartition]] = {}
        self._on_both_sides: set[str] = set()
        self._check: Callable[[], None] = lambda: None
        self._once = LogOnce(log)

    @property
    def written(self) -> dict[str, int]:
        """Checkpoints written since the start, by topic."""
        return {self._topic.topic: self.checkpoints_written}

    def check_before_writes(self, check: Callable[[], None]) -> None:
        """Call `check` before each write; it raises if nothing more may be written."""
        self._check = check

    def close(self) -> None:
        """Close the clients."""
        self._source.close()
        self._target_clients.close()
        self._reverse.close()

    def unanswered(self) -> list[str]:
        """Return for whom a step has waited for some time."""
        return [said for client in (self._source, *self._target_clients.clients) if (said := client.unanswered)]

    def begin(self) -> Iterable[str]:
        """Create missing topics, and read the checkpoints written before."""
        ensure_offset_syncs_topic(self._syncs_cluster, self._settings)
        for cluster in self._target_clients.topic_clusters:
            ensure_internal_topic(
                cluster,
                checkpoints_topic(self._settings),
                is_explicit_factor=keys.CHECKPOINTS_REPLICATION_FACTOR in self._settings,
                factor_key=keys.CHECKPOINTS_REPLICATION_FACTOR.name,
            )
        records = read_topic(self._target, self._topic.topic)
        decoded = (decode_checkpoint(record.key, record.value, record.headers) for record in records)
        found = [checkpoint for checkpoint in decoded if checkpoint is not None]
        self._known, self._moved = WrittenCheckpoints(found), MovedOffsets(found)
        return ()

    def plan(self, schedule: Schedule) -> None:
        """Add the steps in this order: groups, checkpoints, groups on the target."""
        settings = self._settings
        is_refreshed = settings[keys.REFRESH_GROUPS_ENABLED]  # if not, the groups found at the start are followed
        refresh_s = settings[keys.REFRESH_GROUPS_INTERVAL_SECONDS] if is_refreshed else math.inf
        schedule.repeat("groups", self.refresh_groups, refresh_s)
        schedule.repeat("checkpoints", self.emit, settings[keys.EMIT_CHECKPOINTS_INTERVAL_SECONDS])
        if settings[keys.SYNC_GROUP_OFFSETS_ENABLED]:
            schedule.repeat("group offsets", self.sync_groups, settings[keys.SYNC_GROUP_OFFSETS_INTERVAL_SECONDS])

    def refresh_groups(self) -> Iterable[str]:
        """Find the groups to follow: those accepted by the filter that have read an accepted topic.

        A share group is followed by its name alone: its topics are read when its offsets are synced.
        """
        listed, issue, others = self._source_groups.groups_answered()
        # No broker lists the groups of a coordinator that is unavailable: those followed before are requested by name.
        known = sorted({*filter(is_group_name, listed), *self.groups})
        not_names = [each for each in (*listed, *others) if not is_group_name(each)]
        unusable = unusable_sentence(self.flow.source, "groups", not_names)
        taken = within_matching_time(known, _GROUP_KEYS, self.flow.source)
        named = [group for group in taken if self._names.accepts(group)]
        reported = self._committed(named)
        shared = [group for group, other in others.items() if other.type is GroupType.SHARE and is_group_name(group)]
        taken = within_matching_time(shared, _GROUP_KEYS, self.flow.source)
        shares = {group for group in taken if self._names.accepts(group)}
        seen = [*named, *shares]
        hidden = hidden_groups(self._source, wanted_groups(self._settings), seen) if issue is None else ()
        unknown = reported.refused.keys() & self.groups
        found = tuple(sorted({group for group, offsets in reported.of.items() if offsets} | unknown))
        new = sorted(set(found) - set(self.groups))
        if new:
            log.info("%s: following %s, new: %s", self.flow, counted(len(found), "consumer group"), ", ".join(new[:10]))
        self.groups = found
        if self._settings[keys.SHARE_GROUPS_ENABLED]:
            gone = () if issue is None else self.share_groups
            self.share_groups = tuple(sorted(shares.union(gone)))
        return (*unusable, *hidden, *([] if issue is None else [str(issue)]), *reported.issues)

    def _committed(self, groups: list[str]) -> GroupAnswers[dict[TopicPartition, CommittedOffset]]:
        """Return the committed offsets of accepted topics, and why those of a group are unknown."""
        reported = self._source_groups.committed_answered(groups)
        counting = {
            group: {
                tp: offset for tp, offset in offsets.items() if self._counts(tp.topic) or self._reverse.original(tp)
            }
            for group, offsets in reported.of.items()
        }
        return reported._replace(of=counting)

    def _counts(self, topic: str) -> bool:
        return is_topic_name(topic) and self._rules.names.accepts(topic)

    def emit(self) -> Iterable[str]:
        """Translate the offsets of every group and write new checkpoints."""
        began_at = time.monotonic()
        # Offsets first: the syncs read after them then reach at least as far as the groups did.
        reported = self._committed(list(self.groups))
        self._learn_syncs()
        issues = self._learn_reverse_syncs(tp for offsets in reported.of.values() for tp in offsets)
        unknown = {group: self._read[group] for group in reported.refused if group in self._read}
        self._read = unknown | {group: set(map(self._remote, offsets)) for group, offsets in reported.of.items()}
        fresh = [
            checkpoint for group, offsets in reported.of.items() for checkpoint in self._translated(group, offsets)
        ]
        fresh = [self._marked(each) for each in (*fresh, *self._with_unsaved_marks(fresh))]
        is_complete = False
        try:
            self._write(fresh, began_at)
            is_complete = not reported.refused and not issues
        finally:  # what was read is known also if nothing could be written
            found = {group: self._as_read(group, offsets) for group, offsets in reported.of.items() if offsets}
            self.status.publish(found, (*found, *reported.refused), is_complete=is_complete)
        self._noted.note({"group": c.group, "topic": c.tp.topic, "partition": c.tp.partition} for c in fresh)
        self.checkpoints_written += len(fresh)
        return (*reported.issues, *issues)

    def _write(self, fresh: list[Checkpoint], began_at: float) -> None:
        """Write checkpoints of a step that began at this time."""
        records = [OwnRecord(*encode_checkpoint(each), encode_checkpoint_headers(each)) for each in fresh]
        write_records(self._target_clients.records, self._topic, records, self._check, timeout_s=STEP_TIMEOUT_S)
        for checkpoint in fresh:
            self._known.add(checkpoint)
        self._moved.saved((each.group, each.tp) for each in fresh)
        self.status.wrote(fresh, began_at)
        self._check()

    def _as_read(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> list[ReadPartition]:
        written = self._known.of(group)
        remotes = {tp: self._remote(tp) for tp in offsets}
        return [
            ReadPartition(tp, remotes[tp], committed, written.get(remotes[tp]), self._translator(tp))
            for tp, committed in offsets.items()
        ]

    def _marked(self, checkpoint: Checkpoint) -> Checkpoint:
        is_first = not self._known.has(checkpoint.group, checkpoint.tp)
        return checkpoint._replace(moved=self._moved.mark(checkpoint.group, checkpoint.tp, is_first=is_first))

    def _with_unsaved_marks(self, fresh: list[Checkpoint]) -> list[Checkpoint]:
        """Return checkpoints that are written again because what group sync saves with them has changed."""
        due = {(each.group, each.tp) for each in fresh}
        unsaved = sorted(self._moved.unsaved - due)
        written = (self._known.of(group).get(tp) for group, tp in unsaved)
        return [checkpoint for checkpoint in written if checkpoint is not None]

    def _learn_syncs(self) -> None:
        self._syncs.learn(self._check)
        for tp in self._syncs.known.take_replaced_logs():
            self._known.log_replaced(remote_partition(self._rules, tp))

    def _learn_reverse_syncs(self, read: Iterable[TopicPartition]) -> list[str]:
        """Follow the reverse flow's offset syncs if a group reads its copies; why that failed, if so."""
        if not any(map(self._reverse.original, read)):
            return []
        try:
            self._reverse.learn(self._check)
        except ClusterError as error:
            return [str(error)]
        for original in self._reverse.known.take_replaced_logs():
            self._known.log_replaced(original)
        return []

    def _remote(self, tp: TopicPartition) -> TopicPartition:
        return self._reverse.original(tp) or remote_partition(self._rules, tp)

    def _translated(self, group: str, offsets: dict[TopicPartition, CommittedOffset]) -> list[Checkpoint]:
        due = (
            self._known.due(self._translator(tp), group, tp, self._remote(tp), committed)
            for tp, committed in offsets.items()
        )
        return [checkpoint for checkpoint in due if checkpoint is not None]

    def _translator(self, tp: TopicPartition) -> Translator:
        if self._reverse.original(tp):
            return InverseMap(self._reverse.known, self._reverse.original)
        return self._syncs.known

    def sync_groups(self) -> Iterable[str]:
        """Move the groups on the target to where they are on the source; those in use are left to their users."""
        followed = [group for group in self.groups if self._known.of(group)]
        if not followed and not self.share_groups:
            return ()
        there = self._target_groups.groups_answered()
        return (
            *self._sync_of_type(GroupType.CONSUMER, followed, there, self._move),
            *self._sync_of_type(GroupType.SHARE, self._concerned(self.share_groups, there), there, self._move_shares),
        )

    def _concerned(self, shares: Iterable[str], there: ListedGroups) -> list[str]:
        """Leave out share groups whose names are taken on the target if they read no topic of this flow."""
        listed = list(shares)
        taken = [group for group in listed if name_clash(GroupType.SHARE, there.types.get(group), self.flow.target)]
        read = self._source_groups.offsets_of(taken, dict.fromkeys(taken, GroupType.SHARE)).of if taken else {}
        others = {group for group, offsets in read.items() if not any(self._counts(tp.topic) for tp in offsets)}
        return [group for group in listed if group not in others]

    def _sync_of_type(
        self, type_: GroupType, groups: list[str], there: ListedGroups, move: Callable[[dict[str, str]], list[str]]
    ) -> list[str]:
        """Move the groups of one type; why some were not moved. A name that another type has there is not free."""
        clashes = {group: name_clash(type_, there.types.get(group), self.flow.target) for group in groups}
        issues = [f"the {type_} group '{group}' is not moved: {why}" for group, why in clashes.items() if why]
        states = self._target_groups.states_answered([group for group in groups if not clashes[group]], there)
        movable = [(group, state) for group, state in states.of.items() if is_movable(state)]
        self._look_at_active(type_, [group for group, state in states.of.items() if not is_movable(state)])
        chunks = (dict(movable[at : at + _MOVED_AT_ONCE]) for at in range(0, len(movable), _MOVED_AT_ONCE))
        return [*issues, *states.issues, *(words for chunk in chunks for words in move(chunk))]

    def _move_shares(self, groups: dict[str, str]) -> list[str]:
        """Move share groups, given by their states, that had no members a moment ago."""
        types = dict.fromkeys(groups, GroupType.SHARE)
        # Offsets first, as in `emit`.
        read = self._source_groups.offsets_of(list(groups), types)
        self._learn_syncs()
        committed = self._target_groups.offsets_of(list(read.of), types)
        known = self._syncs.known
        positions = {group: share_positions(known, self._rules, group, read.of[group]) for group in committed.of}
        return [
            *self._share_refusals(read),
            *self._share_refusals(committed),
            *self._set_all(GroupType.SHARE, groups, positions, committed.of),
        ]

    def _share_refusals(self, answer: GroupAnswers[dict[TopicPartition, CommittedOffset]]) -> list[str]:
        """The refusals; a cluster that cannot have share groups is reported once, as nothing can be tried again."""
        unsupported = [refusal for refusal in answer.refusals if _is_unsupported(refusal)]
        for refusal in unsupported:
            self._once.report(logging.WARNING, f"{self.flow}: {refusal}")
        return [str(refusal) for refusal in answer.refusals if refusal not in unsupported]

    def _move(self, groups: dict[str, str]) -> list[str]:
        """Move groups, given by their states, that had no members a moment ago; why some were not moved."""
        committed = self._target_groups.committed_answered(list(groups))
        checkpoints = {group: self._checkpoints_read(group) for group in committed.of}
        return [*committed.issues, *self._set_all(GroupType.CONSUMER, groups, checkpoints, committed.of)]

    def _set_all(
        self,
        type_: GroupType,
        states: dict[str, str],
        checkpoints: dict[str, list[Checkpoint]],
        committed: dict[str, dict[TopicPartition, CommittedOffset]],
    ) -> list[str]:
        """Set the offsets of groups to their checkpoints if the rule allows it; why some were not set."""
        concerned = {group: (*wanted, *self._known.of(group).values()) for group, wanted in checkpoints.items()}
        logs = self._bounds(concerned, committed)
        issues: list[str] = []
        for group, wanted in checkpoints.items():
            is_own = type_ is GroupType.CONSUMER and self._own(group, committed[group], logs)
            offsets = plan_group_sync(wanted, committed[group], states[group], logs, consumes_there=is_own)
            if offsets:
                self._check()
                issues += self._set(group, type_, offsets)
        return issues

    def _bounds(
        self,
        checkpoints: Mapping[str, Iterable[Checkpoint]],
        committed: dict[str, dict[TopicPartition, CommittedOffset]],
    ) -> dict[TopicPartition, LogBounds]:
        return log_bounds(self._target, unsettled_partitions(checkpoints, committed))

    def _look_at_active(self, type_: GroupType, groups: list[str]) -> None:
        """Note who has committed the offsets of groups that have members on the target, and report these groups once.

        While a group has members, only they commit: a change that is seen later is known to be theirs.
        """
        if type_ is not GroupType.CONSUMER or not groups:
            return
        found = self._target_groups.committed_answered(groups).of
        logs = self._bounds({group: self._known.of(group).values() for group in found}, found)
        for group, committed in found.items():
            self._own(group, committed, logs)
            self._report_both_sides(group, f"it has members on '{self.flow.target}'")

    def _own(
        self,
        group: str,
        committed: dict[TopicPartition, CommittedOffset],
        logs: dict[TopicPartition, LogBounds],
    ) -> bool:
        """Return whether a group's consumers on the target have committed offsets; such a group is reported once."""
        policy = self._rules.policy
        own = self._moved.own(
            *(group, committed, self._known.of(group).values(), logs),
            lambda topic: policy.topic_source(topic) is not None,
        )
        if own:
            why = f"its consumers on '{self.flow.target}' have committed offsets of {counted(len(own), 'partition')}"
            self._report_both_sides(group, why)
        return bool(own)

    def _report_both_sides(self, group: str, why: str) -> None:
        if group in self._on_both_sides:
            return
        self._on_both_sides.add(group)
        log.warning(
            "%s: the group '%s' is on both clusters, '%s' and '%s' (%s); group sync leaves its offsets there to them."
            " If it is one group that has moved, run 'heliograph failover' or 'failback'; if not, give the two groups"
            " different names, or exclude it (groups.exclude)",
            *(self.flow, group, *self.flow, why),
        )

    def _checkpoints_read(self, group: str) -> list[Checkpoint]:
        """Return a group's checkpoints of those partitions that it still reads at the source."""
        read = self._read.get(group, set())
        return [checkpoint for tp, checkpoint in self._known.of(group).items() if tp in read]

    def _set(self, group: str, type_: GroupType, offsets: dict[TopicPartition, CommittedOffset]) -> list[str]:
        """Set a group's offsets; why that failed, if so. The broker refuses where it has got members meanwhile."""
        self._moved.setting(group, offsets)
        try:
            refused = self._target_groups.set_offsets(group, type_, offsets)
            self._moved.set(group, offsets.keys() - refused.keys())
        except GroupActiveError:
            log.info("%s: the group '%s' is in use on '%s'; it keeps its offsets", self.flow, group, self.flow.target)
            return []
        except ClusterError as error:
            return [str(error)]
        return [f"the group '{group}' cannot be moved on {tp}: {why}" for tp, why in list(refused.items())[:1]]


def _is_unsupported(refusal: ClusterError) -> bool:
    return isinstance(refusal, BrokerError) and refusal.code == UNSUPPORTED_VERSION

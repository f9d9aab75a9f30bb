"""The checkpoint connector's work, step by step: follow groups, translate offsets, write checkpoints, move groups.

Nothing here knows threads; `control_loop` calls the steps on their intervals. State is what the topics say: checkpoints
are read once at the beginning, offset syncs are followed.

Invariants:
A. A checkpoint never points behind an unread record, and for a group that goes forward it never goes back.
B. A group on the target is moved only forward, and only while nobody uses it.
C. A group that is gone from the source is neither checkpointed nor moved any more; one that is followed and cannot be
   asked about now is not gone.
D. Once the loop is stopped nothing more is written: another may lead already, with newer checkpoints.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.errors import ClusterError, GroupActiveError
from heliograph.kafka.groups import GroupAdmin
from heliograph.kafka.log_ends import LATEST
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.record_writer import write_records
from heliograph.kafka.topic_log import LogTail, read_topic
from heliograph.mirror.checkpoints import WrittenCheckpoints, is_movable, plan_group_sync, remote_partition
from heliograph.mirror.filters import group_filter
from heliograph.mirror.flow_permissions import wanted_groups
from heliograph.mirror.foreign_names import is_group_name, is_topic_name, unusable_sentence
from heliograph.mirror.internal_topics import checkpoints_topic, offset_syncs_topic
from heliograph.mirror.offset_map import OffsetMap
from heliograph.model import TopicPartition
from heliograph.wire.mirror_records import decode_checkpoint, decode_offset_sync, encode_checkpoint
from heliograph.worker.clusters import Written, make_admin
from heliograph.worker.hidden import hidden_groups
from heliograph.worker.internal_topics import ensure_internal_topic, ensure_offset_syncs_topic
from heliograph.worker.matching_time import within_matching_time
from heliograph.worker.noted_offsets import NotedOffsets
from heliograph.worker.rules import topic_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.config.mirror_config import MirrorConfig
    from heliograph.kafka.coordinators import Told
    from heliograph.model import Checkpoint, CommittedOffset, Flow
    from heliograph.worker.schedule import Schedule

log = logging.getLogger(__name__)

_GROUP_KEYS = f"{keys.GROUPS.name}, {keys.GROUPS_EXCLUDE.name}"
_MOVED_AT_ONCE = 100  # groups: the fewer, the less time between our look at a group's offsets and setting them


class CheckpointSync:
    """The groups of one flow."""

    def __init__(self, config: MirrorConfig, flow: Flow) -> None:
        self.flow = flow
        self.groups: tuple[str, ...] = ()
        self.checkpoints_written = 0
        self._settings = config.settings(flow)
        self._rules = topic_rules(config, flow)
        self._names = group_filter(self._settings)
        self._source = make_admin(config, flow.source, flow)
        self._written = Written(config, flow)
        self._target = self._written.target
        self._noted = NotedOffsets(config, flow, self._written, "checkpoint")
        self._source_groups = GroupAdmin(self._source)
        self._target_groups = GroupAdmin(self._target, "READ")
        self._topic = TopicPartition(checkpoints_topic(self._settings).name, 0)
        is_at_source = self._settings[keys.OFFSET_SYNCS_LOCATION] == "source"
        syncs_tp = TopicPartition(offset_syncs_topic(self._settings).name, 0)
        self._holder = self._source if is_at_source else self._target
        self._tail = LogTail(self._holder, syncs_tp)
        self._restarts = 0
        self._map = OffsetMap()
        self._known = WrittenCheckpoints()
        self._read: dict[str, set[TopicPartition]] = {}
        self._check: Callable[[], None] = lambda: None

    @property
    def written(self) -> dict[str, int]:
        """Checkpoints written since the start, by topic."""
        return {self._topic.topic: self.checkpoints_written}

    def ask_with(self, check: Callable[[], None]) -> None:
        """Call `check` before each write; it raises where nothing more is to be written."""
        self._check = check

    def close(self) -> None:
        """Leave the clusters."""
        self._source.close()
        self._written.close()

    def begin(self) -> Iterable[str]:
        """Make the topics where they are missing, and learn which checkpoints were written before."""
        ensure_offset_syncs_topic(self._holder, self._settings)
        for holder in self._written.holders:
            ensure_internal_topic(
                holder,
                checkpoints_topic(self._settings),
                is_explicit_factor=keys.CHECKPOINTS_REPLICATION_FACTOR in self._settings,
                factor_key=keys.CHECKPOINTS_REPLICATION_FACTOR.name,
            )
        records = read_topic(self._target, self._topic.topic)
        decoded = (decode_checkpoint(record.key, record.value) for record in records)
        self._known = WrittenCheckpoints(checkpoint for checkpoint in decoded if checkpoint is not None)
        return ()

    def plan(self, schedule: Schedule) -> None:
        """Groups, then checkpoints, then the groups on the target, each as often as the settings say."""
        settings = self._settings
        is_refreshed = settings[keys.REFRESH_GROUPS_ENABLED]  # where not, the groups of the start are followed
        refresh_s = settings[keys.REFRESH_GROUPS_INTERVAL_SECONDS] if is_refreshed else math.inf
        schedule.repeat("groups", self.refresh_groups, refresh_s)
        schedule.repeat("checkpoints", self.emit, settings[keys.EMIT_CHECKPOINTS_INTERVAL_SECONDS])
        if settings[keys.SYNC_GROUP_OFFSETS_ENABLED]:
            schedule.repeat("group offsets", self.sync_groups, settings[keys.SYNC_GROUP_OFFSETS_INTERVAL_SECONDS])

    def refresh_groups(self) -> Iterable[str]:
        """Which groups to follow: those the filter takes that have read a topic the filter takes."""
        listed, trouble = self._source_groups.told_groups()
        # Nobody lists the groups of a coordinator that is away, so those followed before are asked about by name.
        known = sorted({*filter(is_group_name, listed), *self.groups})
        unusable = unusable_sentence(self.flow.source, "groups", [each for each in listed if not is_group_name(each)])
        taken = within_matching_time(known, _GROUP_KEYS, self.flow.source)
        named = [group for group in taken if self._names.accepts(group)]
        told = self._committed(named)
        hidden = hidden_groups(self._source, wanted_groups(self._settings), named) if trouble is None else ()
        unknown = told.refused.keys() & self.groups
        found = tuple(sorted({group for group, offsets in told.of.items() if offsets} | unknown))
        new = sorted(set(found) - set(self.groups))
        if new:
            log.info("%s: following %d consumer group(s), new: %s", self.flow, len(found), ", ".join(new[:10]))
        self.groups = found
        return (*unusable, *hidden, *([] if trouble is None else [str(trouble)]), *told.troubles)

    def _committed(self, groups: list[str]) -> Told[dict[TopicPartition, CommittedOffset]]:
        """Committed offsets of topics that count, and why those of a group are not known."""
        told = self._source_groups.told_committed(groups)
        counting = {
            group: {tp: offset for tp, offset in offsets.items() if self._counts(tp.topic)}
            for group, offsets in told.of.items()
        }
        return told._replace(of=counting)

    def _counts(self, topic: str) -> bool:
        return is_topic_name(topic) and self._rules.names.accepts(topic)

    def emit(self) -> Iterable[str]:
        """Translate every group's offsets and write what is new."""
        # Offsets first: the syncs read after them then reach at least as far as the groups did.
        told = self._committed(list(self.groups))
        self._learn_syncs()
        unknown = {group: self._read[group] for group in told.refused if group in self._read}
        self._read = unknown | {
            group: {remote_partition(self._rules, tp) for tp in offsets} for group, offsets in told.of.items()
        }
        fresh = [checkpoint for group, offsets in told.of.items() for checkpoint in self._translated(group, offsets)]
        records = [OwnRecord(*encode_checkpoint(checkpoint)) for checkpoint in fresh]
        write_records(self._written.records, self._topic, records, self._check)
        for checkpoint in fresh:
            self._known.add(checkpoint)
        self._check()
        self._noted.note({"group": c.group, "topic": c.tp.topic, "partition": c.tp.partition} for c in fresh)
        self.checkpoints_written += len(fresh)
        return told.troubles

    def _learn_syncs(self) -> None:
        for record in self._tail.read_new():
            sync = decode_offset_sync(record.key, record.value, record.headers)
            if self._tail.restarts != self._restarts:
                self._restarts, self._map = self._tail.restarts, OffsetMap()
            if sync is not None:
                self._map.take(sync)
            self._check()  # a first read may take minutes
        for tp in self._map.take_begun_anew():
            self._known.log_begun_anew(remote_partition(self._rules, tp))

    def _translated(self, group: str, offsets: dict[TopicPartition, CommittedOffset]) -> list[Checkpoint]:
        due = (
            self._known.due(self._map, group, tp, remote_partition(self._rules, tp), committed)
            for tp, committed in offsets.items()
        )
        return [checkpoint for checkpoint in due if checkpoint is not None]

    def sync_groups(self) -> Iterable[str]:
        """Move the groups on the target to where their checkpoints are; those in use are left to their users."""
        states = self._target_groups.told_states([group for group in self.groups if self._known.of(group)])
        movable = [group for group, state in states.of.items() if is_movable(state)]
        chunks = (movable[at : at + _MOVED_AT_ONCE] for at in range(0, len(movable), _MOVED_AT_ONCE))
        return (*states.troubles, *(words for chunk in chunks for words in self._move(chunk)))

    def _move(self, groups: list[str]) -> list[str]:
        """Move groups that had no members a moment ago, by what they have committed now; why some were not moved."""
        committed = self._target_groups.told_committed(groups)
        wanted = {group: moves for group, offsets in committed.of.items() if (moves := self._moves(group, offsets))}
        tps = {tp for moves in wanted.values() for tp in moves}
        ends = self._target.known_offsets(list(tps), LATEST) if tps else {}
        troubles = list(committed.troubles)
        for group, moves in wanted.items():
            there = {tp: place for tp, place in moves.items() if tp in ends and place.offset <= ends[tp]}
            self._check()
            troubles += self._set(group, there)
        return troubles

    def _moves(
        self, group: str, committed: dict[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, CommittedOffset]:
        """Where a group without members would go; only partitions it still reads at the source count."""
        read = self._read.get(group, set())
        checkpoints = [checkpoint for tp, checkpoint in self._known.of(group).items() if tp in read]
        return plan_group_sync(checkpoints, committed, None)

    def _set(self, group: str, offsets: dict[TopicPartition, CommittedOffset]) -> list[str]:
        """Set a group's offsets; why that failed, if so. The broker refuses where it has got members meanwhile."""
        try:
            refused = self._target_groups.commit(group, offsets)
        except GroupActiveError:
            log.info("%s: the group '%s' is in use on '%s'; it keeps its offsets", self.flow, group, self.flow.target)
            return []
        except ClusterError as error:
            return [str(error)]
        return [f"the group '{group}' cannot be moved on {tp}: {why}" for tp, why in list(refused.items())[:1]]

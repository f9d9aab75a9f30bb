"""Decides which offsets of a group are written on the cluster it moves to.

Group sync writes offsets from checkpoints at each interval, `failover` and `failback` write them once. All three decide
by `decide_moves`: it alone answers whether an offset may be written. A *position* is the offset at which a group would
resume in one partition of that cluster; `position_on_target` and `position_on_source` translate it.

Invariants:
A. A position never passes an unread record, and no offset is written past the end of a log or before its start.
B. A valid offset is never set back; one past the end of its log is not valid. No offset of a group with members is
   written. Group sync sets none of a group whose consumers there have committed offsets.
C. `again` is an upper bound: at most so many of the records from the position on were read before. None: not known.
   Without a position, it is that of a consumer that begins at the earliest offset, or at the offset it has there.
D. An offset that the cluster refuses to commit is REFUSED, never SET.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from heliograph.model import Checkpoint, CommittedOffset, GroupType, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.mirror.groups.offset_map import Translator


# Kafka's names for the state of a group that has offsets but no members, and of one that does not exist.
EMPTY, DEAD = "Empty", "Dead"
CONSUMES_THERE = "its consumers there have committed offsets themselves"


class LogBounds(NamedTuple):
    """The first offset of a log, and the one after its last."""

    start: int
    end: int


class GroupPosition(NamedTuple):
    """The offset at which a group resumes in a partition; of the records from there on it has read `again` before.

    `to_come` records are not copied to that cluster yet, and may be among those; None: not known how many.
    """

    offset: int
    again: int | None
    metadata: str = ""
    to_come: int | None = 0

    def reads_again(self, log: LogBounds) -> int | None:
        """Return how many records the group reads again at most, of those that are in the log or come to it."""
        if self.again is None or self.to_come is None:
            return self.again
        return min(self.again, max(0, log.end - max(self.offset, log.start)) + self.to_come)


class UnknownPosition(NamedTuple):
    """A position that is not known; `read` is the highest number of records that the group can have read."""

    read: int | None
    why: str = "no offset sync or checkpoint covers its position"


class Outcome(Enum):
    """The decision about a group's offset in a partition."""

    SET = "set"
    STAYS = "stays"
    IMPOSSIBLE = "impossible"
    REFUSED = "refused"


class Move(NamedTuple):
    """The decision for one partition: `before` is the offset the group has there, `offset` the one it should have.

    `skipped` counts the records that a consumer without an offset skips at least, if it begins at the latest offset.
    """

    tp: TopicPartition
    outcome: Outcome
    before: int | None
    offset: int | None
    again: int | None
    why: str
    metadata: str = ""
    skipped: int | None = None

    @property
    def passed(self) -> int:
        """The number of offsets between the group's own offset there and the one it gets: it read them elsewhere."""
        if self.outcome is not Outcome.SET or self.before is None or self.offset is None:
            return 0
        return max(0, self.offset - self.before)

    @property
    def is_whole(self) -> bool:
        """True if the group has the offset it should have here, or gets it."""
        return self.outcome in (Outcome.SET, Outcome.STAYS)

    def refused(self, why: str) -> Move:
        """Return the move as one whose offset is not written."""
        return self._replace(outcome=Outcome.REFUSED, again=None, why=why)


# --- the rule ---------------------------------------------------------------------------------------------------------


def is_movable(state: str | None) -> bool:
    """Return whether a group in this state may get offsets: it has no members, or does not exist (None)."""
    return state in (None, EMPTY, DEAD)


def decide_moves(
    state: str | None,
    positions: Mapping[TopicPartition, GroupPosition | UnknownPosition | None],
    committed: Mapping[TopicPartition, CommittedOffset],
    logs: Mapping[TopicPartition, LogBounds],
    *,
    consumes_there: bool = False,
) -> tuple[Move, ...]:
    """Decide for each partition whether the group's offset is written.

    `state`, `committed` and `logs` are those of the cluster the group moves to; a position is None if it is not known.
    `consumes_there`: its consumers there have committed offsets themselves (`moved_offsets`); only group sync asks.
    """
    moves = [_decide_move(tp, position, committed.get(tp), logs.get(tp)) for tp, position in sorted(positions.items())]
    if consumes_there or not is_movable(state):
        why = _has_members(state) if not is_movable(state) else CONSUMES_THERE
        moves = [move.refused(why) if move.outcome is Outcome.SET else move for move in moves]
    return tuple(moves)


def _decide_move(
    tp: TopicPartition,
    position: GroupPosition | UnknownPosition | None,
    committed: CommittedOffset | None,
    log: LogBounds | None,
) -> Move:
    before = None if committed is None else committed.offset
    if position is None or isinstance(position, UnknownPosition):
        return _without_position(tp, position or UnknownPosition(None), before, log)
    outcome, offset, why = decide_offset(position.offset, before, log)
    again = None
    if log is not None and outcome is not Outcome.IMPOSSIBLE:
        again = position._replace(offset=offset).reads_again(log)
    return Move(tp, outcome, before, offset, again, why, position.metadata)


def _without_position(tp: TopicPartition, unknown: UnknownPosition, before: int | None, log: LogBounds | None) -> Move:
    """Return the move of a partition without a position, and what its consumers then read again or skip."""
    read, why = unknown
    if read is None or log is None:
        return Move(tp, Outcome.IMPOSSIBLE, before, None, None, why)
    begins_at = log.start if before is None or not log.start <= before <= log.end else before
    again = min(read, log.end - begins_at)
    skipped = max(0, log.end - log.start - read) if before is None else None
    if before is None:
        why += (
            f"; from the earliest offset it reads at most {again:,} again, from the latest it skips {skipped:,} or more"
        )
    return Move(tp, Outcome.IMPOSSIBLE, before, None, again, why, skipped=skipped)


def decide_offset(wanted: int, before: int | None, log: LogBounds | None) -> tuple[Outcome, int, str]:
    """Return the outcome for one offset, the offset the group then has, and the reason.

    An offset outside of the log would send a consumer to `auto.offset.reset`, by default past every record: so one
    before the log's start becomes the start (the records before it are gone), one past its end is not written, and one
    that the group has past its end counts as none.
    """
    if log is None:
        return Outcome.IMPOSSIBLE, wanted, "the topic does not exist, or has no leader"
    if wanted > log.end:
        return Outcome.IMPOSSIBLE, wanted, f"the log ends before it, at {log.end}; was the topic re-created?"
    offset = max(wanted, log.start)
    if before is None:
        return Outcome.SET, offset, "it has no offset there"
    if before > log.end:
        return Outcome.SET, offset, f"its offset there is past the end of the log, {log.end}"
    if before < offset:
        return Outcome.SET, offset, "its offset there is behind"
    why = "it is there already" if before == offset else "it is ahead there, and is not set back"
    return Outcome.STAYS, before, why


def _has_members(state: str | None) -> str:
    return f"it has active members there ({state}); stop them first"


def _offsets_to_set(moves: Iterable[Move]) -> dict[TopicPartition, CommittedOffset]:
    return {
        move.tp: CommittedOffset(move.offset, move.metadata)
        for move in moves
        if move.outcome is Outcome.SET and move.offset is not None
    }


# --- its two callers: group sync, failover and failback ---------------------------------------------------------------


def unsettled_partitions(
    checkpoints: Mapping[str, Iterable[Checkpoint]],
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
) -> set[TopicPartition]:
    """Return the partitions in which a group's offset on the target is not that of its checkpoint.

    Group sync looks up only their logs: in an idle interval it asks nothing.
    """
    return {
        each.tp
        for group, offsets in committed.items()
        for each in checkpoints.get(group, ())
        if each.tp not in offsets or offsets[each.tp].offset != each.downstream
    }


def valid_offsets(
    committed: Mapping[TopicPartition, CommittedOffset], logs: Mapping[TopicPartition, LogBounds]
) -> dict[TopicPartition, CommittedOffset]:
    """Return the offsets that are not past the end of their log: those others are of an earlier log."""
    return {tp: found for tp, found in committed.items() if tp not in logs or found.offset <= logs[tp].end}


def plan_group_sync(
    checkpoints: Iterable[Checkpoint],
    committed: Mapping[TopicPartition, CommittedOffset],
    state: str | None,
    logs: Mapping[TopicPartition, LogBounds],
    *,
    consumes_there: bool = False,
) -> dict[TopicPartition, CommittedOffset]:
    """Return the offsets to write for one group on the target, by its checkpoints."""
    positions = {each.tp: GroupPosition(each.downstream, None, each.metadata) for each in checkpoints}
    return _offsets_to_set(decide_moves(state, positions, committed, logs, consumes_there=consumes_there))


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The moves of one group; `refused` is the reason if the group is not moved at all."""

    group: str
    state: str
    moves: tuple[Move, ...]
    refused: str | None = None
    type: GroupType = GroupType.CONSUMER

    @property
    def offsets(self) -> dict[TopicPartition, CommittedOffset]:
        """The offsets to set."""
        return _offsets_to_set(self.moves)

    @property
    def wanted_count(self) -> int:
        """The number of offsets that would have to be set for the group to be wholly moved."""
        return sum(move.outcome is not Outcome.STAYS for move in self.moves)

    @property
    def again(self) -> int | None:
        """The number of records that the group reads again at most; None if that is not known of a partition."""
        counts = [move.again for move in self.moves]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def is_whole(self) -> bool:
        """True if the group has, or gets, its offset in every partition."""
        return self.refused is None and all(move.is_whole for move in self.moves)

    def without(self, refused: Mapping[TopicPartition, str]) -> GroupPlan:
        """Return the plan without the offsets that the cluster refused, each with its reason."""
        moves = (move.refused(refused[move.tp]) if move.tp in refused else move for move in self.moves)
        return replace(self, moves=tuple(moves))


def plan_group(
    group: str,
    state: str,
    positions: Mapping[TopicPartition, GroupPosition | UnknownPosition | None],
    committed: Mapping[TopicPartition, CommittedOffset],
    logs: Mapping[TopicPartition, LogBounds],
    why_nothing: str = "it has read nothing that this flow copies",
    type_: GroupType = GroupType.CONSUMER,
) -> GroupPlan:
    """Plan a group's failover or failback: `state`, `committed` and `logs` are those of the cluster it moves to.

    `positions` has every partition that the group would read there; `why_nothing` is the refusal if there is none.
    """
    moves = decide_moves(state, positions, committed, logs)
    refused = None if moves else why_nothing
    return GroupPlan(group, state, moves, refused if is_movable(state) else _has_members(state), type_)


# --- positions --------------------------------------------------------------------------------------------------------


def position_on_target(
    known: Translator,
    tp: TopicPartition,
    committed: CommittedOffset | None,
    checkpoint: Checkpoint | None,
) -> GroupPosition | None:
    """Return where a group resumes in the copy of `tp`; None if that is not known.

    `committed` is its offset on the source, None if the source is unavailable: its checkpoint is used then. A
    checkpoint also helps if the offset syncs cover the offset only roughly.
    """
    if committed is not None:
        upstream, metadata = committed.offset, committed.metadata
    elif checkpoint is not None:
        upstream, metadata = checkpoint.upstream, checkpoint.metadata
    else:
        return None
    downstream = known.translate(tp, upstream)
    if checkpoint is not None and known.contradicts(tp, checkpoint.upstream, checkpoint.downstream):
        checkpoint = None  # it points into an earlier log, and past unread records of this one
        downstream = None if downstream is None else max(downstream, 0)
    if downstream is None or downstream < 0:
        downstream = None
    elif _read_before(upstream, known.upstream_of(tp, downstream)) == 0:
        return GroupPosition(downstream, 0, metadata)
    is_of_use = checkpoint is not None and checkpoint.upstream <= upstream
    candidates = [downstream, checkpoint.downstream if checkpoint is not None and is_of_use else None]
    offset = max((candidate for candidate in candidates if candidate is not None), default=None)
    if offset is None:
        return None
    return _position_at(known, tp, offset, upstream, metadata)


def position_of_checkpoint(
    known: Translator, tp: TopicPartition, committed: CommittedOffset, checkpoint: Checkpoint
) -> GroupPosition:
    """Return where a group resumes whose offset on the target is that of its checkpoint; `to_come` is not known."""
    at = _position_at(known, tp, checkpoint.downstream, committed.offset, committed.metadata)
    return at._replace(to_come=None)


def position_on_source(known: Translator, tp: TopicPartition, committed: CommittedOffset) -> GroupPosition | None:
    """Return where a group that has read the copy of `tp` resumes in `tp` itself; None if that is not known."""
    upstream = known.upstream_of(tp, committed.offset)
    if upstream is None or upstream < 0:
        return None
    return GroupPosition(upstream, _read_before(committed.offset, known.translate(tp, upstream)), committed.metadata)


def _position_at(known: Translator, tp: TopicPartition, offset: int, upstream: int, metadata: str) -> GroupPosition:
    """Return the position at an offset on the target of a group that has read `tp` up to `upstream`."""
    return GroupPosition(offset, _read_before(upstream, known.upstream_of(tp, offset)), metadata)


def _read_before(read_to: int, position: int | None) -> int | None:
    """Return how many records lie between a position and the offset it stands for, both on the side that was read."""
    return None if position is None or position < 0 else max(0, read_to - position)

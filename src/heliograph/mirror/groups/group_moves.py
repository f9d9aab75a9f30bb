"""Where consumer groups go on when they move to the other cluster of a flow, and back home.

A *place* is where a group would go on in one partition of the cluster it moves to. It is found from what is known of
both sides; `plan_group` then decides, partition by partition, whether the group's offset there is set.

Invariants:
A. A place never passes an unread record, and a log that is shorter than a place gets no offset at all.
B. A plan never sets an offset back (one behind the end of its log is none), and sets none of a group with members.
C. `again` is never too small: so many of the records from the place on, at most, were read before. None: not known.
D. What is not set is never called set: a move that the cluster refuses is REFUSED from then on.


When a checkpoint is due, what it is about, and which offsets of a group on the target may follow it.

A *checkpoint* says: this group has read the source up to here, which on the target is there. MM2's rules, but for two
in which ours are stricter: the name of a topic that came from the target is the one it had there (MM2 takes the name
of its very beginning), and a group on the target is moved only where it has no members, and only forward (MM2 also
tries groups it knows nothing of, and leaves it to the broker to refuse).

Invariants: while a group only goes forward its checkpoints never go back, whatever translation says, as long as the
target's log is the same; a checkpoint that is known to point past an unread record is replaced; a group's offset on the
target is never set to a smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from heliograph.model import Checkpoint, CommittedOffset, GroupType, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.mirror.groups.offset_map import OffsetMap


# Kafka's words for a group without members that has offsets, and for one that is not there.
EMPTY, DEAD = "Empty", "Dead"


def is_movable(state: str | None) -> bool:
    """Whether a group in this state may get offsets from outside: it has no members, or is not there at all (None)."""
    return state in (None, EMPTY, DEAD)


def plan_group_sync(
    checkpoints: Iterable[Checkpoint],
    target_committed: Mapping[TopicPartition, CommittedOffset] | None,
    state: str | None,
) -> dict[TopicPartition, CommittedOffset]:
    """The offsets to set for one group on the target: those it lacks, and those behind its checkpoints."""
    if not is_movable(state):
        return {}
    there = target_committed or {}
    return {
        checkpoint.tp: CommittedOffset(checkpoint.downstream, checkpoint.metadata)
        for checkpoint in checkpoints
        if checkpoint.tp not in there or there[checkpoint.tp].offset < checkpoint.downstream
    }


class GroupPosition(NamedTuple):
    """Where a group goes on in a partition of the cluster it moves to; `again` of the records there it has read."""

    offset: int
    again: int | None
    metadata: str = ""


class LogBounds(NamedTuple):
    """The offsets a log has: from its first to behind its last."""

    start: int
    end: int


class Outcome(Enum):
    """What becomes of a group's offset in a partition."""

    SET = "set"
    STAYS = "stays"
    IMPOSSIBLE = "impossible"
    REFUSED = "refused"


class Move(NamedTuple):
    """The decision for one partition: `before` is the offset the group has there, `offset` the one it should have."""

    tp: TopicPartition
    outcome: Outcome
    before: int | None
    offset: int | None
    again: int | None
    why: str
    metadata: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the group has the offset it should have here, or gets it."""
        return self.outcome in (Outcome.SET, Outcome.STAYS)


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What a move does to one group; `refused` says why nothing is done at all."""

    group: str
    state: str
    moves: tuple[Move, ...]
    refused: str | None = None
    type: GroupType = GroupType.CONSUMER

    @property
    def offsets(self) -> dict[TopicPartition, CommittedOffset]:
        """The offsets to set."""
        return {
            move.tp: CommittedOffset(move.offset, move.metadata)
            for move in self.moves
            if move.outcome is Outcome.SET and move.offset is not None
        }

    @property
    def wanted_count(self) -> int:
        """How many offsets would have to be set for the group to be wholly moved."""
        return sum(move.outcome is not Outcome.STAYS for move in self.moves)

    @property
    def again(self) -> int | None:
        """How many records the group reads again at most; None where that is not known of a partition."""
        counts = [move.again for move in self.moves]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def is_whole(self) -> bool:
        """Whether the group has, or gets, its offset in every partition."""
        return self.refused is None and all(move.is_whole for move in self.moves)

    def without(self, refused: Mapping[TopicPartition, str]) -> GroupPlan:
        """What is left of the plan where these offsets are not set, and why."""
        moves = (_refuse(move, refused[move.tp]) if move.tp in refused else move for move in self.moves)
        return replace(self, moves=tuple(moves))


def place_on_target(
    known: OffsetMap,
    tp: TopicPartition,
    committed: CommittedOffset | None,
    checkpoint: Checkpoint | None,
) -> GroupPosition | None:
    """Where a group goes on in the copy of `tp`; None where nothing tells.

    `committed` is what it has committed on the source, None where the source cannot be asked: its checkpoint counts
    then. A checkpoint also helps where the offset syncs know the place only roughly.
    """
    if committed is not None:
        upstream, metadata = committed
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
    return GroupPosition(offset, _read_before(upstream, known.upstream_of(tp, offset)), metadata)


def place_at_home(known: OffsetMap, tp: TopicPartition, committed: CommittedOffset) -> GroupPosition | None:
    """Where a group that has read the copy of `tp` goes on in `tp` itself; None where nothing tells."""
    upstream = known.upstream_of(tp, committed.offset)
    if upstream is None or upstream < 0:
        return None
    return GroupPosition(upstream, _read_before(committed.offset, known.translate(tp, upstream)), committed.metadata)


def _read_before(position: int, place: int | None) -> int | None:
    """How many records lie between a place and the position it stands for, both on the side that was read."""
    return None if place is None or place < 0 else max(0, position - place)


def plan_group(
    group: str,
    state: str,
    places: Mapping[TopicPartition, GroupPosition | None],
    committed: Mapping[TopicPartition, CommittedOffset],
    logs: Mapping[TopicPartition, LogBounds],
    why_nothing: str = "it has read nothing that this flow copies",
    type_: GroupType = GroupType.CONSUMER,
) -> GroupPlan:
    """Decide about a group: `state`, `committed` and `logs` are those of the cluster it moves to.

    `places` has every partition that the group would read there, None where nothing tells its place; `why_nothing` is
    said where it has none.
    """
    moves = tuple(_move(tp, place, committed.get(tp), logs.get(tp)) for tp, place in sorted(places.items()))
    if not is_movable(state):
        refused = f"it has active members there ({state}); stop them first"
        plan = GroupPlan(group, state, moves, refused, type_)
        return plan.without(dict.fromkeys(plan.offsets, refused))
    return GroupPlan(group, state, moves, None if moves else why_nothing, type_)


def _refuse(move: Move, why: str) -> Move:
    return move._replace(outcome=Outcome.REFUSED, again=None, why=why)


def _move(
    tp: TopicPartition, place: GroupPosition | None, there: CommittedOffset | None, log: LogBounds | None
) -> Move:
    before = None if there is None else there.offset
    if place is None:
        return Move(tp, Outcome.IMPOSSIBLE, before, None, None, "nothing tells where it goes on")
    outcome, offset, why = _decide(place.offset, before, log)
    again = None
    if log is not None and outcome is not Outcome.IMPOSSIBLE and place.again is not None:
        again = min(place.again, max(0, log.end - offset))
    return Move(tp, outcome, before, offset, again, why, place.metadata)


def _decide(wanted: int, before: int | None, log: LogBounds | None) -> tuple[Outcome, int, str]:
    """What to do, with which offset, and why."""
    if log is None:
        return Outcome.IMPOSSIBLE, wanted, "the topic is not there, or has no leader"
    if wanted > log.end:
        return Outcome.IMPOSSIBLE, wanted, f"the log ends before it, at {log.end}: was it made anew?"
    offset = max(wanted, log.start)
    if before is None:
        return Outcome.SET, offset, "it has no offset there"
    if before > log.end:
        return Outcome.SET, offset, f"its offset there lies behind the end of the log, {log.end}"
    if before < offset:
        return Outcome.SET, offset, "its offset there is behind"
    return (
        Outcome.STAYS,
        before,
        "it is there already" if before == offset else "it is ahead there, and is not set back",
    )

"""One lane of fetching: the partitions read over one connection, and the fetch session (KIP-227) that goes with it.

A broker remembers the partitions of a session and where each is read, so a request names only what has changed and an
answer only what has news: a thousand idle partitions cost nothing. What we believe the broker remembers is `known`;
`dirty` holds the partitions for which that may be out of date. Nothing is sent from here: `next_request` says what a
request must carry.

Invariant: a partition that is not in `dirty` is in `known` with its place, or the session is new.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.kafka.fetcher import FetchPartition
    from heliograph.model import TopicPartition

_MOST_EPOCH = 2**31 - 1
_MOST_HALVINGS = 6
FINAL_EPOCH, FIRST_EPOCH = -1, 0
FIRST_HELD_BACK_WAIT_MS = 10


class Place(NamedTuple):
    """Where a partition is read, and under which leader (-1: whichever): another one refuses."""

    position: int
    leader_epoch: int


class LaneRequest(NamedTuple):
    """What a fetch carries: a partition's new place each, and those to forget. `is_whole`: nobody was held back."""

    session_id: int
    session_epoch: int
    changed: dict[TopicPartition, Place]
    forgotten: list[TopicPartition]
    is_whole: bool


@dataclass(slots=True)
class FetchLane:
    """The partitions of one connection to one broker."""

    node_id: int
    number: int
    members: dict[TopicPartition, FetchPartition] = field(default_factory=dict)
    known: dict[TopicPartition, Place] = field(default_factory=dict)
    dirty: dict[TopicPartition, None] = field(default_factory=dict)
    session_id: int = 0
    session_epoch: int = FIRST_EPOCH
    is_busy: bool = False
    not_before: float = 0.0
    held_back_wait_ms: int = FIRST_HELD_BACK_WAIT_MS
    halvings: int = 0  # of what is asked for at once, one for each answer that was lost

    def halved(self, size_bytes: int) -> int:
        """A size, smaller after answers were lost: what does not come through a bad line is not asked for as it was."""
        return max(1, size_bytes >> self.halvings)

    def lost(self) -> None:
        """An answer was lost."""
        self.halvings = min(self.halvings + 1, _MOST_HALVINGS)
        self.reset()

    def add(self, partition: FetchPartition) -> None:
        """Read a partition here from now on."""
        self.members[partition.tp] = partition
        self.dirty[partition.tp] = None

    def remove(self, tp: TopicPartition) -> None:
        """Read a partition here no more."""
        self.members.pop(tp, None)
        if tp in self.known:
            self.dirty[tp] = None
        else:
            self.dirty.pop(tp, None)

    def changed(self, tp: TopicPartition) -> None:
        """A partition has moved, or may have become wanted or unwanted."""
        if tp in self.members:
            self.dirty[tp] = None

    def is_still_wanted(self, partition: FetchPartition) -> bool:
        """Whether an answer is of the place where the partition is read now."""
        place = self.known.get(partition.tp)
        return partition.is_placed and place is not None and place.position == partition.position

    def to_the_back(self, tp: TopicPartition) -> None:
        """It brought records: others first next time, where the broker keeps no session that would see to it."""
        self.held_back_wait_ms = FIRST_HELD_BACK_WAIT_MS
        if tp in self.members:
            self.members[tp] = self.members.pop(tp)

    def next_request(self, now: float, wants: Callable[[FetchPartition], bool]) -> LaneRequest | None:
        """What to ask now; None where no partition is wanted."""
        changed: dict[TopicPartition, Place] = {}
        forgotten: list[TopicPartition] = []
        still_dirty: dict[TopicPartition, None] = {}
        is_whole = True
        for tp in self.dirty:
            partition = self.members.get(tp)
            if partition is not None and partition.is_placed and partition.retry_at <= now and wants(partition):
                assert partition.position is not None
                place = Place(partition.position, partition.leader_epoch)
                if self.known.get(tp) != place:
                    changed[tp] = place
                continue
            if partition is not None:
                still_dirty[tp] = None
                is_whole = is_whole and not partition.is_placed and partition.doubt is None
            if tp in self.known:
                forgotten.append(tp)
        if len(self.known) - len(forgotten) + len(changed.keys() - self.known.keys()) == 0:
            return None
        self.dirty = still_dirty
        for tp in forgotten:
            del self.known[tp]
        self.known.update(changed)
        if self.session_epoch == FIRST_EPOCH:
            return LaneRequest(self.session_id, FIRST_EPOCH, dict(self.known), [], is_whole)
        return LaneRequest(self.session_id, self.session_epoch, changed, forgotten, is_whole)

    def wait_ms(self, request: LaneRequest, most_ms: int) -> int:
        """How long the broker may wait for news. A partition that is held back may be wanted in a moment: then it must
        not keep the lane for the idle ones; but the longer that lasts, the longer it is likely to last.
        """
        if request.is_whole:
            self.held_back_wait_ms = FIRST_HELD_BACK_WAIT_MS
            return most_ms
        wait_ms, self.held_back_wait_ms = self.held_back_wait_ms, self.held_back_wait_ms * 2
        return min(wait_ms, most_ms)

    def answered(self, session_id: int) -> None:
        """The broker keeps a session, goes on with it, or (0) keeps none."""
        self.halvings = max(0, self.halvings - 1)
        self.session_id = session_id
        if session_id == 0:
            self.session_epoch = FIRST_EPOCH
        else:
            self.session_epoch = 1 if self.session_epoch == _MOST_EPOCH else self.session_epoch + 1

    def reset(self) -> None:
        """Begin a new session with the next request; naming the old one lets the broker drop it."""
        self.session_epoch = FIRST_EPOCH
        self.known.clear()
        self.dirty = dict.fromkeys(self.members)

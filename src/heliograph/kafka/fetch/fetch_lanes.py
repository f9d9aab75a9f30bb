"""One lane of fetching: the partitions read over one connection, and the fetch session (KIP-227) that goes with it.

A broker remembers the partitions of a session and where each is read, so a request names only what has changed and an
answer only what has news: a thousand idle partitions cost nothing. What we believe the broker remembers is `known`;
`dirty` holds the partitions for which that may be out of date. Nothing is sent from here: `next_request` says what a
request must carry.

Invariant: a partition that is not in `dirty` is in `known` with its place, or the session is new.


The lanes of a task: which one reads a partition, how much each may ask for, and whose turn it is.

A broker has one lane, or as many as the user wants. One that is far away has two at least: a connection stands still
from the end of an answer to the begin of the next, so two take turns.

Invariants:
A. A partition is on one lane, and stays there while it is read from the same broker.
B. All lanes may ask at the same time, each for its share of the memory; a lane that has asked is the last to ask again.
   So none starves, however many brokers there are and however little memory.

Fetches whole batches from the source: one request under way per lane, the next before the last is produced.

A partition's position only moves here, when its records have been handed on, so a lost answer is simply asked for
again. Where a partition has no position, or one outside of the log, both ends of the log are asked for and
`Listener.decide_position` says where to go on: nothing is skipped in silence. A partition is read from its leader, or
from the replica in our rack that the leader names (KIP-392). A request asks for more the longer the round trip is, or
the distance would cap the rate. Records that may be of another log than those before are not handed on (`continuity`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.kafka.backoff import Backoff
from heliograph.wire.batches.leader_epochs import UNKNOWN_EPOCH, EpochHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from heliograph.model import TopicPartition
    from heliograph.wire.batches.leader_epochs import Doubt


_MOST_EPOCH = 2**31 - 1
_MOST_HALVINGS = 6
FINAL_EPOCH, FIRST_EPOCH = -1, 0
FIRST_HELD_BACK_WAIT_MS = 10


class FetchPosition(NamedTuple):
    """Where a partition is read, and under which leader (-1: whichever): another one refuses."""

    position: int
    leader_epoch: int


class LaneRequest(NamedTuple):
    """What a fetch carries: a partition's new place each, and those to forget. `is_whole`: nobody was held back."""

    session_id: int
    session_epoch: int
    changed: dict[TopicPartition, FetchPosition]
    forgotten: list[TopicPartition]
    is_whole: bool


@dataclass(slots=True)
class FetchLane:
    """The partitions of one connection to one broker."""

    node_id: int
    number: int
    members: dict[TopicPartition, FetchPartition] = field(default_factory=dict)
    known: dict[TopicPartition, FetchPosition] = field(default_factory=dict)
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
        changed: dict[TopicPartition, FetchPosition] = {}
        forgotten: list[TopicPartition] = []
        still_dirty: dict[TopicPartition, None] = {}
        is_whole = True
        for tp in self.dirty:
            partition = self.members.get(tp)
            if partition is not None and partition.is_placed and partition.retry_at <= now and wants(partition):
                assert partition.position is not None
                place = FetchPosition(partition.position, partition.leader_epoch)
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


_OVER_A_LONG_WAY = 2
_LEAST_SHARE_BYTES = 64 * 1024


class FetchLanes:
    """All lanes of one fetcher, the one whose turn it is first."""

    def __init__(self, per_broker: int, memory_bytes: Callable[[], int]) -> None:
        self._per_broker = per_broker
        self._memory_bytes = memory_bytes
        self._far_brokers: set[int] = set()
        self._lanes: dict[tuple[int, int], FetchLane] = {}

    def __iter__(self) -> Iterator[FetchLane]:
        return iter(list(self._lanes.values()))

    @property
    def share_bytes(self) -> int:
        """What a request may ask for at most, so that there is room for one of every lane."""
        in_use = sum(bool(lane.members) for lane in self._lanes.values())
        return max(_LEAST_SHARE_BYTES, self._memory_bytes() // max(1, in_use))

    def put(self, partition: FetchPartition, node_id: int) -> FetchLane:
        """The lane of a partition that is read from this broker: where it is, or the one with the fewest."""
        lane = partition.lane
        if lane is not None and lane.node_id == node_id:
            return lane
        if lane is not None:
            lane.remove(partition.tp)
        partition.lane = min(self._to(node_id), key=lambda one: len(one.members))
        partition.lane.add(partition)
        return partition.lane

    def _to(self, node_id: int) -> list[FetchLane]:
        count = max(self._per_broker, _OVER_A_LONG_WAY if node_id in self._far_brokers else 1)
        return [self._lanes.setdefault((node_id, n), FetchLane(node_id, n)) for n in range(count)]

    def has_asked(self, lane: FetchLane) -> None:
        """Others first, next time."""
        key = (lane.node_id, lane.number)
        self._lanes[key] = self._lanes.pop(key)

    def spread(self, node_id: int) -> bool:
        """The broker is far away: whether that is news, and its partitions are on more lanes now."""
        if node_id in self._far_brokers or self._per_broker >= _OVER_A_LONG_WAY:
            return False
        (only,) = self._to(node_id)
        self._far_brokers.add(node_id)
        partitions = list(only.members.values())
        for partition in partitions:
            only.remove(partition.tp)
            partition.lane = None
        for partition in partitions:
            self.put(partition, node_id)
        return True


@dataclass(slots=True)
class FetchPartition:
    """One source partition being read."""

    tp: TopicPartition
    position: int | None
    topic_id: UUID | None = None
    lane: FetchLane | None = None
    read_replica: int | None = None
    read_replica_until: float = 0.0
    needs_ends: bool = True
    epochs: EpochHistory = field(default_factory=EpochHistory)
    leader_epoch: int = UNKNOWN_EPOCH
    checked_epoch: int = UNKNOWN_EPOCH  # of a batch that was found to continue what was handed on
    doubt: Doubt | None = None
    high_watermark: int = 0
    log_start: int = 0
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.1, most_s=2.0))
    issue: str | None = None

    @property
    def is_placed(self) -> bool:
        """Whether its position was compared with the log, as far as needed."""
        return not self.needs_ends and self.doubt is None

"""Lanes: the connections over which a task fetches, the partitions on each, and its fetch session (KIP-227).

A broker remembers the partitions of a session and the position of each, so a request names only what has changed and a
response only partitions with new data: a thousand idle partitions cost nothing. `FetchLane.known` is what the broker
remembers, as far as we know; `dirty` holds the partitions for which that may be out of date.

A broker has one lane, or as many as the user configures. A distant broker has at least two: a connection is idle from
the end of a response to the start of the next, so two take turns. Nothing is sent from here (`fetch_requests` does).

Invariants:
A. A partition that is not in `dirty` is in `known` with its position, or the session is new.
B. A partition is on one lane, and stays there while it is read from the same broker.
C. All lanes may have a request in flight at the same time, each for its share of the memory, and the lane that sent a
   request last is the last to send again. So none starves, however many brokers there are and however little memory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.kafka.backoff import Backoff
from heliograph.wire.batches.leader_epochs import UNKNOWN_EPOCH, EpochHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

    from heliograph.kafka.net.cluster import Cluster
    from heliograph.model import TopicPartition
    from heliograph.wire.batches.leader_epochs import Doubt


_FIRST_SESSION_EPOCH = 0
_MAX_SESSION_EPOCH = 2**31 - 1
_MAX_HALVINGS = 6
_FIRST_HELD_BACK_WAIT_MS = 10
_LANES_TO_DISTANT_BROKER = 2
_MIN_SHARE_BYTES = 64 * 1024


class FetchPosition(NamedTuple):
    """The offset at which a partition is read, and the epoch of its leader: a broker with another epoch refuses it."""

    position: int
    leader_epoch: int


class LaneRequest(NamedTuple):
    """The content of a fetch: partitions with a new position, and those that leave the session.

    `is_complete` is false if the listener holds back a partition of the lane.
    """

    session_id: int
    session_epoch: int
    changed: dict[TopicPartition, FetchPosition]
    forgotten: list[TopicPartition]
    is_complete: bool


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
    unknown_until: int = 0  # version of the metadata that shows whether its topic is still the same
    epochs: EpochHistory = field(default_factory=EpochHistory)
    leader_epoch: int = UNKNOWN_EPOCH
    checked_epoch: int = UNKNOWN_EPOCH  # of a batch that was found to continue what was delivered
    doubt: Doubt | None = None
    high_watermark: int = 0
    high_watermark_at: float | None = None  # when it was read
    stable_end: int | None = None  # the last stable offset, if only committed records are read
    log_start: int = 0
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.1, most_s=2.0))
    issue: str | None = None

    @property
    def is_placed(self) -> bool:
        """Return whether its position was compared with the log, as far as needed."""
        return not (self.needs_ends or self.unknown_until) and self.doubt is None

    @property
    def log_end_at(self) -> float | None:
        """The time at which the high watermark was last known to be the end of the log.

        A response leaves out the partitions of its session in which nothing has changed.
        """
        lane = self.lane
        if self.high_watermark_at is None or lane is None or not lane.session_id or self.tp not in lane.known:
            return self.high_watermark_at
        return max(self.high_watermark_at, lane.answered_at)

    def mark_dirty(self) -> None:
        """Have its lane compare it with the session before the next request."""
        if self.lane is not None:
            self.lane.mark_dirty(self.tp)


@dataclass(slots=True)
class FetchLane:
    """The partitions read over one connection to one broker, and their session."""

    node_id: int
    number: int
    members: dict[TopicPartition, FetchPartition] = field(default_factory=dict)
    known: dict[TopicPartition, FetchPosition] = field(default_factory=dict)
    dirty: dict[TopicPartition, None] = field(default_factory=dict)
    session_id: int = 0
    session_epoch: int = _FIRST_SESSION_EPOCH
    is_busy: bool = False
    not_before: float = 0.0
    held_back_wait_ms: int = _FIRST_HELD_BACK_WAIT_MS
    halvings: int = 0  # of the requested size, one for each lost response
    answered_at: float = 0.0

    def add(self, partition: FetchPartition) -> None:
        """Read a partition on this lane from now on."""
        self.members[partition.tp] = partition
        self.dirty[partition.tp] = None

    def remove(self, tp: TopicPartition) -> None:
        """Stop reading a partition on this lane."""
        self.members.pop(tp, None)
        if tp in self.known:
            self.dirty[tp] = None
        else:
            self.dirty.pop(tp, None)

    def mark_dirty(self, tp: TopicPartition) -> None:
        """Note that a partition has a new position, or may have become wanted or unwanted."""
        if tp in self.members:
            self.dirty[tp] = None

    def next_request(self, now: float, wants: Callable[[FetchPartition], bool]) -> LaneRequest | None:
        """Return the content of the next request and take it for sent; None if no partition is wanted."""
        changed: dict[TopicPartition, FetchPosition] = {}
        forgotten: list[TopicPartition] = []
        still_dirty: dict[TopicPartition, None] = {}
        is_complete = True
        for tp in self.dirty:
            partition = self.members.get(tp)
            if partition is not None and partition.is_placed and partition.retry_at <= now and wants(partition):
                assert partition.position is not None
                position = FetchPosition(partition.position, partition.leader_epoch)
                if self.known.get(tp) != position:
                    changed[tp] = position
                continue
            if partition is not None:
                still_dirty[tp] = None
                is_complete = is_complete and not partition.is_placed and partition.doubt is None
            if tp in self.known:
                forgotten.append(tp)
        if len(self.known) - len(forgotten) + len(changed.keys() - self.known.keys()) == 0:
            return None
        self.dirty = still_dirty
        for tp in forgotten:
            del self.known[tp]
        self.known.update(changed)
        if self.session_epoch == _FIRST_SESSION_EPOCH:
            return LaneRequest(self.session_id, _FIRST_SESSION_EPOCH, dict(self.known), [], is_complete)
        return LaneRequest(self.session_id, self.session_epoch, changed, forgotten, is_complete)

    def wait_ms(self, request: LaneRequest, max_wait_ms: int) -> int:
        """Return how long the broker may wait for new data.

        A partition that is held back may be wanted in a moment, and the idle ones must not keep the lane busy until
        then. The longer it is held back, the longer that is likely to last, so the wait doubles.
        """
        if request.is_complete:
            self.held_back_wait_ms = _FIRST_HELD_BACK_WAIT_MS
            return max_wait_ms
        wait_ms, self.held_back_wait_ms = self.held_back_wait_ms, self.held_back_wait_ms * 2
        return min(wait_ms, max_wait_ms)

    def halved(self, size_bytes: int) -> int:
        """Return a smaller size after lost responses: a bad line may not carry a response of the full size."""
        return max(1, size_bytes >> self.halvings)

    def is_current(self, partition: FetchPartition) -> bool:
        """Return whether a response is for the position at which the partition is read now."""
        position = self.known.get(partition.tp)
        return partition.is_placed and position is not None and position.position == partition.position

    def move_to_back(self, tp: TopicPartition) -> None:
        """Name a partition that brought records last next time, for brokers that keep no session and so no order."""
        self.held_back_wait_ms = _FIRST_HELD_BACK_WAIT_MS
        if tp in self.members:
            self.members[tp] = self.members.pop(tp)

    def on_response(self, session_id: int) -> None:
        """Note that the broker keeps, or continues, a session (0: it keeps none)."""
        self.answered_at = time.monotonic()
        self.halvings = max(0, self.halvings - 1)
        self.session_id = session_id
        if session_id == 0:
            self.session_epoch = _FIRST_SESSION_EPOCH
        else:
            self.session_epoch = 1 if self.session_epoch == _MAX_SESSION_EPOCH else self.session_epoch + 1

    def on_lost(self) -> None:
        """Note that a response was lost."""
        self.halvings = min(self.halvings + 1, _MAX_HALVINGS)
        self.reset()

    def reset(self) -> None:
        """Begin a new session with the next request; it names the old one so that the broker can drop it."""
        self.session_epoch = _FIRST_SESSION_EPOCH
        self.known.clear()
        self.dirty = dict.fromkeys(self.members)


class FetchLanes:
    """All lanes of one fetcher, in the order of their turns."""

    def __init__(self, per_broker: int, memory_bytes: Callable[[], int]) -> None:
        self._per_broker = per_broker
        self._memory_bytes = memory_bytes
        self._distant_brokers: set[int] = set()
        self._lanes: dict[tuple[int, int], FetchLane] = {}

    def __iter__(self) -> Iterator[FetchLane]:
        return iter(list(self._lanes.values()))

    @property
    def share_bytes(self) -> int:
        """The largest size of a request, so that there is room for one of every lane."""
        in_use = sum(bool(lane.members) for lane in self._lanes.values())
        return max(_MIN_SHARE_BYTES, self._memory_bytes() // max(1, in_use))

    def assign(self, partition: FetchPartition, node_id: int) -> FetchLane:
        """Put a partition on a lane to a broker: the lane that it is on, or the one with the fewest partitions."""
        lane = partition.lane
        if lane is not None and lane.node_id == node_id:
            return lane
        if lane is not None:
            lane.remove(partition.tp)
        partition.lane = min(self._lanes_to(node_id), key=lambda one: len(one.members))
        partition.lane.add(partition)
        return partition.lane

    def _lanes_to(self, node_id: int) -> list[FetchLane]:
        count = max(self._per_broker, _LANES_TO_DISTANT_BROKER if node_id in self._distant_brokers else 1)
        return [self._lanes.setdefault((node_id, n), FetchLane(node_id, n)) for n in range(count)]

    def move_to_back(self, lane: FetchLane) -> None:
        """Give the other lanes their turn before a lane that has sent a request."""
        key = (lane.node_id, lane.number)
        self._lanes[key] = self._lanes.pop(key)

    def spread(self, node_id: int) -> bool:
        """Spread the partitions of a distant broker over more lanes; return whether anything changed."""
        if node_id in self._distant_brokers or self._per_broker >= _LANES_TO_DISTANT_BROKER:
            return False
        (only,) = self._lanes_to(node_id)
        self._distant_brokers.add(node_id)
        partitions = list(only.members.values())
        for partition in partitions:
            only.remove(partition.tp)
            partition.lane = None
        for partition in partitions:
            self.assign(partition, node_id)
        return True


class FetchRetries:
    """Tracks the partitions whose last try failed: the issue of each, and when it is tried again."""

    def __init__(self, partitions: dict[TopicPartition, FetchPartition], cluster: Cluster) -> None:
        self._partitions = partitions
        self._cluster = cluster
        self._failing: set[TopicPartition] = set()

    def __bool__(self) -> bool:
        return bool(self._failing)

    def retry(self, tps: Iterable[TopicPartition], why: str) -> None:
        """Try partitions again after a pause, with new metadata."""
        now = time.monotonic()
        for tp in tps:
            partition = self._partitions.get(tp)
            if partition is not None:
                partition.retry_at = now + partition.backoff.next_pause_s()
                partition.issue = why
                self._failing.add(tp)
        self._cluster.want_metadata()

    def is_waiting(self, tp: TopicPartition, now: float) -> bool:
        """Return whether a partition's next try is not due yet."""
        partition = self._partitions.get(tp)
        return partition is not None and partition.retry_at > now

    def clear_issue(self, partition: FetchPartition) -> None:
        """Note that a broker has answered without an error; the next pause stays long until records have come."""
        partition.issue = None
        self._failing.discard(partition.tp)

    def reset_failures(self, partition: FetchPartition) -> None:
        """Note that a partition can be read: the next failure is its first."""
        self.clear_issue(partition)
        partition.backoff.reset()

    def remove(self, tp: TopicPartition) -> None:
        """Stop tracking a partition."""
        self._failing.discard(tp)

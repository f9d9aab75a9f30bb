"""Fetches whole batches from the source: one request under way per lane, the next before the last is produced.

A partition's position only moves here, when its records have been handed on, so a lost answer is simply asked for
again. Requests turn the order of their partitions, because a broker fills an answer from the front and only the first
partition is sure to get a batch larger than the limit. Where a partition has no position, or one outside of the log,
both ends of the log are asked for and `Listener.decide_position` says where to go on: nothing is skipped in silence.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse

from heliograph.kafka.backoff import Backoff
from heliograph.kafka.error_codes import Verdict, describe, verdict_of
from heliograph.model import TopicPartition
from heliograph.wire.fetch_response import MAX_VERSION, MIN_VERSION, FetchAnswer, decode_fetch_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.kafka.buffers import Buffer
    from heliograph.kafka.cluster import Cluster
    from heliograph.kafka.network import Network

_NEWEST_LIST_OFFSETS, _OLDEST_LIST_OFFSETS = 5, 1
_EARLIEST, _LATEST = -2, -1
_HELD_BACK_WAIT_MS = 10
_Topic = FetchRequest.FetchTopic
_Partition = FetchRequest.FetchTopic.FetchPartition


@dataclass(slots=True)
class FetchPartition:
    """One source partition being read."""

    tp: TopicPartition
    position: int | None
    lane: int = 0
    needs_ends: bool = True
    high_watermark: int = 0
    log_start: int = 0
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.1, most_s=2.0))
    trouble: str | None = None


class Listener(Protocol):
    """Who gets the records."""

    def on_records(self, partition: FetchPartition, records: memoryview, buffer: Buffer) -> None:
        """Take the records and move `partition.position`; hold the buffer for what is kept."""

    def decide_position(self, partition: FetchPartition, earliest: int, latest: int) -> int | None:
        """Where to read from, given the log's ends; None where the partition was failed."""

    def on_source_failed(self, tp: TopicPartition, why: str) -> None:
        """The partition cannot be read."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Kafka's consumer keys that shape a fetch."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 8 << 20
    partition_max_bytes: int = 1 << 20


class Fetcher:
    """Reads the partitions of one task from one cluster."""

    def __init__(
        self, cluster: Cluster, network: Network, limits: FetchLimits, listener: Listener, *, lanes: int = 1
    ) -> None:
        self.partitions: dict[TopicPartition, FetchPartition] = {}
        self.in_flight_requests = 0
        self._cluster = cluster
        self._network = network
        self._limits = limits
        self._listener = listener
        self._lanes = lanes
        self._busy: set[tuple[int, int]] = set()
        self._looking_up: set[TopicPartition] = set()
        self._ends: dict[TopicPartition, dict[int, int]] = defaultdict(dict)
        self._turns: dict[tuple[int, int], int] = defaultdict(int)

    def add(self, tp: TopicPartition, position: int | None) -> None:
        """Begin to read a partition, at a position or where `decide_position` says."""
        self.partitions[tp] = FetchPartition(tp, position, lane=len(self.partitions) % self._lanes)
        self._cluster.watch([tp.topic])

    def remove(self, tp: TopicPartition) -> None:
        """Read a partition no more; an answer under way is dropped when it comes."""
        self.partitions.pop(tp, None)

    @property
    def has_retries(self) -> bool:
        """Whether a partition waits for its next try or for a first answer."""
        return any(p.needs_ends or p.trouble for p in self.partitions.values())

    def pump(self, now: float, wants: Callable[[FetchPartition], bool], has_room: Callable[[], bool]) -> None:
        """Send the requests that are due."""
        by_lane: dict[tuple[int, int], list[FetchPartition]] = defaultdict(list)
        leaders = self._cluster.leaders
        for partition in self.partitions.values():
            if partition.retry_at > now:
                continue
            node_id = leaders.get(partition.tp)
            if node_id is None:
                self._cluster.want_metadata()
            else:
                by_lane[node_id, partition.lane].append(partition)
        for (node_id, lane), partitions in by_lane.items():
            lacking_ends = [p for p in partitions if p.needs_ends and p.tp not in self._looking_up]
            if lacking_ends:
                self._ask_for_ends(node_id, lacking_ends)
            if (node_id, lane) not in self._busy and has_room():
                placed = [p for p in partitions if not p.needs_ends]
                ready = [p for p in placed if wants(p)]
                if ready:
                    # A partition that is held back now may be wanted in a moment: the broker must not hold the lane for
                    # the idle ones meanwhile.
                    is_complete = len(ready) == len(placed)
                    max_wait_ms = self._limits.max_wait_ms if is_complete else _HELD_BACK_WAIT_MS
                    self._fetch(node_id, lane, ready, min(max_wait_ms, self._limits.max_wait_ms))

    def _fetch(self, node_id: int, lane: int, ready: list[FetchPartition], max_wait_ms: int) -> None:
        connection = self._cluster.connection_to(node_id, lane)
        if connection is None:
            return
        self._turns[node_id, lane] += 1
        shift = self._turns[node_id, lane] % len(ready)
        asked = {p.tp: p.position for p in ready[shift:] + ready[:shift]}
        by_topic: dict[str, list[Any]] = {}
        for tp, position in asked.items():
            by_topic.setdefault(tp.topic, []).append(
                _Partition(
                    partition=tp.partition,
                    current_leader_epoch=-1,
                    fetch_offset=position,
                    last_fetched_epoch=-1,
                    log_start_offset=-1,
                    partition_max_bytes=self._limits.partition_max_bytes,
                )
            )
        request = FetchRequest(
            version=connection.version_of(FetchRequest, MAX_VERSION, MIN_VERSION),
            replica_id=-1,
            max_wait_ms=max_wait_ms,
            min_bytes=self._limits.min_bytes,
            max_bytes=self._limits.max_bytes,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            forgotten_topics_data=[],
            rack_id="",
            topics=[_Topic(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()],
        )
        self._busy.add((node_id, lane))
        self.in_flight_requests += 1

        def fetched(answer: FetchAnswer, buffer: Buffer) -> None:
            self._done(node_id, lane)
            self._take(answer, buffer, asked)

        def lost(why: str) -> None:
            self._done(node_id, lane)
            self._retry(list(asked), why)

        connection.request(
            request,
            FetchResponse,
            fetched,
            lost,
            self._cluster.request_deadline,
            decode=decode_fetch_response,
            pooled=True,
        )
        self._network.flush(connection)

    def _done(self, node_id: int, lane: int) -> None:
        self._busy.discard((node_id, lane))
        self.in_flight_requests -= 1

    def _take(self, answer: FetchAnswer, buffer: Buffer, asked: dict[TopicPartition, int | None]) -> None:
        if answer.error_code:
            self._retry(list(asked), describe(answer.error_code))
            return
        for data in answer.partitions:
            tp = TopicPartition(data.topic, data.partition)
            partition = self.partitions.get(tp)
            if partition is None or partition.position != asked.get(tp):
                continue  # removed, or given another position, while the request was under way
            if data.error_code:
                self._refused(partition, data.error_code)
                continue
            partition.high_watermark = data.high_watermark
            partition.log_start = data.log_start_offset
            partition.trouble = None
            if data.records is not None:
                partition.backoff.reset()
                self._listener.on_records(partition, data.records, buffer)

    def _refused(self, partition: FetchPartition, code: int) -> None:
        verdict = verdict_of(code)
        if verdict is Verdict.OUT_OF_RANGE:
            partition.needs_ends = True
        elif verdict is Verdict.FAIL_PARTITION:
            self._listener.on_source_failed(partition.tp, f"the source broker refused to read it: {describe(code)}")
        else:
            self._retry([partition.tp], describe(code))

    def _retry(self, tps: Iterable[TopicPartition], why: str) -> None:
        now = time.monotonic()
        for tp in tps:
            partition = self.partitions.get(tp)
            if partition is not None:
                partition.retry_at = now + partition.backoff.next_pause_s()
                partition.trouble = why
        self._cluster.want_metadata()

    def _ask_for_ends(self, node_id: int, partitions: list[FetchPartition]) -> None:
        connection = self._cluster.connection_to(node_id)
        if connection is None:
            return
        version = connection.version_of(ListOffsetsRequest, _NEWEST_LIST_OFFSETS, _OLDEST_LIST_OFFSETS)
        tps = [p.tp for p in partitions]
        self._looking_up.update(tps)
        for timestamp in (_EARLIEST, _LATEST):
            by_topic: dict[str, list[Any]] = {}
            for tp in tps:
                by_topic.setdefault(tp.topic, []).append(
                    ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                        partition_index=tp.partition, current_leader_epoch=-1, timestamp=timestamp
                    )
                )
            request = ListOffsetsRequest(
                version=version,
                replica_id=-1,
                isolation_level=0,
                topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=ps) for name, ps in by_topic.items()],
            )

            def answered(answer: Any, _buffer: Buffer, timestamp: int = timestamp) -> None:
                self._learn_ends(answer, timestamp)

            def lost(why: str) -> None:
                self._looking_up.difference_update(tps)
                self._retry(tps, why)

            connection.request(request, ListOffsetsResponse, answered, lost, self._cluster.request_deadline)
        self._network.flush(connection)

    def _learn_ends(self, answer: Any, timestamp: int) -> None:
        for topic in answer.topics:
            for data in topic.partitions:
                tp = TopicPartition(topic.name, data.partition_index)
                partition = self.partitions.get(tp)
                if tp not in self._looking_up:
                    continue  # the other end's answer was an error: both ends are asked for again
                ends = self._ends[tp]
                if partition is None:
                    self._forget_lookup(tp)
                elif data.error_code:
                    self._forget_lookup(tp)
                    self._refused(partition, data.error_code)
                else:
                    ends[timestamp] = data.offset
                    if len(ends) == 2:
                        self._forget_lookup(tp)
                        self._place(partition, ends[_EARLIEST], ends[_LATEST])

    def _forget_lookup(self, tp: TopicPartition) -> None:
        self._looking_up.discard(tp)
        self._ends.pop(tp, None)

    def _place(self, partition: FetchPartition, earliest: int, latest: int) -> None:
        partition.log_start, partition.high_watermark = earliest, latest
        position = self._listener.decide_position(partition, earliest, latest)
        if position is not None:
            partition.position, partition.needs_ends, partition.trouble = position, False, None
            partition.backoff.reset()

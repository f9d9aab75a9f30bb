"""Reads small topics such as MM2's own, blocking: as a whole, as a tail, or as raw chunks of a log.

Only committed records are returned. Reads wait for missing leaders and open transactions, within the admin's time-out.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka.protocol.consumer import FetchRequest, FetchResponse

from heliograph.errors import BrokerError, ClusterError, CorruptBatchError
from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_SERVER_ERROR, Verdict, describe, verdict_of
from heliograph.kafka.net.response_decoder import SelfCheckedResponse
from heliograph.kafka.request_options import EARLIEST, LATEST, READ_COMMITTED
from heliograph.wire.batches.forward import ForwardOptions, prepare
from heliograph.wire.batches.log_records import LogRecord, records_of
from heliograph.wire.messages.fetch_response import (
    MAX_VERSION,
    MIN_VERSION,
    FetchResponseData,
    PartitionData,
    decode_fetch_response,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from heliograph.errors import BatchError
    from heliograph.kafka.admin.admin import Admin, EndOffsets
    from heliograph.model import TopicPartition


_CHUNK_BYTES = 8 << 20
_RETRY_PAUSE_S = 0.2
_AS_THEY_ARE = ForwardOptions(merge_below_bytes=0)


def read_topic(admin: Admin, topic: str) -> Iterator[LogRecord]:
    """Yield every committed record of a topic up to its present end, partition by partition; none if it is missing."""
    view = admin.view([topic])
    if view.error_codes.get(topic) == TOPIC_AUTHORIZATION_FAILED:  # it must not look as if it were missing
        sentence = f"'{admin.alias}' does not show us {topic}; the principal needs DESCRIBE and READ on it."
        raise BrokerError(sentence, TOPIC_AUTHORIZATION_FAILED)
    tps = [tp for tp in view.leaders if tp.topic == topic]
    starts = admin.list_offsets(tps, EARLIEST)
    # Not only up to the first open transaction: another task's must not hide what ours has committed after it.
    ends = admin.list_offsets(tps, LATEST)
    for tp in tps:
        yield from _read_partition(admin, tp, starts[tp], ends[tp])


class LogTail:
    """Follows one partition: each call returns the records since the last one.

    `recreations` counts how often the topic was found to have been deleted and created again: it has another id or,
    on brokers older than 2.8, which have no ids, the log ends before our position.
    """

    def __init__(self, admin: Admin, tp: TopicPartition) -> None:
        self.recreations = 0
        self._admin = admin
        self._tp = tp
        self._position = 0
        self._topic_id: UUID | None = None

    def read_new(self) -> Iterator[LogRecord]:
        """Yield the records up to the present end of the log; all records at first."""
        ends = self._admin.log_ends([self._tp])
        if self.is_recreated(ends):
            self.recreations += 1
            self.reset()
        yield from self.read_to(ends)

    def is_recreated(self, ends: EndOffsets) -> bool:
        """Return whether the ends are of another log than the one that was read."""
        topic_id = ends.topic_ids.get(self._tp.topic)
        has_other_id = topic_id is not None and self._topic_id is not None and topic_id != self._topic_id
        return has_other_id or ends.offsets[self._tp] < self._position

    def reset(self) -> None:
        """Read from the beginning again."""
        self._position = 0
        self._topic_id = None

    def read_to(self, ends: EndOffsets) -> Iterator[LogRecord]:
        """Yield the records up to a known end of the same log; sends no request if there are none."""
        self._topic_id = ends.topic_ids.get(self._tp.topic, self._topic_id)
        end = ends.offsets[self._tp]
        if end == self._position:
            return
        start = self._admin.list_offsets([self._tp], EARLIEST)[self._tp]
        for record in _read_partition(self._admin, self._tp, max(start, self._position), end):
            self._position = record.offset + 1
            yield record
        self._position = max(self._position, end)


def _read_partition(admin: Admin, tp: TopicPartition, position: int, end: int) -> Iterator[LogRecord]:
    deadline = time.monotonic() + admin.timeout_s
    while position < end:
        data = read_chunk(admin, tp, position, READ_COMMITTED)
        moved = position
        if data.records is not None:
            prepared = prepare(data.records, position, data.aborted, _AS_THEY_ARE)
            try:
                for piece in prepared.pieces:
                    yield from records_of(piece)
            except CorruptBatchError as error:
                raise _unreadable(admin, tp, error) from None
            if prepared.error is not None:
                raise _unreadable(admin, tp, prepared.error)
            moved = prepared.next_offset
        if moved > position:
            position, deadline = moved, time.monotonic() + admin.timeout_s
            continue
        if time.monotonic() > deadline:
            raise ClusterError(f"The cluster '{admin.alias}' does not let us read {tp} to its end.")
        time.sleep(_RETRY_PAUSE_S)


def _unreadable(admin: Admin, tp: TopicPartition, error: BatchError) -> ClusterError:
    return ClusterError(f"{tp} on '{admin.alias}' cannot be read at offset {error.offset}: {error}.")


def read_chunk(admin: Admin, tp: TopicPartition, position: int, isolation_level: int) -> PartitionData:
    """Return a few megabytes of a log from a position on; raises ClusterError if it cannot be read in time."""
    deadline = time.monotonic() + admin.timeout_s
    while True:
        view = admin.view([tp.topic])
        leader = view.leaders.get(tp, -1)
        code = UNKNOWN_SERVER_ERROR
        if leader in view.brokers:
            answer: FetchResponseData = admin.ask_at(
                view.brokers[leader],
                FetchRequest,
                _RawFetchResponse,
                lambda version: _request(version, tp, position, isolation_level),
                newest=MAX_VERSION,
                oldest=MIN_VERSION,
            )
            for data in answer.partitions:  # none if a quota makes us wait
                code = data.error_code
                if not code:
                    return data
            time.sleep(min(max(0, answer.throttle_time_ms / 1000), admin.timeout_s))
        if verdict_of(code) in (Verdict.FAIL_PARTITION, Verdict.OUT_OF_RANGE) or time.monotonic() > deadline:
            needs = " The principal needs READ on it." if code == TOPIC_AUTHORIZATION_FAILED else ""
            raise ClusterError(
                f"The cluster '{admin.alias}' does not let us read {tp} at {position}: {describe(code)}.{needs}"
            )
        time.sleep(_RETRY_PAUSE_S)


def _request(version: int, tp: TopicPartition, position: int, isolation_level: int) -> Any:
    topic_class = FetchRequest.FetchTopic
    partition = topic_class.FetchPartition(
        partition=tp.partition,
        current_leader_epoch=-1,
        fetch_offset=position,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=_CHUNK_BYTES,
    )
    return FetchRequest(
        version=version,
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=_CHUNK_BYTES,
        isolation_level=isolation_level,
        session_id=0,
        session_epoch=-1,
        forgotten_topics_data=[],
        rack_id="",
        topics=[topic_class(topic=tp.topic, partitions=[partition])],
    )


class _RawFetchResponse(SelfCheckedResponse):
    """Decodes without the copy that kafka-python's class of the same shape would make."""

    @staticmethod
    def decode(body: memoryview, *, version: int) -> FetchResponseData:
        return decode_fetch_response(body, version)

    @staticmethod
    def flexible_version_q(version: int) -> bool:
        return bool(FetchResponse.flexible_version_q(version))

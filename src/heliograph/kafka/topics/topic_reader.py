"""Reads small topics, such as MM2's own: whole, or as a tail that goes on where it was.

Only committed records are seen. Waits for leaders that are missing and for transactions that are open, but not for
ever.


Reads stretches of partitions' logs as raw fetch answers, blocking: for what is compared before a copy begins.
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

    from heliograph.errors import BatchError
    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import TopicPartition


_CHUNK_BYTES = 8 << 20
_RETRY_PAUSE_S = 0.2


class _RawFetchResponse(SelfCheckedResponse):
    """Decodes without a copy, where kafka-python's class of the same shape would make one."""

    @staticmethod
    def decode(body: memoryview, *, version: int) -> FetchResponseData:
        return decode_fetch_response(body, version)

    @staticmethod
    def flexible_version_q(version: int) -> bool:
        return bool(FetchResponse.flexible_version_q(version))


def read_chunk(admin: Admin, tp: TopicPartition, position: int, isolation_level: int) -> PartitionData:
    """What lies in a log from a position on, a few megabytes; raises ClusterError where it cannot be read in time."""
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
            for data in answer.partitions:  # none, where a quota makes us wait
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


_AS_THEY_ARE = ForwardOptions(merge_below_bytes=0)


def read_topic(admin: Admin, topic: str) -> Iterator[LogRecord]:
    """Every committed record of a (small) topic up to its end now, partition by partition; none where it is missing."""
    view = admin.view([topic])
    if view.error_codes.get(topic) == TOPIC_AUTHORIZATION_FAILED:  # it must not look as if it were missing
        sentence = f"'{admin.alias}' does not show us {topic}; the principal needs DESCRIBE and READ on it."
        raise BrokerError(sentence, TOPIC_AUTHORIZATION_FAILED)
    tps = [tp for tp in view.leaders if tp.topic == topic]
    starts = admin.list_offsets(tps, EARLIEST)
    # Not only up to the first open transaction: another task's must not hide what ours has committed behind it.
    ends = admin.list_offsets(tps, LATEST)
    for tp in tps:
        yield from _read_partition(admin, tp, starts[tp], ends[tp])


class LogTail:
    """Follows one partition: each call gives what has come since the last one.

    `restarts` counts how often the log was found to end before our place: it was deleted and created again.
    """

    def __init__(self, admin: Admin, tp: TopicPartition) -> None:
        self.restarts = 0
        self._admin = admin
        self._tp = tp
        self._position = 0

    def read_new(self) -> Iterator[LogRecord]:
        """The records up to the end there is now; the whole log at first."""
        yield from self.read_to(self._admin.list_offsets([self._tp], LATEST)[self._tp])

    def read_to(self, end: int) -> Iterator[LogRecord]:
        """The same for whoever knows the log's end: where nothing has come, the cluster is not asked."""
        if end == self._position:
            return
        if end < self._position:
            self.restarts += 1
            self._position = 0
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

"""Reads a whole small topic, such as MM2's own: every committed record up to the end there is now.

Waits for leaders that are missing, but not for ever; what a transaction has aborted is not seen.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka.errors import KafkaError
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.record import MemoryRecords

from heliograph.errors import BrokerError, ClusterError
from heliograph.kafka.admin import READ_COMMITTED, Admin
from heliograph.kafka.error_codes import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.model import Address, TopicPartition

_CHUNK_BYTES = 1 << 20
_RETRY_PAUSE_S = 0.2


class LogRecord(NamedTuple):
    """What is in a record of a small topic."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def read_topic(admin: Admin, topic: str) -> Iterator[LogRecord]:
    """Every committed record of a (small) topic up to its end now, partition by partition."""
    tps = [tp for tp in admin.view([topic]).leaders if tp.topic == topic]
    starts = admin.list_offsets(tps, timestamp=-2)
    # Not only up to the first open transaction: another task's must not hide what ours has committed behind it.
    ends = admin.list_offsets(tps, timestamp=-1)
    try:
        for tp in tps:
            yield from _read_partition(admin, tp, starts[tp], ends[tp])
    except KafkaError as error:
        raise ClusterError(f"The topic {topic} on '{admin.alias}' cannot be read: {error}.") from None


def _read_partition(admin: Admin, tp: TopicPartition, position: int, end: int) -> Iterator[LogRecord]:
    deadline = time.monotonic() + admin.timeout_s
    while position < end:
        view = admin.view([tp.topic])
        leader = view.leaders.get(tp, -1)
        data = fetch_partition(admin, view.brokers[leader], tp, position) if leader in view.brokers else None
        if data is None:
            if time.monotonic() > deadline:
                raise ClusterError(f"The cluster '{admin.alias}' does not let us read {tp} to its end.")
            time.sleep(_RETRY_PAUSE_S)
            continue
        moved = position
        for batch in _committed_batches(data):
            moved = max(moved, batch.base_offset + batch.last_offset_delta + 1)
            if not batch.is_control_batch:
                yield from (LogRecord(r.key, r.value, r.headers) for r in batch if r.offset >= position)
        if moved == position:
            raise ClusterError(f"The cluster '{admin.alias}' sent nothing that can be read of {tp} at {position}.")
        position, deadline = moved, time.monotonic() + admin.timeout_s


def fetch_partition(admin: Admin, broker: Address, tp: TopicPartition, position: int) -> Any:
    """One fetch of one partition; None where there is nothing or the broker cannot answer now."""

    def build(version: int) -> Any:
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
            isolation_level=READ_COMMITTED,
            session_id=0,
            session_epoch=-1,
            forgotten_topics_data=[],
            rack_id="",
            topics=[topic_class(topic=tp.topic, partitions=[partition])],
        )

    answer = admin.ask_at(broker, FetchRequest, FetchResponse, build, newest=11, oldest=4)
    if not answer.responses:  # a quota makes us wait
        time.sleep(answer.throttle_time_ms / 1000)
        return None
    data = answer.responses[0].partitions[0]
    if describe(data.error_code).endswith("AUTHORIZATION_FAILED"):
        sentence = f"'{admin.alias}' does not let us read {tp.topic}; the principal needs READ on it."
        raise BrokerError(sentence, data.error_code)
    return data if not data.error_code and data.records else None


def _committed_batches(data: Any) -> Iterator[Any]:
    """The batches of a fetched partition; aborted ones come back without records, as control batches do."""
    waiting = sorted((t.first_offset, t.producer_id) for t in data.aborted_transactions or ())
    aborted: set[int] = set()
    batches = MemoryRecords(bytes(data.records))
    while (batch := batches.next_batch()) is not None:
        while waiting and waiting[0][0] <= batch.base_offset:
            aborted.add(waiting.pop(0)[1])
        if batch.is_control_batch:
            aborted.discard(batch.producer_id)
        if batch.is_control_batch or not (batch.is_transactional and batch.producer_id in aborted):
            yield batch
        else:
            yield _Skipped(batch.base_offset, batch.last_offset_delta)


class _Skipped(NamedTuple):
    """An aborted batch: only its place counts."""

    base_offset: int
    last_offset_delta: int
    is_control_batch: bool = True

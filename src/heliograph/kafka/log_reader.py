"""Reads stretches of partitions' logs as raw fetch answers, blocking: for what is compared before a copy begins."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka.protocol.consumer import FetchRequest, FetchResponse

from heliograph.errors import ClusterError
from heliograph.kafka.error_codes import Verdict, describe, verdict_of
from heliograph.wire.fetch_response import MAX_VERSION, MIN_VERSION, FetchAnswer, PartitionData, decode_fetch_response

if TYPE_CHECKING:
    from heliograph.kafka.admin import Admin
    from heliograph.model import TopicPartition

_CHUNK_BYTES = 8 << 20
_RETRY_PAUSE_S = 0.2
_TOPIC_AUTHORIZATION_FAILED = 29


class _RawFetchResponse:
    """Decodes without a copy, where kafka-python's class of the same shape would make one."""

    @staticmethod
    def decode(body: memoryview, *, version: int) -> FetchAnswer:
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
        code = -1
        if leader in view.brokers:
            answer: FetchAnswer = admin.ask_at(
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
            needs = " The principal needs READ on it." if code == _TOPIC_AUTHORIZATION_FAILED else ""
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

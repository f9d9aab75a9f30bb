"""Writes a few records of our own from the driver, blocking: checkpoints, heartbeats.

Not idempotent: each of these records says what holds now, so one that is written twice does no harm.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka.protocol.producer import ProduceRequest, ProduceResponse

from heliograph.errors import BrokerError, UnreachableError
from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED, Verdict, describe, verdict_of
from heliograph.kafka.own_records import build_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from heliograph.kafka.admin.admin import Admin
    from heliograph.kafka.own_records import OwnBatch, OwnRecord
    from heliograph.model import TopicPartition


_RETRY_PAUSE_S = 0.2
_RETRIED = (Verdict.RETRY, Verdict.RETRY_SOON, Verdict.RETRY_WITH_METADATA)


def write_records(
    admin: Admin, tp: TopicPartition, records: Sequence[OwnRecord], before_try: Callable[[], None] = lambda: None
) -> None:
    """Write the records in order; raises ClusterError where that is not possible within the admin's time-out.

    `before_try` is called before each request, and may raise where nothing more is to be written.
    """
    for batch in build_batches(records, int(time.time() * 1000)):
        _write_batch(admin, tp, batch, before_try)


def _write_batch(admin: Admin, tp: TopicPartition, batch: OwnBatch, before_try: Callable[[], None]) -> None:
    deadline = time.monotonic() + admin.timeout_s
    while True:
        before_try()
        code, words = _try_once(admin, tp, batch)
        if code == 0:
            return
        if verdict_of(code) not in _RETRIED or time.monotonic() > deadline:
            needs = " The principal needs WRITE on it." if code == TOPIC_AUTHORIZATION_FAILED else ""
            raise BrokerError(f"'{admin.alias}' does not take our records for {tp.topic}: {words}.{needs}", code)
        time.sleep(_RETRY_PAUSE_S)


def _try_once(admin: Admin, tp: TopicPartition, batch: OwnBatch) -> tuple[int, str]:
    """The broker's error code and its meaning; a broker that is not there counts as one to be tried again."""
    try:
        view = admin.view([tp.topic])
        if view.error_codes.get(tp.topic) == TOPIC_AUTHORIZATION_FAILED:
            return TOPIC_AUTHORIZATION_FAILED, describe(TOPIC_AUTHORIZATION_FAILED)
        leader = view.leaders.get(tp, -1)
        if leader not in view.brokers:
            return -1, "the partition has no leader"
        answer = admin.ask_at(
            view.brokers[leader],
            ProduceRequest,
            ProduceResponse,
            lambda version: _request(version, tp, batch, int(admin.timeout_s * 1000)),
            newest=9,
            oldest=3,
        )
    except UnreachableError as error:
        return -1, str(error)
    codes = [data.error_code for topic in answer.responses for data in topic.partition_responses]
    return (codes[0], describe(codes[0])) if codes else (-1, "its answer leaves our records out")


def _request(version: int, tp: TopicPartition, batch: OwnBatch, timeout_ms: int) -> Any:
    topic_class = ProduceRequest.TopicProduceData
    data = topic_class.PartitionProduceData(index=tp.partition, records=bytes(batch.view))
    return ProduceRequest(
        version=version,
        transactional_id=None,
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=[topic_class(name=tp.topic, partition_data=[data])],
    )

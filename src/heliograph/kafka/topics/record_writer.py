"""Writes a few records of our own from the driver, blocking: checkpoints, heartbeats, a Connect worker's state."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafka.protocol.producer import ProduceRequest

from heliograph.errors import BrokerError, UnreachableError
from heliograph.kafka.error_codes import (
    LEADER_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    BrokerRefusal,
    Verdict,
    verdict_of,
)
from heliograph.kafka.own_records import build_batches
from heliograph.kafka.produce.own_batches import OwnBatchRequest, OwnBatchResponse, refusal_in, write_refusal
from heliograph.wire.messages.produce_messages import MAX_VERSION, MIN_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from heliograph.kafka.admin.admin import Admin
    from heliograph.kafka.own_records import OwnBatch, OwnRecord
    from heliograph.model import TopicPartition


STEP_TIMEOUT_S = 5.0  # of a step that is tried again: meanwhile its failure is shown
_RETRY_PAUSE_S = 0.2
_RETRIED = (Verdict.RETRY, Verdict.RETRY_SOON, Verdict.RETRY_WITH_METADATA)


def write_records(
    admin: Admin,
    tp: TopicPartition,
    records: Sequence[OwnRecord],
    before_try: Callable[[], None] = lambda: None,
    *,
    timeout_s: float | None = None,
) -> None:
    """Write the records in order; raises ClusterError if that is not possible within a time-out, or the admin's.

    `before_try` is called before each request, and may raise if nothing more is to be written.
    """
    retry_for_s = admin.timeout_s if timeout_s is None else min(timeout_s, admin.timeout_s)
    for batch in build_batches(records, int(time.time() * 1000)):
        _write_batch(admin, tp, batch, before_try, time.monotonic() + retry_for_s)


def _write_batch(
    admin: Admin, tp: TopicPartition, batch: OwnBatch, before_try: Callable[[], None], deadline: float
) -> None:
    while True:
        before_try()
        refusal = _try_once(admin, tp, batch)
        if refusal is None:
            return
        if verdict_of(refusal.code) not in _RETRIED or time.monotonic() > deadline:
            raise BrokerError(f"'{admin.alias}' does not take our records for {tp.topic}: {refusal}.", refusal.code)
        time.sleep(_RETRY_PAUSE_S)


def _try_once(admin: Admin, tp: TopicPartition, batch: OwnBatch) -> BrokerRefusal | None:
    """Send the batch to the leader; an unreachable broker counts as a refusal that is retried."""
    try:
        view = admin.view([tp.topic])
        if view.error_codes.get(tp.topic) == TOPIC_AUTHORIZATION_FAILED:
            return write_refusal(TOPIC_AUTHORIZATION_FAILED)
        leader = view.leaders.get(tp, -1)
        if leader not in view.brokers:
            return BrokerRefusal(LEADER_NOT_AVAILABLE, "the partition has no leader")
        answer = admin.ask_at(
            view.brokers[leader],
            ProduceRequest,
            OwnBatchResponse,
            lambda version: OwnBatchRequest(version, tp, batch, int(admin.timeout_s * 1000)),
            newest=MAX_VERSION,
            oldest=MIN_VERSION,
        )
    except UnreachableError as error:
        return BrokerRefusal(UNKNOWN_SERVER_ERROR, str(error))
    return refusal_in(answer)

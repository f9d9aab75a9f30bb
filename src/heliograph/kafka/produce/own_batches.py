"""Sends batches of our own records outside of any transaction: offset syncs, checkpoints, heartbeats.

Not idempotent: such a record states what holds now, so one that is written twice does no harm. `send_own_batch` serves
an event loop; `OwnBatchRequest` and `OwnBatchResponse` are for `Admin.ask_at`, which blocks. A request has one batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.producer import ProduceResponse

from heliograph.kafka.error_codes import (
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    BrokerRefusal,
    Verdict,
    describe,
    verdict_of,
)
from heliograph.kafka.produce.produce_requests import send_produce_request
from heliograph.wire.messages.produce_messages import (
    FLEXIBLE_FROM,
    ProduceResponseData,
    decode_produce_response,
    encode_produce_request,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network
    from heliograph.kafka.own_records import OwnBatch
    from heliograph.model import TopicPartition

_REQUEST_TIMEOUT_MS = 30_000


def refusal_in(answer: ProduceResponseData) -> BrokerRefusal | None:
    """Return why the broker did not append the one batch of a request; None if it did."""
    if not answer.partitions:
        return BrokerRefusal(UNKNOWN_SERVER_ERROR, "the broker's answer leaves our records out")
    code = answer.partitions[0].error_code
    return None if verdict_of(code) is Verdict.OK else write_refusal(code)


def write_refusal(code: int) -> BrokerRefusal:
    """Return the refusal of a write, with the permission that it needs."""
    needs = "; the principal needs WRITE on it" if code == TOPIC_AUTHORIZATION_FAILED else ""
    return BrokerRefusal(code, f"{describe(code)}{needs}")


def send_own_batch(
    cluster: Cluster,
    network: Network,
    connection: Connection,
    tp: TopicPartition,
    batch: OwnBatch,
    *,
    on_written: Callable[[], None],
    on_refused: Callable[[str], None],
) -> None:
    """Send one batch to the leader; asks for metadata if the leader may have changed."""

    def answered(answer: ProduceResponseData, _buffer: Buffer) -> None:
        refusal = refusal_in(answer)
        if refusal is None:
            on_written()
            return
        if verdict_of(refusal.code) is Verdict.RETRY_WITH_METADATA:
            cluster.want_metadata()
        on_refused(refusal.reason)

    def lost(why: str) -> None:
        cluster.want_metadata()
        on_refused(why)

    send_produce_request(
        connection,
        {tp.topic: [(tp.partition, batch.view)]},
        answered,
        lost,
        timeout_ms=_REQUEST_TIMEOUT_MS,
        deadline=cluster.request_deadline,
    )
    network.flush(connection)


class OwnBatchRequest:
    """A Produce request with one batch, in the shape of kafka-python's request classes."""

    def __init__(self, version: int, tp: TopicPartition, batch: OwnBatch, timeout_ms: int) -> None:
        self.API_VERSION = version
        self._topics = {tp.topic: [(tp.partition, batch.view)]}
        self._timeout_ms = timeout_ms
        self._header = (0, "")

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Set the values of the request header."""
        self._header = (correlation_id, client_id)

    def encode(self, **_framing: Any) -> bytes:
        """Return the framed request with its header."""
        return b"".join(encode_produce_request(self.API_VERSION, *self._header, self._timeout_ms, self._topics))


class OwnBatchResponse:
    """Decodes as the data path does; `json` lets the guard bound the answer as kafka-python's class would."""

    json = ProduceResponse.json

    @staticmethod
    def decode(body: memoryview, *, version: int) -> ProduceResponseData:
        """Decode the body of a response."""
        return decode_produce_response(body, version)

    @staticmethod
    def flexible_version_q(version: int) -> bool:
        """Return whether a version has the flexible encoding."""
        return version >= FLEXIBLE_FROM

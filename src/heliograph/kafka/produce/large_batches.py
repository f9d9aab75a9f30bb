"""Replaces a batch that the target finds too large: by smaller ones, or by none, as `errors.tolerance` says.

The topic's `max.message.bytes` is requested only when a batch was refused for its size: hardly any flow ever needs it.
Until it is known the batch is retried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse

from heliograph.errors import CorruptBatchError
from heliograph.kafka.produce.target_partition import Outgoing
from heliograph.wire.batches.forward import split

if TYPE_CHECKING:
    from heliograph.kafka.net.buffers import Buffer, BufferPool
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.event_loop import Network
    from heliograph.model import TopicPartition
    from heliograph.wire.batches.forward import Piece


_TOPIC_RESOURCE = 2
_KEY = "max.message.bytes"
UNKNOWN = 0  # the cluster does not show us the config


class TopicLimits:
    """Requests and caches the `max.message.bytes` of topics."""

    def __init__(self, cluster: Cluster, network: Network) -> None:
        self._cluster = cluster
        self._network = network
        self._limits: dict[str, int] = {}
        self._requested: set[str] = set()

    def max_message_bytes(self, topic: str) -> int | None:
        """Return the limit; UNKNOWN if the cluster does not show it, None until its answer has come."""
        if topic not in self._limits and topic not in self._requested:
            self._request(topic)
        return self._limits.get(topic)

    def drop(self, topic: str) -> None:
        """Drop a limit that may have changed; the next call requests it again."""
        self._limits.pop(topic, None)

    def _request(self, topic: str) -> None:
        connection = self._cluster.any_connection()
        if connection is None:
            return
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=[_KEY]
        )
        request = DescribeConfigsRequest(
            version=connection.version_of(DescribeConfigsRequest, 4),
            resources=[resource],
            include_synonyms=False,
            include_documentation=False,
        )
        self._requested.add(topic)

        def answered(answer: Any, _buffer: Buffer) -> None:
            self._requested.discard(topic)
            values = [c.value for result in answer.results for c in result.configs if c.name == _KEY]
            reported = values[0] if values else None
            self._limits[topic] = int(reported) if reported and reported.isdecimal() else UNKNOWN

        def lost(_why: str) -> None:
            self._requested.discard(topic)

        connection.request(request, DescribeConfigsResponse, answered, lost, self._cluster.request_deadline)
        self._network.flush(connection)


class SkippedRecord(str):
    """The sentence for a record that is left out."""

    __slots__ = ()


class LargeBatches:
    """Splits batches to the size that their topics accept."""

    def __init__(self, limits: TopicLimits, pool: BufferPool, *, leaves_out: bool) -> None:
        self._limits = limits
        self._pool = pool
        self._leaves_out = leaves_out
        self._tried_again: Outgoing | None = None

    def instead_of(self, tp: TopicPartition, outgoing: Outgoing) -> list[Outgoing] | SkippedRecord | str:
        """Return batches to send instead, a SkippedRecord if the record is skipped, or why the partition must stop."""
        piece = outgoing.piece
        limit = self._limits.max_message_bytes(tp.topic)
        if limit is None:
            return [outgoing]
        size = len(outgoing.view)
        if piece is None or outgoing.record_count == 1:
            if limit >= size and outgoing is not self._tried_again:
                self._tried_again = outgoing  # the limit may have been raised just now
                self._limits.drop(tp.topic)
                return [outgoing]
            return self._single(tp, piece, size, limit)
        if limit == UNKNOWN or limit >= size:
            limit = size // 2
        try:
            parts = split(piece._replace(view=outgoing.view), limit)
        except CorruptBatchError as error:
            return f"it is too large for {tp.topic} on the target and cannot be cut: {error}"
        return [
            Outgoing(part.view, part.record_count, outgoing.on_acked, buffer=self._pool.own(part.view), piece=part)
            for part in parts
        ]

    def _single(self, tp: TopicPartition, piece: Piece | None, size: int, limit: int) -> SkippedRecord | str:
        is_known = UNKNOWN < limit < size
        takes = (
            f"takes at most {limit} (max.message.bytes)" if is_known else "does not take that (see segment.bytes too)"
        )
        if piece is None:
            return f"our own record needs {size} bytes; {tp.topic} {takes}"
        sentence = f"its one record needs {size} bytes, but {tp.topic} on the target {takes}"
        if self._leaves_out:
            return SkippedRecord(
                f"the record at offset {piece.base_offset} was left out (errors.tolerance=all): {sentence}."
            )
        return (
            f"{sentence}. Raise max.message.bytes of the source topic, which {tp.topic} follows (or of {tp.topic}, if"
            " topic configs are not synced), or leave such records out with errors.tolerance=all"
        )

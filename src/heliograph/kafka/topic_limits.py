"""How large a batch a topic takes: its `max.message.bytes`, asked for only when a batch was refused for its size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse

if TYPE_CHECKING:
    from heliograph.kafka.buffers import Buffer
    from heliograph.kafka.cluster import Cluster
    from heliograph.kafka.network import Network

_TOPIC_RESOURCE = 2
_KEY = "max.message.bytes"
UNKNOWN = 0  # the cluster does not tell us


class TopicLimits:
    """What is known of the topics' limits."""

    def __init__(self, cluster: Cluster, network: Network) -> None:
        self._cluster = cluster
        self._network = network
        self._limits: dict[str, int] = {}
        self._asked: set[str] = set()

    def max_message_bytes(self, topic: str) -> int | None:
        """The limit; UNKNOWN where the cluster keeps it to itself, None while it is being asked for."""
        if topic not in self._limits and topic not in self._asked:
            self._ask(topic)
        return self._limits.get(topic)

    def forget(self, topic: str) -> None:
        """Ask again next time: somebody may have changed it."""
        self._limits.pop(topic, None)

    def _ask(self, topic: str) -> None:
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
        self._asked.add(topic)

        def answered(answer: Any, _buffer: Buffer) -> None:
            self._asked.discard(topic)
            values = [c.value for result in answer.results for c in result.configs if c.name == _KEY]
            told = values[0] if values else None
            self._limits[topic] = int(told) if told and told.isdecimal() else UNKNOWN

        def lost(_why: str) -> None:
            self._asked.discard(topic)

        connection.request(request, DescribeConfigsResponse, answered, lost, self._cluster.request_deadline)
        self._network.flush(connection)

"""Which cluster this is: the id that its brokers share, as `GET /` of Connect's REST tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from heliograph.kafka.admin import Admin


def cluster_id(admin: Admin) -> str:
    """The id of the cluster a client is connected to."""

    def build(version: int) -> Any:
        return MetadataRequest(version=version, topics=[], allow_auto_topic_creation=False)

    answer = admin.ask_any(MetadataRequest, MetadataResponse, build, newest=8, oldest=2)
    return str(answer.cluster_id)

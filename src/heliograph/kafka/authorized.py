"""What a cluster lets us do, asked of its own authorizer (KIP-430), so that super users, DENY and mappings count.

Only questions that change nothing, not even by making Kafka create a topic of its own. An answer is the set of
operations that are allowed; None where the cluster does not tell (brokers before 2.3, or of the kind asked about).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import (
    ACLOperation,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from heliograph.errors import BrokerError
from heliograph.kafka.refusals import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from heliograph.kafka.admin import Admin

Operations = frozenset[str] | None
NOTHING: frozenset[str] = frozenset()
_TELLING_METADATA = 8
_TELLING_GROUPS = 3
_NOT_TOLD = {31}  # the smallest integer: the broker leaves the field out


def topic_operations(admin: Admin, topics: Collection[str]) -> dict[str, Operations]:
    """What we may do with each topic, be it there or not; nothing where it may not even be seen."""
    answer = _metadata(admin, topics)
    if answer is None:
        return dict.fromkeys(topics)
    return {
        topic.name: NOTHING
        if topic.error_code == TOPIC_AUTHORIZATION_FAILED
        else _operations(topic.authorized_operations)
        for topic in answer.topics
    }


def cluster_operations(admin: Admin) -> Operations:
    """What we may do with the cluster itself; nothing where it may not even be described."""
    answer = _metadata(admin, ())
    return None if answer is None else _operations(answer.authorized_operations)


def group_operations(admin: Admin, group: str) -> Operations:
    """What we may do with a group; None where no broker answers for it."""
    for broker in admin.view([]).brokers.values():
        answer = admin.ask_at(
            broker,
            DescribeGroupsRequest,
            DescribeGroupsResponse,
            lambda version: DescribeGroupsRequest(version=version, groups=[group], include_authorized_operations=True),
            newest=5,
        )
        (described,) = answer.groups
        if described.error_code == GROUP_AUTHORIZATION_FAILED:
            return NOTHING
        if not described.error_code and answer.API_VERSION >= _TELLING_GROUPS:
            return _operations(described.authorized_operations)
    return None


def may_see_transactions(admin: Admin, transactional_id: str) -> bool | None:
    """Whether a transactional id may be described; None where the cluster cannot tell (before 3.0)."""
    try:
        answer = admin.ask_any(
            DescribeTransactionsRequest,
            DescribeTransactionsResponse,
            lambda version: DescribeTransactionsRequest(version=version, transactional_ids=[transactional_id]),
            newest=0,
        )
    except BrokerError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        return None
    (state,) = answer.transaction_states
    return bool(state.error_code != TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _metadata(admin: Admin, topics: Collection[str]) -> Any:
    def build(version: int) -> Any:
        return MetadataRequest(
            version=version,
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=not topics,
            include_topic_authorized_operations=bool(topics),
        )

    try:
        return admin.ask_any(
            MetadataRequest, MetadataResponse, build, newest=_TELLING_METADATA, oldest=_TELLING_METADATA
        )
    except BrokerError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        return None


def _operations(bits: Collection[int] | None) -> Operations:
    if bits is None or bits == _NOT_TOLD:
        return None
    return frozenset(ACLOperation(bit).name for bit in bits if bit in ACLOperation._value2member_map_)

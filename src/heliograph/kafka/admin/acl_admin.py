"""ACLs of topics, listed and added; and the operations that a cluster allows us.

The cluster's own authorizer says what is allowed (KIP-430), so that super users, DENY and principal mappings count.
These requests change nothing and do not make Kafka create an internal topic. They return the set of allowed operations,
or None if the cluster does not say (brokers before 2.3, or no support for the kind of resource).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    CreateAclsRequest,
    CreateAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from heliograph.errors import BrokerError
from heliograph.kafka.error_codes import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
    BrokerRefusal,
    refusal_of,
)
from heliograph.model import AclBinding

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from enum import IntEnum

    from heliograph.kafka.admin.admin import Admin


_TOPIC_RESOURCE, _ANY = 2, 1
_ACLS_PER_REQUEST = 500
Operations = frozenset[str] | None
NOTHING: frozenset[str] = frozenset()
_OPERATIONS_METADATA_VERSION = 8
_OPERATIONS_GROUPS_VERSION = 3
_NOT_SET = {31}  # the smallest integer: the broker leaves the field out


def topic_acls(admin: Admin, needs: str = "DESCRIBE on the cluster") -> tuple[AclBinding, ...]:
    """Return every ACL of every topic pattern; raise BrokerError with SECURITY_DISABLED if there is no authorizer.

    `needs` is the permission that errors name.
    """
    response = admin.ask_any(DescribeAclsRequest, DescribeAclsResponse, _all_of_topics, newest=3)
    if response.error_code:
        refusal = refusal_of(response, needs)
        raise BrokerError(f"The cluster '{admin.alias}' refused to list its ACLs: {refusal}.", refusal.code)
    return tuple(
        AclBinding(
            topic=resource.resource_name,
            principal=acl.principal,
            host=acl.host,
            operation=_name(ACLOperation, acl.operation),
            permission=_name(ACLPermissionType, acl.permission_type),
            pattern=_name(ACLResourcePatternType, resource.pattern_type),
        )
        for resource in response.resources
        for acl in resource.acls
    )


def add_acls(admin: Admin, acls: Sequence[AclBinding]) -> dict[AclBinding, BrokerRefusal]:
    """Add ACLs; return the reason for each that was refused. An ACL that exists already is no failure."""
    refused: dict[AclBinding, BrokerRefusal] = {}
    for at in range(0, len(acls), _ACLS_PER_REQUEST):
        chunk = acls[at : at + _ACLS_PER_REQUEST]

        def build(version: int, chunk: Sequence[AclBinding] = chunk) -> Any:
            return CreateAclsRequest(version=version, creations=[_creation(acl) for acl in chunk])

        response = admin.ask_any(CreateAclsRequest, CreateAclsResponse, build, newest=3)
        refused |= {
            acl: refusal_of(result, "ALTER on the cluster")
            for acl, result in zip(chunk, response.results, strict=True)
            if result.error_code
        }
    return refused


def _all_of_topics(version: int) -> Any:
    return DescribeAclsRequest(
        version=version,
        resource_type_filter=_TOPIC_RESOURCE,
        resource_name_filter=None,
        # Before Kafka 2.0 (version 0) all patterns are literal, and a request cannot say more.
        pattern_type_filter=_ANY if version else ACLResourcePatternType.LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


def _creation(acl: AclBinding) -> Any:
    return CreateAclsRequest.AclCreation(
        resource_type=_TOPIC_RESOURCE,
        resource_name=acl.topic,
        resource_pattern_type=ACLResourcePatternType[acl.pattern],
        principal=acl.principal,
        host=acl.host,
        operation=_code(ACLOperation, acl.operation),
        permission_type=_code(ACLPermissionType, acl.permission),
    )


def _name(kind: type[IntEnum], code: int) -> str:
    """Return Kafka's name for a code; the number itself if it is newer than our table."""
    return kind(code).name if code in kind._value2member_map_ else str(code)


def _code(kind: type[IntEnum], name: str) -> int:
    return int(name) if name.isdigit() else kind[name].value


def topic_operations(admin: Admin, topics: Collection[str]) -> dict[str, Operations]:
    """Return the operations allowed on each topic, even if it does not exist; none if it may not be described."""
    response = _metadata(admin, topics)
    if response is None:
        return dict.fromkeys(topics)
    return {
        topic.name: NOTHING
        if topic.error_code == TOPIC_AUTHORIZATION_FAILED
        else _operations(topic.authorized_operations)
        for topic in response.topics
    }


def cluster_operations(admin: Admin) -> Operations:
    """Return the operations allowed on the cluster itself; none if it may not be described."""
    response = _metadata(admin, ())
    return None if response is None else _operations(response.authorized_operations)


def group_operations(admin: Admin, group: str) -> Operations:
    """Return the operations allowed on a group; None if no broker answers for it."""
    for broker in admin.view([]).brokers.values():
        response = admin.ask_at(
            broker,
            DescribeGroupsRequest,
            DescribeGroupsResponse,
            lambda version: DescribeGroupsRequest(version=version, groups=[group], include_authorized_operations=True),
            newest=5,
        )
        (described,) = response.groups
        if described.error_code == GROUP_AUTHORIZATION_FAILED:
            return NOTHING
        if not described.error_code and response.API_VERSION >= _OPERATIONS_GROUPS_VERSION:
            return _operations(described.authorized_operations)
    return None


def may_see_transactions(admin: Admin, transactional_id: str) -> bool | None:
    """Return whether a transactional id may be described; None if the cluster does not say (before 3.0)."""
    try:
        response = admin.ask_any(
            DescribeTransactionsRequest,
            DescribeTransactionsResponse,
            lambda version: DescribeTransactionsRequest(version=version, transactional_ids=[transactional_id]),
            newest=0,
        )
    except BrokerError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        return None
    (state,) = response.transaction_states
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
            MetadataRequest,
            MetadataResponse,
            build,
            newest=_OPERATIONS_METADATA_VERSION,
            oldest=_OPERATIONS_METADATA_VERSION,
        )
    except BrokerError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        return None


def _operations(bits: Collection[int] | None) -> Operations:
    if bits is None or bits == _NOT_SET:
        return None
    return frozenset(ACLOperation(bit).name for bit in bits if bit in ACLOperation._value2member_map_)

"""Listing and adding ACLs of topics."""

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
)

from heliograph.errors import BrokerError
from heliograph.kafka.refusals import Refusal, refusal_of
from heliograph.model import AclBinding

if TYPE_CHECKING:
    from collections.abc import Sequence
    from enum import IntEnum

    from heliograph.kafka.admin import Admin

SECURITY_DISABLED = 54
_TOPIC_RESOURCE, _ANY = 2, 1
_ACLS_PER_REQUEST = 500


def topic_acls(admin: Admin, needs: str = "DESCRIBE on the cluster") -> tuple[AclBinding, ...]:
    """Every ACL of every topic pattern; raises BrokerError with SECURITY_DISABLED where there is no authorizer.

    `needs` is the permission to name where it lacks.
    """
    answer = admin.ask_any(DescribeAclsRequest, DescribeAclsResponse, _all_of_topics, newest=3)
    if answer.error_code:
        refusal = refusal_of(answer, needs)
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
        for resource in answer.resources
        for acl in resource.acls
    )


def add_acls(admin: Admin, acls: Sequence[AclBinding]) -> dict[AclBinding, Refusal]:
    """Add ACLs; returns the reason for each that was refused. One that exists already is no failure."""
    refused: dict[AclBinding, Refusal] = {}
    for at in range(0, len(acls), _ACLS_PER_REQUEST):
        chunk = acls[at : at + _ACLS_PER_REQUEST]

        def build(version: int, chunk: Sequence[AclBinding] = chunk) -> Any:
            return CreateAclsRequest(version=version, creations=[_creation(acl) for acl in chunk])

        answer = admin.ask_any(CreateAclsRequest, CreateAclsResponse, build, newest=3)
        refused |= {
            acl: refusal_of(result, "ALTER on the cluster")
            for acl, result in zip(chunk, answer.results, strict=True)
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
    """Kafka's word for a code; the number itself for one newer than our table."""
    return kind(code).name if code in kind._value2member_map_ else str(code)


def _code(kind: type[IntEnum], name: str) -> int:
    return int(name) if name.isdigit() else kind[name].value

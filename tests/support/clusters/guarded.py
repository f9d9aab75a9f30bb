"""Clusters with an authorizer: nobody may do anything but the administrator, who comes in by the plain door.

A second listener asks for a user and a password; its users have only the ACLs a test gives them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka.protocol.admin import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

from heliograph.embedded.kafka_cluster import EmbeddedCluster, forget_cluster, start_cluster
from heliograph.embedded.process import free_ports
from heliograph.kafka.admin.acl_admin import add_acls, topic_acls
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import AclBinding, Address
from tests.conftest import KEEP_RECORDS
from tests.support.clusters.clients import admin_of
from tests.support.runs.copying import wait_for

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "s3cret-canary"


class Guarded:
    """One such cluster."""

    def __init__(self, cluster: EmbeddedCluster, port: int) -> None:
        self.cluster = cluster
        self.address = Address("127.0.0.1", port)

    def admin(self, alias: str = "guarded") -> Admin:
        """As the administrator."""
        admin = admin_of(self.cluster)
        admin.alias = alias
        return admin

    def admin_as(self, user: str, alias: str = "guarded") -> Admin:
        """As a user who may do what ACLs say."""
        security = Security("SASL_PLAINTEXT", "PLAIN", user, PASSWORD)
        return Admin(alias, (self.address,), security, "test", timeout_s=60)

    def grant(self, *acls: AclBinding) -> None:
        """Add ACLs of topics, and wait until they count."""
        admin = self.admin()
        assert add_acls(admin, acls) == {}
        wait_for(lambda: set(acls) <= set(topic_acls(admin)))
        admin.close()

    def grant_printed(self, principal: str, acls: Iterable[dict[str, Any]]) -> None:
        """Give a principal ACLs as `heliograph acls --format json` prints them, and wait until they count."""
        wanted = [_creation(principal, acl) for acl in acls]
        admin = self.admin()
        answer = admin.ask_any(
            CreateAclsRequest,
            CreateAclsResponse,
            lambda version: CreateAclsRequest(version=version, creations=wanted),
            newest=3,
        )
        assert [result.error_code for result in answer.results] == [0] * len(wanted), answer
        names = {(acl.resource_type, acl.resource_name, acl.resource_pattern_type, acl.operation) for acl in wanted}
        wait_for(lambda: names <= _acls_of(admin, principal))
        admin.close()

    def revoke_printed(self, principal: str, acl: dict[str, Any]) -> None:
        """Take one of them away again, and wait until it no longer counts."""
        admin = self.admin()
        wanted = DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=ACLResourceType[acl["resource_type"]],
            resource_name_filter=acl["resource_name"],
            pattern_type_filter=ACLResourcePatternType[acl["pattern_type"]],
            principal_filter=principal,
            host_filter="*",
            operation=ACLOperation[acl["operation"]],
            permission_type=ACLPermissionType.ALLOW,
        )
        answer = admin.ask_any(
            DeleteAclsRequest,
            DeleteAclsResponse,
            lambda version: DeleteAclsRequest(version=version, filters=[wanted]),
            newest=3,
        )
        assert [len(result.matching_acls) for result in answer.filter_results] == [1], answer
        gone = (acl["resource_name"], ACLOperation[acl["operation"]])
        wait_for(
            lambda: gone not in {(name, operation) for _kind, name, _pattern, operation in _acls_of(admin, principal)}
        )
        admin.close()

    def client_lines(self, alias: str, user: str) -> list[str]:
        """What a file needs to come in as a user."""
        return [
            f"{alias}.bootstrap.servers={self.address}",
            f"{alias}.security.protocol=SASL_PLAINTEXT",
            f"{alias}.sasl.mechanism=PLAIN",
            f"{alias}.sasl.jaas.config={jaas(user)}",
        ]


def jaas(user: str) -> str:
    return f'{_PLAIN} username="{user}" password="{PASSWORD}";'


def _creation(principal: str, acl: dict[str, Any]) -> Any:
    return CreateAclsRequest.AclCreation(
        resource_type=ACLResourceType[acl["resource_type"]],
        resource_name=acl["resource_name"],
        resource_pattern_type=ACLResourcePatternType[acl["pattern_type"]],
        principal=principal,
        host="*",
        operation=ACLOperation[acl["operation"]],
        permission_type=ACLPermissionType.ALLOW,
    )


def _acls_of(admin: Admin, principal: str) -> set[tuple[Any, ...]]:
    answer = admin.ask_any(
        DescribeAclsRequest,
        DescribeAclsResponse,
        lambda version: DescribeAclsRequest(
            version=version,
            resource_type_filter=ACLResourceType.ANY,
            resource_name_filter=None,
            pattern_type_filter=ACLResourcePatternType.ANY,
            principal_filter=principal,
            host_filter=None,
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
        ),
        newest=3,
    )
    return {
        (resource.resource_type, resource.resource_name, resource.pattern_type, acl.operation)
        for resource in answer.resources
        for acl in resource.acls
    }


@contextmanager
def guarded_cluster(name: str, folder: Path, users: tuple[str, ...]) -> Iterator[Guarded]:
    (port,) = free_ports(1)
    doors = f"PLAINTEXT://127.0.0.1:{{port}},SASL_PLAINTEXT://127.0.0.1:{port}"
    passwords = " ".join(f'user_{user}="{PASSWORD}"' for user in users)
    config = {
        "listeners": f"{doors},CONTROLLER://127.0.0.1:{{controller_port}}",
        "advertised.listeners": doors,
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_PLAIN} {passwords};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    unique = f"test-{os.getpid()}-{name}"
    cluster = start_cluster(unique, data=folder, config=KEEP_RECORDS | config)
    try:
        yield Guarded(cluster, port)
    finally:
        cluster.stop()
        forget_cluster(unique)

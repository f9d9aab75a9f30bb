"""Finds the ACLs that a flow needs and does not have, by asking each cluster's authorizer as the flow's clients.

A prefix is checked with names that exist and with one that does not: a principal that was granted only the topics of
today can run the flow, and `plan` reports that it will not see new ones. If the cluster does not return the allowed
operations, nothing is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.driver.clusters.cluster_specs import spec_of
from heliograph.kafka.admin.acl_admin import (
    NOTHING,
    Operations,
    cluster_operations,
    group_operations,
    may_see_transactions,
    topic_operations,
)
from heliograph.kafka.admin.admin import Admin
from heliograph.mirror.acls.acl import CLUSTER, GROUP, TOPIC, Acl, Resource, fewest_acls
from heliograph.model import Flow
from heliograph.operations.needed_acls import client_of, cluster_of, config_needs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.kafka.security.connection_spec import ClusterSpec


# If a topic may not even be described, nothing is known of operations that do not include DESCRIBE.
_INCLUDES_DESCRIBE = frozenset({"DESCRIBE", "READ", "WRITE", "ALTER"})


class MissingAcl(NamedTuple):
    """An ACL that a flow needs and does not have; `is_for_later` if it is not needed for what exists today."""

    cluster: str
    acl: Acl
    is_for_later: bool

    def __str__(self) -> str:
        later = " (only what is there today works)" if self.is_for_later else ""
        return f"{self.acl} of '{self.cluster}'{later}: {'; '.join(self.acl.reasons)}"


def missing_acls(config: MirrorConfig, flow: Flow, topics: Mapping[str, Collection[str]]) -> list[MissingAcl]:
    """Return what the flow, its checkpoints and the heartbeats between its clusters lack.

    `topics` are those of each cluster that the flow replicates now.
    """
    timeout_s = config.settings(flow)[keys.ADMIN_TIMEOUT_MS] / 1000
    found: list[MissingAcl] = []
    for spec, acls in _by_client(config, flow).items():
        admin = Admin(spec.alias, spec.bootstrap, spec.security, f"heliograph-{flow}-acls", timeout_s=timeout_s)
        try:
            found += _missing(admin, fewest_acls(acls), topics.get(spec.alias, ()))
        finally:
            admin.close()
    return list(dict.fromkeys(found))


def _by_client(config: MirrorConfig, flow: Flow) -> dict[ClusterSpec, list[Acl]]:
    reverse = Flow(flow.target, flow.source)  # heartbeats are written in both directions
    replicates_back = reverse in config.flows
    by_client: dict[ClusterSpec, list[Acl]] = {}
    for owner, need in config_needs(config):
        if owner == flow or (owner == reverse and not replicates_back):
            spec = spec_of(client_of(config, owner, need.role), cluster_of(owner, need.role))
            by_client.setdefault(spec, []).append(need.acl)
    return by_client


def _missing(admin: Admin, acls: Collection[Acl], topics: Collection[str]) -> Iterator[MissingAcl]:
    present = {acl.resource: _present(acl.resource, topics) for acl in acls if acl.resource.kind == TOPIC}
    wanted = {name for resource, names in present.items() for name in (*names, resource.names.example)}
    allowed = topic_operations(admin, wanted) if wanted else {}
    for acl in acls:
        if acl.resource.kind == TOPIC:
            now = [name for name in present[acl.resource] if _lacks(allowed.get(name), acl.operation)]
            if now or _lacks(allowed.get(acl.resource.names.example), acl.operation):
                yield MissingAcl(admin.alias, acl, is_for_later=not now and bool(present[acl.resource]))
        elif _lacks(_allowed_operations(admin, acl.resource), acl.operation):
            is_for_later = acl.resource.kind == GROUP and not acl.resource.names.is_whole
            yield MissingAcl(admin.alias, acl, is_for_later=is_for_later)


def _present(resource: Resource, topics: Iterable[str]) -> list[str]:
    if resource.names.is_whole:
        return []
    return [topic for topic in topics if topic.startswith(resource.names.start)]


def _allowed_operations(admin: Admin, resource: Resource) -> Operations:
    if resource.kind == CLUSTER:
        return cluster_operations(admin)
    if resource.kind == GROUP:
        return group_operations(admin, resource.names.example)
    return NOTHING if may_see_transactions(admin, f"{resource.names.start}0") is False else None


def _lacks(allowed: Operations, operation: str) -> bool:
    if allowed is None:
        return False
    return operation in _INCLUDES_DESCRIBE if not allowed else operation not in allowed

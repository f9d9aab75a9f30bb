"""Derives from configurations the fewest ACLs that each principal needs on each cluster.

`config_needs` lists the needs of all clients of a configuration; `needed_acls` finds out the principal of each client
and merges them, so that each cluster and principal has one entry and each ACL is printed once.

An alias is the name of a cluster in a file or a connector. Two aliases with a common bootstrap server are one cluster;
a Connect worker's own cluster is often the target of its connectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.effective.connect_config import ConnectorConfig
from heliograph.config.keys import client_keys
from heliograph.config.keys.table import split_list
from heliograph.errors import ConfigError
from heliograph.mirror.acls.acl import Acl, fewest_acls
from heliograph.mirror.acls.flow_acls import (
    ClientRole,
    FlowAclContext,
    Need,
    checkpoint_needs,
    copied_heartbeats,
    heartbeat_needs,
    source_needs,
    worker_acls,
)
from heliograph.mirror.topics.topic_rules import topic_rules
from heliograph.operations.principals import principal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.config.resolve.settings import Settings
    from heliograph.diagnostics import Diagnostic
    from heliograph.model import Flow
    from heliograph.operations.principals import KafkaPrincipal


WORKER = "worker"  # the alias of a Connect worker's own cluster
_ROLES = {
    ClientRole.SOURCE_ADMIN: "admin",
    ClientRole.SOURCE_CONSUMER: "consumer",
    ClientRole.SOURCE_PRODUCER: "producer",
    ClientRole.TARGET_ADMIN: "admin",
    ClientRole.TARGET_PRODUCER: "producer",
    ClientRole.RECORDS: "producer",
    ClientRole.OFFSETS: "producer",
}


class ClusterLogin(NamedTuple):
    """A principal on a cluster; `others` are further aliases of the cluster."""

    cluster: str
    bootstrap: tuple[str, ...]
    principal: str
    others: tuple[str, ...] = ()


class Granted(NamedTuple):
    """The ACLs that a principal needs on a cluster; `doubt` says why the principal is not certain or not known."""

    login: ClusterLogin
    acls: tuple[Acl, ...]
    doubt: str = ""
    is_known: bool = True


class LoginNeed(NamedTuple):
    """An ACL that one client needs."""

    alias: str
    servers: tuple[str, ...]
    principal: KafkaPrincipal
    acl: Acl

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The addresses of the cluster, else its alias; two clients of one cluster have one in common."""
        return self.servers or (self.alias,)


def needed_acls(
    configs: Iterable[MirrorConfig], given: Mapping[str, str], worker: WorkerConfig | None = None
) -> tuple[Granted, ...]:
    """Return the ACLs of all flows or connectors of one user; `given` are principals that only the user knows."""
    uses: list[LoginNeed] = []
    problems: dict[Diagnostic, None] = {}
    for client, alias, role, acl in _needs(configs, worker):
        try:
            uses.append(LoginNeed(alias, _servers(client), principal_of(client, alias, role, given), acl))
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise ConfigError(problems)
    return merge_logins(uses)


def _needs(configs: Iterable[MirrorConfig], worker: WorkerConfig | None) -> Iterator[tuple[Settings, str, str, Acl]]:
    """Yield each ACL with the client that needs it, the alias of its cluster, and its role."""
    for config in configs:
        for flow, (role, acl) in config_needs(config):
            yield client_of(config, flow, role), cluster_of(flow, role), _ROLES[role], acl
    if worker is not None:
        client = worker.client
        yield from ((client, WORKER, "producer", acl) for acl in worker_acls(worker.settings))


def config_needs(config: MirrorConfig) -> Iterator[tuple[Flow, Need]]:
    """Yield the needs of all flows of a file, or of a connector."""
    rules = {flow: topic_rules(config, flow) for flow in config.enabled_flows}
    heartbeats = copied_heartbeats(rules)
    kinds = {"source": source_needs, "checkpoint": checkpoint_needs}
    wanted = [kinds[config.kind]] if isinstance(config, ConnectorConfig) and config.kind in kinds else kinds.values()
    for flow in config.flows if not isinstance(config, ConnectorConfig) or config.kind in kinds else ():
        context = _acl_context(config, flow, heartbeats.get(flow, ()))
        yield from ((flow, need) for needs in wanted for need in needs(context))
    for pair in config.heartbeat_flows:
        yield from ((pair, need) for need in heartbeat_needs(_acl_context(config, pair)))


def _acl_context(config: MirrorConfig, flow: Flow, heartbeats: tuple[str, ...] = ()) -> FlowAclContext:
    administered = _servers(client_of(config, flow, ClientRole.TARGET_ADMIN))
    is_split = set(_servers(config.records_client(flow))) != set(administered)
    driver_records = ClientRole.RECORDS if is_split else ClientRole.TARGET_ADMIN
    keeps_apart = config.offsets_client(flow) is not None
    return FlowAclContext(
        config.settings(flow),
        topic_rules(config, flow),
        config.source_connector(flow),
        heartbeats,
        driver_records=driver_records,
        driver_offsets=ClientRole.OFFSETS if keeps_apart else driver_records,
        task_offsets=ClientRole.OFFSETS if keeps_apart else ClientRole.RECORDS,
        is_split=is_split,
        notes_offsets=config.notes_offsets,
    )


def client_of(config: MirrorConfig, flow: Flow, role: ClientRole) -> Settings:
    """Return the settings of one of a flow's clients."""
    if role is ClientRole.RECORDS:
        return config.records_client(flow)
    if role is ClientRole.OFFSETS:
        client = config.offsets_client(flow)
        assert client is not None
        return client
    alias = flow.source if role.name.startswith("SOURCE_") else flow.target
    return config.client(alias, _ROLES[role], flow)


def cluster_of(flow: Flow, role: ClientRole) -> str:
    """Return the alias of the cluster that one of a flow's clients connects to."""
    if role is ClientRole.OFFSETS:
        return WORKER
    return flow.source if role.name.startswith("SOURCE_") else flow.target


def _servers(client: Settings) -> tuple[str, ...]:
    """Return the bootstrap servers as written: nobody connects to them."""
    return split_list(client.values.get(client_keys.BOOTSTRAP_SERVERS.name, ""))


def merge_logins(uses: Sequence[LoginNeed]) -> tuple[Granted, ...]:
    """Return each cluster and principal once, with the fewest ACLs that cover the needs of its clients."""
    clusters = _clusters(uses)
    found: dict[tuple[int, tuple[str, str]], list[LoginNeed]] = {}
    for use in uses:
        found.setdefault((clusters[use.endpoints[0]], use.principal.identity), []).append(use)
    taken: set[tuple[int, str]] = set()
    granted = []
    for (cluster, _identity), group in found.items():
        name = _free_name(group[0].principal, cluster, taken)
        taken.add((cluster, name))
        granted.append(_granted(group, name))
    return tuple(sorted(granted, key=lambda each: each.login))


def _granted(uses: list[LoginNeed], principal: str) -> Granted:
    aliases = dict.fromkeys(use.alias for use in uses)
    cluster, *others = sorted(aliases, key=WORKER.__eq__)
    servers = dict.fromkeys(server for use in uses for server in use.servers)
    login = ClusterLogin(cluster, tuple(servers), principal, tuple(others))
    return Granted(login, fewest_acls(use.acl for use in uses), uses[0].principal.doubt, uses[0].principal.is_known)


def _clusters(uses: Iterable[LoginNeed]) -> dict[str, int]:
    """Return the number of the cluster that each server belongs to."""
    groups: list[set[str]] = []
    for endpoints in dict.fromkeys(use.endpoints for use in uses):
        joined = set(endpoints)
        joined.update(*(group for group in groups if group & joined))
        groups = [*(group for group in groups if not group & joined), joined]
    return {endpoint: number for number, group in enumerate(groups) for endpoint in group}


def _free_name(principal: KafkaPrincipal, cluster: int, taken: set[tuple[int, str]]) -> str:
    """Return the principal's name, numbered if several unknown logins are written under keys of the same name."""
    name, count = principal.name, 1
    while not principal.is_known and (cluster, name) in taken:
        count += 1
        name = f"{principal.name.removesuffix('>')}, number {count}>"
    return name

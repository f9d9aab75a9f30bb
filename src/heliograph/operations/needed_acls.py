"""From a configuration to the ACLs that each principal needs on each cluster, the fewest that do.

What many clients need, put together by those who grant it: each cluster and principal once, each ACL once.

Aliases are what a file or a connector calls a cluster. Two that have a bootstrap server in common are one cluster, and
a Connect worker's own is often one of its connectors' targets; an ACL is told once for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.effective.connect_config import ConnectorConfig
from heliograph.config.keys import client_keys
from heliograph.config.keys.table import split_list
from heliograph.errors import ConfigError
from heliograph.mirror.acls.acl import Acl, least
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


WORKER = "worker"  # what a Connect worker's own cluster is called


class ClusterLogin(NamedTuple):
    """A principal on a cluster; `others` are what else the cluster is called."""

    cluster: str
    bootstrap: tuple[str, ...]
    principal: str
    others: tuple[str, ...] = ()


class Granted(NamedTuple):
    """What a principal needs on a cluster; `doubt` is about who it is, where that is not certain or not known."""

    login: ClusterLogin
    acls: tuple[Acl, ...]
    doubt: str = ""
    is_known: bool = True


class LoginUse(NamedTuple):
    """An ACL that one client needs."""

    alias: str
    servers: tuple[str, ...]
    principal: KafkaPrincipal
    acl: Acl

    @property
    def places(self) -> tuple[str, ...]:
        """What two clients have in common where they reach the same cluster."""
        return self.servers or (self.alias,)


def put_together(uses: Sequence[LoginUse]) -> tuple[Granted, ...]:
    """Each cluster and principal with the fewest ACLs that say what its clients need."""
    clusters = _clusters(uses)
    found: dict[tuple[int, tuple[str, str]], list[LoginUse]] = {}
    for use in uses:
        found.setdefault((clusters[use.places[0]], use.principal.identity), []).append(use)
    taken: set[tuple[int, str]] = set()
    granted = []
    for (cluster, _identity), group in found.items():
        name = _free_name(group[0].principal, cluster, taken)
        taken.add((cluster, name))
        granted.append(_granted(group, name))
    return tuple(sorted(granted, key=lambda each: each.login))


def _granted(uses: list[LoginUse], principal: str) -> Granted:
    aliases = dict.fromkeys(use.alias for use in uses)
    cluster, *others = sorted(aliases, key=WORKER.__eq__)
    servers = dict.fromkeys(server for use in uses for server in use.servers)
    login = ClusterLogin(cluster, tuple(servers), principal, tuple(others))
    return Granted(login, least(use.acl for use in uses), uses[0].principal.doubt, uses[0].principal.is_known)


def _clusters(uses: Iterable[LoginUse]) -> dict[str, int]:
    """The number of the cluster that a server belongs to."""
    groups: list[set[str]] = []
    for places in dict.fromkeys(use.places for use in uses):
        joined = set(places)
        joined.update(*(group for group in groups if group & joined))
        groups = [*(group for group in groups if not group & joined), joined]
    return {place: number for number, group in enumerate(groups) for place in group}


def _free_name(principal: KafkaPrincipal, cluster: int, taken: set[tuple[int, str]]) -> str:
    """The principal's name. Logins that are not known, and differ, may stand at keys of the same name."""
    name, count = principal.name, 1
    while not principal.is_known and (cluster, name) in taken:
        count += 1
        name = f"{principal.name.removesuffix('>')}, number {count}>"
    return name


_ROLES = {
    ClientRole.SOURCE_ADMIN: "admin",
    ClientRole.SOURCE_CONSUMER: "consumer",
    ClientRole.SOURCE_PRODUCER: "producer",
    ClientRole.TARGET_ADMIN: "admin",
    ClientRole.TARGET_PRODUCER: "producer",
    ClientRole.RECORDS: "producer",
    ClientRole.OFFSETS: "producer",
}


def needed_acls(
    configs: Iterable[MirrorConfig], given: Mapping[str, str], worker: WorkerConfig | None = None
) -> tuple[Granted, ...]:
    """The ACLs of all flows, or connectors, of one user's; `given` are principals that only the user knows."""
    uses: list[LoginUse] = []
    problems: dict[Diagnostic, None] = {}
    for client, alias, role, acl in _needs(configs, worker):
        try:
            uses.append(LoginUse(alias, _servers(client), principal_of(client, alias, role, given), acl))
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise ConfigError(problems)
    return put_together(uses)


def _needs(configs: Iterable[MirrorConfig], worker: WorkerConfig | None) -> Iterator[tuple[Settings, str, str, Acl]]:
    """Each ACL with the client that needs it, the alias of its cluster, and its role."""
    for config in configs:
        for flow, (place, acl) in config_needs(config):
            yield client_of(config, flow, place), cluster_of(flow, place), _ROLES[place], acl
    if worker is not None:
        client = worker.client
        yield from ((client, WORKER, "producer", acl) for acl in worker_acls(worker.settings))


def config_needs(config: MirrorConfig) -> Iterator[tuple[Flow, Need]]:
    """What a whole file, or a connector, needs."""
    rules = {flow: topic_rules(config, flow) for flow in config.enabled_flows}
    heartbeats = copied_heartbeats(rules)
    kinds = {"source": source_needs, "checkpoint": checkpoint_needs}
    wanted = [kinds[config.kind]] if isinstance(config, ConnectorConfig) and config.kind in kinds else kinds.values()
    for flow in config.flows if not isinstance(config, ConnectorConfig) or config.kind in kinds else ():
        mirror = _mirror(config, flow, heartbeats.get(flow, ()))
        yield from ((flow, need) for needs in wanted for need in needs(mirror))
    for pair in config.heartbeat_flows:
        yield from ((pair, need) for need in heartbeat_needs(_mirror(config, pair)))


def _mirror(config: MirrorConfig, flow: Flow, heartbeats: tuple[str, ...] = ()) -> FlowAclContext:
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


def client_of(config: MirrorConfig, flow: Flow, place: ClientRole) -> Settings:
    """The settings of one of a flow's clients."""
    if place is ClientRole.RECORDS:
        return config.records_client(flow)
    if place is ClientRole.OFFSETS:
        client = config.offsets_client(flow)
        assert client is not None
        return client
    alias = flow.source if place.name.startswith("SOURCE_") else flow.target
    return config.client(alias, _ROLES[place], flow)


def cluster_of(flow: Flow, place: ClientRole) -> str:
    """The alias of the cluster that one of a flow's clients reaches."""
    if place is ClientRole.OFFSETS:
        return WORKER
    return flow.source if place.name.startswith("SOURCE_") else flow.target


def _servers(client: Settings) -> tuple[str, ...]:
    """As written where they cannot be looked up: nothing is asked of them."""
    return split_list(client.values.get(client_keys.BOOTSTRAP_SERVERS.name, ""))

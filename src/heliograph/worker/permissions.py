"""From a configuration to the ACLs that each principal needs on each cluster, the fewest that do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import client_keys
from heliograph.config.connector import ConnectorConfig
from heliograph.config.types import split_list
from heliograph.errors import ConfigError
from heliograph.mirror.flow_permissions import (
    Mirror,
    Need,
    Place,
    checkpoint_needs,
    copied_heartbeats,
    heartbeat_needs,
    source_needs,
    worker_acls,
)
from heliograph.worker.logins import WORKER, Granted, Use, put_together
from heliograph.worker.principals import principal_of
from heliograph.worker.rules import topic_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from heliograph.config.mirror_config import MirrorConfig
    from heliograph.config.types import Settings
    from heliograph.config.worker_file import WorkerConfig
    from heliograph.mirror.permissions import Acl
    from heliograph.model import Flow

_ROLES = {
    Place.SOURCE_ADMIN: "admin",
    Place.SOURCE_CONSUMER: "consumer",
    Place.SOURCE_PRODUCER: "producer",
    Place.TARGET_ADMIN: "admin",
    Place.TARGET_PRODUCER: "producer",
    Place.RECORDS: "producer",
    Place.PROGRESS: "producer",
}


def needed_acls(
    configs: Iterable[MirrorConfig], given: Mapping[str, str], worker: WorkerConfig | None = None
) -> tuple[Granted, ...]:
    """The ACLs of all flows, or connectors, of one user's; `given` are principals that only the user knows."""
    uses: list[Use] = []
    problems: dict[str, None] = {}
    for client, alias, role, acl in _needs(configs, worker):
        try:
            uses.append(Use(alias, _servers(client), principal_of(client, alias, role, given), acl))
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise ConfigError(list(problems))
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


def _mirror(config: MirrorConfig, flow: Flow, heartbeats: tuple[str, ...] = ()) -> Mirror:
    administered = _servers(client_of(config, flow, Place.TARGET_ADMIN))
    is_split = set(_servers(config.records_client(flow))) != set(administered)
    driver_records = Place.RECORDS if is_split else Place.TARGET_ADMIN
    keeps_apart = config.progress_client(flow) is not None
    return Mirror(
        config.settings(flow),
        topic_rules(config, flow),
        config.source_connector(flow),
        heartbeats,
        driver_records=driver_records,
        driver_progress=Place.PROGRESS if keeps_apart else driver_records,
        task_progress=Place.PROGRESS if keeps_apart else Place.RECORDS,
        is_split=is_split,
        notes_offsets=config.notes_offsets,
    )


def client_of(config: MirrorConfig, flow: Flow, place: Place) -> Settings:
    """The settings of one of a flow's clients."""
    if place is Place.RECORDS:
        return config.records_client(flow)
    if place is Place.PROGRESS:
        client = config.progress_client(flow)
        assert client is not None
        return client
    alias = flow.source if place.name.startswith("SOURCE_") else flow.target
    return config.client(alias, _ROLES[place], flow)


def cluster_of(flow: Flow, place: Place) -> str:
    """The alias of the cluster that one of a flow's clients reaches."""
    if place is Place.PROGRESS:
        return WORKER
    return flow.source if place.name.startswith("SOURCE_") else flow.target


def _servers(client: Settings) -> tuple[str, ...]:
    """As written where they cannot be looked up: nothing is asked of them."""
    return split_list(client.values.get(client_keys.BOOTSTRAP_SERVERS.name, ""))

"""Turns a flow's configuration into the values by which clients connect, fetch and produce; opens no connection."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import client_keys
from heliograph.config.resolve.overlays import ROLES
from heliograph.errors import ConfigError, NotAllowedError, try_both
from heliograph.kafka.request_options import READ_COMMITTED, READ_UNCOMMITTED, FetchLimits, ProduceLimits
from heliograph.kafka.security.connection_spec import ClusterSpec, parse_bootstrap
from heliograph.kafka.security.security_settings import make_security

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heliograph.config.effective.connect_config import ConnectorConfig
    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.config.resolve.settings import Settings
    from heliograph.model import Address, Flow


WORKER_ALIAS = "worker"  # the cluster of a connector's worker, which has no alias


def cluster_spec(config: MirrorConfig, alias: str, role: str, flow: Flow) -> ClusterSpec:
    """Return how a task reaches a cluster in a role (consumer or producer)."""
    return spec_of(config.client(alias, role, flow), alias)


def records_spec(config: MirrorConfig, flow: Flow) -> ClusterSpec:
    """Return how a task reaches the cluster it writes records to."""
    return spec_of(config.records_client(flow), flow.target)


def offsets_spec(config: MirrorConfig, flow: Flow) -> ClusterSpec | None:
    """Return how a task reaches the cluster of source offsets; None if it is that of the records."""
    client = config.offsets_client(flow)
    return None if client is None else spec_of(client, WORKER_ALIAS)


def spec_of(client: Settings, alias: str) -> ClusterSpec:
    """Return how a client with these settings reaches its cluster."""
    bootstrap, security = try_both(lambda: _bootstrap(client, alias), lambda: make_security(client, alias))
    return ClusterSpec(alias, bootstrap, security, client[client_keys.REQUEST_TIMEOUT_MS])


def _bootstrap(client: Settings, alias: str) -> tuple[Address, ...]:
    name = client.written_as(client_keys.BOOTSTRAP_SERVERS)
    if not client[client_keys.BOOTSTRAP_SERVERS]:
        raise ConfigError(f"the cluster '{alias}' has no bootstrap servers; set '{name}' to host:port.", name)
    return parse_bootstrap(client[client_keys.BOOTSTRAP_SERVERS], name, client.raw.get("bootstrap.servers"))


def not_allowed(connector: ConnectorConfig) -> list[str]:
    """Return the values of a connector's clients that its worker, or a rule, does not allow, as far as they are known.

    Values that cannot be resolved yet (a file of a placeholder) are checked when the clients are made.
    """
    refused: dict[str, None] = {}
    for make_client, alias in _clients_of(connector):
        try:
            make_security(make_client(), alias)
        except NotAllowedError as error:
            refused |= dict.fromkeys(map(str, error.problems))
        except ConfigError:  # the connector fails with this sentence when it starts, as in Connect
            continue
    return list(refused)


def _clients_of(connector: ConnectorConfig) -> Iterator[tuple[Callable[[], Settings], str]]:
    flow = connector.flow
    for alias in flow:
        for role in ROLES:
            yield partial(connector.client, alias, role, flow), alias
    yield partial(connector.records_client, flow), flow.target


def fetch_limits(consumer: Settings, settings: Settings) -> FetchLimits:
    """Return how a task reads, by the source's consumer keys. Sizes set by the user are kept; the defaults may grow."""
    is_given = client_keys.FETCH_MAX_BYTES in consumer or client_keys.MAX_PARTITION_FETCH_BYTES in consumer
    buffer_bytes = settings[keys.TASK_BUFFER_BYTES]
    is_committed = consumer[client_keys.ISOLATION_LEVEL] == "read_committed"
    return FetchLimits(
        max_wait_ms=consumer[client_keys.FETCH_MAX_WAIT_MS],
        min_bytes=consumer[client_keys.FETCH_MIN_BYTES],
        max_bytes=min(consumer[client_keys.FETCH_MAX_BYTES], buffer_bytes),
        partition_max_bytes=consumer[client_keys.MAX_PARTITION_FETCH_BYTES],
        grows_to_bytes=0 if is_given else buffer_bytes // 2,
        isolation_level=READ_COMMITTED if is_committed else READ_UNCOMMITTED,
        rack=consumer[client_keys.CLIENT_RACK],
    )


def produce_limits(producer: Settings, settings: Settings) -> ProduceLimits:
    """Return how a task writes, by the target's producer keys."""
    return ProduceLimits(
        lanes=settings[keys.CONNECTIONS_PER_BROKER],
        max_in_flight=producer[client_keys.MAX_IN_FLIGHT],
        max_request_bytes=producer[client_keys.MAX_REQUEST_SIZE],
        request_timeout_ms=producer[client_keys.REQUEST_TIMEOUT_MS],
    )

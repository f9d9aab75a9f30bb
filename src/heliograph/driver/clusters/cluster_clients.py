"""Opens the driver's own clients of a flow's clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.resolve.key_places import connection_keys
from heliograph.driver.clusters.cluster_specs import WORKER_ALIAS, cluster_spec, offsets_spec, records_spec, spec_of
from heliograph.kafka.admin.admin import Admin

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.config.resolve.settings import Settings
    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import Flow


def make_admin(config: MirrorConfig, alias: str, flow: Flow) -> Admin:
    """Return a client for the driver's own requests."""
    return _admin(config, flow, alias, lambda: config.client(alias, "admin", flow))


class TargetClients:
    """Clients of the clusters a flow writes to: `target` is administered, `records` and `source_offsets` are written.

    In a dedicated-mode file all three are one cluster, and one client. `clients` are the different ones;
    `topic_clusters` are those that need the topics we write to, the one of the records last.
    """

    def __init__(self, config: MirrorConfig, flow: Flow) -> None:
        administered = cluster_spec(config, flow.target, "admin", flow)
        records = records_spec(config, flow)
        source_offsets = offsets_spec(config, flow)
        self.target = make_admin(config, flow.target, flow)
        self.records = self.target
        if set(records.bootstrap) != set(administered.bootstrap):
            self.records = _admin(config, flow, flow.target, lambda: config.records_client(flow))
        self.source_offsets = self.records
        if source_offsets is not None:
            self.source_offsets = _admin(
                config, flow, WORKER_ALIAS, lambda: config.offsets_client(flow), "The worker's cluster"
            )
        self.topic_clusters = tuple(dict.fromkeys((self.target, self.records)))
        self.clients = tuple(dict.fromkeys((self.target, self.records, self.source_offsets)))

    def close(self) -> None:
        """Close them all."""
        for client in self.clients:
            client.close()


def _admin(
    config: MirrorConfig, flow: Flow, alias: str, make_client: Callable[[], Settings | None], title: str = ""
) -> Admin:
    """Return a client that resolves its secrets again at each connection."""
    client = make_client()
    assert client is not None
    spec = spec_of(client, alias)

    def security() -> Security:
        newest = make_client()
        return spec.security if newest is None else spec_of(newest, alias).security

    return Admin(
        *(alias, spec.bootstrap, security, f"heliograph-{flow}-admin"),
        timeout_s=config.settings(flow)[keys.ADMIN_TIMEOUT_MS] / 1000,
        title=title,
        connection_keys=connection_keys(client, config.paths),
    )

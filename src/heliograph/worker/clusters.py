"""From a flow's configuration to the values and clients that reach its two clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.engine.spec import ClusterSpec
from heliograph.kafka.admin import Admin
from heliograph.kafka.cluster import parse_bootstrap
from heliograph.kafka.security import make_security

if TYPE_CHECKING:
    from heliograph.config.dedicated import MirrorMakerConfig
    from heliograph.model import Flow


def cluster_spec(config: MirrorMakerConfig, alias: str, role: str, flow: Flow) -> ClusterSpec:
    """How a task reaches a cluster in a role (consumer or producer)."""
    client = config.client(alias, role, flow)
    return ClusterSpec(
        alias,
        parse_bootstrap(client[keys.BOOTSTRAP_SERVERS], f"{alias}.bootstrap.servers"),
        make_security(client, alias),
        client[keys.REQUEST_TIMEOUT_MS],
    )


def make_admin(config: MirrorMakerConfig, alias: str, flow: Flow) -> Admin:
    """A client for the driver's own questions and changes."""
    spec = cluster_spec(config, alias, "admin", flow)
    timeout_s = config.settings(flow)[keys.ADMIN_TIMEOUT_MS] / 1000
    return Admin(alias, spec.bootstrap, spec.security, f"heliograph-{flow}-admin", timeout_s=timeout_s)

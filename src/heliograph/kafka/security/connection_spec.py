"""Addresses, security and time-outs of a cluster, as plain values that travel to executors.

Nothing is opened here. Files are read, tokens fetched and TLS contexts built when a socket opens, in the process that
opens it. Secrets travel in the task's payload, never in Spark's configuration, and are not part of a repr.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.diagnostics import problem
from heliograph.errors import ConfigError
from heliograph.kafka.security.keystores import Stores
from heliograph.model import Address

if TYPE_CHECKING:
    from heliograph.kafka.security.oauth import OAuthClient


@dataclass(frozen=True, slots=True)
class Security(Stores):
    """The values with which connections to a cluster's brokers are opened and authenticated."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    username: str = field(default="", repr=False, metadata={"is_secret": False})
    password: str = field(default="", repr=False)
    is_delegation_token: bool = False
    oauth: OAuthClient | None = None
    kerberos_service: str = ""
    kerberos_key_tab: str = ""
    aws_profile: str = ""
    checks_host_name: bool = True
    newest_tls: str = "TLSv1.3"
    oldest_tls: str = "TLSv1.2"
    cipher_suites: tuple[str, ...] = ()

    @property
    def uses_tls(self) -> bool:
        """Return whether the connection uses TLS."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Return whether the connection authenticates by SASL."""
        return self.protocol.startswith("SASL_")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The addresses, security and time-out of one cluster."""

    alias: str
    bootstrap: tuple[Address, ...]
    security: Security
    request_timeout_ms: int = 30_000


def parse_bootstrap(servers: tuple[str, ...], key: str, shown_as: str | None = None) -> tuple[Address, ...]:
    """Parse `host:port` entries; raise a ConfigError that names each invalid one, or `shown_as` in its place."""
    addresses, problems = [], []
    for server in servers:
        host, colon, port = server.rpartition(":")
        host = host.rpartition("//")[2].strip("[]")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            problems.append(problem(f"'{shown_as or server}' is not host:port.", key))
        else:
            addresses.append(Address(host, int(port)))
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return tuple(addresses)

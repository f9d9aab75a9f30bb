"""From `security.protocol`, `sasl.*` and `ssl.*` to the plain values that a connection is opened with.

`Security` is a frozen bag of strings: it crosses to executors. Files are read, tokens fetched and contexts built from
it where sockets open. Secrets never show in its repr. What contradicts itself or is missing is refused here, at load
time, with the key's name as the user wrote it.


What crosses to an executor: frozen values, no open resource. Sockets open inside the task.

Secrets travel here, in the task's payload, never in Spark's configuration; they do not show in a repr.

One cluster as a copy task sees it: who leads which partition, and a connection to each broker that matters.

A broker works on one request of a connection at a time, so one connection leaves a busy broker's other threads idle,
and over a long round trip it caps the rate. Therefore a broker can be reached over several *lanes*; a partition stays
on its lane, which keeps its order. Metadata is asked for at the start, when a broker says it is the wrong one, and
every `_MAX_AGE_S`; `version` counts the answers. Connections are made on first use and again, with back-off, after they
are lost. Nothing here blocks. `refusal` says that a broker does not know us, or we not it: what we log in with may be
out of date, which only whoever gave it can mend.

Invariants:
A. `trouble` is told only while somebody waits for a connection or an answer: a broker may close a connection that
   nobody uses, or leave the cluster.
B. A topic is asked for as long as somebody watches it and no longer: one that is deleted never has all its leaders, and
   would be asked for again and again.
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
    """How to connect to a cluster's brokers."""

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
        """Whether the socket is wrapped."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether the broker asks for credentials."""
        return self.protocol.startswith("SASL_")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """How to reach one cluster."""

    alias: str
    bootstrap: tuple[Address, ...]
    security: Security
    request_timeout_ms: int = 30_000


def parse_bootstrap(servers: tuple[str, ...], key: str, shown_as: str | None = None) -> tuple[Address, ...]:
    """`host:port` entries to addresses; raises a ConfigError that names each wrong one, or what was written for it."""
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

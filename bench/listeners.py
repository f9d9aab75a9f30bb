"""Additional listeners of the two clusters: one for the proxy, and one with TLS and SASL.

All listeners reach the same brokers and topics, so the topics of a TLS workload are filled and observed through the
plain listener, and the workload differs from its baseline in nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from bench.proxy import HOST, free_port

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_CLIENT = """\
{name}.security.protocol = SASL_SSL
{name}.sasl.mechanism = PLAIN
{name}.sasl.jaas.config = {plain} username="bench" password="bench";
{name}.ssl.truststore.type = PEM
{name}.ssl.truststore.location = {trusted}
"""


@dataclass
class BrokerListener:
    """A listener of a broker: its protocol, its port, and the port that it advertises if that differs."""

    protocol: str = "PLAINTEXT"
    port: int = field(default_factory=free_port)
    advertised_port: int = 0


@dataclass(frozen=True)
class Certificates:
    """The CA of this run, and the brokers' key with its certificate."""

    trusted: Path
    keystore: Path

    def client_lines(self, *names: str) -> str:
        """Return the lines of a copier's file for clusters that it reaches through the secured listener."""
        return "".join(_CLIENT.format(name=name, plain=_PLAIN, trusted=self.trusted) for name in names)


def make_certificates(folder: Path) -> Certificates:
    """Write the files for brokers and clients into a folder."""
    authority = trustme.CA()
    issued = authority.issue_cert(HOST, "localhost")
    made = Certificates(folder / "ca.pem", folder / "broker.pem")
    authority.cert_pem.write_to_path(str(made.trusted))
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # the one format Kafka reads
    made.keystore.write_bytes(pkcs8 + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return made


def broker_config(added: dict[str, BrokerListener], certificates: Certificates) -> dict[str, str]:
    """Return the broker settings for these listeners, by upper-case names, beside the plain one."""
    listeners = ["PLAINTEXT://" + HOST + ":{port}", *(f"{name}://{HOST}:{one.port}" for name, one in added.items())]
    advertised = [
        listeners[0],
        *(f"{name}://{HOST}:{one.advertised_port or one.port}" for name, one in added.items()),
    ]
    protocols = ["CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT", *(f"{n}:{one.protocol}" for n, one in added.items())]
    config = {
        "listeners": ",".join([*listeners, "CONTROLLER://" + HOST + ":{controller_port}"]),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(protocols),
        "inter.broker.listener.name": "PLAINTEXT",
    }
    for name in (name.lower() for name, one in added.items() if one.protocol == "SASL_SSL"):
        config[f"listener.name.{name}.sasl.enabled.mechanisms"] = "PLAIN"
        config[f"listener.name.{name}.plain.sasl.jaas.config"] = f'{_PLAIN} user_bench="bench";'
        config[f"listener.name.{name}.ssl.keystore.type"] = "PEM"
        config[f"listener.name.{name}.ssl.keystore.location"] = str(certificates.keystore)
    return config

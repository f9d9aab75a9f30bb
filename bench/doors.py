"""The ways into the two clusters: a plain one, one for the proxy, and one behind TLS and a password.

All of them lead to the same brokers and the same topics, so a row that copies over TLS is filled and watched by the
plain way, and differs from its neighbour in nothing else.
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
class Door:
    """A listener: where it is, where it says it is, and its protocol."""

    protocol: str = "PLAINTEXT"
    port: int = field(default_factory=free_port)
    advertised_port: int = 0


@dataclass(frozen=True)
class Certificates:
    """An authority of this run's own, and the brokers' key with its certificate."""

    trusted: Path
    keystore: Path

    def client_lines(self, *names: str) -> str:
        """What a copier's file says of clusters that it reaches by the secured way."""
        return "".join(_CLIENT.format(name=name, plain=_PLAIN, trusted=self.trusted) for name in names)


def make_certificates(folder: Path) -> Certificates:
    """Files for brokers and clients, good as long as the folder is."""
    authority = trustme.CA()
    issued = authority.issue_cert(HOST, "localhost")
    made = Certificates(folder / "ca.pem", folder / "broker.pem")
    authority.cert_pem.write_to_path(str(made.trusted))
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # the one format Kafka reads
    made.keystore.write_bytes(pkcs8 + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return made


def broker_config(doors: dict[str, Door], certificates: Certificates) -> dict[str, str]:
    """The settings that give a broker these doors beside its plain one, by their names in capitals."""
    listeners = ["PLAINTEXT://" + HOST + ":{port}", *(f"{name}://{HOST}:{door.port}" for name, door in doors.items())]
    advertised = [
        listeners[0],
        *(f"{name}://{HOST}:{door.advertised_port or door.port}" for name, door in doors.items()),
    ]
    protocols = ["CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT", *(f"{n}:{door.protocol}" for n, door in doors.items())]
    config = {
        "listeners": ",".join([*listeners, "CONTROLLER://" + HOST + ":{controller_port}"]),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(protocols),
        "inter.broker.listener.name": "PLAINTEXT",
    }
    for name in (name.lower() for name, door in doors.items() if door.protocol == "SASL_SSL"):
        config[f"listener.name.{name}.sasl.enabled.mechanisms"] = "PLAIN"
        config[f"listener.name.{name}.plain.sasl.jaas.config"] = f'{_PLAIN} user_bench="bench";'
        config[f"listener.name.{name}.ssl.keystore.type"] = "PEM"
        config[f"listener.name.{name}.ssl.keystore.location"] = str(certificates.keystore)
    return config

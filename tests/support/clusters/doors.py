"""A cluster with a door for every way in: one broker, many listeners, and what a client needs for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from heliograph.config.resolve.settings import Settings
from heliograph.embedded.kafka_cluster import EmbeddedCluster, forget_cluster, start_cluster
from heliograph.embedded.process import free_ports
from heliograph.errors import AuthenticationError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import ClusterSpec
from heliograph.kafka.security.security_settings import make_security
from heliograph.model import Address
from tests.conftest import KEEP_RECORDS
from tests.support.clusters.stores import STORE_PASSWORD, Authority
from tests.support.clusters.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer, token_server
from tests.support.runs.copying import wait_for

MODULES = "org.apache.kafka.common.security"
PLAIN = f"{MODULES}.plain.PlainLoginModule required"
SCRAM = f"{MODULES}.scram.ScramLoginModule required"
OAUTH = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
PASSWORD = "s3cret-canary"
SESSION_MS = 10_000  # of which a renewal may take half, also on a busy machine
# Each door: the protocol it speaks, and the keystore its broker shows.
DOORS = {
    "SSL": ("SSL", "broker"),
    "MTLS": ("SSL", "broker"),
    "SASL_SSL": ("SASL_SSL", "broker"),
    "SASL_PLAINTEXT": ("SASL_PLAINTEXT", "broker"),
    "SHORT": ("SASL_SSL", "broker"),
    "EXPIRED": ("SSL", "expired"),
    "ELSEWHERE": ("SSL", "elsewhere"),
}
SASL_DOORS = ("sasl_ssl", "sasl_plaintext", "short")


class World:
    """The authority that everyone trusts, the client's stores, and the server that gives tokens."""

    def __init__(self, folder: Path, tokens: TokenServer, web: TokenServer) -> None:
        self.folder, self.tokens, self.web = folder, tokens, web
        self.authority = Authority()
        self.client = self.authority.issue(name="mirror")
        self.brokers = {
            "broker": self.authority.issue("127.0.0.1", "localhost"),
            "expired": self.authority.issue("127.0.0.1", days=-1),
            "elsewhere": self.authority.issue("elsewhere.example"),
        }
        for name, identity in self.brokers.items():
            identity.pem_file(folder / f"{name}.pem")
        self.authority.pem_file(folder / "ca.pem")
        self._made: dict[str, Path] = {}

    def trusted(self, kind: str = "PEM") -> dict[str, str]:
        """Keys of a truststore; that a store is PKCS12 is often not said, and JKS the default."""
        if kind == "PEM":
            return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.folder / "ca.pem")}
        if kind == "INLINE":
            return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.authority.pem}
        path = self._once(f"trusted.{kind.lower()}", lambda path: self.authority.store(path, kind))
        return {"ssl.truststore.location": str(path), "ssl.truststore.password": STORE_PASSWORD}

    def own(self, kind: str) -> dict[str, str]:
        """Keys of the client's keystore."""
        if kind == "INLINE":
            chain = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": self.client.chain_pem}
            return {**chain, "ssl.keystore.key": self.client.key_pem("key-canary"), "ssl.key.password": "key-canary"}
        if kind == "PEM":
            path = self._once("client.pem", self.client.pem_file)
            return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
        make = {"JKS": lambda path: self.client.jks_file(path, "key-canary"), "PKCS12": self.client.pkcs12_file}[kind]
        path = self._once(f"client.{kind.lower()}", make)
        keys = {"ssl.keystore.location": str(path), "ssl.keystore.password": STORE_PASSWORD}
        return keys | ({"ssl.key.password": "key-canary"} if kind == "JKS" else {})

    def _once(self, name: str, make: Callable[[Path], Path]) -> Path:
        if name not in self._made:
            self._made[name] = make(self.folder / name)
        return self._made[name]

    def login(self, mechanism: str) -> dict[str, str]:
        """Keys of a login."""
        keys = {"sasl.mechanism": mechanism}
        if mechanism == "OAUTHBEARER":
            trusted = f'ssl.truststore.location="{self.folder}/ca.pem" ssl.truststore.type="PEM"'
            jaas = f'{OAUTH} clientId="{CLIENT_ID}" clientSecret="{CLIENT_SECRET}" scope="k" {trusted};'
            return keys | {"sasl.jaas.config": jaas, "sasl.oauthbearer.token.endpoint.url": self.web.url}
        module = PLAIN if mechanism == "PLAIN" else SCRAM
        return keys | {"sasl.jaas.config": f'{module} username="mirror" password="{PASSWORD}";'}


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Tokens come over TLS; brokers fetch the keys to check them by without."""
    with ExitStack() as stack:
        tokens = stack.enter_context(token_server())
        made = World(folder, tokens, tokens)
        web = stack.enter_context(token_server(made.authority.issue("127.0.0.1").pem_file(folder / "web.pem")))
        web._key = tokens._key
        made.web = web
        yield made


class Doors:
    """One such cluster."""

    def __init__(self, cluster: EmbeddedCluster, ports: dict[str, int]) -> None:
        self.cluster, self.ports = cluster, ports

    def bootstrap(self, door: str) -> str:
        return self.cluster.bootstrap if door == "PLAINTEXT" else f"127.0.0.1:{self.ports[door]}"

    def keys(self, door: str, *parts: dict[str, str]) -> dict[str, str]:
        """All client keys for a door."""
        protocol = "PLAINTEXT" if door == "PLAINTEXT" else DOORS[door][0]
        keys = {"bootstrap.servers": self.bootstrap(door), "security.protocol": protocol}
        return {**keys, **{name: value for part in parts for name, value in part.items()}}

    def spec(self, alias: str, door: str, *parts: dict[str, str]) -> ClusterSpec:
        """How a task comes in."""
        host, _, port = self.bootstrap(door).rpartition(":")
        security = make_security(Settings(self.keys(door, *parts), f"{alias}."), alias)
        return ClusterSpec(alias, (Address(host, int(port)),), security, 10_000)

    @contextmanager
    def showing(self, door: str, store: Path) -> Iterator[None]:
        """Meanwhile the broker shows another certificate at a door."""
        name = f"listener.name.{door.lower()}.ssl.keystore.location"
        self._alter(ConfigEntry(name, str(store), incremental_operation=AlterConfigOpType.SET))
        try:
            yield
        finally:
            self._alter(ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE))

    def _alter(self, entry: ConfigEntry) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})
        (broker,) = admin.list_topics(timeout=120).brokers
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker), incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(120)

    def set_password(self, password: str, user: str = "mirror") -> None:
        """Of both SCRAM mechanisms."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            wanted = UserScramCredentialUpsertion(user, info, password.encode())
            admin.alter_user_scram_credentials([wanted])[user].result(120)


def _lets_in(spec: ClusterSpec) -> bool:
    """A password is set before every broker knows it."""
    admin = Admin(spec.alias, spec.bootstrap, spec.security, "test", timeout_s=60)
    try:
        return bool(admin.view([]).brokers)
    except AuthenticationError:
        return False
    finally:
        admin.close()


@contextmanager
def doors(name: str, made: World) -> Iterator[Doors]:
    ports = dict(zip(DOORS, free_ports(len(DOORS)), strict=True))
    opened = ",".join(f"{door}://127.0.0.1:{port}" for door, port in ports.items())
    protocols = ",".join(f"{door}:{protocol}" for door, (protocol, _store) in DOORS.items())
    jwks = made.tokens.url.replace("/token", "/keys")
    config = {
        "listeners": f"PLAINTEXT://127.0.0.1:{{port}},{opened},CONTROLLER://127.0.0.1:{{controller_port}}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},{opened}",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{protocols}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": jwks,
        "sasl.oauthbearer.expected.audience": "kafka",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(made.folder / "ca.pem"),
        "listener.name.mtls.ssl.client.auth": "required",
        "ssl.allow.dn.changes": "true",
        "ssl.allow.san.changes": "true",
        "listener.name.short.connections.max.reauth.ms": str(SESSION_MS),
    }
    for door, (protocol, store) in DOORS.items():
        if protocol.endswith("SSL"):
            config[f"listener.name.{door.lower()}.ssl.keystore.type"] = "PEM"
            config[f"listener.name.{door.lower()}.ssl.keystore.location"] = str(made.folder / f"{store}.pem")
    handler = f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    for door in SASL_DOORS:
        prefix = f"listener.name.{door}"
        config[f"{prefix}.plain.sasl.jaas.config"] = f'{PLAIN} user_mirror="{PASSWORD}" user_token="{PASSWORD}";'
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            config[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{SCRAM};"
        config[f"{prefix}.oauthbearer.sasl.jaas.config"] = f"{OAUTH};"
        config[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = handler
    unique = f"test-{os.getpid()}-{name}"
    options = f"{os.environ['KAFKA_HEAP_OPTS']} -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks}"
    with mock.patch.dict(os.environ, {"KAFKA_HEAP_OPTS": options}):
        cluster = start_cluster(unique, data=made.folder / name, config=KEEP_RECORDS | config)
    try:
        opened_doors = Doors(cluster, ports)
        opened_doors.set_password(PASSWORD)
        wait_for(lambda: _lets_in(opened_doors.spec("A", "SASL_PLAINTEXT", made.login("SCRAM-SHA-512"))))
        yield opened_doors
    finally:
        cluster.stop()
        forget_cluster(unique)

"""Document 000's first file, its hosts and certificates replaced: a SASL_SSL source with PLAIN, a plain target."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from heliograph.embedded.cluster import EmbeddedCluster, forget_cluster, start_cluster
from heliograph.kafka.admin import Admin
from heliograph.kafka.security import Security
from heliograph.mirror.topics import CreateTopic
from heliograph.model import Address
from tests.clients import read, write
from tests.running import run

pytestmark = pytest.mark.spark

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
FILE = """\
clusters=source, target
source.bootstrap.servers={source}
source.security.protocol=SASL_SSL
source.ssl.protocol=TLSv1.2
source.sasl.mechanism=PLAIN
source.sasl.jaas.config={plain} username="token" password="{password}";
source.ssl.truststore.type=PEM
source.ssl.truststore.location={trusted}
target.bootstrap.servers={target}
# enable and configure individual replication flows
source->target.enabled=true
source->target.topics=orders
"""


class Secured:
    """A cluster behind TLS and passwords, and what a client needs to get in."""

    def __init__(self, cluster: EmbeddedCluster, trusted: Path) -> None:
        self.cluster, self.trusted = cluster, trusted
        self.client = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "token",
            "sasl.password": "s3cret-canary",
            "ssl.ca.location": str(trusted),
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    trusted, keystore = folder / "ca.pem", folder / "broker.pem"
    authority.cert_pem.write_to_path(str(trusted))
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # the one format Kafka reads
    keystore.write_bytes(pkcs8 + b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    users = 'user_admin="admin" user_token="s3cret-canary"'
    config = {
        "listeners": "SASL_SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": "SASL_SSL://127.0.0.1:{port}",
        "inter.broker.listener.name": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} username="admin" password="admin" {users};',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
    }
    name = f"test-{os.getpid()}-secured"
    cluster = start_cluster(name, data=folder / "data", config=config)
    try:
        security = Security("SASL_SSL", "PLAIN", "token", "s3cret-canary", trusted_file=str(trusted))
        address = Address("127.0.0.1", cluster.brokers[0].port)
        admin = Admin("source", (address,), security, "test", timeout_s=30)
        assert admin.create_topics([CreateTopic("orders", 2, 1, ())]) == {}
        admin.wait_for_leaders({"orders": 2})
        admin.close()
        yield Secured(cluster, trusted)
    finally:
        cluster.stop()
        forget_cluster(name)


def write_file(folder: Path, secured: Secured, target: EmbeddedCluster, password: str, trusted: Path | str) -> Path:
    file = folder / "mm2.properties"
    file.write_text(
        FILE.format(
            source=secured.cluster.bootstrap,
            target=target.bootstrap,
            plain=PLAIN,
            password=password,
            trusted=trusted,
        )
    )
    return file


def test_orders_cross_the_border(secured: Secured, target: EmbeddedCluster, tmp_path: Path) -> None:
    records = ({"value": f"order {n}".encode(), "partition": n % 2} for n in range(2000))
    write(secured.cluster, "orders", records, **secured.client)
    file = write_file(tmp_path, secured, target, "${file:" + str(tmp_path / "pw") + ":key}", secured.trusted)
    (tmp_path / "pw").write_text("key=s3cret-canary\n")
    ended = run("run", file, "--once", "--verbose")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "s3cret-canary" not in ended.stdout + ended.stderr
    assert read(target, "source.orders", 2) == read(secured.cluster, "orders", 2, **secured.client)


def test_a_wrong_password_is_one_sentence_without_the_password(
    secured: Secured, target: EmbeddedCluster, tmp_path: Path
) -> None:
    ended = run("run", write_file(tmp_path, secured, target, "wrong-canary", secured.trusted))
    assert ended.returncode == 3
    assert "refused the user 'token'" in ended.stderr
    assert "wrong-canary" not in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_an_unknown_authority_is_one_sentence(secured: Secured, target: EmbeddedCluster, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    ended = run("run", write_file(tmp_path, secured, target, "s3cret-canary", other))
    assert ended.returncode == 3
    assert "the broker's certificate is not trusted" in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr

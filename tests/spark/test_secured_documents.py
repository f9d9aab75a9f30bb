"""The secured files of documents 000, 002 and 003, run as written: only hosts and credentials are replaced.

Where a document names no truststore its clusters show certificates of a public authority; here `SSL_CERT_FILE` makes
the test's own one known to this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import make_topic, read, write
from tests.support.clusters.doors import PASSWORD, Doors, World, doors, world
from tests.support.clusters.stores import keytool
from tests.support.runs.running import run

pytestmark = pytest.mark.spark

DOCUMENTS = Path(__file__).parents[1] / "documents"
LOCAL = "kafka1:9092,kafka2:9093,kafka3:9094"


class Secured:
    """A cluster behind TLS and passwords, and the topics of the documents in it."""

    def __init__(self, made: World, cluster: Doors) -> None:
        self.world, self.doors, self.cluster = made, cluster, cluster.cluster
        self.public = {"SSL_CERT_FILE": str(made.folder / "ca.pem")}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with world(tmp_path_factory.mktemp("secured")) as made, doors("secured", made) as opened:
        for topic in ("orders", "products"):
            make_topic(opened.cluster, topic, 2)
            write(opened.cluster, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(500)))
        yield Secured(made, opened)


def written(folder: Path, document: str, *replacements: tuple[str, str]) -> Path:
    """A document's file with its hosts and credentials replaced."""
    text = (DOCUMENTS / document).read_text()
    for before, after in replacements:
        assert before in text
        text = text.replace(before, after)
    file = folder / Path(document).name
    file.write_text(text)
    return file


def event_streams_file(folder: Path, secured: Secured, target: EmbeddedCluster, password: str) -> Path:
    document = "000/event-streams-to-local.properties"
    brokers = (DOCUMENTS / document).read_text().partition("source.bootstrap.servers=")[2].splitlines()[0]
    replaced = ((brokers, secured.doors.bootstrap("SASL_SSL")), (LOCAL, target.bootstrap), ("985...", password))
    return written(folder, document, *replaced)


def test_orders_cross_the_border(secured: Secured, target: EmbeddedCluster, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text(f"key={PASSWORD}\n")
    file = event_streams_file(tmp_path, secured, target, "${file:" + str(tmp_path / "pw") + ":key}")
    ended = run("run", file, "--once", "--verbose", **secured.public)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr
    assert read(target, "source.orders", 2) == read(secured.cluster, "orders", 2)


def test_a_store_made_by_the_documents_own_keytool_command_is_trusted(
    secured: Secured, target: EmbeddedCluster, tmp_path: Path
) -> None:
    store = tmp_path / "truststore.jks"  # which keytool makes in PKCS12, whatever its name says
    certificate = ("-alias", "root", "-file", secured.world.folder / "ca.pem")
    keytool("-import", "-trustcacerts", *certificate, "-keystore", store, "-storepass", "password", "-noprompt")
    host = "my-cluster-kafka-bootstrap-jb-kafka-strimzi.gse-eda-demos-fa9ee67c9ab6a7791435450358e564cc-0001.us-east"
    places = ((f"{host}.containers.appdomain.cloud:443", secured.doors.bootstrap("SSL")), (LOCAL, target.bootstrap))
    # The aliases are those of the document before; another gives the copy a topic of its own.
    aliases = (("clusters=source", "clusters=strimzi"), ("source.", "strimzi."), ("source->", "strimzi->"))
    file = written(tmp_path, "000/strimzi-mm2.properties", *places, ("/home/truststore.jks", str(store)), *aliases)
    ended = run("run", file, "--once")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert read(target, "strimzi.orders", 2) == read(secured.cluster, "orders", 2)


def test_products_go_to_event_streams_with_the_key_of_the_environment(
    secured: Secured, source: EmbeddedCluster, tmp_path: Path
) -> None:
    make_topic(source, "products", 2)
    write(source, "products", ({"value": b"local %d" % n, "partition": n % 2} for n in range(500)))
    variables = {
        "KAFKA_SOURCE_BROKERS": source.bootstrap,
        "KAFKA_TARGET_BROKERS": secured.doors.bootstrap("SASL_SSL"),
        "KAFKA_TARGET_APIKEY": PASSWORD,
    }
    file = written(tmp_path, "002/local-to-event-streams.properties")
    ended = run("run", file, "--once", **variables, **secured.public)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr
    assert read(secured.cluster, "source.products", 2) == read(source, "products", 2)


def test_a_resource_with_client_certificates_runs_between_event_streams(secured: Secured, tmp_path: Path) -> None:
    secrets, client = tmp_path / "secrets", secured.world.client
    contents = {
        "light-es-cluster-ca-cert/ca.crt": secured.world.authority.pem,
        "es-tls-user/user.crt": client.chain_pem,
        "es-tls-user/user.key": client.key_pem(),
    }
    for name, content in contents.items():
        (secrets / name).parent.mkdir(parents=True, exist_ok=True)
        (secrets / name).write_text(content)
    hosts = (
        ("light-es-kafka-bootstrap.integration.svc:9093", secured.doors.bootstrap("MTLS")),
        ("gse-eda-dev-kafka-bootstrap.eventstreams.svc:9092", secured.doors.bootstrap("SSL")),
        ("storage.replication.factor: 3", "storage.replication.factor: 1"),  # the test's cluster is one broker
    )
    file = written(tmp_path, "003/es-to-es.yml", *hosts)
    ended = run("run", file, "--once", "--secrets", secrets, **secured.public)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert read(secured.cluster, "es-src.products", 2) == read(secured.cluster, "products", 2)


def test_a_wrong_password_is_one_sentence_without_the_password(
    secured: Secured, target: EmbeddedCluster, tmp_path: Path
) -> None:
    ended = run("run", event_streams_file(tmp_path, secured, target, "wrong-canary"), **secured.public)
    assert ended.returncode == 3
    (sentence,) = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert "The cluster 'source' cannot be used: " in sentence
    assert "refused the user 'token' of source.sasl.jaas.config: " in sentence
    assert "wrong-canary" not in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr

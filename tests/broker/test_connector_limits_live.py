"""A running worker, attacked through REST: no file of its machine reaches a broker, and no address that is not listed.

The attacker's broker and an internal address only listen: a connection to either is already too much.
"""

from __future__ import annotations

import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from heliograph.cli.commands.worker import serving
from heliograph.cli.inputs import MachineLookup
from heliograph.config.validate.worker_file import load_worker
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.interop.rest_story import ask
from tests.support.connect.connect_worker import MIRROR, worker_file
from tests.support.connect.rest_worker import RestWorker, login_lines
from tests.support.runs.copying import wait_for
from tests.support.runs.thread_engine import thread_engine

pytestmark = pytest.mark.broker

URL_KEY = "source.cluster.sasl.oauthbearer.token.endpoint.url"
PROVIDERS = (
    "config.providers=file",
    "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider",
)


class Recorder:
    """A listening port that keeps what it receives and answers nothing."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.received: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _address = self._socket.accept()
            except OSError:
                return
            self.received.append(b"")
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        with connection:
            self.received.append(connection.recv(1 << 16))

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Attack(NamedTuple):
    """A worker that runs, and the attacker's two ports."""

    worker: RestWorker
    broker: Recorder
    internal: Recorder
    token: Path
    folder: Path
    cluster: str

    def config(self, url: str) -> dict[str, str]:
        return {
            "connector.class": f"{MIRROR}.MirrorSourceConnector",
            "source.cluster.alias": "A",
            "source.cluster.bootstrap.servers": self.broker.address,
            "target.cluster.bootstrap.servers": self.cluster,
            "source.cluster.security.protocol": "SASL_PLAINTEXT",
            "source.cluster.sasl.mechanism": "OAUTHBEARER",
            "source.cluster.sasl.jaas.config": 'x required clientId="c" clientSecret="not-a-canary";',
            URL_KEY: url,
        }

    def check_untouched(self) -> None:
        assert self.broker.received == []
        assert self.internal.received == []

    def trace(self, name: str) -> str:
        """Of a connector that has failed; empty while it has not."""
        reply = self.worker.ask("GET", f"/connectors/{name}/status")
        reported: dict[str, Any] = reply.body["connector"] if reply.status == 200 else {}
        return str(reported.get("trace", "")) if reported.get("state") == "FAILED" else ""


class _Rest(RestWorker):
    """The REST API of a whole worker, without a herder to look into."""

    def __init__(self, url: str) -> None:
        self._url, self.tls, self.authorization = url, None, None

    @property
    def url(self) -> str:
        return self._url


@contextmanager
def attacked(cluster: EmbeddedCluster, folder: Path, *lines: str) -> Iterator[Attack]:
    token = folder / "service-account-token"
    token.write_text(f"c4nary.{secrets.token_hex(12)}.token")
    broker, internal = Recorder(), Recorder()
    name = f"limits-{secrets.token_hex(4)}"
    file = worker_file(folder, cluster, name, 0, *PROVIDERS, *lines)
    try:
        with serving(load_worker(file.read_text(), MachineLookup()), thread_engine()) as url:
            worker = _Rest(url)
            wait_for(lambda: ask(url, "GET", "/health")[0] in (200, 401))
            yield Attack(worker, broker, internal, token, folder, cluster.bootstrap)
    finally:
        broker.close()
        internal.close()


@pytest.fixture(scope="module")
def attack(source: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attack]:
    with attacked(source, tmp_path_factory.mktemp("limits")) as found:
        yield found


def test_neither_a_file_nor_an_internal_address_is_taken_as_a_token_endpoint(attack: Attack) -> None:
    for url in (f"file://{attack.token}", f"http://{attack.internal.address}/latest/meta-data"):
        reply = attack.worker.ask("POST", "/connectors", {"name": "thief", "config": attack.config(url)})
        assert reply.status == 400, reply.body
        assert f"{URL_KEY}: the worker allows connectors no such URL" in reply.body["message"]
        put = attack.worker.ask("PUT", "/connectors/thief/config", attack.config(url))
        assert put.status == 400
    assert attack.worker.ask("GET", "/connectors").body == []
    attack.check_untouched()


def test_a_file_that_changes_after_the_config_was_accepted_opens_no_connection(attack: Attack) -> None:
    secret = attack.folder / "later.properties"
    secret.write_text("url=not a URL yet\n")
    config = attack.config(f"${{file:{secret}:url}}")
    assert attack.worker.ask("POST", "/connectors", {"name": "later", "config": config}).status == 201
    wait_for(lambda: "it must be a URL" in attack.trace("later"))
    secret.write_text(f"url=file://{attack.token}\n")
    wait_for(lambda: "the worker allows connectors no such URL" in attack.trace("later"))
    assert str(attack.token) not in attack.trace("later")
    attack.check_untouched()
    assert attack.worker.ask("DELETE", "/connectors/later").status == 204


def test_no_module_of_the_machine_is_imported(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"acme_{secrets.token_hex(4)}"
    (attack.folder / f"{module}.py").write_text("class Policy: pass\n")
    monkeypatch.syspath_prepend(str(attack.folder))
    config = {**attack.config("https://idp.example/"), "replication.policy.class": f"{module}:Policy"}
    reply = attack.worker.ask("POST", "/connectors", {"name": "loads", "config": config})
    assert reply.status == 400
    assert "heliograph.plugin.packages" in reply.body["message"]
    assert module not in sys.modules


def test_what_a_placeholder_holds_is_in_no_answer(attack: Attack) -> None:
    canary = f"S3cret-{secrets.token_hex(8)}"
    (attack.folder / "db.properties").write_text(f"password={canary}\n")
    placeholder = f"${{file:{attack.folder}/db.properties:password}}"
    plain = {key: value for key, value in attack.config("").items() if ".sasl." not in key and ".security." not in key}
    reply = attack.worker.ask(
        "POST", "/connectors", {"name": "x", "config": {**plain, "replication.policy.class": f"{placeholder}:X"}}
    )
    assert reply.status == 400
    assert placeholder in reply.body["message"]
    assert canary not in str(reply.body)
    servers = {**plain, "source.cluster.bootstrap.servers": f"{placeholder}.invalid:9092"}
    assert attack.worker.ask("POST", "/connectors", {"name": "y", "config": servers}).status == 201
    wait_for(lambda: attack.trace("y") != "")
    assert canary.lower() not in attack.trace("y").lower()
    assert attack.worker.ask("DELETE", "/connectors/y").status == 204


def test_with_a_listed_endpoint_the_same_connector_connects(source: EmbeddedCluster, tmp_path: Path) -> None:
    """The limits are what keeps the others away."""
    url = "http://127.0.0.1:1/token"
    with attacked(source, tmp_path, f"org.apache.kafka.sasl.oauthbearer.allowed.urls={url}") as attack:
        reply = attack.worker.ask("POST", "/connectors", {"name": "honest", "config": attack.config(url)})
        assert reply.status == 201, reply.body
        wait_for(lambda: attack.broker.received)
        assert attack.worker.ask("DELETE", "/connectors/honest").status == 204


def test_rules_hold_for_what_a_tenants_own_file_names(source: EmbeddedCluster, tmp_path: Path) -> None:
    own, url = tmp_path / "tenant.properties", "https://127.0.0.1:1/token"
    (tmp_path / "rules.yaml").write_text(f"- {{users: tenant, change: tenant-.*, secrets: '{own}'}}\n")
    lines = {**login_lines(tmp_path, "tenant"), "heliograph.rest.rules.file": f"{tmp_path}/rules.yaml"}
    lines["org.apache.kafka.sasl.oauthbearer.allowed.urls"] = url
    login = f'x required clientId="c" clientSecret="s" ssl.keystore.location="{tmp_path}/platform.jks";'
    with attacked(source, tmp_path, *(f"{key}={value}" for key, value in lines.items())) as attack:
        attack.worker.log_in("tenant")
        config = {**attack.config(url), "source.cluster.sasl.jaas.config": f"${{file:{own}:jaas}}"}
        own.write_text(f"jaas={login}\n")
        reply = attack.worker.ask("POST", "/connectors", {"name": "tenant-1", "config": config})
        assert reply.status == 400, reply.body
        assert "source.cluster.sasl.jaas.config: the `secrets` in" in reply.body["message"]
        own.write_text("jaas=not a login yet\n")
        assert attack.worker.ask("POST", "/connectors", {"name": "tenant-2", "config": config}).status == 201
        own.write_text(f"jaas={login}\n")
        wait_for(lambda: "source.cluster.sasl.jaas.config: the `secrets` in" in attack.trace("tenant-2"))
        assert "platform.jks" not in attack.trace("tenant-2")
        attack.check_untouched()

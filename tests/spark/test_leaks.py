"""Secrets of every kind, each a canary: run, fail, crash and query everything, then look for them everywhere.

One cluster is source and target, behind TLS with client certificates and passwords, a user per canary. Looked at are
all output, logs, REST answers, Spark's pages and event log, every file that appears in the folders for temporary files
and in the current one, command lines of all processes, and every record of every topic.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest
import trustme
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from heliograph.api.routes import ROUTES
from heliograph.cli.main import cli
from heliograph.embedded.cluster import EmbeddedCluster, forget_cluster, start_cluster
from heliograph.kafka.admin import Admin
from heliograph.kafka.security import Security
from heliograph.mirror.topics import CreateTopic
from heliograph.model import Address
from tests.canaries import Canaries, Watch
from tests.clients import read, write
from tests.connect_worker import MIRROR, free_port
from tests.copying import wait_for
from tests.running import python_workers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SECURITY = "org.apache.kafka.common.security"
PLAIN = f"{SECURITY}.plain.PlainLoginModule required"
PROVIDERS = "org.apache.kafka.common.config.provider"
USERS = ("literal", "env", "file", "dir")  # where the file has their passwords
SPARK_PAGES = (
    "/jobs/",
    "/jobs/job/?id=0",
    "/stages/",
    "/stages/stage/?id=0&attempt=0",
    "/storage/",
    "/environment/",
    "/executors/",
    "/executors/threadDump/?executorId=driver",
    "/api/v1/applications",
)
SPARK_DATA = ("environment", "jobs", "stages", "allexecutors", "executors/driver/threads")


class World:
    """The cluster, the user's files, and everything that is looked at."""

    cluster: EmbeddedCluster

    def __init__(self, folder: Path) -> None:
        self.canaries = Canaries()
        self.user, self.temp, self.current = folder / "user", folder / "temp", folder / "current"
        for each in (self.user, self.temp, self.current, self.user / "mounted"):
            each.mkdir()
        self.variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))),
            "LEAK_PASSWORD": self.canaries["env"],
            "TMPDIR": str(self.temp),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.temp}",
        }
        (self.user / "logins.properties").write_text(
            f"password={self.canaries['file']}\nkey={self.canaries['key password']}\nwrong={self.canaries['wrong']}\n"
        )
        (self.user / "mounted" / "password").write_text(self.canaries["dir"])
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(str(self.user / "ca.pem"))
        self.inline_key = self._certificate("client.pem", self.canaries["key password"])
        self.port, self.plain_port = free_port(), free_port()

    def _certificate(self, name: str, password: str | None) -> str:
        """A certificate with its key, which is returned in plain text, in a file that may have a password."""
        issued = self.authority.issue_cert("127.0.0.1", "localhost")
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        (self.user / name).write_bytes(pem + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self.canaries.add(f"key of {name}", plain.splitlines()[1])
        return plain

    def broker_config(self) -> dict[str, str]:
        """Listeners for us, and one for the test that asks for nothing."""
        self._certificate("broker.pem", None)
        users = " ".join(f'user_{name}="{self.canaries[name]}"' for name in USERS)
        return {
            "listeners": (
                f"SASL_SSL://127.0.0.1:{self.port},PLAINTEXT://127.0.0.1:{self.plain_port},"
                "CONTROLLER://127.0.0.1:{controller_port}"
            ),
            "advertised.listeners": f"SASL_SSL://127.0.0.1:{self.port},PLAINTEXT://127.0.0.1:{self.plain_port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{PLAIN} {users};",
            "listener.name.sasl_ssl.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.user / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.user / "ca.pem"),
        }

    def placeholder(self, name: str) -> str:
        """What stands in a file for a user's password."""
        return {
            "literal": self.canaries["literal"],
            "env": "${LEAK_PASSWORD}",
            "file": f"${{file:{self.user}/logins.properties:password}}",
            "dir": f"${{dir:{self.user}/mounted:password}}",
            "wrong": f"${{file:{self.user}/logins.properties:wrong}}",
        }[name]

    def login(self, user: str, prefix: str, password: str = "") -> dict[str, str]:
        """How a client gets in as a user."""
        keys = {
            "bootstrap.servers": f"127.0.0.1:{self.port}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} username="{user}" password="{password or self.placeholder(user)}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": f"{self.user}/ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": f"{self.user}/client.pem",
            "ssl.key.password": f"${{file:{self.user}/logins.properties:key}}",
        }
        return {prefix + key: value for key, value in keys.items()}

    def properties(self, name: str, *parts: Mapping[str, str]) -> Path:
        """A file of the user's."""
        file = self.user / f"{name}.properties"
        lines = [f"{key}={_one_line(value)}" for part in parts for key, value in part.items()]
        file.write_text("\n".join(lines) + "\n")
        return file

    def mirror_file(self, name: str, *parts: Mapping[str, str]) -> Path:
        """From A to B, both the one cluster; four users, four places of their passwords."""
        flow = {
            "clusters": "A, B",
            "A->B.enabled": "true",
            "A->B.topics": "orders",
            "sync.topic.acls.enabled": "false",
            "replication.factor": "1",
        }
        roles = {
            "A.admin.sasl.jaas.config": f'{PLAIN} username="env" password={self.placeholder("env")};',
            "B.admin.sasl.jaas.config": f'{PLAIN} username="dir" password="{self.placeholder("dir")}";',
        }
        return self.properties(name, flow, self.login("literal", "A."), self.login("file", "B."), roles, *parts)

    def start(self, *arguments: object, log: str) -> subprocess.Popen[bytes]:
        """`heliograph` with these arguments; what it says goes to a log that is looked at like any file."""
        command = [sys.executable, "-m", "heliograph", *map(str, arguments)]
        with (self.current / log).open("ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=out, env=self.variables, cwd=self.current)

    def said(self, log: str) -> str:
        return (self.current / log).read_text()

    def get(self, url: str, body: object = None, method: str = "GET") -> bytes:
        """An answer, whatever its status; checked."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                text = answer.read()
        except urllib.error.HTTPError as error:
            text = error.read()
        self.canaries.check(f"{method} {url}", text)
        return text

    def ask_everything(self, url: str, connectors: list[str]) -> None:
        """Every GET of the REST API, for every connector."""
        for path in [route.path for route in ROUTES if route.method == "GET"]:
            for name in connectors if "{connector" in path else [""]:
                told = path.replace("{connector}", name).replace("{task}", "0").replace("{logger}", "root")
                self.get(url + told.replace("{plugin}", "MirrorSourceConnector").replace(">", "%3E"))
        self.get(f"{url}/connectors?expand=info&expand=status")


def _one_line(value: str) -> str:
    return value.replace("\n", "\\n\\\n")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("leaks")
    world = World(folder)
    name = f"test-{os.getpid()}-leaks"
    cluster = start_cluster(name, data=folder / "data", config=world.broker_config(), port=world.port)
    try:
        admin = Admin("A", (Address("127.0.0.1", world.plain_port),), Security(), "test", timeout_s=30)
        assert admin.create_topics([CreateTopic("orders", 2, 1, ())]) == {}
        admin.wait_for_leaders({"orders": 2})
        admin.close()
        records = ({"value": b"order %d" % n, "partition": n % 2} for n in range(500))
        write(cluster, "orders", records, **{"bootstrap.servers": f"127.0.0.1:{world.plain_port}"})
        world.cluster = cluster
        yield world
    finally:
        cluster.stop()
        forget_cluster(name)


@pytest.fixture
def watched(world: World) -> Iterator[Watch]:
    with Watch(world.canaries, [world.temp, world.current]) as watch:
        yield watch
    assert watch.leaks == set()
    assert not [name for name in watch.file_names if name.startswith("core")]


def kinds_of_secrets(world: World) -> dict[str, str]:
    """Everything a file can hold, in plain text and where it does not belong."""
    canaries = world.canaries
    oauth = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required"
    return {
        "A.ssl.keystore.type": "JKS",
        "A.ssl.keystore.location": f"{world.user}/ca.pem",
        "A.ssl.keystore.password": canaries["keystore password"],
        "A.ssl.key.password": canaries["key password of a keystore"],
        "A.ssl.truststore.password": canaries["truststore password"],
        "A.sasl.mechanism": "OAUTHBEARER",
        "A.sasl.jaas.config": f'{oauth} clientId="me" clientSecret="{canaries["client secret"]}";',
        "A.sasl.oauthbearer.token.endpoint.url": f"https://me:{canaries['endpoint password']}@localhost:1/token",
        "A.sasl.oauthbearer.client.credentials.client.secret": canaries["client credentials"],
        "B.ssl.keystore.location": "",
        "B.ssl.keystore.key": world.inline_key,
        "B.ssl.keystore.certificate.chain": world.authority.cert_pem.bytes().decode(),
        "B.consumer.fetch.max.bytes": world.placeholder("file"),
        "B.sasl.login.class": world.placeholder("env"),
        "basic.auth.credentials": f"me:{canaries['basic auth']}",
    }


@pytest.mark.usefixtures("watched")
def test_what_is_said_about_files(world: World) -> None:
    files = [world.mirror_file("good"), world.mirror_file("bad", kinds_of_secrets(world))]
    runner = CliRunner(env={"LEAK_PASSWORD": world.canaries["env"]})
    for file in files:
        for words in (
            ["validate", file],
            ["explain", file],
            ["explain", file, "sasl.jaas.config"],
            ["explain", file, "ssl.keystore.key"],
            ["explain", file, "sasl.login.class"],
            ["plan", file],
            ["groups", file],
        ):
            ended = runner.invoke(cli, [str(word) for word in words])
            trace = "" if ended.exception is None else repr(ended.exception)
            world.canaries.check(" ".join(map(str, words)), ended.output, trace)


@pytest.mark.usefixtures("watched")
def test_what_a_run_shows_while_it_copies_and_when_it_crashes(world: World) -> None:
    ui, rest, events = free_port(), free_port(), world.current / "events"
    events.mkdir()
    confs = (
        *("spark.ui.enabled=true", f"spark.ui.port={ui}", f"spark.local.dir={world.temp}"),
        *("spark.eventLog.enabled=true", f"spark.eventLog.dir=file://{events}", "spark.eventLog.compress=false"),
    )
    file = world.mirror_file("run")
    process = world.start(
        "run", file, "--verbose", "--rest", rest, *(f"--conf={conf}" for conf in confs), log="run.log"
    )
    try:
        wait_for(lambda: copied(world, "A.orders") or process.poll() is not None, 90)
        assert process.poll() is None, world.said("run.log")
        (worker,) = python_workers(process.pid)
        worker.kill()
        wait_for(lambda: "Spark lost the task" in world.said("run.log"), 60)
        (application,) = json.loads(world.get(f"http://127.0.0.1:{ui}/api/v1/applications"))
        pages = (*SPARK_PAGES, *(f"/api/v1/applications/{application['id']}/{part}" for part in SPARK_DATA))
        for page in pages:
            world.get(f"http://127.0.0.1:{ui}{page}")
        kinds = ("Source", "Checkpoint", "Heartbeat")
        world.ask_everything(f"http://127.0.0.1:{rest}", [f"A->B.Mirror{kind}Connector" for kind in kinds])
        assert list(events.rglob("*")), "Spark has written no event log"
        jvm = next(child for child in psutil.Process(process.pid).children() if "java" in child.name())
        for pid in (process.pid, jvm.pid, *(each.pid for each in python_workers(process.pid))):
            assert psutil.Process(pid).rlimit(psutil.RLIMIT_CORE)[0] == 0
        jvm.send_signal(signal.SIGSEGV)  # the JVM writes a report of its crash
        wait_for(lambda: list(world.current.glob("hs_err*")), 30)
    finally:
        end(process)


def copied(world: World, topic: str) -> bool:
    bootstrap = {"bootstrap.servers": f"127.0.0.1:{world.plain_port}"}
    admin = Admin("B", (Address("127.0.0.1", world.plain_port),), Security(), "test", timeout_s=30)
    is_there = topic in admin.view([topic]).partition_counts
    admin.close()
    return is_there and sum(map(len, read(world.cluster, topic, 2, **bootstrap).values())) >= 500


def end(process: subprocess.Popen[bytes]) -> None:
    """With whatever it has started."""
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    process.wait()
    psutil.wait_procs(children, timeout=30)


@pytest.mark.usefixtures("watched")
def test_what_a_run_says_when_it_cannot_get_in(world: World) -> None:
    wrong = world.mirror_file("wrong", world.login("literal", "A.", world.placeholder("wrong")))
    everything = world.mirror_file("everything", kinds_of_secrets(world))
    for number, file in enumerate((wrong, everything)):
        process = world.start("run", file, "--verbose", "--once", log=f"fails-{number}.log")
        try:
            assert process.wait(60) in (2, 3), world.said(f"fails-{number}.log")
        finally:
            end(process)
        assert "error: " in world.said(f"fails-{number}.log")


def worker_properties(world: World, port: int) -> Path:
    own = {
        "group.id": "leaks",
        **{f"{store}.storage.topic": f"leaks-{store}" for store in ("offset", "config", "status")},
        **{f"{store}.storage.replication.factor": "1" for store in ("offset", "config", "status")},
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "listeners": f"http://127.0.0.1:{port}",
        "config.providers": "file,dir,env",
        "config.providers.file.class": f"{PROVIDERS}.FileConfigProvider",
        "config.providers.dir.class": f"{PROVIDERS}.DirectoryConfigProvider",
        "config.providers.env.class": f"{PROVIDERS}.EnvVarConfigProvider",
    }
    return world.properties("worker", own, world.login("literal", ""), world.login("env", "producer."))


def connector(world: World, password: str = "", **more: str) -> dict[str, str]:
    return {
        "connector.class": f"{MIRROR}.MirrorSourceConnector",
        "source.cluster.alias": "C",
        "target.cluster.alias": "B",
        "topics": "orders",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        **world.login("file", "source.cluster.", password),
        **world.login("dir", "target.cluster."),
        **more,
    }


@pytest.mark.usefixtures("watched")
def test_what_a_worker_shows_and_stores(world: World) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = world.start("worker", worker_properties(world, port), "--verbose", log="worker.log")
    try:
        wait_for(lambda: "REST API is at" in world.said("worker.log") or process.poll() is not None, 90)
        assert process.poll() is None, world.said("worker.log")
        world.get(f"{url}/admin/loggers/root", {"level": "TRACE"}, "PUT")
        secret = world.placeholder("file")
        configs = {
            "good": connector(world),
            "wrong": connector(world, world.placeholder("wrong")),
            "odd": connector(world, **{"tasks.max": secret, "topics": f"({secret}"}),
            "lost": connector(world, **{"source.cluster.bootstrap.servers": secret}),
        }
        for name, config in configs.items():
            world.get(f"{url}/connectors/{name}/config", config, "PUT")
            world.get(f"{url}/connector-plugins/MirrorSourceConnector/config/validate", config, "PUT")
        wait_for(lambda: copied(world, "C.orders"), 60)
        wait_for(lambda: b'"FAILED"' in world.get(f"{url}/connectors/wrong/status"), 60)
        world.ask_everything(url, list(configs))
        shown = json.loads(world.get(f"{url}/connectors/good/config"))
        assert secret in shown["source.cluster.sasl.jaas.config"]
        bootstrap = f"127.0.0.1:{world.port}"
        client = world.properties("client", world.login("literal", ""))
        told = CliRunner().invoke(
            cli, ["translate", "--bootstrap", bootstrap, "--source", "A", "--all", "--config", str(client)]
        )
        world.canaries.check("translate", told.output, repr(told.exception))
        told = CliRunner().invoke(cli, ["connectors", "--url", f"http://me:{world.canaries['basic auth']}@127.0.0.1:1"])
        world.canaries.check("connectors --url", told.output, repr(told.exception))
        process.terminate()
        assert process.wait(60) == 0, world.said("worker.log")
    finally:
        end(process)


def test_no_topic_has_a_secret(world: World) -> None:
    """Last: everything before has written."""
    bootstrap = {"bootstrap.servers": f"127.0.0.1:{world.plain_port}"}
    admin = Admin("B", (Address("127.0.0.1", world.plain_port),), Security(), "test", timeout_s=30)
    counts = admin.view().partition_counts
    admin.close()
    assert {"A.orders", "C.orders", "leaks-config", "leaks-status", "mm2-offsets.A.internal"} <= counts.keys()
    for topic, count in counts.items():
        for records in read(world.cluster, topic, count, **bootstrap).values():
            for record in records:
                headers = [part for name, value in record.headers for part in (name.encode(), value or b"")]
                world.canaries.check(topic, record.key or b"", record.value or b"", *headers)

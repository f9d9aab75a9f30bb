"""Secrets of every kind, each a canary: run, fail, crash and query everything, then look for them everywhere.

One cluster is source and target, behind TLS with client certificates and passwords, a user per canary. Looked at are
all output, logs, REST answers, Spark's pages and event log, every file that appears in the folders for temporary files
and in the current one, command lines of all processes, and every record of every topic.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from heliograph.cli.main import cli
from heliograph.embedded.kafka_cluster import forget_cluster, start_cluster
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import Address, CreateTopic
from tests.support.clusters.canaries import Watch
from tests.support.clusters.canary_world import SECURITY, World, end
from tests.support.clusters.clients import read, write
from tests.support.clusters.spark_stranger import answer_to_a_call, as_nobody, blocks_at, listening, readable_files
from tests.support.connect.connect_worker import MIRROR, free_port
from tests.support.runs.copying import wait_for
from tests.support.runs.running import python_workers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PROVIDERS = "org.apache.kafka.common.config.provider"
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


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("leaks")
    world = World(folder)
    name = f"test-{os.getpid()}-leaks"
    cluster = start_cluster(name, data=folder / "data", config=world.broker_config(), port=world.port)
    try:
        admin = Admin("A", (Address("127.0.0.1", world.plain_port),), Security(), "test", timeout_s=60)
        assert admin.create_topics([CreateTopic("orders", 2, 1, ())]) == {}
        assert admin.wait_for_leaders({"orders": 2}) == {}
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
        wait_for(lambda: copied(world, "A.orders") or process.poll() is not None)
        assert process.poll() is None, world.said("run.log")
        python_workers(process.pid)[0].kill()
        wait_for(lambda: "Spark lost the task" in world.said("run.log"))
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
        wait_for(lambda: list(world.current.glob("hs_err*")))
    finally:
        end(process)


def copied(world: World, topic: str) -> bool:
    bootstrap = {"bootstrap.servers": f"127.0.0.1:{world.plain_port}"}
    admin = Admin("B", (Address("127.0.0.1", world.plain_port),), Security(), "test", timeout_s=60)
    is_there = topic in admin.view([topic]).partition_counts
    admin.close()
    return is_there and sum(map(len, read(world.cluster, topic, 2, **bootstrap).values())) >= 500


@pytest.mark.usefixtures("watched")
def test_what_a_run_says_when_it_cannot_get_in(world: World) -> None:
    everything = world.mirror_file("everything", kinds_of_secrets(world))
    stranger = world.mirror_file("stranger", world.login("literal", "A.admin.", world.placeholder("wrong")))
    for file in (everything, stranger):
        assert world.run("run", file, "--verbose", "--once", log=f"{file.stem}.log") in (2, 3)
        assert "error: " in world.said(f"{file.stem}.log")
    # Only the tasks do not get in: they are started again and again.
    wrong = world.mirror_file("wrong", world.login("literal", "A.", world.placeholder("wrong")))
    process = world.start("run", wrong, "--verbose", log="wrong.log")
    try:
        wait_for(lambda: "Authentication failed" in world.said("wrong.log") or process.poll() is not None)
        assert process.poll() is None, world.said("wrong.log")
    finally:
        end(process)


@pytest.mark.slow
@pytest.mark.usefixtures("watched")
def test_what_goes_to_executors_of_another_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused where Spark would send it in plain text; else Spark encrypts, with our secret or one of the user's."""
    file = world.mirror_file("elsewhere", {"B.offset.storage.topic": "elsewhere-offsets"})
    arguments = ("run", file, "--verbose", "--once", "--master", "local-cluster[1,1,1024]")
    assert world.run(*arguments, "--conf", "spark.authenticate=false", log="refused.log") == 3
    assert "Set spark.authenticate=true" in world.said("refused.log"), world.said("refused.log")
    again = world.mirror_file("by-default", {"B.offset.storage.topic": "by-default-offsets"})
    by_default = ("run", again, *arguments[2:])
    assert world.run(*by_default, log="by-default.log") == 0, world.said("by-default.log")
    assert "A->B: done, 500 records" in world.said("by-default.log")
    conf = world.user / "spark-conf"
    conf.mkdir()
    settings = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": world.canaries["secret of Spark"],
        "spark.network.crypto.enabled": "true",
    }
    (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    monkeypatch.setitem(world.variables, "SPARK_CONF_DIR", str(conf))
    assert world.run(*arguments, log="elsewhere.log") == 0, world.said("elsewhere.log")
    assert "A->B: done" in world.said("elsewhere.log")


def worker_properties(world: World, port: int, group: str = "leaks") -> Path:
    own = {
        "group.id": group,
        **{f"{store}.storage.topic": f"{group}-{store}" for store in ("offset", "config", "status")},
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
        wait_for(lambda: "REST API is at" in world.said("worker.log") or process.poll() is not None)
        assert process.poll() is None, world.said("worker.log")
        wait_for(lambda: b'"healthy"' in world.get(f"{url}/health"))  # before, it refuses what is put
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
        wait_for(lambda: copied(world, "C.orders"))
        wait_for(lambda: b'"FAILED"' in world.get(f"{url}/connectors/wrong/status"))
        world.ask_everything(url, list(configs))
        shown = json.loads(world.get(f"{url}/connectors/good/config"))
        assert secret in shown["source.cluster.sasl.jaas.config"]
        bootstrap = f"127.0.0.1:{world.port}"
        client = world.properties("client", world.login("literal", ""))
        reported = CliRunner().invoke(
            cli, ["translate", "--bootstrap", bootstrap, "--source", "A", "--all", "--config", str(client)]
        )
        world.canaries.check("translate", reported.output, repr(reported.exception))
        reported = CliRunner().invoke(
            cli, ["connectors", "--url", f"http://me:{world.canaries['basic auth']}@127.0.0.1:1"]
        )
        world.canaries.check("connectors --url", reported.output, repr(reported.exception))
        process.terminate()
        assert process.wait(180) == 0, world.said("worker.log")
    finally:
        end(process)


@pytest.fixture
def open_temp(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that every user can enter, as the system's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    monkeypatch.setitem(world.variables, "TMPDIR", str(folder))
    monkeypatch.setitem(world.variables, "JAVA_TOOL_OPTIONS", f"-Djava.io.tmpdir={folder}")
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.parametrize("is_open", [False, True], ids=["by default", "where the user switches the proof off"])
def test_what_another_user_of_the_machine_can_fetch(world: World, open_temp: Path, *, is_open: bool) -> None:
    """From every port of a worker and what it has started, from files and from /proc; the open one is the control."""
    port, name = free_port(), "open" if is_open else "closed"
    options = ("--conf", "spark.authenticate=false") if is_open else ()
    process = world.start("worker", worker_properties(world, port, name), *options, log=f"{name}.log")
    try:
        wait_for(lambda: "REST API is at" in world.said(f"{name}.log") or process.poll() is not None)
        assert process.poll() is None, world.said(f"{name}.log")
        config = connector(world, **{"source.cluster.alias": name})
        world.get(f"http://127.0.0.1:{port}/connectors/{name}/config", config, "PUT")
        wait_for(lambda: copied(world, f"{name}.orders") or process.poll() is not None)
        assert process.poll() is None, world.said(f"{name}.log")
        addresses = listening(process.pid)
        blocks, answers, files = as_nobody(
            lambda: (
                [block for address in addresses for block in blocks_at(address)],
                [answer_to_a_call(address) for address in addresses],
                readable_files([open_temp]),
            )
        )
        assert world.cluster.brokers[0].port not in [port for _host, port in addresses]
        assert len(files) > 1, "the user nobody sees no process at all"
        for file, text in files:
            world.canaries.check(file, text)
        fetched = {canary for block in blocks for canary in world.canaries.found(block)}
        calls = [answer for answer in answers if answer]  # of the driver and its block manager
        assert len(calls) == 2
        assert fetched >= {"file", "key password", "literal"} if is_open else not blocks
        assert [b"Expected SaslMessage" in answer for answer in calls] == [not is_open] * 2
        assert ("spark.authenticate is not true" in world.said(f"{name}.log")) is is_open
        process.terminate()
        assert process.wait(180) == 0, world.said(f"{name}.log")
    finally:
        end(process)


def test_no_topic_has_a_secret(world: World) -> None:
    """Last: everything before has written."""
    admin = Admin("B", (Address("127.0.0.1", world.plain_port),), Security(), "test", timeout_s=60)
    counts = admin.view().partition_counts
    admin.close()
    assert {"A.orders", "C.orders", "leaks-config", "leaks-status", "mm2-offsets.A.internal"} <= counts.keys()
    partitions = [TopicPartition(topic, n, OFFSET_BEGINNING) for topic, count in counts.items() for n in range(count)]
    for message in everything_in(world, partitions):
        headers = [part for name, value in message.headers() or () for part in (name.encode(), value or b"")]
        world.canaries.check(message.topic(), message.key() or b"", message.value() or b"", *headers)


def everything_in(world: World, partitions: list[TopicPartition]) -> Iterator[Message]:
    settings = {"bootstrap.servers": f"127.0.0.1:{world.plain_port}", "group.id": "tests", "enable.partition.eof": True}
    consumer = Consumer({**settings, "enable.auto.commit": False, "isolation.level": "read_uncommitted"})
    consumer.assign(partitions)
    unread = {(partition.topic, partition.partition) for partition in partitions}
    while unread:
        message = consumer.poll(120)
        assert message is not None, f"{unread} did not reach their end"
        if message.error() is None:
            yield message
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            unread.discard((message.topic(), message.partition()))
    consumer.close()

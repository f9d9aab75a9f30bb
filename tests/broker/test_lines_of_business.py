"""examples/lines-of-business on two clusters with an authorizer: each line replicates, and neither sees the other's."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from heliograph.cli.commands.worker import serving
from heliograph.cli.inputs import MachineLookup
from heliograph.cli.main import cli
from heliograph.config.effective.connect_config import ConnectorConfig, WorkerConfig
from heliograph.config.validate.worker_file import load_worker
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.steps.issues import StepIssues
from heliograph.driver.steps.step_runner import ControlLoop
from heliograph.errors import BrokerError
from heliograph.kafka.admin.acl_admin import add_acls, topic_acls
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.topics.record_writer import write_records
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.model import AclBinding, CommittedOffset, CreateTopic, Flow, TopicPartition
from tests.interop.rest_story import ask
from tests.support.clusters.certificates import Authority
from tests.support.clusters.clients import make_topic, read, write
from tests.support.clusters.guarded import PASSWORD, Guarded
from tests.support.clusters.least_privilege import listening
from tests.support.runs.copying import wait_for
from tests.support.runs.thread_engine import thread_engine

pytestmark = pytest.mark.broker

EXAMPLE = Path(__file__).parents[2] / "examples" / "lines-of-business"
LINES = ("payments", "lending")
FILES = tuple(f"{line}-{kind}.json" for line in LINES for kind in ("source", "checkpoint"))


class Setup(NamedTuple):
    """The example as it runs in a test."""

    onprem: Guarded
    cloud: Guarded
    folder: Path

    @property
    def worker(self) -> WorkerConfig:
        return load_worker((self.folder / "worker.properties").read_text(), MachineLookup())

    def connector(self, file: str, **changes: str) -> ConnectorConfig:
        stored = json.loads((self.folder / f"{file}.json").read_text())
        return self.worker.connector(stored["name"], stored["config"] | changes)


def replaced(text: str, onprem: Guarded, cloud: Guarded, folder: Path) -> str:
    """The example's text with hosts and credentials of the test."""
    for old, new in (
        ("onprem.example.org:9093", str(onprem.address)),
        ("cloud.example.org:9093", str(cloud.address)),
        ("/etc/heliograph", str(folder)),
        ("SASL_SSL", "SASL_PLAINTEXT"),
        ("SCRAM-SHA-512", "PLAIN"),
        ("scram.ScramLoginModule", "plain.PlainLoginModule"),
    ):
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def setup(here: Guarded, there: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Setup:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "secrets").mkdir()
    for owner in (*LINES, "worker"):
        (folder / "secrets" / f"{owner}.properties").write_text(f"onprem={PASSWORD}\ncloud={PASSWORD}\n")
    for file in ("worker.properties", *FILES):
        (folder / file).write_text(replaced((EXAMPLE / file).read_text(), here, there, folder))
    with (folder / "worker.properties").open("a") as worker:
        worker.write("offset.storage.partitions=1\nadmin.timeout.ms=10000\n")
    found = Setup(here, there, folder)
    grant_printed(found)
    admin = here.admin()
    for line in LINES:
        make_topic(here.cluster, f"{line}.orders", 1)
        write(here.cluster, f"{line}.orders", [{"value": f"{line} {n}".encode()} for n in range(10)])
        offsets = {TopicPartition(f"{line}.orders", 0): CommittedOffset(5)}
        assert GroupAdmin(admin).commit(f"{line}-readers", offsets) == {}
    admin.close()
    return found


def grant_printed(setup: Setup) -> None:
    """Give everybody the ACLs that the command prints, and nothing else."""
    files = [str(setup.folder / file) for file in FILES]
    options = ["acls", *files, "--worker", str(setup.folder / "worker.properties"), "--format", "json"]
    ended = CliRunner().invoke(cli, options)
    assert ended.exit_code == 0, ended.output
    for each in json.loads(ended.stdout):
        guarded = setup.onprem if each["bootstrap_servers"] == str(setup.onprem.address) else setup.cloud
        guarded.grant_printed(each["principal"], each["acls"])


@pytest.fixture(scope="module")
def replicated(setup: Setup) -> Setup:
    """After both lines have replicated once, without a word about permissions."""
    for line in LINES:
        source, checkpoint = setup.connector(f"{line}-source"), setup.connector(f"{line}-checkpoint")
        with listening(source.flow) as reported:
            flow = SourceFlow(source, source.flow, thread_engine(), flow_count=1, once=True)
            flow.start()
            assert flow.join(180)
            work = CheckpointSync(checkpoint, checkpoint.flow)
            issues = StepIssues()
            ControlLoop(line, work, issues).run_once()
            reported.extend(words for step in issues.issues.values() for words in step)
        assert flow.error is None
        assert [words for words in reported if "needs" in words or "AUTHORIZATION" in words] == []
    return setup


@pytest.mark.parametrize("line", LINES)
def test_each_line_replicates_its_own(replicated: Setup, line: str) -> None:
    copied = read(replicated.cloud.cluster, f"{line}.orders", 1)[0]
    assert [record.value for record in copied] == [f"{line} {n}".encode() for n in range(10)]
    admin = replicated.cloud.admin()
    moved = GroupAdmin(admin).committed([f"{line}-readers"])[f"{line}-readers"]
    admin.close()
    assert moved[TopicPartition(f"{line}.orders", 0)].offset == 5


@pytest.mark.parametrize(("line", "other"), [LINES, LINES[::-1]])
def test_neither_can_list_what_is_the_others(replicated: Setup, line: str, other: str) -> None:
    for guarded, internal in (
        (replicated.onprem, f"mm2-offset-syncs.{line}-cloud.internal"),
        (replicated.cloud, f"{line}.checkpoints.internal"),
    ):
        admin = guarded.admin_as(f"{line}-mirror")
        assert set(admin.view().partition_counts) == {f"{line}.orders", internal}
        assert set(GroupAdmin(admin).list_groups()) == {f"{line}-readers"}
        with pytest.raises(BrokerError, match=f"the group '{other}-readers'; the principal needs DESCRIBE"):
            GroupAdmin(admin).committed([f"{other}-readers"])
        with pytest.raises(BrokerError, match="refused to list its ACLs"):
            topic_acls(admin)
        admin.close()


@pytest.mark.parametrize(("line", "other"), [LINES, LINES[::-1]])
def test_neither_can_read_write_or_change_what_is_the_others(replicated: Setup, line: str, other: str) -> None:
    everybodys = {
        replicated.onprem: (f"{other}.orders", f"mm2-offset-syncs.{other}-cloud.internal"),
        replicated.cloud: (
            f"{other}.orders",
            f"{other}.checkpoints.internal",
            "mirror-offsets",
            "mirror-configs",
            "mirror-status",
        ),
    }
    for guarded, topics in everybodys.items():
        admin = guarded.admin_as(f"{line}-mirror")
        for topic in topics:
            refuses_all(admin, topic)
        with pytest.raises(BrokerError, match="needs READ"):
            GroupAdmin(admin, "READ").commit(
                f"{other}-readers", {TopicPartition(f"{other}.orders", 0): CommittedOffset(0)}
            )
        own = AclBinding(f"{other}.orders", f"User:{line}-mirror", "*", "READ", "ALLOW")
        assert "needs ALTER on the cluster" in str(add_acls(admin, [own])[own])
        admin.close()


def refuses_all(admin: Admin, topic: str) -> None:
    with pytest.raises(BrokerError, match=f"{topic}; the principal needs DESCRIBE and READ"):
        list(read_topic(admin, topic))
    with pytest.raises(BrokerError, match=rf"{topic}: TOPIC_AUTHORIZATION_FAILED.*WRITE"):
        write_records(admin, TopicPartition(topic, 0), [OwnRecord(b"k", b"v")])
    assert topic in admin.create_topics([CreateTopic(topic, 1, 1, ())])
    assert topic in admin.described_configs([topic])[1]


def test_the_workers_login_has_no_part_in_the_records(replicated: Setup) -> None:
    for guarded, topics in ((replicated.onprem, set()), (replicated.cloud, {"mirror-offsets"})):
        admin = guarded.admin_as("mirror-worker")
        assert set(admin.view().partition_counts) == topics
        for line in LINES:
            refuses_all(admin, f"{line}.orders")
        admin.close()


def test_a_connector_that_reaches_for_the_others_topics_copies_nothing_and_says_why(replicated: Setup) -> None:
    config = replicated.connector("lending-source", topics="payments[.].*", name="lending-thief")
    with listening(Flow("lending", "lending-cloud")) as reported:
        flow = SourceFlow(config, config.flow, thread_engine(), flow_count=1, once=True)
        flow.start()
        assert flow.join(180)
    assert flow.status.counts.records == 0
    assert any(
        "'lending' does not show us the topics that begin with 'payments.'; the principal needs READ" in words
        for words in reported
    )


class Rest:
    """The worker of the example, asked by users of its REST login."""

    def __init__(self, url: str, authority: Authority) -> None:
        self._url, self._tls = url, authority.client()

    def ask(self, user: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        login = b64encode(f"{user}:{PASSWORD}".encode()).decode()
        headers = {"authorization": f"Basic {login}", "content-type": "application/json"}
        sent = None if body is None else json.dumps(body).encode()
        status, _headers, raw = ask(self._url, method, path, sent, headers, self._tls)
        return status, json.loads(raw) if raw else None


@pytest.fixture
def rest(replicated: Setup) -> Iterator[Rest]:
    """The whole worker with TLS, the login and the rules of the example."""
    folder = replicated.folder
    authority = Authority(folder)
    authority.issue("worker")
    for file in ("rules.yaml", "jaas.conf"):
        text = (EXAMPLE / file).read_text()
        (folder / file).write_text(replaced(text, replicated.onprem, replicated.cloud, folder))
    (folder / "users.properties").write_text("".join(f"{line}={PASSWORD}\n" for line in LINES))
    text = (folder / "worker.properties").read_text().replace("https://0.0.0.0:8443", "https://127.0.0.1:0")
    with serving(load_worker(text, MachineLookup()), thread_engine()) as url:
        found = Rest(url, authority)
        wait_for(lambda: found.ask("payments", "GET", "/connectors") == (200, []))
        yield found


def test_over_rest_each_line_has_only_its_own_connectors(replicated: Setup, rest: Rest) -> None:
    for line in LINES:
        for kind in ("source", "checkpoint"):
            stored = json.loads((replicated.folder / f"{line}-{kind}.json").read_text())
            status, reported = rest.ask(line, "POST", "/connectors", stored)
            assert status == 201, reported
        wait_for(lambda line=line: _is_running(rest, line))
    for line, other in (LINES, LINES[::-1]):
        assert rest.ask(line, "GET", "/connectors") == (200, [f"{line}-checkpoint", f"{line}-source"])
        config = rest.ask(line, "GET", f"/connectors/{line}-source/config")[1]
        del config["name"]
        for method, path, body in (
            ("GET", "", None),
            ("GET", "/config", None),
            ("GET", "/status", None),
            ("GET", "/offsets", None),
            ("PUT", "/config", config),
            ("PUT", "/pause", None),
            ("PUT", "/stop", None),
            ("POST", "/restart", None),
            ("DELETE", "", None),
            ("DELETE", "/offsets", None),
        ):
            status, reported = rest.ask(line, method, f"/connectors/{other}-source{path}", body)
            assert status in (403, 404), (method, path, reported)
        stolen = {key: value.replace(f"{line}.properties", f"{other}.properties") for key, value in config.items()}
        status, reported = rest.ask(line, "PUT", f"/connectors/{line}-thief/config", stolen)
        assert status == 403, f"a config may not name the other line's file of secrets: {reported}"
        assert rest.ask(line, "POST", "/connectors", {"name": f"{other}-thief", "config": config})[0] == 403
    assert rest.ask("stranger", "GET", "/connectors")[0] == 401


def _is_running(rest: Rest, line: str) -> bool:
    status, reported = rest.ask(line, "GET", f"/connectors/{line}-source/status")
    states = [reported["connector"]["state"], *(task["state"] for task in reported["tasks"])] if status == 200 else []
    return len(states) > 1 and set(states) == {"RUNNING"}

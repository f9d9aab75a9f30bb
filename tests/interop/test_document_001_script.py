"""Document 001's script, unchanged, and `heliograph deploy|...` against the same worker: the same words and effects."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heliograph.cli.main import cli
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.conftest import running_cluster
from tests.interop.java_connect import JavaConnect
from tests.support.runs.document_001 import CODES, lay_out, run_script

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="the script needs curl and jq"),
]

_PATIENCE_S = 180
# A worker's name: how to start it on a cluster, with a folder for its files. Ours joins this table.
WORKERS: dict[str, Callable[[EmbeddedCluster, Path], AbstractContextManager[JavaConnect]]] = {"java": JavaConnect.on}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster for the connectors' topics and heartbeats, which other tests would count."""
    yield from running_cluster("connect", tmp_path_factory.mktemp("connect"))


@pytest.fixture(scope="module", params=sorted(WORKERS))
def url(
    request: pytest.FixtureRequest, kafka: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The REST of a worker."""
    with WORKERS[request.param](kafka, tmp_path_factory.mktemp("worker")) as worker:
        yield worker.wait_until_ready().url


@pytest.fixture
def folder(tmp_path: Path, kafka: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Path:
    lay_out(tmp_path, {"source-0": kafka.bootstrap}, kafka.bootstrap)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ours(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--url", url])


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.3)


def deployed(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/connectors", timeout=60) as answer:  # noqa: S310  (the test's own worker)
        return sorted(json.load(answer))


def deploy_by_script(folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    """As a reader of the document does it: again, where the worker was just rebalancing."""
    result = run_script(folder, url, "deploy", "source-0")
    while "ERROR" in result.stdout and len(deployed(url)) < len(CODES):
        time.sleep(1)
        result = run_script(folder, url, "deploy", "source-0")
    return result


RUNNING = 'Checkpoint connector: "RUNNING"\nHeartbeat connector: "RUNNING"\nSource connector: "RUNNING"\n'
NOT_THERE = "Checkpoint connector: null\nHeartbeat connector: null\nSource connector: null\n"


def test_the_script_and_the_commands_say_and_do_the_same(folder: Path, url: str) -> None:
    assert run_script(folder, url, "status", "source-0").stdout == NOT_THERE
    nothing = ours(url, "status", "source-0")
    assert (nothing.stdout, nothing.exit_code) == (NOT_THERE, 1)

    refused = run_script(folder, url, "deploy", "elsewhere")
    assert refused.returncode == 1
    assert "Source conf is missing. Create file kafka-connect/mm2-msc-elsewhere.json" in refused.stdout
    assert "Source conf is missing. Create file mm2/mm2-msc-elsewhere.json" in str(
        ours(url, "deploy", "elsewhere").exception
    )

    assert deploy_by_script(folder, url).stdout.startswith("Deploying cluster source-0\n")
    assert deployed(url) == [f"mm2-{code}-source-0" for code in CODES]
    wait_for(lambda: run_script(folder, url, "status", "source-0").stdout == RUNNING)
    assert ours(url, "status", "source-0").stdout == RUNNING
    again = ours(url, "deploy", "source-0")
    assert again.stdout.count("already deployed") == 3
    assert again.stdout == run_script(folder, url, "deploy", "source-0").stdout
    assert [line.split()[:3] for line in ours(url, "connectors").stdout.splitlines()[1:]] == [
        [f"mm2-{code}-source-0", "source", "RUNNING"] for code in CODES
    ]

    redeployed = ours(url, "redeploy", "source-0")
    assert redeployed.exit_code == 0, redeployed.output
    assert redeployed.stdout.count("undeployed") == 3
    assert redeployed.stdout.count("Deploying ") == 3
    wait_for(lambda: ours(url, "status", "source-0").stdout == RUNNING)

    removed = ours(url, "undeploy", "source-0")
    assert removed.exit_code == 0, removed.output
    wait_for(lambda: deployed(url) == [])
    gone = run_script(folder, url, "undeploy", "source-0")
    assert gone.stdout.count("WARN") == 3
    assert ours(url, "undeploy", "source-0").stdout == gone.stdout


REFUSED: tuple[tuple[dict[str, object], str], ...] = (
    ({"tasks.max": 0}, "tasks.max: Invalid value 0 for configuration tasks.max: Value must be at least 1"),
    ({"connector.class": "Nobody"}, "Failed to find any class that implements Connector and which name matches"),
    ({"connector.class": ""}, "connector.class: the file has none"),
    ({"replication.policy.class": "Nobody"}, "replication.policy.class: Invalid value Nobody"),
)


def test_redeploy_removes_nothing_that_it_could_not_put_back(folder: Path, url: str) -> None:
    deploy_by_script(folder, url)
    file = folder / "mm2" / "mm2-msc-source-0.json"
    sound = json.loads(file.read_text())
    for change, words in REFUSED:
        file.write_text(json.dumps(sound | change))
        result = ours(url, "redeploy", "source-0")
        assert (result.exit_code, result.stdout) == (1, "Redeploying cluster source-0\n")
        assert words in result.stderr
        assert result.stderr.endswith("Nothing was removed.\n")
        assert deployed(url) == [f"mm2-{code}-source-0" for code in CODES]
    assert ours(url, "undeploy", "source-0").exit_code == 0
    wait_for(lambda: deployed(url) == [])


def test_connects_own_reason_is_told(folder: Path, url: str) -> None:
    file = folder / "mm2" / "mm2-msc-source-0.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tasks.max": "0", "name": "mm2-msc-source-0"}))
    for code in ("cpc", "hbc"):
        other = folder / "mm2" / f"mm2-{code}-source-0.json"
        other.write_text(json.dumps(json.loads(other.read_text()) | {"name": "another"}))
    result = ours(url, "deploy", "source-0")
    assert result.exit_code == 1
    assert "ERROR: Failed to deploy source connector: Connector configuration is invalid" in result.stderr
    assert "ERROR: Failed to deploy checkpoints connector: Connector name configuration (another)" in result.stderr
    assert deployed(url) == []

"""`heliograph deploy|undeploy|redeploy|status|connectors`: mm2.sh's words, and its failures told."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heliograph.cli import connect_client
from heliograph.cli.main import cli, main
from heliograph.errors import ConfigError, RestError
from tests.support.connect.fake_connect import FakeConnect
from tests.support.diagnostics import texts

DOCUMENT = Path(__file__).parents[2] / "documents" / "001" / "mm2"
PACKAGE = "org.apache.kafka.connect.mirror"
KINDS = ("Checkpoint", "Heartbeat", "Source")
NAMES = [f"mm2-{code}-source-0" for code in ("cpc", "hbc", "msc")]


@pytest.fixture
def connect() -> Iterator[FakeConnect]:
    with FakeConnect() as connect:
        yield connect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The document's three files, in a folder of the default name under the current one."""
    return Path(shutil.copytree(DOCUMENT, tmp_path / "mm2"))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connect_client, "_REBALANCE_PAUSE_S", 0.001)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def lines(result: Result) -> list[str]:
    return result.stdout.splitlines()


@pytest.mark.usefixtures("folder")
def test_deploy_puts_the_three_files_as_they_are(connect: FakeConnect) -> None:
    result = invoke("deploy", "source-0", "--url", connect.url)
    assert result.exit_code == 0, result.output
    assert lines(result) == [
        "Deploying cluster source-0",
        "Deploying checkpoints connector",
        "Deploying heartbeats connector",
        "Deploying source connector",
    ]
    assert connect.configs == {name: json.loads((DOCUMENT / f"{name}.json").read_text()) for name in NAMES}


@pytest.mark.usefixtures("folder")
def test_deploy_leaves_alone_what_runs(connect: FakeConnect) -> None:
    connect.configs[NAMES[0]] = {"topics": "another"}
    connect.set_state(NAMES[0], "RUNNING")
    connect.set_state(NAMES[1], "FAILED")
    result = invoke("deploy", "source-0", "--url", connect.url)
    assert lines(result)[1:] == [
        "Checkpoints connector already deployed",
        "Deploying heartbeats connector",
        "Deploying source connector",
    ]
    assert connect.configs[NAMES[0]] == {"topics": "another"}
    assert sorted(connect.configs) == NAMES
    again = invoke("deploy", "source-0", "--url", connect.url)
    assert again.exit_code == 0
    assert lines(again)[1:] == [
        "Checkpoints connector already deployed",
        "Heartbeat connector already deployed",
        "Source connector already deployed",
    ]


def test_undeploy_removes_all_and_tells_what_was_not_there(connect: FakeConnect, folder: Path) -> None:
    invoke("deploy", "source-0", "--dir", str(folder), "--url", connect.url)
    del connect.configs[NAMES[1]]
    result = invoke("undeploy", "source-0", "--dir", "not-read", "--url", connect.url)
    assert result.exit_code == 0
    assert lines(result) == [
        "Undeploying cluster source-0",
        "Checkpoints connector undeployed",
        "WARN: heartbeats connector not found",
        "Heartbeats connector undeployed",
        "Source connector undeployed",
    ]
    assert connect.configs == {}


@pytest.mark.usefixtures("folder")
def test_the_last_words_of_a_removed_connector_do_not_keep_it_from_being_deployed(connect: FakeConnect) -> None:
    connect.set_state(NAMES[0], "RUNNING")
    assert "already deployed" not in invoke("deploy", "source-0", "--url", connect.url).stdout
    assert sorted(connect.configs) == NAMES


@pytest.mark.usefixtures("folder")
def test_redeploy_removes_and_starts_anew(connect: FakeConnect) -> None:
    invoke("deploy", "source-0", "--url", connect.url)
    connect.configs[NAMES[2]]["topics"] = "another"
    connect.calls.clear()
    result = invoke("redeploy", "source-0", "--url", connect.url)
    assert result.exit_code == 0
    assert lines(result) == [
        "Redeploying cluster source-0",
        "Checkpoints connector undeployed",
        "Heartbeats connector undeployed",
        "Source connector undeployed",
        "Deploying checkpoints connector",
        "Deploying heartbeats connector",
        "Deploying source connector",
    ]
    assert connect.configs[NAMES[2]]["topics"] == "test"
    validated, deleted, put = (
        [f"PUT /connector-plugins/{PACKAGE}.Mirror{kind}Connector/config/validate" for kind in KINDS],
        [f"DELETE /connectors/{name}" for name in NAMES],
        [f"PUT /connectors/{name}/config" for name in NAMES],
    )
    assert connect.calls == validated + deleted + put


def change(file: Path, **changes: str | None) -> None:
    config = json.loads(file.read_text()) | {key.replace("_", "."): value for key, value in changes.items()}
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


@pytest.mark.parametrize("class_name", [None, ""])
def test_redeploy_removes_nothing_where_a_file_would_be_refused(
    connect: FakeConnect, folder: Path, class_name: str | None
) -> None:
    invoke("deploy", "source-0", "--url", connect.url)
    before = dict(connect.configs)
    change(folder / f"{NAMES[0]}.json", connector_class=class_name)
    change(folder / f"{NAMES[1]}.json", name="other")
    change(folder / f"{NAMES[2]}.json", tasks_max="0")
    result = invoke("redeploy", "source-0", "--url", connect.url)
    assert (result.exit_code, lines(result)) == (1, ["Redeploying cluster source-0"])
    assert result.stderr == (
        "ERROR: Failed to redeploy checkpoints connector: connector.class: the file has none\n"
        "ERROR: Failed to redeploy heartbeats connector: name: the file has 'other'; write 'mm2-hbc-source-0', or leave"
        " it out\n"
        "ERROR: Failed to redeploy source connector: tasks.max: Value must be at least 1\n"
        "Nothing was removed.\n"
    )
    assert connect.configs == before


@pytest.mark.usefixtures("folder")
def test_redeploy_removes_nothing_where_the_worker_cannot_look(connect: FakeConnect) -> None:
    invoke("deploy", "source-0", "--url", connect.url)
    connect.refuse("PUT", 500, "Failed to find any class")
    result = invoke("redeploy", "source-0", "--url", connect.url)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "ERROR: Failed to redeploy checkpoints connector: Failed to find any class (HTTP 500)",
        "Nothing was removed.",
    ]
    assert sorted(connect.configs) == NAMES


def test_redeploy_needs_neither_a_name_in_a_file_nor_a_worker_that_validates(folder: Path) -> None:
    for name in NAMES:
        change(folder / f"{name}.json", name=None)
    for knows_validation in (True, False):
        with FakeConnect(knows_validation=knows_validation) as connect:
            result = invoke("redeploy", "source-0", "--url", connect.url)
            assert result.exit_code == 0, result.output
            assert sorted(connect.configs) == NAMES


def test_status_shows_states_and_failures(connect: FakeConnect) -> None:
    nothing = invoke("status", "source-0", "--url", connect.url)
    assert nothing.exit_code == 1
    assert lines(nothing) == ["Checkpoint connector: null", "Heartbeat connector: null", "Source connector: null"]
    connect.set_state(NAMES[0], "RUNNING")
    connect.set_state(NAMES[1], "PAUSED")
    connect.set_state(NAMES[2], "RUNNING", {"id": 0, "state": "RUNNING"}, {"id": 1, "state": "UNASSIGNED"})
    well = invoke("status", "source-0", "--url", connect.url)
    assert well.exit_code == 0
    assert lines(well) == [
        'Checkpoint connector: "RUNNING"',
        'Heartbeat connector: "PAUSED"',
        'Source connector: "RUNNING"',
    ]
    connect.set_state(NAMES[2], "RUNNING", {"id": 1, "state": "FAILED", "trace": "no such topic\n\tat line 2"})
    connect.set_state(NAMES[0], "FAILED")
    failed = invoke("status", "source-0", "--url", connect.url)
    assert failed.exit_code == 1
    assert lines(failed) == [
        'Checkpoint connector: "FAILED"',
        "  connector FAILED: no trace",
        'Heartbeat connector: "PAUSED"',
        'Source connector: "RUNNING"',
        "  task 1 FAILED: no such topic",
    ]


@pytest.mark.parametrize("knows_expand", [True, False])
def test_connectors_lists_all_by_name(knows_expand: bool) -> None:
    with FakeConnect(knows_expand=knows_expand) as connect:
        assert invoke("connectors", "--url", connect.url).output == "no connectors\n"
        tasks = [{"id": number, "state": state} for number, state in enumerate(["RUNNING", "RUNNING", "FAILED"])]
        connect.set_state("b", "RUNNING", *tasks)
        connect.set_state("a b/c", "PAUSED")
        shown = invoke("connectors", "--url", connect.url)
        assert lines(shown) == [
            "CONNECTOR  TYPE    STATE    TASKS                WORKER",
            "a b/c      source  PAUSED   none                 127.0.0.1:8083",
            "b          source  RUNNING  1 FAILED, 2 RUNNING  127.0.0.1:8083",
            "  task 2 FAILED: no trace",
        ]
        as_json = json.loads(invoke("connectors", "--json", "--url", connect.url).output)
        assert as_json == [connect.statuses["a b/c"], connect.statuses["b"]]


@pytest.mark.parametrize("command", ["deploy", "redeploy"])
def test_missing_files_are_told_all_at_once(command: str, connect: FakeConnect, folder: Path) -> None:
    (folder / "mm2-cpc-source-0.json").unlink()
    (folder / "mm2-msc-source-0.json").unlink()
    error = invoke(command, "source-0", "--url", connect.url).exception
    assert isinstance(error, ConfigError)
    assert texts(error.problems) == (
        "Checkpoints conf is missing. Create file mm2/mm2-cpc-source-0.json",
        "Source conf is missing. Create file mm2/mm2-msc-source-0.json",
    )
    assert connect.calls == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n  "name": "x",\n}', "mm2/mm2-hbc-source-0.json, line 3: this is not JSON: "),
        ("[]", "mm2/mm2-hbc-source-0.json: a connector's configuration is a JSON object"),
        ('{"name": "x", "config": {}}', "mm2/mm2-hbc-source-0.json: the value of 'config' must be text, a number"),
        # Java's worker finds it sound, takes it, and the connector fails.
        ('{"source.cluster.alias": null}', "mm2/mm2-hbc-source-0.json: 'source.cluster.alias' is null; write a value"),
    ],
)
def test_a_malformed_file_is_told_before_anything_is_deployed(
    text: str, words: str, connect: FakeConnect, folder: Path
) -> None:
    (folder / "mm2-hbc-source-0.json").write_text(text)
    error = invoke("deploy", "source-0", "--url", connect.url).exception
    assert str(error).startswith(words)
    assert connect.calls == []


@pytest.mark.parametrize("command", ["deploy", "undeploy", "redeploy", "status"])
def test_a_cluster_has_a_name(command: str) -> None:
    assert str(invoke(command, "").exception) == "Cluster is empty"


def test_a_refused_call_is_told_with_connects_reason_and_the_others_go_on(connect: FakeConnect, folder: Path) -> None:
    file = folder / "mm2-hbc-source-0.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"name": "other"}))
    result = invoke("deploy", "source-0", "--url", connect.url)
    assert result.exit_code == 1
    assert result.stderr == (
        "ERROR: Failed to deploy heartbeats connector: Connector name configuration (other) doesn't match connector"
        " name (mm2-hbc-source-0) (HTTP 400)\n"
    )
    assert sorted(connect.configs) == [NAMES[0], NAMES[2]]
    connect.refuse("DELETE", 500, "Request timed out")
    removed = invoke("undeploy", "source-0", "--url", connect.url)
    assert removed.exit_code == 1
    assert "ERROR: Failed to undeploy checkpoints connector: Request timed out (HTTP 500)" in removed.stderr
    assert "Checkpoints connector undeployed" not in removed.stdout


def test_what_is_not_connects_answer_is_told_by_its_status(connect: FakeConnect) -> None:
    connect.refusals.append(("GET", 502, b"<html>"))
    assert str(invoke("connectors", "--url", connect.url).exception) == "Bad Gateway (HTTP 502)"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_rebalance_is_waited_for(connect: FakeConnect, method: str) -> None:
    rebalance = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
    for command in (["deploy", "source-0"], ["redeploy", "source-0"], ["status", "source-0"], ["connectors"]):
        for _times in range(3):
            connect.refuse(method, 409, rebalance)
        result = invoke(*command, "--url", connect.url)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        connect.refusals.clear()
    assert sorted(connect.configs) == NAMES


@pytest.mark.parametrize("command", [["status", "source-0"], ["connectors"]])
def test_a_worker_that_refuses_is_not_one_that_is_not_there(
    connect: FakeConnect, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connect.refuse("GET", 403, "User cannot access the resource.")
    monkeypatch.setattr("sys.argv", ["heliograph", *command, "--url", connect.url])
    with pytest.raises(SystemExit) as refused:
        main()
    assert refused.value.code == 1
    assert capsys.readouterr().err == "error: User cannot access the resource. (HTTP 403)\n"
    monkeypatch.setattr("sys.argv", ["heliograph", *command, "--url", "http://127.0.0.1:1"])
    with pytest.raises(SystemExit) as unreachable:
        main()
    assert unreachable.value.code == 3


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["deploy", "undeploy", "redeploy", "status", "connectors"])
def test_a_worker_that_is_not_there_is_one_sentence(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    result = invoke(command, *([] if command == "connectors" else ["source-0"]), "--url", url)
    assert isinstance(result.exception, RestError)
    assert str(result.exception) == (
        f"{url} cannot be reached: Connection refused. Is the worker running, and is --url its address?"
    )


def test_something_that_is_no_http_server_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        client = connect_client.ConnectClient(url)

        def hang_up() -> None:
            sock, _address = server.accept()
            sock.recv(10_000)
            sock.sendall(b"what?\r\n\r\n")
            sock.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(RestError, match=rf"{url} broke off GET /connectors/x/status: "):
            client.status("x")
        thread.join()


@pytest.mark.parametrize("url", ["ftp://secret", "http://", "http://h:port", ""])
def test_a_url_that_is_none_is_told_without_what_is_in_it(url: str) -> None:
    words = "--url: this is not the URL of a worker; write it as http://localhost:8083."
    assert str(invoke("connectors", "--url", url).exception) == words


def test_a_url_may_lack_its_scheme(connect: FakeConnect) -> None:
    url = connect.url.removeprefix("http://")
    assert invoke("connectors", "--url", url).exit_code == 0  # as the script's TARGET_HOST
    assert connect.authorizations == [None]


def test_a_login_comes_from_a_file_or_a_variable(
    connect: FakeConnect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("s@fe\n")
    login = ["--user", "ann", "--password-file", str(tmp_path / "password")]
    assert invoke("connectors", "--url", connect.url, *login).exit_code == 0
    monkeypatch.setenv("HELIOGRAPH_REST_PASSWORD", "s@fe")
    assert invoke("connectors", "--url", connect.url, "--user", "ann").exit_code == 0
    assert invoke("connectors", "--url", connect.url.replace("//", "//ann@")).exit_code == 0
    assert connect.authorizations == ["Basic YW5uOnNAZmU="] * 3
    assert "s@fe" not in repr(connect_client.ConnectCredentials("ann", "s@fe"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--url", "http://ann:s3cret@h"], "--url: a password does not belong on a command line"),
        (["--user", "ann"], "--user: set its password in the variable HELIOGRAPH_REST_PASSWORD"),
        (["--user", "ann", "--password-file", "none"], "--password-file none: the file cannot be read"),
        (["--password-file", "x"], "--password-file: whose password is it"),
        (["--ca-file", "none"], "--ca-file none: the file cannot be read"),
        (["--cert-file", __file__], "it holds no PEM that can be used"),
        (["--key-file", "none"], "--key-file: whose key is it"),
    ],
)
def test_a_login_that_is_none_is_one_sentence(options: list[str], words: str) -> None:
    error = invoke("connectors", *options).exception
    assert isinstance(error, ConfigError)
    assert words in str(error)
    assert "s3cret" not in str(error)

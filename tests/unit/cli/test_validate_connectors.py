"""`heliograph validate` on connectors in JSON: what a worker would refuse, and what would only fail there later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from heliograph.cli.connector_files import read_connector_files
from heliograph.cli.main import cli
from heliograph.config.formats.connector_text import read_connector_texts
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.errors import ConfigError
from tests.support.config_files import FakeLookup
from tests.support.diagnostics import texts

DOCUMENTS = Path(__file__).parents[2] / "documents"
PACKAGE = "org.apache.kafka.connect.mirror."
SOUND = {
    "connector.class": f"{PACKAGE}MirrorSourceConnector",
    "source.cluster.alias": "a",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
WORKER = (
    "bootstrap.servers=b:1",
    "group.id=g",
    "config.storage.topic=c",
    "offset.storage.topic=o",
    "status.storage.topic=s",
)
PROVIDER = (
    "config.providers=env",
    "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider",
)


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["validate", *map(str, arguments)])


def validate(tmp_path: Path, config: Any, *arguments: object) -> Result:
    """Each key of a config stands on a line of its own, the first on the second."""
    file = tmp_path / "mirror.json"
    file.write_text(config if isinstance(config, str) else json.dumps(config, indent=1))
    return invoke(file, *arguments)


def reported(result: Result) -> list[str]:
    return result.output.splitlines()[:-1]


def worker_file(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "worker.properties"
    file.write_text("\n".join((*WORKER, *lines)))
    return file


def test_the_files_of_the_documents_are_sound() -> None:
    files = [*sorted((DOCUMENTS / "001" / "mm2").iterdir()), DOCUMENTS / "004" / "connectors.json"]
    result = invoke(*files, "--strict")
    assert result.exit_code == 0, result.output
    flows = ["source-0->target-0"] * 3 + ["source->target"]
    assert result.output.splitlines() == [
        f"{file}: a connector, usable; {flow}; no errors." for file, flow in zip(files, flows, strict=True)
    ]


def test_everything_is_told_in_one_report_with_its_line(tmp_path: Path) -> None:
    result = validate(
        tmp_path,
        {
            "connector.class": "MirrorSourceConector",
            "source.cluster.alias": "a",
            "source.cluster.bootstrap.server": "a:1",
            "target.cluster.bootstrap.servers": "nowhere",
            "source.cluster.security.protocol": "SASL_SSL",
            "source.cluster.sasl.mechanism": "PLIN",
            "source.cluster.ssl.truststore.location": "/nowhere/trust.jks",
            "topics": "x[",
            "topcs": "y",
            "tasks.max": 0,
            "replication.factor": [3],
            "consumer.fetch.max.bytes": "many",
            "producer.override.max.request.size": "many",
            "transforms": "x",
            "sync.topic.acls.enabled": None,
            "offset.flush.interval.ms": "5",
            "fetch.min.bytes": "5",
            "security.protocol": "SSL",
            "groups": "g",
        },
    )
    assert result.exit_code == 2
    lines = reported(result)
    missing = "error: source.cluster.bootstrap.servers: the cluster 'a' has no bootstrap servers;"
    assert lines[0].startswith(missing)
    starts = [line.split(": ")[:3] for line in lines[1:]]
    assert [start[1:] for start in starts if start[0] == "error"] == [
        [f"line {line}", name]
        for line, name in (
            (2, "connector.class"),
            (5, "target.cluster.bootstrap.servers"),
            (7, "source.cluster.sasl.mechanism"),
            (8, "source.cluster.ssl.truststore.location"),
            (9, "topics"),
            (11, "tasks.max"),
            (12, "replication.factor"),
            (15, "consumer.fetch.max.bytes"),
            (16, "producer.override.max.request.size"),
            (17, "transforms"),
            (18, "sync.topic.acls.enabled"),
        )
    ]
    assert [start[1:] for start in starts if start[0] == "warning"] == [
        [f"line {line}", name]
        for line, name in (
            (4, "source.cluster.bootstrap.server"),
            (10, "topcs"),
            (19, "offset.flush.interval.ms"),
            (20, "fetch.min.bytes"),
            (21, "security.protocol"),
        )
    ]
    output = result.output
    assert f"Did you mean '{PACKAGE}MirrorSourceConnector'?" in output
    assert "Did you mean 'source.cluster.bootstrap.servers'?" in output
    assert "write it as in 'source.consumer.fetch.min.bytes'" in output
    assert "note: line 22: groups: this key has no effect here: only MirrorCheckpointConnector reads it." in output
    assert output.endswith("mirror.json: a connector, not usable; 12 errors, 5 warnings, 1 note.\n")


@pytest.mark.parametrize(
    "change",
    [
        {"tasks.max": "0"},
        {"tasks.max": "many"},
        {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"},
        {"exactly.once.support": "required", "consumer.isolation.level": "read_uncommitted"},
        {"errors.tolerance": "some"},
        {"name": "a\u0001"},
        {"topics": None},
        {"value.converter": "org.apache.kafka.connect.json.JsonConverter"},
    ],
)
def test_what_a_worker_refuses_is_told_in_its_words(tmp_path: Path, change: dict[str, Any]) -> None:
    config = {"name": "mirror", **SOUND, **change}
    plugins = ConnectorPlugins({"exactly.once.source.support": "enabled"}, Resolver(FakeLookup(), {}))
    refused = [
        f"{each.definition['name']}: {error}"
        for each in plugins.validated(config["connector.class"], config)
        for error in each.errors
    ]
    assert refused
    result = validate(tmp_path, config)
    assert result.exit_code == 2
    assert [line.partition(": line ")[2].partition(": ")[2] for line in reported(result) if "error" in line] == refused


def test_a_connector_that_does_not_name_its_source_is_refused_not_a_failure(tmp_path: Path) -> None:
    """Also by a worker, which puts settings together to look for contradictions."""
    without = {name: value for name, value in SOUND.items() if not name.startswith("target.")}
    config = {"name": "mirror", **without, "source.cluster.alias": ""}
    plugins = ConnectorPlugins({}, Resolver(FakeLookup(), {}))
    assert plugins.errors(config["connector.class"], config) == [
        "the connector does not name its source; add the source's alias."
    ]
    errors = reported(validate(tmp_path, config))
    assert len(errors) == 2  # what is wrong with the rest is not hidden
    assert "target.cluster.bootstrap.servers: the cluster 'target' has no bootstrap servers" in errors[0]
    assert "line 4: source.cluster.alias: the connector does not name its source" in errors[1]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"name": "n"}, "error: connector.class: the connector has none. There are MirrorSourceConnector,"),
        ({**SOUND, "connector.class": "FileStreamSource"}, "'FileStreamSource' is not a connector of MirrorMaker 2."),
        ({"name": "n", "config": SOUND, "tasks": []}, 'tasks: Connect takes "name", "config" and "initial_state"'),
        ({"name": "n", "config": SOUND, "initial_state": "ASLEEP"}, "it must be one of RUNNING, PAUSED, STOPPED."),
        ({"config": SOUND}, "error: name: the connector has none"),
        ({"name": "n", "config": {**SOUND, "name": "m"}}, "name: the config has 'm', the connector is 'n'"),
        ('{"name": "n",}', "error: line 1: this is not JSON: "),
        ('{"name": NaN}', "error: this is not JSON: NaN is no number in it."),
        ("x=y", "error: line 1: this is not JSON: "),
        ("[]", 'error: a connector is a JSON object, as in {"name": ..., "config": {...}}.'),
        ("[" * 100_000, "error: "),
    ],
)
def test_what_is_no_connector_is_told(tmp_path: Path, config: Any, words: str) -> None:
    result = validate(tmp_path, config)
    assert result.exit_code == 2
    assert words in result.output


def test_heartbeats_need_no_source_cluster(tmp_path: Path) -> None:
    config = {name: value for name, value in SOUND.items() if name != "source.cluster.bootstrap.servers"}
    assert validate(tmp_path, {**config, "connector.class": "MirrorHeartbeat"}, "--strict").exit_code == 0
    assert "source.cluster.bootstrap.servers" in validate(tmp_path, config).output


def test_secrets_are_never_shown_and_a_literal_one_is_warned_about(tmp_path: Path) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="canary" x;'
    login = {
        "source.cluster.security.protocol": "SASL_SSL",
        "source.cluster.sasl.mechanism": "PLAIN",
        "source.cluster.sasl.jaas.config": jaas,
        "source.cluster.ssl.keystore.password": "canary",
    }
    result = validate(tmp_path, {**SOUND, **login})
    assert "canary" not in result.output
    assert "error: line 8: source.cluster.sasl.jaas.config: " in result.output
    assert "warning: line 9: source.cluster.ssl.keystore.password: everyone who may read the worker's" in result.output


def test_warnings_count_only_where_the_user_is_strict(tmp_path: Path) -> None:
    config = {**SOUND, "topcs": "x"}
    assert validate(tmp_path, config).exit_code == 0
    assert validate(tmp_path, config, "--strict").exit_code == 2


def test_a_placeholder_is_left_to_a_worker_that_is_not_known(tmp_path: Path) -> None:
    config = {**SOUND, "tasks.max": "${env:TASKS}", "topics": "${file:/x:y}", "exactly.once.support": "required"}
    result = validate(tmp_path, {**config, "consumer.isolation.level": "read_committed"}, "--strict")
    assert result.exit_code == 0, result.output
    assert [line.split(": ")[2] for line in reported(result)] == ["tasks.max", "topics"]
    assert "is looked up by the worker; --worker FILE tries it." in result.output


def test_a_connector_is_held_to_what_its_worker_declares_and_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "canary")
    config = {
        **SOUND,
        "tasks.max": "${env:CANARY}",
        "topics": "${env:NOT_SET}",
        "groups": "${file:/x:y}",
        "exactly.once.support": "required",
        "consumer.isolation.level": "read_committed",
        "producer.override.linger.ms": "5",
    }
    policy = "connector.client.config.override.policy=None"
    result = validate(tmp_path, config, "--worker", worker_file(tmp_path, *PROVIDER, policy))
    assert "canary" not in result.output
    assert [line.split(": ")[2] for line in reported(result) if line.startswith("error")] == [
        *("tasks.max", "topics", "groups", "exactly.once.support", "producer.override.linger.ms"),
    ]
    sound = {**SOUND, "source.cluster.ssl.key.password": "${env:CANARY}", "producer.override.linger.ms": "5"}
    assert validate(tmp_path, sound, "--worker", worker_file(tmp_path, *PROVIDER)).exit_code == 0
    undeclared = validate(tmp_path, sound, "--worker", worker_file(tmp_path))
    assert "add 'config.providers = env'" in undeclared.output
    (tmp_path / "bad.properties").write_text("group.id=g")
    broken = validate(tmp_path, sound, "--worker", tmp_path / "bad.properties").exception
    assert isinstance(broken, ConfigError)
    assert all(problem.startswith(f"--worker {tmp_path}/bad.properties: ") for problem in texts(broken.problems))


def test_each_of_several_files_gets_its_verdict(tmp_path: Path) -> None:
    good, bad, none = (tmp_path / f"{name}.json" for name in ("good", "bad", "none"))
    good.write_text(json.dumps(SOUND))
    bad.write_text(json.dumps([{**SOUND, "tasks.max": "0"}, {**SOUND, "source.cluster.alias": "z"}]))
    result = invoke(good, bad, none, worker_file(tmp_path))
    zero = "Invalid value 0 for configuration tasks.max: Value must be at least 1"
    assert result.exit_code == 2
    assert result.output.splitlines() == [
        f"{good}: a connector, usable; a->target; no errors.",
        f"error: {bad}: connector 1: line 1: tasks.max: {zero}",
        f"{bad}: 2 connectors, not usable; 1 error.",
        f"error: {none}: there is no such file.",
        f"{none}: not usable; 1 error.",
        f"{tmp_path}/worker.properties: a Connect worker, usable; no errors.",
    ]


def test_a_file_for_deploy_that_has_another_name_inside_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mm2-msc-b.json"
    file.write_text(json.dumps({**SOUND, "name": "mm2-msc-a"}))
    result = invoke(file)
    assert "warning: line 1: name: 'heliograph deploy' puts this file as 'mm2-msc-b'" in result.output
    file.write_text(json.dumps({**SOUND, "name": "mm2-msc-b"}))
    assert reported(invoke(file)) == []


@pytest.mark.parametrize("content", [{"name": "mm2-cpc-b", "config": SOUND}, [SOUND], [SOUND, SOUND]])
def test_what_deploy_refuses_is_told_of_a_file_that_is_named_for_it(tmp_path: Path, content: Any) -> None:
    file, other = tmp_path / "mm2-cpc-b.json", tmp_path / "b.json"
    file.write_text(json.dumps(content))
    other.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=r"mm2-cpc-b.json: "):
        read_connector_files(tmp_path, "b")
    (line,) = reported(invoke(file))
    assert line.startswith("warning: 'heliograph deploy' will refuse this file")
    assert reported(invoke(other)) == []


def test_each_name_that_several_connectors_have_is_a_problem(tmp_path: Path) -> None:
    named = {name: {"name": name, "config": SOUND} for name in "abc"}
    result = validate(tmp_path, [*named.values(), {**SOUND, "name": "a"}, named["b"], named["a"]])
    assert result.exit_code == 2
    assert reported(result) == [
        "error: name: connectors 1, 4 and 6 are called 'a'; give each its own name.",
        "error: name: connectors 2 and 5 are called 'b'; give each its own name.",
    ]


def test_an_option_that_is_not_for_such_a_file_is_told(tmp_path: Path) -> None:
    worker, flows = worker_file(tmp_path), tmp_path / "mm2.properties"
    flows.write_text("clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n")
    connector = validate(tmp_path, SOUND, "--worker", worker, "--clusters", "b")
    assert reported(connector) == [
        "note: --clusters: it has no effect here: it chooses among flows, and this is a connector."
    ]
    about_worker = "note: --worker: it has no effect here: it is for connectors in JSON."
    assert reported(invoke(flows, "--worker", worker, "--clusters", "b")) == [about_worker]
    assert reported(invoke(worker, "--worker", worker, "--clusters", "b")) == [
        about_worker,
        "note: --clusters: it has no effect here: this is a Connect worker.",
    ]
    assert reported(invoke(flows)) == []


def test_a_worker_file_that_lacks_a_topic_is_one_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("\n".join(line for line in WORKER if not line.startswith("config.")))
    result = invoke(file)
    assert result.exit_code == 2
    assert "config.storage.topic: the worker needs it" in result.output
    assert "a Connect worker, not usable; 1 error." in result.output


def test_lines_are_those_of_the_keys_whatever_stands_around_them() -> None:
    text = '{"config": {"a": "} {",\n "b": "\\"a\\": {", "a"\n: "x\\\\"\n}, "name":\n"n"}'
    (found,) = read_connector_texts(text)
    assert (found.name, found.config) == ("n", {"a": "x\\", "b": '"a": {'})
    assert found.lines == {"a": 2, "b": 2}
    assert texts(found.diagnostics) == ("line 2: a: written on lines 1 and 2; only the last one counts.",)

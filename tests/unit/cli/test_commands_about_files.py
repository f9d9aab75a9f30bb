"""`heliograph validate` and `heliograph explain`, as a user calls them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heliograph.cli.main import cli
from heliograph.errors import ConfigError
from tests.support.config_files import minimal


def call(tmp_path: Path, command: str, text: str, *arguments: str) -> Result:
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    return CliRunner().invoke(cli, [command, str(file), *arguments])


def test_a_good_file_is_usable(tmp_path: Path) -> None:
    result = call(tmp_path, "validate", minimal("B->A.enabled=true"))
    assert result.exit_code == 0
    assert "usable; A->B, B->A; no errors." in result.output


def test_errors_warnings_and_notes_are_told_together(tmp_path: Path) -> None:
    lines = (
        "A->B.topics=[",
        "A->B.replication.factor=two",
        "A->B.topcs=x",
        "access.control.allow.methods=x",
        "A.sasl.mechanism=X",
    )
    result = call(tmp_path, "validate", minimal(*lines, "A.security.protocol=SASL_SSL"))
    assert result.exit_code == 2
    kinds = [line.partition(":")[0] for line in result.output.splitlines()[:-1]]
    assert kinds == ["error"] * 3 + ["warning", "note"]
    assert "error: line 5: A->B.topics: '[' cannot be read as a Java regular expression" in result.output
    assert "error: line 9: A.sasl.mechanism: 'X' is not supported" in result.output
    assert result.output.splitlines()[-1].endswith("not usable; 3 errors, 1 warning, 1 note.")


def test_warnings_count_only_where_the_user_is_strict(tmp_path: Path) -> None:
    text = minimal("A->B.topcs=x")
    assert call(tmp_path, "validate", text).exit_code == 0
    assert call(tmp_path, "validate", text, "--strict").exit_code == 2


def test_only_the_flows_into_the_asked_clusters_are_looked_at(tmp_path: Path) -> None:
    text = minimal("B->A.enabled=true", "B->A.replication.factor=two")
    assert call(tmp_path, "validate", text).exit_code == 2
    assert call(tmp_path, "validate", text, "--clusters", "B").exit_code == 0
    assert call(tmp_path, "validate", text, "--clusters", "A", "B").exit_code == 2
    assert "error: B: there is no such file." in call(tmp_path, "validate", text, "B").output


def test_a_value_is_explained_by_its_line_and_rule(tmp_path: Path) -> None:
    result = call(tmp_path, "explain", minimal("topics=all", "A->B.topics=some", "B->A.enabled=true"), "topics")
    assert result.exit_code == 0
    assert result.output.splitlines()[2:] == [
        "A->B: some",
        "    from line 6: A->B.topics (flow key, after 'A->B.')",
        "    over line 5: topics (top of the file)",
        "B->A: all",
        "    from line 5: topics (top of the file)",
    ]


@pytest.mark.parametrize(
    ("lines", "key", "words"),
    [
        ((), "replication.factor", "A->B: 2\n    from default; fewer on a cluster of fewer brokers"),
        (("replication.factor=2",), "replication.factor", "A->B: 2\n    from line 5: replication.factor"),
        ((), "refresh.topics.interval.seconds", "A->B: 30\n    from default of Heliograph"),
        ((), "refresh.topics.interval.seconds", "long, default 30 (MM2: 600), importance low, since 2.4"),
        ((), "clusters", "file: A,B\n    from line 1: clusters"),
        (("B.offset.flush.interval.ms=7",), "offset.flush.interval.ms", "worker key of the target, after 'B.'"),
        (("topics.blacklist=x",), "topics.blacklist", "topics.blacklist (top of the file, by its old name)"),
        (("security.protocol=SSL",), "security.protocol", "A->B, producer of B: SSL"),
        (("A.consumer.client.rack=r",), "A.consumer.client.rack", "A->B, consumer of A: r"),
        ((), "transforms", "rejected: Heliograph copies batches"),
        ((), "errors.tolerance", "must be one of none, all"),
        (("B->A.topics=t",), "B->A.topics", "B->A: t"),
    ],
)
def test_every_rule_is_told(tmp_path: Path, lines: tuple[str, ...], key: str, words: str) -> None:
    assert words in call(tmp_path, "explain", minimal(*lines), key).output


def test_a_flow_that_is_off_can_be_asked_for(tmp_path: Path) -> None:
    result = call(tmp_path, "explain", minimal("B->A.topics=t"), "topics", "--flow", "B->A")
    assert "B->A: t" in result.output
    assert "A->B:" not in result.output
    wrong = call(tmp_path, "explain", minimal(), "topics", "--flow", "B->C")
    assert isinstance(wrong.exception, ConfigError)


def test_everything_that_is_set_is_listed_without_secrets(tmp_path: Path) -> None:
    text = minimal("A.ssl.key.password=canary", 'A.sasl.jaas.config=M required password="canary";', "A.api.key=canary")
    result = call(tmp_path, "explain", text)
    assert result.exit_code == 0
    assert "canary" not in result.output
    assert "    5  A.ssl.key.password = [hidden]" in result.output
    assert "    2  A.bootstrap.servers = a:1" in result.output


@pytest.mark.parametrize(
    "line",
    ["heliograph.metrics.dialect=metrics-reporter", "heliograph.metrics.listeners=http://:1", "listeners=http://:1"],
)
def test_a_key_of_the_process_is_explained_once_and_not_for_each_flow(tmp_path: Path, line: str) -> None:
    name, _equals, value = line.partition("=")
    output = call(tmp_path, "explain", minimal("B->A.enabled=true", line), name).output
    assert f"file: {value}\n    from line" in output
    assert "A->B" not in output


def test_what_keeps_metrics_from_being_served_is_a_warning(tmp_path: Path) -> None:
    result = call(tmp_path, "validate", minimal("heliograph.metrics.listeners=https://:9404"))
    assert "an https listener needs a key; name its file; metrics are not served." in result.output
    assert result.exit_code == 0


def test_an_explained_secret_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", "canary")
    monkeypatch.setenv("BROKERS", "canary:1")
    text = minimal("A.ssl.key.password=${PW}", "B.ssl.key.password=canary", "A.bootstrap.servers=${BROKERS}")
    secret = call(tmp_path, "explain", text, "ssl.key.password").output
    assert "canary" not in secret
    assert "consumer of A: ${PW}" in secret
    assert "producer of B: [hidden]" in secret
    assert "consumer of A: ${BROKERS}" in call(tmp_path, "explain", text, "bootstrap.servers").output


def test_an_unknown_key_is_not_explained(tmp_path: Path) -> None:
    result = call(tmp_path, "explain", minimal(), "topcs")
    assert str(result.exception) == "topcs: there is no such key. Did you mean 'topics'?"


def test_a_file_with_problems_is_explained_as_far_as_it_goes(tmp_path: Path) -> None:
    result = call(tmp_path, "explain", minimal("A->B.replication.factor=two"), "replication.factor")
    assert result.exit_code == 0
    assert "A->B: two" in result.output
    assert isinstance(call(tmp_path, "explain", "", "topics").exception, ConfigError)


def test_one_mistake_does_not_hide_the_next(tmp_path: Path) -> None:
    """A list, a variable, an address, an alias, patterns, a class, a login, TLS, a provider: each had its own stage."""
    lines = (
        "clusters = A, B, B",
        "A.bootstrap.servers = ${NOT_SET_ANYWHERE}",
        "B.bootstrap.servers = nowhere",
        "A->B.enabled = true",
        "A->C.replication.factor = two",
        "topics = x[",
        "groups = *",
        "replication.policy.class = Nobody",
        "A.security.protocol = SASL_SSL",
        "A.sasl.mechanism = PLIN",
        "A.ssl.protocol = TLSv1.1",
        "A.ssl.truststore.location = /nowhere/trust.jks",
        "config.providers = v",
        "config.providers.v.class = com.acme.Vault",
        "B.ssl.key.password = ${v:a:b}",
        "B->A.enabled = ${NOT_SET_EITHER}",
        "B->A.tasks.max = many",
        "A.client.id = \\u12",
    )
    output = call(tmp_path, "validate", "\n".join(lines)).output
    errors = [line for line in output.splitlines() if line.startswith("error: ")]
    reported = [int(line.split()[2].rstrip(":")) for line in errors]
    assert reported == [1, 2, 3, 5, 5, 6, 7, 8, 10, 11, 12, 14, 16, 17, 18]


def test_a_file_without_its_list_of_clusters_is_still_looked_at(tmp_path: Path) -> None:
    text = minimal("A->B.tasks.max=many", "A->B.topics=(").replace("clusters=A,B", "# none")
    output = call(tmp_path, "validate", text).output
    assert "add a line such as 'clusters = A, B'" in output
    assert "line 5: A->B.tasks.max: 'many' is not a whole number" in output
    assert "line 6: A->B.topics: '(' cannot be read" in output


def test_flows_that_nobody_enabled_are_still_looked_at(tmp_path: Path) -> None:
    text = minimal("A->B.tasks.max=many", "A.ssl.key.password=${NOT_SET}").replace("A->B.enabled=true", "")
    output = call(tmp_path, "validate", text).output
    assert "No source->target replication flow is enabled" in output
    assert "line 5: A->B.tasks.max: 'many'" in output
    assert "the environment variable NOT_SET is not set" in output


def test_what_only_follows_from_a_problem_is_not_told(tmp_path: Path) -> None:
    lines = ("A.security.protocol=SASL_SSL", "A.sasl.mechanism=PLAIN", "A.sasl.jaas.config=${NOT_SET}")
    trusting = ("A.ssl.truststore.location=${NOT_SET}", "A->B.topics=${NOT_SET}", "A->B.tasks.max=${NOT_SET}")
    result = call(tmp_path, "validate", minimal(*lines, *trusting))
    errors = [line for line in result.output.splitlines() if line.startswith("error: ")]
    assert len(errors) == 4
    assert all(line.endswith("the environment variable NOT_SET is not set.") for line in errors)


def test_a_circle_is_warned_about_beside_an_error(tmp_path: Path) -> None:
    lines = ("B->A.enabled=true", "replication.policy.class=IdentityReplicationPolicy", "A.consumer.fetch.max.bytes=x")
    output = call(tmp_path, "validate", minimal(*lines)).output
    assert "error: line 7: A.consumer.fetch.max.bytes" in output
    assert any(line.startswith("warning: ") and "B->A" in line for line in output.splitlines())


def test_a_pattern_is_refused_with_its_reason_and_place(tmp_path: Path) -> None:
    output = call(tmp_path, "validate", minimal("A->B.topics=orders, x[")).output
    assert (
        "A->B.topics: 'x[' cannot be read as a Java regular expression: at character 2, a '[' is not closed." in output
    )
    assert "orders" not in output


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((), "usable; A->B; no errors."),
        (("A->B.topcs=x",), "usable; A->B; no errors, 1 warning."),
        (("A->B.topcs=x", "A->B.topiks=x", "A->B.tasks.max=x"), "not usable; 1 error, 2 warnings."),
        (("access.control.allow.methods=x", "A->B.tasks.max=x", "topics=("), "not usable; 2 errors, 1 note."),
    ],
)
def test_what_was_found_is_counted_in_words(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    assert call(tmp_path, "validate", minimal(*lines)).output.splitlines()[-1].endswith(words)


def test_a_variable_that_is_not_set_is_explained_with_its_line(tmp_path: Path) -> None:
    text = minimal("A.ssl.key.password=${NOT_SET}")
    explained = call(tmp_path, "explain", text, "ssl.key.password").stdout
    assert (
        "A->B, consumer of A: ${NOT_SET}\n    but the environment variable NOT_SET is not set.\n"
        "    from line 5: A.ssl.key.password (key of the cluster, after 'A.')" in explained
    )
    listed = call(tmp_path, "explain", text).stdout
    assert "    5  A.ssl.key.password = ${NOT_SET}\n           but the environment variable NOT_SET is not" in listed


def test_a_flow_that_is_off_is_explained_as_off(tmp_path: Path) -> None:
    result = call(tmp_path, "explain", minimal("enabled=true"), "enabled")
    assert "A->B: true\n    from line 4: A->B.enabled" in result.output
    assert "B->A: false\n    from default: a flow is off until 'B->A.enabled = true'" in result.output
    written = call(tmp_path, "explain", minimal("B->A.enabled=false"), "enabled", "--flow", "B->A")
    assert "B->A: false\n    from line 5: B->A.enabled" in written.output


def test_a_file_whose_flows_are_all_off_is_explained(tmp_path: Path) -> None:
    result = call(tmp_path, "explain", minimal("topics=t").replace("enabled=true", "enabled=false"), "topics")
    assert result.exit_code == 0
    assert "A->B: t\n    from line 5: topics" in result.output

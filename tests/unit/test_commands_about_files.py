"""`heliograph validate` and `heliograph explain`, as a user calls them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heliograph.cli.main import cli
from heliograph.errors import ConfigError
from tests.unit.test_dedicated_file import minimal


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
        "access.control.allow.origin=x",
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
    assert "unexpected extra argument" in call(tmp_path, "validate", text, "B").output


def test_a_value_is_explained_by_its_line_and_rule(tmp_path: Path) -> None:
    result = call(tmp_path, "explain", minimal("topics=all", "A->B.topics=some", "B->A.enabled=true"), "topics")
    assert result.exit_code == 0
    assert result.output.splitlines()[2:] == [
        "A->B: some",
        "    from line 6: A->B.topics (flow key, behind 'A->B.')",
        "    over line 5: topics (top of the file)",
        "B->A: all",
        "    from line 5: topics (top of the file)",
    ]


@pytest.mark.parametrize(
    ("lines", "key", "words"),
    [
        ((), "refresh.topics.interval.seconds", "A->B: 30\n    from default of Heliograph"),
        ((), "refresh.topics.interval.seconds", "long, default 30 (MM2: 600), importance low, since 2.4"),
        ((), "clusters", "file: A,B\n    from line 1: clusters"),
        (("B.offset.flush.interval.ms=7",), "offset.flush.interval.ms", "worker key of the target, behind 'B.'"),
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

"""What a user can get wrong: one clear sentence, a non-zero exit code, no stack trace. No cluster answers here."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.embedded.process import free_ports
from tests.support.runs.running import run

pytestmark = pytest.mark.spark

GOOD = """\
clusters=A, B
A.bootstrap.servers=127.0.0.1:{port}
B.bootstrap.servers=127.0.0.1:{port}
A->B.enabled=true
"""


def refused(tmp_path: Path, text: str | None, **variables: str) -> str:
    file = tmp_path / "mm2.properties"
    if text is not None:
        file.write_text(text)
    ended = run("run", file, **variables)
    assert ended.returncode != 0
    assert "Traceback" not in ended.stdout + ended.stderr
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, ended.stderr
    return errors[0]


def closed_port() -> int:
    return free_ports(1)[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no such file"),
        ("A.bootstrap.servers=x:1\n", "does not list its clusters"),
        (GOOD.replace("B.bootstrap.servers=127.0.0.1:{port}\n", ""), "'B' has no bootstrap servers"),
        (GOOD + "A->C.topics=x\n", "C is not in 'clusters'"),
        (GOOD.replace("true", "false"), "No source->target replication flow is enabled"),
        (GOOD + "A->B.topics=ord(\n", "line 5: A->B.topics: 'ord(' cannot be read as a Java regular expression"),
        (GOOD + "A.sasl.jaas.config=${{NOT_SET_ANYWHERE}}\n", "NOT_SET_ANYWHERE is not set"),
        (GOOD.replace("127.0.0.1:{port}", "nowhere", 1), "'nowhere' is not host:port"),
    ],
)
def test_a_mistake_in_the_file(tmp_path: Path, text: str | None, words: str) -> None:
    assert words in refused(tmp_path, text if text is None else text.format(port=closed_port()))


def test_a_broker_that_does_not_answer(tmp_path: Path) -> None:
    text = GOOD.format(port=closed_port()) + "heliograph.connect.timeout.ms=1500\n"
    sentence = refused(tmp_path, text)
    assert "The cluster 'A' did not answer within 2 s" in sentence
    assert "A.bootstrap.servers" in sentence


def test_an_unknown_key_is_a_warning_with_a_suggestion(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    text = GOOD.format(port=closed_port())
    file.write_text(text + "A->B.topcs=x\nheliograph.connect.timeout.ms=500\n")
    ended = run("run", file)
    assert (
        f"WARNING {file}: line 5: A->B.topcs: unknown key; it has no effect. Did you mean 'A->B.topics'?"
        in ended.stdout
    )

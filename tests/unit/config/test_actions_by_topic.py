"""`heliograph.on.recreated` and its kin as a user writes them: the same rules, and the same mistakes, in every form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from heliograph.cli.main import cli
from heliograph.config.effective.connect_config import CLASSES, ConnectorConfig
from heliograph.config.effective.mirror_config import MirrorConfig
from heliograph.config.formats.conversion import ConfigText
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.config.validate.dedicated_file import load
from heliograph.mirror.policy.change_rules import ChangeRules
from heliograph.model import ChangeActions, Flow
from tests.support.config_files import GOOD, FakeLookup, minimal

KEY = "heliograph.on.recreated"
RULES = r"staging\..*=restart, fail"
CONNECTOR = {
    "name": "us->eu",
    "connector.class": CLASSES["source"],
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "source.cluster.bootstrap.servers": "us:9092",
    "target.cluster.bootstrap.servers": "eu:9092",
}


def properties(value: str) -> str:
    return minimal(f"A->B.{KEY} = {value}".replace("\\", "\\\\"))


def resource(value: str) -> str:
    return GOOD.replace("sourceConnector: {}", f"sourceConnector: {{config: {{{KEY}: '{value}'}}}}")


def connector(value: str) -> str:
    return json.dumps(CONNECTOR | {KEY: value}, indent=1)


def actions(config: MirrorConfig, topic: str) -> ChangeActions:
    return ChangeRules.of(config.settings(config.flows[0])).actions(topic)


def test_every_form_carries_the_rules() -> None:
    file = load(properties(RULES), FakeLookup())
    from_resource = load(ConfigText(resource(RULES), "mm2.yaml"), FakeLookup())
    own = ConnectorConfig("us->eu", json.loads(connector(RULES)), {}, Resolver(FakeLookup(), {}))
    assert [each.flows for each in (file, from_resource, own)] == [(Flow("A", "B"),), *[(Flow("us", "eu"),)] * 2]
    for config in (file, from_resource, own):
        assert actions(config, "staging.orders").recreated == "restart"
        assert actions(config, "orders").recreated == "fail"


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("mm2.properties", properties, f"line 5: A->B.{KEY}"),
        ("mm2.yaml", resource, f"line 14: spec.mirrors[0].sourceConnector.config.{KEY}"),
        ("mirror.json", connector, f"line 8: {KEY}"),
    ],
)
@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("staging=retart, fail", "'staging=retart': the action must be one of fail, restart."),
        ("fail, restart", "'fail' and 'restart' are each for all topics that no rule matches; keep one, at the end."),
        ("fail, a=restart", "'fail' is for all topics that no rule matches; move it to the end."),
        ("(a=restart", "'(a=restart': a pattern cannot be read as a Java regular expression: at character 1, a '('"),
    ],
)
def test_validate_reports_each_mistake_once_with_its_place(
    tmp_path: Path, name: str, text: Callable[[str], str], place: str, value: str, sentence: str
) -> None:
    file = tmp_path / name
    file.write_text(text(value))
    result = CliRunner().invoke(cli, ["validate", str(file)])
    assert result.exit_code == 2
    (error,) = [line for line in result.output.splitlines() if line.startswith("error: ")]
    assert error.startswith(f"error: {place}: ")
    assert sentence in error


@pytest.mark.parametrize(("name", "text"), [("mm2.properties", properties), ("mm2.yaml", resource)])
@pytest.mark.parametrize("value", [RULES, "restart", "fail", "a=restart"])
def test_validate_accepts_rules_and_plain_values(
    tmp_path: Path, name: str, text: Callable[[str], str], value: str
) -> None:
    file = tmp_path / name
    file.write_text(text(value))
    result = CliRunner().invoke(cli, ["validate", str(file), "--strict"])
    assert result.exit_code == 0, result.output
    explained = CliRunner().invoke(cli, ["explain", str(file), KEY])
    assert f": {value}\n" in explained.output
    assert "must be one of fail, restart; or rules PATTERN=ACTION for source topics" in explained.output


def test_a_worker_refuses_an_action_that_there_is_not() -> None:
    plugins = ConnectorPlugins({}, Resolver(FakeLookup(), {}))
    assert plugins.errors(CLASSES["source"], CONNECTOR | {KEY: RULES}) == []
    invalid = f"Invalid value a=stop, retart for configuration {KEY}: "
    assert plugins.errors(CLASSES["source"], CONNECTOR | {KEY: "a=stop, retart"}) == [
        f"{invalid}'a=stop': the action must be one of fail, restart.",
        f"{invalid}'retart' is neither an action (fail, restart) nor a rule PATTERN=ACTION.",
    ]

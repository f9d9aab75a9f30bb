"""With a cluster gone, `groups`, `plan` and `losses` show the flows that can be asked, and that another could not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from heliograph.cli.commands import groups, losses, plan
from heliograph.cli.main import cli
from heliograph.config.validate.dedicated_file import load
from heliograph.errors import UnreachableError
from heliograph.model import Flow
from heliograph.operations.flow_groups import FlowGroups
from heliograph.operations.flow_plan import CopiedTopic, FlowPlan
from heliograph.operations.recorded_losses import RecordedLosses
from heliograph.status.losses import Loss, LossCause
from tests.support.config_files import FakeLookup, minimal

GONE = "a:1 cannot be reached: Connection refused"
ROW = {"flow": "A->B", "trouble": None, "source_trouble": GONE, "groups": [], "left_out": [], "forbidden": []}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(minimal("B->A.enabled=true"))
    return path


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def lost_a(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever must be asked of A fails; A->B tells what it can without it."""

    def report(_config: object, flow: Flow, _names: object) -> dict[str, Any]:
        if flow.target == "A":
            raise UnreachableError(GONE)
        return ROW

    def plan_flow(_config: object, flow: Flow, _topic: object) -> FlowPlan:
        if flow.target == "A":
            raise UnreachableError(GONE)
        return FlowPlan(flow, copies=[CopiedTopic("t", "A.t", 1)])

    def recorded(_config: object, flow: Flow) -> RecordedLosses:
        if flow.target == "A":
            raise UnreachableError(GONE)
        return RecordedLosses((Loss(0, flow, "t", 0, None, 9, 1_000, LossCause.TARGET_CUT, is_exact=False),), 3)

    monkeypatch.setattr(losses, "recorded_losses", recorded)
    monkeypatch.setattr(groups, "_report", report)
    monkeypatch.setattr(plan, "plan_flow", plan_flow)


@pytest.mark.usefixtures("lost_a")
def test_groups_of_the_flow_that_is_needed_now_are_shown(file: Path) -> None:
    result = invoke("groups", file)
    assert result.exit_code == 3
    assert result.stdout.splitlines() == [
        "A->B",
        f"  the source is unavailable, so checkpoints are used: {GONE}",
        "  no group is followed",
        "B->A",
        f"  its groups are not known: {GONE}",
    ]
    result = invoke("groups", file, "--json")
    assert result.exit_code == 3
    lost = {"flow": "B->A", "trouble": GONE, "source_trouble": None, "groups": [], "left_out": [], "forbidden": []}
    assert json.loads(result.stdout) == {"flows": [ROW, lost]}
    assert invoke("groups", file, "--flow", "A->B").exit_code == 0


def test_a_group_that_is_not_on_the_target_yet_is_not_called_dead(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = dict.fromkeys(("source_offset", "source_lag", "translated_offset", "target_offset", "target_lag"), 5)
    row = {
        "group": "g",
        "type": "consumer",
        "topic": "t",
        "partition": 0,
        "target_state": "Dead",
        "in_sync": True,
        **offsets,
        **dict.fromkeys(("records_behind", "checkpoint_records_behind", "checkpoint_age_seconds", "records_again"), 0),
    }
    monkeypatch.setattr(groups, "_report", lambda *_: {**ROW, "groups": [row]})
    text = invoke("groups", file, "--flow", "A->B").stdout
    assert "none" in text
    assert "Dead" not in text
    data = json.loads(invoke("groups", file, "--flow", "A->B", "--json").stdout)
    assert data["flows"][0]["groups"][0]["target_state"] == "Dead"


@pytest.mark.usefixtures("lost_a")
def test_flows_that_can_be_asked_are_planned(file: Path) -> None:
    result = invoke("plan", file)
    assert result.exit_code == 3
    assert result.stdout.splitlines() == [
        "A->B",
        "  copy     t -> A.t (1 partition)",
        "  nothing to create, grow, alter or add",
        "B->A",
        f"  issue    {GONE}",
        "  nothing else is known about this flow",
    ]
    result = invoke("plan", file, "--json")
    assert result.exit_code == 3
    there, lost = json.loads(result.stdout)["flows"]
    assert (there["is_planned"], there["troubles"]) == (True, [])
    assert (lost["flow"], lost["is_planned"], lost["troubles"]) == ("B->A", False, [GONE])
    assert invoke("plan", file, "--clusters", "B").exit_code == 0


def test_a_flow_whose_target_is_gone_leaves_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    flow_groups = FlowGroups(load(minimal(), FakeLookup()), Flow("A", "B"))
    closed: list[str] = []

    def refuse(_topics: object) -> None:
        raise UnreachableError(GONE)

    monkeypatch.setattr(flow_groups._target, "view", refuse)
    monkeypatch.setattr(flow_groups._source, "close", lambda: closed.append("source"))
    monkeypatch.setattr(flow_groups._target_clients, "close", lambda: closed.append("target"))
    with pytest.raises(UnreachableError), flow_groups:
        pass
    assert closed == ["source", "target"]


@pytest.mark.usefixtures("lost_a")
def test_losses_that_can_be_read_are_shown(file: Path) -> None:
    result = invoke("losses", file)
    assert result.exit_code == 3
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "A->B",
        "TIME TOPIC PARTITION FIRST OFFSET LAST OFFSET COUNT CAUSE",
        "1970-01-01T00:00:00.000Z t 0 - 9 about 1,000 target cut",
        "and 2 older",
        "B->A",
        f"its losses are not known: {GONE}",
    ]


@pytest.mark.usefixtures("lost_a")
def test_losses_as_json_name_the_flow_whose_losses_are_not_known(file: Path) -> None:
    result = invoke("losses", file, "--json")
    assert result.exit_code == 3
    flows = json.loads(result.stdout)["flows"]
    assert [(flow["flow"], flow["issue"], flow["total"], len(flow["losses"])) for flow in flows] == [
        ("A->B", None, 3, 1),
        ("B->A", GONE, None, 0),
    ]

"""`failover` and `failback` say of a group that it continues elsewhere only where all its offsets are there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner

from heliograph.cli.main import cli
from heliograph.errors import ClusterError, GroupActiveError
from heliograph.mirror.groups.group_view import GroupView
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.model import CommittedOffset, Flow, GroupType, OffsetRun, OffsetSync, TopicPartition
from heliograph.operations import failover
from tests.support.config_files import minimal
from tests.unit.mirror.test_group_view import cluster, view_of

FLOW = Flow("A", "B")
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
COPY_0, COPY_1 = TopicPartition("A.t", 0), TopicPartition("A.t", 1)
DEAD_SOURCE = "a:1 cannot be reached"
HAS_MEMBERS = "The group 'g' on 'B' has active members; stop its consumers first."


class FakeGroups:
    """A flow's groups without clusters; it is its own GroupAdmin."""

    def __init__(self, view: GroupView, answer: Mapping[TopicPartition, str] | ClusterError) -> None:
        self.flow, self._view, self._answer = FLOW, view, answer
        self.source_issue: str | None = None
        self.trouble_when_viewed: str | None = None
        self.source_groups = self.target_groups = self
        self.known: tuple[str, ...] | None = view.groups

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        pass

    def followed(self) -> tuple[str, ...]:
        if self.known is None:
            raise ClusterError("'A' does not list its consumer groups.")
        return self.known

    at_target = followed

    def view(self, _groups: object) -> GroupView:
        self.source_issue = self.source_issue or self.trouble_when_viewed
        return self._view

    def set_offsets(
        self, _group: str, _type: GroupType, _offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Mapping[TopicPartition, str]:
        if isinstance(self._answer, ClusterError):
            raise self._answer
        return self._answer


class Commands:
    """The commands, run on made-up groups."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.file, self._patch = folder / "mm2.properties", patch
        self.file.write_text(minimal())

    def use(self, view: GroupView, answer: Mapping[TopicPartition, str] | ClusterError | None = None) -> FakeGroups:
        groups = FakeGroups(view, answer or {})
        self._patch.setattr(failover, "FlowGroups", lambda *_, **_moves: groups)
        return groups

    def text(self, command: str, *options: str, code: int) -> str:
        result = CliRunner().invoke(cli, [command, str(self.file), "--all", *options])
        assert result.exit_code == code, (result.output, result.exception)
        return result.stdout

    def data(self, command: str, *options: str, code: int) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.text(command, *options, "--json", code=code))
        return data


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(tmp_path, monkeypatch)


def view(ends: Mapping[TopicPartition, int], state: str = "Dead") -> GroupView:
    """The group has read 5 of 10 in two partitions; their copies are as long as `ends` says."""
    known = OffsetMap()
    known.take_all(OffsetSync(tp, 9, 9, (OffsetRun(0, 0, 10),)) for tp in (T0, T1))
    return view_of(cluster("Empty", {T0: 5, T1: 5}, {T0: 10, T1: 10}), cluster(state, {}, ends), known, flow=FLOW)


BOTH_THERE = {COPY_0: 10, COPY_1: 10}


def outcomes(data: dict[str, Any]) -> list[tuple[str, str]]:
    (group,) = data["groups"]
    return [(row["outcome"], row["why"]) for row in group["partitions"]]


def test_a_group_that_is_wholly_moved_continues(commands: Commands) -> None:
    commands.use(view(BOTH_THERE))
    assert commands.text("failover", code=0).startswith("g: continues on 'B', 2 offsets set; records read again: 0")
    would = "g: would continue on 'B', 2 offsets to set; records read again: 0"
    assert commands.text("failover", "--dry-run", code=0).startswith(would)


def test_a_group_whose_offsets_cannot_be_committed_is_not_moved(commands: Commands) -> None:
    commands.use(view(BOTH_THERE), GroupActiveError(HAS_MEMBERS))
    text = commands.text("failover", code=1)
    assert text.startswith("g: NOT MOVED to 'B' (0 of 2 offsets set); records read again: not known")
    assert "continues" not in text
    assert "A.t-0      -       5       -      REFUSED: its offsets could not be committed" in text
    assert f"  REFUSED: {HAS_MEMBERS}" in text
    assert "do not start its consumers on 'B' yet" in text
    data = commands.data("failover", code=1)
    assert outcomes(data) == [("refused", "its offsets could not be committed")] * 2
    (group,) = data["groups"]
    assert (group["moved"], group["troubles"], group["records_again"]) == (False, [HAS_MEMBERS], None)


def test_a_partition_that_the_cluster_refuses_is_not_counted_as_set(commands: Commands) -> None:
    commands.use(view(BOTH_THERE), {COPY_1: "the principal needs READ on the topic A.t"})
    text = commands.text("failover", code=1)
    assert text.startswith("g: MOVED PARTLY to 'B' (1 of 2 offsets set)")
    assert "REFUSED: the principal needs READ on the topic A.t" in text
    assert [outcome for outcome, _why in outcomes(commands.data("failover", code=1))] == ["set", "refused"]


def test_a_partition_without_a_log_keeps_a_group_from_being_moved(commands: Commands) -> None:
    commands.use(view({COPY_0: 10}))
    text = commands.text("failover", code=1)
    assert text.startswith("g: MOVED PARTLY to 'B' (1 of 2 offsets set); records read again: not known")
    assert "NOT SET: the topic does not exist, or has no leader" in text
    dry = commands.text("failover", "--dry-run", code=1)
    assert dry.startswith("g: WOULD MOVE PARTLY to 'B' (1 of 2 offsets to set)")
    assert "do not start" not in dry


def test_no_offset_of_a_group_with_members_is_called_set(commands: Commands) -> None:
    commands.use(view(BOTH_THERE, "Stable"))
    refused = "it has active members there (Stable); stop them first"
    assert outcomes(commands.data("failover", code=1)) == [("refused", refused)] * 2


def test_a_flow_of_which_nothing_is_known_is_no_success(commands: Commands) -> None:
    nothing = view_of(None, cluster("Dead", {}, {}), OffsetMap(), flow=FLOW)
    groups = commands.use(GroupView(**{**vars(nothing), "groups": ()}))
    assert "there is no group to move\n" in commands.text("failover", code=0)
    groups.source_issue = DEAD_SOURCE
    assert "there is no group to move; no group has a checkpoint\n" in commands.text("failover", code=1)
    assert commands.data("failover", code=1)["source_trouble"] == DEAD_SOURCE


@pytest.mark.parametrize("command", ["failover", "failback"])
def test_a_group_that_is_nowhere_is_told_with_the_name_that_may_be_meant(commands: Commands, command: str) -> None:
    nowhere = view_of(cluster("Dead", {}, {}), cluster("Dead", {}, {}), OffsetMap(), flow=FLOW)
    groups = commands.use(GroupView(**{**vars(nowhere), "groups": ("biling",)}))
    left, there = ("A", "B") if command == "failover" else ("B", "A")
    words = f"biling: REFUSED on '{there}': it has committed nothing on '{left}'"
    for known, hint in ((("far",), ""), (("far", "billing"), "; did you mean 'billing'?")):
        groups.known = known
        assert commands.text(command, code=1) == f"{words}{hint}\n"


def test_a_hint_that_cannot_be_had_is_left_out(commands: Commands) -> None:
    commands.use(view_of(cluster("Dead", {}, {}), cluster("Dead", {}, {}), OffsetMap(), flow=FLOW)).known = None
    result = CliRunner().invoke(cli, ["failover", str(commands.file), "--group", "g"])
    assert result.stdout == "g: REFUSED on 'B': it has committed nothing on 'A'\n"


def test_a_group_that_reads_other_topics_is_no_typo(commands: Commands) -> None:
    other = cluster("Empty", {TopicPartition("mm2-offsets.x.internal", 0): 5}, {})
    commands.use(view_of(other, cluster("Dead", {}, {}), OffsetMap(), flow=FLOW)).known = ("gg",)
    assert "REFUSED on 'B': it has read nothing that this flow copies\n" in commands.text("failover", code=1)


def test_where_the_source_is_gone_a_group_without_checkpoints_is_told_so(commands: Commands) -> None:
    commands.use(view_of(None, cluster("Dead", {}, {}), OffsetMap(), flow=FLOW)).source_issue = DEAD_SOURCE
    words = "g: REFUSED on 'B': it has no checkpoint, and 'A' is unavailable\n"
    assert words in commands.text("failover", code=1)


def test_a_home_that_goes_away_while_it_is_asked_is_no_home(commands: Commands) -> None:
    gone = view_of(None, cluster("Dead", {}, {}), OffsetMap(), flow=FLOW)
    commands.use(gone).trouble_when_viewed = DEAD_SOURCE
    result = CliRunner().invoke(cli, ["failback", str(commands.file), "--all"])
    assert str(result.exception) == f"Groups cannot move back to 'A': {DEAD_SOURCE}"

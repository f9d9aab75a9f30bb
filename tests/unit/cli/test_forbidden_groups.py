"""`groups`, `failover` and `failback` where some group may not be looked at: it is named, and the others are served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from heliograph.cli.main import cli
from heliograph.model import Checkpoint, OffsetSync, TopicPartition
from heliograph.wire.batches.log_records import LogRecord
from heliograph.wire.records.mirror_records import encode_checkpoint, encode_offset_sync, encode_runs
from tests.support.config_files import minimal
from tests.unit.driver.test_group_sync import REMOTE, Target

NAMES = ("g-0", "g-1", "g-2", "g-3")
SOURCE = TopicPartition("t", 0)


class Site:
    """The two clusters of A->B: every group has read to 10 of `t`, and stands at 4 of its copy."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.source, self.target = Target("A", SOURCE, NAMES), Target("B", REMOTE, NAMES)
        self.target.committed = dict.fromkeys(NAMES, 4)
        self.source.lists_forbidden = True
        self.checkpointed: tuple[str, ...] = NAMES

    def records(self, _admin: object, topic: str) -> Iterator[LogRecord]:
        if "checkpoints" in topic:
            for group in self.checkpointed:
                key, value = encode_checkpoint(Checkpoint(group, REMOTE, 8, 8, ""))
                yield LogRecord(0, key, value, [])
        else:
            key, value = encode_offset_sync(OffsetSync(SOURCE, 99, 99))
            yield LogRecord(0, key, value, [encode_runs([0, 0, 100])])

    def run(self, command: str, *arguments: str) -> Result:
        return CliRunner().invoke(cli, [command, str(self.file), *arguments])

    def json(self, command: str, *arguments: str, code: int) -> Any:
        result = self.run(command, *arguments, "--json")
        assert result.exit_code == code, (result.output, result.exception)
        return json.loads(result.output)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    file = tmp_path / "mm2.properties"
    file.write_text(minimal("A->B.topics=t"))
    site = Site(file)
    for cluster in (site.source, site.target):
        monkeypatch.setattr(cluster, "close", lambda: None, raising=False)
    at = "heliograph.operations.flow_groups"
    written = SimpleNamespace(target=site.target, source_offsets=site.target, close=lambda: None)
    monkeypatch.setattr(f"{at}.make_admin", lambda *_of: site.source)
    monkeypatch.setattr(f"{at}.TargetClients", lambda *_of: written)
    monkeypatch.setattr(f"{at}.read_topic", site.records)
    monkeypatch.setattr(f"{at}.read_offsets", lambda *_of: {})
    return site


def needs(alias: str, group: str, permission: str) -> str:
    return f"'{alias}' does not let us use the group '{group}'; the principal needs {permission} on it."


def test_groups_shows_the_others_and_ends_with_1(site: Site) -> None:
    site.target.forbidden = {"g-1"}
    site.source.forbidden = {"g-2"}
    (flow,) = site.json("groups", code=1)["flows"]
    assert [(row["group"], row["source_offset"], row["target_offset"]) for row in flow["groups"]] == [
        ("g-0", 10, 4),
        ("g-2", None, 4),  # by its checkpoint
        ("g-3", 10, 4),
    ]
    assert flow["forbidden"] == [
        {"group": "g-1", "why": needs("B", "g-1", "DESCRIBE")},
        {"group": "g-2", "why": needs("A", "g-2", "DESCRIBE")},
    ]
    assert (flow["left_out"], flow["trouble"], flow["source_trouble"]) == ([], None, None)
    assert f"  forbidden: g-1: {needs('B', 'g-1', 'DESCRIBE')}\n" in site.run("groups").output
    site.target.forbidden = set(NAMES)
    assert "no group is followed" not in site.run("groups").output


def test_failover_of_all_moves_the_others_and_ends_with_1(site: Site) -> None:
    site.target.forbidden = {"g-1"}
    found = {each["group"]: each for each in site.json("failover", "--all", code=1)["groups"]}
    assert {group: each["moved"] for group, each in found.items()} == {
        "g-0": True, "g-1": False, "g-2": True, "g-3": True,
    }  # fmt: skip
    assert (found["g-1"]["refused"], found["g-1"]["state"]) == (needs("B", "g-1", "READ"), "Unknown")
    assert found["g-1"]["partitions"] == []
    assert site.target.committed == {"g-0": 10, "g-1": 4, "g-2": 10, "g-3": 10}
    again = site.run("failover", "--all")
    assert f"g-1: REFUSED on 'B': {needs('B', 'g-1', 'READ')}\n" in again.output
    assert again.exit_code == 1


def test_a_group_that_the_source_hides_moves_by_its_checkpoints(site: Site) -> None:
    site.source.forbidden = {"g-1", "g-2"}
    site.checkpointed = ("g-1",)
    result = site.run("failover", "--all")
    assert result.exit_code == 1
    assert site.target.committed == {"g-0": 10, "g-1": 8, "g-2": 4, "g-3": 10}
    assert f"  its checkpoints are used: {needs('A', 'g-1', 'DESCRIBE')}\n" in result.output
    assert result.output.count("what it has read since its last checkpoint is read again, too") == 1
    assert f"g-2: REFUSED on 'B': it has no checkpoint, and {needs('A', 'g-2', 'DESCRIBE')}" in result.output
    (moved,) = site.json("failover", "--group", "g-1", code=0)["groups"]
    assert moved["troubles"] == [needs("A", "g-1", "DESCRIBE")]


def test_nothing_is_set_at_home_of_a_group_that_either_side_hides(site: Site) -> None:
    """It may be ahead there, or have members."""
    site.target.committed = dict.fromkeys(NAMES, 30)
    site.source.forbidden, site.target.forbidden = {"g-1"}, {"g-2"}
    site.target.lists_forbidden = True
    found = {each["group"]: each["refused"] for each in site.json("failback", "--all", code=1)["groups"]}
    assert found == {
        "g-0": None,
        "g-1": needs("A", "g-1", "READ"),
        "g-2": needs("B", "g-2", "DESCRIBE"),
        "g-3": None,
    }
    assert site.source.committed == {"g-0": 30, "g-1": 10, "g-2": 10, "g-3": 30}

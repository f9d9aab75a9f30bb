"""`validate` and `run` warn of group sync in both directions of a pair, and of nothing else."""

from __future__ import annotations

import pytest

from heliograph.operations.configuration_checks import examine_all
from tests.support.config_files import FakeLookup

FILE = "clusters=a, b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n"


@pytest.mark.parametrize(
    ("lines", "is_warned"),
    [
        ("b->a.enabled=true\nsync.group.offsets.enabled=true", True),
        ("b->a.enabled=true\na->b.sync.group.offsets.enabled=true\nb->a.sync.group.offsets.enabled=true", True),
        ("b->a.enabled=true\na->b.sync.group.offsets.enabled=true", False),
        ("sync.group.offsets.enabled=true", False),
        ("b->a.enabled=true", False),
    ],
)
def test_group_sync_in_both_directions_is_warned_of(lines: str, is_warned: bool) -> None:
    report = examine_all(FILE + lines, FakeLookup())
    found = [str(each) for each in report.warnings if "groups of the same name" in str(each)]
    assert len(found) == is_warned
    assert all("a->b and b->a both have sync.group.offsets.enabled" in each for each in found)

"""Groups whose coordinator is away, and brokers that do not list their groups: they are told, and harm no other group.

Nobody lists a group whose part of `__consumer_offsets` is offline, so a group that is merely not listed is not gone.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from heliograph.config.validate.dedicated_file import load
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.errors import ClusterError
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import Flow, OffsetSync, TopicPartition
from tests.support.config_files import FakeLookup, minimal
from tests.unit.driver.test_group_sync import BROKERS, NAMES, REMOTE, Target

SOURCE = TopicPartition("t", 0)
LOST = "group-7"
OTHERS = sorted(set(NAMES) - {LOST})
AT_SILENT = sorted(group for group in NAMES if Target.broker_of(group) == BROKERS[0])


@pytest.fixture
def source() -> Target:
    made = Target("A", SOURCE)
    made.timeout_s = 0.0
    return made


@pytest.fixture
def groups(source: Target) -> GroupAdmin:
    return GroupAdmin(source)  # type: ignore[arg-type]


@pytest.fixture
def written() -> list[Any]:
    return []


@pytest.fixture
def sync(source: Target, groups: GroupAdmin, written: list[Any], monkeypatch: pytest.MonkeyPatch) -> CheckpointSync:
    """Nothing is followed yet, and all that is written to the checkpoints topic is in `written`."""
    made = CheckpointSync(load(minimal(), FakeLookup()), Flow("A", "B"))
    made.close()
    made._source, made._source_groups = source, groups  # type: ignore[assignment]
    made._syncs._tail = SimpleNamespace(read_new=list, recreations=0)  # type: ignore[assignment]
    made._noted = SimpleNamespace(note=list)  # type: ignore[assignment]
    made._syncs.known.take(OffsetSync(SOURCE, 10, 10))
    monkeypatch.setattr(
        "heliograph.driver.loops.checkpoint_sync.write_records",
        lambda _writer, _tp, records, *_check, **_limits: written.extend(records),
    )
    return made


def test_the_others_are_told_of_where_one_group_has_no_coordinator(source: Target, groups: GroupAdmin) -> None:
    source.lost = {LOST}
    reported = groups.committed_answered(NAMES)
    assert sorted(reported.of) == OTHERS
    assert reported.refused.keys() == {LOST}
    assert reported.refused[LOST].startswith(
        "The cluster 'A' has had no coordinator for the group 'group-7' for 0 s or more"
    )
    assert reported.issues == (reported.refused[LOST],)
    with pytest.raises(ClusterError, match="no coordinator for the group 'group-7'"):
        groups.committed(NAMES)


def test_a_group_that_was_waited_for_in_vain_is_asked_about_once_until_it_answers(
    source: Target, groups: GroupAdmin
) -> None:
    source.lost = {LOST}
    groups.committed_answered(NAMES)
    source.timeout_s, source.searches = 3600.0, 0
    assert groups.committed_answered(NAMES).refused.keys() == {LOST}
    assert source.searches == 1
    source.lost = set()
    assert sorted(groups.committed_answered(NAMES).of) == sorted(NAMES)


def test_checkpoints_of_the_others_are_written_where_one_group_has_no_coordinator(
    source: Target, sync: CheckpointSync, written: list[Any]
) -> None:
    assert list(sync.refresh_groups()) == []
    source.lost = {LOST}
    sync._source_groups = GroupAdmin(source)  # type: ignore[arg-type]
    (issue,) = sync.emit()
    assert LOST in issue
    assert len(written) == len(OTHERS)


def test_a_followed_group_without_a_coordinator_stays_followed(source: Target, sync: CheckpointSync) -> None:
    sync.refresh_groups()
    sync.emit()
    source.lost = {LOST}
    sync._source_groups = GroupAdmin(source)  # type: ignore[arg-type]
    for step in (sync.refresh_groups, sync.emit):
        (issue,) = step()
        assert f"no coordinator for the group '{LOST}'" in issue
        assert sync.groups == tuple(sorted(NAMES))
    assert sync._read[LOST] == {REMOTE}
    source.lost = set()
    assert [*sync.refresh_groups(), *sync.emit()] == []


def test_a_followed_group_that_is_deleted_is_let_go(source: Target, sync: CheckpointSync) -> None:
    sync.refresh_groups()
    del source.committed[LOST]
    assert list(sync.refresh_groups()) == []
    assert sync.groups == tuple(OTHERS)


def test_a_broker_that_does_not_list_its_groups_lets_go_of_none_that_is_followed(
    source: Target, sync: CheckpointSync
) -> None:
    sync.refresh_groups()
    source.committed["group-250"] = 10
    source.silent = {BROKERS[0]}
    listing, asking = sync.refresh_groups()
    assert listing == f"The cluster 'A' does not list all its consumer groups: {BROKERS[0]} stopped answering."
    assert "no coordinator for the group" in asking
    assert sync.groups == tuple(sorted([*NAMES, "group-250"]))


def test_a_silent_broker_is_asked_for_its_groups_once_until_it_answers(source: Target, groups: GroupAdmin) -> None:
    source.silent = {BROKERS[0]}
    assert sorted([*groups.groups_answered().groups, *AT_SILENT]) == sorted(NAMES)
    source.timeout_s = 3600.0
    source.asked.clear()
    with pytest.raises(ClusterError, match="does not list all its consumer groups"):
        groups.list_groups()
    assert source.asked[ListGroupsRequest] == len(BROKERS)
    source.silent = set()
    assert sorted(groups.list_groups()) == sorted(NAMES)


def test_a_group_that_a_silent_broker_may_have_is_not_taken_for_dead(source: Target, groups: GroupAdmin) -> None:
    source.silent = {BROKERS[0]}
    reported = groups.states_answered(NAMES)
    assert sorted(reported.refused) == AT_SILENT
    assert sorted(reported.of) == sorted(set(NAMES) - set(AT_SILENT))
    assert source.asked[DescribeGroupsRequest] == 0
    with pytest.raises(ClusterError, match="does not list all its consumer groups"):
        groups.states(NAMES)

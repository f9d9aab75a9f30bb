"""What is known of groups between two steps of the checkpoint connector: nothing is invented, and nothing stays."""

from __future__ import annotations

import time

import pytest

from heliograph.driver.loops.checkpoint_status import CheckpointStatus, ReadPartition
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.model import Checkpoint, CommittedOffset, Flow, OffsetRun, OffsetSync, TopicPartition
from heliograph.status.group_status import GroupPartition, GroupStatus

AB = Flow("A", "B")
TP, REMOTE = TopicPartition("t", 0), TopicPartition("A.t", 0)
STEP_S = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Groups:
    """A source whose first `copied` records are on the target, record for record, and the status of its groups."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.status = CheckpointStatus(AB, STEP_S, self.clock)
        self.known = OffsetMap()
        self.checkpoints: dict[str, Checkpoint] = {}

    def copy(self, count: int) -> None:
        self.known.take(OffsetSync(TP, count - 1, count - 1, (OffsetRun(0, 0, count),)))

    def step(self, *, lost: tuple[str, ...] = (), is_written: bool = True, **committed: int) -> None:
        """A step that reads these offsets and writes what is due."""
        began_at, fresh = time.monotonic(), []
        for group, offset in committed.items():
            downstream = self.known.translate(TP, offset)
            if downstream is not None and downstream >= 0:
                fresh.append(Checkpoint(group, REMOTE, offset, downstream, ""))
        if is_written:
            self.checkpoints |= {each.group: each for each in fresh}
            self.status.wrote(fresh, began_at)
        read = {group: [self.read(group, offset)] for group, offset in committed.items()}
        self.status.publish(read, (*committed, *lost), is_complete=is_written and not lost)

    def read(self, group: str, offset: int) -> ReadPartition:
        return ReadPartition(TP, REMOTE, CommittedOffset(offset, ""), self.checkpoints.get(group), self.known)

    def of(self, group: str) -> GroupStatus:
        return next(each for each in self.status.snapshot("A->B", "c").groups if each.group == group)

    def partition(self, group: str) -> GroupPartition:
        return self.of(group).partitions[0]


@pytest.fixture
def groups() -> Groups:
    return Groups()


def test_a_group_whose_records_are_copied_reads_nothing_again(groups: Groups) -> None:
    groups.copy(100)
    groups.step(g=40)
    found = groups.partition("g")
    assert (found.tp, found.remote_tp, found.committed, found.translated, found.read_again) == (TP, REMOTE, 40, 40, 0)
    assert found.since is None
    assert groups.of("g").lag_seconds == 0


def test_a_group_without_a_checkpoint_is_unknown_and_not_zero(groups: Groups) -> None:
    groups.step(g=40)
    found = groups.of("g")
    assert (found.partitions[0].translated, found.read_again) == (None, None)
    groups.clock.now += 7
    assert groups.of("g").lag_seconds == 7


def test_a_group_ahead_of_replication_reads_the_difference_again(groups: Groups) -> None:
    groups.copy(100)
    groups.step(g=130)
    assert groups.of("g").read_again == 30


def test_a_checkpoint_that_follows_late_is_behind_only_as_long_as_it_is_late(groups: Groups) -> None:
    for n in range(1, 200):  # each step the group is where replication is one step later
        groups.copy(100 * n)
        groups.step(g=100 * (n + 1))
        groups.clock.now += STEP_S
    assert groups.of("g").lag_seconds == STEP_S
    assert groups.of("g").read_again == 100


def test_a_checkpoint_that_does_not_follow_is_behind_since_the_group_passed_it(groups: Groups) -> None:
    groups.copy(100)
    groups.step(g=90)
    for offset in range(101, 301):
        groups.clock.now += STEP_S
        groups.step(g=offset)
    assert groups.of("g").lag_seconds == 199 * STEP_S
    groups.copy(300)
    groups.step(g=300)
    assert groups.of("g").lag_seconds == 0


def test_a_group_that_was_set_back_is_not_behind(groups: Groups) -> None:
    groups.copy(100)
    groups.step(g=150)
    groups.clock.now += STEP_S
    groups.step(g=10)
    assert (groups.of("g").read_again, groups.of("g").lag_seconds) == (0, 0)


def test_what_could_not_be_written_is_behind(groups: Groups) -> None:
    groups.copy(100)
    groups.step(g=10)
    passed_at = groups.status.snapshot("A->B", "c").passed_at
    groups.clock.now += STEP_S
    groups.step(g=30, is_written=False)
    groups.clock.now += 5
    found = groups.status.snapshot("A->B", "c")
    assert (found.groups[0].read_again, found.groups[0].lag_seconds) == (20, 5)
    assert (found.passed_at, found.written_at, found.written) == (passed_at, 1_000.0, 1)


def test_offsets_that_were_read_too_long_ago_are_unknown(groups: Groups) -> None:
    groups.copy(100)
    groups.step(g=40)
    groups.clock.now += 2 * STEP_S + 31
    found = groups.of("g")
    assert (found.read_again, found.lag_seconds) == (None, None)
    groups.step(g=50)
    assert groups.of("g").read_again == 0


def test_a_group_whose_coordinator_refuses_stays_as_it_was_read_and_others_go_on(groups: Groups) -> None:
    groups.copy(100)
    groups.step(g=40, h=40)
    for _step in range(3):
        groups.clock.now += STEP_S
        groups.step(h=50, lost=("g",))
    assert (groups.of("g").read_again, groups.of("h").read_again) == (None, 0)
    assert groups.partition("g").committed == 40
    assert groups.status.snapshot("A->B", "c").passed_at == 1_000.0


def test_a_group_at_rest_is_not_translated_at_each_step(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    groups.copy(100)
    groups.step(g=40)
    monkeypatch.setattr(ReadPartition, "read_again", property(lambda _self: 1 / 0))
    groups.clock.now += STEP_S
    groups.step(g=40)
    assert groups.of("g").read_again == 0
    with pytest.raises(ZeroDivisionError):
        groups.step(g=41)


def test_a_group_whose_checkpoint_has_become_void_is_unknown(groups: Groups) -> None:
    groups.copy(100)
    groups.step(g=40)
    del groups.checkpoints["g"]
    groups.step(g=40, is_written=False)
    assert groups.of("g").read_again is None


def test_a_group_that_is_gone_is_not_shown(groups: Groups) -> None:
    groups.copy(100)
    groups.step(g=40, h=40)
    groups.step(h=50)
    assert [each.group for each in groups.status.snapshot("A->B", "c").groups] == ["h"]
    assert list(groups.status._partitions) == ["h"]


def test_latencies_are_those_of_the_last_minute(groups: Groups) -> None:
    groups.copy(100)
    checkpoint = Checkpoint("g", REMOTE, 1, 1, "")
    for seconds in (5.0, 0.0, 1.0):
        groups.status.wrote([checkpoint], time.monotonic() - seconds)
        groups.clock.now += 50
    groups.step(g=40)
    found = groups.partition("g").latency_ms
    assert found is not None
    assert found.lowest is not None
    assert found.highest is not None
    assert 0 <= found.lowest < 1_000
    assert 1_000 <= found.highest < 5_000
    groups.clock.now += 61
    found = groups.partition("g").latency_ms
    assert found is not None
    assert (found.lowest, found.highest, found.mean) == (None, None, None)


def test_memory_is_bounded_however_long_a_checkpoint_is_behind(groups: Groups) -> None:
    for offset in range(10_000):
        groups.step(g=offset)
    assert len(groups.status._partitions["g"][REMOTE].steps) <= 64
    assert groups.partition("g").since == 1_000.0


def test_the_number_of_groups_is_unknown_until_a_step_has_read_all_of_them() -> None:
    groups = Groups()

    def count() -> int | None:
        return groups.status.snapshot("A->B", "c").group_count

    assert count() is None
    groups.step(lost=("g",))
    assert count() is None
    groups.step(g=0)
    assert count() == 1

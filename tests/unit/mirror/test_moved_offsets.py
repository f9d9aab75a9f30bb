"""Group sync moves a group that only it has moved, and leaves one whose consumers commit on the target."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.mirror.groups.group_moves import LogBounds, plan_group_sync
from heliograph.mirror.groups.moved_offsets import OWN, RELEASED, MovedOffsets
from heliograph.model import Checkpoint, CommittedOffset, TopicPartition

GROUP = "g"
COPY, ORIGINAL, OTHER = (TopicPartition(topic, 0) for topic in ("a.t", "t", "c.t"))
LOG = LogBounds(0, 10_000)
LOGS = dict.fromkeys((COPY, ORIGINAL, OTHER), LOG)


def is_copy(topic: str) -> bool:
    return "." in topic


class Model:
    """A group's offset on the target, and group sync with what it saves in its checkpoints topic."""

    def __init__(self, tp: TopicPartition = COPY) -> None:
        self.tp = tp
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self.checkpoint: Checkpoint | None = None
        self.moved = MovedOffsets()
        self.log = LOG

    def emit(self, count: int) -> None:
        """The group reads on, or not; a checkpoint is written if it is due, or if its mark has changed."""
        offset = count + (0 if self.checkpoint is None else self.checkpoint.downstream)
        if count or self.moved.unsaved:
            mark = self.moved.mark(GROUP, self.tp, is_first=self.checkpoint is None)
            self.checkpoint = Checkpoint(GROUP, self.tp, offset, offset, "", mark)
            self.moved.saved(self.moved.unsaved)

    def sync(self) -> None:
        if self.checkpoint is None:
            return
        logs = {self.tp: self.log}
        own = self.moved.own(GROUP, self.committed, [self.checkpoint], logs, is_copy)
        offsets = plan_group_sync([self.checkpoint], self.committed, "Empty", logs, consumes_there=bool(own))
        if offsets:
            self.moved.setting(GROUP, offsets)
            self.committed |= offsets
            self.moved.set(GROUP, offsets)

    def delete_records(self) -> None:
        """Retention on the target removes records, also some that the group has not read."""
        start = max(self.log.start, 0 if self.checkpoint is None else self.checkpoint.downstream) + 5
        self.log = self.log._replace(start=start)

    def restart(self) -> None:
        self.moved = MovedOffsets([] if self.checkpoint is None else [self.checkpoint])


STEPS = st.lists(st.sampled_from(["read", "emit", "sync", "restart"]), max_size=30)


def take(model: Model, step: str) -> None:
    actions = {"read": lambda: model.emit(7), "emit": lambda: model.emit(0)}
    (actions | {"sync": model.sync, "restart": model.restart, "delete": model.delete_records})[step]()


@given(st.lists(st.sampled_from(["read", "emit", "sync", "restart", "delete"]), max_size=30))
def test_a_group_that_only_sync_moves_follows_the_source_through_restarts_and_retention(steps: list[str]) -> None:
    model = Model()
    for step in ["read", "sync", *steps, "sync"]:
        take(model, step)
    assert model.checkpoint is not None
    assert model.committed[COPY].offset == max(model.checkpoint.downstream, model.log.start)


def test_an_upgrade_moves_on_a_group_that_was_set_to_the_start_of_a_log() -> None:
    found = MovedOffsets([Checkpoint(GROUP, COPY, 50, 50)])
    logs = {COPY: LogBounds(1000, 5000)}
    assert found.own(GROUP, {COPY: CommittedOffset(1000)}, [Checkpoint(GROUP, COPY, 50, 50)], logs, is_copy) == set()
    assert found.own(GROUP, {COPY: CommittedOffset(1001)}, [Checkpoint(GROUP, COPY, 50, 50)], logs, is_copy) == {COPY}


def test_nothing_is_remembered_of_an_offset_whose_log_is_not_known() -> None:
    checkpoint = Checkpoint(GROUP, COPY, 50, 50, "", ())
    moved = MovedOffsets([checkpoint])
    at_start = {COPY: CommittedOffset(1000)}
    assert moved.own(GROUP, at_start, [checkpoint], {}, is_copy) == {COPY}
    assert moved.unsaved == set()
    assert moved.own(GROUP, at_start, [checkpoint], {COPY: LogBounds(1000, 5000)}, is_copy) == set()


def test_an_offset_that_we_set_stays_ours_while_java_writes_less_exact_checkpoints() -> None:
    ours = Checkpoint(GROUP, COPY, 1000, 1000, "", (980,))
    java = [Checkpoint(GROUP, COPY, 1000, 991), Checkpoint(GROUP, COPY, 1003, 991)]
    moved = MovedOffsets([ours, *java])
    assert moved.own(GROUP, {COPY: CommittedOffset(1000)}, java[-1:], LOGS, is_copy) == set()
    moved = MovedOffsets([ours, *java])
    assert moved.own(GROUP, {COPY: CommittedOffset(1001)}, java[-1:], LOGS, is_copy) == {COPY}
    moved = MovedOffsets([ours, *java])
    assert moved.own(GROUP, {COPY: CommittedOffset(1000, "", 3)}, java[-1:], LOGS, is_copy) == {COPY}


@given(STEPS, st.integers(0, 300), STEPS, st.sampled_from([COPY, ORIGINAL]), st.sampled_from([-1, 4]))
def test_an_offset_that_a_consumer_committed_is_never_moved(
    before: list[str], offset: int, after: list[str], tp: TopicPartition, epoch: int
) -> None:
    model = Model(tp)
    for step in ["read", "sync", *before]:
        take(model, step)
    known = {model.committed[tp].offset, model.checkpoint.downstream if model.checkpoint else 0}
    own = CommittedOffset(next(n for n in range(offset, offset + 9) if n not in known and n % 7), "", epoch)
    model.committed[tp] = own
    take(model, "sync")
    take(model, "emit")
    for step in [*after, "read", "sync"]:
        take(model, step)
    assert model.committed[tp] == own


@given(STEPS)
def test_a_released_offset_follows_the_source_again(steps: list[str]) -> None:
    model = Model()
    for step in ("read", "sync", "read"):
        take(model, step)
    model.committed[COPY] = CommittedOffset(9, "", 4)
    model.sync()
    assert model.moved.mark(GROUP, COPY) == OWN
    model.committed[COPY] = CommittedOffset(9, RELEASED)
    for step in ["sync", *steps, "emit", "sync", "read", "sync"]:
        take(model, step)
    assert model.checkpoint is not None
    assert model.committed[COPY].offset == model.checkpoint.downstream


@pytest.mark.parametrize(
    ("tp", "committed", "is_own"),
    [
        (COPY, CommittedOffset(5), False),  # Java's sync wrote it
        (COPY, CommittedOffset(10), False),
        (COPY, CommittedOffset(11), True),  # Java's sync writes no offset past its checkpoint
        (COPY, CommittedOffset(5, "", 0), True),
        (COPY, CommittedOffset(5, RELEASED), False),
        (ORIGINAL, CommittedOffset(5), True),  # Java's sync does not write there
    ],
)
def test_what_a_java_worker_set_before_is_not_taken_for_a_consumers(
    tp: TopicPartition, committed: CommittedOffset, is_own: bool
) -> None:
    found = MovedOffsets().own(GROUP, {tp: committed}, [Checkpoint(GROUP, tp, 10, 10)], LOGS, is_copy)
    assert bool(found) == is_own


@pytest.mark.parametrize(
    ("tp", "committed", "is_own"),
    [
        (ORIGINAL, CommittedOffset(5), True),
        (ORIGINAL, CommittedOffset(5, RELEASED), False),
        (OTHER, CommittedOffset(5), False),  # another flow's sync may have set it
        (OTHER, CommittedOffset(5, "", 3), True),
    ],
)
def test_offsets_without_a_checkpoint_show_that_the_group_consumes_there(
    tp: TopicPartition, committed: CommittedOffset, is_own: bool
) -> None:
    assert bool(MovedOffsets().own(GROUP, {tp: committed}, [], LOGS, is_copy)) == is_own


def test_a_mark_is_saved_and_taken_up() -> None:
    moved = MovedOffsets()
    assert moved.mark(GROUP, COPY) is None
    checkpoint = Checkpoint(GROUP, COPY, 10, 10)
    assert moved.own(GROUP, {}, [checkpoint], LOGS, is_copy) == set()
    assert moved.mark(GROUP, COPY) == ()
    moved.setting(GROUP, {COPY: CommittedOffset(10)})
    assert moved.own(GROUP, {COPY: CommittedOffset(10)}, [checkpoint], LOGS, is_copy) == set()  # the answer was lost
    assert moved.mark(GROUP, COPY) == (10,)
    assert moved.own(GROUP, {COPY: CommittedOffset(12)}, [checkpoint], LOGS, is_copy) == {COPY}
    assert moved.unsaved == {(GROUP, COPY)}
    resumed = MovedOffsets([checkpoint._replace(moved=moved.mark(GROUP, COPY))])
    assert resumed.own(GROUP, {COPY: CommittedOffset(10)}, [checkpoint], LOGS, is_copy) == {COPY}
    assert resumed.own(GROUP, {}, [checkpoint], LOGS, is_copy) == {COPY}  # until it is saved
    resumed.saved(resumed.unsaved)
    assert resumed.own(GROUP, {}, [checkpoint], LOGS, is_copy) == set()

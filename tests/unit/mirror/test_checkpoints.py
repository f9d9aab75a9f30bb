"""Checkpoints and group sync: Java's rules, and ours where they are stricter."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.resolve.settings import Settings
from heliograph.kafka.admin.consumer_groups import _offsets_of
from heliograph.mirror.groups.checkpoints import (
    WrittenCheckpoints,
    latest_checkpoints,
    next_checkpoint,
    remote_partition,
    source_partition,
)
from heliograph.mirror.groups.group_moves import (
    GroupPosition,
    LogBounds,
    plan_group,
    plan_group_sync,
    unsettled_partitions,
)
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.mirror.groups.offset_syncs import PartitionSyncs
from heliograph.mirror.topics.topic_rules import TopicRules
from heliograph.model import Checkpoint, CommittedOffset, OffsetRun, OffsetSync, TopicPartition
from heliograph.wire.records.mirror_records import decode_checkpoint, encode_checkpoint

GROUP = "group"
TP, REMOTE = TopicPartition("topic1", 2), TopicPartition("source1.topic1", 2)


def rules(**values: str) -> TopicRules:
    return TopicRules.of(Settings({"source.cluster.alias": "source1", "target.cluster.alias": "target2", **values}))


def checkpoint(upstream: int, downstream: int, tp: TopicPartition = REMOTE, metadata: str = "") -> Checkpoint:
    return Checkpoint(GROUP, tp, upstream, downstream, metadata)


def following(previous: Checkpoint | None, upstream: int, downstream: int | None) -> Checkpoint | None:
    return next_checkpoint(previous, GROUP, REMOTE, upstream, downstream)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "remote"),
    [
        ("topic3", "source1.topic3"),
        ("target2.topic3", "topic3"),
        ("source6.topic7", "source1.source6.topic7"),
        ("target2.source6.topic7", "source6.topic7"),
    ],
)
def test_downstream_topic_renaming(topic: str, remote: str) -> None:
    assert remote_partition(rules(), TopicPartition(topic, 4)) == TopicPartition(remote, 4)
    assert source_partition(rules(), TopicPartition(remote, 4)) == TopicPartition(topic, 4)


def test_names_stay_with_the_identity_policy() -> None:
    identity = rules(**{"replication.policy.class": "IdentityReplicationPolicy"})
    assert remote_partition(identity, TP) == source_partition(identity, TP) == TP


# --- checkpoints ------------------------------------------------------------------------------------------------------


def test_checkpoint() -> None:
    known = OffsetMap()
    known.take(OffsetSync(TP, 3, 4))
    at_sync = next_checkpoint(None, GROUP, REMOTE, 3, known.translate(TP, 3), "note")
    behind_it = next_checkpoint(None, GROUP, REMOTE, 10, known.translate(TP, 10))
    assert at_sync == checkpoint(3, 4, metadata="note")
    assert behind_it == checkpoint(10, 5)


def test_no_checkpoint_for_topic_without_offset_syncs() -> None:
    assert following(None, 0, OffsetMap().translate(TP, 0)) is None


def test_no_checkpoint_for_topic_with_null_offset_and_metadata() -> None:
    """A broker answers -1 for a partition without an offset: it is left out before it could be translated."""
    without = SimpleNamespace(partition_index=0, committed_offset=-1, metadata=None, error_code=0)
    unnoted = SimpleNamespace(partition_index=1, committed_offset=5, metadata=None, error_code=0)
    topic = SimpleNamespace(name="topic1", partitions=[without, unnoted])
    answer = _offsets_of(SimpleNamespace(topics=[topic], error_code=0))
    assert answer.value == {TopicPartition("topic1", 1): CommittedOffset(5, "")}


def test_no_checkpoint_for_an_offset_before_all_syncs() -> None:
    known = OffsetMap()
    known.take(OffsetSync(TP, 100, 100))
    assert following(None, 5, known.translate(TP, 5)) is None


def test_checkpoint_records_monotonic_if_store_rewinds() -> None:
    previous = checkpoint(100, 100)
    assert following(previous, 100, 90) is None
    assert following(previous, 120, 90) is None
    assert following(previous, 120, 101) == checkpoint(120, 101)


def test_a_group_that_goes_back_at_the_source_gets_a_checkpoint() -> None:
    assert following(checkpoint(100, 100), 60, 40) == checkpoint(60, 40)


def test_read_checkpoints_topic() -> None:
    """CheckpointStoreTest: the last one of each group and partition counts, whatever else is in the topic."""
    other = Checkpoint("other", REMOTE, 1, 1)
    malformed = [(b"", b""), (None, None), (b"\x00\x05short", b"\x00\x00"), (encode_checkpoint(other)[0], b"\x00\x09")]
    written = [checkpoint(1, 1), other, checkpoint(10, 5), checkpoint(7, 7, TP)]
    pairs = [*malformed, *map(encode_checkpoint, written), *malformed]
    read = (decode_checkpoint(key, value) for key, value in pairs)
    assert latest_checkpoints(found for found in read if found is not None) == {
        GROUP: {REMOTE: checkpoint(10, 5), TP: checkpoint(7, 7, TP)},
        "other": {REMOTE: other},
    }


def test_checkpoints_task_restart_uses_existing_checkpoints() -> None:
    read_at_start = latest_checkpoints([checkpoint(200, 180), checkpoint(250, 201)])
    previous = read_at_start[GROUP][REMOTE]
    assert previous == checkpoint(250, 201)
    assert following(previous, 250, 201) is None
    assert following(previous, 300, 176) is None
    assert following(previous, 400, 376) == checkpoint(400, 376)


@given(st.lists(st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(-1, 100))), max_size=30))
def test_checkpoints_never_go_back_while_the_group_goes_forward(steps: list[tuple[int, int | None]]) -> None:
    """Whatever translation says: its store may rewind, or know nothing for a while."""
    upstream, last, written = 0, None, []
    for forward, translated in steps:
        upstream += forward
        due = following(last, upstream, translated)
        if due is not None:
            last = due
            written.append(due)
    assert all(first.downstream < second.downstream for first, second in pairwise(written))
    assert all(first.upstream <= second.upstream for first, second in pairwise(written))
    assert len(written) == len({(c.upstream, c.downstream) for c in written})


# --- a target topic that is deleted and copied again ------------------------------------------------------------------


class Story:
    """A partition and its copies, its syncs, the checkpoints topic and its writer, for one group."""

    def __init__(self) -> None:
        self.stands: dict[int, int] = {}  # of each record in the target's log its last place, but if it comes again
        self.copied_to = self.log_end = 0
        self.position = 0
        self.reported: list[OffsetSync] = []
        self.topic: list[Checkpoint] = []
        self.syncs = PartitionSyncs(10)
        self.restart(0)

    def copy(self, counts: list[int]) -> None:
        """Records follow each other; between two stretches there is a gap on both sides."""
        for count in counts:
            self.syncs.note(OffsetRun(self.copied_to, self.log_end, count))
            self.stands |= {self.copied_to + n: self.log_end + n for n in range(count)}
            self.copied_to += count + 1
            self.log_end += count + 1
        while (sync := self.syncs.take()) is not None:
            flat = sync.runs
            runs = tuple(OffsetRun(*flat[at : at + 3]) for at in range(0, len(flat), 3))
            self.reported.append(OffsetSync(TP, sync.upstream, sync.downstream, runs))
            self.syncs.confirm()

    def copy_anew(self, source_starts_at: int) -> None:
        """The remote topic and its source offsets are deleted; the source has lost what is before an offset."""
        self.stands, self.log_end, self.copied_to = {}, 0, source_starts_at
        self.syncs = PartitionSyncs(10)

    def copy_again(self, back: int) -> None:
        """After a crash the last records are copied a second time."""
        self.copied_to = max(0, self.copied_to - back)
        self.stands = {upstream: place for upstream, place in self.stands.items() if upstream < self.copied_to}
        self.syncs = PartitionSyncs(10)

    def restart(self, compacted_to: int) -> None:
        """Whoever writes checkpoints is started again; of the syncs, the older ones may be compacted away."""
        self.known, self.read_to = OffsetMap(), max(0, min(compacted_to, len(self.reported) - 1))
        self.written = WrittenCheckpoints(self.topic)

    def emit(self) -> None:
        self.known.take_all(self.reported[self.read_to :])
        self.read_to = len(self.reported)
        if self.known.take_replaced_logs():
            self.written.log_replaced(REMOTE)
        due = self.written.due(self.known, GROUP, TP, REMOTE, CommittedOffset(self.position))
        if due is not None:
            self.topic.append(due)
            self.written.add(due)

    def check(self) -> None:
        for reported in self.topic[-1:]:
            passed = {u: d for u, d in self.stands.items() if u >= reported.upstream and d < reported.downstream}
            assert not passed, f"{reported} passes unread records"


@given(st.data())
def test_the_last_checkpoint_never_passes_an_unread_record(data: st.DataObject) -> None:
    """Also where the remote topic was deleted and copied again, from wherever the source's log begins by then."""
    story = Story()
    story.copy(data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=4)))
    for _ in range(data.draw(st.integers(1, 8))):
        event = data.draw(st.sampled_from(["copy", "read", "read", "re-create", "again", "restart"]))
        if event == "read":
            story.position = data.draw(st.integers(0, story.copied_to + 5))
        elif event == "restart":  # what is compacted was read before: else a checkpoint could not be known to be void
            story.restart(data.draw(st.integers(0, len(story.reported))) if story.read_to == len(story.reported) else 0)
        else:
            if event == "re-create":
                story.copy_anew(data.draw(st.integers(0, story.copied_to)))
            if event == "again":
                story.copy_again(data.draw(st.integers(0, 20)))
            story.copy(data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=4)))
            if data.draw(st.booleans()):
                continue
        story.emit()
        story.check()


def test_a_group_that_went_on_gets_a_checkpoint_into_the_log_that_was_copied_again() -> None:
    story = Story()
    story.copy([1000])
    story.position = 900
    story.emit()
    story.copy_anew(500)
    story.copy([300])
    story.position = 950
    story.emit()
    assert story.topic == [checkpoint(900, 900), checkpoint(950, 300)], "at once, not when the copy has come to 900"
    story.copy([600])
    story.emit()
    assert story.topic[2:] == [checkpoint(950, 450)]


def test_a_group_whose_records_are_gone_begins_with_the_log_that_was_copied_again() -> None:
    story = Story()
    story.copy([1000])
    story.position = 300
    story.emit()
    story.copy_anew(500)
    story.copy([600])
    for _ in range(2):
        story.emit()
        assert story.topic == [checkpoint(300, 300), checkpoint(300, 0)]
        story.restart(len(story.reported))


def test_a_restart_finds_checkpoints_of_a_log_that_is_gone_without_having_seen_it() -> None:
    story = Story()
    story.copy([1000])
    story.position = 900
    story.emit()
    story.copy_anew(500)
    story.copy([1000])
    story.position = 950
    story.restart(compacted_to=len(story.reported))
    story.emit()
    assert story.topic == [checkpoint(900, 900), checkpoint(950, 450)]


def test_a_checkpoint_names_its_topic_and_is_replaced_if_the_topic_is_another() -> None:
    """By offsets alone the old checkpoint could be of the new log, which is longer."""
    before, now = UUID(int=1), UUID(int=2)
    known = OffsetMap()
    known.take(OffsetSync(TP, 2000, 1500, (OffsetRun(500, 0, 1501),), now))
    old = checkpoint(900, 300)._replace(log_id=before)
    written = WrittenCheckpoints([old])
    due = written.due(known, GROUP, TP, REMOTE, CommittedOffset(600))
    assert due == checkpoint(600, 100)._replace(log_id=now)
    written.add(due)
    assert written.due(known, GROUP, TP, REMOTE, CommittedOffset(600)) is None
    same = WrittenCheckpoints([checkpoint(900, 400)])
    assert same.due(known, GROUP, TP, REMOTE, CommittedOffset(900)) is None, "without an id it may be of this log"


def test_a_checkpoint_that_could_not_be_written_is_due_again() -> None:
    written, known = WrittenCheckpoints([checkpoint(300, 300)]), OffsetMap()
    known.take(OffsetSync(TP, 700, 200, (OffsetRun(500, 0, 201),)))
    for _ in range(2):
        assert written.due(known, GROUP, TP, REMOTE, CommittedOffset(300)) == checkpoint(300, 0)
        assert written.of(GROUP) == {}
    written.add(checkpoint(300, 0))
    assert written.due(known, GROUP, TP, REMOTE, CommittedOffset(300)) is None


# --- group sync -------------------------------------------------------------------------------------------------------


def offsets(**by_topic: int) -> dict[TopicPartition, CommittedOffset]:
    return {TopicPartition(topic, 0): CommittedOffset(offset) for topic, offset in by_topic.items()}


def checkpoints(**by_topic: int) -> list[Checkpoint]:
    return [checkpoint(offset + 7, offset, TopicPartition(topic, 0)) for topic, offset in by_topic.items()]


WHOLE_LOG = LogBounds(0, 1000)


def synced(
    wanted: list[Checkpoint],
    committed: dict[TopicPartition, CommittedOffset],
    state: str | None = "Empty",
    log: LogBounds = WHOLE_LOG,
) -> dict[TopicPartition, CommittedOffset]:
    return plan_group_sync(wanted, committed, state, {each.tp: log for each in wanted})


def test_sync_offset() -> None:
    """Only forward, only what is missing or behind."""
    assert synced(checkpoints(a=50, b=30, c=9), offsets(a=20, b=30, d=1)) == offsets(a=50, c=9)
    assert synced(checkpoints(a=50), offsets(a=51)) == {}


@pytest.mark.parametrize("state", [None, "Dead"])
def test_a_group_that_is_not_there_gets_all_of_its_offsets(state: str | None) -> None:
    assert synced(checkpoints(a=50, b=0), {}, state) == offsets(a=50, b=0)


def test_sync_offset_for_target_group_with_null_offset_and_metadata() -> None:
    """A partition for which the target's group has no offset, as GroupAdmin leaves out."""
    assert synced(checkpoints(a=50, b=2), offsets(a=60)) == offsets(b=2)


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_a_group_with_members_is_left_alone(state: str) -> None:
    assert synced(checkpoints(a=50), {}, state) == {}


def test_group_sync_sets_no_offset_past_the_end_of_the_log_or_without_one() -> None:
    assert synced(checkpoints(a=50), {}, log=LogBounds(0, 49)) == {}
    assert synced(checkpoints(a=50), {}, log=LogBounds(0, 50)) == offsets(a=50)
    assert plan_group_sync(checkpoints(a=50), {}, "Empty", {}) == {}


def test_group_sync_sets_the_start_of_a_log_that_starts_after_the_checkpoint() -> None:
    assert synced(checkpoints(a=50), offsets(a=20), log=LogBounds(70, 100)) == offsets(a=70)
    assert synced(checkpoints(a=50), offsets(a=80), log=LogBounds(70, 100)) == {}


def test_group_sync_replaces_an_offset_past_the_end_of_the_log() -> None:
    """It is one of an earlier log: a consumer that starts there would skip to the end, by default."""
    assert synced(checkpoints(a=50), offsets(a=101), log=LogBounds(0, 100)) == offsets(a=50)
    assert synced(checkpoints(a=50), offsets(a=100), log=LogBounds(0, 100)) == {}


def test_group_sync_looks_up_only_logs_in_which_an_offset_may_change() -> None:
    unsettled = unsettled_partitions({"g": checkpoints(a=50, b=30, c=9, d=5)}, {"g": offsets(a=20, b=30, d=6)})
    assert sorted(tp.topic for tp in unsettled) == ["a", "c", "d"]


TOPICS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 100))
STATES = st.sampled_from([None, "Dead", "Empty", "Stable", "Unknown", ""])
LOGS = st.tuples(st.integers(0, 60), st.integers(60, 110)).map(lambda bounds: LogBounds(*bounds))


@given(TOPICS, TOPICS, STATES, LOGS)
def test_group_sync_never_rewinds_and_has_nothing_left_to_do(
    reported: dict[str, int], there: dict[str, int], state: str | None, log: LogBounds
) -> None:
    committed = offsets(**there)
    valid = {tp: offset for tp, offset in committed.items() if offset.offset <= log.end}
    planned = synced(checkpoints(**reported), committed, state, log)
    assert all(tp not in valid or offset.offset > valid[tp].offset for tp, offset in planned.items())
    assert synced(checkpoints(**reported), committed | planned, state, log) == {}
    assert not planned or state in (None, "Dead", "Empty")


@given(TOPICS, TOPICS, STATES, LOGS)
def test_group_sync_and_failover_set_the_same_offsets(
    reported: dict[str, int], there: dict[str, int], state: str | None, log: LogBounds
) -> None:
    wanted, committed = checkpoints(**reported), offsets(**there)
    positions = {each.tp: GroupPosition(each.downstream, 0) for each in wanted}
    moved = plan_group("g", "Dead" if state is None else state, positions, committed, {each.tp: log for each in wanted})
    assert synced(wanted, committed, state, log) == moved.offsets


def test_metadata_is_copied() -> None:
    planned = synced([checkpoint(9, 5, metadata="note")], {}, None)
    assert planned == {REMOTE: CommittedOffset(5, "note")}

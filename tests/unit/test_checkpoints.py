"""Checkpoints and group sync: Java's rules, and ours where they are stricter."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.types import Settings
from heliograph.kafka.groups import _offsets_of
from heliograph.mirror.checkpoints import (
    latest_checkpoints,
    next_checkpoint,
    plan_group_sync,
    remote_partition,
    source_partition,
)
from heliograph.mirror.offset_map import OffsetMap
from heliograph.mirror.topics import TopicRules
from heliograph.model import Checkpoint, CommittedOffset, OffsetSync, TopicPartition
from heliograph.wire.mirror_records import decode_checkpoint, encode_checkpoint

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


# --- group sync -------------------------------------------------------------------------------------------------------


def offsets(**by_topic: int) -> dict[TopicPartition, CommittedOffset]:
    return {TopicPartition(topic, 0): CommittedOffset(offset) for topic, offset in by_topic.items()}


def checkpoints(**by_topic: int) -> list[Checkpoint]:
    return [checkpoint(offset + 7, offset, TopicPartition(topic, 0)) for topic, offset in by_topic.items()]


def test_sync_offset() -> None:
    """Only forward, only what is missing or behind."""
    assert plan_group_sync(checkpoints(a=50, b=30, c=9), offsets(a=20, b=30, d=1), "Empty") == offsets(a=50, c=9)
    assert plan_group_sync(checkpoints(a=50), offsets(a=51), "Empty") == {}


@pytest.mark.parametrize("state", [None, "Dead"])
def test_a_group_that_is_not_there_gets_all_of_its_offsets(state: str | None) -> None:
    assert plan_group_sync(checkpoints(a=50, b=0), None, state) == offsets(a=50, b=0)


def test_sync_offset_for_target_group_with_null_offset_and_metadata() -> None:
    """A partition for which the target's group has no offset, as GroupAdmin leaves out."""
    assert plan_group_sync(checkpoints(a=50, b=2), offsets(a=60), "Empty") == offsets(b=2)


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_a_group_with_members_is_left_alone(state: str) -> None:
    assert plan_group_sync(checkpoints(a=50), {}, state) == {}


TOPICS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 100))


@given(TOPICS, TOPICS, st.sampled_from([None, "Dead", "Empty", "Stable", "Unknown", ""]))
def test_group_sync_never_rewinds_and_has_nothing_left_to_do(
    told: dict[str, int], there: dict[str, int], state: str | None
) -> None:
    committed = offsets(**there)
    planned = plan_group_sync(checkpoints(**told), committed, state)
    assert all(tp not in committed or offset.offset > committed[tp].offset for tp, offset in planned.items())
    assert plan_group_sync(checkpoints(**told), committed | planned, state) == {}
    assert not planned or state in (None, "Dead", "Empty")


def test_metadata_is_copied() -> None:
    planned = plan_group_sync([checkpoint(9, 5, metadata="note")], None, None)
    assert planned == {REMOTE: CommittedOffset(5, "note")}

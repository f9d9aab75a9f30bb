"""Translation after a remote topic was deleted: syncs of the lost log are not used, those of the new one are exact."""

from __future__ import annotations

from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.mirror.groups.offset_syncs import PartitionSyncs
from heliograph.model import OffsetRun, OffsetSync, TopicPartition

TP = TopicPartition("t", 0)


def written(syncs: PartitionSyncs) -> OffsetSync:
    """The next sync of a task."""
    due = syncs.take()
    assert due is not None
    syncs.confirm()
    runs = tuple(OffsetRun(*due.runs[at : at + 3]) for at in range(0, len(due.runs), 3))
    return OffsetSync(TP, due.upstream, due.downstream, runs)


def known_of_the_lost_log(first: int, count: int) -> OffsetMap:
    before, known = PartitionSyncs(100), OffsetMap()
    before.note(OffsetRun(first, 0, count))
    known.take(written(before))
    assert known.translate(TP, first + count - 1) == count - 1
    return known


def copy_into_the_new_log(known: OffsetMap, first: int, count: int) -> None:
    after = PartitionSyncs(100)  # of the next run of the task, which continues no run of the lost log
    after.note(OffsetRun(first, 0, count))
    known.take(written(after))


def test_after_continuing_only_the_new_records_are_translated() -> None:
    known = known_of_the_lost_log(0, 1000)
    copy_into_the_new_log(known, 1000, 50)
    assert TP in known.take_replaced_logs()
    assert [known.translate(TP, offset) for offset in (999, 1000, 1049, 1050)] == [-1, 0, 49, 50]


def test_after_copying_again_what_the_source_still_has_translation_is_that_of_the_new_log() -> None:
    known = known_of_the_lost_log(0, 1000)
    copy_into_the_new_log(known, 300, 800)
    assert TP in known.take_replaced_logs()
    assert [known.translate(TP, offset) for offset in (299, 300, 1000, 1100)] == [-1, 0, 700, 800]


def test_after_copying_everything_again_the_same_translation_is_right() -> None:
    known = known_of_the_lost_log(100, 1000)
    copy_into_the_new_log(known, 100, 1100)
    assert [known.translate(TP, offset) for offset in (100, 700, 1199)] == [0, 600, 1099]

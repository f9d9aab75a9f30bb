"""Topics of one task with different actions for changed logs: each partition is decided by its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from heliograph.executor.contract.task_spec import TaskSpec
from heliograph.executor.copy import copy_loop
from heliograph.model import ChangeActions, TopicPartition
from heliograph.status.losses import LossCause
from heliograph.wire.batches.forward import warm_up
from tests.support.runs.copying import wait_for
from tests.unit.executor.test_deleted_targets import T, TwoTopics, U

RESTART, FAIL = ChangeActions(recreated="restart"), ChangeActions(recreated="fail")


class Recreated(TwoTopics):
    """Two topics that are copied, then deleted and created again with other records while nothing runs."""

    def copy_and_recreate(self, records: str = "xy") -> None:
        self.write("abc")
        join = self.run(self.both())
        wait_for(lambda: self.loop._commits.committed == {T: 2, U: 2})
        self.stop(join)
        self.known = {tp: partition.source_offsets for tp, partition in self.loop.partitions.items()}
        with self.source.lock:
            for number, tp in enumerate((T, U)):
                self.source.logs[tp].cut(0)
                self.source.topic_ids[tp.topic] = UUID(int=70 + number)
        self.write(records)

    def later(self, on_t: ChangeActions, on_u: ChangeActions) -> TaskSpec:
        spec = self.both(on_t=on_t, on_u=on_u)
        parts = tuple(replace(part, source_offsets=self.known[part.tp]) for part in spec.partitions)
        return replace(spec, partitions=parts)

    def known_ends(self) -> dict[Any, tuple[int | None, int | None]]:
        rows = self.lease.reports[-1].partitions if self.lease.reports else ()
        return {row.tp: (row.next_offset, row.log_end) for row in rows}

    def failure(self, tp: TopicPartition) -> str:
        partition = self.loop.partitions.get(tp)
        return str(partition.counters.failure) if partition is not None else ""


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recreated]:
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.05)
    warm_up()
    mirror = Recreated()
    with mirror.source, mirror.target:
        yield mirror
        mirror.lease.stop_reason = "test"


def test_of_two_recreated_topics_one_restarts_and_the_other_fails(mirror: Recreated) -> None:
    mirror.copy_and_recreate()
    join = mirror.run(mirror.later(RESTART, FAIL))
    wait_for(lambda: mirror.loop._commits.committed.get(T) == 1 and "created again" in mirror.failure(U))
    rows: dict[Any, Any] = {row.tp: row for row in mirror.stop(join).partitions}
    assert rows[T].failure is None
    assert (mirror.copy_of("t"), mirror.copy_of("u")) == ("abcxy", "abc")
    assert rows[U].committed_offset in (None, 2), "what was copied of the old topic"


def test_of_a_recreated_topic_that_is_empty_the_lag_is_known_and_a_restart_finds_no_loss_again(
    mirror: Recreated,
) -> None:
    mirror.copy_and_recreate(records="")
    join = mirror.run(mirror.later(RESTART, RESTART))
    wait_for(lambda: mirror.known_ends() == {T: (0, 0), U: (0, 0)})
    wait_for(lambda: mirror.loop._commits.committed == {T: -1, U: -1})
    assert {loss.cause for loss in mirror.losses(mirror.stop(join))} == {LossCause.SOURCE_RECREATED}
    mirror.known = {tp: partition.source_offsets for tp, partition in mirror.loop.partitions.items()}
    join = mirror.run(mirror.later(RESTART, RESTART))
    mirror.write("xy")
    wait_for(lambda: mirror.loop._commits.committed == {T: 1, U: 1})
    assert mirror.losses(mirror.stop(join)) == []
    assert (mirror.copy_of("t"), mirror.copy_of("u")) == ("abcxy", "abcxy")


def test_a_failed_partition_begins_again_with_the_action_it_has_by_then(mirror: Recreated) -> None:
    mirror.copy_and_recreate()
    join = mirror.run(mirror.later(FAIL, FAIL))
    wait_for(lambda: "created again" in mirror.failure(T) and "created again" in mirror.failure(U))
    parts = mirror.later(RESTART, FAIL).partitions
    mirror.lease.assignment = tuple(replace(part, opening=1) for part in parts)
    wait_for(lambda: mirror.copy_of("t") == "abcxy")
    wait_for(lambda: "created again" in mirror.failure(U))
    mirror.stop(join)
    assert mirror.copy_of("u") == "abc"

"""When a task commits."""

from __future__ import annotations

from typing import Any

import pytest

from heliograph.executor.contract.task_spec import TaskSpec
from heliograph.executor.copy.offset_commits import CommitSchedule
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.model import Address, Flow

CLUSTER = ClusterSpec("a", (Address("a", 1),), Security())


def schedule(**changes: Any) -> CommitSchedule:
    """One that has just begun a commit, at 1000 s."""
    made = CommitSchedule(TaskSpec("a->b-0", Flow("a", "b"), CLUSTER, CLUSTER, (), "c", "offsets", 1, **changes))
    made.begun(1000.0)
    return made


def test_it_commits_by_the_interval() -> None:
    plain = schedule(commit_interval_ms=90_000)
    plain.ended(1030.0)
    plain.note_uncommitted()
    assert plain.due_at(is_quiet=False) == plain.due_at(is_quiet=True) == 1090.0


def test_what_could_not_begin_is_tried_again_soon() -> None:
    plain = schedule(commit_interval_ms=90_000)
    plain.postponed(1090.0)
    assert 1090.0 < plain.due_at(is_quiet=False) < 1091.0


def test_the_end_does_not_wait_for_the_interval() -> None:
    plain = schedule(commit_interval_ms=90_000)
    plain.hurry(1001.0)
    assert 1001.0 < plain.due_at(is_quiet=False) < 1002.0


def test_a_transaction_ends_soon_where_nothing_follows() -> None:
    made = schedule(transactional_id="x", commit_interval_ms=15_000)
    assert made.due_at(is_quiet=True) == 1015.0
    made.note_uncommitted()
    assert made.due_at(is_quiet=False) == 1015.0
    assert made.due_at(is_quiet=True) < 1001.0


def test_commits_of_transactions_take_at_most_a_tenth_of_the_time() -> None:
    made = schedule(transactional_id="x", commit_interval_ms=1000)
    made.ended(1000.5)
    assert made.due_at(is_quiet=False) == pytest.approx(1005.0)


@pytest.mark.parametrize("interval_ms", [1000, 60_000, 600_000])
@pytest.mark.parametrize("commit_s", [0.01, 9.0, 39.0])
def test_a_transaction_is_never_left_to_the_targets_own_time_out(interval_ms: int, commit_s: float) -> None:
    made = schedule(transactional_id="x", commit_interval_ms=interval_ms, transaction_timeout_ms=60_000)
    assert made.due_at(is_quiet=False) <= 1020.0
    ended_at = 1000.0 + commit_s
    made.ended(ended_at)
    assert made.due_at(is_quiet=False) <= ended_at + 20.0

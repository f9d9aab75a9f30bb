"""The state of a partition: the unknown is never shown as zero, and every state but the good ones has a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.diagnostics import note, problem, warning
from heliograph.status.partition_status import (
    KNOWN_FOR_S,
    SILENT_AFTER_S,
    STALLED_AFTER_S,
    PartitionFacts,
    PartitionState,
    judge,
)

NOW = 1000.0
COPYING = PartitionFacts(
    reported_at=NOW, next_offset=90, log_end=100, log_end_at=NOW, acked_at=NOW - 1, behind_since=NOW - 60
)


def state_of(facts: PartitionFacts) -> str:
    return judge(facts, NOW)[0].value


def test_a_partition_that_is_acknowledged_is_copied_until_it_has_caught_up() -> None:
    assert judge(COPYING, NOW) == (PartitionState.COPYING, None)
    assert judge(replace(COPYING, next_offset=100), NOW) == (PartitionState.CAUGHT_UP, None)


@pytest.mark.parametrize(
    ("change", "state", "reason"),
    [
        ({"failure": problem("no")}, "failed", "no"),
        ({"held": note("waits for a slot")}, "waiting", "waits for a slot"),
        ({"held": warning("task 0 failed")}, "retrying", "task 0 failed"),
        ({"held": problem("given up")}, "failed", "given up"),
        ({"issue": warning("NOT_ENOUGH_REPLICAS")}, "retrying", "NOT_ENOUGH_REPLICAS"),
        ({"reported_at": None}, "waiting", "it is not assigned to a running task yet"),
        ({"reported_at": NOW - SILENT_AFTER_S - 1}, "waiting", "its task has not reported for 9 s"),
        ({"log_end": None, "log_end_at": None}, "waiting", "the end of the source's log is not known"),
        (
            {"acked_at": NOW - STALLED_AFTER_S - 4},
            "waiting",
            "the target has acknowledged nothing for 12 s, and the source has 10 more records",
        ),
        (
            {"acked_at": NOW - STALLED_AFTER_S, "task_issue": warning("broker 1 does not answer")},
            "retrying",
            "broker 1 does not answer",
        ),
        (
            {"log_end_at": NOW - KNOWN_FOR_S - 1, "task_issue": warning("broker 1 does not answer")},
            "retrying",
            "broker 1 does not answer",
        ),
    ],
)
def test_every_other_state_has_a_reason(change: dict[str, object], state: str, reason: str) -> None:
    found, why = judge(replace(COPYING, **change), NOW)  # type: ignore[arg-type]
    assert (found.value, str(why)) == (state, reason)


def test_a_copy_that_ends_is_done() -> None:
    assert state_of(replace(COPYING, is_done=True, reported_at=NOW - 60)) == "done"


def test_a_log_end_is_known_for_a_while_only() -> None:
    old = replace(COPYING, log_end_at=NOW - KNOWN_FOR_S)
    assert old.lag_records(NOW) == 10
    assert (old.lag_records(NOW + 0.1), old.known_log_end(NOW + 0.1), old.lag_seconds(NOW + 0.1, 0)) == (None,) * 3


def test_without_a_position_the_lag_is_unknown() -> None:
    assert replace(COPYING, next_offset=None).lag_records(NOW) is None


def test_lag_in_seconds_is_the_age_of_the_oldest_record_that_is_not_copied() -> None:
    assert replace(COPYING, next_offset=100).lag_seconds(NOW, 50_000) == 0.0
    assert replace(COPYING, pending_ms=20_000, copied_ms=10_000).lag_seconds(NOW, 50_000) == 30.0
    assert replace(COPYING, copied_ms=10_000).lag_seconds(NOW, 50_000) == 40.0, "at most the age of the last copied one"
    assert replace(COPYING, copied_ms=10_000, caught_up_at=NOW - 3).lag_seconds(NOW, 50_000) == 3.0, "since it had all"
    assert COPYING.lag_seconds(NOW, 50_000) is None
    assert replace(COPYING, pending_ms=60_000).lag_seconds(NOW, 50_000) == 0.0, "a clock of a producer may be ahead"


def test_a_partition_that_has_just_fallen_behind_is_not_stalled() -> None:
    facts = replace(COPYING, acked_at=NOW - 3600, behind_since=None)
    facts.note_lag(NOW)
    assert (state_of(facts), facts.behind_since) == ("copying", NOW)
    facts.log_end_at = NOW - 60
    facts.note_lag(NOW)
    assert facts.behind_since == NOW, "an unknown lag neither ends nor begins it"
    facts.log_end, facts.log_end_at = 90, NOW
    facts.note_lag(NOW)
    assert facts.behind_since is None

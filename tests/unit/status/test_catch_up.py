"""The time until a flow will have caught up."""

from __future__ import annotations

import math

import pytest

from heliograph.status.catch_up import CatchUp
from heliograph.status.flow_snapshot import Lag


def lag(records: int | None, seconds: float | None = 60.0) -> Lag:
    return Lag(records, records or 0, int(records is None), seconds)


def after(*samples: int | None) -> CatchUp:
    """What is known after a sample every ten seconds."""
    made = CatchUp()
    for number, sample in enumerate(samples):
        made.note(10.0 * number, sample)
    return made


def test_a_lag_that_falls_is_gone_after_the_time_it_takes_at_that_rate() -> None:
    assert after(1000, 900, 800).seconds(20.0, lag(800)) == pytest.approx(80.0)


def test_a_lag_that_grows_or_stays_is_never_gone() -> None:
    assert after(800, 900, 1000).seconds(20.0, lag(1000)) == math.inf
    assert after(800, 800, 800).seconds(20.0, lag(800)) == math.inf


def test_without_lag_it_takes_no_time_also_if_records_are_always_under_way() -> None:
    assert after().seconds(20.0, lag(0, 0.0)) == 0.0
    assert after(50, 60, 70).seconds(20.0, lag(80, 0.4)) == 0.0


def test_an_unknown_lag_or_too_short_a_time_says_nothing() -> None:
    assert after(1000, 900, 800).seconds(20.0, lag(None)) is None
    assert after(1000, 900).seconds(10.0, lag(900)) is None
    assert after(None, None, None).seconds(20.0, lag(800)) is None


def test_only_the_last_minutes_count() -> None:
    made = after(10_000, *[500] * 20)
    assert made.seconds(200.0, lag(500)) == math.inf


def test_samples_of_an_earlier_run_do_not_count() -> None:
    made = after(1000, 900, 800)
    made.clear()
    assert made.seconds(20.0, lag(800)) is None

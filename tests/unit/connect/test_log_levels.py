"""Levels of logging under Connect's names."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from heliograph.connect.contract.log_levels import MOST_UNUSED_LOGGERS, LogLevels, parse_level
from tests.support.connect.rest_worker import rest_worker


@pytest.fixture(autouse=True)
def same_levels_afterwards() -> Iterator[None]:
    loggers = [logging.getLogger(), *(logging.getLogger(name) for name in logging.root.manager.loggerDict)]
    before = [(logger, logger.level) for logger in loggers]
    yield
    for logger, level in before:
        logger.setLevel(level)


@pytest.mark.parametrize(
    ("word", "number"),
    [("OFF", 60), ("fatal", 50), ("Error", 40), ("WARN", 30), (" info ", 20), ("DEBUG", 10), ("TRACE", 5), ("ALL", 1)],
)
def test_a_level_is_set_and_returned_by_connects_name(word: str, number: int) -> None:
    level = parse_level(word)
    assert level is not None
    levels = LogLevels()
    levels.set("test.levels.named", level)
    assert logging.getLogger("test.levels.named").level == number
    reported = levels.get("test.levels.named")
    assert reported is not None
    assert reported.level == level == word.strip().upper()


def test_a_level_of_python_has_the_nearest_name_below() -> None:
    logging.getLogger("test.levels.own").setLevel(25)
    reported = LogLevels().get("test.levels.own")
    assert reported is not None
    assert reported.level == "INFO"


def test_names_that_nobody_logs_under_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps a logger for good: one name of 14,000 letters and dots took 48 MB."""
    kept = logging.root.manager.loggerDict
    monkeypatch.setattr(logging.root.manager, "loggerDict", dict(kept))
    levels, before = LogLevels(), len(kept)
    assert levels.set("a." * 7_000 + "a", "DEBUG") == []
    assert len(logging.root.manager.loggerDict) == before
    for number in range(MOST_UNUSED_LOGGERS + 50):
        levels.set(f"test-bounded-{number}", "DEBUG")
    assert len(logging.root.manager.loggerDict) == before + MOST_UNUSED_LOGGERS
    assert levels.may_set("test-bounded-0")
    assert levels.may_set("root")
    assert not levels.may_set("test-bounded-too-many")
    assert not levels.may_set("x" * 250)


@pytest.mark.parametrize("query", ["", "?scope=cluster"])
def test_rest_refuses_a_long_name(query: str) -> None:
    with rest_worker() as worker:
        reply = worker.ask("PUT", f"/admin/loggers/{'a.' * 7_000}x{query}", {"level": "INFO"})
        assert reply.status == 400
        assert "Nobody logs under this name" in reply.body["message"]
    assert not [name for name in logging.root.manager.loggerDict if len(name) > 1_000]


def test_no_level_has_another_name() -> None:
    assert parse_level("WARNING") is None
    assert parse_level("") is None


def test_a_level_reaches_all_below_and_those_that_changed_are_returned() -> None:
    levels = LogLevels()
    logging.getLogger("test.family.child").setLevel(logging.ERROR)
    logging.getLogger("test.family.same").setLevel(logging.DEBUG)
    logging.getLogger("test.familyother").setLevel(logging.ERROR)
    assert levels.set("test.family", "DEBUG") == ["test.family", "test.family.child"]
    assert logging.getLogger("test.family.child").level == logging.DEBUG
    assert logging.getLogger("test.familyother").level == logging.ERROR
    changed, same = levels.get("test.family.child"), levels.get("test.family.same")
    assert changed is not None
    assert same is not None
    assert changed.last_modified_ms is not None
    assert same.last_modified_ms is None


def test_the_root_is_all_of_them() -> None:
    levels = LogLevels()
    logging.getLogger("test.root.child").setLevel(logging.ERROR)
    levels.set("root", "TRACE")
    assert logging.getLogger("test.root.child").level == 5
    assert {reported.level for reported in levels.all().values()} == {"TRACE"}


def test_a_logger_nobody_uses_is_not_there() -> None:
    levels = LogLevels()
    assert levels.get("test.nobody") is None
    logging.getLogger("test.parent.child")
    assert levels.get("test.parent") is None, "only a name on the way to another"
    assert "root" in levels.all()

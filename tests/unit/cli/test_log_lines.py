"""A log entry is one entry, whatever a key or a name has in it."""

from __future__ import annotations

import logging

from heliograph.cli.log_output import PlainLines


def written(message: str) -> str:
    record = logging.LogRecord("heliograph", logging.INFO, "", 0, "key %s", (message,), None)
    return PlainLines("%(levelname)s %(message)s").format(record)


def test_control_characters_are_escaped() -> None:
    assert written("a\x1b[2J\r\x00\x9b\u2028\tb") == "INFO key a\\x1b[2J\\r\\x00\\x9b\\u2028\\tb"


def test_a_forged_line_is_not_at_the_start_of_one() -> None:
    assert written("x\nINFO all is well") == "INFO key x\n    INFO all is well"


def test_other_text_stays_as_it_is() -> None:
    assert written("é -> 'a.b'; 日本") == "INFO key é -> 'a.b'; 日本"

"""`--log-format json`: one object per line, with what the line is about, and without secrets."""

from __future__ import annotations

import json
import logging
import re

import pytest

from heliograph.cli.log_output import JsonLines, SecretFilter
from heliograph.config.secrets.known_secrets import HIDDEN, remember_secret


def line(message: str, *arguments: object, **extra: object) -> str:
    logger = logging.getLogger("heliograph.some")
    record = logger.makeRecord(logger.name, logging.WARNING, "", 1, message, arguments, None, extra=extra)
    assert SecretFilter().filter(record)
    return JsonLines().format(record)


def test_an_entry_has_its_time_and_what_it_is_about() -> None:
    entry = json.loads(line("%s: slow", "A->B", flow="A->B", task=0, topic="orders", partition=3))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert entry == {
        "level": "WARNING",
        "logger": "heliograph.some",
        "message": "A->B: slow",
        "flow": "A->B",
        "task": 0,
        "topic": "orders",
        "partition": 3,
    }


def test_unknown_fields_are_left_out() -> None:
    assert set(json.loads(line("x", topic=None))) == {"time", "level", "logger", "message"}


@pytest.mark.parametrize("text", ["a\nb", "a\r\x1b[2Jb", "\u2028", "\x7f\x9b", 'quote " and \\'])
def test_an_entry_is_one_line_without_control_characters(text: str) -> None:
    shown = line("%s", text, flow=text)
    assert shown.isascii()
    assert shown.isprintable()
    assert json.loads(shown)["message"] == text
    assert json.loads(shown)["flow"] == text


def test_secrets_are_hidden_in_the_message_the_fields_and_the_trace() -> None:
    remember_secret("json-canary-secret", HIDDEN)
    assert "canary" not in line("it is %s", "json-canary-secret", topic="json-canary-secret")
    logger = logging.getLogger("heliograph.some")
    try:
        int("json-canary-secret")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
        record = logger.makeRecord("x", logging.ERROR, "", 1, "failed", (), info)
    SecretFilter().filter(record)
    entry = json.loads(JsonLines().format(record))
    assert "ValueError" in entry["exception"]
    assert "canary" not in entry["exception"]

"""The table of keys holds together, and the reference page says what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.reference_pages import configuration_page

from heliograph.config import keys
from heliograph.config.keys.table import Key
from heliograph.errors import ConfigError
from tests.support.diagnostics import texts

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "configuration.md"


def gaps(row: Key[object]) -> Iterator[str]:
    if not row.doc.endswith("."):
        yield "documentation is sentences"
    if not row.scope:
        yield "it stands nowhere"
    if row.check is not None and not row.check.holds(row.default):
        yield "its default breaks its own rule"
    if row.replaced_by is not None and row.replaced_by not in keys.TABLE:
        yield f"it is replaced by {row.replaced_by}, which is not there"
    if row.support.kind != "full" and not row.support.reason:
        yield "say why it is not supported"
    if row.support.reason.endswith(".") != (row.support.kind == "rejected"):
        yield "an ignored key's reason is a clause, a rejected one's a sentence"
    if not re.fullmatch(r"(\d\.\d+)?", row.since):
        yield f"there was no version {row.since}"


def test_a_row_is_complete() -> None:
    assert [f"{row.name}: {gap}" for row in keys.TABLE.values() for gap in gaps(row)] == []


def test_no_two_keys_of_our_own_words_say_the_same() -> None:
    docs = [row.doc for row in keys.TABLE.values() if not row.replaced_by]
    assert {doc for doc in docs if docs.count(doc) > 1} == set()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("transforms", "insert"),
        ("predicates", "isTombstone"),
        ("forwarding.admin.class", "com.acme.Admin"),
        ("value.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("offsets.storage.topic", "mine"),
        ("interceptor.classes", "com.acme.Interceptor"),
    ],
)
def test_a_key_that_would_change_what_arrives_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        keys.TABLE[name].parse(value, f"A->B.{name}")
    (problem,) = texts(caught.value.problems)
    assert problem.startswith(f"A->B.{name}: ")
    assert "canary" not in problem


def test_a_refused_key_may_be_set_to_what_happens_anyway() -> None:
    assert keys.TABLE["transforms"].parse(" ") == ()
    for name in ("key.converter", "value.converter", "header.converter"):
        assert keys.TABLE[name].parse("org.apache.kafka.connect.converters.ByteArrayConverter")


@pytest.mark.parametrize(("name", "text"), [("replication.factor", "1_000"), ("replication.factor", "2147483648")])
@pytest.mark.parametrize("blank", ["", " "])
def test_a_number_is_one_that_java_reads(name: str, text: str, blank: str) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        keys.TABLE[name].parse(text + blank)


def test_the_reference_page_is_fresh() -> None:
    assert PAGE.read_text() == configuration_page(), "run `make docs`"


def test_secrets_are_marked_as_such() -> None:
    for name in ("sasl.jaas.config", "ssl.key.password", "ssl.truststore.password", "ssl.keystore.key"):
        assert keys.TABLE[name].type.name == "PASSWORD"

"""The table of keys holds together, and the reference page says what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.config import keys
from heliograph.config.reference import render
from heliograph.config.types import Key

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


@pytest.mark.parametrize("row", keys.TABLE.values(), ids=lambda row: row.name)
def test_a_row_is_complete(row: Key[object]) -> None:
    assert row.doc.strip()
    assert row.scope
    if row.check is not None:
        assert row.check.holds(row.default), f"the default of {row.name} breaks its own rule"
    if row.replaced_by is not None:
        assert row.replaced_by in keys.TABLE


def test_the_reference_page_is_fresh() -> None:
    assert PAGE.read_text() == render(), "run `make docs`"


def test_secrets_are_marked_as_such() -> None:
    for name in ("sasl.jaas.config", "ssl.key.password", "ssl.truststore.password", "ssl.keystore.key"):
        assert keys.TABLE[name].type.name == "PASSWORD"

"""The reference page of metrics is made of the tables."""

from __future__ import annotations

from pathlib import Path

from docs import reference_pages

from heliograph.metrics.dialects import Dialect
from heliograph.metrics.families import families

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


def test_the_reference_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_pages.metrics_page(), "run: make docs"


def test_every_name_of_every_dialect_is_in_the_reference() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for dialect in Dialect:
        for is_worker in (False, True):
            for family in families((dialect, Dialect.KIP_1280), has_legacy_names=True, is_worker=is_worker):
                assert all(f"`{name}`" in text for name in family.sample_names), family.name

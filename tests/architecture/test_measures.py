"""The code base keeps its shape: small packages, no cycles, a name for one thing only."""

from __future__ import annotations

from tests.architecture.measures import MOST_MODULES, SOURCE, Package

PACKAGE = Package(SOURCE)


def test_a_package_has_at_most_twelve_modules() -> None:
    assert {name: count for name, count in PACKAGE.packages.items() if count > MOST_MODULES} == {}


def test_modules_have_no_cycles() -> None:
    assert PACKAGE.module_cycles() == []

"""A pair of clusters with an authorizer for all tests that give their users ACLs of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.clusters.guarded import Guarded, guarded_cluster
from tests.support.clusters.least_privilege import ROLES

MOST_FLOWS = 47
LINES_OF_BUSINESS = ("payments-mirror", "lending-mirror", "mirror-worker")


def _users(letter: str) -> tuple[str, ...]:
    of_flows = (f"{letter}{number}" for number in range(MOST_FLOWS))
    return (*of_flows, *(f"{letter}-{role}" for role in ROLES), *LINES_OF_BUSINESS, "reader-of-one-group")


@pytest.fixture(scope="package")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The source of flows; its users begin with `r`."""
    with guarded_cluster("least-here", tmp_path_factory.mktemp("least-here"), _users("r")) as guarded:
        yield guarded


@pytest.fixture(scope="package")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The target; its users begin with `w`."""
    with guarded_cluster("least-there", tmp_path_factory.mktemp("least-there"), _users("w")) as guarded:
        yield guarded

"""The programs of Prometheus, or a visible reason why a test is skipped."""

from __future__ import annotations

import pytest

from tests.support.monitoring.tools import MISSING, Tools, find_tools


@pytest.fixture(scope="session")
def tools() -> Tools:
    found = find_tools()
    if found is None:
        pytest.skip(MISSING)
    return found

"""Kafka's MirrorSourceConnectorTest.testExactlyOnceSupport: which isolation level counts, and what it is by default."""

from __future__ import annotations

import pytest

from heliograph.config.validate.dedicated_file import examine
from tests.support.config_files import FakeLookup, minimal
from tests.support.diagnostics import texts

FLOW, SOURCE = "A->B.consumer.isolation.level", "A->B.source.consumer.isolation.level"


def problems_of(*lines: str) -> tuple[str, ...]:
    required = ("A->B.exactly.once.support=required", "B.exactly.once.source.support=enabled")
    return texts(examine(minimal(*required, *lines), FakeLookup()).problems)


@pytest.mark.parametrize("flow", [None, "read_committed", "read_uncommitted"])
@pytest.mark.parametrize("source", [None, "read_committed", "read_uncommitted"])
def test_exactly_once_support(flow: str | None, source: str | None) -> None:
    """The source's own key wins over the flow's; without both ours reads committed records, where Java does not."""
    lines = [f"{key}={value}" for key, value in ((FLOW, flow), (SOURCE, source)) if value is not None]
    is_supported = (source or flow or "read_committed") == "read_committed"
    assert (problems_of(*lines) == ()) is is_supported


def test_exactly_once_support_validation() -> None:
    (problem,) = problems_of(f"{SOURCE}=read_uncommitted")
    assert f"A->B.exactly.once.support: it is 'required', and {SOURCE} is not read_committed" in problem

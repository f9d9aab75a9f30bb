"""One JVM for all tests that call Kafka's Java classes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.gateway import Java


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Java]:
    """Kafka's Java classes."""
    with Java(tmp_path_factory.mktemp("java")) as java:
        yield java

"""The story of REST calls, told to a real Java Connect worker: what was recorded of it is what it answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.embedded.cluster import EmbeddedCluster
from tests.interop.java_connect import JavaConnect
from tests.interop.record_connect_rest import recorded
from tests.interop.rest_story import differences, tell

pytestmark = pytest.mark.broker


def test_java_answers_as_it_was_recorded(target: EmbeddedCluster, tmp_path: Path) -> None:
    with JavaConnect.on(target, tmp_path, group="rest-conformance") as connect:
        told = tell(connect.wait_until_ready().url, target.bootstrap)
    assert differences(recorded(), told) == {}

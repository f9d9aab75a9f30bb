"""The story of REST calls, told to a real Java Connect worker and to ours: both answer as it was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.interop.java_connect import JavaConnect
from tests.interop.record_connect_rest import recorded
from tests.interop.rest_story import differences, report
from tests.support.connect.connect_worker import RunningWorker, free_port, worker_file

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_java_answers_as_it_was_recorded(target: EmbeddedCluster, tmp_path: Path) -> None:
    with JavaConnect.on(target, tmp_path, group="rest-conformance") as connect:
        reported = report(connect.wait_until_ready().url, target.bootstrap, recorded())
    assert differences(recorded(), reported) == {}


def test_our_worker_answers_as_java_does(target: EmbeddedCluster, alias: str, tmp_path: Path) -> None:
    port = free_port()
    with RunningWorker(worker_file(tmp_path, target, f"{alias}-rest", port), port) as worker:
        reported = report(worker.wait_until_ready().url, target.bootstrap, recorded())
        assert worker.stop() == 0, worker.output()
    assert differences(recorded(), reported) == {}

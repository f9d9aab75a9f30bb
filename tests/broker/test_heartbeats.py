"""Signs of life of a flow, on a real cluster."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from heliograph.cli.inputs import MachineLookup
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.loops.heartbeats import HeartbeatSource
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.model import Flow
from heliograph.status.process_snapshot import HeartbeatsSnapshot
from heliograph.wire.records.mirror_records import decode_heartbeat
from tests.support.clusters.clients import admin_of

pytestmark = pytest.mark.broker


def test_poll_creates_records(target: EmbeddedCluster, alias: str) -> None:
    """MirrorHeartbeatTaskTest: one record for each beat, with both aliases; the source is not asked."""
    text = f"""
        clusters = {alias}, target
        {alias}.bootstrap.servers = 127.0.0.1:1
        target.bootstrap.servers = {target.bootstrap}
        {alias}->target.enabled = true
    """
    with closing(HeartbeatSource(load(text, MachineLookup()), Flow(alias, "target"))) as source:
        assert source.snapshot("c") == HeartbeatsSnapshot("c", Flow(alias, "target"), 0, None)
        assert [*source.begin(), *source.beat(), *source.beat()] == []
        found = source.snapshot("c")
        assert found.written == 2
        assert found.written_at is not None
        assert abs(time.time() - found.written_at) < 60
    admin = admin_of(target)
    beats = [decode_heartbeat(record.key, record.value) for record in read_topic(admin, "heartbeats")]
    counts = admin.view(["heartbeats"]).partition_counts
    admin.close()
    first, second = [beat for beat in beats if beat is not None and beat.source == alias]
    assert (first.target, second.target) == ("target", "target")
    assert 0 < first.timestamp_ms <= second.timestamp_ms
    assert counts == {"heartbeats": 1}

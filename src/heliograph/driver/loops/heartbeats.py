"""The heartbeat connector: writes heartbeats of a flow to its target.

The heartbeats topic is replicated like any other; MirrorClient learns from it which clusters replicate to which.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.driver.clusters.cluster_clients import TargetClients
from heliograph.driver.clusters.internal_topic_creation import ensure_internal_topic
from heliograph.driver.loops.noted_offsets import NotedOffsets
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.topics.record_writer import STEP_TIMEOUT_S, write_records
from heliograph.mirror.topics.internal_topics import heartbeats_topic
from heliograph.model import Heartbeat, TopicPartition
from heliograph.status.process_snapshot import HeartbeatsSnapshot
from heliograph.wire.records.mirror_records import encode_heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.steps.step_runner import Schedule
    from heliograph.model import Flow


class HeartbeatSource:
    """The heartbeats of one flow; `written` counts them by topic."""

    def __init__(self, config: MirrorConfig, flow: Flow) -> None:
        self.flow = flow
        self._settings = config.settings(flow)
        self._target_clients = TargetClients(config, flow)
        self._topic = heartbeats_topic(self._settings)
        self._noted = NotedOffsets(config, flow, self._target_clients, "heartbeat")
        self.written: dict[str, int] = {}
        self._written_at: float | None = None

    def close(self) -> None:
        """Close the clients."""
        self._target_clients.close()

    def unanswered(self) -> list[str]:
        """Return for whom a step has waited for some time."""
        return [said for client in self._target_clients.clients if (said := client.unanswered)]

    def begin(self) -> Iterable[str]:
        """Create the topic if it is missing."""
        for cluster in self._target_clients.topic_clusters:
            ensure_internal_topic(
                cluster,
                self._topic,
                is_explicit_factor=keys.HEARTBEATS_REPLICATION_FACTOR in self._settings,
                factor_key=keys.HEARTBEATS_REPLICATION_FACTOR.name,
            )
        return ()

    def plan(self, schedule: Schedule) -> None:
        """Add the step that writes a heartbeat."""
        schedule.repeat("beat", self.beat, self._settings[keys.EMIT_HEARTBEATS_INTERVAL_SECONDS])

    def beat(self) -> Iterable[str]:
        """Write one heartbeat."""
        heartbeat = Heartbeat(self.flow.source, self.flow.target, int(time.time() * 1000))
        record = OwnRecord(*encode_heartbeat(heartbeat))
        topic = TopicPartition(self._topic.name, 0)
        write_records(self._target_clients.records, topic, [record], timeout_s=STEP_TIMEOUT_S)
        self.written = {self._topic.name: self.written.get(self._topic.name, 0) + 1}
        self._written_at = time.time()
        self._noted.note([{"sourceClusterAlias": self.flow.source, "targetClusterAlias": self.flow.target}])
        return ()

    def snapshot(self, connector: str) -> HeartbeatsSnapshot:
        """Return what was written, under the name of its connector; may be called from any thread."""
        return HeartbeatsSnapshot(connector, self.flow, sum(self.written.values()), self._written_at)

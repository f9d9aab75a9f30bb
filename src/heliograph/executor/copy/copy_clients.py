"""The clients of one task: event loop, buffers, clusters, fetcher, producers and the writer of offset syncs.

They are opened, driven and closed here, in the task's one thread; what is fetched, sent and committed is decided
elsewhere. Source offsets have clients of their own only if they are kept on a cluster that is not the target.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from heliograph.executor.copy.sync_writer import SyncWriter
from heliograph.kafka.fetch.fetcher import Fetcher, FetchListener
from heliograph.kafka.net.buffers import BufferPool
from heliograph.kafka.net.cluster import Cluster, Traffic
from heliograph.kafka.net.event_loop import Network
from heliograph.kafka.produce.producer import BatchProducer
from heliograph.kafka.produce.producer_session import ProducerSession
from heliograph.kafka.produce.target_partition import ProduceListener
from heliograph.status.task_status import TaskCounts, TaskGauges

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.executor.contract.task_spec import TaskSpec
    from heliograph.kafka.request_options import FetchLimits
    from heliograph.kafka.security.connection_spec import ClusterSpec


_CONNECT_TIMEOUT_S = 10.0


class CopyListener(FetchListener, ProduceListener, Protocol):
    """Receives fetched records, and batches that the target does not take."""


class CopyClients:
    """The clients of one task. `start` must be called once, before anything is fetched or sent."""

    fetcher: Fetcher
    producer: BatchProducer
    offsets_producer: BatchProducer  # the same, if the target keeps the source offsets

    def __init__(self, spec: TaskSpec) -> None:
        self._spec = spec
        self.pool = BufferPool(spec.buffer_bytes)
        self.network = Network(self.pool, f"heliograph-{spec.task_id}", _CONNECT_TIMEOUT_S)
        self.source = self._cluster(spec.source)
        self.target = self._cluster(spec.target)
        self.session = self.offsets_session = ProducerSession(
            self.target,
            self.network,
            transactional_id=spec.transactional_id,
            transaction_timeout_ms=spec.transaction_timeout_ms,
        )
        self._offsets_cluster = self.target
        self._clusters = [self.source, self.target]
        self._sessions = [self.session]
        self._producers: list[BatchProducer] = []
        if spec.source_offsets is not None:
            self._offsets_cluster = self._cluster(spec.source_offsets)
            self.offsets_session = ProducerSession(self._offsets_cluster, self.network)
            self._clusters.append(self._offsets_cluster)
            self._sessions.append(self.offsets_session)
        self.syncs: SyncWriter | None = None
        if spec.syncs is not None:
            self.syncs = SyncWriter(
                self._cluster(spec.syncs.cluster), self.network, spec.syncs.topic, spec.syncs.lag_max
            )

    def _cluster(self, spec: ClusterSpec) -> Cluster:
        return Cluster(spec.alias, spec.bootstrap, spec.security, self.network, spec.request_timeout_ms / 1000)

    def start(self, listener: CopyListener, limits: FetchLimits, memory_bytes: Callable[[], int]) -> None:
        """Open the fetcher and the producers, which report to the listener."""
        lanes = self._spec.produce_limits.lanes
        self.fetcher = Fetcher(self.source, self.network, limits, listener, lanes=lanes, memory_bytes=memory_bytes)
        self.producer = self.offsets_producer = self._open_producer(self.target, self.session, listener)
        if self._offsets_cluster is not self.target:
            self.offsets_producer = self._open_producer(self._offsets_cluster, self.offsets_session, listener)
        self.offsets_producer.add_topic_watch(self._spec.offsets_topic)

    def _open_producer(self, cluster: Cluster, session: ProducerSession, listener: CopyListener) -> BatchProducer:
        producer = BatchProducer(cluster, self.network, self.pool, session, listener, self._spec.produce_limits)
        self._producers.append(producer)
        return producer

    def maintain_clusters(self, now: float) -> None:
        """Keep connections and metadata fresh; raise if a cluster refuses our credentials."""
        for cluster in self._clusters:
            cluster.maintain(now)
            cluster.raise_refusal()

    def pump_producers(self, now: float) -> None:
        """Send the batches that may be sent."""
        for producer in self._producers:
            producer.pump(now)

    @property
    def is_idle(self) -> bool:
        """Return whether no batch is queued or unacknowledged."""
        return all(producer.is_idle for producer in self._producers)

    @property
    def is_calm(self) -> bool:
        """Return whether nothing waits for a retry, a leader or a coordinator."""
        if self.fetcher.has_retries or not all(session.is_ready for session in self._sessions):
            return False
        if any(cluster.is_unsettled for cluster in self._clusters):
            return False
        return not any(producer.has_retries for producer in self._producers)

    @property
    def are_syncs_written(self) -> bool:
        """Return whether the offset syncs are written, or cannot be."""
        return self.syncs is None or self.syncs.is_idle or self.syncs.issue is not None

    def counts(self) -> TaskCounts:
        """Return what the clients have counted: bytes of the protocol, and how long quotas made the copy wait."""
        source, target = self._traffic()
        throttled_ms = self.fetcher.throttled_ms + self.producer.throttled_ms
        return TaskCounts(received_bytes=source.received_bytes, sent_bytes=target.sent_bytes, throttled_ms=throttled_ms)

    def gauges(self) -> TaskGauges:
        """Return the connections, and the memory for records."""
        source, target = self._traffic()
        return TaskGauges(
            source.connections,
            target.connections,
            self._spec.buffer_bytes,
            self.pool.held_bytes + self.pool.parked_bytes,
            sum(each.unacknowledged_records for each in self.producer.partitions.values() if not each.is_idle),
        )

    def _traffic(self) -> tuple[Traffic, Traffic]:
        """Return the sums over connections to the source, and over all others."""
        clusters = [*self._clusters, *([self.syncs.cluster] if self.syncs is not None else ())]
        alias = self.source.alias
        source = Traffic.sum_of(cluster.traffic for cluster in clusters if cluster.alias == alias)
        return source, Traffic.sum_of(cluster.traffic for cluster in clusters if cluster.alias != alias)

    @property
    def unavailable_clusters(self) -> list[str]:
        """Return a sentence for each cluster that cannot be reached or used, or does not answer."""
        now = time.monotonic()
        issues = (cluster.issue or cluster.unanswered(now) for cluster in self._clusters)
        return [issue for issue in issues if issue]

    @property
    def session_issues(self) -> list[str]:
        """Return the current issues of producer sessions."""
        further = [producer.further_sessions.issue for producer in self._producers]
        return [issue for issue in (*(session.issue for session in self._sessions), *further) if issue]

    def close(self) -> None:
        """Close all connections."""
        self.network.close()

"""Writes a task's offset syncs to `mm2-offset-syncs.B.internal`, on the cluster that has that topic.

As in MM2 this is a producer of its own, outside of any transaction: a sync only states what is already acknowledged. It
is not idempotent either, since a sync that is written twice does no harm. One request is under way at a time; the next
one takes what was acknowledged meanwhile. Syncs that cannot be written are kept and reported as an issue; the copy
continues.
"""

from __future__ import annotations

import math
import time
from array import array
from typing import TYPE_CHECKING

from heliograph.kafka.backoff import Backoff
from heliograph.kafka.own_records import OwnRecord, build_batches
from heliograph.kafka.produce.own_batches import send_own_batch
from heliograph.mirror.groups.offset_syncs import PartitionSyncs
from heliograph.model import OffsetSync, TopicPartition
from heliograph.wire.records.mirror_records import encode_log_id, encode_offset_sync, encode_runs

if TYPE_CHECKING:
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network


_INTERVAL_S = 0.25
_PAUSE_PER_PARTITION_S = 0.005  # a thousand busy ones then cost little to write, and to read at a start
_FLUSH_INTERVAL_S = 5.0  # of what is not due
_LEADER_TIMEOUT_S = 2.0
_MOST_REQUEST_BYTES = 256 * 1024
_RECORD_BYTES = 96  # of a record's value, its headers and its lengths; the key and the runs aside
_NO_RUNS: array[int] = array("q")


class SyncWriter:
    """Writes where the records of a task's partitions are on the target."""

    def __init__(self, cluster: Cluster, network: Network, topic: str, lag_max: int) -> None:
        self.issue: str | None = None
        self.cluster = cluster
        self._network = network
        self._tp = TopicPartition(topic, 0)
        self._lag_max = lag_max
        self._partitions: dict[TopicPartition, PartitionSyncs] = {}
        self._under_way: list[TopicPartition] = []
        self._fresh: dict[TopicPartition, None] = {}
        self._due: dict[TopicPartition, None] = {}
        self._is_flushing = False
        self._next_at = 0.0  # the back-off of a failing cluster
        self._paused_until = 0.0  # keeps requests few; `flush(at_once=True)` lifts it
        self._next_flush_at = 0.0
        self._without_leader_since = math.inf
        self._backoff = Backoff(first_s=0.1, most_s=30.0)
        cluster.watch([topic])

    def add(self, tp: TopicPartition) -> PartitionSyncs:
        """Add a source partition."""
        return self._partitions.setdefault(tp, PartitionSyncs(self._lag_max))

    def wake(self, tp: TopicPartition) -> None:
        """Note that a partition has a new sync."""
        self._fresh[tp] = None
        if self._partitions[tp].is_due:
            self._due[tp] = None

    def release(self, tp: TopicPartition) -> bool:
        """Forget a partition that another task copies from now on, once its syncs are written, or if they cannot be;
        return whether that is so. A sync that is written after those of the other task would go back.
        """
        if tp in self._under_way:
            return False
        if tp in self._fresh and self.issue is None:
            self._due[tp] = None  # before the next flush
            return False
        for known in (self._partitions, self._fresh, self._due):
            known.pop(tp, None)
        return True

    @property
    def is_idle(self) -> bool:
        """Return whether every sync is written."""
        return not self._under_way and not self._fresh

    @property
    def _wanted(self) -> dict[TopicPartition, None]:
        return self._fresh if self._is_flushing else self._due

    @property
    def wait_s(self) -> float:
        """The time until the next request; infinite if there is nothing to write."""
        if self._under_way or not self._wanted:
            return math.inf
        return max(0.0, self._next_at - time.monotonic(), self._paused_until - time.monotonic())

    def flush(self, *, at_once: bool = False) -> None:
        """Write all new syncs, due or not, as a commit does in MM2; commits come more often here.

        A task that ends writes them at once: it calls this until `is_idle`.
        """
        now = time.monotonic()
        if at_once:
            self._next_flush_at = self._paused_until = 0.0
        if self._fresh and now >= self._next_flush_at:
            self._is_flushing, self._next_flush_at = True, now + _FLUSH_INTERVAL_S

    def pump(self, now: float) -> None:
        """Send the wanted syncs if no request is under way."""
        self.cluster.maintain(now)
        if self._under_way or not self._wanted or now < max(self._next_at, self._paused_until):
            return
        leader = self.cluster.leaders.get(self._tp)
        connection = self.cluster.connection_to(leader) if leader is not None else None
        if connection is None:
            self._next_at = now + _INTERVAL_S
            self._wait_for_leader(now, is_known=leader is not None)
            return
        self._without_leader_since = math.inf
        self._send(connection, self._take_records())
        self._paused_until = now + _INTERVAL_S + len(self._under_way) * _PAUSE_PER_PARTITION_S

    def _wait_for_leader(self, now: float, *, is_known: bool) -> None:
        self._without_leader_since = min(self._without_leader_since, now)
        if not is_known:
            self.cluster.want_metadata()
        if now - self._without_leader_since > _LEADER_TIMEOUT_S:
            where = f"{self._tp.topic} on '{self.cluster.alias}'"
            why = f"{where} is not there or has no leader"
            if self._tp.topic in self.cluster.hidden:
                why = f"{where} is not shown to us; the principal needs WRITE on the topic"
            self.issue = f"offset syncs wait: {self.cluster.issue or why}"

    def _take_records(self) -> list[tuple[TopicPartition, OwnRecord]]:
        """Return records to write, each with its partition; the last record of a partition completes its sync."""
        records: list[tuple[TopicPartition, OwnRecord]] = []
        size = 0
        for tp in list(self._wanted):
            syncs = self._partitions[tp]
            sync = syncs.take()
            self._fresh.pop(tp, None)
            self._due.pop(tp, None)
            if sync is None:
                continue
            records += [(tp, _record(OffsetSync(tp, *mark, log_id=syncs.log_id), _NO_RUNS)) for mark in sync.marks]
            last = _record(OffsetSync(tp, sync.upstream, sync.downstream, log_id=syncs.log_id), sync.runs)
            records.append((tp, last))
            size += len(sync.runs) * sync.runs.itemsize + (len(last.key) + _RECORD_BYTES) * (len(sync.marks) + 1)
            if size > _MOST_REQUEST_BYTES:
                break
        self._is_flushing = self._is_flushing and bool(self._fresh)
        return records

    def _send(self, connection: Connection, records: list[tuple[TopicPartition, OwnRecord]]) -> None:
        if not records:
            return
        # A request has one batch; a partition whose last record is not in it is written again.
        batch = build_batches([record for _tp, record in records], int(time.time() * 1000))[0]
        cut_off = {tp for tp, _record in records[batch.record_count :]}
        self._under_way = [tp for tp in dict(records) if tp not in cut_off]
        for tp in cut_off:
            self._give_back(tp)
        send_own_batch(
            self.cluster,
            self._network,
            connection,
            self._tp,
            batch,
            on_written=self._confirm,
            on_refused=self._keep,
        )

    def _confirm(self) -> None:
        for tp in self._under_way:
            self._partitions[tp].confirm()
            if self._partitions[tp].has_unsent:
                self.wake(tp)
        self._under_way.clear()
        self._backoff.reset()
        self.issue = None

    def _keep(self, why: str) -> None:
        for tp in self._under_way:
            self._give_back(tp)
        self._under_way.clear()
        self._paused_until = 0.0  # nothing was written
        self._next_at = time.monotonic() + self._backoff.next_pause_s()
        self.issue = f"offset syncs cannot be written to {self._tp.topic} on '{self.cluster.alias}': {why}"

    def _give_back(self, tp: TopicPartition) -> None:
        self._partitions[tp].give_back()
        self.wake(tp)


def _record(sync: OffsetSync, runs: array[int]) -> OwnRecord:
    return OwnRecord(*encode_offset_sync(sync), (encode_runs(runs), *encode_log_id(sync.log_id)))

"""Writes records of our own in transactions, under a transactional id that one process at a time owns.

A claim fences the former owner: from then on the brokers refuse its writes, and abort its open transaction. It uses
the copy tasks' own producer and blocks until the brokers have decided.

Invariants:
A. After a failure the id is not ours: the next write needs a claim, which aborts what the failed write left open.
B. Readers see a write as a whole or not at all.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from heliograph.errors import AuthenticationError, ClusterError, ConfigError, FencedError, TaskError
from heliograph.kafka.net.buffers import BufferPool
from heliograph.kafka.net.cluster import Cluster
from heliograph.kafka.net.event_loop import Network
from heliograph.kafka.own_records import build_batches
from heliograph.kafka.produce.producer import BatchProducer
from heliograph.kafka.produce.producer_session import ProducerSession
from heliograph.kafka.produce.target_partition import Outgoing
from heliograph.kafka.request_options import ProduceLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from heliograph.kafka.own_records import OwnRecord
    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import Address, TopicPartition


_CONNECT_TIMEOUT_S = 10.0
_CLAIM_TIMEOUT_S = 10.0
_TICK_S = 0.01
_KEPT_BYTES = 1 << 20


class FencedWriter:
    """Claims a transactional id and writes under it. Not thread-safe. `security` is called at each claim."""

    def __init__(
        self,
        alias: str,
        bootstrap: tuple[Address, ...],
        security: Callable[[], Security],
        transactional_id: str,
        *,
        timeout_s: float,
    ) -> None:
        self._alias = alias
        self._bootstrap = bootstrap
        self._security = security
        self._transactional_id = transactional_id
        self._timeout_s = timeout_s
        self._transactions: _Transactions | None = None

    def claim(self) -> None:
        """Fence the present owner of the id; raises ClusterError if the cluster refuses."""
        self.close()
        try:
            security = self._security()
        except ConfigError as error:
            raise AuthenticationError(f"The cluster '{self._alias}' cannot be used: {error}") from None
        pool = BufferPool(_KEPT_BYTES)
        network = Network(pool, "heliograph-worker", min(_CONNECT_TIMEOUT_S, self._timeout_s))
        cluster = Cluster(self._alias, self._bootstrap, security, network, self._timeout_s)
        session = ProducerSession(cluster, network, transactional_id=self._transactional_id)
        self._transactions = _Transactions(cluster, network, pool, session)
        self._run(self._transactions, lambda: session.is_ready, min(_CLAIM_TIMEOUT_S, self._timeout_s))

    def write(self, tp: TopicPartition, records: Sequence[OwnRecord]) -> None:
        """Write the records in one transaction.

        Raises FencedError if another process has claimed the id since, ClusterError for any other failure; the records
        may then have been written or not.
        """
        transactions = self._transactions
        if transactions is None:
            raise ClusterError(f"The transactional id {self._transactional_id} is not ours; it must be claimed first.")
        transactions.enqueue(tp, records)
        self._run(transactions, transactions.is_written, self._timeout_s)
        transactions.end()
        self._run(transactions, transactions.is_ended, self._timeout_s)

    def close(self) -> None:
        """Close the connections; the next write needs a new claim."""
        if self._transactions is not None:
            self._transactions.close()
            self._transactions = None

    def _run(self, transactions: _Transactions, is_done: Callable[[], bool], timeout_s: float) -> None:
        try:
            transactions.run_until(is_done, timeout_s)
        except BaseException as error:
            self.close()
            if isinstance(error, TaskError) and not isinstance(error, FencedError):
                raise ClusterError(f"The cluster '{self._alias}' refused our transaction: {error}") from None
            raise


class _Transactions:
    """One claim of the id: its connections, its producer, and the open transaction."""

    def __init__(self, cluster: Cluster, network: Network, pool: BufferPool, session: ProducerSession) -> None:
        self._cluster = cluster
        self._network = network
        self._session = session
        self._producer = BatchProducer(cluster, network, pool, session, self, ProduceLimits())
        self._is_ended = False

    def enqueue(self, tp: TopicPartition, records: Sequence[OwnRecord]) -> None:
        """Queue the records of a new transaction."""
        partition = self._producer.add(tp)
        for batch in build_batches(records, int(time.time() * 1000)):
            self._producer.enqueue(partition, Outgoing(batch.view, batch.record_count, None, None))

    def is_written(self) -> bool:
        """Return whether every record is acknowledged."""
        return self._producer.is_idle

    def end(self) -> None:
        """Commit."""
        self._is_ended = False
        self._session.end(self._on_ended)

    def is_ended(self) -> bool:
        """Return whether the transaction is committed."""
        return self._is_ended

    def run_until(self, is_done: Callable[[], bool], timeout_s: float) -> None:
        """Send requests and handle answers until a condition holds; raises ClusterError at the time-out."""
        deadline = time.monotonic() + timeout_s
        while not is_done():
            now = time.monotonic()
            if now > deadline:
                cluster, name = self._cluster.alias, self._session.transactional_id
                raise ClusterError(
                    f"The cluster '{cluster}' has not decided our transaction as {name} within {timeout_s:.0f} s:"
                    f" {self._issue()}."
                )
            self._network.maintain(now)
            self._cluster.maintain(now)
            self._cluster.raise_refusal()
            self._producer.pump(now)
            self._network.poll(_TICK_S)

    def _issue(self) -> str:
        issues = [partition.issue for partition in self._producer.partitions.values()]
        known = (*issues, self._session.issue, self._cluster.issue)
        return next((issue for issue in known if issue), "no broker has answered")

    def close(self) -> None:
        """Close the connections."""
        self._network.close()

    def _on_ended(self) -> None:
        self._is_ended = True

    # --- ProduceListener ----------------------------------------------------------------------------------------------

    def on_acked(self, tp: TopicPartition, outgoing: Outgoing, base_offset: int) -> None:
        """Do nothing: `is_written` asks the producer."""

    def on_target_failed(self, tp: TopicPartition, outgoing: Outgoing, why: str) -> None:  # noqa: ARG002
        """Raise the broker's refusal."""
        raise ClusterError(f"The cluster '{self._cluster.alias}' does not take our records for {tp.topic}: {why}.")

    def on_stuck(self, tp: TopicPartition) -> None:
        """Do nothing: the producer retries until the time-out."""

    def on_too_large(self, tp: TopicPartition, outgoing: Outgoing) -> list[Outgoing] | str:  # noqa: ARG002
        """Return why the write fails: our records are not split."""
        return "the records are larger than the topic's max.message.bytes"

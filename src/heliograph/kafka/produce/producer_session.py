"""The producer's identity and its transactions.

Without a transactional id this is one InitProducerId to any broker. With one it is Kafka's transaction protocol, first
version (partitions are added by a request of their own; targets 2.5 to 3.x) or second (KIP-890, Kafka 4: a partition is
added by its first batch, and each end of a transaction gives a new epoch). One request is under way at a time.

Invariants:
A. A batch leaves only under the identity it was stamped with, for a partition of the transaction (`admits`).
B. `end` is called only when every batch stamped under this identity was acknowledged, or certainly not appended; so the
   transaction holds exactly the acknowledged ones, and the next begins under the identity that `end` results in.
C. A fenced producer learns it for certain: before an aborted session gives up it asks the coordinator. Only a fenced
   one raises `FencedError`, which is final; everything else raises `TaskError`, which is retried.

To a broker, a producer that was replaced and one whose transaction timed out look the same: both have an outdated
epoch. So each session registers a transaction time-out that differs by a few random milliseconds; the time-out that the
coordinator reports shows whose id it is. Targets before 3.0 do not report it; there the epoch alone decides (KIP-360).
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka.protocol.admin import DescribeTransactionsRequest, DescribeTransactionsResponse
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

from heliograph.errors import FencedError, TaskError
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    FENCED,
    NO_ERROR,
    OPERATION_NOT_ATTEMPTED,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Verdict,
    describe,
    verdict_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network
    from heliograph.model import TopicPartition


_TRANSACTION_KEY = 1
_NEWEST_FIND, _NEWEST_INIT, _NEWEST_ADD, _NEWEST_END, _NEWEST_END_V1 = 3, 4, 3, 5, 3
_OLDEST_INIT_WITH_FENCED_ERROR = 3
_SHORT_PAUSE_S, _MOST_SHORT_PAUSES = 0.01, 20
_PROBE_TIMEOUT_S = 10.0
_PROBE_PAUSE_S = 0.2
_RIVALS_TIME_S = 6.0
_MOST_MARK_MS = 999


class Identity(NamedTuple):
    """The id and epoch by which a broker knows a producer."""

    producer_id: int
    epoch: int


class ProducerSession:
    """The identity of one task's producer, transactional if it has a `transactional_id`."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        *,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
    ) -> None:
        self.transactional_id = transactional_id
        self.identity: Identity | None = None
        self.uses_second_protocol = False
        self.issue: str | None = None
        self._cluster = cluster
        self._network = network
        mark_ms = random.randint(1, _MOST_MARK_MS)  # noqa: S311  (it distinguishes sessions; not a secret)
        self._transaction_timeout_ms = max(1, transaction_timeout_ms - mark_ms)
        self._coordinator: int | None = None
        self._is_waiting = False
        self._retry_at = 0.0
        self._backoff = Backoff(first_s=0.05, most_s=2.0)
        self._short_pauses = 0
        self._added: set[TopicPartition] = set()
        self._to_add: set[TopicPartition] = set()
        self._on_ended: Callable[[], None] | None = None
        self._abort_reason: str | None = None
        self._abort_deadline = 0.0

    @property
    def is_ready(self) -> bool:
        """Return whether batches can be stamped."""
        return self.identity is not None and self._abort_reason is None

    @property
    def is_busy(self) -> bool:
        """Return whether a request to the coordinator is due or under way."""
        return self.identity is None or bool(self._to_add or self._on_ended or self._abort_reason)

    @property
    def admits_all(self) -> bool:
        """Return whether batches for every partition may leave: there is no transaction, or it takes them by itself."""
        return self.transactional_id is None or self.uses_second_protocol

    def admits(self, tp: TopicPartition) -> bool:
        """Return whether a batch for this partition may leave now; if not, the partition is being added."""
        if self.admits_all or tp in self._added:
            return True
        self._to_add.add(tp)
        return False

    def end(self, on_ended: Callable[[], None]) -> None:
        """Commit the open transaction; calls `on_ended` when it is committed."""
        self._on_ended = on_ended

    def abort(self, why: str) -> None:
        """Give up, since the brokers refuse our batches; raises as soon as it is known whether we are fenced."""
        if self.transactional_id is None or self.identity is None:
            raise TaskError(f"{why}; the task begins again.")
        if self._abort_reason is None:
            self._abort_reason = why
            self._abort_deadline = time.monotonic() + _PROBE_TIMEOUT_S

    def pump(self, now: float) -> None:
        """Send the next request that is due."""
        if self._abort_reason is not None and now > self._abort_deadline:
            raise TaskError(f"{self._abort_reason}; the task begins again.")
        if self._is_waiting or now < self._retry_at:
            return
        if self._abort_reason is not None:
            self._probe()
        elif self.identity is None:
            self._init()
        elif self._to_add:
            self._add_partitions()
        elif self._on_ended is not None:
            self._end()

    # --- one request at a time ----------------------------------------------------------------------------------------

    def _connection(self) -> Connection | None:
        if self.transactional_id is None:
            return self._cluster.any_connection()
        if self._coordinator is None:
            self._find_coordinator()
            return None
        connection = self._cluster.connection_to(self._coordinator)
        if connection is None and not self._cluster.is_connecting_to(self._coordinator):
            self._coordinator = None  # its broker is unreachable: another may have taken over
            self._retry_later("the transaction coordinator cannot be reached")
        return connection

    def _send(self, connection: Connection, request: Any, response: Any, on_answer: Callable[[Any], None]) -> None:
        self._is_waiting = True

        def answered(answer: Any, _buffer: Buffer) -> None:
            self._is_waiting = False
            on_answer(answer)

        def lost(why: str) -> None:
            self._is_waiting = False
            self._coordinator = None
            self._retry_later(why)

        connection.request(request, response, answered, lost, self._cluster.request_deadline)
        self._network.flush(connection)

    def _retry_later(self, why: str) -> None:
        self.issue = why
        self._retry_at = time.monotonic() + self._backoff.next_pause_s()

    def _retry_soon(self, why: str) -> None:
        """Retry shortly: the last transaction's markers are being written; a partition without a leader delays them."""
        self._short_pauses += 1
        if self._short_pauses > _MOST_SHORT_PAUSES:
            self._retry_later(why)
        else:
            self.issue = why
            self._retry_at = time.monotonic() + _SHORT_PAUSE_S

    def _refused(self, code: int, doing: str) -> None:
        """Retry, abort or raise, as the code demands."""
        verdict = verdict_of(code)
        if verdict is Verdict.RETRY_SOON:
            self._retry_soon(f"{doing}: {describe(code)}")
            return
        if code in (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED):
            needs = (
                "IDEMPOTENT_WRITE on the cluster"
                if self.transactional_id is None
                else f"WRITE and DESCRIBE on the transactional id {self.transactional_id}"
            )
            raise TaskError(f"the target did not let us {doing} ({describe(code)}); the principal needs {needs}.")
        if verdict in (Verdict.FAIL_PARTITION, Verdict.FAIL_TASK, Verdict.OUT_OF_ORDER):
            if self.identity is None or self._abort_reason is not None:
                raise TaskError(f"the target did not let us {doing}: {describe(code)}.")
            self.abort(f"the target did not let us {doing}: {describe(code)}")
            return
        self._coordinator = None
        self._retry_later(f"{doing}: {describe(code)}")

    def _succeeded(self) -> None:
        self._backoff.reset()
        self._short_pauses = 0
        self.issue = None

    def _find_coordinator(self) -> None:
        connection = self._cluster.any_connection()
        if connection is None:
            return
        request = FindCoordinatorRequest(
            version=connection.version_of(FindCoordinatorRequest, _NEWEST_FIND, 1),
            key=self.transactional_id,
            key_type=_TRANSACTION_KEY,
        )

        def found(answer: Any) -> None:
            if answer.error_code:
                self._refused(answer.error_code, "find the transaction coordinator")
            else:
                self._coordinator = answer.node_id

        self._send(connection, request, FindCoordinatorResponse, found)

    def _init(self) -> None:
        connection = self._connection()
        if connection is None:
            return
        known = self.identity or Identity(-1, -1)
        oldest = _OLDEST_INIT_WITH_FENCED_ERROR if self.transactional_id is not None else 0
        request = InitProducerIdRequest(
            version=connection.version_of(InitProducerIdRequest, _NEWEST_INIT, oldest),
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._transaction_timeout_ms,
            producer_id=known.producer_id,
            producer_epoch=known.epoch,
        )
        self.uses_second_protocol = connection.features.get("transaction.version", 0) >= 2
        self._send(connection, request, InitProducerIdResponse, self._learn_identity)

    def _learn_identity(self, answer: Any) -> None:
        code = answer.error_code
        if self._abort_reason is not None:
            self._finish_abort(code)
        elif code:
            self._refused(code, "initialize our producer")
        else:
            self.identity = Identity(answer.producer_id, answer.producer_epoch)
            self._succeeded()

    def _probe(self) -> None:
        """Ask the coordinator whether another instance has taken our id."""
        connection = self._connection()
        if connection is None:
            return
        if not connection.supports(DescribeTransactionsRequest):
            self._init()
            return
        request = DescribeTransactionsRequest(version=0, transactional_ids=[self.transactional_id])

        def described(answer: Any) -> None:
            (state,) = answer.transaction_states
            if state.error_code:
                self._finish_abort(state.error_code)
            elif state.transaction_timeout_ms != self._transaction_timeout_ms:
                self._finish_abort(PRODUCER_FENCED)
            elif time.monotonic() > self._abort_deadline - _PROBE_TIMEOUT_S + _RIVALS_TIME_S:
                self._finish_abort(NO_ERROR)
            else:  # a rival first ends our transaction, and only then registers its own time-out
                self._retry_at = time.monotonic() + _PROBE_PAUSE_S

        self._send(connection, request, DescribeTransactionsResponse, described)

    def _finish_abort(self, code: int) -> None:
        if code in FENCED:
            raise FencedError(
                f"another instance has taken over as the producer {self.transactional_id}; this one stops so that"
                " nothing is written twice. Run only one instance of a flow with the same group.id."
            )
        if code == NO_ERROR or verdict_of(code) in (Verdict.FAIL_PARTITION, Verdict.FAIL_TASK):
            raise TaskError(f"{self._abort_reason}; the task begins again.")
        self._refused(code, "describe our transactional id")

    def _add_partitions(self) -> None:
        connection = self._connection()
        if connection is None or self.identity is None:
            return
        adding = frozenset(self._to_add)
        by_topic: dict[str, list[int]] = {}
        for tp in adding:
            by_topic.setdefault(tp.topic, []).append(tp.partition)
        topic_class = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = AddPartitionsToTxnRequest(
            version=connection.version_of(AddPartitionsToTxnRequest, _NEWEST_ADD),
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.identity.producer_id,
            v3_and_below_producer_epoch=self.identity.epoch,
            v3_and_below_topics=[topic_class(name=name, partitions=numbers) for name, numbers in by_topic.items()],
        )

        def added(answer: Any) -> None:
            codes = {
                result.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for result in topic.results_by_partition
            }
            failed = codes - {NO_ERROR}
            self._to_add -= adding  # those still needed are added again with their next batch: a topic may be gone
            if failed:  # if one partition is refused, the others were not attempted
                self._cluster.want_metadata()
                self._refused(
                    next(iter(failed - {OPERATION_NOT_ATTEMPTED} or failed)), "add partitions to the transaction"
                )
            else:
                self._added |= adding
                self._succeeded()

        self._send(connection, request, AddPartitionsToTxnResponse, added)

    def _end(self) -> None:
        connection = self._connection()
        if connection is None or self.identity is None:
            return
        newest = _NEWEST_END if self.uses_second_protocol else _NEWEST_END_V1
        version = connection.version_of(EndTxnRequest, newest)
        request = EndTxnRequest(
            version=version,
            transactional_id=self.transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            committed=True,
        )

        def ended(answer: Any) -> None:
            if answer.error_code:
                self._refused(answer.error_code, "commit the transaction")
                return
            if version >= _NEWEST_END and answer.producer_id >= 0:
                self.identity = Identity(answer.producer_id, answer.producer_epoch)
            self._added.clear()
            self._succeeded()
            on_ended, self._on_ended = self._on_ended, None
            if on_ended is not None:
                on_ended()

        self._send(connection, request, EndTxnResponse, ended)


class FurtherSessions:
    """Further producer ids of an idempotent producer, for target partitions that begin again.

    Partitions that have begun again equally often share one: no partition has used it before.
    """

    def __init__(self, cluster: Cluster, network: Network) -> None:
        self._cluster = cluster
        self._network = network
        self._sessions: dict[int, ProducerSession] = {}

    @property
    def issue(self) -> str | None:
        """Return the first reason why a producer id cannot be had now; None if there is none."""
        return next((session.issue for session in self._sessions.values() if session.issue), None)

    def of(self, number: int, used: Callable[[], set[int]]) -> ProducerSession:
        """Return the session of a number, made on first use; only those of used numbers are kept."""
        if number not in self._sessions:
            kept = used()
            self._sessions = {known: session for known, session in self._sessions.items() if known in kept}
            self._sessions[number] = ProducerSession(self._cluster, self._network)
        return self._sessions[number]

    def pump(self, now: float) -> None:
        """Ask for the ids that are not known yet."""
        for session in self._sessions.values():
            if not session.is_ready:
                session.pump(now)

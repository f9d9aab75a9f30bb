"""Brokers that follow a script: real sockets and Kafka's real bytes, answers a test decides.

`ScriptedCluster` behaves like a small Kafka by itself: logs that know producers, fetch sessions, a transaction
coordinator, a group of one member. A test scripts only what differs: `script(ProduceRequest, 6, LOST_AFTER)` answers
the next produce request with error 6, and closes the connection under the one behind it after it took effect. All
requests are kept in `seen`.
"""

from __future__ import annotations

import itertools
import queue
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from kafka.protocol.admin import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)

from heliograph.model import Address
from tests.support.brokers.scripted_group import GROUP_ANSWERS, GROUP_APIS, ScriptedGroup
from tests.support.brokers.scripted_log import ScriptedLog
from tests.support.brokers.scripted_sessions import FetchSessions, epoch_refusal

# Request class: response class, oldest and newest version.
APIS: dict[Any, tuple[Any, int, int]] = {
    ProduceRequest: (ProduceResponse, 3, 12),
    FetchRequest: (FetchResponse, 4, 12),
    ListOffsetsRequest: (ListOffsetsResponse, 1, 5),
    OffsetForLeaderEpochRequest: (OffsetForLeaderEpochResponse, 0, 4),
    MetadataRequest: (MetadataResponse, 1, 12),
    ApiVersionsRequest: (ApiVersionsResponse, 0, 3),
    FindCoordinatorRequest: (FindCoordinatorResponse, 1, 3),
    InitProducerIdRequest: (InitProducerIdResponse, 0, 4),
    AddPartitionsToTxnRequest: (AddPartitionsToTxnResponse, 0, 3),
    EndTxnRequest: (EndTxnResponse, 0, 5),
    DescribeTransactionsRequest: (DescribeTransactionsResponse, 0, 0),
    ListTransactionsRequest: (ListTransactionsResponse, 0, 0),
    CreateTopicsRequest: (CreateTopicsResponse, 2, 5),
    **GROUP_APIS,
}
_BY_KEY = {request.API_KEY: request for request in APIS}
_NOT_LEADER, _UNKNOWN_TOPIC = 6, 3


class Lost:
    """The connection is closed in place of an answer, before or after the request took effect."""

    def __init__(self, *, after: bool) -> None:
        self.after = after


LOST_BEFORE, LOST_AFTER = Lost(after=False), Lost(after=True)


@dataclass(frozen=True)
class AppendedBut:
    """The request takes effect, and its answer is an error all the same."""

    code: int


@dataclass(frozen=True)
class Seen:
    """A request that came."""

    node_id: int
    connection: int
    at: float
    size: int
    request: Any


Action = int | Lost | AppendedBut | Callable[[Seen], Any] | None


class ScriptedCluster:
    """Some brokers, their topics, and the script."""

    def __init__(self, brokers: int = 1, *, topics: dict[str, int], transaction_version: int = 0) -> None:
        self.transaction_version = transaction_version
        self.leaders = {(name, p): 1 for name, count in topics.items() for p in range(count)}
        self.leader_epochs: dict[tuple[str, int], int] = defaultdict(int)
        self.newest: dict[Any, int] = {}  # versions of older brokers; below the oldest, the request is not known
        self.logs: dict[tuple[str, int], ScriptedLog] = defaultdict(ScriptedLog)
        self.read_replicas: dict[tuple[str, int], int] = {}
        self.topic_ids: dict[str, UUID] = {}  # of topics that were created again
        self.coordinator = 1
        self.epoch = 0
        self.transaction_timeout_ms = 0
        self.transactional_ids: list[str] = []
        self.seen: list[Seen] = []
        self.sessions = FetchSessions(self)
        self.group = ScriptedGroup()
        self.lock = threading.RLock()
        self._script: dict[Any, deque[Action]] = defaultdict(deque)
        self._gates: dict[Any, threading.Event] = defaultdict(_open_gate)
        self.brokers = {number: _Broker(self, number) for number in range(1, brokers + 1)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for gate in list(self._gates.values()):
            gate.set()
        for broker in self.brokers.values():
            broker.stop()

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        return tuple(Address("127.0.0.1", broker.port) for broker in self.brokers.values())

    def script(self, request_class: Any, *actions: Action) -> None:
        """What becomes of the next requests of a kind; None is the ordinary answer."""
        with self.lock:
            self._script[request_class].extend(actions)

    def hold(self, request_class: Any) -> None:
        """Answer no request of a kind until `release`."""
        self._gates[request_class].clear()

    def release(self, request_class: Any) -> None:
        self._gates[request_class].set()

    def wait_for(self, request_class: Any) -> None:
        """Block until `release`."""
        self._gates[request_class].wait(60)

    def requests(self, request_class: Any, node_id: int | None = None) -> list[Any]:
        """The requests of a kind that came, to one broker or to any."""
        return [s.request for s in self.seen_of(request_class) if node_id in (None, s.node_id)]

    def seen_of(self, request_class: Any) -> list[Seen]:
        with self.lock:
            return [seen for seen in self.seen if isinstance(seen.request, request_class)]

    def answer(self, seen: Seen) -> Any:
        """The response, or a `Lost`."""
        request_class = type(seen.request)
        self.wait_for(request_class)
        with self.lock:
            script = self._script[request_class]
            action = script.popleft() if script else None
        if isinstance(action, Lost):
            if action.after:
                _ANSWERS[request_class](self, seen, None)
            return action
        if isinstance(action, AppendedBut):
            _ANSWERS[request_class](self, seen, None)
            return _ANSWERS[request_class](self, seen, action.code)
        if callable(action):
            return action(seen)
        return _ANSWERS[request_class](self, seen, action)

    def ordinary(self, seen: Seen, code: int | None = None) -> Any:
        """The answer without a script, for actions that change it."""
        return _ANSWERS[type(seen.request)](self, seen, code)


def _open_gate() -> threading.Event:
    gate = threading.Event()
    gate.set()
    return gate


class _Broker:
    """One listener. A connection has a thread that reads and one that answers: requests are seen while one is held."""

    def __init__(self, cluster: ScriptedCluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = []
        self._numbers = itertools.count()
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """Die: close the listener and every connection."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Close every connection, as brokers do with idle ones."""
        for sock in self._sockets:
            _hang_up(sock)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _address = self._listener.accept()
                self._sockets.append(sock)
                requests: queue.SimpleQueue[Seen | None] = queue.SimpleQueue()
                number = next(self._numbers)
                threading.Thread(target=self._read, args=(sock, number, requests), daemon=True).start()
                threading.Thread(target=self._write, args=(sock, requests), daemon=True).start()

    def _read(self, sock: socket.socket, number: int, requests: queue.SimpleQueue[Seen | None]) -> None:
        with suppress(OSError), sock.makefile("rb") as stream:
            while len(size := stream.read(4)) == 4:
                frame = stream.read(int.from_bytes(size, "big"))
                request_class = _BY_KEY[int.from_bytes(frame[0:2], "big")]
                version = int.from_bytes(frame[2:4], "big")
                request = request_class.decode(frame, version=version, header=True)
                seen = Seen(self._node_id, number, time.monotonic(), len(frame), request)
                with self._cluster.lock:
                    self._cluster.seen.append(seen)
                requests.put(seen)
        requests.put(None)

    def _write(self, sock: socket.socket, requests: queue.SimpleQueue[Seen | None]) -> None:
        with suppress(OSError):
            while (seen := requests.get()) is not None:
                response = self._cluster.answer(seen)
                if isinstance(response, Lost):
                    break
                response.API_VERSION = seen.request.API_VERSION
                response.with_header(seen.request.header.correlation_id)
                sock.sendall(response.encode(header=True, framed=True))
        _hang_up(sock)


def _hang_up(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


# --- the ordinary answers ---------------------------------------------------------------------------------------------


def _api_versions(cluster: ScriptedCluster, _seen: Seen, _code: int | None) -> Any:
    features = [("transaction.version", cluster.transaction_version)] if cluster.transaction_version else []
    return ApiVersionsResponse(
        error_code=0,
        api_keys=[
            ApiVersionsResponse.ApiVersion(
                api_key=request.API_KEY, min_version=oldest, max_version=cluster.newest.get(request, newest)
            )
            for request, (_response, oldest, newest) in APIS.items()
            if cluster.newest.get(request, newest) >= oldest
        ],
        finalized_features_epoch=1,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in features
        ],
    )


def _metadata(cluster: ScriptedCluster, seen: Seen, _code: int | None) -> Any:
    topic_class = MetadataResponse.MetadataResponseTopic
    topics = []
    for asked in seen.request.topics or ():
        partitions = [
            topic_class.MetadataResponsePartition(
                error_code=0,
                partition_index=p,
                leader_id=leader,
                leader_epoch=cluster.leader_epochs[name, p],
                replica_nodes=[leader],
                isr_nodes=[leader],
            )
            for (name, p), leader in cluster.leaders.items()
            if name == asked.name
        ]
        topic_id = cluster.topic_ids.get(asked.name, UUID(int=1 + sum(asked.name.encode())))
        code = 0 if partitions else _UNKNOWN_TOPIC
        topics.append(topic_class(error_code=code, name=asked.name, topic_id=topic_id, partitions=partitions))
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=number, host="127.0.0.1", port=broker.port, rack=None)
        for number, broker in cluster.brokers.items()
    ]
    return MetadataResponse(brokers=brokers, cluster_id="scripted", controller_id=1, topics=topics)


def _list_offsets(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    return ListOffsetsResponse(
        topics=[
            topic_class(
                name=topic.name,
                partitions=[
                    topic_class.ListOffsetsPartitionResponse(
                        partition_index=p.partition_index,
                        error_code=code or 0,
                        offset=0 if p.timestamp == -2 else cluster.logs[topic.name, p.partition_index].end,
                    )
                    for p in topic.partitions
                ],
            )
            for topic in seen.request.topics
        ]
    )


def _offset_for_leader_epoch(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    topic_class = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    topics = []
    for topic in seen.request.topics:
        answers = []
        for p in topic.partitions:
            with cluster.lock:
                tp = (topic.topic, p.partition)
                current = cluster.leader_epochs[tp]
                refusal = code or epoch_refusal(p.current_leader_epoch, current)
                epoch, end = (-1, -1) if refusal else cluster.logs[tp].epoch_end(p.leader_epoch, current)
            answers.append(
                topic_class.EpochEndOffset(
                    error_code=refusal, partition=p.partition, leader_epoch=epoch, end_offset=end
                )
            )
        topics.append(topic_class(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=topics)


def _produce(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    topic_class = ProduceResponse.TopicProduceResponse
    topics = []
    for topic in seen.request.topic_data:
        answers = []
        for data in topic.partition_data:
            result = (code, -1)
            if not code:
                with cluster.lock:
                    tp = (topic.name, data.index)
                    is_leader = cluster.leaders.get(tp) == seen.node_id
                    refusal = _NOT_LEADER if any(name == topic.name for name, _p in cluster.leaders) else _UNKNOWN_TOPIC
                    result = cluster.logs[tp].append(bytes(data.records)) if is_leader else (refusal, -1)
            answers.append(
                topic_class.PartitionProduceResponse(index=data.index, error_code=result[0], base_offset=result[1])
            )
        topics.append(topic_class(name=topic.name, partition_responses=answers))
    return ProduceResponse(responses=topics, throttle_time_ms=0)


def _fetch(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    return cluster.sessions.answer(seen.node_id, seen.request, code)


def _find_coordinator(cluster: ScriptedCluster, _seen: Seen, code: int | None) -> Any:
    broker = cluster.brokers[cluster.coordinator]
    return FindCoordinatorResponse(
        error_code=code or 0, error_message=None, node_id=cluster.coordinator, host="127.0.0.1", port=broker.port
    )


def _init_producer_id(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    if not code:
        cluster.transaction_timeout_ms = seen.request.transaction_timeout_ms
    return InitProducerIdResponse(error_code=code or 0, producer_id=1000, producer_epoch=cluster.epoch)


def _add_partitions(_cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    topic_class = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    result_class = topic_class.AddPartitionsToTxnPartitionResult
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            topic_class(
                name=topic.name,
                results_by_partition=[
                    result_class(partition_index=p, partition_error_code=code or 0) for p in topic.partitions
                ],
            )
            for topic in seen.request.v3_and_below_topics
        ]
    )


def _end_txn(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    """With the second protocol each transaction ends with a new epoch; a repeat is told the same one."""
    if not code and cluster.transaction_version >= 2 and seen.request.producer_epoch == cluster.epoch:
        cluster.epoch += 1
    return EndTxnResponse(error_code=code or 0, producer_id=1000, producer_epoch=cluster.epoch)


def _describe_transactions(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    state_class = DescribeTransactionsResponse.TransactionState
    return DescribeTransactionsResponse(
        transaction_states=[
            state_class(
                error_code=code or 0,
                transactional_id=seen.request.transactional_ids[0],
                transaction_state="Ongoing",
                transaction_timeout_ms=cluster.transaction_timeout_ms,
                transaction_start_time_ms=0,
                producer_id=1000,
                producer_epoch=cluster.epoch,
                topics=[],
            )
        ]
    )


def _list_transactions(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    """Only the coordinator knows ids, and one that is not ready tells none."""
    ids = cluster.transactional_ids if seen.node_id == cluster.coordinator and not code else []
    state_class = ListTransactionsResponse.TransactionState
    return ListTransactionsResponse(
        error_code=code or 0,
        unknown_state_filters=[],
        transaction_states=[
            state_class(transactional_id=name, producer_id=1000, transaction_state="Ongoing") for name in ids
        ],
    )


def _create_topics(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    if not code:
        for topic in seen.request.topics:
            cluster.leaders.update({(topic.name, p): 1 for p in range(topic.num_partitions)})
    result_class = CreateTopicsResponse.CreatableTopicResult
    return CreateTopicsResponse(
        topics=[result_class(name=topic.name, error_code=code or 0) for topic in seen.request.topics]
    )


def _of_the_group(cluster: ScriptedCluster, seen: Seen, code: int | None) -> Any:
    with cluster.lock:
        return GROUP_ANSWERS[type(seen.request)](cluster.group, seen.request, code)


_ANSWERS: dict[Any, Callable[[ScriptedCluster, Seen, int | None], Any]] = {
    ApiVersionsRequest: _api_versions,
    MetadataRequest: _metadata,
    ListOffsetsRequest: _list_offsets,
    OffsetForLeaderEpochRequest: _offset_for_leader_epoch,
    ProduceRequest: _produce,
    FetchRequest: _fetch,
    FindCoordinatorRequest: _find_coordinator,
    InitProducerIdRequest: _init_producer_id,
    AddPartitionsToTxnRequest: _add_partitions,
    EndTxnRequest: _end_txn,
    DescribeTransactionsRequest: _describe_transactions,
    ListTransactionsRequest: _list_transactions,
    CreateTopicsRequest: _create_topics,
    **dict.fromkeys(GROUP_APIS, _of_the_group),
}

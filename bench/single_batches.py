"""Fills topics with batches of exactly one record, faster than a client can.

A producer's client sends one batch in a request then, and the broker answers a few thousand requests a second. Here a
request has one batch for every partition, as the protocol allows, and is made once and sent many times, over several
connections, because a broker works on one request of a connection at a time.
"""

from __future__ import annotations

import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

from kafka.record.default_records import DefaultRecordBatchBuilder

from bench.workloads import Workload
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.wire.messages.produce_messages import encode_produce_request

_VERSION = 8
_CONNECTIONS = 4
_REQUESTS_AHEAD = 32
_SIZE = struct.Struct(">i")


def write_single_batches(cluster: EmbeddedCluster, workload: Workload, values: list[bytes], mark_ms: int) -> None:
    """Every partition gets its share of one-record batches; its last one is stamped `mark_ms`."""
    rounds = workload.records // (workload.topic_count * workload.partitions) - 1
    now_ms = int(time.time() * 1000)
    requests = [_request(workload, value, now_ms) for value in values]
    shares = [len(range(number, rounds, _CONNECTIONS)) for number in range(_CONNECTIONS)]
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for sending in [pool.submit(_send, cluster, requests, share) for share in shares]:
            sending.result()
    _send(cluster, [_request(workload, values[0], mark_ms)], 1)


def _request(workload: Workload, value: bytes, at_ms: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    builder.append(0, at_ms, None, value, [])
    batch = bytes(builder.build())
    partitions = [(number, batch) for number in range(workload.partitions)]
    return b"".join(
        encode_produce_request(_VERSION, 1, "bench", 30_000, dict.fromkeys(workload.topics, partitions)),
    )


def _send(cluster: EmbeddedCluster, requests: list[bytes], count: int) -> None:
    broker = cluster.brokers[0]
    with socket.create_connection(("127.0.0.1", broker.port)) as sock, sock.makefile("rb") as answers:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(count + _REQUESTS_AHEAD):
            if number < count:
                sock.sendall(requests[number % len(requests)])
            if number >= _REQUESTS_AHEAD and number - _REQUESTS_AHEAD < count:
                answers.read(_SIZE.unpack(answers.read(4))[0])

"""Fetches whole batches from the source: one request under way per lane, the next before the last is produced.

A partition's position only moves here, when its records have been handed on, so a lost answer is simply asked for
again. Where a partition has no position, or one outside of the log, both ends of the log are asked for and
`Listener.decide_position` says where to go on: nothing is skipped in silence. A partition is read from its leader, or
from the replica in our rack that the leader names (KIP-392). A request asks for more the longer the round trip is, or
the distance would cap the rate. Records that may be of another log than those before are not handed on (`continuity`).


Produces ready-made batches as an idempotent producer: pipelined, in order per partition, retried for ever.

Rules that keep order and prevent duplicates:
A. A batch gets its sequence when it is first sent; a retry sends the same bytes, and the broker recognises them.
B. A partition stays on its lane, and at most five requests are under way on a lane (the broker remembers five batches
   per producer and partition).
C. After an error a partition sends nothing until every answer it still waits for has come (`draining`); then all
   batches that were not acknowledged go back to the front of the queue, in order.
D. A broker that holds no state of a producer takes whatever sequence comes first. So a partition's first batch travels
   alone until it is acknowledged, and so does the first after an error (the topic may have been created again); after a
   change of leader nothing is sent before every awaited answer has come.
E. A batch is acknowledged exactly once, and in order: `on_acked` of the oldest batch is called first.
F. A batch that may be in the log is given up only with the transaction it may be in, and its sequence is no other's.
G. While the producer is held (`hold`), only what was sent before and what `passes_hold` is sent: a transaction ends
   with what was acknowledged, no more and no less.

Asks for the two ends of partitions' logs: where reading can begin, and where it ends just now.

Both ends are asked for in two requests; only when both are known does the owner hear of them. An answer that is an
error, is lost, or leaves a partition out makes both be asked for again. The end is the high watermark, also where only
committed records are read: a position behind an open transaction is still inside of the log.

The driver's dealings with a cluster: topics, configs and offsets, over connections that block.

Requests are kafka-python's schemas on our own connection, so that authentication, errors and time-outs are those of
the data path. Every error leaves here as a ClusterError whose sentence names the cluster. Who gives a function for the
security has it asked at each new connection, so that a secret that has changed is used. Not thread-safe: each loop has
its own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Kafka's consumer keys that shape a fetch; with `grows_to_bytes` a long round trip may raise the two sizes."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 8 << 20
    partition_max_bytes: int = 1 << 20
    grows_to_bytes: int = 0
    isolation_level: int = 1
    rack: str = ""


@dataclass(frozen=True, slots=True)
class ProduceLimits:
    """Kafka's producer keys that shape a request, and the lanes of ours."""

    lanes: int = 1
    max_in_flight: int = 5
    max_request_bytes: int = 4 << 20
    request_timeout_ms: int = 30_000


EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

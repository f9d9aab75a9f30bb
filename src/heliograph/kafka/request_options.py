"""Options of Fetch, Produce and ListOffsets requests that both the driver and the executors use."""

from __future__ import annotations

from dataclasses import dataclass

EARLIEST, LATEST = -2, -1  # timestamps of a ListOffsets request
READ_UNCOMMITTED, READ_COMMITTED = 0, 1  # isolation levels


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Kafka's consumer keys that shape a fetch; with `grows_to_bytes` the two sizes grow on a high-latency link."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 8 << 20
    partition_max_bytes: int = 1 << 20
    grows_to_bytes: int = 0
    isolation_level: int = 1
    rack: str = ""


@dataclass(frozen=True, slots=True)
class ProduceLimits:
    """Kafka's producer keys that shape a request, and the number of lanes per broker."""

    lanes: int = 1
    max_in_flight: int = 5
    max_request_bytes: int = 4 << 20
    request_timeout_ms: int = 30_000

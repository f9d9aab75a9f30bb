"""The workloads of the benchmark: records, connection, and settings that a workload adds to those of the copier.

Record counts are chosen so that Heliograph copies for about four seconds or more on two cores, and that no side holds
more than 3 GB. A row that is compared with another row of ours names it as its `baseline` and stands right after it:
what a machine gives changes within minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# Java MM2 needs the internal REST server for exactly-once in dedicated mode, and a source read committed. A transaction
# a second instead of one for every poll is the faster choice of the two it has.
_JAVA_EXACTLY_ONCE = """\
dedicated.mode.enable.internal.rest = true
listeners = http://127.0.0.1:0
target.exactly.once.source.support = enabled
{alias}.consumer.isolation.level = read_committed
{alias}->target.transaction.boundary = interval
{alias}->target.transaction.boundary.interval.ms = 1000
"""
_EXACTLY_ONCE = """\
target.exactly.once.source.support = enabled
"""
# A partition is fetched once a round trip at most, so 1 MiB of it (the default) would be the limit: 8 MiB lifts it to
# more than the machine can copy. The whole answer may have 64 MiB then, and the operating system scales the receive
# window itself (-1) instead of Kafka's 64 KiB, which would be 1.3 MB/s a connection on a real link of 50 ms. Heliograph
# needs no such settings: it asks for more by itself the longer the round trip is.
_JAVA_HIGH_LATENCY = """\
{alias}.consumer.max.partition.fetch.bytes = 8388608
{alias}.consumer.fetch.max.bytes = 67108864
{alias}.consumer.receive.buffer.bytes = -1
"""


@dataclass(frozen=True)
class Workload:
    """One row. `batch_bytes` is the writing producer's batch.size; `partitions` are those of each topic."""

    name: str
    records: int
    record_bytes: int
    compression: str = "none"
    batch_bytes: int = 65_536
    has_single_batches: bool = False
    topic_count: int = 1
    partitions: int = 8
    round_trip_ms: float = 0
    is_secured: bool = False
    java_extra: str = ""
    our_extra: str = ""
    baseline: str = ""
    has_java_defaults: bool = False
    is_exactly_once: bool = False
    has_latency: bool = False
    has_loaded_latency: bool = False

    @property
    def topics(self) -> tuple[str, ...]:
        """Its topics on the source."""
        if self.topic_count == 1:
            return (f"bench-{self.name}",)
        return tuple(f"bench-{self.name}-{number}" for number in range(self.topic_count))

    @property
    def pattern(self) -> str:
        """The value of `topics` for a copier."""
        return f"bench-{self.name}" if self.topic_count == 1 else f"bench-{self.name}-.*"

    @property
    def data_bytes(self) -> int:
        """Bytes of all values, before compression."""
        return self.records * self.record_bytes

    def scaled(self, scale: float) -> Workload:
        """The same with fewer records, but some in every partition, and equally many."""
        partitions = self.topic_count * self.partitions
        return replace(self, records=partitions * max(10, int(self.records * scale / partitions)))


WORKLOADS = (
    Workload("500B", 4_000_000, 500, has_java_defaults=True, has_latency=True),
    Workload(
        "500B-exactly-once",
        4_000_000,
        500,
        java_extra=_JAVA_EXACTLY_ONCE,
        our_extra=_EXACTLY_ONCE,
        baseline="500B",
        is_exactly_once=True,
    ),
    Workload("500B-1000-partitions", 4_000_000, 500, topic_count=100, partitions=10, baseline="500B"),
    Workload("500B-tls", 4_000_000, 500, is_secured=True, baseline="500B"),
    Workload("500B-50ms", 4_000_000, 500, round_trip_ms=50, java_extra=_JAVA_HIGH_LATENCY),
    Workload("500B-lz4", 4_000_000, 500, compression="lz4"),
    Workload("500B-gzip", 3_000_000, 500, compression="gzip"),
    Workload("500B-zstd", 4_000_000, 500, compression="zstd"),
    Workload("100B", 8_000_000, 100),
    Workload("100B-one-record-batches", 1_200_000, 100, has_single_batches=True),
    Workload("10KB", 280_000, 10_000, has_loaded_latency=True),
    Workload("500KB", 5_600, 500_000),
)


def selected(names: list[str], scale: float) -> list[Workload]:
    """The rows of these names (all, where there are none) and the rows they are compared with."""
    wanted = set(names or [w.name for w in WORKLOADS])
    wanted |= {w.baseline for w in WORKLOADS if w.name in wanted}
    return [w.scaled(scale) for w in WORKLOADS if w.name in wanted]

"""What crosses to an executor: frozen values, no open resource. Sockets open inside the task.

Secrets travel here, in the task's payload, never in Spark's configuration; they do not show in a repr.


Where secrets may travel: only between parts of one Spark that prove themselves to each other, and encrypted.

A task's payload holds what its clients log in with, and Spark hands it out on ports of its own, also on a local master:
to every user of the machine, unless it asks for a proof (`spark.authenticate`). So that is on by default wherever the
parts of a Spark can share a secret without the user's help. Away from this machine the payload must be encrypted too
(`spark.network.crypto.enabled` or `spark.ssl.rpc.enabled`), or the user says that it need not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING

from heliograph.kafka.request_options import FetchLimits, ProduceLimits
from heliograph.kafka.security.connection_spec import ClusterSpec  # noqa: TC001  (a field's type stays importable)
from heliograph.model import Address, Flow, SourceOffset, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """One partition to copy: behind its `progress` (None: none yet) and, for `--once`, up to `stop_offset`.

    One whose progress was forgotten on purpose is copied again, whatever of it the target has.
    """

    tp: TopicPartition
    remote_topic: str
    source_offsets: SourceOffset | None = None
    stop_offset: int | None = None
    is_forgotten: bool = False

    @property
    def position(self) -> int | None:
        """The first source offset that is not known to be on the target."""
        return None if self.source_offsets is None else self.source_offsets.offset + 1

    @property
    def target(self) -> TopicPartition:
        """The partition of the same number on the target."""
        return TopicPartition(self.remote_topic, self.tp.partition)


@dataclass(frozen=True, slots=True)
class LeaseSpec:
    """Where a task reports, and how long it may go on unheard."""

    address: Address
    token: str = field(repr=False)
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class SyncsSpec:
    """Where a task tells its offset syncs, and how far apart (`offset.lag.max`)."""

    cluster: ClusterSpec
    topic: str
    lag_max: int = 100


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """Everything a copy task needs. `progress` is the cluster of progress where that is not the target.

    `attempt` is the engine's: no two starts have the same, so that a task that was given up is not taken for another.
    """

    task_id: str
    flow: Flow
    source: ClusterSpec
    target: ClusterSpec
    partitions: tuple[PartitionSpec, ...]
    connector: str
    offsets_topic: str
    offsets_partition_count: int
    attempt: int = 0
    lease: LeaseSpec | None = None
    commit_interval_ms: int = 1_000
    buffer_bytes: int = 64 << 20
    offset_reset: str = "earliest"
    limits: FetchLimits = field(default_factory=FetchLimits)
    produce_limits: ProduceLimits = field(default_factory=ProduceLimits)
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    bytes_per_s: int = 0
    tolerates_too_large: bool = False
    on_truncation: str = "continue"
    on_recreated: str = "fail"
    syncs: SyncsSpec | None = None
    source_offsets: ClusterSpec | None = None


def secrets_of(value: object) -> Iterator[str]:
    """Every secret of a value, or of one inside of it, as `carries_secrets` knows it."""
    for part in value if isinstance(value, tuple) else ():
        yield from secrets_of(part)
    for each in fields(value) if is_dataclass(value) else ():
        part = getattr(value, each.name)
        if each.repr or not each.metadata.get("is_secret", True):
            yield from secrets_of(part)
        elif part:
            yield from _texts(part)


def _texts(value: object) -> Iterator[str]:
    """A secret's texts; one of another type counts as a text, too."""
    for part in value if isinstance(value, tuple) else ():
        yield from _texts(part)
    if not isinstance(value, tuple):
        yield value if isinstance(value, str) else repr(value)

"""The specification of a copy task: frozen values without open resources, sent to an executor in the task's payload.

The payload holds the credentials of the task's clients; they never appear in Spark's configuration or in a repr. The
driver decides whether the payload may travel (`driver/spark/secret_transport`); `secrets_of` lists what must be hidden.

A `PartitionSpec` has one encoding, `to_json`: for the payload, and for assignments that the lease carries later.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from heliograph.kafka.request_options import FetchLimits, ProduceLimits
from heliograph.kafka.security.connection_spec import ClusterSpec  # noqa: TC001  (a field's type stays importable)
from heliograph.model import Address, ChangeActions, Flow, SourceOffset, TargetLog, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """One partition to copy: after its source offset (None: none yet) and, for `--once`, up to `stop_offset`.

    If its source offset was reset (a null record), it is copied again, even if the target has its records. A higher
    `opening` than that of the partition which a task copies makes the task begin with it again: where it was, or, if a
    user has moved its source offset (`is_moved`), there. Each task that has released it raises its `opening`, so that
    one that had it before knows whether another may have copied it since. `actions` may change while a task copies it.
    """

    tp: TopicPartition
    remote_topic: str
    source_offsets: SourceOffset | None = None
    stop_offset: int | None = None
    is_reset: bool = False
    opening: int = 0
    is_moved: bool = False
    actions: ChangeActions = field(default_factory=ChangeActions)

    @property
    def position(self) -> int | None:
        """Return the first source offset that is not known to be on the target; None if none is."""
        return None if self.source_offsets is None else self.source_offsets.offset + 1

    @property
    def target(self) -> TopicPartition:
        """Return the partition of the same number on the target."""
        return TopicPartition(self.remote_topic, self.tp.partition)

    def to_json(self) -> list[Any]:
        """Return all fields, in order, as JSON values."""
        source_offsets = None if self.source_offsets is None else _offset_to_json(self.source_offsets)
        how = self.stop_offset, self.is_reset, self.opening, self.is_moved, list(self.actions)
        return [list(self.tp), self.remote_topic, source_offsets, *how]

    @classmethod
    def from_json(cls, values: list[Any]) -> Self:
        """Return the partition that `to_json` encoded."""
        tp, remote_topic, source_offsets, stop_offset, is_reset, opening, is_moved, actions = values
        known = None if source_offsets is None else _offset_from_json(source_offsets)
        how = stop_offset, is_reset, opening, is_moved, ChangeActions(*actions)
        return cls(TopicPartition(*tp), remote_topic, known, *how)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the same encoding, so that a task gets the same value at its start and later."""
        return type(self).from_json, (self.to_json(),)


def _offset_to_json(known: SourceOffset) -> list[Any]:
    topic_id = None if known.topic_id is None else str(known.topic_id)
    epochs = [list(epoch) for epoch in known.epochs]
    log = known.target_log
    target_log = None if log is None else [None if log.topic_id is None else str(log.topic_id), *log[1:]]
    return [list(known.tp), known.offset, known.target_end, topic_id, known.run_count, epochs, target_log]


def _offset_from_json(values: list[Any]) -> SourceOffset:
    tp, offset, target_end, topic_id, run_count, epochs, target_log = values
    return SourceOffset(
        TopicPartition(*tp),
        offset,
        target_end,
        None if topic_id is None else UUID(topic_id),
        run_count,
        tuple((epoch, first_offset) for epoch, first_offset in epochs),
        None if target_log is None else TargetLog(UUID(target_log[0]) if target_log[0] else None, *target_log[1:]),
    )


@dataclass(frozen=True, slots=True)
class LeaseSpec:
    """The address to which a task reports, and how long it runs without an answer."""

    address: Address
    token: str = field(repr=False)
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class SyncsSpec:
    """The topic to which a task writes its offset syncs, and their distance (`offset.lag.max`)."""

    cluster: ClusterSpec
    topic: str
    lag_max: int = 100


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """Everything that a copy task needs. `source_offsets` is the cluster of the source offsets if not the target.

    `attempt` is set by the engine: no two starts have the same, so that an abandoned task is not mistaken for another.
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
    max_commit_interval_ms: int = 20_000  # of a transaction
    bytes_per_s: int = 0
    tolerates_too_large: bool = False
    syncs: SyncsSpec | None = None
    source_offsets: ClusterSpec | None = None


def secrets_of(value: object) -> Iterator[str]:
    """Yield every secret of a value and of the values inside it: the fields that a repr does not show."""
    for part in value if isinstance(value, tuple) else ():
        yield from secrets_of(part)
    for each in fields(value) if is_dataclass(value) else ():
        part = getattr(value, each.name)
        if each.repr or not each.metadata.get("is_secret", True):
            yield from secrets_of(part)
        elif part:
            yield from _texts(part)


def _texts(value: object) -> Iterator[str]:
    """Yield the strings of a secret; a value of another type counts as its repr."""
    for part in value if isinstance(value, tuple) else ():
        yield from _texts(part)
    if not isinstance(value, tuple):
        yield value if isinstance(value, str) else repr(value)

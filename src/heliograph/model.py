"""Values that every layer shares: plain, frozen, without I/O.

Vocabulary: *source* and *target* are clusters; *upstream* and *downstream* are offsets on them; a *flow* is one ordered
pair of clusters, written `A->B`; a *remote topic* is the copy on the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from uuid import UUID


ConnectorKind = Literal["source", "checkpoint", "heartbeat"]


class TopicPartition(NamedTuple):
    """One partition of one topic, written `topic-partition` as Kafka does."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Flow(NamedTuple):
    """Replication from one cluster to another, by their aliases."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


class Address(NamedTuple):
    """The address of a broker or a driver."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config of a topic as a broker describes it."""

    name: str
    value: str | None
    is_default: bool = False
    is_read_only: bool = False
    is_sensitive: bool = False
    is_static_broker_config: bool = False
    is_topic_config: bool = False  # set on the topic itself, not a default of any kind


class AclBinding(NamedTuple):
    """One ACL of a topic, in Kafka's terms: `ALLOW`, `READ`, `LITERAL`."""

    topic: str
    principal: str
    host: str
    operation: str
    permission: str
    pattern: str = "LITERAL"

    def __str__(self) -> str:
        return f"{self.permission} {self.operation} on {self.topic} to {self.principal} from {self.host}"


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as a cluster describes it."""

    name: str
    partition_count: int
    configs: tuple[ConfigEntry, ...] = ()


class TargetLog(NamedTuple):
    """The records that a flow has written to one log of the target: their first source offset, and their number.

    A topic that was created again has another `topic_id`; None is not known. `is_exact` is False if the number is an
    estimate: earlier versions did not count. `cut_at` is set when the log was seen to go back: the offset of the first
    batch that got one which another batch had; it and what follows it is not counted.
    """

    topic_id: UUID | None
    first_offset: int
    records: int = 0
    is_exact: bool = True
    cut_at: int | None = None


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """The source offset of one partition: the offset of the last record that is safe on the target.

    Beside MM2's offset it has what a restart needs: the end of the target's log after that record (`target_end`), to
    find what was written since; the `topic_id`, to notice another topic; the number of records up to it without a gap
    on both sides (`run_count`), to continue the run; the last leader epochs, each with the first offset copied of it
    (`epochs`), to notice that the log was truncated; and the `target_log`, to notice that the remote topic was deleted.
    """

    tp: TopicPartition
    offset: int
    target_end: int | None = None
    topic_id: UUID | None = None
    run_count: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    target_log: TargetLog | None = None

    @property
    def run(self) -> OffsetRun | None:
        """The run that ends with the last record."""
        if not self.run_count or self.target_end is None:
            return None
        return OffsetRun(self.offset + 1 - self.run_count, self.target_end - self.run_count, self.run_count)


class ChangeActions(NamedTuple):
    """The actions for a topic whose logs have changed, one of each key.

    They are `heliograph.on.truncation`, `heliograph.on.recreated` and `heliograph.on.target.deleted`.
    """

    truncation: str = "continue"
    recreated: str = "fail"
    target_deleted: str = "recopy"


class OffsetRun(NamedTuple):
    """Records that follow each other without a gap on both sides: `upstream + i` was copied to `downstream + i`."""

    upstream: int
    downstream: int
    count: int  # type: ignore[assignment]  # a tuple's own `count` is of no use here


class OffsetSync(NamedTuple):
    """One record's offset on both clusters; `runs` cover all records up to it, None if Java MM2 wrote the sync.

    `log_id` is the id of the remote topic that has the record; None is not known.
    """

    tp: TopicPartition
    upstream: int
    downstream: int
    runs: tuple[OffsetRun, ...] | None = None
    log_id: UUID | None = None


class Checkpoint(NamedTuple):
    """A group's committed offset on the source, and its translation; `tp` is of the remote topic.

    `moved` is saved with it for group sync (`mirror/groups/moved_offsets.py`); None in a record of Java MM2. `log_id`
    is the id of the remote topic that the translation is for; None is not known.
    """

    group: str
    tp: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""
    moved: tuple[int, ...] | None = None
    log_id: UUID | None = None


class CommittedOffset(NamedTuple):
    """The offset that a consumer group has committed for a partition, with its metadata.

    A consumer usually adds the leader epoch of the last record it read; who only sets an offset has none (-1).
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupType(StrEnum):
    """The types of groups with offsets; on one cluster a name belongs to one type.

    Classic consumer groups and those of KIP-848 are one type here: their offsets are read and set by the same requests.
    """

    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Heartbeat(NamedTuple):
    """A heartbeat of a flow, written to its target."""

    source: str
    target: str
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A topic to create on the target."""

    name: str
    partition_count: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """A remote topic that gets as many partitions as its source."""

    name: str
    partition_count: int


class ConfigChange(NamedTuple):
    """One config of a remote topic; `new` None removes it, so that the target's default applies again."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """The configs of one remote topic that differ."""

    topic: str
    changes: tuple[ConfigChange, ...]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 record`, `2,000 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class RestartRequest(NamedTuple):
    """A user's request to restart partitions of a flow: all, those of a topic, or one of them.

    `start` is where they continue: at the "beginning" or the "end" of the source's log, or at an offset; None is where
    they are.
    """

    topic: str | None = None
    partition: int | None = None
    start: str | int | None = None

    def covers(self, tp: TopicPartition) -> bool:
        """Return whether a partition is to be restarted."""
        return self.topic in (None, tp.topic) and self.partition in (None, tp.partition)


class RestartedPartition(NamedTuple):
    """A partition that is restarted: at an offset, if it was moved, which leaves out so many offsets (< 0: repeats)."""

    tp: TopicPartition
    position: int | None = None
    skipped: int | None = None

    @property
    def left_out(self) -> tuple[int, int] | None:
        """The first and the last offset that are not copied because of that; None if there are none."""
        if self.position is None or self.skipped is None or self.skipped <= 0:
            return None
        return self.position - self.skipped, self.position - 1

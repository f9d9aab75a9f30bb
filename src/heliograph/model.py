"""Names and values shared by every layer; plain, frozen, without behaviour that needs the outside world.

Vocabulary: *source* and *target* are clusters; *upstream* and *downstream* are offsets on them; a *flow* is one
ordered pair of clusters, written `A->B`; a *remote topic* is the copy on the target.


Which topics a flow replicates, and what must be created on the target for that. Plans are data for `worker`.

Rule (MM2): `(filter accepts OR heartbeats) AND NOT internal AND NOT cycle`. Beyond MM2, no copy has the name of a topic
in which the worker itself keeps its connectors, their progress and states: who writes the source would write connectors
of the worker. Invariants: a plan never deletes a topic
and never shrinks one; planning again after applying a plan gives an empty plan.

What must change so that a remote topic's configs follow its source's. Pure; `worker` gathers and applies.

MM2's rule: a config that is the default on the source is removed from the remote topic (with `use.defaults.from =
source`: set to the source's default); any other is set. MM2 writes all of them every time; a plan holds only those
whose value on the target differs. Excluded properties are in no plan.

Invariants: planning again after applying a plan gives an empty plan; a plan names no config the target does not have.

One connector of a Connect worker, understood: its map of strings over the worker's settings.

Which place wins (later over earlier), as in Connect and MM2's connectors:

- settings: the worker's keys, then the connector's own;
- a client of the source or the target: `source.cluster.`, `consumer.`, `source.consumer.` of the connector;
- the producer of records: the worker's `bootstrap.servers` and `producer.`, then the connector's `producer.override.`;
- progress: the worker's own connection. With exactly-once it goes with the records, since one transaction holds both.

So where the worker's cluster is not the target, only `producer.override.bootstrap.servers` brings records there. Values
keep their placeholders until they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from uuid import UUID


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
    """Where a broker or a driver listens."""

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
    """One ACL of a topic, in Kafka's words: `ALLOW`, `READ`, `LITERAL`."""

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
    """A topic as seen on a cluster."""

    name: str
    partition_count: int
    configs: tuple[ConfigEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """Progress of one source partition: the offset of the last record that is safe on the target.

    Beside what MM2 notes, ours also says how long the target's log was behind that record (`target_end`), which topic
    it was (`topic_id`), how many records up to it follow each other without a gap on both sides (`run_count`), and of
    which leaders' epochs the last ones are, each with the first offset copied of it (`epochs`): the first lets a
    restart see what was written since, the second that it is another topic, the third continue a run, the fourth that
    the log was cut.
    """

    tp: TopicPartition
    offset: int
    target_end: int | None = None
    topic_id: UUID | None = None
    run_count: int = 0
    epochs: tuple[tuple[int, int], ...] = ()

    @property
    def run(self) -> OffsetRun | None:
        """The run that ends with the last record."""
        if not self.run_count or self.target_end is None:
            return None
        return OffsetRun(self.offset + 1 - self.run_count, self.target_end - self.run_count, self.run_count)


class OffsetRun(NamedTuple):
    """Records that follow each other without a gap on both sides: `upstream + i` was copied to `downstream + i`."""

    upstream: int
    downstream: int
    count: int  # type: ignore[assignment]  # a tuple's own `count` is of no use here


class OffsetSync(NamedTuple):
    """One record's offset on both sides; `runs` say the same of all records up to it, None where Java wrote it."""

    tp: TopicPartition
    upstream: int
    downstream: int
    runs: tuple[OffsetRun, ...] | None = None


class Checkpoint(NamedTuple):
    """A group's committed offset on the source, and where that is on the target; `tp` is of the remote topic."""

    group: str
    tp: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""


class CommittedOffset(NamedTuple):
    """What a consumer group has committed for a partition: the next offset it reads, and a note of its own."""

    offset: int
    metadata: str = ""


class GroupType(StrEnum):
    """The types of groups with offsets; on one cluster a name belongs to one type.

    Classic consumer groups and those of KIP-848 are one type here: their offsets are read and set by the same requests.
    """

    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Heartbeat(NamedTuple):
    """A sign of life of a flow, written to its target."""

    source: str
    target: str
    timestamp_ms: int


def counted(number: int, noun: str) -> str:
    """A number and what it counts: `1 record`, `2,000 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A remote topic that is missing on the target."""

    name: str
    partition_count: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """A remote topic with fewer partitions than its source."""

    name: str
    partition_count: int


class ConfigChange(NamedTuple):
    """One config of a remote topic; `new` None removes it, so that the target's default holds again."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """The configs of one remote topic that differ."""

    topic: str
    changes: tuple[ConfigChange, ...]


ConnectorKind = Literal["source", "checkpoint", "heartbeat"]

"""Rows of the table: what MM2 asks of its Connect worker and Heliograph acts on. Read as `keys.GROUP_ID` and so on."""

from __future__ import annotations

from heliograph.config.table import HIGH, WORKER, define
from heliograph.config.types import INT, LONG, REPLICATION_FACTOR_CHECK, SHORT, STRING, at_least, one_of

OFFSET_FLUSH_INTERVAL_MS = define(
    "offset.flush.interval.ms",
    LONG,
    1_000,
    WORKER,
    "How often progress is committed. Bounds the duplicates after a crash.",
    at_least(1),
    ours=True,
    mm2_default=60_000,
)
OFFSET_STORAGE_TOPIC = define(
    "offset.storage.topic",
    STRING,
    "",
    WORKER,
    "Topic of progress on the target; where it is not set, `mm2-offsets.A.internal`.",
    importance=HIGH,
)
OFFSET_STORAGE_PARTITIONS = define(
    "offset.storage.partitions",
    INT,
    25,
    WORKER,
    "Partitions of the topic of progress.",
    at_least(1),
)
OFFSET_STORAGE_REPLICATION_FACTOR = define(
    "offset.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Replication factor of the topic of progress; -1 is the broker's default. Where it is not set, no more than the"
    " target has brokers.",
    REPLICATION_FACTOR_CHECK,
)
GROUP_ID = define(
    "group.id",
    STRING,
    "",
    WORKER,
    "Group of the workers, and the beginning of transactional ids; where it is not set, `A-mm2`.",
    importance=HIGH,
)
EXACTLY_ONCE_SOURCE_SUPPORT = define(
    "exactly.once.source.support",
    STRING,
    "disabled",
    WORKER,
    "`enabled`: records and progress are written in one transaction per commit (KIP-618); `preparing` is read as off.",
    one_of("disabled", "preparing", "enabled"),
    importance=HIGH,
    since="3.3",
)

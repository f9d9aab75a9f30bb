"""Rows of MirrorCheckpointConnector and MirrorHeartbeatConnector: consumer groups, checkpoints, heartbeats."""

from __future__ import annotations

from heliograph.config.keys.table import (
    BOOLEAN,
    CHECKPOINT,
    CLASS,
    HEARTBEAT,
    HIGH,
    LIST,
    LONG,
    REPLICATION_FACTOR_CHECK,
    SHORT,
    at_least,
    define,
)

GROUPS = define(
    "groups",
    LIST,
    (".*",),
    CHECKPOINT,
    "Consumer groups to replicate: names or Java regexes.",
    importance=HIGH,
    since="2.4",
)
GROUPS_EXCLUDE = define(
    "groups.exclude",
    LIST,
    ("console-consumer-.*", "connect-.*", "__.*"),
    CHECKPOINT,
    "Consumer groups that are not replicated: names or Java regexes. Takes precedence over `groups`.",
    importance=HIGH,
    since="2.7",
)
GROUP_FILTER_CLASS = define(
    "group.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultGroupFilter",
    CHECKPOINT,
    "Class that selects the consumer groups to replicate.",
    since="2.4",
)
REFRESH_GROUPS_ENABLED = define(
    "refresh.groups.enabled",
    BOOLEAN,
    True,
    CHECKPOINT,
    "Whether to check periodically for new consumer groups.",
    since="2.4",
)
REFRESH_GROUPS_INTERVAL_SECONDS = define(
    "refresh.groups.interval.seconds",
    LONG,
    30,
    CHECKPOINT,
    "How often to check for new consumer groups.",
    at_least(1),
    ours=True,
    since="2.4",
    mm2_default=600,
)
EMIT_CHECKPOINTS_ENABLED = define(
    "emit.checkpoints.enabled",
    BOOLEAN,
    True,
    CHECKPOINT,
    "Whether checkpoints are written. A checkpoint contains the translated offset of a group.",
    since="2.4",
)
EMIT_CHECKPOINTS_INTERVAL_SECONDS = define(
    "emit.checkpoints.interval.seconds",
    LONG,
    60,
    CHECKPOINT,
    "How often checkpoints are written.",
    at_least(1),
    since="2.4",
)
SYNC_GROUP_OFFSETS_ENABLED = define(
    "sync.group.offsets.enabled",
    BOOLEAN,
    False,
    CHECKPOINT,
    "Whether translated offsets are committed on the target for groups without members there (KIP-545).",
    since="2.7",
)
SYNC_GROUP_OFFSETS_INTERVAL_SECONDS = define(
    "sync.group.offsets.interval.seconds",
    LONG,
    60,
    CHECKPOINT,
    "How often group offsets are committed on the target.",
    at_least(1),
    since="2.7",
)
SHARE_GROUPS_ENABLED = define(
    "heliograph.share.groups.enabled",
    BOOLEAN,
    True,
    CHECKPOINT,
    "Whether share groups (KIP-932) that `groups` selects are replicated: with `sync.group.offsets.enabled`, translated"
    " start offsets are set for share groups without members on the target. No checkpoints are written for them.",
    ours=True,
)
CHECKPOINTS_REPLICATION_FACTOR = define(
    "checkpoints.topic.replication.factor",
    SHORT,
    3,
    CHECKPOINT,
    "Replication factor of the checkpoints topic; -1 is the broker's default. If it is not set, at most the"
    " number of the cluster's brokers.",
    REPLICATION_FACTOR_CHECK,
    since="2.4",
)
EMIT_HEARTBEATS_ENABLED = define(
    "emit.heartbeats.enabled",
    BOOLEAN,
    True,
    HEARTBEAT,
    "Whether heartbeats are written to the target, for each pair of clusters, even if no flow is enabled between them.",
    since="2.4",
)
EMIT_HEARTBEATS_INTERVAL_SECONDS = define(
    "emit.heartbeats.interval.seconds",
    LONG,
    1,
    HEARTBEAT,
    "How often heartbeats are written.",
    at_least(1),
    since="2.4",
)
HEARTBEATS_REPLICATION_FACTOR = define(
    "heartbeats.topic.replication.factor",
    SHORT,
    3,
    HEARTBEAT,
    "Replication factor of the heartbeats topic; -1 is the broker's default. If it is not set, at most the"
    " number of the cluster's brokers.",
    REPLICATION_FACTOR_CHECK,
    since="2.4",
)

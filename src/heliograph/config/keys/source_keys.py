"""Rows of MirrorSourceConnector: which topics are copied, what is kept equal on the target, offset syncs."""

from __future__ import annotations

from heliograph.config.keys.table import (
    BOOLEAN,
    CHECKPOINT,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    MEDIUM,
    REPLICATION_FACTOR_CHECK,
    SHORT,
    SOURCE,
    STRING,
    at_least,
    define,
    one_of,
)

# --- source connector -----------------------------------------------------------------------------
TOPICS = define(
    "topics",
    LIST,
    (".*",),
    SOURCE | CHECKPOINT,
    "Topics to replicate: names or Java regexes.",
    importance=HIGH,
    since="2.4",
    is_live=True,
)
TOPICS_EXCLUDE = define(
    "topics.exclude",
    LIST,
    (r"mm2.*\.internal", r".*\.replica", "__.*"),
    SOURCE | CHECKPOINT,
    "Topics that are not replicated: names or Java regexes. Takes precedence over `topics`.",
    importance=HIGH,
    since="2.7",
    is_live=True,
)
TOPIC_FILTER_CLASS = define(
    "topic.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultTopicFilter",
    SOURCE | CHECKPOINT,
    "Class that selects the topics to replicate.",
    since="2.4",
)
CONFIG_PROPERTIES_EXCLUDE = define(
    "config.properties.exclude",
    LIST,
    (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    ),
    SOURCE,
    "Topic configs that are not replicated: names or Java regexes.",
    importance=HIGH,
    since="2.7",
    is_live=True,
)
CONFIG_PROPERTY_FILTER_CLASS = define(
    "config.property.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
    SOURCE,
    "Class that selects the topic configs to replicate.",
    since="2.4",
)
USE_DEFAULTS_FROM = define(
    "use.defaults.from",
    STRING,
    "target",
    SOURCE,
    "`source` writes the source's default values onto remote topics; `target` leaves the target's defaults there.",
    one_of("source", "target"),
    importance=MEDIUM,
    since="3.5",
    is_live=True,
)
REFRESH_TOPICS_ENABLED = define(
    "refresh.topics.enabled",
    BOOLEAN,
    True,
    SOURCE,
    "Whether to check periodically for new topics and partitions.",
    since="2.4",
    is_live=True,
)
REFRESH_TOPICS_INTERVAL_SECONDS = define(
    "refresh.topics.interval.seconds",
    LONG,
    30,
    SOURCE,
    "How often to check for new topics and partitions.",
    at_least(1),
    ours=True,
    since="2.4",
    mm2_default=600,
    is_live=True,
)
SYNC_TOPIC_CONFIGS_ENABLED = define(
    "sync.topic.configs.enabled",
    BOOLEAN,
    True,
    SOURCE,
    "Whether topic configs are synchronized with the source.",
    since="2.4",
    is_live=True,
)
SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS = define(
    "sync.topic.configs.interval.seconds",
    LONG,
    600,
    SOURCE,
    "How often topic configs are synchronized.",
    at_least(1),
    since="2.4",
    is_live=True,
)
SYNC_TOPIC_ACLS_ENABLED = define(
    "sync.topic.acls.enabled",
    BOOLEAN,
    True,
    SOURCE,
    "Whether topic ACLs are synchronized with the source.",
    since="2.4",
    is_live=True,
)
SYNC_TOPIC_ACLS_INTERVAL_SECONDS = define(
    "sync.topic.acls.interval.seconds",
    LONG,
    600,
    SOURCE,
    "How often topic ACLs are synchronized.",
    at_least(1),
    since="2.4",
    is_live=True,
)
REPLICATION_FACTOR = define(
    "replication.factor",
    INT,
    2,
    SOURCE,
    "Replication factor of created remote topics; -1 is the broker's default. If it is not set, at most the"
    " number of the target's brokers.",
    REPLICATION_FACTOR_CHECK,
    since="2.4",
    is_live=True,
)
OFFSET_SYNCS_REPLICATION_FACTOR = define(
    "offset-syncs.topic.replication.factor",
    SHORT,
    3,
    SOURCE,
    "Replication factor of the offset-syncs topic; -1 is the broker's default. If it is not set, at most the"
    " number of the cluster's brokers.",
    REPLICATION_FACTOR_CHECK,
    since="2.4",
)
OFFSET_SYNCS_LOCATION = define(
    "offset-syncs.topic.location",
    STRING,
    "source",
    SOURCE | CHECKPOINT,
    "Cluster that holds the offset-syncs topic. `target` needs no permission to write on the source (KIP-716).",
    one_of("source", "target"),
    since="3.0",
)
OFFSET_LAG_MAX = define(
    "offset.lag.max",
    LONG,
    100,
    SOURCE,
    "Maximum distance between two offset syncs, in records. It limits how many records a group rereads if Java MM2"
    " translates its offsets; Heliograph's own translation is always exact.",
    at_least(0),
    since="2.4",
)
EMIT_OFFSET_SYNCS_ENABLED = define(
    "emit.offset-syncs.enabled",
    BOOLEAN,
    True,
    SOURCE | CHECKPOINT,
    "Whether offset syncs are written. Without them there are no checkpoints and no group offsets (KIP-1031).",
)
HEARTBEATS_REPLICATION = define(
    "heartbeats.replication.enabled",
    BOOLEAN,
    True,
    SOURCE,
    "Whether heartbeats topics are replicated even if the topic filter excludes them (KIP-1089).",
    is_live=True,
)

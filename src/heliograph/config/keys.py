"""THE TABLE: every configuration key Heliograph knows, each written once. Here stand the rows it acts on.

The checkpoint and heartbeat connectors' are in `checkpoint_keys`, the worker's in `worker_keys`, Kafka's client keys in
`client_keys`. Keys that are known but not acted on are in the `inert_` files: each says why, and is ignored or refused.

Names and defaults are MirrorMaker 2 4.3.1's; rows marked `ours=True` are Heliograph's own or have a default of our own
(docs/decisions/0005-defaults-that-differ.md says why). `docs/reference/configuration.md` is generated from this table
and a test keeps it fresh. Another compares names, types and defaults with Kafka's. A key in no row is reported as
unknown, with the nearest name.
"""

from __future__ import annotations

from heliograph.config import (
    checkpoint_keys,
    client_keys,
    inert_client_keys,
    inert_connector_keys,
    inert_security_keys,
    inert_worker_keys,
    security_keys,
    store_keys,
    table,
    worker_keys,
)
from heliograph.config.table import (
    CHECKPOINT,
    CONNECTOR,
    FILE,
    HIGH,
    MEDIUM,
    NO_STRINGS,
    SOURCE,
    WORKER,
    define,
)
from heliograph.config.types import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    REPLICATION_FACTOR_CHECK,
    SHORT,
    STRING,
    Check,
    at_least,
    one_of,
)

# Imported for their rows, which stand in the same table.
_OTHER_ROWS = (
    client_keys,
    inert_connector_keys,
    inert_worker_keys,
    inert_client_keys,
    inert_security_keys,
    security_keys,
    store_keys,
)
TABLE = table.TABLE

# --- the dedicated-mode file ----------------------------------------------------------------------
CLUSTERS = define(
    "clusters", LIST, NO_STRINGS, FILE, "Aliases of all clusters the file speaks of.", importance=HIGH, since="2.4"
)
CONFIG_PROVIDERS = define(
    "config.providers",
    LIST,
    NO_STRINGS,
    FILE | CONNECTOR | WORKER,
    "Names of the config providers that `${name:path:key}` may ask, each with its `config.providers.NAME.class`."
    " Kafka's providers of environment variables, files and folders are there.",
    since="2.0",
)

# --- all three connectors -------------------------------------------------------------------------
ENABLED = define(
    "enabled",
    BOOLEAN,
    True,
    CONNECTOR,
    "Whether the flow replicates. A flow in a dedicated-mode file is off until its `A->B.enabled` says true.",
    since="2.4",
)
SOURCE_ALIAS = define(
    "source.cluster.alias",
    STRING,
    "",
    CONNECTOR,
    "Alias of the source, and the prefix of remote topics. A dedicated-mode file gives it by the flow's name.",
    importance=HIGH,
    since="2.4",
)
TARGET_ALIAS = define(
    "target.cluster.alias",
    STRING,
    "target",
    CONNECTOR,
    "Alias of the target. A dedicated-mode file gives it by the flow's name.",
    importance=HIGH,
    since="2.4",
)
ADMIN_TIMEOUT_MS = define(
    "admin.timeout.ms", LONG, 60_000, CONNECTOR, "Longest wait for one administrative step.", at_least(1), since="2.4"
)
POLICY_CLASS = define(
    "replication.policy.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    CONNECTOR,
    "How remote topics are named: Default (`A.topic`) or Identity (`topic`).",
    since="2.4",
)
POLICY_SEPARATOR = define(
    "replication.policy.separator",
    STRING,
    ".",
    CONNECTOR,
    "Stands between the source's alias and the topic.",
    since="2.4",
)
POLICY_INTERNAL_SEPARATOR = define(
    "replication.policy.internal.topic.separator.enabled",
    BOOLEAN,
    True,
    CONNECTOR,
    "Whether internal topics use the separator too; false keeps their dots (KIP-949).",
    since="3.6",
)
TASKS_MAX = define(
    "tasks.max",
    INT,
    0,
    CONNECTOR,
    "Most tasks of a connector. Where it is not set, as many as partitions and Spark slots can use.",
    at_least(0),
    ours=True,
    importance=HIGH,
    mm2_default=1,
)
ERRORS_TOLERANCE = define(
    "errors.tolerance",
    STRING,
    "none",
    CONNECTOR,
    "What a record larger than the target takes does: `none` stops its partition; `all` leaves it out, counted.",
    one_of("none", "all"),
    importance=MEDIUM,
    since="2.0",
)
EXACTLY_ONCE_SUPPORT = define(
    "exactly.once.support",
    STRING,
    "requested",
    SOURCE,
    "`required` makes the flow refuse to start unless it runs exactly once: the target's `exactly.once.source.support`"
    " is enabled and the source is read with read_committed.",
    one_of("requested", "required"),
    importance=MEDIUM,
    since="3.3",
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
)
TOPICS_EXCLUDE = define(
    "topics.exclude",
    LIST,
    (r"mm2.*\.internal", r".*\.replica", "__.*"),
    SOURCE | CHECKPOINT,
    "Topics to leave out; wins over `topics`.",
    importance=HIGH,
    since="2.7",
)
TOPIC_FILTER_CLASS = define(
    "topic.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultTopicFilter",
    SOURCE | CHECKPOINT,
    "Class that decides which topics count.",
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
    "Topic configs that are not copied: names or Java regexes.",
    importance=HIGH,
    since="2.7",
)
CONFIG_PROPERTY_FILTER_CLASS = define(
    "config.property.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
    SOURCE,
    "Class that decides which topic configs are copied.",
    since="2.4",
)
for _old, _new, _scope in (
    ("topics.blacklist", "topics.exclude", SOURCE | CHECKPOINT),
    ("groups.blacklist", "groups.exclude", CHECKPOINT),
    ("config.properties.blacklist", "config.properties.exclude", SOURCE),
):
    define(_old, LIST, NO_STRINGS, _scope, "Old name, removed in Kafka 4.0.", replaced_by=_new, since="2.4")
USE_DEFAULTS_FROM = define(
    "use.defaults.from",
    STRING,
    "target",
    SOURCE,
    "`source` writes the source's default values onto remote topics; `target` leaves the target's defaults there.",
    one_of("source", "target"),
    importance=MEDIUM,
    since="3.5",
)
REFRESH_TOPICS_ENABLED = define(
    "refresh.topics.enabled", BOOLEAN, True, SOURCE, "Whether new topics and partitions are looked for.", since="2.4"
)
REFRESH_TOPICS_INTERVAL_SECONDS = define(
    "refresh.topics.interval.seconds",
    LONG,
    30,
    SOURCE,
    "How often new topics and partitions are looked for.",
    at_least(1),
    ours=True,
    since="2.4",
    mm2_default=600,
)
SYNC_TOPIC_CONFIGS_ENABLED = define(
    "sync.topic.configs.enabled", BOOLEAN, True, SOURCE, "Whether topic configs follow the source's.", since="2.4"
)
SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS = define(
    "sync.topic.configs.interval.seconds",
    LONG,
    600,
    SOURCE,
    "How often configs are compared.",
    at_least(1),
    since="2.4",
)
SYNC_TOPIC_ACLS_ENABLED = define(
    "sync.topic.acls.enabled", BOOLEAN, True, SOURCE, "Whether topic ACLs follow the source's.", since="2.4"
)
SYNC_TOPIC_ACLS_INTERVAL_SECONDS = define(
    "sync.topic.acls.interval.seconds", LONG, 600, SOURCE, "How often ACLs are compared.", at_least(1), since="2.4"
)
REPLICATION_FACTOR = define(
    "replication.factor",
    INT,
    2,
    SOURCE,
    "Replication factor of created remote topics; -1 is the broker's default. Where it is not set, no more than the"
    " target has brokers.",
    REPLICATION_FACTOR_CHECK,
    since="2.4",
)
OFFSET_SYNCS_REPLICATION_FACTOR = define(
    "offset-syncs.topic.replication.factor",
    SHORT,
    3,
    SOURCE,
    "Replication factor of the offset-syncs topic; -1 is the broker's default. Where it is not set, no more than the"
    " cluster has brokers.",
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
    "Spacing of offset syncs in records. It bounds how much a group re-reads that Java MM2 translates; Heliograph's own"
    " translation is exact whatever it is.",
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
    "Whether heartbeats topics are replicated even where the topic filter leaves them out (KIP-1089).",
)

# --- rows that stand elsewhere, under the names the code uses --------------------------------------
GROUPS = checkpoint_keys.GROUPS
GROUPS_EXCLUDE = checkpoint_keys.GROUPS_EXCLUDE
GROUP_FILTER_CLASS = checkpoint_keys.GROUP_FILTER_CLASS
REFRESH_GROUPS_ENABLED = checkpoint_keys.REFRESH_GROUPS_ENABLED
REFRESH_GROUPS_INTERVAL_SECONDS = checkpoint_keys.REFRESH_GROUPS_INTERVAL_SECONDS
EMIT_CHECKPOINTS_ENABLED = checkpoint_keys.EMIT_CHECKPOINTS_ENABLED
EMIT_CHECKPOINTS_INTERVAL_SECONDS = checkpoint_keys.EMIT_CHECKPOINTS_INTERVAL_SECONDS
SYNC_GROUP_OFFSETS_ENABLED = checkpoint_keys.SYNC_GROUP_OFFSETS_ENABLED
SYNC_GROUP_OFFSETS_INTERVAL_SECONDS = checkpoint_keys.SYNC_GROUP_OFFSETS_INTERVAL_SECONDS
SHARE_GROUPS_ENABLED = checkpoint_keys.SHARE_GROUPS_ENABLED
CHECKPOINTS_REPLICATION_FACTOR = checkpoint_keys.CHECKPOINTS_REPLICATION_FACTOR
EMIT_HEARTBEATS_ENABLED = checkpoint_keys.EMIT_HEARTBEATS_ENABLED
EMIT_HEARTBEATS_INTERVAL_SECONDS = checkpoint_keys.EMIT_HEARTBEATS_INTERVAL_SECONDS
HEARTBEATS_REPLICATION_FACTOR = checkpoint_keys.HEARTBEATS_REPLICATION_FACTOR
OFFSET_FLUSH_INTERVAL_MS = worker_keys.OFFSET_FLUSH_INTERVAL_MS
OFFSET_STORAGE_TOPIC = worker_keys.OFFSET_STORAGE_TOPIC
OFFSET_STORAGE_PARTITIONS = worker_keys.OFFSET_STORAGE_PARTITIONS
OFFSET_STORAGE_REPLICATION_FACTOR = worker_keys.OFFSET_STORAGE_REPLICATION_FACTOR
GROUP_ID = worker_keys.GROUP_ID
EXACTLY_ONCE_SOURCE_SUPPORT = worker_keys.EXACTLY_ONCE_SOURCE_SUPPORT
RESTART_BACKOFF_MAX_MS = worker_keys.RESTART_BACKOFF_MAX_MS
RESTART_ATTEMPTS_MAX = worker_keys.RESTART_ATTEMPTS_MAX

# --- Heliograph's own -----------------------------------------------------------------------------
TASK_BUFFER_BYTES = define(
    "heliograph.task.buffer.bytes",
    LONG,
    64 << 20,
    SOURCE,
    "Most bytes of fetched, not yet acknowledged batches that a task holds.",
    at_least(1 << 20),
    ours=True,
)
CONNECTIONS_PER_BROKER = define(
    "heliograph.connections.per.broker",
    INT,
    1,
    SOURCE,
    "Connections a task opens to each broker for data, at the least. More than one helps over long round trips and on"
    " busy brokers. A source broker 20 ms or more away is read over at least two, unless fetch.max.bytes or"
    " max.partition.fetch.bytes is given.",
    Check(lambda value: 1 <= value <= 16, "between 1 and 16"),
    ours=True,
)
CONNECT_TIMEOUT_MS = define(
    "heliograph.connect.timeout.ms",
    LONG,
    15_000,
    SOURCE,
    "How long a flow waits at its start for a cluster to answer before it is FAILED, and tried again.",
    at_least(1),
    ours=True,
)
LEASE_TIMEOUT_MS = define(
    "heliograph.lease.timeout.ms",
    LONG,
    10_000,
    SOURCE,
    "After this long without an answer from the driver, a task ends itself.",
    at_least(1_000),
    ours=True,
)
UNENCRYPTED_SECRETS_ALLOWED = define(
    "heliograph.spark.unencrypted.secrets.allowed",
    BOOLEAN,
    default=False,
    scope=SOURCE,
    doc="Whether passwords and keys may travel to executors of another machine where Spark does not encrypt that way.",
    ours=True,
)
THROTTLE_BYTES_PER_SECOND = define(
    "heliograph.throttle.bytes.per.second",
    LONG,
    0,
    SOURCE,
    "Most bytes per second a flow reads, shared evenly by its tasks; 0 is no limit.",
    at_least(0),
    ours=True,
)
ON_TRUNCATION = define(
    "heliograph.on.truncation",
    STRING,
    "continue",
    SOURCE,
    "What to do where records are gone from the source before they were copied, or its log was cut after they were:"
    " `continue` behind the gap, or at the cut, telling and counting it, or `fail` the partition.",
    one_of("continue", "fail"),
    ours=True,
)
ON_RECREATED = define(
    "heliograph.on.recreated",
    STRING,
    "fail",
    SOURCE,
    "What to do where a source topic was deleted and created again: `fail` its partitions, or `restart` them from the"
    " new topic's beginning.",
    one_of("fail", "restart"),
    ours=True,
)
RENAME_TOPICS = define(
    "heliograph.rename.topics",
    LIST,
    NO_STRINGS,
    CONNECTOR,
    "Rules of RenameReplicationPolicy, `from=to`: names, or Java regexes whose groups are `$1` on the right.",
    ours=True,
)
RENAME_OTHERWISE = define(
    "heliograph.rename.otherwise",
    STRING,
    "default",
    CONNECTOR,
    "What RenameReplicationPolicy calls the copy of a topic that no rule renames: `default` is `A.topic`, `identity` is"
    " `topic`.",
    one_of("default", "identity"),
    ours=True,
)

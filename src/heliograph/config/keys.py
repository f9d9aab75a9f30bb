"""THE TABLE: every configuration key Heliograph knows, each written once (Kafka's client keys: in `client_keys`).

Names and defaults are MirrorMaker 2 4.3.1's; rows marked `ours=True` are Heliograph's own or have a default of our own
(docs/decisions/0005-defaults-that-differ.md says why). `docs/reference/configuration.md` is generated from this table
and a test keeps it fresh. A key in no row is reported as unknown, with the nearest name.
"""

from __future__ import annotations

from heliograph.config import client_keys, table
from heliograph.config.table import (
    CHECKPOINT,
    CONNECTOR,
    FILE,
    HEARTBEAT,
    NO_STRINGS,
    SOURCE,
    WORKER,
    define,
)
from heliograph.config.types import BOOLEAN, CLASS, INT, LIST, LONG, SHORT, STRING, Check, at_least, one_of

_CLIENT_ROWS = client_keys  # imported for its rows, which stand in the same table
TABLE = table.TABLE

# --- the dedicated-mode file ----------------------------------------------------------------------
CLUSTERS = define("clusters", LIST, NO_STRINGS, FILE, "Aliases of all clusters the file speaks of.")
define(
    "dedicated.mode.enable.internal.rest",
    BOOLEAN,
    False,
    FILE,
    "Lets several MM2 nodes talk to each other (KIP-710).",
)
CONFIG_PROVIDERS = define(
    "config.providers", LIST, NO_STRINGS, FILE | CONNECTOR | WORKER, "Names of the config providers."
)

# --- all three connectors -------------------------------------------------------------------------
ENABLED = define("enabled", BOOLEAN, True, CONNECTOR, "Whether the flow replicates; false by default in a file.")
SOURCE_ALIAS = define("source.cluster.alias", STRING, "", CONNECTOR, "Alias of the source; prefix of remote topics.")
TARGET_ALIAS = define("target.cluster.alias", STRING, "target", CONNECTOR, "Alias of the target.")
ADMIN_TIMEOUT_MS = define(
    "admin.timeout.ms", LONG, 60_000, CONNECTOR, "Longest wait for one administrative step.", at_least(1)
)
POLICY_CLASS = define(
    "replication.policy.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    CONNECTOR | WORKER,
    "How remote topics are named: Default (`A.topic`) or Identity (`topic`).",
)
POLICY_SEPARATOR = define(
    "replication.policy.separator",
    STRING,
    ".",
    CONNECTOR | WORKER,
    "Stands between the source's alias and the topic.",
)
POLICY_INTERNAL_SEPARATOR = define(
    "replication.policy.internal.topic.separator.enabled",
    BOOLEAN,
    True,
    CONNECTOR | WORKER,
    "Whether internal topics use the separator too (KIP-949).",
)
define(
    "forwarding.admin.class",
    CLASS,
    "org.apache.kafka.clients.admin.ForwardingAdmin",
    CONNECTOR,
    "Admin client class.",
)
define(
    "metric.reporters",
    LIST,
    NO_STRINGS,
    CONNECTOR | WORKER,
    "Java metric reporters; Heliograph has its own metrics.",
)
define("name", STRING, "", CONNECTOR, "Name of the connector.")
define("connector.class", CLASS, "", CONNECTOR, "Class of the connector.")
define("connector.plugin.version", STRING, "", CONNECTOR, "Version range of the connector.")
TASKS_MAX = define(
    "tasks.max",
    INT,
    0,
    CONNECTOR,
    "Most tasks of a connector. Where it is not set, as many as partitions and Spark slots can use.",
    at_least(0),
    ours=True,
)
define("tasks.max.enforce", BOOLEAN, True, CONNECTOR, "Deprecated in Kafka.")
define("config.action.reload", STRING, "restart", CONNECTOR, "What a changed secret does to a connector.")
define("transforms", LIST, NO_STRINGS, CONNECTOR, "Single message transforms.")
define("predicates", LIST, NO_STRINGS, CONNECTOR, "Predicates of transforms.")
define("errors.retry.timeout", LONG, 0, CONNECTOR, "How long a failed operation is tried again.")
define("errors.retry.delay.max.ms", LONG, 60_000, CONNECTOR, "Longest pause between two tries.")
ERRORS_TOLERANCE = define(
    "errors.tolerance",
    STRING,
    "none",
    CONNECTOR,
    "What a record larger than the target takes does: `none` stops its partition; `all` leaves it out, counted.",
    one_of("none", "all"),
)
define("errors.log.enable", BOOLEAN, False, CONNECTOR, "Whether tolerated errors are logged.")
define("errors.log.include.messages", BOOLEAN, False, CONNECTOR, "Whether the record is logged too.")
define("exactly.once.support", STRING, "requested", CONNECTOR, "Whether the connector must run exactly once.")
define("transaction.boundary", STRING, "poll", CONNECTOR, "Where transactions end.")
define("transaction.boundary.interval.ms", STRING, "", CONNECTOR, "How long a transaction lasts.")
define("offsets.storage.topic", STRING, "", CONNECTOR, "Offsets topic of this connector alone.")
define("topic.creation.groups", LIST, NO_STRINGS, CONNECTOR, "Groups of topic creation rules.")
for _part in ("key", "value", "header"):
    define(
        f"{_part}.converter",
        CLASS,
        "",
        CONNECTOR | WORKER,
        f"Converter of the {_part}; bytes are always kept as they are.",
    )
    define(f"{_part}.converter.plugin.version", STRING, "", CONNECTOR, f"Version range of the {_part} converter.")

# --- source connector -----------------------------------------------------------------------------
TOPICS = define("topics", LIST, (".*",), SOURCE | CHECKPOINT, "Topics to replicate: names or Java regexes.")
TOPICS_EXCLUDE = define(
    "topics.exclude",
    LIST,
    (r"mm2.*\.internal", r".*\.replica", "__.*"),
    SOURCE | CHECKPOINT,
    "Topics to leave out; wins over `topics`.",
)
define("topics.blacklist", LIST, NO_STRINGS, SOURCE | CHECKPOINT, "Old name.", replaced_by="topics.exclude")
TOPIC_FILTER_CLASS = define(
    "topic.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultTopicFilter",
    SOURCE | CHECKPOINT,
    "Class that decides which topics count.",
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
    "Topic configs that are not copied.",
)
define(
    "config.properties.blacklist",
    LIST,
    NO_STRINGS,
    SOURCE,
    "Old name.",
    replaced_by="config.properties.exclude",
)
CONFIG_PROPERTY_FILTER_CLASS = define(
    "config.property.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
    SOURCE,
    "Class that decides which topic configs are copied.",
)
USE_DEFAULTS_FROM = define(
    "use.defaults.from",
    STRING,
    "target",
    SOURCE,
    "`source` writes the source's default values onto remote topics.",
    one_of("source", "target"),
)
define(
    "consumer.poll.timeout.ms",
    LONG,
    1000,
    SOURCE | CHECKPOINT,
    "Poll time-out of MM2's consumer.",
    at_least(0),
)
REFRESH_TOPICS_ENABLED = define("refresh.topics.enabled", BOOLEAN, True, SOURCE, "Whether new topics are looked for.")
REFRESH_TOPICS_INTERVAL_SECONDS = define(
    "refresh.topics.interval.seconds",
    LONG,
    30,
    SOURCE,
    "How often new topics and partitions are looked for (MM2: 600).",
    at_least(1),
    ours=True,
)
SYNC_TOPIC_CONFIGS_ENABLED = define(
    "sync.topic.configs.enabled", BOOLEAN, True, SOURCE, "Whether topic configs follow the source's."
)
SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS = define(
    "sync.topic.configs.interval.seconds", LONG, 600, SOURCE, "How often configs are compared.", at_least(1)
)
SYNC_TOPIC_ACLS_ENABLED = define(
    "sync.topic.acls.enabled", BOOLEAN, True, SOURCE, "Whether topic ACLs follow the source's."
)
SYNC_TOPIC_ACLS_INTERVAL_SECONDS = define(
    "sync.topic.acls.interval.seconds", LONG, 600, SOURCE, "How often ACLs are compared.", at_least(1)
)
REPLICATION_FACTOR = define(
    "replication.factor",
    INT,
    2,
    SOURCE,
    "Replication factor of created remote topics; -1 is the broker's default.",
)
OFFSET_SYNCS_REPLICATION_FACTOR = define(
    "offset-syncs.topic.replication.factor", SHORT, 3, SOURCE, "Replication factor of the offset-syncs topic."
)
OFFSET_SYNCS_LOCATION = define(
    "offset-syncs.topic.location",
    STRING,
    "source",
    SOURCE | CHECKPOINT,
    "Cluster that holds the offset-syncs topic.",
    one_of("source", "target"),
)
OFFSET_LAG_MAX = define("offset.lag.max", LONG, 100, SOURCE, "Spacing of offset syncs in records.", at_least(0))
EMIT_OFFSET_SYNCS_ENABLED = define(
    "emit.offset-syncs.enabled",
    BOOLEAN,
    True,
    SOURCE | CHECKPOINT,
    "Whether offset syncs are written (KIP-1031).",
)
HEARTBEATS_REPLICATION = define(
    "heartbeats.replication.enabled",
    BOOLEAN,
    True,
    SOURCE,
    "Whether heartbeats topics are replicated (KIP-1089).",
)
define("metric.names.formats", LIST, ("legacy",), SOURCE | CHECKPOINT, "Names of JMX metrics (KIP-1280).")

# --- checkpoint and heartbeat connectors ----------------------------------------------------------
GROUPS = define("groups", LIST, (".*",), CHECKPOINT, "Consumer groups to follow: names or Java regexes.")
GROUPS_EXCLUDE = define(
    "groups.exclude", LIST, ("console-consumer-.*", "connect-.*", "__.*"), CHECKPOINT, "Groups to leave out."
)
define("groups.blacklist", LIST, NO_STRINGS, CHECKPOINT, "Old name.", replaced_by="groups.exclude")
GROUP_FILTER_CLASS = define(
    "group.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultGroupFilter",
    CHECKPOINT,
    "Group filter.",
)
REFRESH_GROUPS_ENABLED = define(
    "refresh.groups.enabled", BOOLEAN, True, CHECKPOINT, "Whether new groups are looked for."
)
REFRESH_GROUPS_INTERVAL_SECONDS = define(
    "refresh.groups.interval.seconds",
    LONG,
    600,
    CHECKPOINT,
    "How often new groups are looked for.",
    at_least(1),
)
EMIT_CHECKPOINTS_ENABLED = define(
    "emit.checkpoints.enabled", BOOLEAN, True, CHECKPOINT, "Whether checkpoints are written."
)
EMIT_CHECKPOINTS_INTERVAL_SECONDS = define(
    "emit.checkpoints.interval.seconds",
    LONG,
    60,
    CHECKPOINT,
    "How often checkpoints are written.",
    at_least(1),
)
SYNC_GROUP_OFFSETS_ENABLED = define(
    "sync.group.offsets.enabled", BOOLEAN, False, CHECKPOINT, "Whether groups on the target follow (KIP-545)."
)
SYNC_GROUP_OFFSETS_INTERVAL_SECONDS = define(
    "sync.group.offsets.interval.seconds", LONG, 60, CHECKPOINT, "How often groups are written.", at_least(1)
)
CHECKPOINTS_REPLICATION_FACTOR = define(
    "checkpoints.topic.replication.factor",
    SHORT,
    3,
    CHECKPOINT,
    "Replication factor of the checkpoints topic.",
)
EMIT_HEARTBEATS_ENABLED = define("emit.heartbeats.enabled", BOOLEAN, True, HEARTBEAT, "Whether heartbeats are written.")
EMIT_HEARTBEATS_INTERVAL_SECONDS = define(
    "emit.heartbeats.interval.seconds", LONG, 1, HEARTBEAT, "How often heartbeats are written.", at_least(1)
)
HEARTBEATS_REPLICATION_FACTOR = define(
    "heartbeats.topic.replication.factor", SHORT, 3, HEARTBEAT, "Replication factor of the heartbeats topic."
)

# --- Connect worker -------------------------------------------------------------------------------
OFFSET_FLUSH_INTERVAL_MS = define(
    "offset.flush.interval.ms",
    LONG,
    1_000,
    WORKER,
    "How often progress is committed (MM2: 60000). Bounds the duplicates after a crash.",
    at_least(1),
    ours=True,
)
define("offset.flush.timeout.ms", LONG, 5_000, WORKER, "Longest wait for a commit.")
OFFSET_STORAGE_TOPIC = define(
    "offset.storage.topic", STRING, "", WORKER, "Topic of progress: `mm2-offsets.A.internal`."
)
OFFSET_STORAGE_PARTITIONS = define("offset.storage.partitions", INT, 25, WORKER, "Its partitions.", at_least(1))
OFFSET_STORAGE_REPLICATION_FACTOR = define(
    "offset.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Its replication factor; fewer where the target has fewer brokers.",
)
define("status.storage.topic", STRING, "", WORKER, "Topic of states: `mm2-status.A.internal`.")
define("status.storage.partitions", INT, 5, WORKER, "Its partitions.", at_least(1))
define("status.storage.replication.factor", SHORT, 3, WORKER, "Its replication factor.")
define("config.storage.topic", STRING, "", WORKER, "Topic of configs: `mm2-configs.A.internal`.")
define("config.storage.replication.factor", SHORT, 3, WORKER, "Its replication factor.")
GROUP_ID = define("group.id", STRING, "", WORKER, "Group of the workers: `A-mm2`.")
EXACTLY_ONCE_SOURCE_SUPPORT = define(
    "exactly.once.source.support",
    STRING,
    "disabled",
    WORKER,
    "`enabled`: records and progress are written in one transaction per commit (KIP-618); `preparing` is read as off.",
    one_of("disabled", "preparing", "enabled"),
)
for _name, _default, _doc in (
    ("connect.protocol", "sessioned", "Rebalance protocol of Connect."),
    ("plugin.path", "", "Where Java plugins are."),
    ("plugin.discovery", "hybrid_warn", "How Java plugins are found."),
    ("connector.client.config.override.policy", "All", "Which client overrides are allowed."),
    ("inter.worker.key.generation.algorithm", "HmacSHA256", "Key algorithm between workers."),
    ("inter.worker.signature.algorithm", "HmacSHA256", "Signature between workers."),
    ("listeners", "http://:8083", "Where REST listens."),
    ("rest.advertised.host.name", "", "Host other workers see."),
    ("rest.advertised.port", "", "Port other workers see."),
    ("rest.advertised.listener", "", "Listener other workers see."),
    ("access.control.allow.origin", "", "CORS origins."),
    ("access.control.allow.methods", "", "CORS methods."),
    ("response.http.headers.config", "", "Extra response headers."),
    ("ssl.client.auth", "none", "Whether REST wants client certificates."),
):
    define(_name, STRING, _default, WORKER, _doc)
for _name, _number, _doc in (
    ("rebalance.timeout.ms", 60_000, "Longest rebalance."),
    ("session.timeout.ms", 10_000, "When a silent worker is given up."),
    ("heartbeat.interval.ms", 3_000, "How often workers report."),
    ("scheduled.rebalance.max.delay.ms", 300_000, "How long a lost worker's tasks wait."),
    ("task.shutdown.graceful.timeout.ms", 5_000, "How long a task may take to stop."),
    ("worker.sync.timeout.ms", 3_000, "Longest wait to catch up with the others."),
    ("worker.unsync.backoff.ms", 300_000, "Pause after failing to catch up."),
    ("inter.worker.key.ttl.ms", 3_600_000, "Life of a session key."),
    ("metrics.num.samples", 2, "Samples a metric keeps."),
    ("metrics.sample.window.ms", 30_000, "Length of a sample."),
):
    define(_name, LONG, _number, WORKER, _doc)
for _name, _doc in (
    ("topic.creation.enable", "Whether connectors may create topics."),
    ("topic.tracking.enable", "Whether used topics are recorded."),
    ("topic.tracking.allow.reset", "Whether that record may be cleared."),
):
    define(_name, BOOLEAN, True, WORKER, _doc)

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
    "Connections a task opens to each broker for data. More than one helps over long round trips and on busy brokers.",
    Check(lambda value: 1 <= value <= 16, "between 1 and 16"),
    ours=True,
)
CONNECT_TIMEOUT_MS = define(
    "heliograph.connect.timeout.ms",
    LONG,
    15_000,
    SOURCE,
    "How long `run` waits at its start for a cluster to answer before it gives up.",
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
    "What to do where records are gone from the source before they were copied: `continue` behind the gap, telling and"
    " counting it, or `fail` the partition.",
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

"""Rows of a dedicated-mode file, of all three connectors, and of Connect's framework.

Java MM2's connectors take the framework's keys like any other connector; most have no effect here, or are refused
because the records would differ.
"""

from __future__ import annotations

from heliograph.config.keys.table import (
    BOOLEAN,
    CHECKPOINT,
    CLASS,
    CONNECTOR,
    FILE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NO_STRINGS,
    SOURCE,
    STRING,
    WORKER,
    Check,
    at_least,
    define,
    define_all,
    ignored,
    one_of,
    rejected,
)

# --- the dedicated-mode file ----------------------------------------------------------------------
CLUSTERS = define(
    "clusters", LIST, NO_STRINGS, FILE, "Aliases of all clusters of the file.", importance=HIGH, since="2.4"
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
define(
    "forwarding.admin.class",
    CLASS,
    "org.apache.kafka.clients.admin.ForwardingAdmin",
    CONNECTOR,
    "Java class through which topics, configs and ACLs are changed (KIP-787).",
    since="3.4",
    support=rejected("administrative changes cannot go through a Java class; remove it."),
)
define(
    "consumer.poll.timeout.ms",
    LONG,
    1_000,
    SOURCE | CHECKPOINT,
    "How long a poll of Java MM2's consumer waits.",
    at_least(0),
    since="2.4",
    support=ignored("nothing polls; `fetch.max.wait.ms` after `A.consumer.` is how long a fetch waits"),
)
_METRIC_NAMES: Check[tuple[str, ...]] = Check(lambda names: set(names) <= {"legacy", "new"}, "legacy, new or both")
define(
    "metric.names.formats",
    LIST,
    ("legacy",),
    SOURCE | CHECKPOINT,
    "Which names Java MM2's metrics have (KIP-1280).",
    _METRIC_NAMES,
    since="4.3",
    support=ignored("Java's metrics are not there"),
)
define_all(
    SOURCE | CHECKPOINT,
    ignored("MM2 writes it for its own tasks"),
    ("task.assigned.partitions", LIST, NO_STRINGS, LOW, "2.4", "Partitions of one task."),
    ("task.assigned.groups", LIST, NO_STRINGS, LOW, "2.4", "Consumer groups of one task."),
    ("task.index", INT, None, LOW, "2.4", "Number of a task."),
)
define_all(
    CONNECTOR,
    ignored("it was removed in Kafka 4.0: configs are always altered incrementally, metrics always name the source"),
    ("use.incremental.alter.configs", STRING, "requested", LOW, "3.5", "Whether configs were altered one by one."),
    ("add.source.alias.to.metrics", BOOLEAN, False, LOW, "3.5", "Whether metrics named the source."),
    ("auto.include.jmx.reporter", BOOLEAN, True, LOW, "3.4", "Whether metrics were always reported to JMX."),
)

# --- Connect's framework --------------------------------------------------------------------------
define_all(
    CONNECTOR,
    ignored("a flow's connectors have Java MM2's names and are not loaded by class"),
    ("name", STRING, "", HIGH, "", "Name of the connector."),
    ("connector.class", STRING, "", HIGH, "", "Class of the connector."),
    ("connector.plugin.version", STRING, "", MEDIUM, "4.1", "Versions of the connector that may be used."),
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
define_all(
    CONNECTOR,
    ignored("a flow never has more tasks than `tasks.max`"),
    ("tasks.max.enforce", BOOLEAN, True, LOW, "3.8", "Whether too many tasks are an error; deprecated in Kafka."),
)
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
for _part in ("key", "value", "header"):
    define(
        f"{_part}.converter",
        CLASS,
        "",
        CONNECTOR | WORKER,
        f"Java class that converts the {_part} of each record. Java MM2 sets ByteArrayConverter: bytes stay.",
        support=rejected(
            f"Heliograph keeps the bytes of every {_part}, as ByteArrayConverter does; remove it, or leave this flow to"
            " Java MM2.",
            _BYTES,
        ),
    )
    define(
        f"{_part}.converter.plugin.version",
        STRING,
        "",
        CONNECTOR | WORKER,
        f"Versions of the {_part} converter that may be used.",
        since="4.1",
        support=ignored("there are no converters"),
    )
define_all(
    CONNECTOR,
    rejected(
        "Heliograph copies batches as they are and runs no transforms; remove it, or leave this flow to Java MM2."
    ),
    ("transforms", LIST, NO_STRINGS, LOW, "", "Single message transforms: Java classes that change each record."),
    ("predicates", LIST, NO_STRINGS, LOW, "2.6", "Conditions of transforms."),
)
define(
    "config.action.reload",
    STRING,
    "restart",
    CONNECTOR,
    "What a changed value of a config provider does.",
    one_of("none", "restart"),
    since="2.0",
    support=ignored("a new connection always asks the config providers again"),
)

# --- errors ---------------------------------------------------------------------------------------
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
define_all(
    CONNECTOR,
    ignored("there is no conversion or transform that could fail; a failed request is sent again"),
    ("errors.retry.timeout", LONG, 0, MEDIUM, "2.0", "How long a failed conversion or transform is tried again."),
    ("errors.retry.delay.max.ms", LONG, 60_000, MEDIUM, "2.0", "Longest pause between two such tries."),
)
define_all(
    CONNECTOR,
    ignored("records that are left out (`errors.tolerance=all`) are always counted and logged, never their content"),
    ("errors.log.enable", BOOLEAN, False, MEDIUM, "2.0", "Whether tolerated errors are logged."),
    ("errors.log.include.messages", BOOLEAN, False, MEDIUM, "2.0", "Whether the record is logged with them."),
)

# --- exactly-once ---------------------------------------------------------------------------------
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
_TRANSACTIONS = ignored("with exactly-once, a transaction ends every `offset.flush.interval.ms`")
define(
    "transaction.boundary",
    STRING,
    "poll",
    SOURCE,
    "Where a transaction ends: with each poll or after an interval.",
    one_of("poll", "interval"),
    importance=MEDIUM,
    since="3.3",
    support=_TRANSACTIONS,
)
define_all(
    SOURCE,
    _TRANSACTIONS,
    ("transaction.boundary.interval.ms", LONG, None, LOW, "3.3", "How long a transaction lasts."),
)
define(
    "offsets.storage.topic",
    STRING,
    "",
    SOURCE,
    "A topic of source offsets for this connector alone.",
    since="3.3",
    support=rejected(
        "source offsets are kept in the worker's topic; set `offset.storage.topic` after the target's alias."
    ),
)

# --- topics that Connect creates ------------------------------------------------------------------
define_all(
    SOURCE,
    ignored("remote topics follow `replication.factor` and the source's own settings"),
    ("topic.creation.groups", LIST, NO_STRINGS, LOW, "2.6", "Groups of rules for topics that Connect creates."),
)

# --- names before Kafka 4.0 -----------------------------------------------------------------------
for _old, _new, _scope in (
    ("topics.blacklist", "topics.exclude", SOURCE | CHECKPOINT),
    ("groups.blacklist", "groups.exclude", CHECKPOINT),
    ("config.properties.blacklist", "config.properties.exclude", SOURCE),
):
    define(_old, LIST, NO_STRINGS, _scope, "Old name, removed in Kafka 4.0.", replaced_by=_new, since="2.4")

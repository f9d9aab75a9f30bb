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
    "clusters", LIST, NO_STRINGS, FILE, "Aliases of all clusters in the file.", importance=HIGH, since="2.4"
)
CONFIG_PROVIDERS = define(
    "config.providers",
    LIST,
    NO_STRINGS,
    FILE | CONNECTOR | WORKER,
    "Names of the config providers for `${name:path:key}`, each with its `config.providers.NAME.class`."
    " Kafka's providers for environment variables, files and directories are supported.",
    since="2.0",
)

# --- all three connectors -------------------------------------------------------------------------
ENABLED = define(
    "enabled",
    BOOLEAN,
    True,
    CONNECTOR,
    "Whether the flow replicates. In a dedicated-mode file a flow is disabled unless `A->B.enabled` is true.",
    since="2.4",
)
SOURCE_ALIAS = define(
    "source.cluster.alias",
    STRING,
    "",
    CONNECTOR,
    "Alias of the source cluster, and prefix of remote topics. In a dedicated-mode file the name of the flow sets it.",
    importance=HIGH,
    since="2.4",
)
TARGET_ALIAS = define(
    "target.cluster.alias",
    STRING,
    "target",
    CONNECTOR,
    "Alias of the target cluster. In a dedicated-mode file the name of the flow sets it.",
    importance=HIGH,
    since="2.4",
)
ADMIN_TIMEOUT_MS = define(
    "admin.timeout.ms",
    LONG,
    60_000,
    CONNECTOR,
    "Timeout of administrative requests, such as creating topics.",
    at_least(1),
    since="2.4",
)
POLICY_CLASS = define(
    "replication.policy.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    CONNECTOR,
    "Class that names remote topics: DefaultReplicationPolicy (`A.topic`) or IdentityReplicationPolicy (`topic`).",
    since="2.4",
)
POLICY_SEPARATOR = define(
    "replication.policy.separator",
    STRING,
    ".",
    CONNECTOR,
    "Separator between the alias of the source and the name of the topic.",
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
    "Poll timeout of Java MM2's consumer.",
    at_least(0),
    since="2.4",
    support=ignored("Heliograph does not poll; `A.consumer.fetch.max.wait.ms` limits how long a fetch waits"),
)
_METRIC_NAMES: Check[tuple[str, ...]] = Check(
    lambda names: bool(names) and set(names) <= {"legacy", "new"}, "legacy, new or both"
)
METRIC_NAMES_FORMATS = define(
    "metric.names.formats",
    LIST,
    ("legacy",),
    SOURCE | CHECKPOINT,
    "Names of MM2's own metrics at `/metrics` (KIP-1280): `new` are those of `type=plugins`. The page has the names"
    " that any connector of the process asks for.",
    _METRIC_NAMES,
    since="4.3",
    is_live=True,
)
define_all(
    SOURCE | CHECKPOINT,
    ignored("MM2 writes it for its own tasks"),
    ("task.assigned.partitions", LIST, NO_STRINGS, LOW, "2.4", "Partitions of one task."),
    ("task.assigned.groups", LIST, NO_STRINGS, LOW, "2.4", "Consumer groups of one task."),
    ("task.index", INT, None, LOW, "2.4", "Index of a task."),
)
define_all(
    CONNECTOR,
    ignored("it was removed in Kafka 4.0: configs are always altered incrementally, metrics always name the source"),
    ("use.incremental.alter.configs", STRING, "requested", LOW, "3.5", "Whether configs were altered incrementally."),
    (
        "add.source.alias.to.metrics",
        BOOLEAN,
        False,
        LOW,
        "3.5",
        "Whether metrics had a tag with the alias of the source.",
    ),
    ("auto.include.jmx.reporter", BOOLEAN, True, LOW, "3.4", "Whether metrics were always reported to JMX."),
)

# --- Connect's framework --------------------------------------------------------------------------
define_all(
    CONNECTOR,
    ignored("a flow's connectors have Java MM2's names and are not loaded by class"),
    ("name", STRING, "", HIGH, "", "Name of the connector."),
    ("connector.class", STRING, "", HIGH, "", "Class of the connector."),
    ("connector.plugin.version", STRING, "", MEDIUM, "4.1", "Version range of the connector."),
)
TASKS_MAX = define(
    "tasks.max",
    INT,
    0,
    CONNECTOR,
    "Maximum number of tasks of a connector. 0 means as many as partitions and Spark slots can use.",
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
        f"Java class that converts the {_part} of each record. Java MM2 sets ByteArrayConverter: no change.",
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
        f"Version range of the {_part} converter.",
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
    "What happens if a value of a config provider changes.",
    one_of("none", "restart"),
    since="2.0",
    support=ignored("each new connection resolves its placeholders again"),
)

# --- errors ---------------------------------------------------------------------------------------
ERRORS_TOLERANCE = define(
    "errors.tolerance",
    STRING,
    "none",
    CONNECTOR,
    "What happens with a record that is too large for the target: `none` stops its partition, `all` skips the record.",
    one_of("none", "all"),
    importance=MEDIUM,
    since="2.0",
)
define_all(
    CONNECTOR,
    ignored("there is no conversion or transform that could fail; a failed request is sent again"),
    ("errors.retry.timeout", LONG, 0, MEDIUM, "2.0", "How long a failed conversion or transform is retried."),
    ("errors.retry.delay.max.ms", LONG, 60_000, MEDIUM, "2.0", "Maximum delay between two retries."),
)
define_all(
    CONNECTOR,
    ignored("skipped records (`errors.tolerance=all`) are always counted and logged, without their content"),
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
    "When a transaction is committed: after each poll, or after an interval.",
    one_of("poll", "interval"),
    importance=MEDIUM,
    since="3.3",
    support=_TRANSACTIONS,
)
define_all(
    SOURCE,
    _TRANSACTIONS,
    ("transaction.boundary.interval.ms", LONG, None, LOW, "3.3", "Interval between two commits of transactions."),
)
define(
    "offsets.storage.topic",
    STRING,
    "",
    SOURCE,
    "Topic for the source offsets of this connector only.",
    since="3.3",
    support=rejected("source offsets are stored in the worker's topic; set `B.offset.storage.topic` for the target B."),
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

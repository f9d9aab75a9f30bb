"""Rows of the Connect worker: source offsets, its group and topics, restarts, the REST server, limits of connectors.

Java MM2 is a Connect cluster per flow; Heliograph is one process per file. A dedicated-mode file therefore ignores what
workers agree on among themselves, and `heliograph worker` acts on it. Other rows without effect say why.
"""

from __future__ import annotations

from heliograph.config.keys.table import (
    BOOLEAN,
    CONNECTOR,
    CONSUMER,
    FILE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NO_STRINGS,
    REPLICATION_FACTOR_CHECK,
    SHORT,
    STRING,
    WORKER,
    at_least,
    define,
    define_all,
    ignored,
    one_of,
)

# --- source offsets -------------------------------------------------------------------------------
OFFSET_STORAGE_TOPIC = define(
    "offset.storage.topic",
    STRING,
    "",
    WORKER,
    "Topic of source offsets on the target; if it is not set, `mm2-offsets.A.internal`.",
    importance=HIGH,
)
OFFSET_STORAGE_PARTITIONS = define(
    "offset.storage.partitions",
    INT,
    25,
    WORKER,
    "Partitions of the topic of source offsets.",
    at_least(1),
)
OFFSET_STORAGE_REPLICATION_FACTOR = define(
    "offset.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Replication factor of the topic of source offsets; -1 is the broker's default. If it is not set, no more than the"
    " target has brokers.",
    REPLICATION_FACTOR_CHECK,
)
OFFSET_FLUSH_INTERVAL_MS = define(
    "offset.flush.interval.ms",
    LONG,
    1_000,
    WORKER,
    "How often source offsets are committed. Bounds the duplicates after a crash. With exactly-once at most a third of"
    " `transaction.timeout.ms`.",
    at_least(1),
    ours=True,
    mm2_default=60_000,
)
define_all(
    WORKER,
    ignored("a commit of source offsets is tried until it succeeds or its task fails"),
    ("offset.flush.timeout.ms", LONG, 5_000, LOW, "", "Longest wait for a commit of source offsets."),
)
EXACTLY_ONCE_SOURCE_SUPPORT = define(
    "exactly.once.source.support",
    STRING,
    "disabled",
    WORKER,
    "`enabled`: records and source offsets are written in one transaction per commit (KIP-618); `preparing`: not yet,"
    " but a Connect worker that leads is fenced by the next one, as with `enabled`.",
    one_of("disabled", "preparing", "enabled"),
    importance=HIGH,
    since="3.3",
)

# --- a worker's other topics ----------------------------------------------------------------------
_ONLY_WORKERS = ignored(
    "only `heliograph worker` keeps connectors; a dedicated-mode file is one itself", except_by_workers=True
)
CONFIG_STORAGE_TOPIC = define(
    "config.storage.topic",
    STRING,
    "",
    WORKER,
    "Topic of connectors, of one partition; Java MM2 names it `mm2-configs.A.internal`.",
    importance=HIGH,
    support=_ONLY_WORKERS,
)
CONFIG_STORAGE_REPLICATION_FACTOR = define(
    "config.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Replication factor of the topic of connectors.",
    REPLICATION_FACTOR_CHECK,
    support=_ONLY_WORKERS,
)
STATUS_STORAGE_TOPIC = define(
    "status.storage.topic",
    STRING,
    "",
    WORKER,
    "Topic of states; Java MM2 names it `mm2-status.A.internal`.",
    importance=HIGH,
    support=_ONLY_WORKERS,
)
STATUS_STORAGE_PARTITIONS = define(
    "status.storage.partitions",
    INT,
    5,
    WORKER,
    "Partitions of the topic of states.",
    at_least(1),
    support=_ONLY_WORKERS,
)
STATUS_STORAGE_REPLICATION_FACTOR = define(
    "status.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Replication factor of the topic of states.",
    REPLICATION_FACTOR_CHECK,
    support=_ONLY_WORKERS,
)
TOPIC_TRACKING_ENABLE = define(
    "topic.tracking.enable",
    BOOLEAN,
    True,
    WORKER,
    "Whether the topics a connector used are recorded.",
    since="2.5",
)
TOPIC_TRACKING_ALLOW_RESET = define(
    "topic.tracking.allow.reset", BOOLEAN, True, WORKER, "Whether that record may be cleared.", since="2.5"
)

# --- the group of workers -------------------------------------------------------------------------
_NO_WORKERS = "one process runs all flows of a file; there are no workers to agree with each other"
_ONE_PROCESS = ignored(_NO_WORKERS)
_GROUP_OF_WORKERS = ignored(_NO_WORKERS, except_by_workers=True)
GROUP_ID = define(
    "group.id",
    STRING,
    "",
    WORKER,
    "Group of the workers, and the beginning of transactional ids; where it is not set, `A-mm2`.",
    importance=HIGH,
)
define_all(
    WORKER,
    _GROUP_OF_WORKERS,
    ("rebalance.timeout.ms", INT, 60_000, HIGH, "", "Longest time workers may take to join."),
)
define_all(
    WORKER | CONSUMER,
    _GROUP_OF_WORKERS,
    ("session.timeout.ms", INT, 10_000, HIGH, "", "When a silent member of a group is given up."),
    ("heartbeat.interval.ms", INT, 3_000, HIGH, "", "How often a member of a group reports."),
)
define(
    "connect.protocol",
    STRING,
    "sessioned",
    WORKER,
    "How workers share out the work.",
    one_of("eager", "compatible", "sessioned"),
    since="2.3",
    support=_ONE_PROCESS,
)
define_all(
    WORKER,
    _ONE_PROCESS,
    ("scheduled.rebalance.max.delay.ms", INT, 300_000, LOW, "2.3", "How long a lost worker's tasks wait for it."),
    ("worker.sync.timeout.ms", INT, 3_000, MEDIUM, "", "Longest wait to catch up with the other workers."),
    ("worker.unsync.backoff.ms", INT, 300_000, MEDIUM, "", "Pause after failing to catch up."),
    ("inter.worker.key.generation.algorithm", STRING, "HmacSHA256", LOW, "2.4", "How keys between workers are made."),
    ("inter.worker.key.size", INT, None, LOW, "2.4", "Size of keys between workers."),
    ("inter.worker.signature.algorithm", STRING, "HmacSHA256", LOW, "2.4", "How requests between workers are signed."),
    ("inter.worker.verification.algorithms", LIST, ("HmacSHA256",), LOW, "2.4", "Signatures a worker accepts."),
)
INTER_WORKER_KEY_TTL_MS = define(
    "inter.worker.key.ttl.ms",
    INT,
    3_600_000,
    WORKER,
    "Life of the key with which workers sign for whom they pass a request on; used where REST knows its callers.",
    at_least(1),
    since="2.4",
)
define(
    "dedicated.mode.enable.internal.rest",
    BOOLEAN,
    False,
    FILE,
    "Lets several nodes of Java MM2 forward requests to each other (KIP-710).",
    importance=HIGH,
    since="3.5",
    support=_ONE_PROCESS,
)

# --- restarts -------------------------------------------------------------------------------------
RESTART_BACKOFF_MAX_MS = define(
    "heliograph.restart.backoff.max.ms",
    LONG,
    30_000,
    CONNECTOR,
    "Longest pause before a failed task or connector is started again; the first is below a second, and they double."
    " A task of which only some partitions failed is started again ten times less often, since the others wait for it.",
    at_least(1),
    ours=True,
    is_live=True,
)
RESTART_ATTEMPTS_MAX = define(
    "heliograph.restart.attempts.max",
    INT,
    -1,
    CONNECTOR,
    "How often in a row a failed task or connector is started again; -1 is no limit. Then it stays FAILED until it is"
    " restarted by hand or its config changes. 0 is Java's way: nothing is started again.",
    at_least(-1),
    ours=True,
    is_live=True,
)
define_all(
    WORKER,
    ignored("a task that stops commits what is acknowledged, and is waited for"),
    ("task.shutdown.graceful.timeout.ms", LONG, 5_000, LOW, "", "How long a task may take to stop."),
)

# --- REST -----------------------------------------------------------------------------------------
LISTENERS = define(
    "listeners",
    LIST,
    ("http://:8083",),
    FILE | WORKER,
    "Addresses on which the REST server listens, each `http://HOST:PORT` or `https://HOST:PORT`. Where the host is left"
    " out, only this machine reaches it; `0.0.0.0` is every network. `https` takes its key from"
    " `listeners.https.ssl.*`, or from `ssl.*` where none of those is set. In a dedicated-mode file it, or `rest.port`,"
    " makes `run` serve REST for reading.",
)
REST_PORT = define(
    "rest.port",
    INT,
    None,
    FILE | WORKER,
    "Port of the REST server where `listeners` is not set. Kafka 3.0 removed it; files still have it.",
)
REST_HOST_NAME = define(
    "rest.host.name",
    STRING,
    "",
    FILE | WORKER,
    "Host on which the REST server listens where `listeners` is not set. Kafka 3.0 removed it; files still have it.",
)
REST_ADVERTISED_HOST_NAME = define(
    "rest.advertised.host.name",
    STRING,
    "",
    FILE | WORKER,
    "Host under which other workers reach this one; where it is not set, the listener's.",
)
REST_ADVERTISED_PORT = define(
    "rest.advertised.port",
    INT,
    None,
    FILE | WORKER,
    "Port under which other workers reach this one; where it is not set, the listener's.",
)
REST_ADVERTISED_LISTENER = define(
    "rest.advertised.listener",
    STRING,
    "",
    FILE | WORKER,
    "Protocol of the listener under which other workers reach this one, `http` or `https`; where it is not set, `https`"
    " if there is such a listener.",
)
SSL_CLIENT_AUTH = define(
    "ssl.client.auth",
    STRING,
    "none",
    FILE | WORKER,
    "Whether `https` listeners ask for a client's certificate: `none`, `requested` or `required`. Also after"
    " `listeners.https.`.",
    one_of("none", "requested", "required"),
)
REST_EXTENSION_CLASSES = define(
    "rest.extension.classes",
    LIST,
    NO_STRINGS,
    FILE | WORKER,
    "Java classes that extend REST. Only Connect's `BasicAuthSecurityRestExtension` is there: callers must log in.",
    since="2.0",
)
REST_JAAS_CONFIG_FILE = define(
    "heliograph.rest.jaas.config.file",
    STRING,
    "",
    FILE | WORKER,
    "JAAS file whose section `KafkaConnect` names the file of REST's users; where it is not set, the one that"
    " `-Djava.security.auth.login.config` in the variable `KAFKA_OPTS` names.",
    ours=True,
)
REST_RULES_FILE = define(
    "heliograph.rest.rules.file",
    STRING,
    "",
    FILE | WORKER,
    "YAML file that says which user or certificate may see and change which connectors; without it every caller"
    " may do everything.",
    ours=True,
)
REST_ALLOWED_HOSTS = define(
    "heliograph.rest.allowed.hosts",
    LIST,
    NO_STRINGS,
    FILE | WORKER,
    "Further hosts that a request's `Host` header may name, without ports. A listener on `localhost` accepts"
    " `localhost`, `127.0.0.1`, `::1`, `rest.advertised.host.name` and these. Any other listener accepts"
    " every host, unless this key is set: then IP addresses, this machine's name, `rest.advertised.host.name` and"
    " these.",
    ours=True,
)
ACCESS_CONTROL_ALLOW_ORIGIN = define(
    "access.control.allow.origin",
    STRING,
    "",
    FILE | WORKER,
    "Origins, such as `https://ui.example.org`, whose requests may change something; `*` is every origin. Requests of"
    " browsers that name any other origin than this worker's are refused unless they only read. No `Access-Control-*`"
    " headers are sent, so pages of these origins reach REST through a proxy of theirs.",
)
_NO_REST = ignored("the REST server has its listeners and adds nothing to its answers")
define_all(
    FILE | WORKER,
    _NO_REST,
    ("access.control.allow.methods", STRING, "", LOW, "", "Methods that pages of other origins may call."),
    ("response.http.headers.config", STRING, "", LOW, "2.6", "Headers that REST adds to its answers."),
)
define_all(
    WORKER,
    _NO_REST,
    ("admin.listeners", LIST, NO_STRINGS, LOW, "", "Addresses of REST's endpoints for administrators."),
)

# --- what connectors may do -----------------------------------------------------------------------
PLUGIN_PACKAGES = define(
    "heliograph.plugin.packages",
    LIST,
    NO_STRINGS,
    WORKER,
    "Python packages of which a connector may name a class (`acme`, or `acme.mirror`); Heliograph's own policies and"
    " filters are always there. Where it is not set: those of the classes that the worker's file itself names.",
    ours=True,
)
OAUTH_ALLOWED_URLS = define(
    "org.apache.kafka.sasl.oauthbearer.allowed.urls",
    LIST,
    NO_STRINGS,
    WORKER,
    "URLs of OAuth that a connector may name, among them `file:///...` of a token, each compared letter by letter. The"
    " worker's own file may name any URL. Where it is not set, Kafka's JVM property of this name, as `-D` in"
    " the variable `KAFKA_OPTS` sets it.",
    ours=True,
)
OAUTH_ALLOWED_FILES = define(
    "org.apache.kafka.sasl.oauthbearer.allowed.files",
    LIST,
    NO_STRINGS,
    WORKER,
    "Files that a connector may name in `sasl.oauthbearer.assertion.*`. Where it is not set, Kafka's JVM property.",
    ours=True,
)
define_all(
    WORKER,
    ignored("client keys after a flow's prefix are always read", except_by_workers=True),
    ("connector.client.config.override.policy", STRING, "All", MEDIUM, "2.3", "Which client keys a connector may set."),
)
_NO_PLUGINS = ignored("Java plugins cannot be loaded")
define_all(
    WORKER,
    _NO_PLUGINS,
    ("plugin.path", LIST, NO_STRINGS, LOW, "", "Folders of Java plugins."),
    ("plugin.discovery", STRING, "hybrid_warn", LOW, "3.6", "How Java plugins are found."),
)
define_all(
    WORKER,
    ignored("MM2 creates its topics itself, without Connect"),
    ("topic.creation.enable", BOOLEAN, True, LOW, "2.6", "Whether connectors may have topics created."),
)

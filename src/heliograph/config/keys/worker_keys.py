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
    "Topic on the target that stores source offsets. If it is not set, `mm2-offsets.A.internal`.",
    importance=HIGH,
)
OFFSET_STORAGE_PARTITIONS = define(
    "offset.storage.partitions",
    INT,
    25,
    WORKER,
    "Number of partitions of the source offsets topic.",
    at_least(1),
)
OFFSET_STORAGE_REPLICATION_FACTOR = define(
    "offset.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Replication factor of the source offsets topic; -1 is the broker's default. If it is not set, at most the"
    " number of the target's brokers.",
    REPLICATION_FACTOR_CHECK,
)
OFFSET_FLUSH_INTERVAL_MS = define(
    "offset.flush.interval.ms",
    LONG,
    1_000,
    WORKER,
    "How often source offsets are committed. Limits duplicates after a crash. With exactly-once, at most a third of"
    " `transaction.timeout.ms`.",
    at_least(1),
    ours=True,
    mm2_default=60_000,
)
define_all(
    WORKER,
    ignored("a commit of source offsets is retried until it succeeds or its task fails"),
    ("offset.flush.timeout.ms", LONG, 5_000, LOW, "", "Timeout of a commit of source offsets."),
)
EXACTLY_ONCE_SOURCE_SUPPORT = define(
    "exactly.once.source.support",
    STRING,
    "disabled",
    WORKER,
    "`enabled`: records and source offsets are written in one transaction (KIP-618); `preparing`: not yet, but a"
    " Connect worker that leads is fenced by the next one, as with `enabled`.",
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
    "Topic that stores connector configs; it has one partition. Java MM2 names it `mm2-configs.A.internal`.",
    importance=HIGH,
    support=_ONLY_WORKERS,
)
CONFIG_STORAGE_REPLICATION_FACTOR = define(
    "config.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Replication factor of the config topic.",
    REPLICATION_FACTOR_CHECK,
    support=_ONLY_WORKERS,
)
STATUS_STORAGE_TOPIC = define(
    "status.storage.topic",
    STRING,
    "",
    WORKER,
    "Topic that stores the states of connectors and tasks. Java MM2 names it `mm2-status.A.internal`.",
    importance=HIGH,
    support=_ONLY_WORKERS,
)
STATUS_STORAGE_PARTITIONS = define(
    "status.storage.partitions",
    INT,
    5,
    WORKER,
    "Number of partitions of the status topic.",
    at_least(1),
    support=_ONLY_WORKERS,
)
STATUS_STORAGE_REPLICATION_FACTOR = define(
    "status.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Replication factor of the status topic.",
    REPLICATION_FACTOR_CHECK,
    support=_ONLY_WORKERS,
)
TOPIC_TRACKING_ENABLE = define(
    "topic.tracking.enable",
    BOOLEAN,
    True,
    WORKER,
    "Whether the active topics of each connector are tracked.",
    since="2.5",
)
TOPIC_TRACKING_ALLOW_RESET = define(
    "topic.tracking.allow.reset",
    BOOLEAN,
    True,
    WORKER,
    "Whether the active topics of a connector may be reset.",
    since="2.5",
)

# --- the group of workers -------------------------------------------------------------------------
_NO_WORKERS = "one process runs all flows of a file, so there are no other nodes"
_ONE_PROCESS = ignored(_NO_WORKERS)
_GROUP_OF_WORKERS = ignored(_NO_WORKERS, except_by_workers=True)
GROUP_ID = define(
    "group.id",
    STRING,
    "",
    WORKER,
    "Group id of the workers, and prefix of transactional ids. If it is not set, `A-mm2`.",
    importance=HIGH,
)
define_all(
    WORKER,
    _GROUP_OF_WORKERS,
    ("rebalance.timeout.ms", INT, 60_000, HIGH, "", "Maximum time for workers to join a rebalance."),
)
define_all(
    WORKER | CONSUMER,
    _GROUP_OF_WORKERS,
    (
        "session.timeout.ms",
        INT,
        10_000,
        HIGH,
        "",
        "Time without a heartbeat after which a member is removed from the group.",
    ),
    ("heartbeat.interval.ms", INT, 3_000, HIGH, "", "Interval of a member's heartbeats to the group coordinator."),
)
define(
    "connect.protocol",
    STRING,
    "sessioned",
    WORKER,
    "Protocol by which workers distribute connectors and tasks.",
    one_of("eager", "compatible", "sessioned"),
    since="2.3",
    support=_ONE_PROCESS,
)
define_all(
    WORKER,
    _ONE_PROCESS,
    (
        "scheduled.rebalance.max.delay.ms",
        INT,
        300_000,
        LOW,
        "2.3",
        "Delay before the tasks of a lost worker are reassigned.",
    ),
    ("worker.sync.timeout.ms", INT, 3_000, MEDIUM, "", "Timeout for a worker to synchronize with the others."),
    ("worker.unsync.backoff.ms", INT, 300_000, MEDIUM, "", "Back-off after a worker failed to synchronize."),
    (
        "inter.worker.key.generation.algorithm",
        STRING,
        "HmacSHA256",
        LOW,
        "2.4",
        "Algorithm that generates keys for internal requests.",
    ),
    ("inter.worker.key.size", INT, None, LOW, "2.4", "Size of keys for internal requests."),
    ("inter.worker.signature.algorithm", STRING, "HmacSHA256", LOW, "2.4", "Algorithm that signs internal requests."),
    (
        "inter.worker.verification.algorithms",
        LIST,
        ("HmacSHA256",),
        LOW,
        "2.4",
        "Signature algorithms that a worker accepts.",
    ),
)
INTER_WORKER_KEY_TTL_MS = define(
    "inter.worker.key.ttl.ms",
    INT,
    3_600_000,
    WORKER,
    "Lifetime of the key that signs the caller's name in forwarded requests. Used if REST authenticates callers.",
    at_least(1),
    since="2.4",
)
define(
    "dedicated.mode.enable.internal.rest",
    BOOLEAN,
    False,
    FILE,
    "Enables internal REST requests between several nodes of Java MM2 (KIP-710).",
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
    "Maximum back-off before a failed task or connector is restarted. It starts below a second and doubles. A failed"
    " partition of a running task is retried after this time; with exactly-once, where that restarts the task and"
    " interrupts the others, after up to ten times as long.",
    at_least(1),
    ours=True,
    is_live=True,
)
RESTART_ATTEMPTS_MAX = define(
    "heliograph.restart.attempts.max",
    INT,
    -1,
    CONNECTOR,
    "How many times in a row a failed task or connector is restarted; -1 is no limit. After that it stays FAILED until"
    " it is restarted manually or its config changes. 0 disables restarts, as in Java's Connect.",
    at_least(-1),
    ours=True,
    is_live=True,
)
define_all(
    WORKER,
    ignored("a task that stops commits all acknowledged records; the driver waits for it"),
    ("task.shutdown.graceful.timeout.ms", LONG, 5_000, LOW, "", "How long a task may take to stop."),
)

# --- REST -----------------------------------------------------------------------------------------
LISTENERS = define(
    "listeners",
    LIST,
    ("http://:8083",),
    FILE | WORKER,
    "Addresses on which the REST server listens, each `http://HOST:PORT` or `https://HOST:PORT`. Without a"
    " host, only this machine can connect; `0.0.0.0` listens on all interfaces. `https` is configured with"
    " `listeners.https.ssl.*`, or with `ssl.*` if none of those is set. In a dedicated-mode file this key, or"
    " `rest.port`, makes `run` serve read-only REST.",
)
REST_PORT = define(
    "rest.port",
    INT,
    None,
    FILE | WORKER,
    "Port of the REST server if `listeners` is not set. Kafka 3.0 removed this key; it is still accepted.",
)
REST_HOST_NAME = define(
    "rest.host.name",
    STRING,
    "",
    FILE | WORKER,
    "Host of the REST server if `listeners` is not set. Kafka 3.0 removed this key; it is still accepted.",
)
REST_ADVERTISED_HOST_NAME = define(
    "rest.advertised.host.name",
    STRING,
    "",
    FILE | WORKER,
    "Host that other workers use to connect to this one. If it is not set, the listener's.",
)
REST_ADVERTISED_PORT = define(
    "rest.advertised.port",
    INT,
    None,
    FILE | WORKER,
    "Port that other workers use to connect to this one. If it is not set, the listener's.",
)
REST_ADVERTISED_LISTENER = define(
    "rest.advertised.listener",
    STRING,
    "",
    FILE | WORKER,
    "Protocol that other workers use to connect to this one, `http` or `https`. If it is not set, `https` if there is"
    " such a listener.",
)
SSL_CLIENT_AUTH = define(
    "ssl.client.auth",
    STRING,
    "none",
    FILE | WORKER,
    "Whether `https` listeners request a client certificate: `none`, `requested` or `required`. Also with the prefix"
    " `listeners.https.`.",
    one_of("none", "requested", "required"),
)
REST_EXTENSION_CLASSES = define(
    "rest.extension.classes",
    LIST,
    NO_STRINGS,
    FILE | WORKER,
    "REST extensions. Only Connect's `BasicAuthSecurityRestExtension` is supported: it requires callers to log in.",
    since="2.0",
)
REST_JAAS_CONFIG_FILE = define(
    "heliograph.rest.jaas.config.file",
    STRING,
    "",
    FILE | WORKER,
    "JAAS file whose section `KafkaConnect` names the file of REST users. If it is not set, the file in"
    " `-Djava.security.auth.login.config` of the environment variable `KAFKA_OPTS`.",
    ours=True,
)
REST_RULES_FILE = define(
    "heliograph.rest.rules.file",
    STRING,
    "",
    FILE | WORKER,
    "YAML file with access rules: which user or certificate may see and change which connectors. Without it, every"
    " caller that authentication admits may do everything.",
    ours=True,
)
REST_ALLOWED_HOSTS = define(
    "heliograph.rest.allowed.hosts",
    LIST,
    NO_STRINGS,
    FILE | WORKER,
    "Additional hosts that are accepted in the `Host` header of a request, without ports. A listener on `localhost`"
    " accepts `localhost`, `127.0.0.1`, `::1`, `rest.advertised.host.name` and these. Any other listener accepts"
    " every host, unless this key is set: then IP addresses, this machine's name, `rest.advertised.host.name` and"
    " these.",
    ours=True,
)
ACCESS_CONTROL_ALLOW_ORIGIN = define(
    "access.control.allow.origin",
    STRING,
    "",
    FILE | WORKER,
    "Origins, such as `https://ui.example.org`, whose requests may make changes; `*` allows every origin. Browsers'"
    " requests with any other origin than this worker's are rejected unless they only read. No `Access-Control-*`"
    " headers are sent, so pages of these origins need a proxy of their own to use REST.",
)
_NO_REST = ignored("the REST server has only its listeners and adds no headers to its responses")
define_all(
    FILE | WORKER,
    _NO_REST,
    ("access.control.allow.methods", STRING, "", LOW, "", "HTTP methods allowed for cross-origin requests."),
    ("response.http.headers.config", STRING, "", LOW, "2.6", "Headers that REST adds to its responses."),
)
define_all(
    WORKER,
    _NO_REST,
    ("admin.listeners", LIST, NO_STRINGS, LOW, "", "Addresses of the admin endpoints of REST."),
)

# --- what connectors may do -----------------------------------------------------------------------
PLUGIN_PACKAGES = define(
    "heliograph.plugin.packages",
    LIST,
    NO_STRINGS,
    WORKER,
    "Python packages whose classes a connector may use (`acme`, or `acme.mirror`). Heliograph's own policies and"
    " filters are always allowed. If it is not set, the packages of the classes that the worker's file names.",
    ours=True,
)
OAUTH_ALLOWED_URLS = define(
    "org.apache.kafka.sasl.oauthbearer.allowed.urls",
    LIST,
    NO_STRINGS,
    WORKER,
    "OAuth URLs that a connector may use, including `file:///...` URLs of tokens. URLs must match exactly. The"
    " worker's own file may use any URL. If it is not set, Kafka's JVM property of this name, set with `-D` in the"
    " environment variable `KAFKA_OPTS`.",
    ours=True,
)
OAUTH_ALLOWED_FILES = define(
    "org.apache.kafka.sasl.oauthbearer.allowed.files",
    LIST,
    NO_STRINGS,
    WORKER,
    "Files that a connector may use in `sasl.oauthbearer.assertion.*`. If it is not set, Kafka's JVM property.",
    ours=True,
)
define_all(
    WORKER,
    ignored("client keys with the prefix of a flow are always used", except_by_workers=True),
    ("connector.client.config.override.policy", STRING, "All", MEDIUM, "2.3", "Which client keys a connector may set."),
)
_NO_PLUGINS = ignored("Java plugins cannot be loaded")
define_all(
    WORKER,
    _NO_PLUGINS,
    ("plugin.path", LIST, NO_STRINGS, LOW, "", "Directories of Java plugins."),
    ("plugin.discovery", STRING, "hybrid_warn", LOW, "3.6", "How Java plugins are discovered."),
)
define_all(
    WORKER,
    ignored("MM2 creates its topics itself, without Connect"),
    ("topic.creation.enable", BOOLEAN, True, LOW, "2.6", "Whether Connect creates topics for source connectors."),
)

"""THE TABLE: every configuration key Heliograph knows, each written once.

Names and defaults are MirrorMaker 2 4.3.1's; rows marked `ours=True` are Heliograph's own or have a default of our own
(docs/decisions/0005-defaults-that-differ.md says why). `docs/reference/configuration.md` is generated from this table
and a test keeps it fresh. A key in no row is reported as unknown, with the nearest name.
"""

from __future__ import annotations

from typing import Any, TypeVar

from heliograph.config.types import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Check,
    Key,
    Scope,
    ValueType,
    at_least,
    one_of,
)

T = TypeVar("T")
TABLE: dict[str, Key[Any]] = {}

NO_STRINGS: tuple[str, ...] = ()


def _key(
    name: str,
    type_: ValueType[T],
    default: T,
    scope: Scope,
    doc: str,
    check: Check[T] | None = None,
    *,
    ours: bool = False,
    replaced_by: str | None = None,
) -> Key[T]:
    row = Key(name, type_, default, scope, doc, check, ours, replaced_by)
    if name in TABLE:
        raise ValueError(f"{name} stands twice in the table")
    TABLE[name] = row
    return row


FILE, SOURCE, CHECKPOINT, HEARTBEAT = Scope.FILE, Scope.SOURCE, Scope.CHECKPOINT, Scope.HEARTBEAT
WORKER, CLIENT, CONSUMER, PRODUCER, CONNECTOR = (
    Scope.WORKER,
    Scope.CLIENT,
    Scope.CONSUMER,
    Scope.PRODUCER,
    Scope.CONNECTOR,
)

# --- the dedicated-mode file ----------------------------------------------------------------------
CLUSTERS = _key("clusters", LIST, NO_STRINGS, FILE, "Aliases of all clusters the file speaks of.")
_key(
    "dedicated.mode.enable.internal.rest",
    BOOLEAN,
    False,
    FILE,
    "Lets several MM2 nodes talk to each other (KIP-710).",
)
CONFIG_PROVIDERS = _key(
    "config.providers", LIST, NO_STRINGS, FILE | CONNECTOR | WORKER, "Names of the config providers."
)

# --- all three connectors -------------------------------------------------------------------------
ENABLED = _key("enabled", BOOLEAN, True, CONNECTOR, "Whether the flow replicates; false by default in a file.")
SOURCE_ALIAS = _key("source.cluster.alias", STRING, "", CONNECTOR, "Alias of the source; prefix of remote topics.")
TARGET_ALIAS = _key("target.cluster.alias", STRING, "target", CONNECTOR, "Alias of the target.")
ADMIN_TIMEOUT_MS = _key(
    "admin.timeout.ms", LONG, 60_000, CONNECTOR, "Longest wait for one administrative step.", at_least(1)
)
POLICY_CLASS = _key(
    "replication.policy.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    CONNECTOR | WORKER,
    "How remote topics are named: Default (`A.topic`) or Identity (`topic`).",
)
POLICY_SEPARATOR = _key(
    "replication.policy.separator",
    STRING,
    ".",
    CONNECTOR | WORKER,
    "Stands between the source's alias and the topic.",
)
POLICY_INTERNAL_SEPARATOR = _key(
    "replication.policy.internal.topic.separator.enabled",
    BOOLEAN,
    True,
    CONNECTOR | WORKER,
    "Whether internal topics use the separator too (KIP-949).",
)
_key(
    "forwarding.admin.class",
    CLASS,
    "org.apache.kafka.clients.admin.ForwardingAdmin",
    CONNECTOR,
    "Admin client class.",
)
_key(
    "metric.reporters",
    LIST,
    NO_STRINGS,
    CONNECTOR | WORKER,
    "Java metric reporters; Heliograph has its own metrics.",
)
_key("name", STRING, "", CONNECTOR, "Name of the connector.")
_key("connector.class", CLASS, "", CONNECTOR, "Class of the connector.")
_key("connector.plugin.version", STRING, "", CONNECTOR, "Version range of the connector.")
TASKS_MAX = _key(
    "tasks.max",
    INT,
    0,
    CONNECTOR,
    "Most tasks of a connector. Where it is not set, as many as partitions and Spark slots can use.",
    at_least(0),
    ours=True,
)
_key("tasks.max.enforce", BOOLEAN, True, CONNECTOR, "Deprecated in Kafka.")
_key("config.action.reload", STRING, "restart", CONNECTOR, "What a changed secret does to a connector.")
_key("transforms", LIST, NO_STRINGS, CONNECTOR, "Single message transforms.")
_key("predicates", LIST, NO_STRINGS, CONNECTOR, "Predicates of transforms.")
_key("errors.retry.timeout", LONG, 0, CONNECTOR, "How long a failed operation is tried again.")
_key("errors.retry.delay.max.ms", LONG, 60_000, CONNECTOR, "Longest pause between two tries.")
_key(
    "errors.tolerance",
    STRING,
    "none",
    CONNECTOR,
    "What a bad record does: none or all.",
    one_of("none", "all"),
)
_key("errors.log.enable", BOOLEAN, False, CONNECTOR, "Whether tolerated errors are logged.")
_key("errors.log.include.messages", BOOLEAN, False, CONNECTOR, "Whether the record is logged too.")
_key("exactly.once.support", STRING, "requested", CONNECTOR, "Whether the connector must run exactly once.")
_key("transaction.boundary", STRING, "poll", CONNECTOR, "Where transactions end.")
_key("transaction.boundary.interval.ms", STRING, "", CONNECTOR, "How long a transaction lasts.")
_key("offsets.storage.topic", STRING, "", CONNECTOR, "Offsets topic of this connector alone.")
_key("topic.creation.groups", LIST, NO_STRINGS, CONNECTOR, "Groups of topic creation rules.")
for _part in ("key", "value", "header"):
    _key(
        f"{_part}.converter",
        CLASS,
        "",
        CONNECTOR | WORKER,
        f"Converter of the {_part}; bytes are always kept as they are.",
    )
    _key(f"{_part}.converter.plugin.version", STRING, "", CONNECTOR, f"Version range of the {_part} converter.")

# --- source connector -----------------------------------------------------------------------------
TOPICS = _key("topics", LIST, (".*",), SOURCE | CHECKPOINT, "Topics to replicate: names or Java regexes.")
TOPICS_EXCLUDE = _key(
    "topics.exclude",
    LIST,
    (r"mm2.*\.internal", r".*\.replica", "__.*"),
    SOURCE | CHECKPOINT,
    "Topics to leave out; wins over `topics`.",
)
_key("topics.blacklist", LIST, NO_STRINGS, SOURCE | CHECKPOINT, "Old name.", replaced_by="topics.exclude")
_key(
    "topic.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultTopicFilter",
    SOURCE | CHECKPOINT,
    "Class that decides which topics count.",
)
CONFIG_PROPERTIES_EXCLUDE = _key(
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
_key(
    "config.properties.blacklist",
    LIST,
    NO_STRINGS,
    SOURCE,
    "Old name.",
    replaced_by="config.properties.exclude",
)
_key(
    "config.property.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
    SOURCE,
    "Class that decides which topic configs are copied.",
)
USE_DEFAULTS_FROM = _key(
    "use.defaults.from",
    STRING,
    "target",
    SOURCE,
    "`source` writes the source's default values onto remote topics.",
    one_of("source", "target"),
)
_key(
    "consumer.poll.timeout.ms",
    LONG,
    1000,
    SOURCE | CHECKPOINT,
    "Poll time-out of MM2's consumer.",
    at_least(0),
)
REFRESH_TOPICS_ENABLED = _key("refresh.topics.enabled", BOOLEAN, True, SOURCE, "Whether new topics are looked for.")
REFRESH_TOPICS_INTERVAL_SECONDS = _key(
    "refresh.topics.interval.seconds",
    LONG,
    30,
    SOURCE,
    "How often new topics and partitions are looked for (MM2: 600).",
    at_least(1),
    ours=True,
)
_key("sync.topic.configs.enabled", BOOLEAN, True, SOURCE, "Whether topic configs follow the source's.")
_key("sync.topic.configs.interval.seconds", LONG, 600, SOURCE, "How often configs are compared.", at_least(1))
_key("sync.topic.acls.enabled", BOOLEAN, True, SOURCE, "Whether topic ACLs follow the source's.")
_key("sync.topic.acls.interval.seconds", LONG, 600, SOURCE, "How often ACLs are compared.", at_least(1))
REPLICATION_FACTOR = _key(
    "replication.factor",
    INT,
    2,
    SOURCE,
    "Replication factor of created remote topics; -1 is the broker's default.",
)
_key("offset-syncs.topic.replication.factor", SHORT, 3, SOURCE, "Replication factor of the offset-syncs topic.")
_key(
    "offset-syncs.topic.location",
    STRING,
    "source",
    SOURCE | CHECKPOINT,
    "Cluster that holds the offset-syncs topic.",
    one_of("source", "target"),
)
_key("offset.lag.max", LONG, 100, SOURCE, "Spacing of offset syncs in records.", at_least(0))
_key(
    "emit.offset-syncs.enabled",
    BOOLEAN,
    True,
    SOURCE | CHECKPOINT,
    "Whether offset syncs are written (KIP-1031).",
)
HEARTBEATS_REPLICATION = _key(
    "heartbeats.replication.enabled",
    BOOLEAN,
    True,
    SOURCE,
    "Whether heartbeats topics are replicated (KIP-1089).",
)
_key("metric.names.formats", LIST, ("legacy",), SOURCE | CHECKPOINT, "Names of JMX metrics (KIP-1280).")

# --- checkpoint and heartbeat connectors ----------------------------------------------------------
_key("groups", LIST, (".*",), CHECKPOINT, "Consumer groups to follow: names or Java regexes.")
_key("groups.exclude", LIST, ("console-consumer-.*", "connect-.*", "__.*"), CHECKPOINT, "Groups to leave out.")
_key("groups.blacklist", LIST, NO_STRINGS, CHECKPOINT, "Old name.", replaced_by="groups.exclude")
_key(
    "group.filter.class",
    CLASS,
    "org.apache.kafka.connect.mirror.DefaultGroupFilter",
    CHECKPOINT,
    "Group filter.",
)
_key("refresh.groups.enabled", BOOLEAN, True, CHECKPOINT, "Whether new groups are looked for.")
_key(
    "refresh.groups.interval.seconds",
    LONG,
    600,
    CHECKPOINT,
    "How often new groups are looked for.",
    at_least(1),
)
_key("emit.checkpoints.enabled", BOOLEAN, True, CHECKPOINT, "Whether checkpoints are written.")
_key(
    "emit.checkpoints.interval.seconds",
    LONG,
    60,
    CHECKPOINT,
    "How often checkpoints are written.",
    at_least(1),
)
_key("sync.group.offsets.enabled", BOOLEAN, False, CHECKPOINT, "Whether groups on the target follow (KIP-545).")
_key("sync.group.offsets.interval.seconds", LONG, 60, CHECKPOINT, "How often groups are written.", at_least(1))
_key(
    "checkpoints.topic.replication.factor",
    SHORT,
    3,
    CHECKPOINT,
    "Replication factor of the checkpoints topic.",
)
_key("emit.heartbeats.enabled", BOOLEAN, True, HEARTBEAT, "Whether heartbeats are written.")
_key("emit.heartbeats.interval.seconds", LONG, 1, HEARTBEAT, "How often heartbeats are written.", at_least(1))
_key("heartbeats.topic.replication.factor", SHORT, 3, HEARTBEAT, "Replication factor of the heartbeats topic.")

# --- Connect worker -------------------------------------------------------------------------------
OFFSET_FLUSH_INTERVAL_MS = _key(
    "offset.flush.interval.ms",
    LONG,
    1_000,
    WORKER,
    "How often progress is committed (MM2: 60000). Bounds the duplicates after a crash.",
    at_least(1),
    ours=True,
)
_key("offset.flush.timeout.ms", LONG, 5_000, WORKER, "Longest wait for a commit.")
OFFSET_STORAGE_TOPIC = _key("offset.storage.topic", STRING, "", WORKER, "Topic of progress: `mm2-offsets.A.internal`.")
OFFSET_STORAGE_PARTITIONS = _key("offset.storage.partitions", INT, 25, WORKER, "Its partitions.", at_least(1))
OFFSET_STORAGE_REPLICATION_FACTOR = _key(
    "offset.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Its replication factor; fewer where the target has fewer brokers.",
)
_key("status.storage.topic", STRING, "", WORKER, "Topic of states: `mm2-status.A.internal`.")
_key("status.storage.partitions", INT, 5, WORKER, "Its partitions.", at_least(1))
_key("status.storage.replication.factor", SHORT, 3, WORKER, "Its replication factor.")
_key("config.storage.topic", STRING, "", WORKER, "Topic of configs: `mm2-configs.A.internal`.")
_key("config.storage.replication.factor", SHORT, 3, WORKER, "Its replication factor.")
GROUP_ID = _key("group.id", STRING, "", WORKER, "Group of the workers: `A-mm2`.")
_key(
    "exactly.once.source.support",
    STRING,
    "disabled",
    WORKER,
    "Exactly-once delivery (KIP-618).",
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
    _key(_name, STRING, _default, WORKER, _doc)
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
    _key(_name, LONG, _number, WORKER, _doc)
for _name, _doc in (
    ("topic.creation.enable", "Whether connectors may create topics."),
    ("topic.tracking.enable", "Whether used topics are recorded."),
    ("topic.tracking.allow.reset", "Whether that record may be cleared."),
):
    _key(_name, BOOLEAN, True, WORKER, _doc)

# --- every Kafka client ---------------------------------------------------------------------------
BOOTSTRAP_SERVERS = _key("bootstrap.servers", LIST, NO_STRINGS, CLIENT, "Brokers to ask first.")
SECURITY_PROTOCOL = _key(
    "security.protocol",
    STRING,
    "PLAINTEXT",
    CLIENT,
    "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    Check(
        lambda value: value.upper() in {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"},
        "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
    ),
)
SASL_MECHANISM = _key("sasl.mechanism", STRING, "GSSAPI", CLIENT, "How SASL authenticates.")
SASL_JAAS_CONFIG = _key("sasl.jaas.config", PASSWORD, "", CLIENT, "Login module and its credentials.")
SSL_PROTOCOL = _key("ssl.protocol", STRING, "TLSv1.3", CLIENT, "Newest TLS version to speak.")
SSL_ENABLED_PROTOCOLS = _key("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), CLIENT, "TLS versions allowed.")
SSL_ENDPOINT_ALGORITHM = _key(
    "ssl.endpoint.identification.algorithm",
    STRING,
    "https",
    CLIENT,
    "`https` checks the host name; empty does not.",
)
SSL_TRUSTSTORE_TYPE = _key("ssl.truststore.type", STRING, "JKS", CLIENT, "Format of the truststore.")
SSL_TRUSTSTORE_LOCATION = _key("ssl.truststore.location", STRING, "", CLIENT, "File of trusted certificates.")
SSL_TRUSTSTORE_CERTIFICATES = _key(
    "ssl.truststore.certificates", PASSWORD, "", CLIENT, "Trusted certificates as PEM text."
)
SSL_KEYSTORE_TYPE = _key("ssl.keystore.type", STRING, "JKS", CLIENT, "Format of the keystore.")
SSL_KEYSTORE_LOCATION = _key("ssl.keystore.location", STRING, "", CLIENT, "File of our key and certificate.")
SSL_KEY_PASSWORD = _key("ssl.key.password", PASSWORD, "", CLIENT, "Password of the private key.")
for _name in (
    "ssl.truststore.password",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
):
    _key(_name, PASSWORD, "", CLIENT, "Secret of a store of keys or certificates.")
for _name in [
    "ssl.provider",
    "ssl.cipher.suites",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
    "ssl.engine.factory.class",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.buffer.seconds",
    "sasl.kerberos.service.name",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.template.file",
    "client.id",
    "client.rack",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "receive.buffer.bytes",
    "send.buffer.bytes",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "retries",
    "default.api.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
]:
    _key(_name, STRING, "", CLIENT, "Kafka's client key of this name.")
for _name in (
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
):
    _key(_name, PASSWORD, "", CLIENT, "Secret of an OAuth client.")

# --- the source's consumer and the target's producer ----------------------------------------------
REQUEST_TIMEOUT_MS = _key(
    "request.timeout.ms",
    INT,
    30_000,
    CLIENT | CONSUMER | PRODUCER,
    "Longest wait for a broker's answer.",
    at_least(1),
)
AUTO_OFFSET_RESET = _key(
    "auto.offset.reset",
    STRING,
    "earliest",
    CONSUMER,
    "Where a partition without progress begins.",
    one_of("earliest", "latest"),
)
FETCH_MAX_WAIT_MS = _key(
    "fetch.max.wait.ms", INT, 500, CONSUMER, "How long a broker holds an empty fetch.", at_least(0)
)
FETCH_MIN_BYTES = _key("fetch.min.bytes", INT, 1, CONSUMER, "Least bytes that end the broker's wait.", at_least(1))
FETCH_MAX_BYTES = _key(
    "fetch.max.bytes",
    INT,
    8 << 20,
    CONSUMER,
    "Most bytes of one fetch (Kafka's consumer: 52428800). Smaller answers stay in the processor's cache.",
    at_least(1),
    ours=True,
)
MAX_PARTITION_FETCH_BYTES = _key(
    "max.partition.fetch.bytes",
    INT,
    1 << 20,
    CONSUMER,
    "Most bytes of one partition in a fetch.",
    at_least(1),
)
MAX_REQUEST_SIZE = _key(
    "max.request.size",
    INT,
    4 << 20,
    PRODUCER,
    "Most bytes of one produce request with several batches (Kafka's producer: 1048576).",
    at_least(1),
    ours=True,
)
MAX_IN_FLIGHT = _key(
    "max.in.flight.requests.per.connection",
    INT,
    5,
    PRODUCER,
    "Produce requests under way per broker; an idempotent producer may have five.",
    Check(lambda value: 1 <= value <= 5, "between 1 and 5"),
)

# --- Heliograph's own -----------------------------------------------------------------------------
TASK_BUFFER_BYTES = _key(
    "heliograph.task.buffer.bytes",
    LONG,
    64 << 20,
    SOURCE,
    "Most bytes of fetched, not yet acknowledged batches that a task holds.",
    at_least(1 << 20),
    ours=True,
)
CONNECTIONS_PER_BROKER = _key(
    "heliograph.connections.per.broker",
    INT,
    1,
    SOURCE,
    "Connections a task opens to each broker for data. More than one helps over long round trips and on busy brokers.",
    Check(lambda value: 1 <= value <= 16, "between 1 and 16"),
    ours=True,
)
CONNECT_TIMEOUT_MS = _key(
    "heliograph.connect.timeout.ms",
    LONG,
    15_000,
    SOURCE,
    "How long `run` waits at its start for a cluster to answer before it gives up.",
    at_least(1),
    ours=True,
)
LEASE_TIMEOUT_MS = _key(
    "heliograph.lease.timeout.ms",
    LONG,
    10_000,
    SOURCE,
    "After this long without an answer from the driver, a task ends itself.",
    at_least(1_000),
    ours=True,
)

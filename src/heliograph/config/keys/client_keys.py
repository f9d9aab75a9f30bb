"""Rows of Kafka's clients: connection and security, consumer, producer, admin.

The first section is Kafka's CLIENT_CONFIG_DEF: MM2 reads those keys at the top of the file and after an alias, too. All
others are written after `A.consumer.`, `B.producer.` or `A.admin.`. Rows without effect follow the rows of their
subject, each group with the reason.
"""

from __future__ import annotations

from heliograph.config.keys.table import (
    ADMIN,
    BOOLEAN,
    CLASS,
    CLIENT,
    CONNECTOR,
    CONSUMER,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NO_STRINGS,
    PASSWORD,
    PRODUCER,
    ROLES,
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

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

# --- every Kafka client ---------------------------------------------------------------------------
BOOTSTRAP_SERVERS = define(
    "bootstrap.servers",
    LIST,
    NO_STRINGS,
    CLIENT,
    "Brokers for the initial connection, as `host:port`; they return all others. Required for each cluster of a flow.",
    importance=HIGH,
)
SECURITY_PROTOCOL = define(
    "security.protocol",
    STRING,
    "PLAINTEXT",
    CLIENT,
    "Protocol of the connections to brokers: without encryption, or with TLS, SASL or both.",
    Check(
        lambda value: value.upper() in _PROTOCOLS,
        f"one of {', '.join(_PROTOCOLS)}",
        _PROTOCOLS,
    ),
    importance=MEDIUM,
)
SASL_MECHANISM = define(
    "sasl.mechanism",
    STRING,
    "GSSAPI",
    CLIENT,
    "How SASL authenticates: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI or AWS_MSK_IAM.",
    importance=MEDIUM,
)
SASL_JAAS_CONFIG = define(
    "sasl.jaas.config",
    PASSWORD,
    "",
    CLIENT,
    "Login module with its options, such as user name and password, as in Java's JAAS files.",
    importance=MEDIUM,
)
SSL_PROTOCOL = define(
    "ssl.protocol", STRING, "TLSv1.3", CLIENT, "Highest TLS version: TLSv1.2 or TLSv1.3.", importance=MEDIUM
)
SSL_ENABLED_PROTOCOLS = define(
    "ssl.enabled.protocols",
    LIST,
    ("TLSv1.2", "TLSv1.3"),
    CLIENT,
    "TLS versions that are allowed. Versions before 1.2 are never used.",
    importance=MEDIUM,
)
SSL_ENDPOINT_ALGORITHM = define(
    "ssl.endpoint.identification.algorithm",
    STRING,
    "https",
    CLIENT,
    "`https` checks that a broker's certificate is for its host name; empty does not.",
)
SSL_TRUSTSTORE_TYPE = define(
    "ssl.truststore.type",
    STRING,
    "JKS",
    CLIENT,
    "Format of the truststore: JKS, PKCS12 or PEM. The contents of the file take precedence.",
    importance=MEDIUM,
)
SSL_TRUSTSTORE_LOCATION = define(
    "ssl.truststore.location", STRING, "", CLIENT, "File with the trusted certificates.", importance=HIGH
)
SSL_TRUSTSTORE_CERTIFICATES = define(
    "ssl.truststore.certificates",
    PASSWORD,
    "",
    CLIENT,
    "Trusted certificates as PEM text instead of a file.",
    importance=HIGH,
    since="2.7",
)
SSL_KEYSTORE_TYPE = define(
    "ssl.keystore.type",
    STRING,
    "JKS",
    CLIENT,
    "Format of the keystore: JKS, PKCS12 or PEM. The contents of the file take precedence.",
    importance=MEDIUM,
)
SSL_KEYSTORE_LOCATION = define(
    "ssl.keystore.location",
    STRING,
    "",
    CLIENT,
    "File with the client's key and certificate, for brokers that require one.",
    importance=HIGH,
)
SSL_KEY_PASSWORD = define(
    "ssl.key.password", PASSWORD, "", CLIENT, "Password of the private key in the keystore.", importance=HIGH
)

# --- the source's consumer, the target's producer, the admins -------------------------------------
REQUEST_TIMEOUT_MS = define(
    "request.timeout.ms",
    INT,
    30_000,
    ROLES,
    "Timeout of a request to a broker.",
    at_least(1),
    importance=MEDIUM,
)
AUTO_OFFSET_RESET = define(
    "auto.offset.reset",
    STRING,
    "earliest",
    CONSUMER,
    "Where to start in a partition without a source offset. MM2 sets earliest; Kafka's own default is latest.",
    one_of("earliest", "latest"),
    importance=MEDIUM,
)
ISOLATION_LEVEL = define(
    "isolation.level",
    STRING,
    "read_committed",
    CONSUMER,
    "Whether to skip records of aborted transactions and to wait for open ones.",
    one_of("read_committed", "read_uncommitted"),
    ours=True,
    importance=MEDIUM,
    mm2_default="read_uncommitted",
)
CLIENT_RACK = define(
    "client.rack",
    STRING,
    "",
    CONSUMER,
    "Rack of the client: records are fetched from a replica in this rack instead of the leader (KIP-392).",
    since="2.4",
)
FETCH_MAX_WAIT_MS = define(
    "fetch.max.wait.ms",
    INT,
    500,
    CONSUMER,
    "How long a broker waits before it returns an empty fetch response.",
    at_least(0),
)
FETCH_MIN_BYTES = define(
    "fetch.min.bytes",
    INT,
    1,
    CONSUMER,
    "Minimum bytes for which a broker returns a fetch response before `fetch.max.wait.ms`.",
    at_least(1),
    importance=HIGH,
)
FETCH_MAX_BYTES = define(
    "fetch.max.bytes",
    INT,
    8 << 20,
    CONSUMER,
    "Maximum bytes of a fetch response. Smaller responses stay in the processor's cache. If neither this nor"
    " max.partition.fetch.bytes is set, both are raised over high-latency links, up to half of the task's buffer.",
    at_least(1),
    ours=True,
    importance=MEDIUM,
    mm2_default=52_428_800,
)
MAX_PARTITION_FETCH_BYTES = define(
    "max.partition.fetch.bytes",
    INT,
    1 << 20,
    CONSUMER,
    "Maximum bytes of one partition in a fetch response; a larger first batch is still returned.",
    at_least(1),
    importance=HIGH,
)
MAX_REQUEST_SIZE = define(
    "max.request.size",
    INT,
    4 << 20,
    PRODUCER,
    "Maximum bytes of a produce request with several batches.",
    at_least(1),
    ours=True,
    importance=MEDIUM,
    mm2_default=1_048_576,
)
MAX_IN_FLIGHT = define(
    "max.in.flight.requests.per.connection",
    INT,
    5,
    PRODUCER,
    "Maximum produce requests in flight per broker, at most five with idempotence. Connect sets 1 in Java MM2.",
    Check(lambda value: 1 <= value <= 5, "between 1 and 5"),
)
COMMITS_PER_TRANSACTION_TIMEOUT = 3
TRANSACTION_TIMEOUT_MS = define(
    "transaction.timeout.ms",
    INT,
    60_000,
    PRODUCER,
    "With exactly-once: how long a transaction may stay open before the target aborts it.",
    at_least(1_000),
)

_CLIENTS = "org.apache.kafka.clients"
_JMX = ("org.apache.kafka.common.metrics.JmxReporter",)


# --- every client ---------------------------------------------------------------------------------
define_all(
    ROLES | WORKER,
    ignored("requests carry client ids of Heliograph's own, which begin with 'heliograph-'"),
    ("client.id", STRING, "", MEDIUM, "", "Name of the client in requests, for quotas and logs."),
)
define_all(
    ROLES | WORKER,
    ignored("Heliograph manages its connections itself and opens lost ones again"),
    ("client.dns.lookup", STRING, "use_all_dns_ips", MEDIUM, "2.1", "Which addresses of a host name are used."),
    ("connections.max.idle.ms", LONG, 540_000, MEDIUM, "", "Time after which an idle connection is closed."),
    ("metadata.max.age.ms", LONG, 300_000, LOW, "", "Time after which metadata is refreshed even without a change."),
    ("metadata.recovery.strategy", STRING, "rebootstrap", LOW, "3.8", "What to do if no known broker is available."),
    ("metadata.recovery.rebootstrap.trigger.ms", LONG, 300_000, LOW, "4.0", "Time before a client bootstraps again."),
    ("receive.buffer.bytes", INT, 65_536, MEDIUM, "", "Size of the TCP receive buffer."),
    ("send.buffer.bytes", INT, 131_072, MEDIUM, "", "Size of the TCP send buffer."),
    ("reconnect.backoff.ms", LONG, 50, LOW, "", "Initial back-off before a reconnect."),
    ("reconnect.backoff.max.ms", LONG, 1_000, LOW, "", "Maximum back-off before a reconnect."),
    ("retry.backoff.ms", LONG, 100, LOW, "", "Initial back-off before a retry."),
    ("retry.backoff.max.ms", LONG, 1_000, LOW, "3.7", "Maximum back-off before a retry."),
    (
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        MEDIUM,
        "2.7",
        "Initial timeout for establishing a connection.",
    ),
    (
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        MEDIUM,
        "2.7",
        "Maximum timeout for establishing a connection.",
    ),
)
define_all(
    CONSUMER | ADMIN,
    ignored("`admin.timeout.ms` limits an administrative operation, `request.timeout.ms` each request"),
    ("default.api.timeout.ms", INT, 60_000, MEDIUM, "2.0", "Timeout of a client's API calls."),
)
define_all(
    PRODUCER | ADMIN,
    ignored("a failed request is retried until it succeeds or fails permanently"),
    ("retries", INT, 2_147_483_647, HIGH, "", "How many times a failed request is retried."),
)
_OWN_METRICS = ignored("metrics are served at `/metrics`, by the driver alone")
define_all(
    ROLES | WORKER | CONNECTOR,
    _OWN_METRICS,
    ("metric.reporters", LIST, _JMX, LOW, "", "Java classes that report metrics."),
)
define_all(
    ROLES | WORKER,
    _OWN_METRICS,
    ("metrics.num.samples", INT, 2, LOW, "", "Number of samples of a metric."),
    ("metrics.sample.window.ms", LONG, 30_000, LOW, "", "Time window of a sample."),
    ("metrics.recording.level", STRING, "INFO", LOW, "", "Recording level of metrics."),
    ("enable.metrics.push", BOOLEAN, True, LOW, "3.7", "Whether a client sends metrics to brokers that ask (KIP-714)."),
)
define_all(
    CONSUMER | PRODUCER,
    rejected("interceptors are Java classes that may change records; Heliograph copies records unchanged. Remove it."),
    ("interceptor.classes", LIST, NO_STRINGS, LOW, "", "Java classes that intercept, and may change, records."),
)

# --- the source's consumer ------------------------------------------------------------------------
define_all(
    CONSUMER,
    ignored("Heliograph reads partitions without a consumer group and stores source offsets on the target"),
    ("allow.auto.create.topics", BOOLEAN, True, MEDIUM, "2.3", "Whether subscribing to a missing topic creates it."),
    ("auto.commit.interval.ms", INT, 5_000, LOW, "", "How often a group's offsets are committed."),
    ("enable.auto.commit", BOOLEAN, True, MEDIUM, "", "Whether a group's offsets are committed automatically."),
    ("exclude.internal.topics", BOOLEAN, True, MEDIUM, "", "Whether a pattern subscription excludes internal topics."),
    ("group.instance.id", STRING, "", MEDIUM, "2.3", "Static id of a member of a group."),
    ("group.protocol", STRING, "classic", HIGH, "3.7", "Protocol of consumer groups: classic or consumer."),
    ("group.remote.assignor", STRING, "", MEDIUM, "3.7", "How brokers assign partitions to a group's members."),
    ("max.poll.interval.ms", INT, 300_000, MEDIUM, "", "Maximum time between two polls of a member."),
    ("max.poll.records", INT, 500, MEDIUM, "", "Maximum records that a poll returns."),
    (
        "partition.assignment.strategy",
        LIST,
        (f"{_CLIENTS}.consumer.RangeAssignor", f"{_CLIENTS}.consumer.CooperativeStickyAssignor"),
        MEDIUM,
        "",
        "How members assign partitions among themselves.",
    ),
    ("share.acknowledgement.mode", STRING, "implicit", MEDIUM, "4.1", "How a share group's records are acknowledged."),
    ("share.acquire.mode", STRING, "BATCH_OPTIMIZED", MEDIUM, "", "How a share group's records are acquired."),
)
define_all(
    CONSUMER,
    ignored("CRCs are always verified, so that damaged batches are not copied"),
    ("check.crcs", BOOLEAN, True, LOW, "", "Whether the CRC of each batch is verified."),
)
define_all(
    CONSUMER,
    ignored("records are copied as bytes"),
    ("key.deserializer", CLASS, "", HIGH, "", "Java class that deserializes keys."),
    ("value.deserializer", CLASS, "", HIGH, "", "Java class that deserializes values."),
)

# --- the target's producer ------------------------------------------------------------------------
define_all(
    PRODUCER,
    ignored("the producer is always idempotent and waits for all in-sync replicas"),
    ("acks", STRING, "all", LOW, "", "How many replicas must acknowledge a batch."),
    ("enable.idempotence", BOOLEAN, True, LOW, "", "Whether retries cannot write duplicates."),
)
define_all(
    PRODUCER,
    ignored("batches are copied as the source has them; small ones are merged"),
    ("batch.size", INT, 16_384, MEDIUM, "", "Maximum size of a batch."),
    ("linger.ms", LONG, 5, MEDIUM, "", "How long a batch waits for more records."),
    ("compression.type", STRING, "none", HIGH, "", "Compression type of batches."),
    ("compression.gzip.level", INT, -1, MEDIUM, "3.8", "Compression level of gzip."),
    ("compression.lz4.level", INT, 9, MEDIUM, "3.8", "Compression level of lz4."),
    ("compression.zstd.level", INT, 3, MEDIUM, "3.8", "Compression level of zstd."),
)
define_all(
    PRODUCER,
    ignored("`heliograph.task.buffer.bytes` limits memory, and a batch is retried until it is written"),
    ("buffer.memory", LONG, 33_554_432, HIGH, "", "Memory for records that wait to be sent."),
    ("delivery.timeout.ms", INT, 120_000, MEDIUM, "2.1", "Time after which a batch that was not acknowledged fails."),
    ("max.block.ms", LONG, 60_000, MEDIUM, "", "How long a producer waits for memory or metadata."),
    ("metadata.max.idle.ms", LONG, 300_000, LOW, "2.5", "Time after which metadata of an idle topic is dropped."),
)
define_all(
    PRODUCER,
    ignored("a record keeps its partition number of the source"),
    ("partitioner.class", CLASS, "", MEDIUM, "", "Java class that chooses a record's partition."),
    ("partitioner.ignore.keys", BOOLEAN, False, MEDIUM, "3.3", "Whether the partitioner ignores keys."),
    ("partitioner.adaptive.partitioning.enable", BOOLEAN, True, LOW, "3.3", "Whether faster brokers get more records."),
    (
        "partitioner.availability.timeout.ms",
        LONG,
        0,
        LOW,
        "3.3",
        "Time after which partitions of a slow broker are avoided.",
    ),
)
define_all(
    PRODUCER,
    ignored("records are copied as bytes"),
    ("key.serializer", CLASS, "", HIGH, "", "Java class that serializes keys."),
    ("value.serializer", CLASS, "", HIGH, "", "Java class that serializes values."),
)
define_all(
    PRODUCER,
    ignored("with exactly-once, transactional ids are derived from `group.id`, as in Connect"),
    ("transactional.id", STRING, "", LOW, "", "Transactional id of a producer."),
    (
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        LOW,
        "",
        "Whether transactions take part in a two-phase commit.",
    ),
)

# --- the admin client -----------------------------------------------------------------------------
define_all(
    ADMIN,
    ignored("requests are sent to brokers, never to controllers"),
    (
        "bootstrap.controllers",
        LIST,
        NO_STRINGS,
        HIGH,
        "3.7",
        "Controllers for the initial connection, instead of brokers.",
    ),
)

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
    "Brokers to ask first, as `host:port`; the others are learned from them. Needed for every cluster of a flow.",
    importance=HIGH,
)
SECURITY_PROTOCOL = define(
    "security.protocol",
    STRING,
    "PLAINTEXT",
    CLIENT,
    "Whether brokers are reached in the clear, with TLS, with SASL, or both.",
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
    "ssl.protocol", STRING, "TLSv1.3", CLIENT, "Newest TLS version to speak: TLSv1.2 or TLSv1.3.", importance=MEDIUM
)
SSL_ENABLED_PROTOCOLS = define(
    "ssl.enabled.protocols",
    LIST,
    ("TLSv1.2", "TLSv1.3"),
    CLIENT,
    "TLS versions allowed. Versions before 1.2 are never used.",
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
    "Format of the truststore: JKS, PKCS12 or PEM. What the file is counts.",
    importance=MEDIUM,
)
SSL_TRUSTSTORE_LOCATION = define(
    "ssl.truststore.location", STRING, "", CLIENT, "File of the certificates that are trusted.", importance=HIGH
)
SSL_TRUSTSTORE_CERTIFICATES = define(
    "ssl.truststore.certificates",
    PASSWORD,
    "",
    CLIENT,
    "The certificates that are trusted, as PEM text in place of a file.",
    importance=HIGH,
    since="2.7",
)
SSL_KEYSTORE_TYPE = define(
    "ssl.keystore.type",
    STRING,
    "JKS",
    CLIENT,
    "Format of the keystore: JKS, PKCS12 or PEM. What the file is counts.",
    importance=MEDIUM,
)
SSL_KEYSTORE_LOCATION = define(
    "ssl.keystore.location",
    STRING,
    "",
    CLIENT,
    "File of our own key and certificate, for brokers that ask for one.",
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
    "Longest wait for a broker's answer.",
    at_least(1),
    importance=MEDIUM,
)
AUTO_OFFSET_RESET = define(
    "auto.offset.reset",
    STRING,
    "earliest",
    CONSUMER,
    "Where a partition without source offsets begins. MM2 sets earliest, Kafka's consumer latest.",
    one_of("earliest", "latest"),
    importance=MEDIUM,
)
ISOLATION_LEVEL = define(
    "isolation.level",
    STRING,
    "read_committed",
    CONSUMER,
    "Whether records of aborted transactions are left out, and open ones waited for.",
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
    "Our rack: a replica in it is read instead of the leader (KIP-392).",
    since="2.4",
)
FETCH_MAX_WAIT_MS = define(
    "fetch.max.wait.ms", INT, 500, CONSUMER, "How long a broker holds an empty fetch.", at_least(0)
)
FETCH_MIN_BYTES = define(
    "fetch.min.bytes", INT, 1, CONSUMER, "Least bytes that end the broker's wait.", at_least(1), importance=HIGH
)
FETCH_MAX_BYTES = define(
    "fetch.max.bytes",
    INT,
    8 << 20,
    CONSUMER,
    "Most bytes of one fetch. Smaller answers stay in the processor's cache; where neither"
    " this nor max.partition.fetch.bytes is set, a long round trip raises both, up to half of the task's buffer.",
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
    "Most bytes of one partition in a fetch; a larger first batch still comes whole.",
    at_least(1),
    importance=HIGH,
)
MAX_REQUEST_SIZE = define(
    "max.request.size",
    INT,
    4 << 20,
    PRODUCER,
    "Most bytes of one produce request with several batches.",
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
    "Produce requests under way per broker; an idempotent producer may have five. Connect sets 1 in Java MM2.",
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
    ("client.id", STRING, "", MEDIUM, "", "Name a client gives to brokers, for quotas and logs."),
)
define_all(
    ROLES | WORKER,
    ignored("Heliograph's own connections pace themselves, and are opened again when they are lost"),
    ("client.dns.lookup", STRING, "use_all_dns_ips", MEDIUM, "2.1", "Which addresses of a host name are tried."),
    ("connections.max.idle.ms", LONG, 540_000, MEDIUM, "", "When an idle connection is closed."),
    ("metadata.max.age.ms", LONG, 300_000, LOW, "", "When leaders are asked for again without a reason."),
    ("metadata.recovery.strategy", STRING, "rebootstrap", LOW, "3.8", "What to do when no known broker answers."),
    ("metadata.recovery.rebootstrap.trigger.ms", LONG, 300_000, LOW, "4.0", "How long to wait before that."),
    ("receive.buffer.bytes", INT, 65_536, MEDIUM, "", "The operating system's buffer for what is received."),
    ("send.buffer.bytes", INT, 131_072, MEDIUM, "", "The operating system's buffer for what is sent."),
    ("reconnect.backoff.ms", LONG, 50, LOW, "", "First pause before a connection is opened again."),
    ("reconnect.backoff.max.ms", LONG, 1_000, LOW, "", "Longest pause before a connection is opened again."),
    ("retry.backoff.ms", LONG, 100, LOW, "", "First pause before a request is sent again."),
    ("retry.backoff.max.ms", LONG, 1_000, LOW, "3.7", "Longest pause before a request is sent again."),
    ("socket.connection.setup.timeout.ms", LONG, 10_000, MEDIUM, "2.7", "First limit for opening a connection."),
    ("socket.connection.setup.timeout.max.ms", LONG, 30_000, MEDIUM, "2.7", "Longest limit for opening a connection."),
)
define_all(
    CONSUMER | ADMIN,
    ignored("`admin.timeout.ms` limits a step of an administrator, `request.timeout.ms` a request"),
    ("default.api.timeout.ms", INT, 60_000, MEDIUM, "2.0", "Longest time one call of a client may take."),
)
define_all(
    PRODUCER | ADMIN,
    ignored("a failed request is sent again until it succeeds or cannot any more"),
    ("retries", INT, 2_147_483_647, HIGH, "", "How often a failed request is sent again."),
)
_OWN_METRICS = ignored("Java's metrics are not there")
define_all(
    ROLES | WORKER | CONNECTOR,
    _OWN_METRICS,
    ("metric.reporters", LIST, _JMX, LOW, "", "Java classes that report metrics."),
)
define_all(
    ROLES | WORKER,
    _OWN_METRICS,
    ("metrics.num.samples", INT, 2, LOW, "", "Samples a metric keeps."),
    ("metrics.sample.window.ms", LONG, 30_000, LOW, "", "Length of a metric's sample."),
    ("metrics.recording.level", STRING, "INFO", LOW, "", "How fine metrics are."),
    ("enable.metrics.push", BOOLEAN, True, LOW, "3.7", "Whether a client sends metrics to brokers that ask (KIP-714)."),
)
define_all(
    CONSUMER | PRODUCER,
    rejected("interceptors are Java classes that may change records; Heliograph copies them as they are. Remove it."),
    ("interceptor.classes", LIST, NO_STRINGS, LOW, "", "Java classes that see, and may change, every record."),
)

# --- the source's consumer ------------------------------------------------------------------------
define_all(
    CONSUMER,
    ignored("Heliograph reads partitions itself, without a consumer group, and keeps source offsets on the target"),
    ("allow.auto.create.topics", BOOLEAN, True, MEDIUM, "2.3", "Whether reading a missing topic creates it."),
    ("auto.commit.interval.ms", INT, 5_000, LOW, "", "How often a group's offsets are committed."),
    ("enable.auto.commit", BOOLEAN, True, MEDIUM, "", "Whether a group's offsets are committed by themselves."),
    ("exclude.internal.topics", BOOLEAN, True, MEDIUM, "", "Whether a pattern subscription leaves out Kafka's topics."),
    ("group.instance.id", STRING, "", MEDIUM, "2.3", "Lasting name of a member of a group."),
    ("group.protocol", STRING, "classic", HIGH, "3.7", "Protocol of consumer groups: classic or consumer."),
    ("group.remote.assignor", STRING, "", MEDIUM, "3.7", "How brokers assign partitions to a group's members."),
    ("max.poll.interval.ms", INT, 300_000, MEDIUM, "", "When a member that does not ask is given up."),
    ("max.poll.records", INT, 500, MEDIUM, "", "Most records one poll returns."),
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
    ignored("checksums are always checked; damage must not be copied"),
    ("check.crcs", BOOLEAN, True, LOW, "", "Whether the checksum of every batch is checked."),
)
define_all(
    CONSUMER,
    ignored("records are copied as bytes"),
    ("key.deserializer", CLASS, "", HIGH, "", "Java class that reads keys."),
    ("value.deserializer", CLASS, "", HIGH, "", "Java class that reads values."),
)

# --- the target's producer ------------------------------------------------------------------------
define_all(
    PRODUCER,
    ignored("the producer is always idempotent and waits for all in-sync replicas"),
    ("acks", STRING, "all", LOW, "", "How many replicas confirm a batch."),
    ("enable.idempotence", BOOLEAN, True, LOW, "", "Whether the target recognises a batch that is sent twice."),
)
define_all(
    PRODUCER,
    ignored("batches are copied as the source has them; small neighbours are merged"),
    ("batch.size", INT, 16_384, MEDIUM, "", "Bytes of a batch."),
    ("linger.ms", LONG, 5, MEDIUM, "", "How long a batch waits for more records."),
    ("compression.type", STRING, "none", HIGH, "", "How batches are compressed."),
    ("compression.gzip.level", INT, -1, MEDIUM, "3.8", "How hard gzip works."),
    ("compression.lz4.level", INT, 9, MEDIUM, "3.8", "How hard lz4 works."),
    ("compression.zstd.level", INT, 3, MEDIUM, "3.8", "How hard zstd works."),
)
define_all(
    PRODUCER,
    ignored("`heliograph.task.buffer.bytes` bounds what is under way, and a batch is sent until it is written"),
    ("buffer.memory", LONG, 33_554_432, HIGH, "", "Bytes of records that wait to be sent."),
    ("delivery.timeout.ms", INT, 120_000, MEDIUM, "2.1", "When a batch that was not written is given up."),
    ("max.block.ms", LONG, 60_000, MEDIUM, "", "How long a producer waits for memory or metadata."),
    ("metadata.max.idle.ms", LONG, 300_000, LOW, "2.5", "When an unused topic's metadata is forgotten."),
)
define_all(
    PRODUCER,
    ignored("a record keeps the partition number it has on the source"),
    ("partitioner.class", CLASS, "", MEDIUM, "", "Java class that chooses a record's partition."),
    ("partitioner.ignore.keys", BOOLEAN, False, MEDIUM, "3.3", "Whether keys do not decide the partition."),
    ("partitioner.adaptive.partitioning.enable", BOOLEAN, True, LOW, "3.3", "Whether faster brokers get more."),
    ("partitioner.availability.timeout.ms", LONG, 0, LOW, "3.3", "When a slow broker's partitions are avoided."),
)
define_all(
    PRODUCER,
    ignored("records are copied as bytes"),
    ("key.serializer", CLASS, "", HIGH, "", "Java class that writes keys."),
    ("value.serializer", CLASS, "", HIGH, "", "Java class that writes values."),
)
define_all(
    PRODUCER,
    ignored("with exactly-once, transactional ids are made from `group.id` as Connect makes them"),
    ("transactional.id", STRING, "", LOW, "", "Name of a producer's transactions."),
    ("transaction.two.phase.commit.enable", BOOLEAN, False, LOW, "", "Whether transactions wait for a second party."),
)

# --- the admin client -----------------------------------------------------------------------------
define_all(
    ADMIN,
    ignored("requests go to brokers, never to controllers"),
    ("bootstrap.controllers", LIST, NO_STRINGS, HIGH, "3.7", "Controllers to ask in place of brokers."),
)

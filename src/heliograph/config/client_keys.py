"""Rows of the table: client keys that Heliograph acts on, for any client, the consumer and the producer.

Kafka's own scope for the first part is CLIENT_CONFIG_DEF: MM2 reads those keys also at the top of the file and behind
an alias. Everything else belongs behind `A.consumer.`, `B.producer.` or `A.admin.`.
"""

from __future__ import annotations

from heliograph.config.table import CLIENT, CONSUMER, HIGH, MEDIUM, NO_STRINGS, PRODUCER, ROLES, define
from heliograph.config.types import INT, LIST, PASSWORD, STRING, Check, at_least, one_of

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
        lambda value: value.upper() in {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"},
        "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
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
    "TLS versions allowed. Versions before 1.2 are never spoken.",
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
    "Where a partition without progress begins. MM2 sets earliest where Kafka's consumer has latest.",
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

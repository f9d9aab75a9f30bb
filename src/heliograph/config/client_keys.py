"""Rows of the table: what Kafka's clients are told, for both clusters, the source's consumer, the target's producer."""

from __future__ import annotations

from heliograph.config.table import CLIENT, CONSUMER, NO_STRINGS, PRODUCER, define
from heliograph.config.types import INT, LIST, PASSWORD, STRING, Check, at_least, one_of

# --- every Kafka client ---------------------------------------------------------------------------
BOOTSTRAP_SERVERS = define("bootstrap.servers", LIST, NO_STRINGS, CLIENT, "Brokers to ask first.")
SECURITY_PROTOCOL = define(
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
SASL_MECHANISM = define("sasl.mechanism", STRING, "GSSAPI", CLIENT, "How SASL authenticates.")
SASL_JAAS_CONFIG = define("sasl.jaas.config", PASSWORD, "", CLIENT, "Login module and its credentials.")
SSL_PROTOCOL = define("ssl.protocol", STRING, "TLSv1.3", CLIENT, "Newest TLS version to speak.")
SSL_ENABLED_PROTOCOLS = define("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), CLIENT, "TLS versions allowed.")
SSL_ENDPOINT_ALGORITHM = define(
    "ssl.endpoint.identification.algorithm",
    STRING,
    "https",
    CLIENT,
    "`https` checks the host name; empty does not.",
)
SSL_TRUSTSTORE_TYPE = define("ssl.truststore.type", STRING, "JKS", CLIENT, "Format of the truststore.")
SSL_TRUSTSTORE_LOCATION = define("ssl.truststore.location", STRING, "", CLIENT, "File of trusted certificates.")
SSL_TRUSTSTORE_CERTIFICATES = define(
    "ssl.truststore.certificates", PASSWORD, "", CLIENT, "Trusted certificates as PEM text."
)
SSL_KEYSTORE_TYPE = define("ssl.keystore.type", STRING, "JKS", CLIENT, "Format of the keystore.")
SSL_KEYSTORE_LOCATION = define("ssl.keystore.location", STRING, "", CLIENT, "File of our key and certificate.")
SSL_KEY_PASSWORD = define("ssl.key.password", PASSWORD, "", CLIENT, "Password of the private key.")
for _name in (
    "ssl.truststore.password",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
):
    define(_name, PASSWORD, "", CLIENT, "Secret of a store of keys or certificates.")
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
    define(_name, STRING, "", CLIENT, "Kafka's client key of this name.")
for _name in (
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
):
    define(_name, PASSWORD, "", CLIENT, "Secret of an OAuth client.")

# --- the source's consumer and the target's producer ----------------------------------------------
REQUEST_TIMEOUT_MS = define(
    "request.timeout.ms",
    INT,
    30_000,
    CLIENT | CONSUMER | PRODUCER,
    "Longest wait for a broker's answer.",
    at_least(1),
)
AUTO_OFFSET_RESET = define(
    "auto.offset.reset",
    STRING,
    "earliest",
    CONSUMER,
    "Where a partition without progress begins.",
    one_of("earliest", "latest"),
)
ISOLATION_LEVEL = define(
    "isolation.level",
    STRING,
    "read_committed",
    CONSUMER,
    "Whether records of aborted transactions are left out, and open ones waited for (Kafka and MM2: read_uncommitted).",
    one_of("read_committed", "read_uncommitted"),
    ours=True,
)
CLIENT_RACK = define(
    "client.rack", STRING, "", CLIENT | CONSUMER, "Our rack: a replica in it is read instead of the leader (KIP-392)."
)
FETCH_MAX_WAIT_MS = define(
    "fetch.max.wait.ms", INT, 500, CONSUMER, "How long a broker holds an empty fetch.", at_least(0)
)
FETCH_MIN_BYTES = define("fetch.min.bytes", INT, 1, CONSUMER, "Least bytes that end the broker's wait.", at_least(1))
FETCH_MAX_BYTES = define(
    "fetch.max.bytes",
    INT,
    8 << 20,
    CONSUMER,
    "Most bytes of one fetch (Kafka's consumer: 52428800). Smaller answers stay in the processor's cache; where neither"
    " this nor max.partition.fetch.bytes is set, a long round trip raises both, up to half of the task's buffer.",
    at_least(1),
    ours=True,
)
MAX_PARTITION_FETCH_BYTES = define(
    "max.partition.fetch.bytes",
    INT,
    1 << 20,
    CONSUMER,
    "Most bytes of one partition in a fetch.",
    at_least(1),
)
MAX_REQUEST_SIZE = define(
    "max.request.size",
    INT,
    4 << 20,
    PRODUCER,
    "Most bytes of one produce request with several batches (Kafka's producer: 1048576).",
    at_least(1),
    ours=True,
)
MAX_IN_FLIGHT = define(
    "max.in.flight.requests.per.connection",
    INT,
    5,
    PRODUCER,
    "Produce requests under way per broker; an idempotent producer may have five.",
    Check(lambda value: 1 <= value <= 5, "between 1 and 5"),
)
TRANSACTION_TIMEOUT_MS = define(
    "transaction.timeout.ms",
    INT,
    60_000,
    PRODUCER,
    "With exactly-once: how long a transaction may stay open before the target aborts it.",
    at_least(1_000),
)

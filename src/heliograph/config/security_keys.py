"""Rows of the table: TLS stores, passwords and logins that Heliograph acts on, beside those in `client_keys`.

Who reads them: `kafka/security.py`.
"""

from __future__ import annotations

from heliograph.config.table import CLIENT, HIGH, MEDIUM, NO_STRINGS, define
from heliograph.config.types import BOOLEAN, CLASS, DOUBLE, INT, LIST, LONG, PASSWORD, SHORT, STRING, Check, at_least

_RETRIEVERS = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
_OAUTH = "org.apache.kafka.common.security.oauthbearer"

# --- TLS ------------------------------------------------------------------------------------------
SSL_TRUSTSTORE_PASSWORD = define(
    "ssl.truststore.password",
    PASSWORD,
    "",
    CLIENT,
    "Password of the truststore; a PEM file has none, and a JKS file is read without it, unchecked.",
    importance=HIGH,
)
SSL_KEYSTORE_PASSWORD = define(
    "ssl.keystore.password",
    PASSWORD,
    "",
    CLIENT,
    "Password of the keystore; a PEM file has none. Where `ssl.key.password` is not set, it is also the key's.",
    importance=HIGH,
)
SSL_KEYSTORE_KEY = define(
    "ssl.keystore.key",
    PASSWORD,
    "",
    CLIENT,
    "Our private key as PEM text in place of a file.",
    importance=HIGH,
    since="2.7",
)
SSL_KEYSTORE_CERTIFICATE_CHAIN = define(
    "ssl.keystore.certificate.chain",
    PASSWORD,
    "",
    CLIENT,
    "Our certificate and those above it as PEM text in place of a file.",
    importance=HIGH,
    since="2.7",
)
SSL_CIPHER_SUITES = define(
    "ssl.cipher.suites",
    LIST,
    NO_STRINGS,
    CLIENT,
    "Cipher suites that may be agreed on, by Java's names; empty: those OpenSSL holds to be safe.",
)

# --- logins ---------------------------------------------------------------------------------------
_SHARE: Check[float] = Check(lambda value: 0.5 <= value <= 1.0, "between 0.5 and 1.0")
_JITTER: Check[float] = Check(lambda value: 0.0 <= value <= 0.25, "between 0 and 0.25")
SASL_KERBEROS_SERVICE_NAME = define(
    "sasl.kerberos.service.name",
    STRING,
    "",
    CLIENT,
    "Name the brokers have in Kerberos; `serviceName` in `sasl.jaas.config` says it too.",
    importance=MEDIUM,
)
SASL_LOGIN_CONNECT_TIMEOUT_MS = define(
    "sasl.login.connect.timeout.ms",
    INT,
    None,
    CLIENT,
    "How long a login waits for a connection to the token endpoint; not set: 10 s.",
    since="3.1",
)
SASL_LOGIN_READ_TIMEOUT_MS = define(
    "sasl.login.read.timeout.ms",
    INT,
    None,
    CLIENT,
    "How long a login waits for the token endpoint's answer; not set: 10 s.",
    since="3.1",
)
SASL_LOGIN_RETRY_BACKOFF_MS = define(
    "sasl.login.retry.backoff.ms",
    LONG,
    100,
    CLIENT,
    "First pause before a token endpoint that failed is asked again.",
    at_least(1),
    since="3.1",
)
SASL_LOGIN_RETRY_BACKOFF_MAX_MS = define(
    "sasl.login.retry.backoff.max.ms",
    LONG,
    10_000,
    CLIENT,
    "Longest time over which a token endpoint that fails is asked again.",
    at_least(1),
    since="3.1",
)
SASL_LOGIN_REFRESH_WINDOW_FACTOR = define(
    "sasl.login.refresh.window.factor",
    DOUBLE,
    0.8,
    CLIENT,
    "Share of a token's life after which it is renewed.",
    _SHARE,
    since="2.0",
)
SASL_LOGIN_REFRESH_WINDOW_JITTER = define(
    "sasl.login.refresh.window.jitter", DOUBLE, 0.05, CLIENT, "Random part of that time.", _JITTER, since="2.0"
)
SASL_LOGIN_REFRESH_MIN_PERIOD_S = define(
    "sasl.login.refresh.min.period.seconds",
    SHORT,
    60,
    CLIENT,
    "Least time between two renewals, as far as the token lives that long.",
    at_least(0),
    since="2.0",
)
SASL_LOGIN_REFRESH_BUFFER_S = define(
    "sasl.login.refresh.buffer.seconds",
    SHORT,
    300,
    CLIENT,
    "Time before a token's end at which renewal is due at the latest, as far as the token lives that long.",
    at_least(0),
    since="2.0",
)

# --- OAUTHBEARER ----------------------------------------------------------------------------------
OAUTH_TOKEN_ENDPOINT_URL = define(
    "sasl.oauthbearer.token.endpoint.url",
    STRING,
    "",
    CLIENT,
    "Where tokens are asked for with the client's id and secret (`https://...`), or the file that has one (`file:///...`).",
    importance=MEDIUM,
    since="3.1",
)
OAUTH_SCOPE = define(
    "sasl.oauthbearer.scope",
    STRING,
    "",
    CLIENT,
    "Scope that is asked for; `scope` in `sasl.jaas.config` says it too.",
    importance=MEDIUM,
    since="4.1",
)
OAUTH_CLIENT_ID = define(
    "sasl.oauthbearer.client.credentials.client.id",
    STRING,
    "",
    CLIENT,
    "Id of the OAuth client; `clientId` in `sasl.jaas.config` says it too.",
    importance=MEDIUM,
    since="4.1",
)
OAUTH_CLIENT_SECRET = define(
    "sasl.oauthbearer.client.credentials.client.secret",
    PASSWORD,
    "",
    CLIENT,
    "Secret of the OAuth client; `clientSecret` in `sasl.jaas.config` says it too.",
    importance=MEDIUM,
    since="4.1",
)
OAUTH_HEADER_URLENCODE = define(
    "sasl.oauthbearer.header.urlencode",
    BOOLEAN,
    False,
    CLIENT,
    "Whether the client's id and secret are URL-encoded.",
    since="3.9",
)
OAUTH_RETRIEVER_CLASS = define(
    "sasl.oauthbearer.jwt.retriever.class",
    CLASS,
    f"{_OAUTH}.DefaultJwtRetriever",
    CLIENT,
    "Kafka's class that fetches tokens: by client credentials, or from a file.",
    Check(
        lambda name: name.rpartition(".")[2] in _RETRIEVERS,
        "DefaultJwtRetriever, ClientCredentialsJwtRetriever or FileJwtRetriever; others cannot be loaded",
    ),
    importance=MEDIUM,
    since="4.1",
)

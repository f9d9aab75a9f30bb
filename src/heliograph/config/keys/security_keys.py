"""Rows of TLS stores, passwords and logins, beside those of the connection in `client_keys`.

`kafka/security/security_settings` reads them. Rows without effect follow, each group with the reason. A key without
which a connection cannot be made is not among them: its value is refused there.
"""

from __future__ import annotations

from heliograph.config.keys.table import (
    BOOLEAN,
    CLASS,
    CLIENT,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NO_STRINGS,
    PASSWORD,
    ROLES,
    SHORT,
    STRING,
    Check,
    at_least,
    define,
    define_all,
    ignored,
)

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

_JWT = "org.apache.kafka.common.security.oauthbearer"

_OPENSSL = ignored("TLS is OpenSSL's here and chooses for itself")
define_all(
    CLIENT,
    _OPENSSL,
    ("ssl.provider", STRING, "", MEDIUM, "", "Java security provider that makes TLS connections."),
    ("ssl.keymanager.algorithm", STRING, "SunX509", LOW, "", "Algorithm of Java's key manager."),
    ("ssl.trustmanager.algorithm", STRING, "PKIX", LOW, "", "Algorithm of Java's trust manager."),
    ("ssl.secure.random.implementation", STRING, "", LOW, "", "Java's source of random numbers for TLS."),
    ("ssl.engine.factory.class", CLASS, None, LOW, "2.6", "Java class that makes TLS engines."),
)
define(
    "security.providers", STRING, "", ROLES, "Java classes that make security providers.", since="2.4", support=_OPENSSL
)
_JAVA_LOGIN = ignored("classes of Java cannot be loaded; what Kafka's own do for each mechanism is built in")
for _name, _doc in (
    ("sasl.client.callback.handler.class", "Java class that answers SASL's questions."),
    ("sasl.login.callback.handler.class", "Java class that answers a login's questions."),
    ("sasl.login.class", "Java class that logs in."),
):
    define(_name, CLASS, "", CLIENT, _doc, importance=MEDIUM, support=_JAVA_LOGIN)

_NO_KINIT = ignored("tickets are fetched and renewed by the Kerberos library, outside of Heliograph")
define_all(
    CLIENT,
    _NO_KINIT,
    ("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", LOW, "", "Program that fetches a Kerberos ticket."),
    (
        "sasl.kerberos.ticket.renew.window.factor",
        DOUBLE,
        0.8,
        LOW,
        "",
        "Share of a ticket's life after which it is renewed.",
    ),
    ("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, LOW, "", "Random part of that time."),
    ("sasl.kerberos.min.time.before.relogin", LONG, 60_000, LOW, "", "Least time between two Kerberos logins, in ms."),
)
_OF_BROKERS = ignored("tokens are checked by the brokers, not by the client")
define_all(
    CLIENT,
    _OF_BROKERS,
    (
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        f"{_JWT}.DefaultJwtValidator",
        MEDIUM,
        "4.1",
        "Java class that checks tokens.",
    ),
    ("sasl.oauthbearer.jwks.endpoint.url", STRING, "", MEDIUM, "3.1", "Where the keys that sign tokens are published."),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, LOW, "3.1", "How often those keys are read again."),
    (
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        LOW,
        "3.1",
        "First pause before they are asked for again.",
    ),
    (
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        LOW,
        "3.1",
        "Longest pause before they are asked for again.",
    ),
    ("sasl.oauthbearer.clock.skew.seconds", INT, 30, LOW, "3.1", "How far the clocks of both sides may differ."),
    ("sasl.oauthbearer.expected.audience", LIST, NO_STRINGS, HIGH, "3.1", "Audiences a token may be for."),
    ("sasl.oauthbearer.expected.issuer", STRING, "", HIGH, "3.1", "Issuer a token must be from."),
    ("sasl.oauthbearer.scope.claim.name", STRING, "scope", LOW, "3.1", "Claim that holds the scope."),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", LOW, "3.1", "Claim that holds the subject."),
)
_NO_ASSERTION = ignored("a token is asked for with the client's id and secret, not with an assertion")
define_all(
    CLIENT,
    _NO_ASSERTION,
    ("sasl.oauthbearer.assertion.algorithm", STRING, "RS256", MEDIUM, "4.1", "Algorithm that signs an assertion."),
    ("sasl.oauthbearer.assertion.claim.aud", STRING, "", MEDIUM, "4.1", "Audience in an assertion."),
    ("sasl.oauthbearer.assertion.claim.iss", STRING, "", MEDIUM, "4.1", "Issuer in an assertion."),
    ("sasl.oauthbearer.assertion.claim.sub", STRING, "", MEDIUM, "4.1", "Subject in an assertion."),
    (
        "sasl.oauthbearer.assertion.claim.jti.include",
        BOOLEAN,
        False,
        MEDIUM,
        "4.1",
        "Whether an assertion has an id of its own.",
    ),
    ("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, LOW, "4.1", "How long an assertion is good."),
    ("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, LOW, "4.1", "How long before now an assertion begins."),
    ("sasl.oauthbearer.assertion.file", STRING, "", MEDIUM, "4.1", "File of a ready-made assertion."),
    (
        "sasl.oauthbearer.assertion.private.key.file",
        STRING,
        "",
        MEDIUM,
        "4.1",
        "File of the key that signs an assertion.",
    ),
    ("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, "", MEDIUM, "4.1", "Password of that key."),
    ("sasl.oauthbearer.assertion.template.file", STRING, "", MEDIUM, "4.1", "File with further parts of an assertion."),
)

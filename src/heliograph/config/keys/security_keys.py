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
    "Password of the truststore. PEM files have none; without it the integrity of a JKS file is not verified.",
    importance=HIGH,
)
SSL_KEYSTORE_PASSWORD = define(
    "ssl.keystore.password",
    PASSWORD,
    "",
    CLIENT,
    "Password of the keystore; PEM files have none. If `ssl.key.password` is not set, it is also used for the key.",
    importance=HIGH,
)
SSL_KEYSTORE_KEY = define(
    "ssl.keystore.key",
    PASSWORD,
    "",
    CLIENT,
    "Private key of the client as PEM text instead of a file.",
    importance=HIGH,
    since="2.7",
)
SSL_KEYSTORE_CERTIFICATE_CHAIN = define(
    "ssl.keystore.certificate.chain",
    PASSWORD,
    "",
    CLIENT,
    "Certificate chain of the client as PEM text instead of a file.",
    importance=HIGH,
    since="2.7",
)
SSL_CIPHER_SUITES = define(
    "ssl.cipher.suites",
    LIST,
    NO_STRINGS,
    CLIENT,
    "Cipher suites that are allowed, with Java's names. If it is empty, OpenSSL's defaults.",
)

# --- logins ---------------------------------------------------------------------------------------
_SHARE: Check[float] = Check(lambda value: 0.5 <= value <= 1.0, "between 0.5 and 1.0")
_JITTER: Check[float] = Check(lambda value: 0.0 <= value <= 0.25, "between 0 and 0.25")
SASL_KERBEROS_SERVICE_NAME = define(
    "sasl.kerberos.service.name",
    STRING,
    "",
    CLIENT,
    "Kerberos service name of the brokers. Can also be set as `serviceName` in `sasl.jaas.config`.",
    importance=MEDIUM,
)
SASL_LOGIN_CONNECT_TIMEOUT_MS = define(
    "sasl.login.connect.timeout.ms",
    INT,
    None,
    CLIENT,
    "Timeout of connections to the token endpoint. If it is not set, 10 s.",
    since="3.1",
)
SASL_LOGIN_READ_TIMEOUT_MS = define(
    "sasl.login.read.timeout.ms",
    INT,
    None,
    CLIENT,
    "Timeout of responses of the token endpoint. If it is not set, 10 s.",
    since="3.1",
)
SASL_LOGIN_RETRY_BACKOFF_MS = define(
    "sasl.login.retry.backoff.ms",
    LONG,
    100,
    CLIENT,
    "Initial back-off before a failed request to the token endpoint is retried.",
    at_least(1),
    since="3.1",
)
SASL_LOGIN_RETRY_BACKOFF_MAX_MS = define(
    "sasl.login.retry.backoff.max.ms",
    LONG,
    10_000,
    CLIENT,
    "Maximum total time in which a request to the token endpoint is retried.",
    at_least(1),
    since="3.1",
)
SASL_LOGIN_REFRESH_WINDOW_FACTOR = define(
    "sasl.login.refresh.window.factor",
    DOUBLE,
    0.8,
    CLIENT,
    "Fraction of a token's lifetime after which it is refreshed.",
    _SHARE,
    since="2.0",
)
SASL_LOGIN_REFRESH_WINDOW_JITTER = define(
    "sasl.login.refresh.window.jitter",
    DOUBLE,
    0.05,
    CLIENT,
    "Random jitter of that time, as a fraction of a token's lifetime.",
    _JITTER,
    since="2.0",
)
SASL_LOGIN_REFRESH_MIN_PERIOD_S = define(
    "sasl.login.refresh.min.period.seconds",
    SHORT,
    60,
    CLIENT,
    "Minimum time between two refreshes, if the token's lifetime allows it.",
    at_least(0),
    since="2.0",
)
SASL_LOGIN_REFRESH_BUFFER_S = define(
    "sasl.login.refresh.buffer.seconds",
    SHORT,
    300,
    CLIENT,
    "Minimum time between a refresh and the expiry of the token, if its lifetime allows it.",
    at_least(0),
    since="2.0",
)

# --- OAUTHBEARER ----------------------------------------------------------------------------------
OAUTH_TOKEN_ENDPOINT_URL = define(
    "sasl.oauthbearer.token.endpoint.url",
    STRING,
    "",
    CLIENT,
    "URL of the token endpoint (`https://...`), or of a file that contains a token (`file:///...`).",
    importance=MEDIUM,
    since="3.1",
)
OAUTH_SCOPE = define(
    "sasl.oauthbearer.scope",
    STRING,
    "",
    CLIENT,
    "Requested scope. Can also be set as `scope` in `sasl.jaas.config`.",
    importance=MEDIUM,
    since="4.1",
)
OAUTH_CLIENT_ID = define(
    "sasl.oauthbearer.client.credentials.client.id",
    STRING,
    "",
    CLIENT,
    "Id of the OAuth client. Can also be set as `clientId` in `sasl.jaas.config`.",
    importance=MEDIUM,
    since="4.1",
)
OAUTH_CLIENT_SECRET = define(
    "sasl.oauthbearer.client.credentials.client.secret",
    PASSWORD,
    "",
    CLIENT,
    "Secret of the OAuth client. Can also be set as `clientSecret` in `sasl.jaas.config`.",
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
    "Class that retrieves tokens: with client credentials, or from a file.",
    Check(
        lambda name: name.rpartition(".")[2] in _RETRIEVERS,
        "DefaultJwtRetriever, ClientCredentialsJwtRetriever or FileJwtRetriever; others cannot be loaded",
    ),
    importance=MEDIUM,
    since="4.1",
)

_JWT = "org.apache.kafka.common.security.oauthbearer"

_OPENSSL = ignored("OpenSSL provides TLS and does not use this setting")
define_all(
    CLIENT,
    _OPENSSL,
    ("ssl.provider", STRING, "", MEDIUM, "", "Java security provider for TLS connections."),
    ("ssl.keymanager.algorithm", STRING, "SunX509", LOW, "", "Algorithm of Java's key manager."),
    ("ssl.trustmanager.algorithm", STRING, "PKIX", LOW, "", "Algorithm of Java's trust manager."),
    ("ssl.secure.random.implementation", STRING, "", LOW, "", "Java's source of random numbers for TLS."),
    ("ssl.engine.factory.class", CLASS, None, LOW, "2.6", "Java class that creates TLS engines."),
)
define(
    "security.providers",
    STRING,
    "",
    ROLES,
    "Java classes that create security providers.",
    since="2.4",
    support=_OPENSSL,
)
_JAVA_LOGIN = ignored("Java classes cannot be loaded; the behaviour of Kafka's own classes is built in")
for _name, _doc in (
    ("sasl.client.callback.handler.class", "Java class that handles SASL callbacks of a client."),
    ("sasl.login.callback.handler.class", "Java class that handles SASL callbacks of a login."),
    ("sasl.login.class", "Java class that logs in."),
):
    define(_name, CLASS, "", CLIENT, _doc, importance=MEDIUM, support=_JAVA_LOGIN)

_NO_KINIT = ignored("the Kerberos library obtains and renews tickets")
define_all(
    CLIENT,
    _NO_KINIT,
    ("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", LOW, "", "Path of the kinit command."),
    (
        "sasl.kerberos.ticket.renew.window.factor",
        DOUBLE,
        0.8,
        LOW,
        "",
        "Fraction of a ticket's lifetime after which it is renewed.",
    ),
    ("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, LOW, "", "Random jitter of that time, as a fraction."),
    ("sasl.kerberos.min.time.before.relogin", LONG, 60_000, LOW, "", "Minimum time between two Kerberos logins."),
)
_OF_BROKERS = ignored("brokers validate tokens, not clients")
define_all(
    CLIENT,
    _OF_BROKERS,
    (
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        f"{_JWT}.DefaultJwtValidator",
        MEDIUM,
        "4.1",
        "Java class that validates tokens.",
    ),
    ("sasl.oauthbearer.jwks.endpoint.url", STRING, "", MEDIUM, "3.1", "URL of the JSON Web Key Set."),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, LOW, "3.1", "How often the key set is refreshed."),
    (
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        LOW,
        "3.1",
        "Initial back-off before the key set is requested again.",
    ),
    (
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        LOW,
        "3.1",
        "Maximum back-off before the key set is requested again.",
    ),
    ("sasl.oauthbearer.clock.skew.seconds", INT, 30, LOW, "3.1", "Allowed clock skew between issuer and broker."),
    ("sasl.oauthbearer.expected.audience", LIST, NO_STRINGS, HIGH, "3.1", "Audiences that a token may have."),
    ("sasl.oauthbearer.expected.issuer", STRING, "", HIGH, "3.1", "Issuer that a token must have."),
    ("sasl.oauthbearer.scope.claim.name", STRING, "scope", LOW, "3.1", "Claim that contains the scope."),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", LOW, "3.1", "Claim that contains the subject."),
)
_NO_ASSERTION = ignored("tokens are requested with the client's id and secret, not with an assertion")
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
        "Whether an assertion has a `jti` claim.",
    ),
    ("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, LOW, "4.1", "Lifetime of an assertion."),
    (
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        INT,
        60,
        LOW,
        "4.1",
        "How far in the past the `nbf` claim of an assertion is.",
    ),
    ("sasl.oauthbearer.assertion.file", STRING, "", MEDIUM, "4.1", "File with a complete assertion."),
    (
        "sasl.oauthbearer.assertion.private.key.file",
        STRING,
        "",
        MEDIUM,
        "4.1",
        "File with the private key that signs an assertion.",
    ),
    ("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, "", MEDIUM, "4.1", "Password of that key."),
    (
        "sasl.oauthbearer.assertion.template.file",
        STRING,
        "",
        MEDIUM,
        "4.1",
        "Template file with further claims of an assertion.",
    ),
)

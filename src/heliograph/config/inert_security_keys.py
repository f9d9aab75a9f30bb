"""Rows of the table: TLS and SASL keys that are known but not acted on, each group with the reason.

Where obeying would be needed to connect at all, the refusal comes from what decides it: `sasl.mechanism` or the type of
a store (`kafka/security.py`).
"""

from __future__ import annotations

from heliograph.config.table import CLIENT, HIGH, LOW, MEDIUM, NO_STRINGS, ROLES, define, define_all
from heliograph.config.types import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ignored,
    rejected,
)

_JWT = "org.apache.kafka.common.security.oauthbearer"

_OPENSSL = ignored("TLS is OpenSSL's here and chooses for itself")
define_all(
    CLIENT,
    _OPENSSL,
    ("ssl.provider", STRING, "", MEDIUM, "", "Java security provider that makes TLS connections."),
    ("ssl.cipher.suites", LIST, NO_STRINGS, LOW, "", "Cipher suites that may be agreed on."),
    ("ssl.keymanager.algorithm", STRING, "SunX509", LOW, "", "Algorithm of Java's key manager."),
    ("ssl.trustmanager.algorithm", STRING, "PKIX", LOW, "", "Algorithm of Java's trust manager."),
    ("ssl.secure.random.implementation", STRING, "", LOW, "", "Java's source of random numbers for TLS."),
    ("ssl.engine.factory.class", CLASS, None, LOW, "2.6", "Java class that makes TLS engines."),
)
define(
    "security.providers", STRING, "", ROLES, "Java classes that make security providers.", since="2.4", support=_OPENSSL
)
for _name, _doc in (
    ("ssl.truststore.password", "Password of the truststore."),
    ("ssl.keystore.password", "Password of the keystore."),
):
    define(
        _name,
        PASSWORD,
        "",
        CLIENT,
        _doc,
        importance=HIGH,
        support=ignored("a PEM file has no password of its own; `ssl.key.password` is the private key's"),
    )
for _name, _doc in (
    ("ssl.keystore.key", "Our private key as PEM text in place of a file."),
    ("ssl.keystore.certificate.chain", "Our certificate and those above it as PEM text in place of a file."),
):
    define(
        _name,
        PASSWORD,
        "",
        CLIENT,
        _doc,
        importance=HIGH,
        since="2.7",
        support=rejected(
            "a key or certificate inside the configuration is not read; put both into one PEM file and name it in"
            " ssl.keystore.location, with ssl.keystore.type=PEM."
        ),
    )

_JAVA_LOGIN = ignored("classes of Java cannot be loaded; PLAIN and SCRAM need none")
for _name, _doc in (
    ("sasl.client.callback.handler.class", "Java class that answers SASL's questions."),
    ("sasl.login.callback.handler.class", "Java class that answers a login's questions."),
    ("sasl.login.class", "Java class that logs in."),
):
    define(_name, CLASS, "", CLIENT, _doc, importance=MEDIUM, support=_JAVA_LOGIN)

_NO_LOGIN = ignored("it is for Kerberos and OAuth logins, which Heliograph does not have; it has PLAIN and SCRAM")
define_all(
    CLIENT,
    _NO_LOGIN,
    ("sasl.login.connect.timeout.ms", INT, None, LOW, "3.1", "How long a login waits for a connection."),
    ("sasl.login.read.timeout.ms", INT, None, LOW, "3.1", "How long a login waits for an answer."),
    ("sasl.login.retry.backoff.ms", LONG, 100, LOW, "3.1", "First pause before a login is tried again."),
    ("sasl.login.retry.backoff.max.ms", LONG, 10_000, LOW, "3.1", "Longest pause before a login is tried again."),
    (
        "sasl.login.refresh.window.factor",
        DOUBLE,
        0.8,
        LOW,
        "2.0",
        "Share of a credential's life after which it is renewed.",
    ),
    ("sasl.login.refresh.window.jitter", DOUBLE, 0.05, LOW, "2.0", "Random part of that time."),
    ("sasl.login.refresh.min.period.seconds", SHORT, 60, LOW, "2.0", "Least time between two renewals."),
    (
        "sasl.login.refresh.buffer.seconds",
        SHORT,
        300,
        LOW,
        "2.0",
        "Time before the end at which renewal is due at the latest.",
    ),
    ("sasl.kerberos.service.name", STRING, "", MEDIUM, "", "Name the brokers have in Kerberos."),
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
define_all(
    CLIENT,
    _NO_LOGIN,
    ("sasl.oauthbearer.token.endpoint.url", STRING, "", MEDIUM, "3.1", "Where tokens are asked for."),
    ("sasl.oauthbearer.scope", STRING, "", MEDIUM, "4.1", "Scope that is asked for."),
    ("sasl.oauthbearer.client.credentials.client.id", STRING, "", MEDIUM, "4.1", "Id of the OAuth client."),
    ("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, "", MEDIUM, "4.1", "Secret of the OAuth client."),
    (
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        f"{_JWT}.DefaultJwtRetriever",
        MEDIUM,
        "4.1",
        "Java class that fetches tokens.",
    ),
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
    (
        "sasl.oauthbearer.header.urlencode",
        BOOLEAN,
        False,
        LOW,
        "3.9",
        "Whether the client's id and secret are URL-encoded.",
    ),
    ("sasl.oauthbearer.scope.claim.name", STRING, "scope", LOW, "3.1", "Claim that holds the scope."),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", LOW, "3.1", "Claim that holds the subject."),
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

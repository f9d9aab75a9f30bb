"""Rows of the table: TLS and SASL keys that are known but not acted on, each group with the reason.

Where obeying would be needed to connect at all, the refusal comes from what decides it, such as `sasl.mechanism`
(`kafka/security.py`).
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
    STRING,
    ignored,
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
_OF_BROKERS = ignored("tokens are checked by the brokers, not by who shows them")
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

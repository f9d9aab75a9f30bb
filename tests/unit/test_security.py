"""JAAS lines as people write them, and what is not supported is said."""

from __future__ import annotations

from ssl import TLSVersion

import pytest

from heliograph.config.types import Settings
from heliograph.errors import ConfigError
from heliograph.kafka.security import make_security, make_ssl_context, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.mark.parametrize(
    ("line", "password"),
    [
        (f'{PLAIN} username="u" password="p";', "p"),
        (f"{PLAIN} username=u password=p;", "p"),
        (f"{PLAIN} username='u' password='p q';", "p q"),
        (f'{PLAIN} username="u" password="a\\"b;c=d";', 'a"b;c=d'),
        (f'{PLAIN} password = "x" username = "u" ;', "x"),
    ],
)
def test_credentials_are_found(line: str, password: str) -> None:
    assert parse_jaas(line) == {"username": "u", "password": password}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "'GSSAPI' is not supported yet"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "username and password is missing"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/t.jks"}, "stores of type JKS are not read yet"),
        ({"security.protocol": "SSL", "ssl.protocol": "TLSv1"}, "'TLSv1' is not supported"),
        (
            {"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1"},
            r"ssl\.enabled\.protocols: no version in it",
        ),
    ],
)
def test_what_is_not_supported_is_a_sentence(values: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_security(Settings(values), "A")


def test_a_secret_does_not_show() -> None:
    values = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{PLAIN} username="u" password="canary";',
    }
    security = make_security(Settings(values), "A")
    assert security.password == "canary"
    assert "canary" not in repr(security)


@pytest.mark.parametrize(
    ("protocol", "enabled", "expected"),
    [
        ("TLSv1.3", "TLSv1.2,TLSv1.3", ("TLSv1.2", "TLSv1.3")),
        ("TLSv1.2", "TLSv1.2,TLSv1.3", ("TLSv1.2", "TLSv1.2")),
        ("TLSv1.3", "TLSv1.3", ("TLSv1.3", "TLSv1.3")),
        ("TLSv1.3", "TLSv1.1, TLSv1.2", ("TLSv1.2", "TLSv1.2")),
    ],
)
def test_only_the_enabled_versions_of_tls_are_spoken(protocol: str, enabled: str, expected: tuple[str, str]) -> None:
    values = {"security.protocol": "SSL", "ssl.protocol": protocol, "ssl.enabled.protocols": enabled}
    security = make_security(Settings(values), "A")
    assert (security.oldest_tls, security.newest_tls) == expected
    context = make_ssl_context(security)
    assert (context.minimum_version, context.maximum_version) == tuple(
        {"TLSv1.2": TLSVersion.TLSv1_2, "TLSv1.3": TLSVersion.TLSv1_3}[name] for name in expected
    )

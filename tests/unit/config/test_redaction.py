"""A configuration is shown without its secrets, wherever they stand."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heliograph.config import keys
from heliograph.config.resolve.redaction import redact, redact_text, redact_value
from heliograph.config.secrets.known_secrets import HIDDEN

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="canary";'
PEM = "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sasl.jaas.config", JAAS),
        ("A.sasl.jaas.config", JAAS),
        ("A->B.source.consumer.sasl.jaas.config", JAAS),
        ("A.producer.override.ssl.key.password", "canary"),
        ("A.ssl.truststore.certificates", "canary"),
        ("config.providers.vault.param.token", "canary"),
        ("A.my.secret.topics", "canary"),
        ("aws_access-key", "canary"),
        ("A.x", JAAS),
        ("A.x", "a=1;client.secret = 'canary'"),
        ("A.x", '{"user": "u", "password": "canary"}'),
        ("A.x", "https://user:canary@host/path"),
        ("A.x", "https://user:a/canary@host/path"),
        ("A.bootstrap.servers", "user:canary@host:9092"),
        ("A.bootstrap.servers", "a:9092,user:canary@[::1]:9092"),
        ("A.x", "SharedAccessSignature sig=canary"),
        ("A.x", "SharedAccessSignature sr=h%2f&sig=canary%3d&se=1&skn=k"),
        ("A.x", "https://host/path?sv=1&sig=canary"),
        ("A.x", "Authorization: Basic canaryXNlcjpwYXNz"),
        ("A.x", "authorization:basic  canary"),
        ("A.x", "Proxy-Authorization = Token canary"),
        ("A.x", '{"Authorization": "Bearer canary"}'),
        ("A.x", "curl -H 'Authorization: Negotiate canary' http://h"),
        ("A.x", "the header was 'Basic canary=='"),
        ("A.x", "401 for Bearer abc.canary.ghi, try again"),
        ("A.x", "BEARER\tcanary0"),
        ("A.x", "bearer canarySecret"),
        ("A.x", "Bearer canarywithmorelettersthanaword"),
        ("A.x", "Negotiate YIIcanaryAAAAAAAAAAAA"),
        ("A.x", "n,,\x01auth=Bearer canary\x01\x01"),
        ("A.x", PEM),
        ("A.x", PEM.removesuffix("-----END PRIVATE KEY-----")),
    ],
)
def test_a_secret_does_not_show(name: str, value: str) -> None:
    shown = redact({name: value})[name]
    assert "canary" not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topics", "tokens, passwords"),
        ("A.sasl.oauthbearer.token.endpoint.url", "https://host/token"),
        ("A.bootstrap.servers", "a:9092,b:9092"),
        ("A.bootstrap.servers", "[::1]:9092,b:9092"),
        ("A.x", "1@a:9093,2@b:9093"),
        ("A.ssl.principal.mapping.rules", "RULE:[1:$1@$0](.*@R)s/@.*//"),
        ("A.x", "config.sig=x, design=y, sigma: z"),
        ("A.ssl.key.password", "${file:/run/secrets:password}"),
        ("A.sasl.jaas.config", "${env:JAAS}"),
        ("A.x", "password=${file:/run/secrets:password}"),
        ("A.ssl.key.password", ""),
        ("A.x", "Authorization: Bearer ${file:/run/secrets:token}"),
        ("A.x", "Bearer ${env:TOKEN}"),
        ("A.x", "The broker wants basic authentication, not a Bearer token."),
        ("A.x", "basic auth (HTTP) or Basic HTTP authentication"),
        ("A.x", 'WWW-Authenticate: Basic, then Basic Auth; a basic set-up: "basic"'),
        ("A.x", 'WWW-Authenticate: Basic realm="Connect"'),
        ("A.x", "OAUTHBEARER 2.0; cannot negotiate TLSv1.3"),
    ],
)
def test_what_is_no_secret_is_shown(name: str, value: str) -> None:
    assert redact_value(name, value) == value


@given(st.sampled_from([row.name for row in keys.TABLE.values() if row.type.name == "PASSWORD"]), st.text(min_size=1))
def test_every_password_of_the_table_is_hidden_behind_any_prefix(name: str, prefix: str) -> None:
    assert redact_value(f"{prefix}.{name}", "canary") == HIDDEN


@example("Basic", "Mjow", "")  # looks like a name
@example("Basic", "Mjow", ".")
@example("(Basic", "Mjow", ")")
@example("Basic", "Mjow", "!")
@given(
    st.sampled_from(["Basic", "bearer", "Authorization: Basic", "Authorization: Bearer", "Authorization: NEGOTIATE"]),
    st.tuples(st.text(), st.text()).map(lambda login: base64.b64encode(":".join(login).encode()).decode()),
    st.sampled_from(["", ", ", '"', " and more", "\n", ".", ")", "!", "?)", ":"]),
)
def test_a_login_of_http_never_shows(header: str, credentials: str, end: str) -> None:
    shown = redact_text(f"refused {header} {credentials}{end}")
    assert credentials not in shown.removesuffix(end)
    assert redact_text(shown) == shown


@given(st.text(), st.text(st.characters(exclude_characters="\"'\\"), min_size=8))
def test_a_quoted_password_never_shows(before: str, secret: str) -> None:
    text = f'{before} password="{secret}" end'
    assert f'"{secret}"' not in redact_value("A.x", text)

"""From keys to the values a connection is opened with; what contradicts itself or is missing is said."""

from __future__ import annotations

import pickle
from pathlib import Path
from ssl import TLSVersion

import pytest

from heliograph.config.resolve.settings import Settings
from heliograph.errors import ConfigError
from heliograph.kafka.security.connection_spec import Security
from heliograph.kafka.security.security_settings import make_security
from heliograph.kafka.security.tls import make_ssl_context, openssl_suites
from tests.support.clusters.stores import Authority

MODULES = "org.apache.kafka.common.security"
PLAIN = f"{MODULES}.plain.PlainLoginModule required"
SCRAM = f"{MODULES}.scram.ScramLoginModule required"
OAUTH = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
SSL = {"security.protocol": "SSL"}


def sasl(mechanism: str, jaas: str, protocol: str = "SASL_SSL", **more: str) -> dict[str, str]:
    return {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas, **more}


def secured(values: dict[str, str]) -> Security:
    return make_security(Settings(values, "A."), "A")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (sasl("DIGEST-MD5", f"{PLAIN};"), "A.sasl.mechanism: 'DIGEST-MD5' is not supported; supported are PLAIN"),
        (sasl("PLAIN", ""), "A.sasl.jaas.config: it is missing"),
        (sasl("PLAIN", f"{PLAIN};"), "A.sasl.jaas.config: username and password is missing"),
        (sasl("PLAIN", f'{PLAIN} username="canary'), "a quote is opened and not closed"),
        (sasl("GSSAPI", "", **{"sasl.kerberos.service.name": "kafka"}), "GSSAPI needs the Python library 'gssapi'"),
        (sasl("AWS_MSK_IAM", ""), "AWS_MSK_IAM needs the Python library 'botocore'"),
        (sasl("OAUTHBEARER", f"{OAUTH};"), f"A.{ENDPOINT}: it is missing"),
        (sasl("OAUTHBEARER", f"{OAUTH};", **{ENDPOINT: "ldap://x"}), "must be a URL that begins with https://"),
        (sasl("OAUTHBEARER", f"{OAUTH};", **{ENDPOINT: "https://x"}), "A.sasl.jaas.config: clientId is missing"),
        (
            sasl(
                "OAUTHBEARER", f'{OAUTH} clientId="i" clientSecret="s" extension_auth="x";', **{ENDPOINT: "https://x"}
            ),
            "an option that begins with extension_",
        ),
        (SSL | {"ssl.protocol": "TLSv1"}, "A.ssl.protocol: 'TLSv1' is not supported"),
        (SSL | {"ssl.enabled.protocols": "TLSv1.1"}, "A.ssl.enabled.protocols: no version in it"),
        (SSL | {"ssl.cipher.suites": "TLS_FOO"}, "A.ssl.cipher.suites: OpenSSL here has no cipher suite TLS_FOO"),
        (
            SSL | {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256", "ssl.protocol": "TLSv1.2"},
            "no suite in it is one of TLSv1.2",
        ),
        (SSL | {"ssl.keystore.key": "canary"}, "A.ssl.keystore.certificate.chain: it is missing beside"),
        (SSL | {"ssl.keystore.certificate.chain": "canary"}, "A.ssl.keystore.key: it is missing beside"),
        (
            SSL | {"ssl.truststore.certificates": "canary", "ssl.truststore.location": "/t"},
            "A.ssl.truststore.certificates: A.ssl.truststore.location is set too",
        ),
        (
            SSL | {"ssl.keystore.key": "canary", "ssl.keystore.location": "/t"},
            "A.ssl.keystore.key: A.ssl.keystore.location is set too",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_errors(values: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        secured(values)
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_secret_neither_shows_nor_is_lost_on_the_way_to_an_executor() -> None:
    values = sasl("SCRAM-SHA-512", f'{SCRAM} username="u" password="canary-1" tokenauth=true;', "sasl_ssl")
    values |= {f"ssl.{name}": f"canary-{name}" for name in ("truststore.password", "keystore.key", "key.password")}
    values |= {"ssl.keystore.certificate.chain": "canary-chain", "ssl.truststore.location": "/t"}
    security = secured(values)
    assert security.password == "canary-1"
    assert security.is_delegation_token
    assert "canary" not in repr(security)
    assert pickle.loads(pickle.dumps(security)) == security  # noqa: S301


def test_an_oauth_client_is_configured_by_the_login_module_or_by_keys() -> None:
    jaas = f'{OAUTH} clientId="i" clientSecret="canary" scope="s" extension_logicalCluster="lkc-1";'
    by_module = secured(sasl("OAUTHBEARER", jaas, **{ENDPOINT: "https://idp.example/token"})).oauth
    assert by_module is not None
    assert (by_module.client_id, by_module.client_secret, by_module.scope) == ("i", "canary", "s")
    assert by_module.extensions == (("logicalCluster", "lkc-1"),)
    assert by_module.secret_origin == "A.sasl.jaas.config"
    credentials = "sasl.oauthbearer.client.credentials.client"
    keys = {ENDPOINT: "https://x", f"{credentials}.id": "j", f"{credentials}.secret": "canary-2"}
    by_keys = secured(sasl("OAUTHBEARER", jaas, **keys)).oauth
    assert by_keys is not None
    assert (by_keys.client_id, by_keys.client_secret) == ("j", "canary-2")
    assert by_keys.secret_origin == f"A.{credentials}.secret"
    assert "canary" not in repr(by_keys)


def test_the_options_of_the_operators_library_are_understood() -> None:
    jaas = f'{OAUTH} oauth.client.id="i" oauth.client.secret="s" oauth.token.endpoint.uri="https://idp/token";'
    client = secured(sasl("OAUTHBEARER", jaas)).oauth
    assert client is not None
    assert (client.endpoint_url, client.client_id, client.client_secret) == ("https://idp/token", "i", "s")


@pytest.mark.parametrize(
    ("protocol", "enabled", "suites", "expected"),
    [
        ("TLSv1.3", "TLSv1.2,TLSv1.3", "", ("TLSv1.2", "TLSv1.3")),
        ("TLS", "TLSv1.2,TLSv1.3", "", ("TLSv1.2", "TLSv1.3")),
        ("TLSv1.2", "TLSv1.2,TLSv1.3", "", ("TLSv1.2", "TLSv1.2")),
        ("TLSv1.3", "TLSv1.3", "", ("TLSv1.3", "TLSv1.3")),
        ("TLSv1.3", "TLSv1.1, TLSv1.2", "", ("TLSv1.2", "TLSv1.2")),
        ("TLSv1.3", "TLSv1.2,TLSv1.3", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", ("TLSv1.2", "TLSv1.2")),
        ("TLSv1.3", "TLSv1.2,TLSv1.3", "TLS_AES_128_GCM_SHA256", ("TLSv1.3", "TLSv1.3")),
    ],
)
def test_only_the_enabled_versions_of_tls_are_spoken(
    protocol: str, enabled: str, suites: str, expected: tuple[str, str]
) -> None:
    keys = {"ssl.protocol": protocol, "ssl.enabled.protocols": enabled, "ssl.cipher.suites": suites}
    security = secured(SSL | keys)
    assert (security.oldest_tls, security.newest_tls) == expected
    context = make_ssl_context(security)
    assert (context.minimum_version, context.maximum_version) == tuple(
        {"TLSv1.2": TLSVersion.TLSv1_2, "TLSv1.3": TLSVersion.TLSv1_3}[name] for name in expected
    )


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_cipher_suites_have_javas_names(java: str, openssl: str) -> None:
    assert openssl_suites((java, "TLS_AES_128_GCM_SHA256")) == ((openssl,), ("TLS_AES_128_GCM_SHA256",))


def test_the_system_is_trusted_only_where_no_truststore_is_given(tmp_path: Path) -> None:
    path = Authority().pem_file(tmp_path / "ca.pem")
    context = make_ssl_context(secured(SSL | {"ssl.truststore.location": str(path)}))
    assert len(context.get_ca_certs()) == 1
    assert context.check_hostname
    assert not make_ssl_context(secured(SSL | {"ssl.endpoint.identification.algorithm": ""})).check_hostname


@pytest.mark.parametrize("algorithm", ["htps", "none", "LDAPS"])
def test_a_typing_mistake_does_not_switch_the_check_of_host_names_off(algorithm: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.endpoint\.identification\.algorithm: it must be https, or empty"):
        secured(SSL | {"ssl.endpoint.identification.algorithm": algorithm})

"""Turns `security.protocol`, `sasl.*` and `ssl.*` into a `Security`, and checks what a connector may reach with them.

A value that is missing or contradicts another is a ConfigError at load time, with the key's name as the user wrote it.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from heliograph.config.keys import client_keys, security_keys
from heliograph.config.resolve.jaas import LoginModule, one_module
from heliograph.config.resolve.redaction import redact_value
from heliograph.diagnostics import Mention, Text
from heliograph.errors import ConfigError, try_each
from heliograph.kafka.security.connection_spec import Security
from heliograph.kafka.security.keystores import Stores
from heliograph.kafka.security.oauth import DEFAULT_TIMEOUT_MS, OAuthClient, RefreshRule
from heliograph.kafka.security.sasl_mechanisms import MECHANISMS, missing_library
from heliograph.kafka.security.tls import VERSIONS, openssl_suites, unknown_suites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from heliograph.config.keys.table import Key
    from heliograph.config.resolve.settings import Settings


# Keys that a message at connection time may name.
_NAMED = (
    *("security.protocol", "sasl.mechanism", "sasl.jaas.config", "sasl.oauthbearer.token.endpoint.url"),
    *("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.certificates", "ssl.keystore.location"),
    *("ssl.keystore.password", "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password"),
    *("ssl.endpoint.identification.algorithm", "ssl.enabled.protocols", "ssl.cipher.suites"),
)
_EXTENSION = "extension_"
_EXTENSION_NAME, _EXTENSION_VALUE = re.compile(r"[A-Za-z]+"), re.compile(r"[\x21-\x7e \t\r\n]+")
# Strimzi's Java library has its own names for the options of Kafka's login module.
_OAUTH_OPTIONS = {
    "clientId": "oauth.client.id",
    "clientSecret": "oauth.client.secret",
    "scope": "oauth.scope",
    "ssl.truststore.location": "oauth.ssl.truststore.location",
    "ssl.truststore.password": "oauth.ssl.truststore.password",
}
_URL, _JAAS = security_keys.OAUTH_TOKEN_ENDPOINT_URL.name, client_keys.SASL_JAAS_CONFIG.name
_MECHANISM, _PROTOCOL = client_keys.SASL_MECHANISM.name, client_keys.SECURITY_PROTOCOL.name
_KEY_STORES = (client_keys.SSL_KEYSTORE_LOCATION.name, security_keys.SSL_KEYSTORE_KEY.name)
_SERVERS = client_keys.BOOTSTRAP_SERVERS.name
_WORKERS = "worker:login"
# With these a connector chooses which server gets the worker's login, or how well the login is protected in transit.
_CHANNEL = (
    *(_SERVERS, _PROTOCOL, _MECHANISM),
    client_keys.SSL_TRUSTSTORE_LOCATION.name,
    client_keys.SSL_TRUSTSTORE_CERTIFICATES.name,
    client_keys.SSL_ENDPOINT_ALGORITHM.name,
)
_OAUTH_URLS = ("sasl.oauthbearer.jwks.endpoint.url",)
_OAUTH_FILES = tuple(f"sasl.oauthbearer.assertion.{name}file" for name in ("", "private.key.", "template."))


def make_security(settings: Settings, alias: str) -> Security:
    """Return the security of a cluster's settings; raise ConfigError that names the missing or contradicting key."""
    protocol = settings[client_keys.SECURITY_PROTOCOL].upper()
    fields: dict[str, Any] = {"protocol": protocol}
    if protocol != "PLAINTEXT":
        fields["written"] = tuple((name, settings.written(name)) for name in _NAMED)
    parts = []
    if protocol.endswith("SSL"):
        parts += [partial(_stores, settings), partial(_versions, settings), partial(_checks_host_name, settings)]
    if protocol.startswith("SASL_"):
        parts.append(partial(_login, settings, protocol, alias))
    for part in try_each(parts):
        fields |= part
    security = Security(**fields)
    _check_limits(settings, security)
    return security


def named_stores(settings: Settings) -> Stores:
    """Return the stores that a client with these settings would open, even if other settings are invalid."""
    protocol = settings[client_keys.SECURITY_PROTOCOL].upper()
    written = tuple((name, settings.written(name)) for name in _NAMED)
    return Stores(**_store_fields(settings), written=written) if protocol.endswith("SSL") else Stores()


# --- limits of a connector -------------------------------------------------------------------------------------------


def _check_limits(settings: Settings, security: Security) -> None:
    """Raise NotAllowedError if a connector's client uses a resource that its worker, or a rule, does not allow.

    The values judged are those that the client uses: placeholders are resolved, defaults are in place, and options of
    another client's login are not among them. Values of the worker's own file have no limits.
    """
    limits = settings.limits
    if security.oauth is not None:
        key = _URL if settings.values.get(_URL, "").strip() else _JAAS
        if key in limits:
            limits[key].check_url(settings.written(key), security.oauth.endpoint_url)
        for name in (each for each in _OAUTH_URLS if each in limits):
            limits[name].check_url(settings.written(name), settings.values[name].strip())
        for name in (each for each in _OAUTH_FILES if each in limits):
            limits[name].check_file(settings.written(name), settings.values[name].strip())
    for keys, source in _taken(settings, security):
        key = next((each for each in keys if each in limits), "")
        if source and key:
            shown = redact_value(key, settings.raw[key]) if key in settings.raw else source
            limits[key].check_taken(settings.written(keys[0]), source, shown)


def _taken(settings: Settings, security: Security) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the resources of this machine that a client uses, as rules name them, after the keys that choose them."""
    yield (client_keys.SSL_TRUSTSTORE_LOCATION.name,), security.trusted_file
    yield (client_keys.SSL_KEYSTORE_LOCATION.name,), security.key_file
    if security.oauth is not None:
        url = urlsplit(security.oauth.endpoint_url)
        yield (_URL if settings.values.get(_URL) else _JAAS,), url.path if url.scheme == "file" else ""
        yield (_JAAS,), security.oauth.tls.trusted_file
        yield (_JAAS,), security.oauth.tls.key_file
    login = (_MECHANISM, _JAAS, _PROTOCOL)
    if security.mechanism == "GSSAPI":
        yield ((_JAAS,), security.kerberos_key_tab) if security.kerberos_key_tab else (login, "kerberos:default")
    if security.mechanism == "AWS_MSK_IAM":
        yield ((_JAAS,), f"aws:{security.aws_profile}") if security.aws_profile else (login, "aws:default")
    own_login = security.username or security.oauth or security.kerberos_key_tab or security.aws_profile
    uses_login = bool(own_login) or (bool(security.mechanism) and not any(key in settings.limits for key in login))
    if uses_login and not _is_given(settings, _JAAS):
        yield from (((key,), _WORKERS) for key in _CHANNEL)
    if security.has_key and not _is_given(settings, *_KEY_STORES):
        yield (_SERVERS,), _WORKERS


def _is_given(settings: Settings, *keys: str) -> bool:
    """Return whether a connector has set one of the keys; an empty value leaves what the worker's file sets."""
    return any(key in settings.limits and settings.values[key].strip() for key in keys)


# --- TLS --------------------------------------------------------------------------------------------------------------


def _stores(settings: Settings) -> dict[str, Any]:
    key, chain = security_keys.SSL_KEYSTORE_KEY, security_keys.SSL_KEYSTORE_CERTIFICATE_CHAIN
    try_each(
        [
            partial(_not_both, settings, client_keys.SSL_TRUSTSTORE_LOCATION, client_keys.SSL_TRUSTSTORE_CERTIFICATES),
            partial(_not_both, settings, client_keys.SSL_KEYSTORE_LOCATION, key),
            partial(_not_alone, settings, key, chain),
            partial(_not_alone, settings, chain, key),
        ]
    )
    return _store_fields(settings)


def _store_fields(settings: Settings) -> dict[str, Any]:
    return {
        "trusted_file": settings[client_keys.SSL_TRUSTSTORE_LOCATION],
        "trusted_password": settings[security_keys.SSL_TRUSTSTORE_PASSWORD],
        "trusted_pem": settings[client_keys.SSL_TRUSTSTORE_CERTIFICATES],
        "key_file": settings[client_keys.SSL_KEYSTORE_LOCATION],
        "key_store_password": settings[security_keys.SSL_KEYSTORE_PASSWORD],
        "key_pem": settings[security_keys.SSL_KEYSTORE_KEY],
        "chain_pem": settings[security_keys.SSL_KEYSTORE_CERTIFICATE_CHAIN],
        "key_password": settings[client_keys.SSL_KEY_PASSWORD],
    }


def _not_both(settings: Settings, one: Key[str], other: Key[str]) -> None:
    if settings[one] and settings[other]:
        message = Text.of(Mention(settings.written_as(one)), " is set too; leave one of them out.")
        raise ConfigError(message, settings.written_as(other))


def _not_alone(settings: Settings, given: Key[str], other: Key[str]) -> None:
    if settings[given] and not settings[other]:
        message = Text.of("it is missing beside ", Mention(settings.written_as(given)), ".")
        raise ConfigError(message, settings.written_as(other))


def _versions(settings: Settings) -> dict[str, Any]:
    newest = settings[client_keys.SSL_PROTOCOL]
    if newest == "TLS":  # Java's name for the newest
        newest = "TLSv1.3"
    if newest not in VERSIONS:
        name = settings.written_as(client_keys.SSL_PROTOCOL)
        shown = settings.shown(client_keys.SSL_PROTOCOL)
        raise ConfigError(f"'{shown}' is not supported; use TLSv1.2 or TLSv1.3.", name)
    allowed = [name for name in VERSIONS if name in settings[client_keys.SSL_ENABLED_PROTOCOLS] and name <= newest]
    if not allowed:
        name = settings.written_as(client_keys.SSL_ENABLED_PROTOCOLS)
        raise ConfigError(
            f"no version in it is one that Heliograph has and"
            f" ssl.protocol={settings.shown(client_keys.SSL_PROTOCOL)} allows; use TLSv1.2,"
            " TLSv1.3 or both.",
            name,
        )
    suites = settings[security_keys.SSL_CIPHER_SUITES]
    if suites:
        allowed = _versions_of_suites(settings, suites, allowed)
    return {"newest_tls": allowed[-1], "oldest_tls": allowed[0], "cipher_suites": suites}


def _checks_host_name(settings: Settings) -> dict[str, Any]:
    algorithm = settings[client_keys.SSL_ENDPOINT_ALGORITHM].strip().lower()
    if algorithm not in ("", "https"):
        name = settings.written_as(client_keys.SSL_ENDPOINT_ALGORITHM)
        raise ConfigError("it must be https, or empty, which does not check host names.", name)
    return {"checks_host_name": algorithm == "https"}


def _versions_of_suites(settings: Settings, suites: tuple[str, ...], allowed: list[str]) -> list[str]:
    """Return the versions that have a suite in the list; as in Java, the others are not used."""
    name = settings.written_as(security_keys.SSL_CIPHER_SUITES)
    unknown = unknown_suites(suites)
    if unknown:
        shown = settings.raw.get(security_keys.SSL_CIPHER_SUITES.name, ", ".join(unknown))
        raise ConfigError(f"OpenSSL here has no cipher suite {shown}.", name)
    older, newest = openssl_suites(suites)
    usable = [version for version in allowed if (newest if version == "TLSv1.3" else older)]
    if not usable:
        raise ConfigError(f"no suite in it is one of {' or '.join(allowed)}.", name)
    return usable


# --- SASL -------------------------------------------------------------------------------------------------------------


def _login(settings: Settings, protocol: str, alias: str) -> dict[str, Any]:
    name = settings.written_as(client_keys.SASL_MECHANISM)
    mechanism = settings[client_keys.SASL_MECHANISM].upper()
    if mechanism not in MECHANISMS:
        shown = settings.raw.get(client_keys.SASL_MECHANISM.name, mechanism)
        raise ConfigError(f"'{shown}' is not supported; supported are {', '.join(MECHANISMS)}.", name)
    library = missing_library(mechanism)
    if library is not None:
        raise ConfigError(
            f"{mechanism} needs the Python library '{library}', which is not installed; install it here and"
            " where Spark's executors run.",
            name,
        )
    jaas_key = settings.written_as(client_keys.SASL_JAAS_CONFIG)
    text = settings[client_keys.SASL_JAAS_CONFIG]
    if not text.strip() and mechanism not in ("GSSAPI", "AWS_MSK_IAM"):
        raise ConfigError(f"it is missing; the cluster '{alias}' uses {mechanism} and needs a login module.", jaas_key)
    module = one_module(text, jaas_key) if text.strip() else LoginModule("", "required", {})
    options = module.options
    fields: dict[str, Any] = {"mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        return fields | {"oauth": _oauth(settings, options, jaas_key)}
    if mechanism == "GSSAPI":
        return fields | _kerberos(settings, options)
    if mechanism == "AWS_MSK_IAM":
        return fields | _aws(options, protocol, name, jaas_key)
    missing = [option for option in ("username", "password") if option not in options]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} is missing for the mechanism {mechanism}.", jaas_key)
    is_token = options.get("tokenauth", "").lower() == "true"
    return fields | {
        "username": options["username"],
        "password": options["password"],
        "is_delegation_token": is_token and mechanism.startswith("SCRAM-"),
    }


def _kerberos(settings: Settings, options: Mapping[str, str]) -> dict[str, Any]:
    key = security_keys.SASL_KERBEROS_SERVICE_NAME
    service = settings[key] or options.get("serviceName", "")
    if not service:
        raise ConfigError("it is missing; GSSAPI needs the brokers' name, often 'kafka'.", settings.written_as(key))
    return {"kerberos_service": service, "kerberos_key_tab": options.get("keyTab", "")}


def _aws(options: Mapping[str, str], protocol: str, name: str, jaas_key: str) -> dict[str, Any]:
    if protocol != "SASL_SSL":
        raise ConfigError("AWS_MSK_IAM needs security.protocol=SASL_SSL.", name)
    if any(option.startswith("awsRole") for option in options):
        raise ConfigError(
            "the options awsRole* are not supported; name the role in an AWS profile and the profile by"
            " awsProfileName.",
            jaas_key,
        )
    return {"aws_profile": options.get("awsProfileName", "")}


def _oauth(settings: Settings, options: Mapping[str, str], jaas_key: str) -> OAuthClient:
    options = {name: options[other] for name, other in _OAUTH_OPTIONS.items() if other in options} | dict(options)
    key = security_keys.OAUTH_TOKEN_ENDPOINT_URL
    url = settings[key] or options.get("oauth.token.endpoint.uri", "")
    origin = settings.written_as(key) if settings[key] else jaas_key
    client_id = settings[security_keys.OAUTH_CLIENT_ID] or options.get("clientId", "")
    client_secret = settings[security_keys.OAUTH_CLIENT_SECRET] or options.get("clientSecret", "")
    secret_key = security_keys.OAUTH_CLIENT_SECRET
    secret_origin = settings.written_as(secret_key) if settings[secret_key] else jaas_key
    checks: list[Callable[[], object]] = [
        partial(_check_endpoint, url, settings.written_as(key)),
        partial(_extensions, options, jaas_key),
    ]
    if not url.startswith("file:"):
        checks.append(partial(_check_client, client_id, client_secret, jaas_key))
    try_each(checks)
    return OAuthClient(
        url,
        client_id,
        client_secret,
        settings[security_keys.OAUTH_SCOPE] or options.get("scope", ""),
        _extensions(options, jaas_key),
        settings[security_keys.OAUTH_HEADER_URLENCODE],
        settings[security_keys.SASL_LOGIN_CONNECT_TIMEOUT_MS] or DEFAULT_TIMEOUT_MS,
        settings[security_keys.SASL_LOGIN_READ_TIMEOUT_MS] or DEFAULT_TIMEOUT_MS,
        settings[security_keys.SASL_LOGIN_RETRY_BACKOFF_MS],
        settings[security_keys.SASL_LOGIN_RETRY_BACKOFF_MAX_MS],
        RefreshRule(
            settings[security_keys.SASL_LOGIN_REFRESH_WINDOW_FACTOR],
            settings[security_keys.SASL_LOGIN_REFRESH_WINDOW_JITTER],
            settings[security_keys.SASL_LOGIN_REFRESH_MIN_PERIOD_S],
            settings[security_keys.SASL_LOGIN_REFRESH_BUFFER_S],
        ),
        _endpoint_stores(options),
        origin,
        secret_origin,
        settings.raw.get(key.name if settings[key] else client_keys.SASL_JAAS_CONFIG.name, ""),
    )


def _check_client(client_id: str, client_secret: str, jaas_key: str) -> None:
    if not (client_id and client_secret):
        missing = "clientSecret" if client_id else "clientId"
        raise ConfigError(f"{missing} is missing for the mechanism OAUTHBEARER.", jaas_key)


def _check_endpoint(url: str, name: str) -> None:
    if not url:
        raise ConfigError("it is missing; OAUTHBEARER requests tokens there.", name)
    try:
        parts = urlsplit(url)
        is_file = url.startswith("file:///") and "%" not in url  # one way to write a path, so that rules can judge it
        is_usable = is_file if parts.scheme == "file" else bool(parts.hostname and parts.port != 0)
    except ValueError:
        is_usable = False
    if not is_usable or parts.scheme not in ("http", "https", "file"):
        raise ConfigError("it must be a URL that begins with https://, http:// or file:/// and a path without %.", name)


def _extensions(options: Mapping[str, str], jaas_key: str) -> tuple[tuple[str, str], ...]:
    found = {name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)}
    for name, value in found.items():
        if name == "auth" or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
            raise ConfigError(f"an option that begins with {_EXTENSION} is not one that SASL allows.", jaas_key)
    return tuple(found.items())


def _endpoint_stores(options: Mapping[str, str]) -> Stores:
    """Return the stores for TLS to the token endpoint, from the `ssl.*` options of the login module."""
    return Stores(
        trusted_file=options.get("ssl.truststore.location", ""),
        trusted_password=options.get("ssl.truststore.password", ""),
        trusted_pem=options.get("ssl.truststore.certificates", ""),
        key_file=options.get("ssl.keystore.location", ""),
        key_store_password=options.get("ssl.keystore.password", ""),
        key_password=options.get("ssl.key.password", ""),
    )

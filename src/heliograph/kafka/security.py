"""From `security.protocol`, `sasl.*` and `ssl.*` to a TLS context and SASL credentials.

`Security` is a frozen bag of plain strings: it crosses to executors, and contexts are built from it where sockets open.
Secrets never show in its repr. Supported: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL; PLAIN and SCRAM; PEM stores.
Anything else is refused here, at load time, with the key's name.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.config import client_keys
from heliograph.errors import AuthenticationError, ConfigError

if TYPE_CHECKING:
    from heliograph.config.types import Settings

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_JAAS_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")
_TLS_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class Security:
    """How to connect to a cluster's brokers."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    trusted_file: str = ""
    trusted_pem: str = field(default="", repr=False)
    key_file: str = ""
    key_password: str = field(default="", repr=False)
    checks_host_name: bool = True
    newest_tls: str = "TLSv1.3"
    oldest_tls: str = "TLSv1.2"

    @property
    def uses_tls(self) -> bool:
        """Whether the socket is wrapped."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether the broker asks for credentials."""
        return self.protocol.startswith("SASL_")


def make_security(settings: Settings, alias: str) -> Security:
    """The security a cluster's settings spell; raises ConfigError naming the key that is missing or not supported."""
    protocol = settings[client_keys.SECURITY_PROTOCOL].upper()
    tls: dict[str, str | bool] = _tls_fields(settings, alias) if protocol.endswith("SSL") else {}
    if not protocol.startswith("SASL_"):
        return Security(protocol, **tls)  # type: ignore[arg-type]
    mechanism = settings[client_keys.SASL_MECHANISM].upper()
    if mechanism not in _MECHANISMS:
        raise ConfigError(
            f"{alias}.sasl.mechanism: '{mechanism}' is not supported yet; supported are {', '.join(_MECHANISMS)}."
        )
    options = parse_jaas(settings[client_keys.SASL_JAAS_CONFIG])
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise ConfigError(
            f"{alias}.sasl.jaas.config: {' and '.join(missing)} is missing for the mechanism {mechanism}."
        )
    return Security(
        protocol,
        mechanism=mechanism,
        username=options["username"],
        password=options["password"],
        **tls,  # type: ignore[arg-type]
    )


def parse_jaas(text: str) -> dict[str, str]:
    """Options of a JAAS line: `Module required username="u" password=p;`, quoted or not."""
    options = {}
    for name, double, single, bare in _JAAS_OPTION.findall(text):
        options[name] = re.sub(r"\\(.)", r"\1", double or single) if double or single else bare
    return options


def _tls_fields(settings: Settings, alias: str) -> dict[str, str | bool]:
    for location, kind in (
        (client_keys.SSL_TRUSTSTORE_LOCATION, client_keys.SSL_TRUSTSTORE_TYPE),
        (client_keys.SSL_KEYSTORE_LOCATION, client_keys.SSL_KEYSTORE_TYPE),
    ):
        if settings[location] and settings[kind].upper() != "PEM":
            raise ConfigError(
                f"{alias}.{kind.name}: stores of type {settings[kind]} are not read yet; convert {settings[location]}"
                f" to PEM (keytool -exportcert -rfc) and set {alias}.{kind.name}=PEM."
            )
    newest = settings[client_keys.SSL_PROTOCOL]
    if newest not in _TLS_VERSIONS:
        raise ConfigError(f"{alias}.ssl.protocol: '{newest}' is not supported; use TLSv1.2 or TLSv1.3.")
    allowed = [name for name in _TLS_VERSIONS if name in settings[client_keys.SSL_ENABLED_PROTOCOLS] and name <= newest]
    if not allowed:
        raise ConfigError(
            f"{alias}.ssl.enabled.protocols: no version in it is one that Heliograph has and ssl.protocol={newest}"
            " allows; use TLSv1.2, TLSv1.3 or both."
        )
    return {
        "trusted_file": settings[client_keys.SSL_TRUSTSTORE_LOCATION],
        "trusted_pem": settings[client_keys.SSL_TRUSTSTORE_CERTIFICATES],
        "key_file": settings[client_keys.SSL_KEYSTORE_LOCATION],
        "key_password": settings[client_keys.SSL_KEY_PASSWORD],
        "checks_host_name": settings[client_keys.SSL_ENDPOINT_ALGORITHM].lower() == "https",
        "newest_tls": allowed[-1],
        "oldest_tls": allowed[0],
    }


def make_ssl_context(security: Security) -> ssl.SSLContext:
    """A client context; files are read at each call, so a renewed certificate is used by the next connection."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.minimum_version = _TLS_VERSIONS[security.oldest_tls]
    context.maximum_version = _TLS_VERSIONS[security.newest_tls]
    context.check_hostname = security.checks_host_name
    try:
        if security.trusted_file:
            context.load_verify_locations(cadata=Path(security.trusted_file).read_text(encoding="ascii"))
        if security.trusted_pem:
            context.load_verify_locations(cadata=security.trusted_pem)
        if security.key_file:
            context.load_cert_chain(security.key_file, password=security.key_password or None)
    except (OSError, ValueError) as error:
        raise AuthenticationError(f"a certificate or key file cannot be used: {error}") from None
    return context

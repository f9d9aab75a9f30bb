"""TLS of `https` listeners, and of requests passed on to the leading worker; both from the same `ssl.*` keys.

A renewed key or truststore is used by the next connection: for each handshake the listener's context is exchanged for
one of the files as they are (OpenSSL lets a server do that when it learns the client's wish for a name).

Sessions are not resumed, because a resumed one would bring a certificate back that may not be trusted any more. Where
certificates are asked for, that takes TLS 1.3; with `ssl.enabled.protocols` a file may still want TLS 1.2, and then a
certificate counts until its sessions end.
"""

from __future__ import annotations

import hashlib
import ssl
from typing import TYPE_CHECKING

from heliograph.config.keys import client_keys
from heliograph.errors import ConfigError
from heliograph.kafka.security.keystores import KEYSTORE_LOCATION, TRUSTSTORE_LOCATION, load_into, load_key_material
from heliograph.kafka.security.security_settings import make_security
from heliograph.kafka.security.tls import VERSIONS, make_ssl_context, openssl_suites
from heliograph.web.access.reloading import Renewed

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.config.effective.rest_config import ClientAuth
    from heliograph.config.resolve.settings import Settings
    from heliograph.kafka.security.connection_spec import Security


_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_ALIAS = "REST"


def listener_context(settings: Callable[[], Settings], client_auth: ClientAuth) -> ssl.SSLContext:
    """The context of https listeners; raises a sentence with the key that is missing or whose file cannot be used."""
    security = make_security(settings(), _ALIAS)
    if not security.has_key:
        raise ConfigError("an https listener needs a key; name its file.", security.named(KEYSTORE_LOCATION))
    if client_auth != "none" and not security.has_trusted:
        raise ConfigError(
            f"ssl.client.auth={client_auth} needs the certificates that are trusted; name their file.",
            security.named(TRUSTSTORE_LOCATION),
        )

    def make() -> ssl.SSLContext:
        given = settings()
        context = _listener_context(make_security(given, _ALIAS), client_auth)
        if client_auth != "none" and client_keys.SSL_ENABLED_PROTOCOLS not in given:
            context.minimum_version = context.maximum_version  # Python cannot forbid TLS 1.2 to resume sessions
        return context

    context, renewed = make(), Renewed(_paths(security), make, lambda: _digest(settings()))

    def exchange(handshake: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        handshake.context = renewed.get()

    context.sni_callback = exchange  # which is also called where the client names no name
    return context


def forwarding_context(settings: Callable[[], Settings]) -> Renewed[ssl.SSLContext]:
    """How a request reaches a leader whose listener is https: with our own certificate, trusting as we do."""
    paths = _paths(make_security(settings(), _ALIAS))
    make = lambda: make_ssl_context(make_security(settings(), _ALIAS))  # noqa: E731
    return Renewed(paths, make, lambda: _digest(settings()))


def _listener_context(security: Security, client_auth: ClientAuth) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = VERSIONS[security.oldest_tls], VERSIONS[security.newest_tls]
    context.verify_mode = _VERIFY[client_auth]
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java whatever a truststore holds is an anchor
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    older, _of_tls_1_3 = openssl_suites(security.cipher_suites)
    if older:
        context.set_ciphers(":".join(older))
    load_into(context, load_key_material(security))
    return context


def _digest(settings: Settings) -> str:
    """Changes with what placeholders hold, without holding it."""
    return hashlib.sha256(repr(sorted(settings.values.items())).encode()).hexdigest()


def _paths(security: Security) -> tuple[str, str]:
    return security.key_file, security.trusted_file

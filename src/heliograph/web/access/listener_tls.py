"""TLS of `https` listeners, and of requests forwarded to the leader; both from the same `ssl.*` keys.

The next connection uses a renewed key or truststore: for each handshake the listener's context is replaced by one of
the files as they are now (OpenSSL lets a server do that in the callback for the server name).

Sessions are not resumed, because a resumed one would accept a certificate that may not be trusted any more. If client
certificates are on, this needs TLS 1.3. With `ssl.enabled.protocols` a file may still allow TLS 1.2; then a certificate
is accepted until its sessions end.
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
    """Return the context of https listeners; raise ConfigError with the key that is missing or unusable."""
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

    context.sni_callback = exchange  # which is also called if the client sends no name
    return context


def forwarding_context(settings: Callable[[], Settings]) -> Renewed[ssl.SSLContext]:
    """Return the context for an https leader: with our own certificate and truststore."""
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
    """Return a value that changes with the values of placeholders, without containing them."""
    return hashlib.sha256(repr(sorted(settings.values.items())).encode()).hexdigest()


def _paths(security: Security) -> tuple[str, str]:
    return security.key_file, security.trusted_file

"""TLS of `https` listeners, and of requests passed on to the leading worker; both from the same `ssl.*` keys.

A renewed key or truststore is used by the next connection: for each handshake the listener's context is exchanged for
one of the files as they are (OpenSSL lets a server do that when it learns the client's wish for a name).

Sessions are not resumed, because a resumed one would bring a certificate back that may not be trusted any more.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from heliograph.api.renewed import Renewed
from heliograph.config import client_keys
from heliograph.errors import ConfigError
from heliograph.kafka import keystores
from heliograph.kafka.keystores import Stores, load_into, load_key_material

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.config.rest_access import ClientAuth
    from heliograph.config.types import Settings

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def listener_context(settings: Callable[[], Settings], client_auth: ClientAuth) -> ssl.SSLContext:
    """The context of https listeners; raises a sentence with the key that is missing or whose file cannot be used."""
    tls = settings()
    stores = _stores(tls)
    if not stores.has_key:
        raise ConfigError(f"{tls.written(keystores.KEYSTORE_LOCATION)}: an https listener needs a key; name its file.")
    if client_auth != "none" and not stores.has_trusted:
        raise ConfigError(
            f"{tls.written(keystores.TRUSTSTORE_LOCATION)}: ssl.client.auth={client_auth} needs the certificates that"
            " are trusted; name their file."
        )
    renewed = Renewed(_paths(stores), lambda: _listener_context(settings(), client_auth))
    context = _listener_context(tls, client_auth)

    def exchange(handshake: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        handshake.context = renewed.get()

    context.sni_callback = exchange  # which is also called where the client names no name
    return context


def forwarding_context(settings: Callable[[], Settings]) -> Renewed[ssl.SSLContext]:
    """How a request reaches a leader whose listener is https: with our own certificate, trusting as we do."""
    return Renewed(_paths(_stores(settings())), lambda: _forwarding_context(settings()))


def _listener_context(tls: Settings, client_auth: ClientAuth) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_up(context, tls)
    context.verify_mode = _VERIFY[client_auth]
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    load_into(context, load_key_material(_stores(tls)))
    return context


def _forwarding_context(tls: Settings) -> ssl.SSLContext:
    stores = _stores(tls)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _set_up(context, tls)
    context.check_hostname = tls[client_keys.SSL_ENDPOINT_ALGORITHM].lower() == "https"
    if not stores.has_trusted:
        context.load_default_certs()
    load_into(context, load_key_material(stores))
    return context


def _set_up(context: ssl.SSLContext, tls: Settings) -> None:
    newest = tls[client_keys.SSL_PROTOCOL]
    enabled = tls[client_keys.SSL_ENABLED_PROTOCOLS]
    allowed = [name for name in _VERSIONS if name in enabled and name <= newest]
    if not allowed:
        raise ConfigError(
            f"{tls.written_as(client_keys.SSL_ENABLED_PROTOCOLS)}: no version in it is one that is spoken here and"
            " ssl.protocol allows; use TLSv1.2, TLSv1.3 or both."
        )
    context.minimum_version, context.maximum_version = _VERSIONS[allowed[0]], _VERSIONS[allowed[-1]]
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java whatever a truststore holds is an anchor


def _stores(tls: Settings) -> Stores:
    fields = {
        "trusted_file": keystores.TRUSTSTORE_LOCATION,
        "trusted_password": keystores.TRUSTSTORE_PASSWORD,
        "trusted_pem": keystores.TRUSTSTORE_CERTIFICATES,
        "key_file": keystores.KEYSTORE_LOCATION,
        "key_store_password": keystores.KEYSTORE_PASSWORD,
        "key_pem": keystores.KEYSTORE_KEY,
        "chain_pem": keystores.KEYSTORE_CHAIN,
        "key_password": keystores.KEY_PASSWORD,
    }
    values = {field: tls.values.get(key, "") for field, key in fields.items()}
    return Stores(**values, written=tuple((key, tls.written(key)) for key in fields.values()))


def _paths(stores: Stores) -> tuple[str, str]:
    return stores.key_file, stores.trusted_file

"""TLS contexts of a client, and errors of a handshake, which name the key of the configuration to check.

A context is made for each connection, so that the next one uses a renewed certificate. Trust is as in Java: if there is
a truststore, only its certificates count, and each of them is an anchor, even if another authority issued it.
"""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING

from heliograph.errors import AuthenticationError, ClusterError, KeyStoreError, UnreachableError
from heliograph.kafka.security.keystores import KEYSTORE_LOCATION, TRUSTSTORE_LOCATION, load_into, load_key_material

if TYPE_CHECKING:
    import socket

    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import Address


VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_NEWEST_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_HOST_MISMATCH = (62, 64)  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH
_EXPIRED, _NOT_YET_VALID = 10, 9


def openssl_suites(suites: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return OpenSSL's names for Java's names of cipher suites: those before TLS 1.3, and those of TLS 1.3."""
    newest = tuple(suite for suite in suites if suite in _NEWEST_SUITES)
    older = tuple(_openssl_name(suite) for suite in suites if suite not in _NEWEST_SUITES)
    return older, newest


def _openssl_name(suite: str) -> str:
    """Turn `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` into `ECDHE-RSA-AES128-GCM-SHA256`; keep other names."""
    parts = re.fullmatch(r"(?:TLS|SSL)_(\w{1,64}?)_WITH_(\w{1,64})", suite)
    if parts is None:
        return suite
    exchange = "" if parts[1] == "RSA" else parts[1].replace("_", "-") + "-"
    cipher = re.sub(r"AES_(\d+)", r"AES\1", parts[2]).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return exchange + cipher.replace("_", "-")


def unknown_suites(suites: tuple[str, ...]) -> list[str]:
    """Return the suites that OpenSSL does not have."""
    known = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unknown = []
    for suite in suites:
        try:
            known.set_ciphers(_openssl_name(suite) if suite not in _NEWEST_SUITES else "DEFAULT")
        except ssl.SSLError:
            unknown.append(suite)
    return unknown


def make_ssl_context(security: Security) -> ssl.SSLContext:
    """Return a client's context; raise AuthenticationError if a store cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = VERSIONS[security.oldest_tls]
    context.maximum_version = VERSIONS[security.newest_tls]
    context.check_hostname = security.checks_host_name
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    older, _newest = openssl_suites(security.cipher_suites)
    if older:
        context.set_ciphers(":".join(older))
    if not security.has_trusted:
        context.load_default_certs()
    try:
        load_into(context, load_key_material(security))
    except KeyStoreError as error:
        raise AuthenticationError(str(error)) from None
    return context


def wrap(sock: socket.socket, address: Address, security: Security) -> ssl.SSLSocket:
    """Wrap a socket in TLS and verify the broker's certificate."""
    context = make_ssl_context(security)
    try:
        wrapped = context.wrap_socket(sock, server_hostname=address.host)
    except OSError as error:
        raise handshake_error(error, address, security) from None
    _older, newest = openssl_suites(security.cipher_suites)
    agreed = wrapped.cipher()
    # Python cannot choose among TLS 1.3's suites, so one that is not allowed is refused after the handshake.
    if newest and wrapped.version() == "TLSv1.3" and agreed is not None and agreed[0] not in newest:
        wrapped.close()
        name = security.named("ssl.cipher.suites")
        raise AuthenticationError(f"{address} chose the cipher suite {agreed[0]}, which is not in {name}.")
    return wrapped


def handshake_error(error: OSError, address: Address, security: Security) -> ClusterError:
    """Return the error for a failed handshake: the broker, the reason, and the key to check."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationError(_distrust(error, address, security))
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    if "EOF" in reason:  # a listener without TLS does this too
        name = security.named("security.protocol")
        return UnreachableError(f"{address} closed the connection while TLS was agreed on; is {name} its listener's?")
    if not reason:
        reason = error.strerror or str(error) or type(error).__name__
        return UnreachableError(f"{address} broke off while TLS was agreed on: {reason}")
    if "ALERT" in reason and any(word in reason for word in ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")):
        return AuthenticationError(refused_certificate(reason, address, security))
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return AuthenticationError(f"{address} does not use TLS; check {security.named('security.protocol')}.")
    keys = ", ".join(map(security.named, ("ssl.enabled.protocols", "ssl.cipher.suites", KEYSTORE_LOCATION)))
    return AuthenticationError(f"{address}: no TLS connection could be agreed on ({_plain(reason)}); check {keys}.")


def refused_certificate(reason: str, address: Address, security: Security) -> str:
    """Say why a broker refused our certificate, or that it requires one."""
    name = security.named("ssl.keystore.key" if security.key_pem else KEYSTORE_LOCATION)
    if not security.has_key:
        return f"{address} asks for a client certificate ({_plain(reason)}); set {name}."
    return f"{address} refused our client certificate ({_plain(reason)}); check {name}."


def _plain(reason: str) -> str:
    return re.sub(r"^(SSLV3|TLSV1|TLSV13)_", "", reason).replace("_", " ").lower()


def _distrust(error: ssl.SSLCertVerificationError, address: Address, security: Security) -> str:
    problem = f"{address}: the broker's certificate is not trusted: {error.verify_message}"
    if error.verify_code in _HOST_MISMATCH:
        name = security.named("ssl.endpoint.identification.algorithm")
        return f"{problem.rstrip('.')}; use a name that is in the certificate, or leave {name} empty."
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return f"{problem}; renew it, or correct the clock of the broker or of this machine."
    name = security.named("ssl.truststore.certificates" if security.trusted_pem else TRUSTSTORE_LOCATION)
    return f"{problem}; its authority must be in {name}."

"""Tokens for OAUTHBEARER: requested with a client's id and secret, kept until they are due, renewed before they end.

The endpoint is any OIDC server's (RFC 6749, client credentials), over TLS by the `ssl.*` options of the login module;
or a file that another program keeps fresh, read at each login. A token is kept once per process and client; one thread
requests it while the others wait. `sasl.login.refresh.*` decide when it is due, as in Kafka.

Invariants:
A. A token that has ended is never used.
B. No message contains a token, a secret, or any text of the endpoint beyond its error code.
C. Only a text of a token's characters is sent to a broker, whatever file it came from.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import random
import re
import ssl
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote_plus, unquote, urlencode, urlsplit

from heliograph.config.resolve.redaction import redact_value
from heliograph.config.secrets.known_secrets import remember_token
from heliograph.errors import AuthenticationError, HeliographError, KeyStoreError, UnreachableError
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.security.keystores import NO_SECRET, Stores, load_into, load_key_material

if TYPE_CHECKING:
    from collections.abc import Mapping


_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
# Codes of RFC 6749; any other text may come from a server that is not a token endpoint.
_ERROR_CODES = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "invalid_scope", "unauthorized_client"),
        *("unsupported_grant_type", "access_denied", "server_error", "temporarily_unavailable"),
    }
)
_MAX_RESPONSE_BYTES = 1 << 20
DEFAULT_TIMEOUT_MS = 10_000
_DEFAULT_LIFE_S = 300.0  # of a token that does not state its end


@dataclass(frozen=True, slots=True)
class RefreshRule:
    """The time at which a token is due, by `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300

    def due_at(self, now: float, starts_at: float, ends_at: float) -> float:
        """Return when to request the next token: after a share of its life, within both periods if it is long."""
        share = self.window_factor + self.window_jitter * random.random()  # noqa: S311  (jitter, not a secret)
        due = starts_at + (ends_at - starts_at) * min(1.0, share)
        if now + self.min_period_s + self.buffer_s > ends_at:
            return due
        return max(min(due, ends_at - self.buffer_s), now + self.min_period_s)


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """A client of a token endpoint; `origin` is the key that names the endpoint, `secret_origin` that of the secret.

    `written` is the endpoint as the user wrote it; if it contains a placeholder, only that may be in a message.
    """

    endpoint_url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    encodes_header: bool = False
    connect_timeout_ms: int = DEFAULT_TIMEOUT_MS
    read_timeout_ms: int = DEFAULT_TIMEOUT_MS
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    refresh: RefreshRule = field(default_factory=RefreshRule)
    tls: Stores = field(default_factory=Stores)
    origin: str = "sasl.oauthbearer.token.endpoint.url"
    secret_origin: str = "sasl.jaas.config"  # noqa: S105  (the name of a key)
    written: str = field(default="", repr=False, metadata=NO_SECRET)

    @property
    def shown(self) -> str:
        """The endpoint for a message: its host or its path, unless a placeholder was resolved in it."""
        url = urlsplit(self.endpoint_url)
        if "${" in self.written:
            return redact_value(self.origin, self.written)
        return unquote(url.path) if url.scheme == "file" else url.hostname or ""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, when it is due to be renewed, and when it ends, by this machine's clock."""

    value: str = field(repr=False)
    due_at: float
    ends_at: float


class TokenKeeper:
    """The tokens of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: defaultdict[OAuthClient, threading.Lock] = defaultdict(threading.Lock)
        self._tokens: dict[OAuthClient, Token] = {}

    def token(self, client: OAuthClient) -> Token:
        """Return a token that has not ended; request a new one when it is due, and keep the old one if that fails."""
        with self._lock:
            lock = self._locks[client]
        with lock:
            kept = self._tokens.get(client)
            if kept is not None and time.time() < kept.due_at:
                return kept
            try:
                fresh = fetch_token(client)
            except HeliographError:
                if kept is not None and time.time() < kept.ends_at:
                    return kept
                raise
            self._tokens[client] = fresh
            return fresh

    def forget(self, client: OAuthClient) -> None:
        """Drop a token that a broker has refused, so that the next login requests another."""
        self._tokens.pop(client, None)


KEEPER = TokenKeeper()


def fetch_token(client: OAuthClient) -> Token:
    """Return a new token, from the endpoint or from the file."""
    url = urlsplit(client.endpoint_url)
    if url.scheme == "file":
        text = _read_file(unquote(url.path), client)
        return Token(_checked(text.strip(), client), 0.0, 0.0)  # due at once: the file is read at each login
    response = _request_with_retries(client, url)
    value = response.get("access_token")
    if not isinstance(value, str):
        raise AuthenticationError(f"the token endpoint of {client.origin} ({client.shown}) returned no token.")
    now = time.time()
    starts_at, ends_at = _life(_checked(value, client), response, now)
    if ends_at <= now:
        raise AuthenticationError(
            f"the token endpoint of {client.origin} ({client.shown}) returned an expired token; compare the clocks."
        )
    return Token(value, client.refresh.due_at(now, starts_at, ends_at), ends_at)


def _read_file(path: str, client: OAuthClient) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(_MAX_RESPONSE_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise AuthenticationError(
            f"{client.origin}: the file {client.shown} cannot be read: {error.strerror}."
        ) from None


def _checked(value: str, client: OAuthClient) -> str:
    if not _TOKEN.fullmatch(value):
        raise AuthenticationError(f"{client.origin}: its content is not a token.")
    remember_token(value)
    return value


def _life(value: str, response: Mapping[str, object], now: float) -> tuple[float, float]:
    """Return when a token begins and ends: by its own claims, or by the response's `expires_in`."""
    claims = _claims(value)
    ends_at, expires_in = claims.get("exp"), response.get("expires_in")
    if isinstance(ends_at, (int, float)):
        starts_at = claims.get("iat")
        return (min(float(starts_at), now) if isinstance(starts_at, (int, float)) else now), float(ends_at)
    try:
        return now, now + float(str(expires_in))
    except ValueError:
        return now, now + _DEFAULT_LIFE_S


def _claims(value: str) -> Mapping[str, object]:
    """Return the claims of a JSON web token, none if it is not one. They are not verified: the broker does that."""
    parts = value.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _request_with_retries(client: OAuthClient, url: SplitResult) -> Mapping[str, object]:
    """Request a token, again while the endpoint is unreachable or overloaded, for as long as the settings allow."""
    backoff = Backoff(client.retry_backoff_ms / 1000, client.retry_backoff_max_ms / 1000)
    deadline = time.monotonic() + client.retry_backoff_max_ms / 1000
    while True:
        try:
            return _request(client, url)
        except UnreachableError:
            pause_s = backoff.next_pause_s()
            if time.monotonic() + pause_s > deadline:
                raise
            time.sleep(pause_s)


def _request(client: OAuthClient, url: SplitResult) -> Mapping[str, object]:
    connection = _connection(client, url)
    try:
        connection.connect()
        if connection.sock is not None:
            connection.sock.settimeout(client.read_timeout_ms / 1000)
        path = f"{url.path or '/'}{'?' if url.query else ''}{url.query}"
        connection.request("POST", path, _body(client), _headers(client))
        response = connection.getresponse()
        return _checked_response(client, response.status, response.read(_MAX_RESPONSE_BYTES + 1))
    except ssl.SSLCertVerificationError as error:
        raise AuthenticationError(
            f"the certificate of the token endpoint {client.shown} is not trusted: {error.verify_message};"
            f" name its authority by ssl.truststore.location in {client.secret_origin}."
        ) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnreachableError(
            f"the token endpoint {client.shown} of {client.origin} does not answer: {reason}"
        ) from None
    finally:
        connection.close()


def _connection(client: OAuthClient, url: SplitResult) -> http.client.HTTPConnection:
    timeout_s = client.connect_timeout_ms / 1000
    host = url.hostname or ""
    if url.scheme == "http":
        return http.client.HTTPConnection(host, url.port or 80, timeout=timeout_s)
    context = ssl.create_default_context() if not client.tls.has_trusted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        load_into(context, load_key_material(client.tls))
    except KeyStoreError as error:
        raise AuthenticationError(f"{client.secret_origin}: {error}") from None
    return http.client.HTTPSConnection(host, url.port or 443, timeout=timeout_s, context=context)


def _body(client: OAuthClient) -> bytes:
    fields = {"grant_type": "client_credentials", **({"scope": client.scope} if client.scope else {})}
    return urlencode(fields).encode("ascii")


def _headers(client: OAuthClient) -> dict[str, str]:
    parts = (client.client_id, client.client_secret)
    pair = ":".join(map(quote_plus, parts) if client.encodes_header else parts)
    return {
        "Accept": "application/json",
        "Authorization": "Basic " + base64.b64encode(pair.encode("utf-8")).decode("ascii"),
        "Content-Type": "application/x-www-form-urlencoded",
    }


def _checked_response(client: OAuthClient, status: int, body: bytes) -> Mapping[str, object]:
    try:
        content = json.loads(body) if len(body) <= _MAX_RESPONSE_BYTES else None
    except (ValueError, RecursionError):
        content = None
    fields = content if isinstance(content, dict) else {}
    if status in (408, 429) or status >= 500:
        raise UnreachableError(f"the token endpoint {client.shown} of {client.origin} failed (HTTP {status})")
    if status != 200:
        code = fields.get("error")
        why = f": {code}" if isinstance(code, str) and code in _ERROR_CODES else ""
        raise AuthenticationError(
            f"the token endpoint {client.shown} refused the client '{client.client_id}' (HTTP {status}{why});"
            f" check {client.secret_origin}."
        )
    return fields

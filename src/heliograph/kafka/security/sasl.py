"""SASL as a client: the conversation that authenticates a connection, and the mechanisms.

A broker may limit how long a session lasts (KIP-368); the client then authenticates again before its end, on the same
connection. `log_in` is the conversation without a socket: it yields requests and is sent their responses, so that an
opening connection, which blocks, and a running loop, which does not, can both carry it.

PLAIN (RFC 4616), SCRAM (RFC 5802, with Kafka's delegation tokens) and OAUTHBEARER (RFC 7628) are our own. GSSAPI and
AWS_MSK_IAM are kafka-python's and need a library each, `gssapi` and `botocore`, which Heliograph does not install; they
were not tested with a real Kerberos or AWS.

Invariant: no error contains a password, a token, or text of the broker that might contain them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import random
import secrets
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kafka.errors import KafkaError
from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from heliograph.config.secrets.known_secrets import HIDDEN
from heliograph.errors import AuthenticationError
from heliograph.kafka.error_codes import UNSUPPORTED_SASL_MECHANISM
from heliograph.kafka.security.oauth import KEEPER
from heliograph.kafka.security.sasl_mechanisms import LIBRARIES, missing_library

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import Address


NEWEST_AUTHENTICATE = 1  # the first version whose response has the lifetime of the session
_MIN_RENEWAL_SHARE, _MAX_RENEWAL_SHARE = 0.75, 0.85  # of a session's life
_CHECK_INTERVAL_S = 1.0  # how often loops compare the time
_MAX_ROUNDS = 10
_MAX_REASON_LETTERS = 300
_MIN_ITERATIONS, _MAX_ITERATIONS = 4_096, 1_000_000
_environment = threading.Lock()


class SaslRequest(NamedTuple):
    """A request of the conversation, and the class of its response."""

    request: Any
    response_class: Any


@dataclass(slots=True)
class Session:
    """The security that a connection was authenticated with, and when to renew it, on the monotonic clock."""

    security: Security
    log_in_at: float = float("inf")
    is_renewing: bool = False

    def set_lifetime(self, lifetime_ms: int, now: float) -> None:
        """Take the lifetime that the broker has set; 0 is unlimited."""
        share = random.uniform(_MIN_RENEWAL_SHARE, _MAX_RENEWAL_SHARE)  # noqa: S311  (jitter, so that not all renew at once)
        life_s = lifetime_ms / 1000
        self.log_in_at = now + max(life_s * share - _CHECK_INTERVAL_S, life_s / 2) if life_s > 0 else float("inf")
        self.is_renewing = False


def log_in(security: Security, address: Address, version: int) -> Generator[SaslRequest, Any, int]:
    """Authenticate; return the lifetime of the session in ms. May wait for a token before its first request."""
    login = _login_name(security)
    mechanism = make_mechanism(security, address)
    handshake = yield SaslRequest(SaslHandshakeRequest(version=1, mechanism=security.mechanism), SaslHandshakeResponse)
    if handshake.error_code:
        raise AuthenticationError(_refused_mechanism(handshake, security, address))
    message = mechanism.first()
    for _round in range(_MAX_ROUNDS):
        request = SaslAuthenticateRequest(version=version, auth_bytes=message)
        response = yield SaslRequest(request, SaslAuthenticateResponse)
        if response.error_code:
            if security.oauth is not None:
                KEEPER.forget(security.oauth)
            raise AuthenticationError(f"{address} refused {login}: {_reason(response, security)}.")
        try:
            next_message = mechanism.respond(response.auth_bytes)
        except AuthenticationError as error:
            raise AuthenticationError(f"{address} did not authenticate {login}: {error}.") from None
        if next_message is None:
            return getattr(response, "session_lifetime_ms", 0) or 0
        message = next_message
    raise AuthenticationError(f"{address} did not finish the authentication of {login}.")


def _reason(response: Any, security: Security) -> str:
    """Return the broker's message, cut short and without our password, which the broker may know."""
    message = (response.error_message or "authentication failed")[:_MAX_REASON_LETTERS].rstrip(".")
    return message.replace(security.password, HIDDEN) if security.password else message


def _login_name(security: Security) -> str:
    if security.oauth is not None:
        return f"the token of {security.oauth.origin}"
    if security.username:
        return f"the user '{security.username}' of {security.named('sasl.jaas.config')}"
    return f"our {security.mechanism} login"


def _refused_mechanism(handshake: Any, security: Security, address: Address) -> str:
    if handshake.error_code != UNSUPPORTED_SASL_MECHANISM:
        return f"{address} does not use SASL; check {security.named('security.protocol')}."
    offered = ", ".join(handshake.mechanisms)
    name = security.named("sasl.mechanism")
    return f"{address} does not take {name}={security.mechanism}; it takes {offered}."


def make_mechanism(security: Security, address: Address) -> Mechanism:
    """Return a new mechanism; request a token if it needs one."""
    if security.mechanism == "PLAIN":
        return Plain(security.username, security.password)
    if security.mechanism.startswith("SCRAM-"):
        return Scram(security.mechanism, security.username, security.password, is_token=security.is_delegation_token)
    if security.mechanism == "OAUTHBEARER":
        assert security.oauth is not None
        return OAuthBearer(KEEPER.token(security.oauth).value, security.oauth.extensions)
    return LibraryMechanism(security, address)


class Mechanism(Protocol):
    """The client's side of one authentication."""

    def first(self) -> bytes:
        """Return the first message."""

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the next message; None after the last one, when the broker has proved itself if it must."""


class Plain:
    """PLAIN: user name and password in clear text."""

    def __init__(self, username: str, password: str) -> None:
        self._username, self._password = username, password

    def first(self) -> bytes:
        """Return the only message."""
        return f"\0{self._username}\0{self._password}".encode()

    def respond(self, _challenge: bytes) -> None:
        """Send nothing more."""
        return


class Scram:
    """SCRAM: both sides prove that they know the password, without sending it."""

    def __init__(self, mechanism: str, username: str, password: str, *, is_token: bool = False) -> None:
        self._digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._password = password.encode("utf-8")
        self._nonce = secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}{',tokenauth=true' if is_token else ''}"
        self._server_proof: bytes | None = None

    def first(self) -> bytes:
        """Return our name and a random nonce."""
        return f"n,,{self._bare}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        """Return our proof; then check the broker's."""
        try:
            attributes = dict(pair.split("=", 1) for pair in challenge.decode("utf-8").split(","))
            if self._server_proof is None:
                return self._prove(challenge.decode("utf-8"), attributes)
            if not hmac.compare_digest(base64.b64decode(attributes["v"], validate=True), self._server_proof):
                raise AuthenticationError(
                    "its proof of the password is wrong; it may not be the broker it claims to be"
                )
        except (KeyError, ValueError, binascii.Error):
            raise AuthenticationError("its message is not a valid one of SCRAM") from None
        return None

    def _prove(self, challenge: str, attributes: dict[str, str]) -> bytes:
        nonce, iterations = attributes["r"], int(attributes["i"])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise AuthenticationError("its message does not contain our nonce")
        if not _MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
            raise AuthenticationError(f"it asks for {iterations} iterations, which is not between 4,096 and a million")
        salted = hashlib.pbkdf2_hmac(
            self._digest, self._password, base64.b64decode(attributes["s"], validate=True), iterations
        )
        client_key = self._hmac(salted, b"Client Key")
        final = f"c=biws,r={nonce}"
        messages = f"{self._bare},{challenge},{final}".encode()
        signature = self._hmac(hashlib.new(self._digest, client_key).digest(), messages)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_proof = self._hmac(self._hmac(salted, b"Server Key"), messages)
        return f"{final},p={base64.b64encode(proof).decode('ascii')}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._digest).digest()


class OAuthBearer:
    """OAUTHBEARER: a token and its SASL extensions."""

    def __init__(self, token: str, extensions: tuple[tuple[str, str], ...] = ()) -> None:
        self._token, self._extensions = token, extensions

    def first(self) -> bytes:
        """Return the token."""
        extensions = "".join(f"\x01{name}={value}" for name, value in self._extensions)
        return f"n,,\x01auth=Bearer {self._token}{extensions}\x01\x01".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        """Send nothing more if it was accepted; acknowledge a refusal, or the broker does not report it."""
        return b"\x01" if challenge else None


class LibraryMechanism:
    """A mechanism of kafka-python, which needs a library of its own."""

    def __init__(self, security: Security, address: Address) -> None:
        library = missing_library(security.mechanism)
        if library is not None:
            raise AuthenticationError(
                f"{security.named('sasl.mechanism')}={security.mechanism} needs the Python library '{library}', which"
                " is not installed here"
            )
        variables = {"KRB5_CLIENT_KTNAME": security.kerberos_key_tab, "AWS_PROFILE": security.aws_profile}
        self._variables = {name: value for name, value in variables.items() if value}
        with self._prepared():
            self._mechanism: Any = get_sasl_mechanism(security.mechanism)(
                host=address.host,
                security_protocol=security.protocol,
                sasl_mechanism=security.mechanism,
                sasl_kerberos_service_name=security.kerberos_service,
            )

    def first(self) -> bytes:
        """Return kafka-python's message."""
        with self._prepared():
            return bytes(self._mechanism.auth_bytes())

    def respond(self, challenge: bytes) -> bytes | None:
        """Return kafka-python's message."""
        with self._prepared():
            self._mechanism.receive(challenge)
            if not self._mechanism.is_done():
                return bytes(self._mechanism.auth_bytes())
        if not self._mechanism.is_authenticated():
            raise AuthenticationError("it rejected our credentials")
        return None

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """Set the environment, where the libraries look for keytab and profile; turn their errors into ours."""
        with _environment:
            before = {name: os.environ[name] for name in self._variables if name in os.environ}
            os.environ.update(self._variables)
            try:
                yield
            except (KafkaError, OSError, RuntimeError, ValueError, AttributeError) as error:
                raise AuthenticationError(f"no login was possible: {error}") from None
            except Exception as error:
                if type(error).__module__.partition(".")[0] not in LIBRARIES.values():
                    raise
                raise AuthenticationError(f"no login was possible: {error}") from None
            finally:
                for name in self._variables:
                    del os.environ[name]
                os.environ.update(before)

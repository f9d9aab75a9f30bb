"""SASL mechanisms as a client speaks them: what to say first, and what to answer.

PLAIN (RFC 4616), SCRAM (RFC 5802, with Kafka's delegation tokens) and OAUTHBEARER (RFC 7628) are here. GSSAPI and
AWS_MSK_IAM are kafka-python's and need a library each, `gssapi` and `botocore`, which Heliograph does not bring; no
real Kerberos or AWS has tested them. Nothing here knows sockets: `login.py` carries the words.

Invariant: no error repeats a password, a token, or words of the broker that might contain them.


Authenticating over a connection: a conversation that blocks while it opens, and does not when it is repeated.

A broker may tell how long a session lasts (KIP-368); before it ends the client says who it is once more, on the same
connection. `log_in` is the conversation without a connection: it yields requests and is sent their answers, so that an
opening connection and a running loop can both carry it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import importlib.util
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

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import Address


LIBRARIES = {"GSSAPI": "gssapi", "AWS_MSK_IAM": "botocore"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", *LIBRARIES)
_LEAST_ITERATIONS, _MOST_ITERATIONS = 4_096, 1_000_000
_environment = threading.Lock()


class Mechanism(Protocol):
    """One conversation."""

    def first(self) -> bytes:
        """What the client says first."""

    def answer(self, challenge: bytes) -> bytes | None:
        """What it says to the broker's words; None where all is said and the broker has proved itself."""


def missing_library(mechanism: str) -> str | None:
    """The library that a mechanism needs and this Python does not have."""
    library = LIBRARIES.get(mechanism)
    return library if library is not None and importlib.util.find_spec(library) is None else None


def begin(security: Security, address: Address) -> Mechanism:
    """A new conversation; asks for a token where the mechanism needs one."""
    if security.mechanism == "PLAIN":
        return Plain(security.username, security.password)
    if security.mechanism.startswith("SCRAM-"):
        return Scram(security.mechanism, security.username, security.password, is_token=security.is_delegation_token)
    if security.mechanism == "OAUTHBEARER":
        assert security.oauth is not None
        return OAuthBearer(KEEPER.token(security.oauth).value, security.oauth.extensions)
    return Borrowed(security, address)


class Plain:
    """User name and password, as they are."""

    def __init__(self, username: str, password: str) -> None:
        self._username, self._password = username, password

    def first(self) -> bytes:
        """All there is to say."""
        return f"\0{self._username}\0{self._password}".encode()

    def answer(self, _challenge: bytes) -> None:
        """The broker has taken it."""
        return


class Scram:
    """A proof that both sides know the password, without telling it."""

    def __init__(self, mechanism: str, username: str, password: str, *, is_token: bool = False) -> None:
        self._digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._password = password.encode("utf-8")
        self._nonce = secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}{',tokenauth=true' if is_token else ''}"
        self._server_proof: bytes | None = None

    def first(self) -> bytes:
        """Our name and a number nobody can foresee."""
        return f"n,,{self._bare}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """Our proof; then, the broker's is checked."""
        try:
            words = dict(pair.split("=", 1) for pair in challenge.decode("utf-8").split(","))
            if self._server_proof is None:
                return self._prove(challenge.decode("utf-8"), words)
            if not hmac.compare_digest(base64.b64decode(words["v"], validate=True), self._server_proof):
                raise AuthenticationError("its proof of the password is wrong; it may not be the broker it seems")
        except (KeyError, ValueError, binascii.Error):
            raise AuthenticationError("its answer is not SCRAM's") from None
        return None

    def _prove(self, challenge: str, words: dict[str, str]) -> bytes:
        nonce, iterations = words["r"], int(words["i"])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise AuthenticationError("its answer is not to our question")
        if not _LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
            raise AuthenticationError(f"it asks for {iterations} iterations, which is not between 4,096 and a million")
        salted = hashlib.pbkdf2_hmac(
            self._digest, self._password, base64.b64decode(words["s"], validate=True), iterations
        )
        client_key = self._hmac(salted, b"Client Key")
        final = f"c=biws,r={nonce}"
        spoken = f"{self._bare},{challenge},{final}".encode()
        signature = self._hmac(hashlib.new(self._digest, client_key).digest(), spoken)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_proof = self._hmac(self._hmac(salted, b"Server Key"), spoken)
        return f"{final},p={base64.b64encode(proof).decode('ascii')}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._digest).digest()


class OAuthBearer:
    """A token, and what the broker's side wants to know beside it."""

    def __init__(self, token: str, extensions: tuple[tuple[str, str], ...] = ()) -> None:
        self._token, self._extensions = token, extensions

    def first(self) -> bytes:
        """The token."""
        more = "".join(f"\x01{name}={value}" for name, value in self._extensions)
        return f"n,,\x01auth=Bearer {self._token}{more}\x01\x01".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """Nothing where it was taken; a refusal must be acknowledged before the broker says so."""
        return b"\x01" if challenge else None


class Borrowed:
    """A mechanism of kafka-python."""

    def __init__(self, security: Security, address: Address) -> None:
        library = missing_library(security.mechanism)
        if library is not None:
            raise AuthenticationError(
                f"{security.named('sasl.mechanism')}={security.mechanism} needs the Python library '{library}', which"
                " is not installed here"
            )
        variables = {"KRB5_CLIENT_KTNAME": security.kerberos_key_tab, "AWS_PROFILE": security.aws_profile}
        self._variables = {name: value for name, value in variables.items() if value}
        with self._reported():
            self._mechanism: Any = get_sasl_mechanism(security.mechanism)(
                host=address.host,
                security_protocol=security.protocol,
                sasl_mechanism=security.mechanism,
                sasl_kerberos_service_name=security.kerberos_service,
            )

    def first(self) -> bytes:
        """As kafka-python says it."""
        with self._reported():
            return bytes(self._mechanism.auth_bytes())

    def answer(self, challenge: bytes) -> bytes | None:
        """As kafka-python says it."""
        with self._reported():
            self._mechanism.receive(challenge)
            if not self._mechanism.is_done():
                return bytes(self._mechanism.auth_bytes())
        if not self._mechanism.is_authenticated():
            raise AuthenticationError("it did not take our credentials")
        return None

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """The libraries find keytab and profile in the environment only, and raise whatever they like."""
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


NEWEST_AUTHENTICATE = 1  # from it on answers tell how long a session lasts
_EARLIEST_SHARE, _LATEST_SHARE = 0.75, 0.85
_LOOK_INTERVAL_S = 1.0  # how often loops look whether it is time
_MOST_ROUNDS = 10
_MOST_REASON_LETTERS = 300


class Question(NamedTuple):
    """A request of the conversation, and the class of its answer."""

    request: Any
    response_class: Any


@dataclass(slots=True)
class Session:
    """What a connection has logged in with, and when it must do so again, on the monotonic clock."""

    security: Security
    log_in_at: float = float("inf")
    is_renewing: bool = False

    def lasts(self, lifetime_ms: int, now: float) -> None:
        """The broker has told how long; 0 is for ever."""
        share = random.uniform(_EARLIEST_SHARE, _LATEST_SHARE)  # noqa: S311  (so that not all come at once)
        life_s = lifetime_ms / 1000
        self.log_in_at = now + max(life_s * share - _LOOK_INTERVAL_S, life_s / 2) if life_s > 0 else float("inf")
        self.is_renewing = False


def log_in(security: Security, address: Address, version: int) -> Generator[Question, Any, int]:
    """The conversation; returns for how many ms the session lasts. Before its first request it may wait for a token."""
    who = _who(security)
    mechanism = begin(security, address)
    handshake = yield Question(SaslHandshakeRequest(version=1, mechanism=security.mechanism), SaslHandshakeResponse)
    if handshake.error_code:
        raise AuthenticationError(_refused_mechanism(handshake, security, address))
    words = mechanism.first()
    for _round in range(_MOST_ROUNDS):
        request = SaslAuthenticateRequest(version=version, auth_bytes=words)
        answer = yield Question(request, SaslAuthenticateResponse)
        if answer.error_code:
            if security.oauth is not None:
                KEEPER.forget(security.oauth)
            raise AuthenticationError(f"{address} refused {who}: {_reason(answer, security)}.")
        try:
            next_words = mechanism.answer(answer.auth_bytes)
        except AuthenticationError as error:
            raise AuthenticationError(f"{address} did not authenticate {who}: {error}.") from None
        if next_words is None:
            return getattr(answer, "session_lifetime_ms", 0) or 0
        words = next_words
    raise AuthenticationError(f"{address} did not come to an end with {who}.")


def _reason(answer: Any, security: Security) -> str:
    """The broker's words, cut short; it may know our password, and must not make us repeat it."""
    words = (answer.error_message or "authentication failed")[:_MOST_REASON_LETTERS].rstrip(".")
    return words.replace(security.password, HIDDEN) if security.password else words


def _who(security: Security) -> str:
    if security.oauth is not None:
        return f"the token of {security.oauth.origin}"
    if security.username:
        return f"the user '{security.username}' of {security.named('sasl.jaas.config')}"
    return f"our {security.mechanism} login"


def _refused_mechanism(handshake: Any, security: Security, address: Address) -> str:
    if handshake.error_code != UNSUPPORTED_SASL_MECHANISM:
        return f"{address} asks for no SASL; check {security.named('security.protocol')}."
    offered = ", ".join(handshake.mechanisms)
    name = security.named("sasl.mechanism")
    return f"{address} does not take {name}={security.mechanism}; it takes {offered}."

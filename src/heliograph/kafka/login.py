"""Authenticating over a connection: a conversation that blocks while it opens, and does not when it is repeated.

A broker may tell how long a session lasts (KIP-368); before it ends the client says who it is once more, on the same
connection. `log_in` is the conversation without a connection: it yields requests and is sent their answers, so that an
opening connection and a running loop can both carry it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from heliograph.errors import AuthenticationError
from heliograph.kafka.oauth import KEEPER
from heliograph.kafka.sasl import begin

if TYPE_CHECKING:
    from collections.abc import Generator

    from heliograph.kafka.security import Security
    from heliograph.model import Address

NEWEST_AUTHENTICATE = 1  # from it on answers tell how long a session lasts
_EARLIEST_SHARE, _LATEST_SHARE = 0.75, 0.85
_LOOK_INTERVAL_S = 1.0  # how often loops look whether it is time
_UNSUPPORTED_MECHANISM = 33


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
    words: bytes | None = mechanism.first()
    lifetime_ms = 0
    while words is not None:
        request = SaslAuthenticateRequest(version=version, auth_bytes=words)
        answer = yield Question(request, SaslAuthenticateResponse)
        if answer.error_code:
            if security.oauth is not None:
                KEEPER.forget(security.oauth)
            reason = (answer.error_message or "authentication failed").rstrip(".")
            raise AuthenticationError(f"{address} refused {who}: {reason}.")
        lifetime_ms = getattr(answer, "session_lifetime_ms", 0) or 0
        try:
            words = mechanism.answer(answer.auth_bytes)
        except AuthenticationError as error:
            raise AuthenticationError(f"{address} did not authenticate {who}: {error}.") from None
    return lifetime_ms


def _who(security: Security) -> str:
    if security.oauth is not None:
        return f"the token of {security.oauth.origin}"
    if security.username:
        return f"the user '{security.username}' of {security.named('sasl.jaas.config')}"
    return f"our {security.mechanism} login"


def _refused_mechanism(handshake: Any, security: Security, address: Address) -> str:
    if handshake.error_code != _UNSUPPORTED_MECHANISM:
        return f"{address} asks for no SASL; check {security.named('security.protocol')}."
    offered = ", ".join(handshake.mechanisms)
    name = security.named("sasl.mechanism")
    return f"{address} does not take {name}={security.mechanism}; it takes {offered}."

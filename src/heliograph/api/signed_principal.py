"""The caller of a request that one worker passes on to another: signed, so that nobody else can say who it is.

The follower has asked the caller for his name; the leader need not see his password, and could not see his certificate.
The signature is an HMAC by the workers' session key over method, target, caller, body, time and a number that is used
once, in one header. It is good for 30 seconds and for one request: a worker remembers the numbers it has seen for as
long as they would be good. So the clocks of two workers may differ by 30 seconds at most; the log says when they differ
by more. It is checked before the body is read; the body is held to its digest afterwards.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import secrets
import time
from typing import TYPE_CHECKING, NamedTuple

from heliograph.api.errors import UNAUTHORIZED
from heliograph.api.principals import Principal
from heliograph.api.repeated import RepeatedWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

_log = logging.getLogger(__name__)
HEADER = "x-heliograph-forwarded"
_GOOD_FOR_S = 30
_MOST_REMEMBERED = 100_000
_NONCE_BYTES = 16


class Vouched(NamedTuple):
    """Who calls, as another worker says, and the digest of the body that came with it."""

    principal: Principal | None
    body_digest: str

    def check_body(self, body: bytes) -> None:
        """Raise where the body is not the one that was signed."""
        if not hmac.compare_digest(self.body_digest, _digest(body)):
            raise UNAUTHORIZED.error()


def sign(principal: Principal | None, method: str, target: str, body: bytes, key: bytes) -> str:
    """The header's value."""
    nonce = secrets.token_hex(_NONCE_BYTES)
    content = json.dumps([principal and list(principal), _digest(body), int(time.time()), nonce]).encode()
    return f"{base64.b64encode(content).decode()}.{_signature(method, target, content, key)}"


class Forwards:
    """The headers that one worker has seen, so that each counts once; used on REST's event loop alone."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._stale = RepeatedWarning(
            _log,
            "REST refuses a request that another worker forwarded: by this worker's clock it was signed %d s from now,"
            f" and {_GOOD_FOR_S} s are allowed. Synchronize the clocks of the workers.",
        )

    def verify(self, header: str, method: str, target: str, keys: Sequence[bytes]) -> Vouched:
        """Who calls; raises the refusal (401) of what no worker of the group has signed, just now and for this call."""
        encoded, _, signature = header.partition(".")
        try:
            content = base64.b64decode(encoded, validate=True)
        except ValueError:
            raise UNAUTHORIZED.error() from None
        expected = [_signature(method, target, content, key) for key in keys]
        if not any(hmac.compare_digest(each.encode(), signature.encode()) for each in expected):
            raise UNAUTHORIZED.error()
        try:
            principal, body_digest, signed_at, nonce = json.loads(content)
        except ValueError:  # signed by a worker of another version
            raise UNAUTHORIZED.error() from None
        self._check_first_use(nonce, signed_at)
        return Vouched(principal and Principal(*principal), body_digest)

    def _check_first_use(self, nonce: str, signed_at: int) -> None:
        now = time.time()
        if abs(now - signed_at) > _GOOD_FOR_S:
            self._stale.log(signed_at - now)
            raise UNAUTHORIZED.error()
        while self._seen and next(iter(self._seen.values())) < now:
            del self._seen[next(iter(self._seen))]
        if nonce in self._seen or len(self._seen) >= _MOST_REMEMBERED:
            raise UNAUTHORIZED.error()
        self._seen[nonce] = signed_at + _GOOD_FOR_S


def _signature(method: str, target: str, content: bytes, key: bytes) -> str:
    signed = b"\n".join((method.encode(), target.encode(), content))
    return hmac.new(key, signed, hashlib.sha256).hexdigest()


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()

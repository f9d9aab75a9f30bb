"""The caller of a request that one worker passes on to another: signed, so that nobody else can say who it is.

The follower has asked the caller for his name; the leader need not see his password, and could not see his certificate.
The signature is an HMAC by the workers' session key over method, target, caller and body, in one header. It is checked
before the body is read; the body is held to its digest afterwards.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, NamedTuple

from heliograph.api.errors import UNAUTHORIZED
from heliograph.api.principals import Principal

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER = "x-heliograph-forwarded"


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
    content = json.dumps([principal and list(principal), _digest(body)]).encode()
    return f"{base64.b64encode(content).decode()}.{_signature(method, target, content, key)}"


def verify(header: str, method: str, target: str, keys: Sequence[bytes]) -> Vouched:
    """Who calls; raises the refusal (401) of what no worker of the group has signed."""
    encoded, _, signature = header.partition(".")
    try:
        content = base64.b64decode(encoded, validate=True)
    except ValueError:
        raise UNAUTHORIZED.error() from None
    expected = [_signature(method, target, content, key) for key in keys]
    if not any(hmac.compare_digest(each.encode(), signature.encode()) for each in expected):
        raise UNAUTHORIZED.error()
    principal, body_digest = json.loads(content)
    return Vouched(principal and Principal(*principal), body_digest)


def _signature(method: str, target: str, content: bytes, key: bytes) -> str:
    signed = b"\n".join((method.encode(), target.encode(), content))
    return hmac.new(key, signed, hashlib.sha256).hexdigest()


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()

"""Decodes the responses of brokers without trusting them: each is checked along its schema first.

The schemas are an attribute of kafka-python's message classes. A release that names it otherwise must not switch the
check off, so the check itself is tried when this module is imported.

Invariants:
A. A response is no longer than the limit of its kind, or it is not received: its first four bytes decide about memory.
B. Whatever its bytes are, it becomes a message whose fields are there, or a MalformedResponseError.
C. A class is decoded unchecked only if it is a `SelfCheckedResponse`; any other class without a schema is an error.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kafka.protocol.metadata import ApiVersionsResponse

from heliograph.wire.messages.fetch_response import MalformedResponseError
from heliograph.wire.messages.response_guard import ResponseGuard

MAX_FETCH_RESPONSE_BYTES = 512 << 20  # a batch is sent whole, however small the requested size
MAX_RESPONSE_BYTES = 64 << 20  # the metadata of a million partitions
MAX_HANDSHAKE_RESPONSE_BYTES = 1 << 20  # the other side may not even be a broker
_PROBE_VERSION = 3
_SOUND_PROBE = memoryview(b"\0\0\1\0\0\0\0\0")  # no error, no APIs, no throttling, no tags
_ENDLESS_PROBE = memoryview(b"\0\0" + b"\xff" * 16)  # an array whose length does not end


class SelfCheckedResponse:
    """Base of response classes whose `decode` checks the bytes itself, as those that contain records do."""


def check_guard(response_class: Any = ApiVersionsResponse) -> None:
    """Raise ImportError unless responses can be checked along the schemas of the installed kafka-python."""
    try:
        guard = ResponseGuard(response_class.json, _PROBE_VERSION)
        guard.check(_SOUND_PROBE)
    except (AttributeError, LookupError, TypeError, ValueError, MalformedResponseError) as error:
        raise ImportError(_cannot_check(f"{type(error).__name__}: {error}")) from error
    try:
        guard.check(_ENDLESS_PROBE)
    except MalformedResponseError:
        return
    raise ImportError(_cannot_check("a malformed response passed"))


def _cannot_check(reason: str) -> str:
    return (
        "The responses of brokers cannot be checked along the message schemas of the installed kafka-python"
        f" ({reason}). Install a version of kafka-python that Heliograph supports."
    )


check_guard()


def max_response_bytes(response_class: Any) -> int:
    """Return how long a response may be: only those that contain records may be long."""
    return MAX_FETCH_RESPONSE_BYTES if issubclass(response_class, SelfCheckedResponse) else MAX_RESPONSE_BYTES


def decode_response(response_class: Any, view: memoryview, version: int) -> Any:
    """Decode the body of a response (after its header), checked along its schema unless its class does that itself."""
    if not issubclass(response_class, SelfCheckedResponse):
        _guard(response_class, version).check(view)
    try:
        return response_class.decode(view, version=version)
    except MalformedResponseError:
        raise
    except Exception as error:  # noqa: BLE001  (anything that a generated decoder fails with)
        raise MalformedResponseError(f"the broker's response cannot be read ({type(error).__name__}).") from None


@cache
def _guard(response_class: Any, version: int) -> ResponseGuard:
    return ResponseGuard(response_class.json, version)

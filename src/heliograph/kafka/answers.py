"""Answers of brokers, decoded without trust: who listens at a broker's address may send anything.

Invariants:
A. An answer is no longer than its limit, or it is not received: what its first four bytes say decides about memory.
B. Whatever its bytes are, it becomes an answer whose fields are there, or a MalformedResponseError.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from heliograph.wire.answer_guard import AnswerGuard
from heliograph.wire.fetch_response import MalformedResponseError

MOST_FETCHED_BYTES = 512 << 20  # a batch is sent whole, however little was asked for
MOST_ANSWER_BYTES = 64 << 20  # the metadata of a million partitions
MOST_HANDSHAKE_BYTES = 1 << 20  # of somebody who may not even be a broker


def most_bytes_of(response_class: Any) -> int:
    """How long an answer may be: only those that hold records may be long."""
    return MOST_ANSWER_BYTES if hasattr(response_class, "json") else MOST_FETCHED_BYTES


@cache
def _guard(response_class: Any, version: int) -> AnswerGuard:
    return AnswerGuard(response_class.json, version)


def decode_answer(response_class: Any, view: memoryview, version: int) -> Any:
    """The body of an answer (behind its header) as kafka-python's class of it, or as a class that guards itself."""
    if hasattr(response_class, "json"):
        _guard(response_class, version).check(view)
    try:
        return response_class.decode(view, version=version)
    except MalformedResponseError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever a generated decoder stumbles over)
        raise MalformedResponseError(f"the broker's answer cannot be read ({type(error).__name__}).") from None

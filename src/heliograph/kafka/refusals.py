"""What a broker refused, in words that name the permission it wanted.

Kafka's authorization errors say what was denied, never which ACL is missing. Whoever asks knows that, and says it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heliograph.kafka.error_codes import describe

TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_VERSION = 35
INVALID_REPLICATION_FACTOR = 38
POLICY_VIOLATION = 44
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
AUTHORIZATION_FAILED = frozenset(
    {
        TOPIC_AUTHORIZATION_FAILED,
        GROUP_AUTHORIZATION_FAILED,
        CLUSTER_AUTHORIZATION_FAILED,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


_MOST_REASON_LETTERS = 300  # of what a broker says


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error code with its reason; `str` gives the reason."""

    code: int
    reason: str

    def __str__(self) -> str:
        return self.reason


def refusal_of(answer: Any, needs: str = "") -> Refusal:
    """The refusal in an answer that has an error code; `needs` is the permission to name, as `CREATE on the topic`."""
    code = answer.error_code
    words = (getattr(answer, "error_message", None) or "")[:_MOST_REASON_LETTERS].rstrip(".")
    reason = describe(code)
    if code in AUTHORIZATION_FAILED and needs:
        reason += f"; the principal needs {needs}"
    elif words:
        reason += f" ({words})"
    return Refusal(code, reason)

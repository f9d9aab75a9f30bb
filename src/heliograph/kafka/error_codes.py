"""What a broker's error code means for a copy: one classifier, the reason beside each branch.

What a broker refused, in words that name the permission it wanted.

Kafka's authorization errors say what was denied, never which ACL is missing. Whoever asks knows that, and says it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from kafka.errors import InvalidMetadataError, for_code


class Verdict(Enum):
    """What to do with a partition after an answer."""

    OK = "ok"
    RETRY = "retry"
    RETRY_SOON = "retry in a moment"
    RETRY_WITH_METADATA = "retry after asking for metadata"
    DUPLICATE = "already there"
    OUT_OF_ORDER = "out of order"
    OUT_OF_RANGE = "out of range"
    TOO_LARGE = "too large"
    NEW_SESSION = "begin a new fetch session"
    FAIL_PARTITION = "fail the partition"
    FAIL_TASK = "fail the task"


_SPECIAL = {
    0: Verdict.OK,
    1: Verdict.OUT_OF_RANGE,
    2: Verdict.RETRY,  # CORRUPT_MESSAGE: our CRC was right when we sent it, so the wire or the disk is at fault
    -1: Verdict.RETRY,  # UNKNOWN_SERVER_ERROR: the broker's log knows more; it may pass
    10: Verdict.TOO_LARGE,
    18: Verdict.TOO_LARGE,
    45: Verdict.OUT_OF_ORDER,
    46: Verdict.DUPLICATE,
    47: Verdict.FAIL_TASK,  # INVALID_PRODUCER_EPOCH: someone has taken our place
    48: Verdict.FAIL_TASK,  # INVALID_TXN_STATE: the transaction was ended without us
    49: Verdict.FAIL_TASK,  # INVALID_PRODUCER_ID_MAPPING
    51: Verdict.RETRY_SOON,  # CONCURRENT_TRANSACTIONS: the last one's markers are still being written
    59: Verdict.FAIL_TASK,  # UNKNOWN_PRODUCER_ID: the broker forgot us; begin again as a new producer
    70: Verdict.NEW_SESSION,  # FETCH_SESSION_ID_NOT_FOUND: the broker needed the room for another client's
    71: Verdict.NEW_SESSION,  # INVALID_FETCH_SESSION_EPOCH: an answer was lost
    90: Verdict.FAIL_TASK,  # PRODUCER_FENCED
    120: Verdict.FAIL_TASK,  # TRANSACTION_ABORTABLE: what is open must be aborted and begun again
}


# Refused before anything is appended. What comes while replicas are waited for (NOT_LEADER_OR_FOLLOWER,
# REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, KAFKA_STORAGE_ERROR) is not, nor is an answer that was lost.
# UNKNOWN_TOPIC_OR_PARTITION may come then too, but with the topic what was appended is gone.
_BEFORE_APPENDING = frozenset({2, 3, 19})
_NEVER_APPENDED = frozenset({Verdict.TOO_LARGE, Verdict.OUT_OF_ORDER, Verdict.RETRY_SOON})


def verdict_of(code: int) -> Verdict:
    """The meaning of a partition's error code in a fetch, offsets or produce answer."""
    special = _SPECIAL.get(code)
    if special is not None:
        return special
    error = for_code(code)
    if issubclass(error, InvalidMetadataError):
        return Verdict.RETRY_WITH_METADATA
    return Verdict.RETRY if error.retriable else Verdict.FAIL_PARTITION


def may_be_appended(code: int) -> bool:
    """Whether a batch may be in the log though it was answered with an error; 0 is an answer that was lost."""
    verdict = verdict_of(code)
    return code not in _BEFORE_APPENDING and verdict not in _NEVER_APPENDED and verdict is not Verdict.FAIL_PARTITION


def describe(code: int) -> str:
    """Kafka's name of an error code, as in `TOPIC_AUTHORIZATION_FAILED`."""
    return str(getattr(for_code(code), "message", f"error {code}"))


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
class BrokerRefusal:
    """An error code with its reason; `str` gives the reason."""

    code: int
    reason: str

    def __str__(self) -> str:
        return self.reason


def refusal_of(answer: Any, needs: str = "") -> BrokerRefusal:
    """The refusal in an answer that has an error code; `needs` is the permission to name, as `CREATE on the topic`."""
    code = answer.error_code
    words = (getattr(answer, "error_message", None) or "")[:_MOST_REASON_LETTERS].rstrip(".")
    reason = describe(code)
    if code in AUTHORIZATION_FAILED and needs:
        reason += f"; the principal needs {needs}"
    elif words:
        reason += f" ({words})"
    return BrokerRefusal(code, reason)

"""Kafka's error codes: the only place that has their numbers, and that decides what a code means.

Names are those of Kafka's protocol. `verdict_of` classifies a partition's code in a Fetch, ListOffsets or Produce
answer for a copy. An authorization error names the denied resource but no ACL; the caller of `refusal_of` adds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from kafka.errors import InvalidMetadataError, for_code

UNKNOWN_SERVER_ERROR = -1
NO_ERROR = 0
OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
MESSAGE_TOO_LARGE = 10
COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
RECORD_LIST_TOO_LARGE = 18
NOT_ENOUGH_REPLICAS = 19
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_SASL_MECHANISM = 33
UNSUPPORTED_VERSION = 35
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40
NOT_CONTROLLER = 41
POLICY_VIOLATION = 44
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
DUPLICATE_SEQUENCE_NUMBER = 46
INVALID_PRODUCER_EPOCH = 47
INVALID_TXN_STATE = 48
INVALID_PRODUCER_ID_MAPPING = 49
INVALID_TRANSACTION_TIMEOUT = 50
CONCURRENT_TRANSACTIONS = 51
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
SECURITY_DISABLED = 54
OPERATION_NOT_ATTEMPTED = 55
UNKNOWN_PRODUCER_ID = 59
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
MEMBER_ID_REQUIRED = 79
GROUP_MAX_SIZE_REACHED = 81
FENCED_INSTANCE_ID = 82
PRODUCER_FENCED = 90
FENCED_MEMBER_EPOCH = 110
STALE_MEMBER_EPOCH = 113
TRANSACTION_ABORTABLE = 120

AUTHORIZATION_FAILED = frozenset(
    {
        TOPIC_AUTHORIZATION_FAILED,
        GROUP_AUTHORIZATION_FAILED,
        CLUSTER_AUTHORIZATION_FAILED,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
# The coordinator loads its state, is not there, or is another broker: all of them pass.
NO_COORDINATOR = frozenset({COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
# Even as the code of one partition, it holds for the whole group.
CONCERNS_WHOLE_GROUP = NO_COORDINATOR | {GROUP_AUTHORIZATION_FAILED}
# Offsets of a group cannot be altered from outside while it has members.
GROUP_HAS_MEMBERS = frozenset(
    {ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH}
)
FENCED = frozenset({PRODUCER_FENCED, INVALID_PRODUCER_EPOCH})  # another instance has our transactional id, it seems


class Verdict(Enum):
    """The consequence of an error code for a partition."""

    OK = "ok"
    RETRY = "retry"
    RETRY_SOON = "retry within milliseconds"
    RETRY_WITH_METADATA = "retry with new metadata"
    DUPLICATE = "already there"
    OUT_OF_ORDER = "out of order"
    OUT_OF_RANGE = "out of range"
    TOO_LARGE = "too large"
    NEW_SESSION = "begin a new fetch session"
    FAIL_PARTITION = "fail the partition"
    FAIL_TASK = "fail the task"


# Codes whose meaning for a copy is not simply what Kafka's own table says: retriable, or stale metadata, or neither.
_VERDICTS = {
    NO_ERROR: Verdict.OK,
    UNKNOWN_SERVER_ERROR: Verdict.RETRY,  # only the broker's log has the cause; it may pass
    OFFSET_OUT_OF_RANGE: Verdict.OUT_OF_RANGE,
    CORRUPT_MESSAGE: Verdict.RETRY,  # our CRC was right when we sent it, so the wire or the disk is at fault
    MESSAGE_TOO_LARGE: Verdict.TOO_LARGE,
    RECORD_LIST_TOO_LARGE: Verdict.TOO_LARGE,
    OUT_OF_ORDER_SEQUENCE_NUMBER: Verdict.OUT_OF_ORDER,
    DUPLICATE_SEQUENCE_NUMBER: Verdict.DUPLICATE,
    INVALID_PRODUCER_EPOCH: Verdict.FAIL_TASK,  # another instance may have taken over
    INVALID_TXN_STATE: Verdict.FAIL_TASK,  # the coordinator has ended the transaction
    INVALID_PRODUCER_ID_MAPPING: Verdict.FAIL_TASK,
    CONCURRENT_TRANSACTIONS: Verdict.RETRY_SOON,  # the last transaction's markers are still being written
    UNKNOWN_PRODUCER_ID: Verdict.FAIL_TASK,  # the broker has dropped our state: only a new producer can continue
    FETCH_SESSION_ID_NOT_FOUND: Verdict.NEW_SESSION,  # the broker has evicted our session for another client's
    INVALID_FETCH_SESSION_EPOCH: Verdict.NEW_SESSION,  # an answer was lost
    PRODUCER_FENCED: Verdict.FAIL_TASK,
    TRANSACTION_ABORTABLE: Verdict.FAIL_TASK,  # the open transaction must be aborted
}

# Refused before anything is appended. Errors that come while replicas are awaited (NOT_LEADER_OR_FOLLOWER,
# REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, KAFKA_STORAGE_ERROR) are not among them.
# UNKNOWN_TOPIC_OR_PARTITION may come then too, but the appended batch is gone with the topic.
_BEFORE_APPENDING = frozenset({CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION, NOT_ENOUGH_REPLICAS})
_NEVER_APPENDED = frozenset({Verdict.TOO_LARGE, Verdict.OUT_OF_ORDER, Verdict.RETRY_SOON, Verdict.FAIL_PARTITION})

_MOST_REASON_LETTERS = 300  # of a broker's message


def verdict_of(code: int) -> Verdict:
    """Return the meaning of a partition's error code in a Fetch, ListOffsets or Produce answer."""
    verdict = _VERDICTS.get(code)
    if verdict is not None:
        return verdict
    error = for_code(code)
    if issubclass(error, InvalidMetadataError):
        return Verdict.RETRY_WITH_METADATA
    return Verdict.RETRY if error.retriable else Verdict.FAIL_PARTITION


def may_be_appended(code: int) -> bool:
    """Return whether a batch may be in the log although it was answered with this error."""
    return code not in _BEFORE_APPENDING and verdict_of(code) not in _NEVER_APPENDED


def describe(code: int) -> str:
    """Return Kafka's name of an error code, as `TOPIC_AUTHORIZATION_FAILED`."""
    return str(getattr(for_code(code), "message", f"error {code}"))


@dataclass(frozen=True, slots=True)
class BrokerRefusal:
    """An error code with its reason; `str` gives the reason."""

    code: int
    reason: str

    def __str__(self) -> str:
        return self.reason


def refusal_of(answer: Any, needs: str = "") -> BrokerRefusal:
    """Return the refusal in an answer that has an error code; `needs` is the permission, as `CREATE on the topic`."""
    code = answer.error_code
    message = (getattr(answer, "error_message", None) or "")[:_MOST_REASON_LETTERS].rstrip(".")
    reason = describe(code)
    if code in AUTHORIZATION_FAILED and needs:
        reason += f"; the principal needs {needs}"
    elif message:
        reason += f" ({message})"
    return BrokerRefusal(code, reason)

"""Fences every producer that an earlier instance of a flow may still run.

A task fences its own predecessor when it begins. But an earlier instance may have had more tasks than start now, and
these would continue to write. So, before the first task begins, every transactional id of the flow that the cluster
knows is taken over (Connect keeps a record of the number of tasks for this; listing the ids needs none).

Invariant: it returns only when every coordinator has listed all its ids, and each of ours among them was taken over.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import ListTransactionsRequest, ListTransactionsResponse
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from heliograph.errors import BrokerError, ClusterError
from heliograph.kafka.error_codes import (
    AUTHORIZATION_FAILED,
    CONCURRENT_TRANSACTIONS,
    INVALID_TRANSACTION_TIMEOUT,
    NO_COORDINATOR,
    UNSUPPORTED_VERSION,
    Verdict,
    describe,
    verdict_of,
)
from heliograph.model import Address

if TYPE_CHECKING:
    from heliograph.kafka.admin.admin import Admin


_TRANSACTION_KEY = 1
_RETRY_PAUSE_S = 0.1
_IDS_WITHOUT_A_LIST = 16  # brokers before Kafka 3.0 do not list transactional ids; the ids of so many tasks are fenced
_TIMEOUT_MS = 60_000


def fence_producers(admin: Admin, prefix: str) -> tuple[str, ...]:
    """Fence all producers whose transactional id is `prefix` and a number; return their ids."""
    try:
        known = _known_ids(admin, prefix)
    except BrokerError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        known = tuple(f"{prefix}{number}" for number in range(_IDS_WITHOUT_A_LIST))
    for transactional_id in known:
        fence_producer(admin, transactional_id)
    return known


def _known_ids(admin: Admin, prefix: str) -> tuple[str, ...]:
    """Return the ids with the prefix that the brokers list.

    If one broker cannot list its ids yet, all are listed again: meanwhile ids may have moved to another. A broker that
    has just started responds with an error and an empty list while it loads its coordinators.
    """
    found: set[str] = set()
    deadline = time.monotonic() + admin.timeout_s
    while True:
        refusals: dict[Address, int] = {}
        for broker in admin.view([]).brokers.values():
            response = admin.ask_at(
                broker,
                ListTransactionsRequest,
                ListTransactionsResponse,
                lambda version: ListTransactionsRequest(version=version, state_filters=[], producer_id_filters=[]),
                newest=0,
            )
            found.update(state.transactional_id for state in response.transaction_states)
            if response.error_code:
                refusals[broker] = response.error_code
        if not refusals:
            return tuple(sorted(name for name in found if name.startswith(prefix) and name[len(prefix) :].isdigit()))
        broker, code = next(iter(refusals.items()))
        if not _may_pass(code, deadline):
            raise ClusterError(
                f"The broker {broker} of the cluster '{admin.alias}' does not list its transactional ids:"
                f" {describe(code)}. Nothing is copied before the producers of earlier instances are fenced; check that"
                " the broker is up and the partitions of __transaction_state have leaders."
            )
        time.sleep(_RETRY_PAUSE_S)


def _may_pass(code: int, deadline: float) -> bool:
    return verdict_of(code) is not Verdict.FAIL_PARTITION and time.monotonic() < deadline


def fence_producer(admin: Admin, transactional_id: str) -> None:
    """Take over one transactional id, which aborts the open transaction of the producer that had it."""
    deadline = time.monotonic() + admin.timeout_s
    while code := _take_over(admin, transactional_id):
        if not _may_pass(code, deadline):
            raise ClusterError(
                f"The cluster '{admin.alias}' does not let us take over the transactional id {transactional_id}:"
                f" {describe(code)}. {_advice(code)}"
            )
        time.sleep(_RETRY_PAUSE_S)


def _take_over(admin: Admin, transactional_id: str) -> int:
    """Initialise a producer with this id; return the error code of the broker that refused, or 0."""

    def find(version: int) -> Any:
        return FindCoordinatorRequest(version=version, key=transactional_id, key_type=_TRANSACTION_KEY)

    def init(version: int) -> Any:
        return InitProducerIdRequest(
            version=version,
            transactional_id=transactional_id,
            transaction_timeout_ms=_TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )

    found = admin.ask_any(FindCoordinatorRequest, FindCoordinatorResponse, find, newest=3, oldest=1)
    if found.error_code:
        return int(found.error_code)
    coordinator = Address(found.host, found.port)
    return int(admin.ask_at(coordinator, InitProducerIdRequest, InitProducerIdResponse, init, newest=4).error_code)


def _advice(code: int) -> str:
    if code in AUTHORIZATION_FAILED:
        return "The principal needs WRITE and DESCRIBE on it."
    if code == INVALID_TRANSACTION_TIMEOUT:
        return f"The brokers' transaction.max.timeout.ms must be at least {_TIMEOUT_MS}."
    if code == CONCURRENT_TRANSACTIONS:
        return "Its last transaction has not ended; check that every partition it wrote to has a leader."
    if code in NO_COORDINATOR:
        return "It has no coordinator; check that the partitions of __transaction_state have leaders."
    return "The log of its coordinator's broker may say why."

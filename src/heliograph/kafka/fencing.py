"""Takes the place of every producer that an earlier instance of a flow may still run.

A task fences its own predecessor when it begins. But an earlier instance may have had more tasks than we start now;
theirs would go on writing. So, before the first task begins, every transactional id of the flow that the cluster knows
is taken over (Connect keeps a record of the number of tasks for this; asking the cluster needs none).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import ListTransactionsRequest, ListTransactionsResponse
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from heliograph.errors import BrokerError, ClusterError
from heliograph.kafka.error_codes import Verdict, describe, verdict_of

if TYPE_CHECKING:
    from heliograph.kafka.admin import Admin
    from heliograph.model import Address

_TRANSACTION_KEY = 1
_RETRY_PAUSE_S = 0.1
_UNSUPPORTED_VERSION = 35
_IDS_WITHOUT_A_LIST = 16  # targets before Kafka 3.0 do not list transactional ids; so many tasks are taken over blindly
_TIMEOUT_MS = 60_000


def fence_producers(admin: Admin, prefix: str) -> tuple[str, ...]:
    """Fence all producers whose transactional id is `prefix` and a number; returns their ids."""
    try:
        known = _known_ids(admin, prefix)
    except BrokerError as error:
        if error.code != _UNSUPPORTED_VERSION:
            raise
        known = tuple(f"{prefix}{number}" for number in range(_IDS_WITHOUT_A_LIST))
    for transactional_id in known:
        _fence(admin, transactional_id)
    return known


def _known_ids(admin: Admin, prefix: str) -> tuple[str, ...]:
    found: set[str] = set()
    for broker in admin.view([]).brokers.values():
        answer = admin.ask_at(
            broker,
            ListTransactionsRequest,
            ListTransactionsResponse,
            lambda version: ListTransactionsRequest(version=version, state_filters=[], producer_id_filters=[]),
            newest=0,
        )
        found.update(state.transactional_id for state in answer.transaction_states)
    return tuple(sorted(name for name in found if name.startswith(prefix) and name[len(prefix) :].isdigit()))


def _fence(admin: Admin, transactional_id: str) -> None:
    deadline = time.monotonic() + admin.timeout_s
    while True:
        coordinator, code = _coordinator(admin, transactional_id)
        if coordinator is not None:
            answer = admin.ask_at(
                coordinator,
                InitProducerIdRequest,
                InitProducerIdResponse,
                lambda version: InitProducerIdRequest(
                    version=version,
                    transactional_id=transactional_id,
                    transaction_timeout_ms=_TIMEOUT_MS,
                    producer_id=-1,
                    producer_epoch=-1,
                ),
                newest=4,
            )
            code = answer.error_code
        if code == 0:
            return
        if verdict_of(code) is Verdict.FAIL_PARTITION or time.monotonic() > deadline:
            raise ClusterError(
                f"The cluster '{admin.alias}' does not let us take over the transactional id {transactional_id}:"
                f" {describe(code)}. The principal needs WRITE and DESCRIBE on it."
            )
        time.sleep(_RETRY_PAUSE_S)


def _coordinator(admin: Admin, transactional_id: str) -> tuple[Address | None, int]:
    def build(version: int) -> Any:
        return FindCoordinatorRequest(version=version, key=transactional_id, key_type=_TRANSACTION_KEY)

    broker = next(iter(admin.view([]).brokers.values()))
    answer = admin.ask_at(broker, FindCoordinatorRequest, FindCoordinatorResponse, build, newest=3, oldest=1)
    if answer.error_code:
        return None, answer.error_code
    return admin.view([]).brokers.get(answer.node_id), answer.error_code

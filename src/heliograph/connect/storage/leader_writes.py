"""Only the leader may write the config topic.

A worker that was paused or disconnected may resume in the middle of a write, when another one leads already. Two checks
keep that write out of the topic:

- Without exactly-once the lead is checked before each request. It is computed from the clock (`connect/group/
  leadership`), so after a pause the worker knows that it is over. A pause between that check and the broker remains.
- With `exactly.once.source.support` the writes are transactions under Connect's id for the leader. A new leader takes
  the id over, and the brokers refuse every write of the former one.

Why a claim is safe: after the id was taken over, the lead is checked once more. If it still holds, no other worker can
have become the leader before, so a later leader takes the id over later. If not, nothing is written under it.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from heliograph.connect.contract.refusals import NOT_WRITTEN, REBALANCE
from heliograph.errors import ClusterError, FencedError
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.topics.record_writer import write_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from heliograph.errors import ConnectError
    from heliograph.kafka.admin.admin import Admin
    from heliograph.kafka.own_records import OwnRecord
    from heliograph.kafka.produce.fenced_writer import FencedWriter
    from heliograph.model import TopicPartition


log = logging.getLogger(__name__)

_LONGEST_PAUSE_S = 30.0


class LeaderWrites:
    """One worker's right to write. Not thread-safe.

    `leads_since` returns the generation since which we lead at the moment of the call, None if we do not; `resign` is
    called when another worker was found to act as the leader. Without `fenced` the writes are no transactions.
    """

    def __init__(
        self,
        leads_since: Callable[[], int | None],
        resign: Callable[[], None] = lambda: None,
        fenced: FencedWriter | None = None,
    ) -> None:
        self._leads_since = leads_since
        self._resign = resign
        self._fenced = fenced
        self._claimed: int | None = None
        self._issue: str | None = None
        self._refusal: str | None = None
        self._retry_at = 0.0
        self._backoff = Backoff(first_s=0.5, most_s=_LONGEST_PAUSE_S)

    def claim(self) -> bool:
        """Claim the right to write for the current lead; return whether it is a new one. ConnectError 409: no lead."""
        since = self._leads_since()
        if since is not None and since == self._claimed:
            return False
        self._claimed = None
        if since is not None and self._fenced is not None:
            self._take_id(self._fenced)
        if since is None or self._leads_since() != since:
            raise REBALANCE.error()
        self._claimed = since
        return True

    def _take_id(self, fenced: FencedWriter) -> None:
        """Take the id over; soon after a refusal, raise the same again without a request to the brokers."""
        if self._refusal is not None and time.monotonic() < self._retry_at:
            raise ClusterError(self._refusal)
        try:
            fenced.claim()
        except ClusterError as error:
            self._refusal, self._retry_at = str(error), time.monotonic() + self._backoff.next_pause_s()
            raise
        self._refusal = None
        self._backoff.reset()

    def check(self) -> None:
        """Raise ConnectError 409 if the lead that was claimed is over."""
        if self._claimed is None or self._leads_since() != self._claimed:
            raise REBALANCE.error()

    def put(self, admin: Admin, tp: TopicPartition, records: Sequence[OwnRecord]) -> None:
        """Write as the leader; ConnectError 409 if the lead is over, 500 if a transaction failed."""
        if self._fenced is None:
            write_records(admin, tp, records, self.check)
            return
        self.check()
        claimed, self._claimed = self._claimed, None  # unless the write succeeds, the id must be taken over again
        try:
            self._fenced.write(tp, records)
        except FencedError as error:
            log.warning("Another worker leads this group and has fenced this one: %s was not written", tp.topic)
            self._resign()
            raise NOT_WRITTEN.error() from error
        except ClusterError as error:
            log.log(logging.DEBUG if str(error) == self._issue else logging.WARNING, "Not written: %s", error)
            self._issue = str(error)
            raise NOT_WRITTEN.error() from error
        self._issue, self._claimed = None, claimed

    def close(self) -> None:
        """Give the right up."""
        self._claimed = None
        if self._fenced is not None:
            self._fenced.close()


def refusal_cause(error: ConnectError) -> ClusterError | None:
    """Return the reason why the cluster refused a write; None if the lead was lost, which ends all writing."""
    return error.__cause__ if isinstance(error.__cause__, ClusterError) else None

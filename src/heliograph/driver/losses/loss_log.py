"""Appends the losses of a flow to the losses topic of its source on the target, and keeps the newest in memory.

It runs in a thread of its own with a client of its own, so that a target that does not answer delays neither the flow
nor its tasks. The topic is read at the start, and created with the first loss. A loss that cannot be written waits in
memory; that is an issue of the flow until it is written.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.driver.clusters.cluster_clients import make_admin
from heliograph.driver.clusters.internal_topic_creation import ensure_internal_topic
from heliograph.errors import BrokerError, ClusterError
from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.topics.record_writer import STEP_TIMEOUT_S, write_records
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.mirror.topics.internal_topics import losses_topic
from heliograph.model import TopicPartition, counted
from heliograph.status.flow_snapshot import LossTotal
from heliograph.status.losses import Loss, NewestLosses, decode_loss, encode_loss

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.steps.step_runner import Schedule
    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import Flow
    from heliograph.status.losses import LossCause


log = logging.getLogger(__name__)

_INTERVAL_S = 1.0
_MOST_WAITING = 10_000
_MOST_AT_ONCE = 1_000


def read_losses(admin: Admin, topic: str, flow: Flow) -> Iterator[Loss]:
    """Yield the losses of a flow in the order of the topic; several may have the same key. None without the topic."""
    for record in read_topic(admin, topic):
        loss = decode_loss(record.value)
        if loss is not None and loss.flow == flow:
            yield loss


class LossLog:
    """The steps of a control loop (`Work`) for one flow; `add` and `newest_first` may be called from any thread."""

    def __init__(self, config: MirrorConfig, flow: Flow) -> None:
        self._flow = flow
        settings = config.settings(flow)
        self._topic = losses_topic(settings)
        self._is_explicit_factor = keys.OFFSET_SYNCS_REPLICATION_FACTOR in settings
        self._admin = make_admin(config, flow.target, flow)
        self._lock = threading.Lock()
        self._newest = NewestLosses()
        self._totals_before: Mapping[LossCause, LossTotal] = {}  # as an earlier run knew them
        self._counted_before = self._newest.totals  # of the losses that this run was shown
        self._has_read = self._is_refused = False
        self._waiting: list[Loss] = []
        self._dropped = 0
        self._has_topic = False

    def add(self, losses: Iterable[Loss]) -> None:
        """Take losses of a report; those that are known already are left out."""
        with self._lock:
            self._waiting += self._newest.add_all(losses)
            too_many = len(self._waiting) - _MOST_WAITING
            if too_many > 0:  # the log has them
                self._dropped += too_many
                del self._waiting[:too_many]

    def show(self, losses: Iterable[Loss], totals: Mapping[LossCause, LossTotal]) -> None:
        """Show losses that an earlier run knew until the topic was read, and count them from then on, too."""
        with self._lock:
            self._newest.add_all(losses)
            self._totals_before, self._counted_before = totals, self._newest.totals

    @property
    def totals(self) -> Mapping[LossCause, LossTotal]:
        """All losses by cause; empty before the topic was read. They never fall while the process runs.

        If the topic may not be read, a cause is there only if this process has found a loss of it: of no other it is
        known that there was none.
        """
        with self._lock:
            before = self._totals_before
            if self._has_read:
                now = {cause: LossTotal(*total) for cause, total in self._newest.totals.items()}
                return {cause: max(total, before.get(cause, total)) for cause, total in now.items()}
            return self._found_by_this_process() if self._is_refused else before

    def _found_by_this_process(self) -> dict[LossCause, LossTotal]:
        found = dict(self._totals_before)
        for cause, (events, records) in self._newest.totals.items():
            shown_events, shown_records = self._counted_before[cause]
            if events > shown_events:
                before = found.get(cause, LossTotal(0, 0))
                found[cause] = LossTotal(
                    before.events + events - shown_events, before.records + records - shown_records
                )
        return found

    @property
    def newest_first(self) -> tuple[Loss, ...]:
        """The losses that are kept in memory, also those that are not written yet."""
        with self._lock:
            return self._newest.newest_first

    @property
    def has_waiting(self) -> bool:
        """Return whether a loss is not written yet."""
        with self._lock:
            return bool(self._waiting)

    @property
    def waiting(self) -> tuple[Loss, ...]:
        """The losses that are not written yet."""
        with self._lock:
            return tuple(self._waiting)

    def begin(self) -> Iterable[str]:
        """Read what was recorded before.

        A topic that we may not read is no issue as long as there is nothing to record: earlier versions needed no
        permission for it.
        """
        known = NewestLosses()
        try:
            for loss in read_losses(self._admin, self._topic.name, self._flow):
                known.add(loss)
        except BrokerError as error:
            if error.code != TOPIC_AUTHORIZATION_FAILED:
                raise
            log.warning("%s: earlier losses are not shown: %s", self._flow, error)
            self._is_refused = True
            return ()
        with self._lock:
            self._waiting = known.add_all(self._waiting)
            self._newest, self._has_read = known, True
        return ()

    def plan(self, schedule: Schedule) -> None:
        """Write new losses every second."""
        schedule.repeat("write", self.write, _INTERVAL_S)

    def write(self) -> Iterable[str]:
        """Append the losses that wait; none is removed before it is written."""
        while waiting := self._all_waiting():
            losses = waiting[:_MOST_AT_ONCE]
            try:
                self._append(losses)
            except ClusterError as error:
                count = sum(loss.count for loss in waiting)
                return (f"losses of {counted(count, 'record')} are not recorded: {error}",)
            written = {loss.key for loss in losses}
            with self._lock:
                self._waiting = [loss for loss in self._waiting if loss.key not in written]
        with self._lock:
            dropped = self._dropped
        return (f"{dropped:,} losses were not recorded, too many waited; they are in the log",) if dropped else ()

    def _all_waiting(self) -> list[Loss]:
        with self._lock:
            return self._waiting[:]

    def _append(self, losses: list[Loss]) -> None:
        if not self._has_topic:
            ensure_internal_topic(
                self._admin,
                self._topic,
                is_explicit_factor=self._is_explicit_factor,
                factor_key=keys.OFFSET_SYNCS_REPLICATION_FACTOR.name,
            )
            self._has_topic = True
        try:
            records = [OwnRecord(*encode_loss(loss)) for loss in losses]
            write_records(self._admin, TopicPartition(self._topic.name, 0), records, timeout_s=STEP_TIMEOUT_S)
        except ClusterError:
            self._has_topic = False  # it may have been deleted
            raise

    def close(self) -> None:
        """Write what waits, once more, and close the client."""
        for issue in self.write():
            log.error("%s: %s", self._flow, issue)
        self._admin.close()

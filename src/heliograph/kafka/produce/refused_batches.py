"""Handles batches that the target did not acknowledge: a verdict becomes a transition of the partition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from heliograph.kafka.error_codes import (
    TOPIC_AUTHORIZATION_FAILED,
    Verdict,
    describe,
    may_be_appended,
    verdict_of,
)
from heliograph.kafka.produce.target_partition import DRAINING_STATES, TargetPartitionState

if TYPE_CHECKING:
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.produce.produce_lanes import TargetLeaders
    from heliograph.kafka.produce.producer_session import ProducerSession
    from heliograph.kafka.produce.queue_memory import QueueMemory
    from heliograph.kafka.produce.target_partition import Outgoing, ProduceListener, TargetPartition


_SHORT_PAUSE_S, _MOST_SHORT_PAUSES = 0.005, 20


class ProduceErrors:
    """Retries, replaces or gives up the batches of one producer.

    | verdict | transition |
    |---|---|
    | RETRY_SOON | drain, then retry within milliseconds; back off if that repeats |
    | RETRY, RETRY_WITH_METADATA | drain, then back off |
    | OUT_OF_ORDER | as RETRY after an error of an older batch; as FAIL_TASK if it is the oldest |
    | TOO_LARGE | drain, then replace the batch |
    | FAIL_PARTITION | give the partition up |
    | FAIL_TASK | abort the session |
    """

    def __init__(
        self,
        cluster: Cluster,
        session: ProducerSession,
        listener: ProduceListener,
        leaders: TargetLeaders,
        memory: QueueMemory,
    ) -> None:
        self._cluster = cluster
        self._session = session
        self._listener = listener
        self._leaders = leaders
        self._memory = memory

    def on_refused(self, partition: TargetPartition, outgoing: Outgoing, code: int) -> None:
        """A broker answered a batch with an error code."""
        verdict = verdict_of(code)
        if verdict is Verdict.OUT_OF_ORDER:
            oldest = next((each for each in partition.in_flight if not each.is_acked), None)
            is_unexplained = outgoing is oldest and partition.state not in DRAINING_STATES
            verdict = Verdict.FAIL_TASK if is_unexplained else Verdict.RETRY
        why = describe(code)
        self._note(partition, outgoing, why, may_be_appended=may_be_appended(code))
        if verdict is Verdict.FAIL_PARTITION:
            sentence = f"the target broker refused it: {why}"
            if code == TOPIC_AUTHORIZATION_FAILED:
                topic = partition.tp.topic
                sentence = f"the target does not let us write {topic} ({why}); the principal needs WRITE on it"
            self.give_up(partition, outgoing, sentence)
            return
        if verdict is Verdict.FAIL_TASK:
            self._session.abort(f"the target refused our producer for {partition.tp}: {why}")
        if verdict is Verdict.TOO_LARGE and partition.too_large is None:
            partition.too_large = outgoing
        self._retry(partition, verdict)

    def on_unanswered(self, partition: TargetPartition, outgoing: Outgoing, why: str, verdict: Verdict) -> None:
        """No answer has come for a batch, and none will."""
        self._note(partition, outgoing, why, may_be_appended=True)
        self._retry(partition, verdict)

    def _note(self, partition: TargetPartition, outgoing: Outgoing, why: str, *, may_be_appended: bool) -> None:
        partition.awaited -= 1
        outgoing.is_doubtful = outgoing.is_doubtful or may_be_appended
        if partition.issue is None:
            partition.short_pauses = 0
        partition.issue = why

    def _retry(self, partition: TargetPartition, verdict: Verdict) -> None:
        if verdict is Verdict.RETRY_WITH_METADATA:
            self._cluster.want_metadata()
        partition.drain(soon=verdict is Verdict.RETRY_SOON)
        self.end_drain(partition)

    def end_drain(self, partition: TargetPartition) -> None:
        """Let a draining partition back off once no answer is awaited."""
        if partition.awaited:
            return
        partition.requeue()
        pause_s = _SHORT_PAUSE_S
        partition.short_pauses += 1
        is_long = partition.state is TargetPartitionState.DRAINING_TO_BACK_OFF
        if is_long or partition.short_pauses > _MOST_SHORT_PAUSES:
            self._memory.park(partition)
            pause_s = partition.backoff.next_pause_s()
        partition.become(TargetPartitionState.BACKING_OFF)
        partition.retry_at = time.monotonic() + pause_s
        too_large, partition.too_large = partition.too_large, None
        if too_large is not None and partition.queue and partition.queue[0] is too_large:
            self._replace_head(partition, too_large)

    def _replace_head(self, partition: TargetPartition, refused: Outgoing) -> None:
        """Send other batches in place of one that was too large."""
        if refused.is_doubtful:
            # Others would get its sequences: a broker that has it would take the next of its size for its repeat.
            self._abort_doubtful(partition, "the target finds it too large")
            return
        replacements = self._listener.on_too_large(partition.tp, refused)
        if isinstance(replacements, str):
            self.give_up(partition, refused, replacements)
            return
        partition.issue = None  # if no batch is left, no success could end it
        partition.replace_head(replacements)

    def give_up(self, partition: TargetPartition, outgoing: Outgoing, sentence: str) -> None:
        """Fail a partition, or abort the session if its transaction may hold a batch that was not acknowledged."""
        if self._session.transactional_id is not None and any(sent.is_doubtful for sent in partition.sent):
            # Committed, a copy that nobody counts would come again after the next start.
            self._abort_doubtful(partition, sentence)
            return
        self._leaders.leave(partition)
        partition.fail()
        self._listener.on_target_failed(partition.tp, outgoing, sentence)

    def _abort_doubtful(self, partition: TargetPartition, why: str) -> None:
        self._session.abort(f"{partition.tp}: {why}, and an earlier try of the batch may have come through")

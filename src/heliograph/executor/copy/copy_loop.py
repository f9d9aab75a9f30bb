"""The copy of one task: fetch, check, prepare, produce, acknowledge, commit; one thread, one loop.

Nothing here knows Spark: `copy_task` runs it in a Python worker, tests run it directly. `CopyClients` holds the
connections, `RecordFlow` moves the records, `FetchBudget` bounds the memory, `OffsetCommits` writes source offsets.

Invariants:
A. Only offsets that the target has acknowledged, in order, or that need no copy, are committed.
B. A partition that cannot continue is failed with a message naming topic, partition and offset; the others continue.
C. A source offset that follows from a loss is committed only when the driver has the loss: until then the next start
   finds the loss again.
D. The loop ends only if all partitions are done (`--once`), if the lease says stop or is lost, or with a TaskError.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from heliograph.executor.contract.task_report import MEASURE_INTERVAL_S, TaskEvents, TaskReport
from heliograph.executor.copy.background import load_kernels, wait_under_lease
from heliograph.executor.copy.copy_clients import CopyClients
from heliograph.executor.copy.copy_partition import CopyPartition, CopyPartitions
from heliograph.executor.copy.fetch_budget import FetchBudget
from heliograph.executor.copy.log_changes import TargetChanges
from heliograph.executor.copy.offset_commits import CommitSchedule, OffsetCommits
from heliograph.executor.copy.record_flow import RecordFlow
from heliograph.executor.copy.resume import ResumeLookup, resume_points

if TYPE_CHECKING:
    from heliograph.executor.contract.lease import TaskLease
    from heliograph.executor.contract.task_spec import TaskSpec
    from heliograph.executor.copy.offset_commits import CommitTimes
    from heliograph.model import TopicPartition
    from heliograph.status.task_status import TaskCounts, TaskGauges


_REPORT_INTERVAL_S = 1.0
_RETRY_GRANULARITY_S = 0.05
_DRAIN_TIMEOUT_S = 20.0


class CopyLoop:
    """Copies a task's partitions until they are done or the lease says stop."""

    def __init__(self, spec: TaskSpec, lease: TaskLease) -> None:
        self.spec = spec
        self._lease = lease
        self._events = TaskEvents(spec.flow)
        self._schedule = CommitSchedule(spec)
        self._clients = clients = CopyClients(spec)
        self._partitions = CopyPartitions(clients)
        self._budget = FetchBudget(spec, clients, self._partitions)
        self._records = RecordFlow(spec, clients, self._partitions, self._budget.rate, self._schedule, self._events)
        clients.start(self._records, self._budget.limits, self._budget.moving_bytes)
        self._commits = OffsetCommits(
            spec,
            clients.offsets_producer,
            clients.offsets_session,
            self._partitions.source_offsets,
            self._hand_over_losses,
            self._on_committed,
        )
        self._target_changes = TargetChanges(spec, clients, self._schedule, self._commits.has_all, self._records.fail)
        self._lookup = ResumeLookup(spec, self._events)
        self._next_report_at = self._next_measure_at = 0.0

    @property
    def partitions(self) -> dict[TopicPartition, CopyPartition]:
        """Return the partitions that are copied now, by source."""
        return self._partitions.by_source

    def run(self) -> TaskReport:
        """Copy until done or stopped; then flush, commit and return the last report."""
        try:
            self._begin()
            while not self._is_finished():
                self._step(fetch=True)
            self._drain()
            return self._report()
        except Exception:
            self._commits.times.failed += not self._commits.is_idle
            self._lease.report(self._report())  # or its last events and losses would be gone
            raise
        finally:
            self._clients.close()

    def _begin(self) -> None:
        """Fence our predecessor, and add the partitions at their resume points."""
        wait_under_lease(lambda: load_kernels(self._events), self._keep_lease)
        while self.spec.transactional_id is not None and not self._clients.session.is_ready:
            self._lease.check()
            if self._lease.stop_reason is not None:
                return
            self._step(fetch=False)
        points = wait_under_lease(
            lambda: resume_points(self.spec, self.spec.partitions, self._events, waits=False), self._keep_lease
        )
        if points is None:
            return
        self._partitions.follow(self.spec.partitions)
        for point in points:
            self._records.add(point)
        self._lookup.follow(self._partitions.to_open(self._commits.uncommitted))

    def _keep_lease(self) -> bool:
        """Report if it is time; return False if the task is to stop."""
        self._lease.check()
        if time.monotonic() >= self._next_report_at:
            self._next_report_at = time.monotonic() + _REPORT_INTERVAL_S
            self._lease.report(self._report())
        return self._lease.stop_reason is None

    def _is_finished(self) -> bool:
        self._lease.check()
        self._follow_assignment()
        if self._lease.stop_reason is not None:
            return True
        return self._lookup.is_idle and not self._partitions.closing and self._partitions.are_done

    def _follow_assignment(self) -> None:
        """Stop copying partitions that were taken away, and release them; add those given later, and those that are to
        begin again, as soon as their resume points are known.
        """
        assignment = self._lease.take_assignment()
        if assignment is not None:
            self._partitions.follow(assignment.partitions)
            self._budget.change_rate(assignment.bytes_per_s)
        if self._partitions.departed:
            if self._partitions.release(self._commits.uncommitted):
                self._schedule.hurry(time.monotonic())
            elif not self._partitions.departed:
                self._next_report_at = 0.0  # other tasks wait for them
        if assignment is not None or self._partitions.closing:
            self._lookup.follow(self._partitions.to_open(self._commits.uncommitted))
        if not self._lookup.is_idle:
            for point in self._lookup.take(time.monotonic()):
                if point.spec.is_moved:
                    self._commits.forget(point.spec.tp)
                self._records.add(point)

    def _step(self, *, fetch: bool) -> None:
        """Wait for responses or the next timer, then do what is due."""
        clients = self._clients
        deadline = (now := time.monotonic()) + self._timeout_s(now)
        while not clients.network.poll(deadline - now) and (now := time.monotonic()) < deadline:
            pass
        now = time.monotonic()
        clients.maintain_clusters(now)
        clients.pump_producers(now)
        if fetch and clients.session.is_ready:
            clients.fetcher.pump(now, self._budget.wants, self._budget.room_bytes)
        self._commit_if_due(now)
        if clients.syncs is not None:
            clients.syncs.pump(now)
        if now >= self._next_report_at:
            self._next_report_at = now + _REPORT_INTERVAL_S
            clients.network.maintain(now)
            self._target_changes.look(now, self._partitions, is_stopping=self._lease.stop_reason is not None)
            self._lease.report(self._report())

    def _commit_if_due(self, now: float) -> None:
        if now >= self._commit_due_at:
            if self._commits.begin(int(time.time() * 1000)):
                self._schedule.begun(now)
            else:
                self._schedule.postponed(now)
            self._clients.pump_producers(now)
        if not self._commits.is_idle:
            self._commits.pump(int(time.time() * 1000))
            self._clients.pump_producers(now)

    @property
    def _commit_due_at(self) -> float:
        return self._schedule.due_at(is_quiet=not self._clients.producer.has_unsettled)

    def _hand_over_losses(self) -> None:
        """Wait for the driver if there are losses; that is rare, and its answer takes no longer than a round trip."""
        if self._events.has_losses:
            self._lease.report(self._report())
        self._lease.await_losses()

    def _on_committed(self) -> None:
        self._schedule.ended(time.monotonic())
        self._records.on_committed()

    def _timeout_s(self, now: float) -> float:
        until_timer = min(self._commit_due_at, self._next_report_at) - now
        if self._clients.syncs is not None:
            until_timer = min(until_timer, self._clients.syncs.wait_s)
        is_changing = self._partitions.closing or self._partitions.departed or not self._lookup.is_idle
        if self._clients.is_calm and not is_changing and not self._budget.rate.bytes_per_s:
            return max(0.0, until_timer)
        return max(0.0, min(until_timer, _RETRY_GRANULARITY_S))

    def _report(self) -> TaskReport:
        clients, now = self._clients, time.monotonic()
        measures = now >= self._next_measure_at
        if measures:
            self._next_measure_at = now + MEASURE_INTERVAL_S
        fetched, committed = clients.fetcher.partitions, self._commits.committed
        rows = [
            partition.report(fetched.get(tp), committed.get(tp), measures=measures)
            for tp, partition in self._partitions.reported.items()
        ]
        others = (self._commits, clients.syncs, self._lookup)
        return TaskReport(
            rows,
            self._events.take(),
            clients.session_issues + [part.issue for part in others if part is not None and part.issue],
            unavailable_clusters=clients.unavailable_clusters,
            losses=self._events.take_losses(),
            releasing=list(self._partitions.departed),
            counts=_counts(clients, self._records, self._partitions, self._commits.times),
            gauges=_gauges(clients, self._commits.times, now),
        )

    def _drain(self) -> None:
        """Wait for batches in flight and commit; if that takes too long, the next start copies them again."""
        deadline = time.monotonic() + _DRAIN_TIMEOUT_S
        is_stopped, is_done, is_committed = self._lease.stop_reason is not None, False, False
        partitions = self._partitions
        if is_stopped:
            partitions.stop_all()
        while time.monotonic() < deadline or not is_stopped:
            self._lease.check()
            was_done, is_done = is_done, self._clients.is_idle and (is_stopped or partitions.are_over)
            # Expensive with many partitions: not asked while records are in flight, nor again once none can follow.
            was_committed = is_committed and was_done and is_done
            held = {*partitions.by_source, *partitions.departed}
            is_committed = was_committed or (partitions.are_settled and self._commits.has_all(held))
            if is_done and is_committed and self._clients.are_syncs_written:
                return
            if self._lease.stop_reason is not None and not is_stopped:
                is_stopped, deadline = True, time.monotonic() + _DRAIN_TIMEOUT_S
            if self._clients.syncs is not None and is_committed:
                self._clients.syncs.flush(at_once=True)
            if self._commits.is_idle and partitions.are_idle:
                self._schedule.hurry(time.monotonic())
            self._step(fetch=not is_stopped)
        unwritten = self._commits.unwritten({*partitions.by_source, *partitions.departed})
        if unwritten is not None:
            self._events.warn(unwritten)


def _counts(clients: CopyClients, records: RecordFlow, partitions: CopyPartitions, commits: CommitTimes) -> TaskCounts:
    return clients.counts()._replace(
        fetched_records=records.fetched_records,
        commits=commits.done,
        failed_commits=commits.failed,
        commit_sum_ms=round(commits.sum_ms),
        latency=partitions.latency.histogram,
    )


def _gauges(clients: CopyClients, commits: CommitTimes, now: float) -> TaskGauges:
    gauges, took_ms = clients.gauges(), commits.last_minute(now * 1000)
    return (
        gauges if took_ms is None else gauges._replace(commit_mean_ms=took_ms.mean, commit_highest_ms=took_ms.highest)
    )


def run_copy(spec: TaskSpec, lease: TaskLease) -> dict[str, Any]:
    """Run a task to its end; return the last report as JSON values."""
    return CopyLoop(spec, lease).run().to_json()

"""Runs the copy loop itself against real brokers, without Spark: what a task does, under a test's control."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.lease import TaskAssignment
from heliograph.executor.contract.source_offsets import read_offsets
from heliograph.executor.contract.task_report import TaskReport
from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
from heliograph.executor.copy.copy_loop import CopyLoop
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.model import Address, ChangeActions, CreateTopic, Flow, SourceOffset, TopicPartition
from tests.support.clusters.clients import admin_of, make_topic

CONNECTOR = "MirrorSourceConnector"
# For what takes a moment, and a minute on a machine that is slow and busy; it costs nothing where all is well.
PATIENCE_S = 180.0


class KilledError(BaseException):
    """Ends a task as a signal does: it reports nothing and commits nothing."""


class HandLease:
    """A lease in the test's own hand."""

    def __init__(self, on_report: Callable[[TaskReport], None] = lambda _report: None) -> None:
        self.stop_reason: str | None = None
        self.reports: list[TaskReport] = []
        self.assignment: tuple[PartitionSpec, ...] | None = None
        self.numbered: TaskAssignment | None = None
        self.bytes_per_s = 0
        self.is_killed = False
        self._taken_number = 0
        self._on_report = on_report

    def report(self, report: TaskReport) -> None:
        report = replace(report, assignment=self._taken_number)
        self.reports.append(report)
        self._on_report(report)

    def await_losses(self) -> None:
        """The driver answers at once."""

    def take_assignment(self) -> TaskAssignment | None:
        numbered, self.numbered = self.numbered, None
        partitions, self.assignment = self.assignment, None
        if partitions is not None:
            numbered = TaskAssignment(self._taken_number + 1, partitions, self.bytes_per_s)
        self._taken_number = self._taken_number if numbered is None else numbered.number
        return numbered

    def check(self) -> None:
        """The driver is always there."""
        if self.is_killed:
            raise KilledError


class Copy:
    """A flow of one topic between two clusters."""

    def __init__(
        self, source: EmbeddedCluster, target: EmbeddedCluster, alias: str, topic: str, partitions: int = 2
    ) -> None:
        self.source, self.target, self.alias, self.topic, self.partitions = source, target, alias, topic, partitions
        self.remote = f"{alias}.{topic}"
        self.offsets_topic = f"mm2-offsets.{alias}.internal"
        admin = admin_of(target)
        existing = admin.view([self.remote, self.offsets_topic]).partition_counts
        admin.close()
        factor = min(3, len(target.brokers))
        if self.remote not in existing:
            make_topic(target, self.remote, partitions, factor=factor)
        if self.offsets_topic not in existing:
            admin = admin_of(target)
            admin.create_topics([CreateTopic(self.offsets_topic, 25, factor, (("cleanup.policy", "compact"),))])
            assert admin.wait_for_leaders({self.offsets_topic: 25}) == {}
            admin.close()

    def committed(self) -> dict[TopicPartition, int]:
        return {tp: source_offsets.offset for tp, source_offsets in self.source_offsets().items()}

    def source_offsets(self) -> dict[TopicPartition, SourceOffset]:
        admin = admin_of(self.target)
        offsets = read_offsets(admin, self.offsets_topic, CONNECTOR, self.alias)
        admin.close()
        return offsets

    def spec(self, *, once: bool = True, actions: ChangeActions | None = None, **changes: object) -> TaskSpec:
        admin = admin_of(self.source)
        tps = [TopicPartition(self.topic, p) for p in range(self.partitions)]
        ends = admin.end_offsets(tps)
        admin.close()
        offsets = self.source_offsets()
        parts = [
            PartitionSpec(
                tp, self.remote, offsets.get(tp), ends[tp] if once else None, actions=actions or ChangeActions()
            )
            for tp in tps
        ]
        fields: dict[str, object] = {
            "task_id": f"{self.alias}-0",
            "flow": Flow(self.alias, "target"),
            "source": cluster_spec(self.alias, self.source),
            "target": cluster_spec("target", self.target),
            "partitions": tuple(parts),
            "connector": CONNECTOR,
            "offsets_topic": self.offsets_topic,
            "offsets_partition_count": 25,
            **changes,
        }
        return TaskSpec(**fields)  # type: ignore[arg-type]

    def once(self, actions: ChangeActions | None = None, **changes: object) -> TaskReport:
        """Copy what is there now; return the last report, with the events and losses of all."""
        lease = HandLease()
        last = CopyLoop(self.spec(actions=actions, **changes), lease).run()
        return reduce(TaskReport.followed_by, [*lease.reports, last])

    def loop(self, lease: HandLease, **changes: object) -> CopyLoop:
        """A copy that runs until the lease says stop."""
        return CopyLoop(self.spec(once=False, **changes), lease)

    def background(self, lease: HandLease, **changes: object) -> Callable[[], TaskReport]:
        """Copy until the lease says stop; the returned function waits for the end."""
        return run_in_background(self.loop(lease, **changes))


def run_in_background(loop: CopyLoop) -> Callable[[], TaskReport]:
    """Run a loop in a thread of its own; the returned function waits for its end."""
    outcome: list[TaskReport | BaseException] = []

    def run() -> None:
        try:
            outcome.append(loop.run())
        except BaseException as error:  # noqa: BLE001  (handed to the waiting test)
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def join() -> TaskReport:
        thread.join(PATIENCE_S)
        assert outcome, "the copy did not end"
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]

    return join


def cluster_spec(alias: str, cluster: EmbeddedCluster) -> ClusterSpec:
    return ClusterSpec(alias, tuple(Address("127.0.0.1", b.port) for b in cluster.brokers), Security(), 10_000)


def wait_for(condition: Callable[[], object], timeout_s: float = PATIENCE_S, pause_s: float = 0.02) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(pause_s)

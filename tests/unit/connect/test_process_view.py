"""What metrics show of a worker of a group: all that it runs if it leads, and itself if it does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.contract import refusals
from heliograph.connect.contract.herder import ConnectorStatus, TaskStatus
from heliograph.connect.runtime.process_view import WorkerProcess
from heliograph.connect.storage.config_store import StoredConnector
from heliograph.driver.loops.checkpoint_status import CheckpointStatus
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.loops.heartbeats import HeartbeatSource
from heliograph.model import Flow
from heliograph.status.process_snapshot import (
    ConnectorRow,
    ConnectorTask,
    EngineSnapshot,
    HeartbeatsSnapshot,
    ProcessSnapshot,
    WorkerSnapshot,
)
from tests.support.config_files import FakeLookup
from tests.support.connect.flow_snapshots import flow

AB = Flow("A", "B")
FILE = "\n".join(
    (
        "bootstrap.servers=b:1",
        "group.id=g",
        *(f"{store}.storage.topic={store}" for store in ("config", "offset", "status")),
    )
)
MIRROR = "org.apache.kafka.connect.mirror"


class Group:
    """A worker with connectors, of which those run whose work is in `works`."""

    def __init__(self, *, is_leader: bool) -> None:
        self.worker = WorkerSnapshot(is_leader, False, 7, 2, 900.0)
        self.configs = {
            "source": {"connector.class": "MirrorSource", "source.cluster.alias": "A"},
            "checkpoints": {"connector.class": f"{MIRROR}.MirrorCheckpointConnector", "source.cluster.alias": "A"},
            "new": {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A"},
        }
        checkpoint, beating = cast("Any", object.__new__(CheckpointSync)), cast("Any", object.__new__(HeartbeatSource))
        checkpoint.flow, checkpoint.status = AB, CheckpointStatus(AB, 60.0)
        beating.flow, beating.written, beating._written_at = AB, {"heartbeats": 3}, 990.0
        self.works = {"checkpoints": checkpoint, "new": beating} if is_leader else {}
        self.flows = [flow("source")] if is_leader else []

    def connectors(self) -> list[str]:
        return sorted(self.configs)

    def stored(self, name: str) -> StoredConnector:
        return StoredConnector(self.configs[name], "STARTED", ())

    def status(self, name: str) -> ConnectorStatus:
        if name == "new":
            raise refusals.NO_STATUS.error(name=name)
        return ConnectorStatus(name, "RUNNING", "w", (TaskStatus(0, "FAILED", "w", "a trace"),))

    def process(self) -> ProcessSnapshot:
        runs = [SimpleNamespace(config=SimpleNamespace(name=name), work=work) for name, work in self.works.items()]
        engine = SimpleNamespace(snapshot=lambda: EngineSnapshot(4, 1, 0))
        reconciler = SimpleNamespace(flows=lambda: self.flows, runs=lambda: runs, engine=engine)
        member = SimpleNamespace(snapshot=lambda: self.worker)
        worker = load_worker(FILE, FakeLookup())
        return WorkerProcess(worker, cast("Any", self), cast("Any", reconciler), cast("Any", member)).snapshot()


def test_the_leader_shows_what_it_runs() -> None:
    found = Group(is_leader=True).process()
    assert [each.name for each in found.flows] == ["source"]
    assert [(each.name, each.connector) for each in found.checkpoints] == [("source", "checkpoints")]
    assert found.heartbeats == (HeartbeatsSnapshot("new", AB, 3, 990.0),)
    assert (found.worker, found.engine) == (WorkerSnapshot(True, False, 7, 2, 900.0), EngineSnapshot(4, 1, 0))


def test_connectors_have_connects_words_and_full_classes() -> None:
    rows = {row.name: row for row in Group(is_leader=True).process().connectors}
    assert rows["source"] == ConnectorRow(
        "source", f"{MIRROR}.MirrorSourceConnector", "source", "4.3.1", "RUNNING", (ConnectorTask(0, "FAILED"),)
    )
    assert rows["checkpoints"].class_name == f"{MIRROR}.MirrorCheckpointConnector"
    assert (rows["new"].state, rows["new"].tasks) == ("UNASSIGNED", ()), "its state is not published yet"


def test_a_follower_shows_itself_and_no_connector_of_the_group() -> None:
    found = Group(is_leader=False).process()
    assert (found.flows, found.checkpoints, found.heartbeats, found.connectors) == ((), (), (), ())
    assert found.worker == WorkerSnapshot(False, False, 7, 2, 900.0)
    assert found.engine == EngineSnapshot(4, 1, 0)


def test_checkpoints_of_clusters_that_several_flows_have_are_named_by_their_clusters() -> None:
    group = Group(is_leader=True)
    group.flows = [flow("source"), flow("source-2")]
    assert [each.name for each in group.process().checkpoints] == ["A->B"]


def test_a_connector_that_cannot_start_does_not_hide_the_page() -> None:
    group = Group(is_leader=True)
    group.configs |= {"odd": {"connector.class": "acme.Other"}, "nameless": {"connector.class": "MirrorSource"}}
    rows = {row.name: row for row in group.process().connectors}
    assert rows["odd"].class_name == "acme.Other"

"""What the REST API of `heliograph run` shows of a file's flows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.config.validate.dedicated_file import load
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.file_herder import FileHerder
from heliograph.driver.flow.flow_status import SourceStep
from heliograph.driver.flow.tasks.flow_task import FlowTask, FlowTasks
from heliograph.driver.flow.topic_sync import Replicated
from heliograph.driver.loops.mirror_process import MirrorProcess
from heliograph.driver.steps.restart_policy import RestartLimits
from heliograph.errors import ConnectError, FencedError
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import Flow, TopicPartition
from heliograph.status.json_views import flow_json
from heliograph.status.process_snapshot import EngineSnapshot
from tests.support.config_files import FakeLookup, minimal
from tests.support.connect.rest_worker import rest_worker

SOURCE, CHECKPOINT, HEARTBEAT = (f"A->B.Mirror{kind}Connector" for kind in ("Source", "Checkpoint", "Heartbeat"))

AB = Flow("A", "B")


class Running:
    """The flows of a file as `run` makes them; none of them is started."""

    def __init__(self, *lines: str) -> None:
        self.config = load(minimal(*lines), FakeLookup({"P": "hunter3"}))
        engine = SimpleNamespace(snapshot=lambda: EngineSnapshot(4, 1, 0))
        self.process = MirrorProcess(self.config, engine)  # type: ignore[arg-type]
        self.flows, self.control = list(self.process.flows.values()), self.process.control
        self.herder = FileHerder(self.process, LogLevels(), lambda: "id-of-b")
        self.herder.worker_id = "h:1"

    def copy(self, topic: str, records: int) -> None:
        """As if a task had copied records of a topic."""
        tp, flow = TopicPartition(topic, 0), self.flows[0]
        task = FlowTask.new(0, RestartLimits(1.0, -1))
        task.begin()
        task.tps, task.running = frozenset({tp}), _running("A->B-0")
        flow._supervisor.tasks, flow._steps.replicated = FlowTasks([task]), Replicated((tp,), {topic: f"A.{topic}"})
        flow.status.state = "RUNNING"
        flow.status.take("A->B-0", TaskReport([PartitionReport(topic, 0, records=records)], [], [], 0))


def test_each_flow_shows_three_connectors_and_each_other_pair_its_heartbeats() -> None:
    assert Running().herder.connectors() == [CHECKPOINT, HEARTBEAT, SOURCE, "B->A.MirrorHeartbeatConnector"]
    assert Running("emit.heartbeats.enabled=false").herder.connectors() == [CHECKPOINT, HEARTBEAT, SOURCE]
    assert len(Running("B->A.enabled=true").herder.connectors()) == 6


def test_a_config_is_what_connect_would_be_given_without_the_secrets_of_the_file() -> None:
    herder = Running(
        "A->B.topics=orders",
        "A.sasl.jaas.config=o.a.k.PlainLoginModule required username=u password=hunter2;",
        "B.ssl.keystore.password=${env:P}",
        "groups=g",
    ).herder
    config = herder.info(SOURCE).config
    assert config["name"] == SOURCE
    assert config["connector.class"] == "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    assert (config["topics"], config["source.cluster.bootstrap.servers"]) == ("orders", "a:1")
    assert "hunter" not in str(config)
    assert config["target.cluster.ssl.keystore.password"] == "${env:P}"
    assert "groups" not in config
    assert herder.info(CHECKPOINT).config["groups"] == "g"
    assert herder.info("B->A.MirrorHeartbeatConnector").config["source.cluster.bootstrap.servers"] == "b:1"


def test_only_topics_with_issues_make_a_connector_without_tasks_failed() -> None:
    running = Running()
    status = running.flows[0].status
    status.state = "RUNNING"
    status.note(SourceStep.ACLS, ["A lets nobody see its ACLs."])
    shown = running.herder.status(SOURCE)
    assert (shown.state, shown.trace) == ("RUNNING", "A lets nobody see its ACLs.")
    status.note(SourceStep.TOPICS, ["A does not show us its topics."])
    shown = running.herder.status(SOURCE)
    assert (shown.state, shown.trace) == ("FAILED", "A does not show us its topics.\nA lets nobody see its ACLs.")
    running.copy("t", 5)
    assert running.herder.status(SOURCE).state == "RUNNING"


def test_states_are_those_of_the_flow_and_its_tasks() -> None:
    running = Running()
    assert not running.herder.is_ready()
    assert running.herder.status(SOURCE)[1:4] == ("UNASSIGNED", "h:1", ())
    running.copy("t", 5)
    assert running.herder.is_ready()
    assert [(task.id, task.state) for task in running.herder.status(SOURCE).tasks] == [(0, "UNASSIGNED")]
    running.flows[0]._supervisor.tasks[0].reported()
    assert [task.state for task in running.herder.status(SOURCE).tasks] == ["RUNNING"]
    running.flows[0].life.error, running.flows[0].status.state = FencedError("another one runs."), "FAILED"
    assert (running.herder.status(SOURCE).state, running.herder.status(SOURCE).trace) == ("FAILED", "another one runs.")


def test_tasks_of_checkpoints_and_heartbeats_report_their_issues() -> None:
    running = Running("A->B.emit.checkpoints.enabled=false")
    assert running.herder.status(CHECKPOINT)[1:4] == ("RUNNING", "h:1", ())
    assert [task.state for task in running.herder.status(HEARTBEAT).tasks] == ["UNASSIGNED"]
    running.control.is_started = True
    assert [task.state for task in running.herder.status(HEARTBEAT).tasks] == ["RUNNING"]
    running.flows[0].status.note("A->B heartbeats: beat", ("B is away.",))
    running.flows[0].status.note("A->B checkpoints: groups", ("no.",))
    assert [(task.state, task.trace) for task in running.herder.status(HEARTBEAT).tasks] == [("FAILED", "B is away.")]


def test_a_flow_shows_the_issues_of_its_loops_with_their_connectors() -> None:
    running = Running()
    running.flows[0].status.note("A->B heartbeats: beat", ("B is away.",))
    running.flows[0].status.note("A->B losses: write", ("a loss is not recorded.",))
    (flow,) = running.herder.flows()
    assert (flow.issues, flow.loop_issues) == (("a loss is not recorded.",), ((HEARTBEAT, "B is away."),))
    assert flow_json(flow)["issues"] == ["a loss is not recorded.", "B is away."]


def test_actions_on_a_flow_that_has_failed_for_good_are_refused() -> None:
    running = Running()
    running.copy("t", 5)
    running.flows[0].life.fail(FencedError("another one runs."))
    events = running.flows[0]._events.qsize()
    with rest_worker(running.herder, read_only=True, has_actions=True) as worker:  # type: ignore[arg-type]
        path = "/connectors/A-%3EB.MirrorSourceConnector"
        for method, place in (
            *(("PUT", f"{path}/{action}") for action in ("stop", "pause", "resume")),
            ("POST", f"{path}/restart"),
            ("POST", f"{path}/tasks/0/restart"),
            ("DELETE", f"{path}/offsets"),
            ("POST", "/heliograph/v1/flows/A-%3EB/restart"),
        ):
            answer = worker.ask(method, place)
            assert answer.status == 409, place
            assert "has failed and takes no requests: another one runs. It starts again" in answer.body["message"]
    assert running.flows[0]._events.qsize() == events


def test_tasks_and_topics() -> None:
    running = Running()
    assert running.herder.task_configs(SOURCE) == []
    assert running.herder.topics(SOURCE) == []
    running.copy("t", 5)
    (task,) = running.herder.task_configs(SOURCE)
    assert task["task.class"] == "org.apache.kafka.connect.mirror.MirrorSourceTask"
    assert (task["task.assigned.partitions"], task["task.index"]) == ("t-0", "0")
    assert running.herder.info(SOURCE).tasks == (0,)
    assert running.herder.topics(SOURCE) == ["A.t"]
    assert running.herder.topics("nobody") == []
    assert running.herder.offsets(HEARTBEAT) == []


@pytest.mark.parametrize("ask", ["info", "status", "task_configs", "offsets"])
def test_what_is_not_there_is_not_found(ask: str) -> None:
    with pytest.raises(ConnectError) as refused:
        getattr(Running().herder, ask)("MirrorSourceConnector")
    assert refused.value.status == 404


def _running(task_id: str) -> Any:
    return SimpleNamespace(spec=SimpleNamespace(task_id=task_id))


@contextmanager
def served(*lines: str) -> Iterator[Any]:
    with rest_worker(Running(*lines).herder, read_only=True) as worker:  # type: ignore[arg-type]
        yield worker


def test_over_rest_a_file_is_read_and_not_changed() -> None:
    path = "/connectors/A-%3EB.MirrorSourceConnector"
    with served() as worker:
        assert worker.ask("GET", "/connectors?expand=info&expand=status").body.keys() >= {SOURCE, HEARTBEAT}
        assert worker.ask("GET", f"{path}/status").body["name"] == SOURCE
        assert worker.ask("GET", "/").body["kafka_cluster_id"] == "id-of-b"
        assert worker.ask("GET", "/health").status == 503
        assert len(worker.ask("GET", "/connector-plugins").body) == 3
        for method, place, why in (
            ("DELETE", path, "defined by its file"),
            ("PUT", f"{path}/pause", "--rest-actions"),
            ("POST", f"{path}/restart", "--rest-actions"),
            ("DELETE", f"{path}/offsets", "--rest-actions"),
            ("PUT", "/admin/loggers/a.b?scope=cluster", "--rest-actions"),
        ):
            answer = worker.ask(method, place, {"level": "ERROR"})
            assert (answer.status, why in answer.body["message"]) == (403, True)


def test_metrics_have_every_flow_loop_and_connector_of_the_file() -> None:
    running = Running()
    running.copy("t", 5)
    found = running.herder.process()
    assert [(flow.name, flow.connector) for flow in found.flows] == [("A->B", SOURCE)]
    assert [(each.name, each.connector, each.flow) for each in found.checkpoints] == [("A->B", CHECKPOINT, AB)]
    assert [each.connector for each in found.heartbeats] == [HEARTBEAT, "B->A.MirrorHeartbeatConnector"]
    assert [each.written_at for each in found.heartbeats] == [None, None]
    assert [row.name for row in found.connectors] == running.herder.connectors()
    source = next(row for row in found.connectors if row.name == SOURCE)
    assert source.class_name == "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    assert (source.kind, source.version, source.state) == ("source", "4.3.1", "RUNNING")
    assert [(task.number, task.state) for task in source.tasks] == [(0, "UNASSIGNED")]
    assert (found.worker, found.engine) == (None, EngineSnapshot(4, 1, 0))

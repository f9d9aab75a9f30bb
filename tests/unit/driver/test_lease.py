"""Leases between a driver and its tasks, over real sockets."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from uuid import UUID

import pytest

from heliograph.diagnostics import Severity
from heliograph.driver.spark import lease_server
from heliograph.driver.spark.lease_server import OWN_MACHINE, LeaseEndpoint, LeaseServer, TaskIdentity, lease_endpoint
from heliograph.embedded.process import free_ports
from heliograph.errors import EngineError, LeaseLostError
from heliograph.executor.contract.lease import (
    Channel,
    NotOurPeerError,
    TaskAssignment,
    encode_assignment,
    introduce,
    welcome,
)
from heliograph.executor.contract.task_report import PartitionReport, TaskEvent, TaskReport
from heliograph.executor.contract.task_spec import LeaseSpec, PartitionSpec
from heliograph.executor.copy.lease_client import LeaseClient
from heliograph.model import Address, Flow, SourceOffset, TopicPartition
from heliograph.status.losses import Loss, LossCause
from heliograph.status.task_status import TaskCounts

OFFSETS = SourceOffset(TopicPartition("t", 0), 6, 9, UUID(int=5), epochs=((4, 0), (5, 3)))


def event(message: str) -> TaskEvent:
    return TaskEvent(Severity.WARNING, message)


SAID = TaskEvent(Severity.WARNING, "said", TopicPartition("t", 1))


def eventually(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("it did not come")


class Driver:
    """Answers what the test wants."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {"go": True}
        self.lost_answers = 0
        self.wait: Callable[[], object] = lambda: None
        self.callers: list[TaskIdentity] = []
        self.reports: list[tuple[str, int, TaskReport]] = []
        self.server = LeaseServer(OWN_MACHINE, self)

    def __call__(self, caller: TaskIdentity, report: TaskReport) -> dict[str, Any]:
        self.callers.append(caller)
        self.wait()
        if self.lost_answers:
            self.lost_answers -= 1
            raise ConnectionResetError
        self.reports.append((caller.task_id, caller.attempt, report))
        return self.answer

    def client(self, *, token: str | None = None, timeout_ms: int = 60_000) -> LeaseClient:
        return LeaseClient(LeaseSpec(self.server.address, token or self.server.token, timeout_ms), "task-0", 2)


@pytest.fixture
def driver() -> Any:
    driver = Driver()
    yield driver
    driver.server.close()


LOSS = Loss(1, Flow("A", "B"), "t", 0, 0, 9, 10, LossCause.SOURCE_TRUNCATED)


def test_a_report_arrives_whole(driver: Driver) -> None:
    client = driver.client()
    report = TaskReport([PartitionReport("t", 1, next_offset=6, records=6)], [SAID], [])
    client.report(report)
    assert eventually(lambda: driver.reports) == [("task-0", 2, report)]
    client.close()


def test_of_the_reports_that_wait_only_the_newest_is_sent_with_the_events_of_all(driver: Driver) -> None:
    may_answer = threading.Event()
    driver.wait = lambda: may_answer.wait(60)
    client = driver.client()
    client.report(TaskReport(events=[event("first")]))
    eventually(lambda: driver.callers)
    for number in (1, 2, 3):
        client.report(
            TaskReport([PartitionReport("t", 1, records=number)], [event(f"said {number}")], [f"issue {number}"])
        )
    may_answer.set()
    eventually(lambda: len(driver.reports) == 2)
    client.close()
    newest = TaskReport(
        [PartitionReport("t", 1, records=3)], [event(f"said {number}") for number in (1, 2, 3)], ["issue 3"]
    )
    assert [report for _task, _attempt, report in driver.reports] == [TaskReport(events=[event("first")]), newest]


def test_what_was_not_answered_is_said_again_with_the_report_that_came_since(driver: Driver) -> None:
    may_answer = threading.Event()
    driver.wait = lambda: may_answer.wait(60)
    driver.lost_answers = 1
    client = driver.client()
    client.report(TaskReport(events=[event("one")]))
    eventually(lambda: driver.callers)
    client.report(TaskReport(events=[event("two")], counts=TaskCounts(throttled_ms=7)))
    may_answer.set()
    eventually(lambda: driver.reports)
    client.close()
    assert [report for _task, _attempt, report in driver.reports] == [
        TaskReport(events=[event("one"), event("two")], counts=TaskCounts(throttled_ms=7))
    ]


def test_a_report_is_plain_values_of_its_own_fields() -> None:
    row = PartitionReport("t", 1, next_offset=6, failure="why")
    report = TaskReport([row], [SAID], ["issue"], 4, releasing=[TopicPartition("t", 2)])
    rows = [tuple(asdict(row).values()) for row in report.partitions]
    own = {"events": [SAID], "partitions": rows, "counts": report.counts, "gauges": report.gauges}
    assert report.to_json() == asdict(report) | own
    assert TaskReport.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_a_task_that_connects_again_is_still_the_same_run_and_another_client_is_not(driver: Driver) -> None:
    driver.lost_answers = 1
    client = driver.client()
    client.report(TaskReport())
    eventually(lambda: driver.reports)
    client.close()
    lost, again = driver.callers
    assert lost == again
    other = driver.client()
    other.report(TaskReport())
    eventually(lambda: len(driver.reports) == 2)
    other.close()
    assert driver.callers[-1][:2] == again[:2]
    assert driver.callers[-1].run_id != again.run_id


def test_the_driver_stops_a_task(driver: Driver) -> None:
    client = driver.client()
    driver.answer = {"stop": "enough"}
    client.report(TaskReport())
    assert eventually(lambda: client.stop_reason) == "enough"
    client.check()
    client.close()


def test_the_driver_hands_out_partitions(driver: Driver) -> None:
    client = driver.client()
    partitions = (
        PartitionSpec(TopicPartition("t", 0), "A.t", OFFSETS, None),
        PartitionSpec(TopicPartition("t", 1), "A.t", None, 70),
    )
    assignment = TaskAssignment(1, partitions, 5_000_000)
    driver.answer = {"go": True, "assignment": encode_assignment(assignment)}
    client.report(TaskReport())
    assert eventually(client.take_assignment) == assignment
    assert client.take_assignment() is None
    client.close()


def test_a_task_reports_its_assignment_and_takes_none_twice(driver: Driver) -> None:
    client = driver.client()
    driver.answer = {"go": True, "assignment": encode_assignment(TaskAssignment(1, ()))}
    for count in (1, 2):
        client.report(TaskReport())
        eventually(lambda count=count: len(driver.reports) == count)
    assert eventually(lambda: client.take_assignment() == TaskAssignment(1, ()))
    client.report(TaskReport())
    eventually(lambda: len(driver.reports) == 3)
    client.close()
    assert client.take_assignment() is None
    assert [report.assignment for _task, _attempt, report in driver.reports] == [0, 0, 1]


def lost(client: LeaseClient) -> str | None:
    try:
        client.check()
    except LeaseLostError as error:
        return str(error)
    return None


def test_a_task_whose_driver_is_gone_ends_itself_at_once() -> None:
    address = Address("127.0.0.1", free_ports(1)[0])
    client = LeaseClient(LeaseSpec(address, "x", 60_000), "task-0", 1)
    assert "the driver is gone" in eventually(lambda: lost(client))


def test_a_task_that_hears_nothing_ends_itself_after_its_lease() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address("127.0.0.1", silent.getsockname()[1])
        client = LeaseClient(LeaseSpec(address, "x", 300), "task-0", 1)
        client.report(TaskReport())
        assert "silent" in eventually(lambda: lost(client))


def test_a_wrong_token_gets_no_answer(driver: Driver) -> None:
    client = driver.client(token="wrong", timeout_ms=300)
    client.report(TaskReport())
    assert "silent" in eventually(lambda: lost(client))
    assert driver.reports == []


class Wire:
    """Passes bytes on between a task and its driver and keeps them."""

    def __init__(self, driver: Address) -> None:
        self.seen = bytearray()
        self._driver = driver
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address("127.0.0.1", self._listener.getsockname()[1])
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            task, _peer = self._listener.accept()
            driver = socket.create_connection(self._driver)
            threading.Thread(target=self._pass_on, args=(driver, task), daemon=True).start()
            self._pass_on(task, driver)

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                self.seen += data
                other.sendall(data)

    def close(self) -> None:
        self._listener.close()


def test_the_token_never_crosses_the_wire(driver: Driver) -> None:
    wire = Wire(driver.server.address)
    client = LeaseClient(LeaseSpec(wire.address, driver.server.token, 60_000), "task-0", 2)
    client.report(TaskReport())
    eventually(lambda: driver.reports)
    assert b"task-0" in wire.seen
    assert driver.server.token.encode() not in wire.seen
    client.close()
    wire.close()


def test_a_task_does_not_listen_to_a_driver_that_cannot_prove_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = LeaseClient(LeaseSpec(Address("127.0.0.1", listener.getsockname()[1]), "x", 60_000), "task-0", 1)
        client.report(TaskReport())
        impostor, _peer = listener.accept()
        impostor.sendall(b"00" * 32 + b"\n" + b"00" * 32 + b' {"stop": "enough"}\n')
        assert "another process answers" in eventually(lambda: lost(client))
        assert client.stop_reason is None


def connected(driver: Driver) -> socket.socket:
    return socket.create_connection(driver.server.address, timeout=60)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(b'{"token": "x", "task": "task-0", "attempt": 2}\n', id="no code"),
        pytest.param(b"00" * 32 + b"\n" + b"00" * 32 + b' {"task": "task-0", "attempt": 2}\n', id="a wrong code"),
        pytest.param(b"x" * 100_000, id="a line without an end"),
        pytest.param(b"\xff\n\xff\n", id="no text"),
    ],
)
def test_a_stranger_is_left_without_a_word(driver: Driver, words: bytes) -> None:
    with connected(driver) as stranger:
        assert len(stranger.recv(100)) == 65  # the number that is to be answered
        with contextlib.suppress(OSError):
            stranger.sendall(words)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(100) == b""
    assert driver.reports == []


def test_a_stranger_who_says_nothing_is_sent_away() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        welcome(ours, "token", within_s=0.05)


def test_the_connection_of_a_task_that_vanished_is_closed_and_one_that_was_held_up_connects_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_server, "_SILENT_S", 0.1)
    with socket.create_connection(tuple(driver.server.address)) as sock:
        sock.settimeout(60)
        introduce(sock, driver.server.token, {"task": "t", "attempt": 1, "run": "r"})
        assert sock.recv(1) == b"", "its thread does not wait for ever"
    client = driver.client()
    client.report(TaskReport([]))
    eventually(lambda: len(driver.reports) == 1)
    time.sleep(0.5)
    client.report(TaskReport([]))
    eventually(lambda: len(driver.reports) == 2)
    client.check()
    client.close()


def both_ends(token: str) -> tuple[Channel, Channel, socket.socket, socket.socket]:
    """A driver's channel and a task's, each over a socket of its own."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(10)
    met: queue.Queue[Channel] = queue.Queue()
    threading.Thread(target=lambda: met.put(welcome(ours, token, 10)[0]), daemon=True).start()
    task = introduce(theirs, token, {"task": "t"})
    return met.get(timeout=60), task, ours, theirs


def test_a_line_that_is_sent_again_or_changed_is_refused() -> None:
    for tamper in (lambda line: line * 2, lambda line: line.replace(b"1", b"2")):
        driver, task, ours, theirs = both_ends("token")
        taken = bytearray()
        driver._lines.write = lambda line, taken=taken: taken.extend(line + b"\n")  # type: ignore[method-assign]
        driver.send({"stop": "1"})
        ours.sendall(tamper(bytes(taken)))
        with pytest.raises(NotOurPeerError):
            task.receive()
            task.receive()
        ours.close()
        theirs.close()


def test_the_token_does_not_show(driver: Driver) -> None:
    assert driver.server.token not in repr(LeaseSpec(driver.server.address, driver.server.token))


# --- where the driver listens -----------------------------------------------------------------------------------------


EVERYWHERE = "0.0.0.0"  # noqa: S104


def place_of(**settings: str) -> LeaseEndpoint:
    named = {f"spark.{name.replace('_', '.')}": value for name, value in settings.items()}
    return lease_endpoint(named.get)


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"driver_host": "box"}, LeaseEndpoint("box", "box", 0)),
        ({"driver_host": "outside", "driver_bindAddress": EVERYWHERE}, LeaseEndpoint(EVERYWHERE, "outside", 0)),
        ({"driver_host": "[fd00::1]", "driver_bindAddress": "::"}, LeaseEndpoint("::", "fd00::1", 0)),
        ({"driver_host": "box", "heliograph_lease_port": "7079"}, LeaseEndpoint("box", "box", 7079)),
    ],
)
def test_the_place_follows_sparks_settings(settings: dict[str, str], place: LeaseEndpoint) -> None:
    assert place_of(**settings) == place


@pytest.mark.parametrize("port", ["x", "-1", "65536", ""])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(EngineError, match=r"spark\.heliograph\.lease\.port must be a port"):
        place_of(driver_host="box", heliograph_lease_port=port)


def lacks_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize(
    ("bind_address", "near"),
    [
        (EVERYWHERE, "127.0.0.1"),
        pytest.param("::1", "::1", marks=pytest.mark.skipif(lacks_ipv6(), reason="the machine has no IPv6")),
    ],
)
def test_tasks_get_the_name_from_outside_while_the_driver_listens_elsewhere(bind_address: str, near: str) -> None:
    (port,) = free_ports(1)
    server = LeaseServer(LeaseEndpoint(bind_address, "name.outside", port), lambda _caller, _report: {"stop": "enough"})
    assert server.address == Address("name.outside", port)
    client = LeaseClient(LeaseSpec(Address(near, port), server.token, 60_000), "task-0", 1)
    client.report(TaskReport())
    assert eventually(lambda: client.stop_reason) == "enough"
    client.close()
    server.close()


def test_a_task_waits_until_the_driver_has_its_losses(driver: Driver) -> None:
    may_answer = threading.Event()
    driver.wait, driver.lost_answers = may_answer.wait, 1
    client = driver.client()
    client.await_losses()  # without any it does not wait
    client.report(TaskReport(losses=[LOSS]))
    client.report(TaskReport(losses=[LOSS, LOSS]))
    waiting = threading.Thread(target=client.await_losses)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    may_answer.set()
    waiting.join(60)
    assert sum(len(report.losses) for *_, report in driver.reports) == 3
    client.close()


def test_losses_of_a_task_that_is_sent_away_are_not_taken(driver: Driver) -> None:
    driver.answer = {"gone": "the task was taken back"}
    client = driver.client()
    client.report(TaskReport(losses=[LOSS]))
    with pytest.raises(LeaseLostError, match="taken back"):
        client.await_losses()
    client.close()

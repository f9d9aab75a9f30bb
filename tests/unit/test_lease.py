"""Leases between a driver and its tasks, over real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from heliograph.engine.lease import LeaseClient, LeaseServer, encode_assignment
from heliograph.engine.report import PartitionReport, TaskReport
from heliograph.engine.spec import LeaseSpec, PartitionSpec
from heliograph.errors import LeaseLostError
from heliograph.model import Address, SourceOffset, TopicPartition

PROGRESS = SourceOffset(TopicPartition("t", 0), 6, 9, UUID(int=5))


def eventually(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 10
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
        self.reports: list[tuple[str, int, TaskReport]] = []
        self.server = LeaseServer("127.0.0.1", self)

    def __call__(self, task_id: str, attempt: int, report: TaskReport) -> dict[str, Any]:
        self.reports.append((task_id, attempt, report))
        return self.answer

    def client(self, *, token: str | None = None, timeout_ms: int = 5000) -> LeaseClient:
        return LeaseClient(LeaseSpec(self.server.address, token or self.server.token, timeout_ms), "task-0", 2)


@pytest.fixture
def driver() -> Any:
    driver = Driver()
    yield driver
    driver.server.close()


def test_a_report_arrives_whole(driver: Driver) -> None:
    client = driver.client()
    report = TaskReport([PartitionReport("t", 1, acked_offset=5, records=6)], ["said"], [])
    client.report(report)
    assert eventually(lambda: driver.reports) == [("task-0", 2, report)]
    client.close()


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
        PartitionSpec(TopicPartition("t", 0), "A.t", PROGRESS, None),
        PartitionSpec(TopicPartition("t", 1), "A.t", None, 70),
    )
    driver.answer = {"go": True, "assignment": encode_assignment(partitions)}
    client.report(TaskReport())
    assert eventually(client.take_assignment) == partitions
    assert client.take_assignment() is None
    client.close()


def lost(client: LeaseClient) -> str | None:
    try:
        client.check()
    except LeaseLostError as error:
        return str(error)
    return None


def test_a_task_whose_driver_is_gone_ends_itself_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = Address("127.0.0.1", closed.getsockname()[1])
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


def test_the_token_does_not_show(driver: Driver) -> None:
    assert driver.server.token not in repr(LeaseSpec(driver.server.address, driver.server.token))

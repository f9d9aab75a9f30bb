"""Reads of both stores while a broker does not answer: they return the last snapshot and never wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from heliograph.connect.storage.config_store import ConfigStore
from heliograph.connect.storage.leader_writes import LeaderWrites
from heliograph.connect.storage.status_store import StatusStore
from heliograph.wire.records.connect_configs import (
    ConfigRecord,
    ConnectorConfigRecord,
    SessionKeyRecord,
    TargetStateRecord,
    encode_config,
)
from heliograph.wire.records.connect_status import (
    ConnectorStatusRecord,
    Status,
    StatusRecord,
    TaskStatusRecord,
    TopicStatusRecord,
    encode_status,
)
from tests.support.runs.copying import wait_for

RUNNING, FAILED = Status("RUNNING", "w:8083"), Status("FAILED", "w:8083", trace="no reason")


class HangingTopic:
    """A topic whose records are read and written only while its broker answers."""

    def __init__(self) -> None:
        self.restarts = 0
        self.partition_count = 1
        self.answers = threading.Event()
        self.answers.set()
        self.waiting = 0
        self._unread: list[Any] = []

    def add(self, encoded: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._unread += [SimpleNamespace(key=key, value=value) for key, value in encoded]

    def read_new(self, _isolation: int = 0) -> list[Any]:
        self._ask()
        records, self._unread = self._unread, []
        return records

    def write(self, records: Iterable[tuple[bytes, bytes | None]], _put: object = None) -> None:
        self._ask()
        self.add(records)

    def _ask(self) -> None:
        self.waiting += 1
        assert self.answers.wait(30)
        self.waiting -= 1


@pytest.fixture
def topic() -> Iterator[HangingTopic]:
    made = HangingTopic()
    yield made
    made.answers.set()


@pytest.fixture
def configs(topic: HangingTopic) -> ConfigStore:
    store = ConfigStore(cast("Any", None), "configs", LeaderWrites(lambda: 1))
    store._topic = cast("Any", topic)
    add_configs(topic, ConnectorConfigRecord("c", {"a": "1"}), SessionKeyRecord(b"key", 1))
    store.load()
    return store


@pytest.fixture
def statuses(topic: HangingTopic) -> StatusStore:
    store = StatusStore(cast("Any", None), "statuses")
    store._topic = cast("Any", topic)
    add_statuses(
        topic, ConnectorStatusRecord("c", RUNNING), TaskStatusRecord("c", 0, FAILED), TopicStatusRecord("c", "t", 0, 1)
    )
    store.load()
    return store


def add_configs(topic: HangingTopic, *records: ConfigRecord) -> None:
    topic.add(encode_config(record) for record in records)


def add_statuses(topic: HangingTopic, *records: StatusRecord) -> None:
    topic.add(encode_status(record) for record in records)


def read_while_hanging(topic: HangingTopic, request: Callable[[], object], read: Callable[[], object]) -> object:
    """Return what a reader on another thread gets while a request of the store waits for its broker."""
    topic.answers.clear()
    with ThreadPoolExecutor(2) as threads:
        hanging = threads.submit(request)
        try:
            wait_for(lambda: topic.waiting == 1)
            return threads.submit(read).result(timeout=10)
        finally:
            topic.answers.set()
            hanging.result(timeout=30)


@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(lambda store: store.refresh, id="refresh"),
        pytest.param(lambda store: lambda: store.put_target_state("c", "PAUSED"), id="write"),
    ],
)
def test_connectors_are_read_while_the_config_topic_hangs(
    topic: HangingTopic, configs: ConfigStore, request_of: Callable[[ConfigStore], Callable[[], object]]
) -> None:
    configs.claim()
    read = read_while_hanging(topic, request_of(configs), lambda: (dict(configs.connectors), configs.session_keys))
    assert cast("Any", read)[0]["c"].target_state == "STARTED"
    assert cast("Any", read)[1] == (SessionKeyRecord(b"key", 1),)


@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(lambda store: store.refresh, id="refresh"),
        pytest.param(lambda store: lambda: store.put_connector("c", FAILED), id="write"),
    ],
)
def test_statuses_are_read_while_the_status_topic_hangs(
    topic: HangingTopic, statuses: StatusStore, request_of: Callable[[StatusStore], Callable[[], object]]
) -> None:
    read = read_while_hanging(
        topic,
        request_of(statuses),
        lambda: (statuses.connector("c"), statuses.tasks("c"), statuses.topics("c"), statuses.names()),
    )
    assert read == (RUNNING, {0: FAILED}, ["t"], ["c"])


def test_connectors_that_were_read_do_not_change_afterwards(topic: HangingTopic, configs: ConfigStore) -> None:
    before = configs.connectors
    add_configs(topic, TargetStateRecord("c", "STOPPED"), ConnectorConfigRecord("d", {}))
    configs.refresh()
    assert (list(before), before["c"].target_state) == (["c"], "STARTED")
    assert (list(configs.connectors), configs.connectors["c"].target_state) == (["c", "d"], "STOPPED")
    with pytest.raises(TypeError):
        cast("Any", configs.connectors)["e"] = None


def test_a_status_that_was_read_does_not_change_afterwards(topic: HangingTopic, statuses: StatusStore) -> None:
    before = statuses.stored("c")
    statuses.put_all("c", FAILED, {1: RUNNING})
    assert (before.connector, dict(before.tasks), list(before.topics)) == (RUNNING, {0: FAILED}, ["t"])
    assert (statuses.connector("c"), statuses.tasks("c")) == (FAILED, {1: RUNNING})
    statuses.delete_connector("c")
    assert statuses.names() == []
    topic.restarts = 1  # the topic was deleted and created again
    statuses.refresh()
    assert statuses.names() == []


def test_a_store_starts_over_when_its_topic_was_created_again(
    topic: HangingTopic, configs: ConfigStore, statuses: StatusStore
) -> None:
    topic.restarts = 1
    assert configs.refresh().configs == {"c"}
    statuses.refresh()
    assert (dict(configs.connectors), configs.session_keys, statuses.names()) == ({}, (), [])

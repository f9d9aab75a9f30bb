"""What the store of statuses does without asking the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from heliograph.connect.storage.status_store import StatusStore, StoredStatus


class NeverWalked(dict[str, int]):
    """Topics of a connector that has very many: each may be looked up, never all of them."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all topics were walked through for one")


class FakeTopic:
    """Keeps the keys of what is written."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []

    def write(self, records: Iterator[tuple[bytes, bytes | None]]) -> None:
        self.keys += [key for key, _value in records]


def test_a_topic_is_noted_once_and_looked_up_without_walking_through_all() -> None:
    store, topic = StatusStore(cast("Any", None), "statuses"), FakeTopic()
    store._topic = cast("Any", topic)
    store._statuses = {"m": StoredStatus(topics=NeverWalked({f"A.{n}": n for n in range(3)}))}
    for name in ("A.0", "A.2", "A.new", "A.new"):
        store.put_topic("m", name)
    assert topic.keys == [b"status-topic-A.new:connector-m"]

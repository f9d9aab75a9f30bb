"""What `groups` and `failover` read of a flow's offset syncs: record by record, and all or nothing."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import pytest

from heliograph.config.validate.dedicated_file import load
from heliograph.errors import UnreachableError
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.model import Flow, OffsetSync, TopicPartition
from heliograph.operations.flow_groups import FlowGroups
from heliograph.wire.batches.log_records import LogRecord
from heliograph.wire.records.mirror_records import encode_offset_sync, encode_runs
from tests.support.config_files import FakeLookup, minimal

TP = TopicPartition("t", 0)
COUNT = 50


def record(n: int) -> LogRecord:
    key, value = encode_offset_sync(OffsetSync(TP, n, n))
    name, runs = encode_runs(array("q", [0, 0, n + 1]))
    return LogRecord(n, key, value, [(name, runs)])


@pytest.fixture
def location() -> str:
    return "source"


@pytest.fixture
def flow_groups(location: str) -> Iterator[FlowGroups]:
    made = FlowGroups(load(minimal(f"offset-syncs.topic.location={location}"), FakeLookup()), Flow("A", "B"))
    yield made
    made.__exit__()


@pytest.mark.parametrize("location", ["source", "target"])
def test_offset_syncs_are_not_gathered_before_they_are_taken(
    flow_groups: FlowGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy flow has millions of them."""
    taken: list[OffsetSync] = []
    take = OffsetMap.take
    monkeypatch.setattr(OffsetMap, "take", lambda known, sync: (taken.append(sync), take(known, sync)))

    def records(*_topic: object) -> Iterator[LogRecord]:
        for n in range(COUNT):
            assert len(taken) == n
            yield record(n)

    monkeypatch.setattr("heliograph.operations.flow_groups.read_topic", records)
    assert flow_groups._known({}).translate(TP, COUNT - 1) == COUNT - 1
    assert len(taken) == COUNT


def test_a_source_that_fails_half_way_gives_no_syncs(flow_groups: FlowGroups, monkeypatch: pytest.MonkeyPatch) -> None:
    def records(*_topic: object) -> Iterator[LogRecord]:
        yield record(0)
        raise UnreachableError("'A' is gone.")

    monkeypatch.setattr("heliograph.operations.flow_groups.read_topic", records)
    assert flow_groups._known({}).translate(TP, 0) is None
    assert flow_groups.source_issue == "'A' is gone."

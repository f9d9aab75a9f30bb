"""MM2's records and Connect's offset keys: Java reads what we write and writes what we read, byte for byte."""

from __future__ import annotations

from array import array
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.kafka.topics import compacted_topic
from heliograph.model import Checkpoint, Heartbeat, OffsetRun, OffsetSync, SourceOffset, TopicPartition
from heliograph.wire.records import connect_offsets
from heliograph.wire.records.mirror_records import (
    decode_checkpoint,
    decode_heartbeat,
    decode_offset_sync,
    encode_checkpoint,
    encode_checkpoint_headers,
    encode_heartbeat,
    encode_log_id,
    encode_offset_sync,
    encode_runs,
)
from tests.interop.gateway import MIRROR, Java

pytestmark = pytest.mark.broker

OFFSETS = st.one_of(st.integers(-1, 1000), st.integers(-(2**63), 2**63 - 1))
PLACES = st.one_of(st.integers(0, 1000), st.integers(0, 2**62))  # others are passed over: they cannot be
NAMES = st.text(st.characters(codec="utf-8"), max_size=30)
TPS = st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1))
MARKS = st.none() | st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3)
LOG_IDS = st.none() | st.uuids()
RUNS = st.lists(st.builds(OffsetRun, *[st.integers(0, 2**62)] * 3), max_size=5)
few = settings(max_examples=100)


def long(java: Java, number: int) -> Any:
    return java.jvm.java.lang.Long.valueOf(number)


def seen_by_java(tp: Any) -> TopicPartition:
    return TopicPartition(tp.topic(), tp.partition())


@few
@given(st.builds(OffsetSync, TPS, PLACES, PLACES, st.none()), RUNS, LOG_IDS)
def test_offset_syncs(java: Java, sync: OffsetSync, runs: list[OffsetRun], log_id: UUID | None) -> None:
    """With and without the headers that only Heliograph writes, which Java must not mind."""
    key, value = encode_offset_sync(sync)
    runs_header = encode_runs(array("q", [number for run in runs for number in run]))
    for headers in ((), (runs_header, *encode_log_id(log_id))):
        seen = java.call(f"{MIRROR}.OffsetSync", "deserializeRecord", java.record("syncs", key, value, headers))
        assert (seen_by_java(seen.topicPartition()), seen.upstreamOffset(), seen.downstreamOffset()) == sync[:3]
    theirs = java.new(f"{MIRROR}.OffsetSync", java.tp(*sync.tp), long(java, sync.upstream), long(java, sync.downstream))
    written = bytes(java.call(theirs, "recordKey")), bytes(java.call(theirs, "recordValue"))
    assert written == (key, value)
    assert decode_offset_sync(*written) == sync


@few
@given(st.builds(Checkpoint, NAMES, TPS, OFFSETS, OFFSETS, NAMES, MARKS, LOG_IDS))
def test_checkpoints(java: Java, checkpoint: Checkpoint) -> None:
    """Java must not mind the headers that only Heliograph writes."""
    group, tp, upstream, downstream, metadata = checkpoint[:5]
    key, value = encode_checkpoint(checkpoint)
    headers = encode_checkpoint_headers(checkpoint)
    assert decode_checkpoint(key, value, headers) == checkpoint
    seen = java.call(f"{MIRROR}.Checkpoint", "deserializeRecord", java.record("checkpoints", key, value, headers))
    assert checkpoint[:5] == (
        seen.consumerGroupId(),
        seen_by_java(seen.topicPartition()),
        seen.upstreamOffset(),
        seen.downstreamOffset(),
        seen.metadata(),
    )
    both = long(java, upstream), long(java, downstream)
    theirs = java.new(f"{MIRROR}.Checkpoint", group, java.tp(*tp), *both, metadata)
    written = bytes(java.call(theirs, "recordKey")), bytes(java.call(theirs, "recordValue"))
    assert written == (key, value)
    assert decode_checkpoint(*written, headers) == checkpoint


@few
@given(st.builds(Heartbeat, NAMES, NAMES, OFFSETS))
def test_heartbeats(java: Java, heartbeat: Heartbeat) -> None:
    key, value = encode_heartbeat(heartbeat)
    seen = java.call(f"{MIRROR}.Heartbeat", "deserializeRecord", java.record("heartbeats", key, value))
    assert heartbeat == (seen.sourceClusterAlias(), seen.targetClusterAlias(), seen.timestamp())
    theirs = java.new(f"{MIRROR}.Heartbeat", heartbeat.source, heartbeat.target, long(java, heartbeat.timestamp_ms))
    written = bytes(java.call(theirs, "recordKey")), bytes(java.call(theirs, "recordValue"))
    assert written == (key, value)
    assert decode_heartbeat(*written) == heartbeat


class ConnectOffsets:
    """The bytes Connect makes of a source partition: its JSON converter without schemas, over MM2's own maps."""

    def __init__(self, java: Java) -> None:
        self._java = java
        self._converter = java.jvm.org.apache.kafka.connect.json.JsonConverter()
        self._converter.configure({"schemas.enable": "false"}, True)

    def key(self, connector: str, source: str, tp: TopicPartition) -> bytes:
        partition = self._java.call(f"{MIRROR}.MirrorUtils", "wrapPartition", self._java.tp(*tp), source)
        pair = self._java.jvm.java.util.Arrays.asList(self._java.array((connector, partition)))
        return bytes(self._converter.fromConnectData("offsets", None, pair))

    def value(self, offset: int) -> bytes:
        wrapped = self._java.jvm.org.apache.kafka.connect.mirror.MirrorUtils.wrapOffset(long(self._java, offset))
        return bytes(self._converter.fromConnectData("offsets", None, wrapped))


@few
@given(NAMES, TPS, PLACES)
def test_progress_of_a_source_partition(java: Java, source: str, tp: TopicPartition, offset: int) -> None:
    theirs = ConnectOffsets(java)
    key = theirs.key("MirrorSourceConnector", source, tp)
    assert connect_offsets.encode_key("MirrorSourceConnector", source, tp) == key
    assert connect_offsets.encode_value(offset) == theirs.value(offset)
    found = connect_offsets.decode("MirrorSourceConnector", source, key, theirs.value(offset))
    assert found == (tp, SourceOffset(tp, offset))
    java_hash = java.call("org.apache.kafka.common.utils.Utils", "murmur2", key)
    assert compacted_topic.murmur2(key) == java_hash % 2**32


def test_partition_keys_of_the_other_two_connectors_have_the_order_of_the_reference(java: Java) -> None:
    converter = java.jvm.org.apache.kafka.connect.json.JsonConverter()
    converter.configure({"schemas.enable": "false"}, True)
    checkpoint = java.new(f"{MIRROR}.Checkpoint", "g1", java.tp("A.topic1", 3), long(java, 1), long(java, 2), "")
    heartbeat = java.new(f"{MIRROR}.Heartbeat", "A", "B", long(java, 1))
    shown = [
        bytes(converter.fromConnectData("offsets", None, java.call(record, "connectPartition")))
        for record in (checkpoint, heartbeat)
    ]
    assert shown == [
        b'{"partition":3,"topic":"A.topic1","group":"g1"}',
        b'{"sourceClusterAlias":"A","targetClusterAlias":"B"}',
    ]

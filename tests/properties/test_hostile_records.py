"""Any records in the topics that Heliograph reads: understood or passed over, never an error, never a bomb."""

from __future__ import annotations

import json
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.connect.storage.config_store import ConfigChanges, ConfigState
from heliograph.errors import ClusterError, CorruptBatchError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import Security
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.mirror.groups.checkpoints import latest_checkpoints
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.model import TopicPartition
from heliograph.wire.batches import log_records as record_reader
from heliograph.wire.batches.codecs import compress
from heliograph.wire.batches.fingerprint import fingerprints
from heliograph.wire.batches.forward import ForwardOptions, prepare
from heliograph.wire.batches.log_records import records_of
from heliograph.wire.records.connect_configs import decode_config
from heliograph.wire.records.connect_offsets import decode, decode_any_key
from heliograph.wire.records.connect_status import decode_status
from heliograph.wire.records.mirror_records import (
    RUNS_HEADER,
    decode_checkpoint,
    decode_heartbeat,
    decode_offset_sync,
    encode_checkpoint,
)
from tests.properties.test_damage import sealed
from tests.properties.test_kernels import bytes_of
from tests.support.brokers.batches import Record, encode
from tests.support.brokers.plain_log import PlainBatch, plain_logs
from tests.support.brokers.scripted_broker import ScriptedCluster

AS_THEY_ARE = ForwardOptions(merge_below_bytes=0)
numbers = st.integers() | st.sampled_from([-1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30])
scalars = st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=6) | st.just("\ud800")
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
config_members = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("properties", "tasks", "state", "state.v2", "task-count", "level", "include-tasks"), values
    ),
)
status_members = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("state", "worker_id", "generation", "trace", "version", "topic"), values)
)
_DEEP = {
    "lists": b"[" * 100_000,
    "objects": b'{"properties":' * 50_000,
    "just readable": b'{"properties":{"a":' + b"[" * 900 + b"]" * 900 + b"}}",
}


def json_bytes(members: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes | None]:
    written = members.map(lambda value: json.dumps(value).encode())
    return written | st.binary(max_size=40) | st.none() | st.sampled_from(list(_DEEP.values()))


keys = st.sampled_from(
    ["connector-", "task-", "commit-", "target-state-", "restart-connector-", "tasks-fencing-", "logger-cluster-", ""]
).flatmap(lambda prefix: st.text(max_size=8).map(lambda rest: (prefix + rest).encode("utf-8", "replace")))
status_keys = st.sampled_from(
    ["status-connector-a", "status-task-a-1", "status-task-a-b", "status-topic-t:connector-a"]
)


@given(st.lists(st.tuples(keys | st.binary(max_size=20) | st.none(), json_bytes(config_members)), max_size=8))
def test_any_records_of_the_config_topic_are_taken_or_passed_over(
    reported: list[tuple[bytes | None, bytes | None]],
) -> None:
    state, changes = ConfigState(), ConfigChanges()
    for key, value in reported:
        record = decode_config(key, value)
        if record is not None:
            state.take(record, changes)
    for stored in state.connectors.values():
        json.dumps([stored.config, stored.task_configs], ensure_ascii=False).encode()  # as REST tells it


@given(status_keys.map(str.encode) | st.binary(max_size=20) | st.none(), json_bytes(status_members))
def test_any_record_of_the_status_topic_is_taken_or_passed_over(key: bytes | None, value: bytes | None) -> None:
    record = decode_status(key, value)
    if record is not None:
        json.dumps(record, ensure_ascii=False).encode()


offset_keys = st.tuples(
    st.just("C") | values,
    st.fixed_dictionaries({"cluster": st.just("A") | values, "partition": values, "topic": st.just("t") | values}),
)


@given(json_bytes(offset_keys), json_bytes(st.fixed_dictionaries({"offset": values})), json_bytes(values))
def test_any_record_of_progress_is_ours_or_passed_over(
    key: bytes | None, value: bytes | None, notes: bytes | None
) -> None:
    decode_any_key(key)
    found = decode("C", "A", key, value, [("heliograph", notes)])
    if found is not None and found[1] is not None:
        assert -1 <= found[1].offset < 2**63 - 1
        assert 0 <= found[0].partition < 2**31


offsets = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 1000)
texts = st.binary(max_size=8).map(lambda data: struct.pack(">h", len(data)) + data)
partitions = st.integers(-(2**31), 2**31 - 1).map(struct.Struct(">i").pack)
sync_keys = st.builds(bytes.__add__, texts, partitions) | st.just(b"\0\1t\0\0\0\0") | st.binary(max_size=12)
sync_values = st.builds(struct.Struct(">qq").pack, offsets, offsets) | st.binary(max_size=20)
runs = st.lists(st.builds(struct.Struct(">qqq").pack, offsets, offsets, offsets), max_size=6).map(b"".join)


@given(st.lists(st.tuples(sync_keys, sync_values, st.none() | runs | st.binary(max_size=50)), max_size=12), offsets)
def test_any_offset_syncs_translate_to_an_offset_that_can_be_written(
    reported: list[tuple[bytes, bytes, bytes | None]], position: int
) -> None:
    known, tps = OffsetMap(), set()
    for key, value, packed in reported:
        sync = decode_offset_sync(key, value, [(RUNS_HEADER, packed)])
        if sync is not None:
            known.take(sync)
            tps.add(sync.tp)
    for tp in tps:
        translated = known.translate(tp, position)
        assert translated is None or -1 <= translated < 2**63
        known.upstream_of(tp, position)


@given(st.lists(st.tuples(st.builds(bytes.__add__, texts, sync_keys), st.binary(max_size=40)), max_size=6))
def test_any_checkpoints_and_heartbeats_are_read_or_passed_over(reported: list[tuple[bytes, bytes]]) -> None:
    decoded = [decode_checkpoint(key, b"\0\0" + value) for key, value in reported]
    for checkpoint in latest_checkpoints(c for c in decoded if c is not None).values():
        for one in checkpoint.values():
            encode_checkpoint(one)
    for key, value in reported:
        decode_heartbeat(key, value)


# --- batches of small topics --------------------------------------------------------------------------------------


def read(data: bytearray, fetch_offset: int = 0) -> list[tuple[int, Record]]:
    prepared = prepare(memoryview(data), fetch_offset, (), AS_THEY_ARE)
    return [
        (r.offset, Record(r.key, r.value, tuple(r.headers), 0)) for piece in prepared.pieces for r in records_of(piece)
    ]


@given(plain_logs())
def test_the_records_of_any_log_are_what_a_consumer_sees(log: list[PlainBatch]) -> None:
    visible = [(offset, r) for batch in log for offset, r in batch.visible()]
    assert read(bytes_of(log)) == [(offset, Record(r.key, r.value, r.headers, 0)) for offset, r in visible]


@given(st.lists(st.tuples(st.integers(57, 400), st.integers(0, 255)), min_size=1, max_size=4), st.integers(1, 4))
def test_nonsense_with_a_right_checksum_is_read_or_refused(changes: list[tuple[int, int]], count: int) -> None:
    data = encode([Record(b"k", b"v" * n, (("h", b"x"), ("i", None)), 1) for n in range(count)])
    for at, byte in changes:
        if at < len(data):
            data[at] = byte
    try:
        read(sealed(data))
    except CorruptBatchError as error:
        assert str(error)


def bomb(codec: int, size: int, count: int = 1) -> bytearray:
    """A batch whose records are zeros, so that it is a thousand times smaller than what it holds."""
    data = encode([Record(None, b"", (), 1)])[:61] + compress(codec, memoryview(bytes(size)))
    data[8:12] = struct.pack(">i", len(data) - 12)
    data[22] = codec
    data[23:27], data[57:61] = struct.pack(">i", count - 1), struct.pack(">i", count)
    return sealed(data)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_is_refused_before_its_memory_is_taken(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_reader, "MAX_BATCH_BYTES", 1 << 20)
    data = bomb(codec, 32 << 20)
    tracemalloc.start()
    with pytest.raises(CorruptBatchError, match="allowed"):
        read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_count_that_cannot_be_true_takes_no_memory_when_prints_are_taken(codec: int) -> None:
    data = bomb(codec, 100, count=2**31 - 1)
    found = fingerprints(memoryview(data), 0)
    assert (len(found.prints), found.is_sound) == (0, False)


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_a_small_topic_is_read_with_every_codec_and_a_damaged_one_is_one_sentence(codec: int) -> None:
    records = {n: Record(b"k%d" % n, b"v", (("h", None),), 1) for n in range(3)}
    with ScriptedCluster(topics={"t": 1}) as brokers:
        log = brokers.logs["t", 0]
        log.put(PlainBatch(records, 2, codec=codec).encode())
        admin = Admin("A", brokers.bootstrap, Security(), "test", timeout_s=30)
        assert [(r.offset, r.key) for r in read_topic(admin, "t")] == [(0, b"k0"), (1, b"k1"), (2, b"k2")]
        damaged = PlainBatch(records, 2, codec=codec).encode()
        damaged[-1] ^= 1
        log.put(damaged)
        with pytest.raises(ClusterError, match=r"t-0 on 'A' cannot be read at offset 3: its checksum"):
            list(read_topic(admin, "t"))
        admin.close()


def test_progress_beyond_what_can_be_read_on_is_passed_over() -> None:
    key = b'["C",{"cluster":"A","partition":3,"topic":"t"}]'
    assert decode("C", "A", key, b'{"offset":-1}') is not None
    for value in (b'{"offset":9223372036854775807}', b'{"offset":-2}', b'{"offset":"7"}', b'{"offset":1e400}'):
        assert decode("C", "A", key, value) is None
    assert decode("C", "A", key, None) == (TopicPartition("t", 3), None)

"""MM2's own records, and keys of progress, against bytes that Kafka 4.3.1's classes wrote."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.model import Checkpoint, Heartbeat, OffsetRun, OffsetSync, TopicPartition
from heliograph.wire.records.connect_offsets import encode_key
from heliograph.wire.records.mirror_records import (
    decode_checkpoint,
    decode_heartbeat,
    decode_offset_sync,
    encode_checkpoint,
    encode_checkpoint_headers,
    encode_heartbeat,
    encode_offset_sync,
    encode_runs,
)

_OFFSETS = st.integers(-(2**63), 2**63 - 1)
_POSITIONS = st.integers(0, 2**61)
_NAMES = st.text(st.characters(codec="utf-8"), max_size=40)
_TPS = st.builds(TopicPartition, _NAMES, st.integers(0, 2**31 - 1))


def test_an_offset_sync_has_javas_bytes() -> None:
    sync = OffsetSync(TopicPartition("topic1", 3), 1234567890123, 42)
    assert [part.hex() for part in encode_offset_sync(sync)] == [
        "0006746f7069633100000003",
        "0000011f71fb04cb000000000000002a",
    ]


def test_a_checkpoint_has_javas_bytes() -> None:
    assert [
        part.hex() for part in encode_checkpoint(Checkpoint("group-1", TopicPartition("A.topic1", 3), 100, 95, "meta"))
    ] == [
        "000767726f75702d310008412e746f7069633100000003",
        "00000000000000000064000000000000005f00046d657461",
    ]
    assert [part.hex() for part in encode_checkpoint(Checkpoint("g", TopicPartition("é", 0), 1, 2))] == [
        "0001670002c3a900000000",
        "0000000000000000000100000000000000020000",
    ]


def test_a_heartbeat_has_javas_bytes() -> None:
    assert [part.hex() for part in encode_heartbeat(Heartbeat("A", "B", 1700000000123))] == [
        "000141000142",
        "00000000018bcfe5687b",
    ]


def test_a_key_of_progress_has_javas_escapes() -> None:
    alias = 'a"\\u001f\x1f\té😀'
    assert encode_key("MirrorSourceConnector", alias, TopicPartition("t", 3)) == (
        b'["MirrorSourceConnector",{"cluster":"a\\"\\\\u001f\\u001F\\t\xc3\xa9\\uD83D\\uDE00","partition":3,"topic":"t"}]'
    )


@given(_TPS, _POSITIONS, _POSITIONS, st.lists(st.builds(OffsetRun, _POSITIONS, _POSITIONS, st.integers(1, 2**61))))
def test_offset_sync_serde(tp: TopicPartition, upstream: int, downstream: int, runs: list[OffsetRun]) -> None:
    sync = OffsetSync(tp, upstream, downstream, tuple(runs))
    assert (
        decode_offset_sync(
            *encode_offset_sync(sync), [("other", b"x"), encode_runs(array("q", [n for run in runs for n in run]))]
        )
        == sync
    )
    assert decode_offset_sync(*encode_offset_sync(sync)) == sync._replace(runs=None)


@pytest.mark.parametrize(("upstream", "downstream"), [(-1, 0), (0, -1), (2**63 - 1, 0), (0, 2**63 - 1)])
def test_a_sync_of_offsets_that_no_group_can_go_on_behind_is_passed_over(upstream: int, downstream: int) -> None:
    assert decode_offset_sync(*encode_offset_sync(OffsetSync(TopicPartition("t", 0), upstream, downstream))) is None


@pytest.mark.parametrize("run", [(-1, 0, 1), (0, -1, 1), (0, 0, 0), (0, 0, -5), (2**62, 0, 2**62), (0, 2**62, 2**62)])
def test_runs_that_cannot_be_are_passed_over_and_their_sync_is_not(run: tuple[int, int, int]) -> None:
    sync = OffsetSync(TopicPartition("t", 0), 1, 2)
    reported = decode_offset_sync(*encode_offset_sync(sync), [encode_runs(array("q", [0, 0, 1, *run]))])
    assert reported == sync._replace(runs=None)


@given(
    st.builds(
        Checkpoint,
        *(_NAMES, _TPS, _OFFSETS, _OFFSETS, _NAMES),
        st.none() | st.lists(_OFFSETS, max_size=9).map(tuple),
        st.none() | st.uuids(),
    )
)
def test_checkpoint_serde(checkpoint: Checkpoint) -> None:
    headers = encode_checkpoint_headers(checkpoint)
    assert decode_checkpoint(*encode_checkpoint(checkpoint), headers) == checkpoint


@given(st.builds(Heartbeat, _NAMES, _NAMES, _OFFSETS))
def test_heartbeat_serde(heartbeat: Heartbeat) -> None:
    assert decode_heartbeat(*encode_heartbeat(heartbeat)) == heartbeat


@given(st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_other_bytes_are_passed_over(key: bytes | None, value: bytes | None) -> None:
    for decode in (decode_offset_sync, decode_checkpoint, decode_heartbeat):
        decode(key, value)


def test_a_record_cut_short_is_none() -> None:
    key, value = encode_checkpoint(Checkpoint("g", TopicPartition("t", 0), 1, 2, "m"))
    assert decode_checkpoint(key[:-1], value) is None
    assert decode_checkpoint(key, value[:-1]) is None
    assert decode_checkpoint(key, None) is None

"""Our reader of Produce responses says what kafka-python's says of the same bytes, and refuses what is none."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceResponse

from heliograph.kafka.net.response_decoder import decode_response
from heliograph.model import TopicPartition
from heliograph.wire.messages.fetch_response import MalformedResponseError
from heliograph.wire.messages.produce_messages import (
    MAX_VERSION,
    MIN_VERSION,
    PartitionProduceResponse,
    ProduceResponseData,
    decode_produce_response,
)
from tests.support.brokers.hostile import damaged

Topic = ProduceResponse.TopicProduceResponse
Partition = Topic.PartitionProduceResponse
every_version = pytest.mark.parametrize("version", range(MIN_VERSION, MAX_VERSION + 1))
int16s, int32s, int64s = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (16, 32, 64))
messages = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@st.composite
def partitions(draw: st.DrawFn, version: int) -> Any:
    fields: dict[str, Any] = {"index": draw(int32s), "error_code": draw(int16s), "base_offset": draw(int64s)}
    fields["log_append_time_ms"] = draw(int64s)
    if version >= 5:
        fields["log_start_offset"] = draw(int64s)
    is_plain = draw(st.booleans())
    if version >= 8:
        errors = st.builds(
            Partition.BatchIndexAndErrorMessage,
            version=st.just(version),
            batch_index=int32s,
            batch_index_error_message=messages,
        )
        fields["record_errors"] = [] if is_plain else draw(st.lists(errors, max_size=3))
        fields["error_message"] = None if is_plain else draw(messages)
    if version >= 10 and not is_plain:
        fields["current_leader"] = Partition.LeaderIdAndEpoch(
            version=version, leader_id=draw(int32s), leader_epoch=draw(int32s)
        )
    return Partition(version=version, **fields)


@st.composite
def answers(draw: st.DrawFn, version: int) -> bytes:
    """The bytes of an answer, as kafka-python writes them."""
    names = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
    topics = [
        Topic(version=version, name=name, partition_responses=draw(st.lists(partitions(version), max_size=4)))
        for name in draw(st.lists(names, max_size=3))
    ]
    fields: dict[str, Any] = {"responses": topics, "throttle_time_ms": draw(int32s)}
    if version >= 10 and draw(st.booleans()):
        fields["node_endpoints"] = [
            ProduceResponse.NodeEndpoint(
                version=version, node_id=3, host="b3.example.com", port=9092, rack=draw(messages)
            )
        ]
    return bytes(ProduceResponse(version=version, **fields).encode(version=version))


def as_generated(body: bytes, version: int) -> ProduceResponseData:
    theirs = decode_response(ProduceResponse, memoryview(body), version)
    return ProduceResponseData(
        theirs.throttle_time_ms,
        [
            PartitionProduceResponse(TopicPartition(topic.name, data.index), data.error_code, data.base_offset)
            for topic in theirs.responses
            for data in topic.partition_responses
        ],
    )


@every_version
@given(data=st.data())
def test_a_produce_response_is_read_as_the_generated_decoder_reads_it(version: int, data: st.DataObject) -> None:
    body = data.draw(answers(version))
    assert decode_produce_response(memoryview(bytearray(body)), version) == as_generated(body, version)


@every_version
@given(data=st.data())
def test_a_produce_response_cut_anywhere_is_refused(version: int, data: st.DataObject) -> None:
    body = data.draw(answers(version))
    for cut in {0, len(body) - 1, *data.draw(st.lists(st.integers(0, len(body) - 1), max_size=5))}:
        with pytest.raises(MalformedResponseError):
            decode_produce_response(memoryview(body)[:cut], version)


@every_version
@given(data=st.data())
def test_a_damaged_produce_response_is_refused_or_read_as_the_generated_decoder_reads_it(
    version: int, data: st.DataObject
) -> None:
    body = data.draw(answers(version).flatmap(damaged))
    theirs = ours = None
    with suppress(MalformedResponseError):
        theirs = as_generated(body, version)
    with suppress(MalformedResponseError):
        ours = decode_produce_response(memoryview(body), version)
    # Ours passes over messages and tags by their sizes, so it may read an answer that is damaged only there.
    assert theirs in (None, ours)


def test_tags_that_nobody_knows_are_passed_over() -> None:
    tags = b"\2" + b"\0\x03abc" + b"\xff\x01\x02xy"  # two of them, of three and of two bytes
    partition = b"\0\0\0\x07" + b"\0\x06" + b"\0\0\0\0\0\0\0\x2a" + b"\xff" * 16
    error = b"\0\0\0\1" + b"\0" + tags  # of one record, without a message
    body = b"\2" + b"\2t" + b"\2" + partition + b"\2" + error + b"\3no" + tags + tags + b"\0\0\0\x05" + tags
    expected = ProduceResponseData(5, [PartitionProduceResponse(TopicPartition("t", 7), 6, 42)])
    assert decode_produce_response(memoryview(body), 12) == expected


def test_a_topic_without_a_name_is_refused() -> None:
    with pytest.raises(MalformedResponseError):
        decode_produce_response(memoryview(b"\2" + b"\0" + b"\1\0" + b"\0\0\0\0\0"), 12)
    with pytest.raises(MalformedResponseError):
        decode_produce_response(memoryview(b"\0\0\0\1" + b"\xff\xff" + b"\0\0\0\0" + b"\0\0\0\0"), 8)

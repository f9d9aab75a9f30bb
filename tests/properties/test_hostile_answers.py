"""Any bytes as a broker's answer: an answer whose fields are there, or one error; never minutes, never gigabytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import (
    CreateAclsResponse,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DescribeAclsResponse,
    DescribeConfigsResponse,
    DescribeGroupsResponse,
    IncrementalAlterConfigsResponse,
    ListGroupsResponse,
)
from kafka.protocol.consumer import (
    HeartbeatResponse,
    JoinGroupResponse,
    ListOffsetsResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorResponse, MetadataResponse
from kafka.protocol.producer import (
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
    ProduceResponse,
)
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from heliograph.kafka.admin.share_groups import AlterShareGroupOffsetsResponse, DescribeShareGroupOffsetsResponse
from heliograph.kafka.net.response_decoder import decode_response
from heliograph.wire.messages import fetch_response, response_guard
from heliograph.wire.messages.fetch_response import MalformedResponseError, decode_fetch_response
from heliograph.wire.messages.produce_messages import decode_produce_response
from heliograph.wire.messages.response_guard import ResponseGuard
from tests.support.brokers.hostile import answers, damaged

ANSWERS: list[Any] = [
    ApiVersionsResponse, MetadataResponse, FindCoordinatorResponse, ListOffsetsResponse, ProduceResponse,
    InitProducerIdResponse, AddPartitionsToTxnResponse, EndTxnResponse, SaslHandshakeResponse,
    SaslAuthenticateResponse, CreateTopicsResponse, CreatePartitionsResponse, DescribeConfigsResponse,
    IncrementalAlterConfigsResponse, CreateAclsResponse, DescribeAclsResponse, ListGroupsResponse,
    DescribeGroupsResponse, OffsetFetchResponse, OffsetCommitResponse, JoinGroupResponse, SyncGroupResponse,
    HeartbeatResponse, DescribeShareGroupOffsetsResponse, AlterShareGroupOffsetsResponse,
]  # fmt: skip
MESSAGES = [(response, version) for response in ANSWERS for version in range(response.max_version + 1)]
messages = st.sampled_from(MESSAGES)
by_name = pytest.mark.parametrize("response", ANSWERS, ids=lambda response: str(response.name))


@given(st.data())
def test_what_a_broker_may_say_is_let_through(data: st.DataObject) -> None:
    for response, version in data.draw(st.lists(messages, min_size=3, max_size=3)):
        body = data.draw(answers(response, version))
        if response is ApiVersionsResponse:
            body = b"\0\0" + body[2:]  # an error would be told in the oldest format, whatever was asked for
        assert bytes(decode_response(response, memoryview(body), version).encode()) == body


@given(st.data())
def test_any_damage_is_read_or_refused(data: st.DataObject) -> None:
    for response, version in data.draw(st.lists(messages, min_size=3, max_size=3)):
        body = data.draw(answers(response, version).flatmap(damaged))
        with suppress(MalformedResponseError):
            decode_response(response, memoryview(body), version)


@given(messages, st.binary(max_size=200))
def test_noise_is_read_or_refused(message: tuple[Any, int], noise: bytes) -> None:
    response, version = message
    with suppress(MalformedResponseError):
        decode_response(response, memoryview(noise), version)


@by_name
@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_a_long_answer_of_one_byte_costs_neither_time_nor_memory(response: Any, byte: int) -> None:
    body = memoryview(bytes([byte]) * (1 << 19))
    for version in {0, response.max_version}:
        assert peak_bytes(lambda version=version: decode_response(response, body, version)) < 64 << 20


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_a_long_produce_answer_of_one_byte_costs_neither_time_nor_memory(byte: int) -> None:
    body = memoryview(bytes([byte]) * (1 << 19))
    for version in (3, 8, 12):
        assert peak_bytes(lambda version=version: decode_produce_response(body, version)) < 64 << 20


def peak_bytes(decode: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        with suppress(MalformedResponseError):
            decode()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(response: Any, version: int, body: bytes) -> str:
    with pytest.raises(MalformedResponseError) as caught:
        ResponseGuard(response.json, version).check(memoryview(body))
    return str(caught.value)


def test_what_cannot_be_true_is_refused_in_a_sentence() -> None:
    two_billion, null = b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"
    assert "more elements than fit" in refused(ListOffsetsResponse, 1, two_billion)
    assert "null that must not be" in refused(ListOffsetsResponse, 1, null)
    assert "null that must not be" in refused(ListOffsetsResponse, 1, b"\0\0\0\1\xff\xff\0\0\0\0")
    assert "ends too early" in refused(ListOffsetsResponse, 1, b"\0\0")
    assert "longer than the response" in refused(ListOffsetsResponse, 1, b"\0\0\0\1\x7f\xff\0\0\0\0")
    assert "does not end" in refused(ApiVersionsResponse, 3, b"\0\0" + b"\xff" * 100)


def test_a_null_that_may_be_is_let_through() -> None:
    answer = decode_response(ApiVersionsResponse, memoryview(b"\0\0\1\0\0\0\0\0"), 3)
    assert answer.api_keys == []
    found = decode_response(FindCoordinatorResponse, memoryview(b"\0\0\0\0\0\0\xff\xff\0\0\0\1\0\0\0\0\0\1"), 1)
    assert found.error_message is None


def test_a_structure_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_guard, "MAX_STRUCTURES", 10)
    keys = b"\0\1\0\0\0\1"
    ResponseGuard(ApiVersionsResponse.json, 0).check(memoryview(b"\0\0\0\0\0\x0a" + keys * 10))
    assert "more elements" in refused(ApiVersionsResponse, 0, b"\0\0\0\0\0\x0b" + keys * 11)


def test_tags_that_would_be_copied_for_minutes_are_refused() -> None:
    key = b"\0\1\0\0\0\1" + b"\1\x7f\0"  # one tag that nobody knows, empty
    count = 100_000
    length = bytes([(count + 1) & 0x7F | 0x80, (count + 1) >> 7 & 0x7F | 0x80, (count + 1) >> 14])
    assert "too many tags" in refused(ApiVersionsResponse, 3, b"\0\0" + length + key * count + b"\0\0\0\0\0")


def test_a_tag_of_a_wrong_length_is_refused() -> None:
    body = b"\0\0\1\0\0\0\0" + b"\1\0" + b"\x05" + b"\1\0\0\0\0"  # supported features: none, but in five bytes
    assert "has another length" in refused(ApiVersionsResponse, 3, body)


def test_a_fetch_answer_of_too_many_entries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_response, "MAX_ENTRIES", 100)
    topics = b"\0\0\0\0" + b"\0\0" + b"\0\0\0\0"  # throttle, error, session
    sound = topics + b"\x65" + b"\2t\1\0" * 100 + b"\0"
    assert decode_fetch_response(memoryview(sound), 12).partitions == []
    with pytest.raises(MalformedResponseError, match="longer than the response"):
        decode_fetch_response(memoryview(topics + b"\x66" + b"\2t\1\0" * 101 + b"\0"), 12)


@given(st.integers(4, 12), st.binary(max_size=300))
def test_noise_as_a_fetch_answer_is_read_or_refused(version: int, noise: bytes) -> None:
    with suppress(MalformedResponseError):
        decode_fetch_response(memoryview(bytearray(noise)), version)


def test_a_produce_answer_of_too_many_entries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_response, "MAX_ENTRIES", 100)
    end = b"\0\0\0\0" + b"\0"  # throttle, tags
    assert decode_produce_response(memoryview(b"\x65" + b"\2t\1\0" * 100 + end), 12).partitions == []
    with pytest.raises(MalformedResponseError, match="longer than the response"):
        decode_produce_response(memoryview(b"\x66" + b"\2t\1\0" * 101 + end), 12)


@given(st.integers(3, 12), st.binary(max_size=300))
def test_noise_as_a_produce_answer_is_read_or_refused(version: int, noise: bytes) -> None:
    with suppress(MalformedResponseError):
        decode_produce_response(memoryview(bytearray(noise)), version)

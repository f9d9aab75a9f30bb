"""Our two hand-written messages agree, byte for byte and field for field, with kafka-python's generated ones."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as reference_murmur2
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.producer import ProduceRequest

from heliograph.kafka.topics.compacted_topic import murmur2, partition_for_key
from heliograph.model import SourceOffset, TargetLog, TopicPartition
from heliograph.wire.messages.fetch_response import MalformedResponseError, decode_fetch_response
from heliograph.wire.messages.produce_messages import encode_produce_request
from heliograph.wire.records.connect_offsets import decode, encode_headers, encode_key, encode_value

topics = st.dictionaries(
    st.text(st.sampled_from("abc.-_"), min_size=1, max_size=20),
    st.dictionaries(st.integers(0, 50), st.binary(min_size=1, max_size=300), min_size=1, max_size=4),
    min_size=1,
    max_size=3,
)


@given(st.integers(3, 12), st.integers(0, 2**31 - 1), topics, st.none() | st.just("tx"))
def test_a_produce_request_is_the_generated_encoders(
    version: int, correlation_id: int, data: dict[str, dict[int, bytes]], transactional_id: str | None
) -> None:
    parts = encode_produce_request(
        version, correlation_id, "client", 30_000, {t: list(ps.items()) for t, ps in data.items()}, transactional_id
    )
    topic_class = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        version=version,
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            topic_class(
                name=topic,
                partition_data=[topic_class.PartitionProduceData(index=p, records=b) for p, b in partitions.items()],
            )
            for topic, partitions in data.items()
        ],
    )
    request.with_header(correlation_id, "client")
    assert b"".join(parts) == bytes(request.encode(header=True, framed=True))


def response(version: int, data: dict[str, dict[int, bytes]], *, aborted: bool) -> bytes:
    topic_class = FetchResponse.FetchableTopicResponse
    partition_class = topic_class.PartitionData
    transaction = partition_class.AbortedTransaction(producer_id=7, first_offset=8)
    return bytes(
        FetchResponse(
            version=version,
            throttle_time_ms=3,
            error_code=0,
            session_id=9,
            responses=[
                topic_class(
                    topic=topic,
                    partitions=[
                        partition_class(
                            partition_index=p,
                            error_code=p % 3,
                            high_watermark=100 + p,
                            last_stable_offset=50,
                            log_start_offset=5,
                            aborted_transactions=[transaction] if aborted else None,
                            preferred_read_replica=2,
                            records=records,
                        )
                        for p, records in partitions.items()
                    ],
                )
                for topic, partitions in data.items()
            ],
        ).encode(version=version)
    )


@given(st.integers(4, 12), topics, st.booleans())
def test_a_fetch_response_is_read_as_the_generated_decoder_reads_it(
    version: int,
    data: dict[str, dict[int, bytes]],
    aborted: bool,
) -> None:
    encoded = response(version, data, aborted=aborted)
    ours = decode_fetch_response(memoryview(bytearray(encoded)), version)
    theirs = FetchResponse.decode(encoded, version=version)
    flat = [(t.topic, p) for t in theirs.responses for p in t.partitions]
    assert ours.throttle_time_ms == 3
    assert ours.session_id == (9 if version >= 7 else 0)
    for mine, (topic, their) in zip(ours.partitions, flat, strict=True):
        assert (mine.topic, mine.partition, mine.error_code) == (topic, their.partition_index, their.error_code)
        assert mine.high_watermark == their.high_watermark
        assert mine.log_start_offset == (5 if version >= 5 else -1)
        assert [tuple(a) for a in mine.aborted] == ([(7, 8)] if aborted else [])
        assert mine.records is not None
        assert bytes(mine.records) == bytes(their.records)
        assert not mine.records.readonly


@given(st.integers(4, 12), topics, st.data())
def test_a_cut_or_garbled_fetch_response_is_refused(
    version: int, data: dict[str, dict[int, bytes]], drawn: st.DataObject
) -> None:
    encoded = bytearray(response(version, data, aborted=True))
    cut = drawn.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(MalformedResponseError):
        decode_fetch_response(memoryview(encoded)[:cut], version)
    at = drawn.draw(st.integers(0, len(encoded) - 1))
    encoded[at] = drawn.draw(st.integers(0, 255))
    with suppress(MalformedResponseError):
        decode_fetch_response(memoryview(encoded), version)


@given(st.binary(max_size=64))
def test_murmur2_is_kafkas(data: bytes) -> None:
    assert murmur2(data) == reference_murmur2(data) & 0xFFFFFFFF


def test_progress_is_written_as_connect_writes_it() -> None:
    tp = TopicPartition("topic1", 3)
    key = encode_key("MirrorSourceConnector", "A", tp)
    assert key == b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"topic1"}]'
    assert encode_value(1234) == b'{"offset":1234}'
    assert encode_key("c", "é", tp) == '["c",{"cluster":"é","partition":3,"topic":"topic1"}]'.encode()
    assert 0 <= partition_for_key(key, 25) < 25


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (b'["C",{"cluster":"A","partition":3,"topic":"t"}]', b'{"offset":7}', 7),
        (b'["C",{"cluster":"A","partition":3,"topic":"t"}]', None, None),
    ],
)
def test_progress_of_ours_is_read_back(key: bytes, value: bytes | None, expected: int | None) -> None:
    tp = TopicPartition("t", 3)
    assert decode("C", "A", key, value) == (tp, None if expected is None else SourceOffset(tp, expected))


@pytest.mark.parametrize("log", [TargetLog(UUID(int=6), 3, 4), TargetLog(None, 0, 4, is_exact=False, cut_at=0)])
def test_what_only_we_note_of_progress_is_read_back(log: TargetLog) -> None:
    tp = TopicPartition("t", 3)
    source_offsets = SourceOffset(tp, 7, 9, UUID(int=5), 4, ((2, 0), (5, 6)), log)
    key = encode_key("C", "A", tp)
    assert decode("C", "A", key, encode_value(7), encode_headers(source_offsets)) == (tp, source_offsets)


@pytest.mark.parametrize("epochs", [b"7", b'[["a",1]]', b"[[1]]", b"[[1,-1]]", b"[[1,5],[2,3]]", b"null"])
def test_epochs_that_make_no_sense_are_as_good_as_none(epochs: bytes) -> None:
    tp = TopicPartition("t", 3)
    header = [("heliograph", b'{"epochs":' + epochs + b"}")]
    assert decode("C", "A", encode_key("C", "A", tp), encode_value(7), header) == (tp, SourceOffset(tp, 7))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'["Other",{"cluster":"A","partition":3,"topic":"t"}]', b'{"offset":7}'),
        (b'["C",{"cluster":"B","partition":3,"topic":"t"}]', b'{"offset":7}'),
        (b'["C",{"cluster":"A","partition":-3,"topic":"t"}]', b'{"offset":7}'),
        (b"nonsense", b"{}"),
        (None, b"{}"),
        (b'["C",{"cluster":"A","partition":3,"topic":"t"}]', b"[]"),
        (b'["C",{"cluster":"A"}]', b'{"offset":7}'),
    ],
)
def test_a_record_of_someone_else_is_passed_over(key: bytes | None, value: bytes | None) -> None:
    assert decode("C", "A", key, value) is None

"""A broker that is none, or is broken: each lie ends in one sentence, with everything given back."""

from __future__ import annotations

from typing import Any

import psutil
import pytest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest
from kafka.protocol.producer import ProduceRequest

from heliograph.errors import UnreachableError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.net.buffers import BufferPool
from heliograph.kafka.net.connection import open_connection
from heliograph.kafka.net.response_decoder import MAX_FETCH_RESPONSE_BYTES
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import TopicPartition
from tests.support.brokers.hostile import HostileBroker, api_key_of, correlation_of, framed
from tests.support.brokers.producing import Producing
from tests.support.brokers.scripted_broker import APIS, ScriptedCluster
from tests.unit.kafka.test_fetch_sessions import Fetching

T0 = TopicPartition("t", 0)
HUGE = b"\x7f\xff\xff\xff"

# What is sent in place of an answer, from the request's frame.
LIES = {
    "a length of two gigabytes": lambda _frame: HUGE + b"x" * 100,
    "a negative length": lambda _frame: b"\xff\xff\xff\x00" + b"x" * 100,
    "a length without a body": lambda _frame: b"\0\0\0\4" + b"\0\0\0\1",
    "another correlation id": lambda frame: framed(_other_id(frame) + b"\0" * 60),
    "a frame that is cut off": lambda frame: b"\0\0\1\0" + correlation_of(frame),
    "zeros": lambda frame: framed(correlation_of(frame) + b"\0" * 3),
    "a count of two billion": lambda frame: framed(correlation_of(frame) + b"\0" * 4 + HUGE * 20),
    "noise": lambda frame: framed(correlation_of(frame) + bytes(range(256)) * 4),
    "a greeting of another protocol": lambda _frame: b"HTTP/1.1 400 Bad Request\r\n\r\n",
}
lies = pytest.mark.parametrize("lie", LIES)


def _other_id(frame: bytes) -> bytes:
    return bytes([frame[4] ^ 0x40]) + frame[5:8]


def introduction(frame: bytes) -> bytes:
    """The one honest answer: which APIs there are."""
    keys = [
        ApiVersionsResponse.ApiVersion(api_key=request.API_KEY, min_version=oldest, max_version=newest)
        for request, (_response, oldest, newest) in APIS.items()
    ]
    answer = ApiVersionsResponse(error_code=0, api_keys=keys, finalized_features_epoch=1, finalized_features=[])
    version = int.from_bytes(frame[2:4], "big")
    return framed(correlation_of(frame) + bytes(answer.encode(version=version)))


class Lie:
    """An answer of the script that is sent as it is."""

    API_VERSION = 0

    def __init__(self, name: str) -> None:
        self._make = LIES[name]
        self._frame = b""

    def with_header(self, correlation_id: int) -> None:
        self._frame = bytes(4) + correlation_id.to_bytes(4, "big")

    def encode(self, **_how: Any) -> bytes:
        return self._make(self._frame)


@lies
def test_a_listener_that_sends_nonsense_at_once_is_no_broker(lie: str) -> None:
    with HostileBroker(LIES[lie]) as broker, pytest.raises(UnreachableError) as caught:
        open_connection(broker.address, Security(), "test", 0.3)
    assert str(broker.address) in str(caught.value)
    assert "\n" not in str(caught.value)


@lies
def test_a_lie_to_the_driver_is_one_sentence(lie: str) -> None:
    def speak(frame: bytes) -> bytes:
        return introduction(frame) if api_key_of(frame) == ApiVersionsRequest.API_KEY else LIES[lie](frame)

    with HostileBroker(speak) as broker:
        admin = Admin("A", (broker.address,), Security(), "test", timeout_s=0.2)
        for ask in (admin.view, lambda: admin.end_offsets([T0])):
            with pytest.raises(UnreachableError) as caught:
                ask()
            assert str(broker.address) in str(caught.value)
        admin.close()
    assert broker.connections <= 4  # each is met with one more try, not with a storm of them


def test_a_leader_that_is_no_broker_is_waited_for_and_reported() -> None:
    with ScriptedCluster(topics={"t": 1}) as brokers:
        brokers.leaders["t", 0] = 77
        admin = Admin("A", brokers.bootstrap, Security(), "test", timeout_s=60)
        assert admin.known_offsets([T0], -1) == {}
        brokers.leaders["t", 0] = 1
        assert admin.list_offsets([T0], -1) == {T0: 0}
        admin.close()


@lies
@pytest.mark.parametrize("request_class", [MetadataRequest, ListOffsetsRequest, FetchRequest])
def test_a_lie_to_a_fetcher_costs_a_connection_and_nothing_else(lie: str, request_class: Any) -> None:
    with ScriptedCluster(topics={"t": 1}) as brokers, Fetching(brokers, request_timeout_s=0.2) as fetching:
        brokers.script(request_class, lambda _seen: Lie(lie))
        fetching.put(0, 3)
        fetching.fetcher.add(T0, 0)

        def has_read() -> bool:
            fetching.network.maintain()
            return sum(count for _tp, _at, count in fetching.taken) >= 6

        fetching.until(has_read)
        assert [at for _tp, at, _count in fetching.taken] == sorted({at for _tp, at, _count in fetching.taken})
        assert fetching.network._pool.held_bytes == 0
        assert fetching.failed == []


@lies
def test_a_lie_to_a_producer_writes_nothing_twice(lie: str) -> None:
    with ScriptedCluster(topics={"t": 1}) as brokers, Producing(brokers, request_timeout_s=0.2) as producing:
        brokers.script(ProduceRequest, lambda seen: (brokers.ordinary(seen), Lie(lie))[1])
        producing.send(0, 1, 2)

        def is_acked() -> bool:
            producing.network.maintain()
            return len(producing.acked) >= 3

        producing.until(is_acked)
        assert producing.in_log() == [0, 2, 4]
        assert producing.failed == []


def test_a_length_that_is_never_sent_takes_no_memory() -> None:
    pool = BufferPool(1 << 20)
    before = psutil.Process().memory_info().rss
    buffers = [pool.take(MAX_FETCH_RESPONSE_BYTES) for _ in range(4)]
    assert psutil.Process().memory_info().rss - before < 64 << 20
    assert pool.held_bytes == sum(len(buffer.view) for buffer in buffers)

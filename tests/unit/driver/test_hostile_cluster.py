"""A cluster that says more than it was asked: neither its filter, nor files, threads and memory of the process give."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)

from heliograph.driver.steps.issues import LogOnce, by_reason, enumerated
from heliograph.errors import UnreachableError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.error_codes import refusal_of
from heliograph.kafka.net.connection import open_connection
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import Address, Checkpoint, TopicPartition
from heliograph.wire.records.mirror_records import decode_checkpoint, encode_checkpoint
from tests.support.brokers.hostile import HostileBroker, correlation_of, framed

VERSIONS = {
    ApiVersionsRequest: 3,
    MetadataRequest: 8,
    FindCoordinatorRequest: 4,
    ListGroupsRequest: 4,
    OffsetFetchRequest: 8,
}
BY_KEY = {request.API_KEY: request for request in VERSIONS}
UNASKED = "excluded"


class Cluster:
    """Answers of a cluster that names a thousand brokers, all at one port, and a group that nobody asked about."""

    def __init__(self) -> None:
        self.port = 0
        self.brokers = ["127.0.0.1"]

    def speak(self, frame: bytes) -> bytes:
        request_class = BY_KEY[int.from_bytes(frame[:2], "big")]
        version = int.from_bytes(frame[2:4], "big")
        answer = self._answer(request_class.decode(frame, version=version, header=True))
        body = bytes(answer.encode(version=version))
        is_flexible = type(answer).flexible_version_q(version) and request_class is not ApiVersionsRequest
        return framed(correlation_of(frame) + (b"\0" if is_flexible else b"") + body)

    def _answer(self, request: Any) -> Any:
        if isinstance(request, ApiVersionsRequest):
            api = ApiVersionsResponse.ApiVersion
            keys = [api(api_key=each.API_KEY, min_version=0, max_version=newest) for each, newest in VERSIONS.items()]
            return ApiVersionsResponse(error_code=0, api_keys=keys)
        if isinstance(request, MetadataRequest):
            broker = MetadataResponse.MetadataResponseBroker
            brokers = [
                broker(node_id=n, host=host, port=self.port, rack=None) for n, host in enumerate(self.brokers, 1)
            ]
            return MetadataResponse(brokers=brokers, cluster_id="hostile", controller_id=1, topics=[])
        if isinstance(request, ListGroupsRequest):
            return ListGroupsResponse(error_code=0, groups=[])
        if isinstance(request, FindCoordinatorRequest):
            each = FindCoordinatorResponse.Coordinator
            places = {"node_id": 1, "host": "127.0.0.1", "port": self.port, "error_code": 0, "error_message": None}
            keys = (*request.coordinator_keys, UNASKED, *(f"group-{n}" for n in range(1000)))
            return FindCoordinatorResponse(coordinators=[each(key=key, **places) for key in keys])
        group = OffsetFetchResponse.OffsetFetchResponseGroup
        asked = [each.group_id for each in request.groups]
        return OffsetFetchResponse(groups=[group(group_id=name, topics=[], error_code=0) for name in (*asked, UNASKED)])


def admin_at(address: Address) -> Admin:
    return Admin("A", (address,), Security(), "test", timeout_s=10)


def test_a_cluster_of_a_thousand_brokers_does_not_take_all_files() -> None:
    cluster = Cluster()
    with HostileBroker(cluster.speak, host="0.0.0.0") as broker:  # noqa: S104  (all of 127.0.0.0/8)
        cluster.port = broker.address.port
        cluster.brokers = [f"127.0.{n >> 8}.{n & 255}" for n in range(1, 301)]
        admin = admin_at(broker.address)
        ours = [(each, broker.address.port) for each in cluster.brokers]
        assert GroupAdmin(admin).groups_answered().issue is None
        places = [tuple(each.raddr) for each in psutil.Process().net_connections("tcp") if each.raddr]
        assert sum(place in ours for place in places if place[1] == broker.address.port) <= 64
        assert broker.connections >= 300
        admin.close()


def test_groups_that_were_not_asked_about_are_neither_told_nor_remembered() -> None:
    cluster = Cluster()
    with HostileBroker(cluster.speak) as broker:
        cluster.port = broker.address.port
        admin = admin_at(broker.address)
        groups = GroupAdmin(admin)
        assert groups.committed_answered(["orders"]).of == {"orders": {}}
        assert set(groups._coordinators._known) == {"orders"}
        admin.close()


@pytest.mark.parametrize("host", ["x" * 64 + ".com", "..", "a\0b"])
def test_a_broker_without_an_address_is_one_that_cannot_be_reached(host: str) -> None:
    with pytest.raises(UnreachableError, match="cannot be reached"):
        open_connection(Address(host, 9092), Security(), "test", 1)


def test_an_answer_that_comes_byte_by_byte_ends_in_its_time() -> None:
    cluster = Cluster()
    with HostileBroker(lambda frame: cluster.speak(frame).ljust(600, b"\0"), pause_s=0.1) as broker:
        began = time.monotonic()
        with pytest.raises(UnreachableError):
            open_connection(broker.address, Security(), "test", 1)
        assert time.monotonic() - began < 20  # the whole answer would take a minute


def test_what_a_cluster_says_is_cut_where_it_is_logged() -> None:
    answer = SimpleNamespace(error_code=40, error_message="x" * 100_000)
    assert len(str(refusal_of(answer))) < 1000
    assert len(enumerated(["y" * 100_000] * 9)) < 2000
    sentences = by_reason("{names} failed", {f"topic-{n}": f"reason {n}" for n in range(5000)})
    assert len(sentences) == 21
    assert sentences[-1] == "others failed: for 4980 more reasons"
    once = LogOnce(logging.getLogger("test"))
    for n in range(5000):
        once.report(logging.WARNING, f"sentence {n}")
    assert len(once._reported) == 1000


def test_metadata_that_no_checkpoint_has_room_for_is_left_out() -> None:
    longest = Checkpoint("g", TopicPartition("t", 0), 1, 1, "x" * 32_767)
    assert decode_checkpoint(*encode_checkpoint(longest)) == longest
    too_long = longest._replace(metadata="x" * 32_768)
    assert decode_checkpoint(*encode_checkpoint(too_long)) == longest._replace(metadata="")

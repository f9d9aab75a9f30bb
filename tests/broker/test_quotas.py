"""Limits on bytes per second: the brokers' own quotas are honoured and told, and ours is kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest, AlterClientQuotasResponse

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.task_report import TaskReport
from heliograph.kafka.request_options import FetchLimits
from heliograph.model import Address
from heliograph.wire.batches.forward import warm_up
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import Copy, wait_for

pytestmark = pytest.mark.broker

_Entry = AlterClientQuotasRequest.EntryData


@contextmanager
def quota(cluster: EmbeddedCluster, client_id: str, key: str, bytes_per_s: float) -> Iterator[None]:
    set_quota(cluster, client_id, _Entry.OpData(key=key, value=bytes_per_s, remove=False))
    try:
        yield
    finally:
        set_quota(cluster, client_id, _Entry.OpData(key=key, value=0.0, remove=True))


def set_quota(cluster: EmbeddedCluster, client_id: str, change: object) -> None:
    entity = [_Entry.EntityData(entity_type="client-id", entity_name=client_id)]
    admin = admin_of(cluster)
    answer = admin.ask_at(
        Address("127.0.0.1", cluster.brokers[0].port),
        AlterClientQuotasRequest,
        AlterClientQuotasResponse,
        lambda version: AlterClientQuotasRequest(
            version=version, entries=[_Entry(entity=entity, ops=[change])], validate_only=False
        ),
        newest=1,
    )
    admin.close()
    assert [entry.error_code for entry in answer.entries] == [0]


def fill(source: EmbeddedCluster, topic: str, megabytes: int) -> None:
    make_topic(source, topic)
    write_megabytes(source, topic, megabytes)


def write_megabytes(source: EmbeddedCluster, topic: str, megabytes: int) -> None:
    records = ({"value": b"%06d" % n * 166, "partition": n % 2} for n in range(megabytes * 1000))
    # A broker answers with a whole batch at least, so the batches are small beside the limits of these tests.
    write(source, topic, records, **{"batch.size": 16_384})


@pytest.mark.parametrize("side", ["consumer", "producer"])
def test_a_quota_slows_the_copy_and_is_told(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, side: str
) -> None:
    fill(source, topic, 2)
    copy = Copy(source, target, alias, topic)
    limited = source if side == "consumer" else target
    reports: list[TaskReport] = []

    def is_throttled() -> bool:
        reports.append(copy.once(limits=FetchLimits(max_bytes=512 << 10, partition_max_bytes=256 << 10)))
        if not reports[-1].counts.throttled_ms:
            write_megabytes(source, topic, 2)
        return reports[-1].counts.throttled_ms > 0

    with quota(limited, f"heliograph-{alias}-0", f"{side}_byte_rate", 500_000.0):
        wait_for(is_throttled)  # the controller answers before the broker knows of the quota
    assert [row.failure for report in reports for row in report.partitions] == [None, None] * len(reports)
    assert read(target, copy.remote, 2) == read(source, topic, 2)


def test_our_own_limit_is_kept(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> None:
    warm_up()  # compiling must not count as copying
    fill(source, topic, 3)
    copy = Copy(source, target, alias, topic)
    began = time.monotonic()
    report = copy.once(bytes_per_s=1_000_000)
    took_s = time.monotonic() - began
    copied = sum(row.bytes for row in report.partitions)
    assert copied > 2_900_000
    # A quarter of a second may be saved up, and the last answer may overdraw by an eighth and a batch.
    assert took_s > copied / 1_000_000 - 0.25 - 0.125 - 0.02
    assert read(target, copy.remote, 2) == read(source, topic, 2)

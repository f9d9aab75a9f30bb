"""Builds batches of our own records: source offsets, offset syncs, checkpoints, heartbeats. They are few and small."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafka.record.default_records import DefaultRecordBatchBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence


_BATCH_BYTES = 512 * 1024


class OwnRecord(NamedTuple):
    """A record to write."""

    key: bytes
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


class OwnBatch(NamedTuple):
    """A batch without a producer's identity, as a producer that is not idempotent writes it."""

    view: memoryview
    record_count: int


def build_batches(records: Sequence[OwnRecord], timestamp_ms: int) -> list[OwnBatch]:
    """Return the records in order, in as many batches as they need."""
    batches: list[OwnBatch] = []
    at = 0
    while at < len(records):
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=False,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=_BATCH_BYTES,
        )
        first = at
        while at < len(records):
            record = records[at]
            headers = list(record.headers)
            appended = builder.append(
                at - first, timestamp=timestamp_ms, key=record.key, value=record.value, headers=headers
            )
            if appended is None:
                break
            at += 1
        batches.append(OwnBatch(memoryview(bytearray(builder.build())), at - first))
    return batches

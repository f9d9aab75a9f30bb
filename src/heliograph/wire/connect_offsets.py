"""Progress of a source partition as Connect keeps it in `mm2-offsets.A.internal`, byte for byte.

Connect looks offsets up by the key's *bytes* and Java's HashMap gives the members their order, so the order below is
part of the format: with another one, Java MM2 would start from the beginning. The value is the offset of the last
replicated record; replication goes on at +1. Keys go to partitions by Kafka's default partitioner (murmur2), or
compaction could not work. What only we note stands in a record header, which Connect does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from heliograph.model import SourceOffset, TopicPartition
from heliograph.wire.connect_json import dump_json, load_json
from heliograph.wire.leader_epochs import MOST_EPOCHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HEADER = "heliograph"
_NONE_YET, _LARGEST_OFFSET = -1, 2**63 - 2  # reading goes on one behind it
_LARGEST_EPOCH = 2**31 - 1
_LARGEST_PARTITION = 2**31 - 1


def encode_key(connector: str, source: str, tp: TopicPartition) -> bytes:
    """`["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t"}]`."""
    return dump_json([connector, {"cluster": source, "partition": tp.partition, "topic": tp.topic}])


def encode_any_key(connector: str, partition: Mapping[str, Any]) -> bytes:
    """The key of any partition of a connector, its members in the order given."""
    return dump_json([connector, dict(partition)])


def decode_any_key(key: bytes | None) -> tuple[str, dict[str, Any]] | None:
    """A connector's name and its partition; None for what is no record of progress."""
    try:
        name, partition = load_json(key)
    except (ValueError, TypeError):
        return None
    return (name, partition) if isinstance(name, str) and isinstance(partition, dict) else None


def encode_value(offset: int) -> bytes:
    """`{"offset":1234}`."""
    return dump_json({"offset": offset})


def encode_headers(progress: SourceOffset) -> list[tuple[str, bytes]]:
    """`heliograph: {"target_end":1300,"topic_id":"...","run":1300,"epochs":[[5,0]]}`, as far as known."""
    notes: dict[str, Any] = {}
    if progress.target_end is not None:
        notes["target_end"] = progress.target_end
    if progress.topic_id is not None:
        notes["topic_id"] = str(progress.topic_id)
    if progress.run_count:
        notes["run"] = progress.run_count
    if progress.epochs:
        notes["epochs"] = [list(known) for known in progress.epochs]
    return [(_HEADER, dump_json(notes))] if notes else []


def decode(
    connector: str,
    source: str,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]] = (),
) -> tuple[TopicPartition, SourceOffset | None] | None:
    """The partition and its progress (None: forgotten), or None for a record that is not ours or cannot be read."""
    try:
        name, partition = load_json(key)
        tp = TopicPartition(partition["topic"], partition["partition"])
        if name != connector or partition["cluster"] != source or not _is_valid(tp):
            return None
        offset = None if value is None else load_json(value)["offset"]
    except (ValueError, TypeError, KeyError):
        return None
    if offset is None:
        return tp, None
    is_known = _is_offset(offset) or offset == _NONE_YET
    return (tp, SourceOffset(tp, offset, *_decode_notes(headers))) if is_known else None


def _decode_notes(
    headers: Iterable[tuple[str, bytes | None]],
) -> tuple[int | None, UUID | None, int, tuple[tuple[int, int], ...]]:
    try:
        notes = load_json(next((value for name, value in headers if name == _HEADER and value), b"{}"))
        target_end, topic_id, run_count = notes.get("target_end"), notes.get("topic_id"), notes.get("run")
        return (
            target_end if _is_offset(target_end) else None,
            UUID(topic_id) if topic_id else None,
            run_count if _is_offset(run_count) else 0,
            _decode_epochs(notes.get("epochs")),
        )
    except (ValueError, TypeError, AttributeError):
        return None, None, 0, ()


def _decode_epochs(pairs: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(pairs, list):
        return ()
    epochs = tuple((epoch, start) for epoch, start in pairs)[-MOST_EPOCHS:]
    is_sound = all(_is_offset(start) and _is_offset(epoch) and epoch <= _LARGEST_EPOCH for epoch, start in epochs)
    return epochs if is_sound and list(epochs) == sorted(epochs, key=lambda known: known[1]) else ()


def _is_offset(number: object) -> bool:
    return isinstance(number, int) and 0 <= number <= _LARGEST_OFFSET


def _is_valid(tp: TopicPartition) -> bool:
    return isinstance(tp.topic, str) and isinstance(tp.partition, int) and 0 <= tp.partition <= _LARGEST_PARTITION


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Kafka's default partitioner."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2, unsigned."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    length = len(data)
    hashed = (0x9747B28C ^ length) & mask
    for at in range(0, length - length % 4, 4):
        word = int.from_bytes(data[at : at + 4], "little") * multiplier & mask
        word = (word ^ (word >> 24)) * multiplier & mask
        hashed = (hashed * multiplier & mask) ^ word
    tail = data[length - length % 4 :]
    if tail:
        hashed = (hashed ^ int.from_bytes(tail, "little")) * multiplier & mask
    hashed = (hashed ^ (hashed >> 13)) * multiplier & mask
    return hashed ^ (hashed >> 15)

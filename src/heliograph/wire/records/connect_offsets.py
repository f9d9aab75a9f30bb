"""Progress of a source partition as Connect keeps it in `mm2-offsets.A.internal`, byte for byte.

Connect looks offsets up by the key's *bytes* and Java's HashMap gives the members their order, so the order below is
part of the format: with another one, Java MM2 would start from the beginning. The value is the offset of the last
replicated record; replication goes on at +1. Keys go to partitions by Kafka's default partitioner (murmur2), or
compaction could not work. What only we note stands in a record header, which Connect does not read.


What may be written as a connector's progress by hand (KIP-875), and in which form it is kept.

A source connector notes the last record copied of a partition, so replication goes on at the next. The other two only
note that there is something: their offset is 0. To forget an offset is always allowed, whatever its partition looks
like: that is how people clean up. The sentences are Connect's own, so that scripts which look for them still find them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from heliograph.errors import OffsetsRefusedError
from heliograph.model import SourceOffset, TopicPartition
from heliograph.wire.batches.leader_epochs import MOST_EPOCHS
from heliograph.wire.records.connect_json import dump_json, load_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.model import ConnectorKind


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


def encode_headers(source_offsets: SourceOffset) -> list[tuple[str, bytes]]:
    """`heliograph: {"target_end":1300,"topic_id":"...","run":1300,"epochs":[[5,0]]}`, as far as known."""
    notes: dict[str, Any] = {}
    if source_offsets.target_end is not None:
        notes["target_end"] = source_offsets.target_end
    if source_offsets.topic_id is not None:
        notes["topic_id"] = str(source_offsets.topic_id)
    if source_offsets.run_count:
        notes["run"] = source_offsets.run_count
    if source_offsets.epochs:
        notes["epochs"] = [list(known) for known in source_offsets.epochs]
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


Partition = Mapping[str, Any]
Offset = Mapping[str, Any]

_PARTITION, _OFFSET = "partition", "offset"
# Members of a partition in the order Java gives them, which is part of the key's bytes; those that are strings.
_MEMBERS: dict[ConnectorKind, tuple[str, ...]] = {
    "source": ("cluster", _PARTITION, "topic"),
    "checkpoint": (_PARTITION, "topic", "group"),
    "heartbeat": ("sourceClusterAlias", "targetClusterAlias"),
}
# The order in which Connect looks at them, and so which problem it names.
_CHECKED: dict[ConnectorKind, tuple[str, ...]] = {
    "source": ("cluster", "topic", _PARTITION),
    "checkpoint": ("group", "topic", _PARTITION),
    "heartbeat": ("sourceClusterAlias", "targetClusterAlias"),
}
_LARGEST_INT = (1 << 31) - 1
_LARGEST_LONG = (1 << 63) - 1


def check_offsets(kind: ConnectorKind, offsets: Iterable[tuple[Partition | None, Offset | None]]) -> None:
    """Raise OffsetsRefusedError for the first partition or offset the connector could not use."""
    for partition, offset in offsets:
        if offset is None:
            continue
        if partition is None:
            raise OffsetsRefusedError("Source partitions may not be null")
        for member in _CHECKED[kind]:
            _check_member(partition, member)
        _check_offset(partition, offset, is_zero=kind != "source")


def ordered_partition(kind: ConnectorKind, partition: Partition) -> Partition:
    """The partition with its members in Java's order; as it is where it is none of the connector's."""
    members = _MEMBERS[kind]
    return {member: partition[member] for member in members} if set(partition) == set(members) else partition


def _check_member(partition: Partition, member: str) -> None:
    if member not in partition:
        raise OffsetsRefusedError(
            f"Source partition {java_text(partition)} is missing the '{member}' key, which is required"
        )
    value = partition[member]
    if member != _PARTITION:
        if not isinstance(value, str):
            raise _bad_member(partition, member, "must be a string")
    elif not _is_whole(value, _LARGEST_INT):
        raise _bad_member(partition, member, "must be an integer")
    elif value < 0:
        raise _bad_member(partition, member, "cannot be negative")


def _bad_member(partition: Partition, member: str, what: str) -> OffsetsRefusedError:
    shown = java_text(partition[member])
    return OffsetsRefusedError(
        f"Source partition {java_text(partition)} has an invalid value {shown} for the '{member}' key, which {what}"
    )


def _check_offset(partition: Partition, offset: Offset, *, is_zero: bool) -> None:
    begin = f"Source offset {java_text(offset)} for source partition {java_text(partition)}"
    if _OFFSET not in offset:
        raise OffsetsRefusedError(f"{begin} is missing the '{_OFFSET}' key, which is required")
    value = offset[_OFFSET]
    invalid = f"{begin} has an invalid value {java_text(value)} for the '{_OFFSET}' key"
    if not _is_whole(value, _LARGEST_LONG):
        raise OffsetsRefusedError(f"{invalid}, which must be an integer")
    if is_zero and value != 0:
        raise OffsetsRefusedError(f"{invalid}; the only accepted value is 0")
    if value < 0:
        raise OffsetsRefusedError(f"{invalid}, which cannot be negative")


def _is_whole(value: Any, largest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -largest - 1 <= value <= largest


def java_text(value: Any) -> str:
    """A JSON value as Java shows it: `{topic=t, partition=0}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}={java_text(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(java_text, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)

"""Source offsets of connectors, as Connect keeps them in `mm2-offsets.A.internal`, byte for byte.

Connect finds offsets by the key's *bytes*, in which the members have the order of Java's HashMap. So the order below is
part of the format: with another one, Java MM2 would start from the beginning. The value is the offset of the last
replicated record; replication continues at the next. Keys are assigned to partitions by Kafka's default partitioner
(murmur2), or compaction could not work. Heliograph's own values are in a record header, which Connect does not read.

Users may set offsets by hand (KIP-875). The checkpoint and heartbeat connectors only record that they ran: their offset
is 0. Resetting an offset is always allowed, whatever its partition looks like: users clean up that way. The errors are
Connect's own sentences, for scripts that look for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from heliograph.errors import OffsetsRefusedError
from heliograph.model import SourceOffset, TargetLog, TopicPartition
from heliograph.wire.batches.leader_epochs import MAX_EPOCHS
from heliograph.wire.records.connect_json import dump_json, load_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.model import ConnectorKind


Partition = Mapping[str, Any]
Offset = Mapping[str, Any]

_HEADER = "heliograph"
_NONE_YET = -1
_MAX_INT, _MAX_LONG = 2**31 - 1, 2**63 - 1
_MAX_OFFSET = _MAX_LONG - 1  # reading continues at the next
_PARTITION, _OFFSET = "partition", "offset"
# The members of a partition in Java's order, which is part of the key's bytes.
_MEMBERS: dict[ConnectorKind, tuple[str, ...]] = {
    "source": ("cluster", _PARTITION, "topic"),
    "checkpoint": (_PARTITION, "topic", "group"),
    "heartbeat": ("sourceClusterAlias", "targetClusterAlias"),
}
# The order in which Connect checks them, which decides the error that it returns.
_CHECKED: dict[ConnectorKind, tuple[str, ...]] = {
    "source": ("cluster", "topic", _PARTITION),
    "checkpoint": ("group", "topic", _PARTITION),
    "heartbeat": ("sourceClusterAlias", "targetClusterAlias"),
}


# --- records ----------------------------------------------------------------------------------------------------------


def encode_key(connector: str, source: str, tp: TopicPartition) -> bytes:
    """Return `["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t"}]`."""
    return dump_json([connector, {"cluster": source, "partition": tp.partition, "topic": tp.topic}])


def encode_any_key(connector: str, partition: Mapping[str, Any]) -> bytes:
    """Return the key of any partition of a connector, its members in the given order."""
    return dump_json([connector, dict(partition)])


def decode_any_key(key: bytes | None) -> tuple[str, dict[str, Any]] | None:
    """Return a connector's name and its partition; None if the key is not one of source offsets."""
    try:
        name, partition = load_json(key)
    except (ValueError, TypeError):
        return None
    return (name, partition) if isinstance(name, str) and isinstance(partition, dict) else None


def encode_value(offset: int) -> bytes:
    """Return `{"offset":1234}`."""
    return dump_json({"offset": offset})


def encode_headers(source_offsets: SourceOffset) -> list[tuple[str, bytes]]:
    """Return `heliograph: {"target_end":1300,"topic_id":"...","run":1300,"epochs":[[5,0]],...}`, as far as known."""
    notes: dict[str, Any] = {}
    if source_offsets.target_end is not None:
        notes["target_end"] = source_offsets.target_end
    if source_offsets.topic_id is not None:
        notes["topic_id"] = str(source_offsets.topic_id)
    if source_offsets.run_count:
        notes["run"] = source_offsets.run_count
    if source_offsets.epochs:
        notes["epochs"] = [list(known) for known in source_offsets.epochs]
    log = source_offsets.target_log
    if log is not None:
        log_id = None if log.topic_id is None else str(log.topic_id)
        notes["target_log"] = [log_id, *log[1:]]
    return [(_HEADER, dump_json(notes))] if notes else []


def decode(
    connector: str,
    source: str,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]] = (),
) -> tuple[TopicPartition, SourceOffset | None] | None:
    """Return the partition and its source offset (None if it was reset); None if a record is not ours or unreadable."""
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
) -> tuple[int | None, UUID | None, int, tuple[tuple[int, int], ...], TargetLog | None]:
    try:
        notes = load_json(next((value for name, value in headers if name == _HEADER and value), b"{}"))
        target_end, topic_id, run_count = notes.get("target_end"), notes.get("topic_id"), notes.get("run")
        return (
            target_end if _is_offset(target_end) else None,
            UUID(topic_id) if topic_id else None,
            run_count if _is_offset(run_count) else 0,
            _decode_epochs(notes.get("epochs")),
            _decode_target_log(notes.get("target_log")),
        )
    except (ValueError, TypeError, AttributeError):
        return None, None, 0, (), None


def _decode_epochs(pairs: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(pairs, list):
        return ()
    epochs = tuple((epoch, start) for epoch, start in pairs)[-MAX_EPOCHS:]
    is_sound = all(_is_offset(start) and _is_offset(epoch) and epoch <= _MAX_INT for epoch, start in epochs)
    return epochs if is_sound and list(epochs) == sorted(epochs, key=lambda known: known[1]) else ()


def _decode_target_log(values: object) -> TargetLog | None:
    if not isinstance(values, list):
        return None
    topic_id, first_offset, records, is_exact, cut_at = values
    if not _is_offset(first_offset) or not _is_offset(records):
        return None
    known_id, known_cut = UUID(topic_id) if topic_id else None, cut_at if _is_offset(cut_at) else None
    return TargetLog(known_id, first_offset, records, is_exact is True, known_cut)


def _is_offset(number: object) -> bool:
    return isinstance(number, int) and 0 <= number <= _MAX_OFFSET


def _is_valid(tp: TopicPartition) -> bool:
    return isinstance(tp.topic, str) and isinstance(tp.partition, int) and 0 <= tp.partition <= _MAX_INT


# --- offsets set by hand (KIP-875) ------------------------------------------------------------------------------------


def check_offsets(kind: ConnectorKind, offsets: Iterable[tuple[Partition | None, Offset | None]]) -> None:
    """Raise OffsetsRefusedError for the first partition or offset that the connector could not use."""
    for partition, offset in offsets:
        if offset is None:
            continue
        if partition is None:
            raise OffsetsRefusedError("Source partitions may not be null")
        for member in _CHECKED[kind]:
            _check_member(partition, member)
        _check_offset(partition, offset, is_zero=kind != "source")


def ordered_partition(kind: ConnectorKind, partition: Partition) -> Partition:
    """Return a partition with its members in Java's order; unchanged if it is not one of the connector's."""
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
    elif not _is_whole(value, _MAX_INT):
        raise _bad_member(partition, member, "must be an integer")
    elif value < 0:
        raise _bad_member(partition, member, "cannot be negative")


def _bad_member(partition: Partition, member: str, what: str) -> OffsetsRefusedError:
    shown = java_text(partition[member])
    return OffsetsRefusedError(
        f"Source partition {java_text(partition)} has an invalid value {shown} for the '{member}' key, which {what}"
    )


def _check_offset(partition: Partition, offset: Offset, *, is_zero: bool) -> None:
    subject = f"Source offset {java_text(offset)} for source partition {java_text(partition)}"
    if _OFFSET not in offset:
        raise OffsetsRefusedError(f"{subject} is missing the '{_OFFSET}' key, which is required")
    value = offset[_OFFSET]
    invalid = f"{subject} has an invalid value {java_text(value)} for the '{_OFFSET}' key"
    if not _is_whole(value, _MAX_LONG):
        raise OffsetsRefusedError(f"{invalid}, which must be an integer")
    if is_zero and value != 0:
        raise OffsetsRefusedError(f"{invalid}; the only accepted value is 0")
    if value < 0:
        raise OffsetsRefusedError(f"{invalid}, which cannot be negative")


def _is_whole(value: Any, largest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -largest - 1 <= value <= largest


def java_text(value: Any) -> str:
    """Return a JSON value as Java prints it: `{topic=t, partition=0}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}={java_text(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(java_text, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)

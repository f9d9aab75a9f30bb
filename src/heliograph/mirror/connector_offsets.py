"""What may be written as a connector's progress by hand (KIP-875), and in which form it is kept.

A source connector notes the last record copied of a partition, so replication goes on at the next. The other two only
note that there is something: their offset is 0. To forget an offset is always allowed, whatever its partition looks
like: that is how people clean up. The sentences are Connect's own, so that scripts which look for them still find them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heliograph.errors import OffsetsRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.config.connector import Kind

Partition = Mapping[str, Any]
Offset = Mapping[str, Any]

_PARTITION, _OFFSET = "partition", "offset"
# Members of a partition in the order Java gives them, which is part of the key's bytes; those that are strings.
_MEMBERS: dict[Kind, tuple[str, ...]] = {
    "source": ("cluster", _PARTITION, "topic"),
    "checkpoint": (_PARTITION, "topic", "group"),
    "heartbeat": ("sourceClusterAlias", "targetClusterAlias"),
}
# The order in which Connect looks at them, and so which problem it names.
_CHECKED: dict[Kind, tuple[str, ...]] = {
    "source": ("cluster", "topic", _PARTITION),
    "checkpoint": ("group", "topic", _PARTITION),
    "heartbeat": ("sourceClusterAlias", "targetClusterAlias"),
}
_LARGEST_INT = (1 << 31) - 1
_LARGEST_LONG = (1 << 63) - 1


def check_offsets(kind: Kind, offsets: Iterable[tuple[Partition | None, Offset | None]]) -> None:
    """Raise OffsetsRefusedError for the first partition or offset the connector could not use."""
    for partition, offset in offsets:
        if offset is None:
            continue
        if partition is None:
            raise OffsetsRefusedError("Source partitions may not be null")
        for member in _CHECKED[kind]:
            _check_member(partition, member)
        _check_offset(partition, offset, is_zero=kind != "source")


def ordered_partition(kind: Kind, partition: Partition) -> Partition:
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

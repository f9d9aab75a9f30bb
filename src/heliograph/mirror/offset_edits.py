"""Which progress a user may write by hand (KIP-875): the rules of MM2's three connectors, in their words.

Removing an offset is always allowed. The source connector takes any offset; it goes on behind it, so 0 skips the first
record. The other two keep no place in their offsets: only 0 is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heliograph.errors import ConnectError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LARGEST_INT = 2**31 - 1
_LARGEST_LONG = 2**63 - 1
_TEXTS = {
    "source": ("cluster", "topic"),
    "checkpoint": ("group", "topic"),
    "heartbeat": ("sourceClusterAlias", "targetClusterAlias"),
}


def check_offsets(kind: str, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]) -> None:
    """Raise ConnectError for the first partition or offset that a connector of this kind cannot have."""
    for partition, offset in offsets:
        if offset is None:
            continue
        for name in _TEXTS[kind]:
            _check_text(partition, name)
        if kind != "heartbeat":
            _check_partition_number(partition)
        _check_offset(partition, offset, only_zero=kind != "source")


def _check_text(partition: Mapping[str, Any], name: str) -> None:
    if name not in partition:
        raise _refused(f"Source partition {_java(partition)} is missing the '{name}' key, which is required")
    if not isinstance(partition[name], str):
        raise _wrong_partition(partition, name, "must be a string")


def _check_partition_number(partition: Mapping[str, Any]) -> None:
    if "partition" not in partition:
        raise _refused(f"Source partition {_java(partition)} is missing the 'partition' key, which is required")
    number = partition["partition"]
    if not _is_integer(number, _LARGEST_INT):
        raise _wrong_partition(partition, "partition", "must be an integer")
    if number < 0:
        raise _wrong_partition(partition, "partition", "cannot be negative")


def _check_offset(partition: Mapping[str, Any], offset: Mapping[str, Any], *, only_zero: bool) -> None:
    what = f"Source offset {_java(offset)} for source partition {_java(partition)}"
    if "offset" not in offset:
        raise _refused(f"{what} is missing the 'offset' key, which is required")
    position = offset["offset"]
    what = f"{what} has an invalid value {_java(position)} for the 'offset' key"
    if not _is_integer(position, _LARGEST_LONG):
        raise _refused(f"{what}, which must be an integer")
    if only_zero and position != 0:
        raise _refused(f"{what}; the only accepted value is 0")
    if position < 0:
        raise _refused(f"{what}, which cannot be negative")


def _wrong_partition(partition: Mapping[str, Any], name: str, rule: str) -> ConnectError:
    shown = _java(partition[name])
    return _refused(
        f"Source partition {_java(partition)} has an invalid value {shown} for the '{name}' key, which {rule}"
    )


def _is_integer(value: object, largest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value <= largest


def _refused(message: str) -> ConnectError:
    """Connect tells what a connector refuses with 500."""
    return ConnectError(500, message)


def _java(value: object) -> str:
    """A JSON value as Java shows it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={_java(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_java(member) for member in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)

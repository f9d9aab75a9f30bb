"""Keys and values of MM2's own records, byte for byte: offset syncs, checkpoints, heartbeats.

Numbers are big-endian; a string is its length (INT16) and UTF-8. A record that cannot be read decodes to None: these
topics are shared with Java MM2 and with every principal that may write to them. Heliograph's own values (the runs of an
offset sync, the id of the remote topic) are in record headers, which Java does not read.
"""

from __future__ import annotations

import struct
import sys
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING
from uuid import UUID

from heliograph.model import Checkpoint, Heartbeat, OffsetRun, OffsetSync, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable


RUNS_HEADER = "heliograph.runs"
MOVED_HEADER = "heliograph.moved"
LOG_HEADER = "heliograph.log"

_VERSION = 0
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_TWO_OFFSETS = struct.Struct(">qq")
_VERSIONED_OFFSETS = struct.Struct(">hqq")
_HEARTBEAT = struct.Struct(">hq")
_MAX_STRING_BYTES = 0x7FFF
_RUN = struct.Struct(">qqq")
_MARK_BYTES, _MOST_MARK_BYTES = 8, 512
_ID_BYTES = 16

_MAX_OFFSET = 2**63 - 2  # a group that has read it continues at the next
_MAX_CACHED_KEYS = 16_384  # a key is in many records, and the whole topic is read at a start

KeyValue = tuple[bytes, bytes]
Header = tuple[str, bytes]


def encode_offset_sync(sync: OffsetSync) -> KeyValue:
    """Encode topic and partition at the source (key), and a record's offset on both sides (value, no version)."""
    return _encode_tp(sync.tp), _TWO_OFFSETS.pack(sync.upstream, sync.downstream)


def decode_offset_sync(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]] = ()
) -> OffsetSync | None:
    """Decode a sync, with the runs and the topic id that only Heliograph writes; None if it cannot be read."""
    try:
        tp = _partition_of(key or b"")
        upstream, downstream = _TWO_OFFSETS.unpack_from(value or b"")
    except (struct.error, UnicodeDecodeError):
        return None
    if not (0 <= upstream <= _MAX_OFFSET and 0 <= downstream <= _MAX_OFFSET):
        return None
    return OffsetSync(tp, upstream, downstream, _decode_runs(headers), _decode_log_id(headers))


@lru_cache(_MAX_CACHED_KEYS)
def _partition_of(key: bytes) -> TopicPartition:
    return _decode_tp(key, 0)[0]


def encode_log_id(log_id: UUID | None) -> tuple[Header, ...]:
    """Encode the id of the remote topic as headers of a sync or checkpoint; none if it is not known."""
    return () if log_id is None else ((LOG_HEADER, log_id.bytes),)


def _decode_log_id(headers: Iterable[tuple[str, bytes | None]]) -> UUID | None:
    for name, value in headers:
        if name == LOG_HEADER and value is not None and len(value) == _ID_BYTES and any(value):
            return UUID(bytes=value)
    return None


def encode_runs(runs: array[int]) -> Header:
    """Return the header with a sync's runs, passed as flat triples since there can be thousands."""
    big_endian = array("q", runs)
    if sys.byteorder == "little":
        big_endian.byteswap()
    return RUNS_HEADER, big_endian.tobytes()


def _decode_runs(headers: Iterable[tuple[str, bytes | None]]) -> tuple[OffsetRun, ...] | None:
    packed = next((value for name, value in headers if name == RUNS_HEADER), None)
    if packed is None or len(packed) % _RUN.size:
        return None
    runs = []
    for upstream, downstream, count in _RUN.iter_unpack(packed):
        if upstream < 0 or downstream < 0 or count <= 0 or max(upstream, downstream) + count > _MAX_OFFSET:
            return None
        runs.append(OffsetRun(upstream, downstream, count))
    return tuple(runs)


def encode_checkpoint(checkpoint: Checkpoint) -> KeyValue:
    """Encode group, remote topic and partition (key), and version, both offsets and metadata (value).

    Metadata that is too long for a checkpoint is left out: it must not prevent the checkpoints of other groups.
    """
    has_room = len(checkpoint.metadata.encode()) <= _MAX_STRING_BYTES
    key = _encode_string(checkpoint.group) + _encode_tp(checkpoint.tp)
    value = _VERSIONED_OFFSETS.pack(_VERSION, checkpoint.upstream, checkpoint.downstream)
    return key, value + _encode_string(checkpoint.metadata if has_room else "")


def encode_checkpoint_headers(checkpoint: Checkpoint) -> tuple[Header, ...]:
    """Encode what only Heliograph saves with a checkpoint; none if nothing is known."""
    mark = checkpoint.moved
    moved = () if mark is None else ((MOVED_HEADER, struct.pack(f">{len(mark)}q", *mark)),)
    return (*moved, *encode_log_id(checkpoint.log_id))


def _decode_moved(headers: Iterable[tuple[str, bytes | None]]) -> tuple[int, ...] | None:
    for name, value in headers:
        if name == MOVED_HEADER and value is not None and len(value) <= _MOST_MARK_BYTES:
            count, rest = divmod(len(value), _MARK_BYTES)
            return None if rest else struct.unpack(f">{count}q", value)
    return None


def decode_checkpoint(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]] = ()
) -> Checkpoint | None:
    """Decode a checkpoint; None if it cannot be read."""
    try:
        group, at = _decode_string(key or b"", 0)
        tp, _at = _decode_tp(key or b"", at)
        _version, upstream, downstream = _VERSIONED_OFFSETS.unpack_from(value or b"")
        metadata, _at = _decode_string(value or b"", _VERSIONED_OFFSETS.size)
    except (struct.error, UnicodeDecodeError):
        return None
    return Checkpoint(group, tp, upstream, downstream, metadata, _decode_moved(headers), _decode_log_id(headers))


def encode_heartbeat(heartbeat: Heartbeat) -> KeyValue:
    """Encode both aliases (key), and version and time (value)."""
    key = _encode_string(heartbeat.source) + _encode_string(heartbeat.target)
    return key, _HEARTBEAT.pack(_VERSION, heartbeat.timestamp_ms)


def decode_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat | None:
    """Decode a heartbeat; None if it cannot be read."""
    try:
        source, at = _decode_string(key or b"", 0)
        target, _at = _decode_string(key or b"", at)
        _version, timestamp_ms = _HEARTBEAT.unpack_from(value or b"")
    except (struct.error, UnicodeDecodeError):
        return None
    return Heartbeat(source, target, timestamp_ms)


def _encode_string(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


def _decode_string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(data, at)
    end = at + _INT16.size + length
    if length < 0 or end > len(data):
        raise struct.error("a string is longer than its record")
    return data[at + _INT16.size : end].decode(), end


def _encode_tp(tp: TopicPartition) -> bytes:
    return _encode_string(tp.topic) + _INT32.pack(tp.partition)


def _decode_tp(data: bytes, at: int) -> tuple[TopicPartition, int]:
    topic, at = _decode_string(data, at)
    (partition,) = _INT32.unpack_from(data, at)
    if partition < 0:
        raise struct.error("a partition number is negative")
    return TopicPartition(topic, partition), at + _INT32.size

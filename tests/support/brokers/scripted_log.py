"""A partition's log as a broker keeps it: appends by an idempotent producer, recognises its repeats, refuses gaps."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field

_PRODUCER = struct.Struct(">qhii")  # id, epoch, base sequence, record count: at byte 43 of a batch
_OUT_OF_ORDER_SEQUENCE, _INVALID_PRODUCER_EPOCH = 45, 47
_REMEMBERED = 5  # batches a broker knows of each producer


@dataclass(frozen=True)
class Stamp:
    """Whose batch it is."""

    producer_id: int
    epoch: int
    sequence: int
    records: int


def stamp_of(batch: bytes) -> Stamp:
    """Read a batch's header."""
    return Stamp(*_PRODUCER.unpack_from(batch, 43))


@dataclass
class _Producer:
    epoch: int
    next_sequence: int
    known: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


@dataclass
class ScriptedLog:
    """One partition."""

    batches: list[bytes] = field(default_factory=list)
    end: int = 0
    producers: dict[int, _Producer] = field(default_factory=dict)

    def append(self, batch: bytes) -> tuple[int, int]:
        """Take a batch as a broker does: error code and base offset."""
        stamp = stamp_of(batch)
        producer = self.producers.get(stamp.producer_id)
        if producer is not None and stamp.epoch < producer.epoch:
            return _INVALID_PRODUCER_EPOCH, -1
        if producer is not None and stamp.epoch == producer.epoch:
            for sequence, base_offset in producer.known:
                if sequence == stamp.sequence:
                    return 0, base_offset
            if stamp.sequence != producer.next_sequence:
                return _OUT_OF_ORDER_SEQUENCE, -1
        elif producer is not None and stamp.sequence != 0:
            return _OUT_OF_ORDER_SEQUENCE, -1
        else:  # without state of a producer whatever sequence comes first is taken
            producer = self.producers[stamp.producer_id] = _Producer(stamp.epoch, 0)
        base_offset = self.end
        producer.next_sequence = stamp.sequence + stamp.records
        producer.known.append((stamp.sequence, base_offset))
        self.batches.append(base_offset.to_bytes(8, "big") + batch[8:])
        self.end += stamp.records
        return 0, base_offset

    def put(self, batch: bytearray, leader_epoch: int = 0) -> None:
        """Put a batch at the end, for somebody to read."""
        batch[0:8] = self.end.to_bytes(8, "big")
        batch[12:16] = leader_epoch.to_bytes(4, "big")
        self.batches.append(bytes(batch))
        self.end += stamp_of(batch).records

    def cut(self, batches: int) -> None:
        """Keep only the first ones."""
        del self.batches[batches:]
        self.end = sum(stamp_of(batch).records for batch in self.batches)

    def epoch_end(self, epoch: int, current: int) -> tuple[int, int]:
        """The newest epoch that is not newer than the one asked for, and where it ends; `current` is the leader's."""
        starts: dict[int, int] = {}
        at = 0
        for batch in self.batches:
            starts.setdefault(int.from_bytes(batch[12:16], "big"), at)
            at += stamp_of(batch).records
        starts.setdefault(current, at)
        if epoch == max(starts):
            return epoch, self.end
        newer = [start for known, start in starts.items() if known > epoch]
        if not newer:
            return -1, -1
        return max((known for known in starts if known <= epoch), default=epoch), min(newer)

    def since(self, offset: int) -> bytes | None:
        """The batches from an offset on; None at the end."""
        start = 0
        for number, batch in enumerate(self.batches):
            start += stamp_of(batch).records
            if start > offset:
                return b"".join(self.batches[number:])
        return None

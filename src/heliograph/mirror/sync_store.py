"""Java MM2's way to translate offsets: up to 64 syncs per partition, dense near the end, sparse far behind it.

For partitions whose syncs Java MM2 wrote, and for what lies before our own runs begin. A translation never interpolates
between syncs, so it never passes an unread record; it may point at records the group has read already.

Invariants of the slots (u: upstream offset of a slot; i < j; "distinct" by identity):
A. Slot 0 holds the latest sync.
B. For distinct i, j: u[i] <= u[j] + 2^j - 2^i, so that an old sync is not kept in a low slot for ever.
C. For distinct i, j: u[i] >= u[j] + 2^max(i - 2, 0), so that slots are not wasted on syncs close together.
D. Slot 63 holds the earliest sync that can be used.
Where a sum passes 64 signed bits, Java counts B as kept and C as broken; sums without a limit, as here, say the same.
"""

from __future__ import annotations

from typing import NamedTuple

SLOTS = 64


class Pair(NamedTuple):
    """One record's offset on both sides."""

    upstream: int
    downstream: int


class PartitionSyncStore:
    """The syncs of one source partition."""

    def __init__(self, first: Pair) -> None:
        self._slots = [first] * SLOTS

    @property
    def distinct(self) -> dict[int, Pair]:
        """Each sync once, by its lowest slot."""
        slots = self._slots
        return {slot: pair for slot, pair in enumerate(slots) if not slot or pair is not slots[slot - 1]}

    @property
    def latest(self) -> Pair:
        """The sync taken last."""
        return self._slots[0]

    def add(self, pair: Pair, *, keep_history: bool = True) -> None:
        """Take a sync; a rewind of the source, or a word that history cannot be trusted, forgets all others."""
        if not keep_history or pair.upstream < self._slots[0].upstream:
            self._slots = [pair] * SLOTS
            return
        self._insert(pair)

    def translate(self, upstream: int) -> int:
        """Where a group that has read everything before `upstream` may go on; -1 where no sync reaches back to it."""
        for pair in self._slots:
            if pair.upstream <= upstream:
                return pair.downstream + (0 if pair.upstream == upstream else 1)
        return -1

    def upstream_of(self, downstream: int) -> int:
        """The way back, by the same rule: -1 where no sync reaches back to `downstream`."""
        for pair in self._slots:
            if pair.downstream <= downstream:
                return pair.upstream + (0 if pair.downstream == downstream else 1)
        return -1

    def first_from(self, upstream: int) -> int | None:
        """Where the first record that is known at or behind `upstream` stands; None where none is."""
        return next((pair.downstream for pair in reversed(self._slots) if pair.upstream >= upstream), None)

    def _insert(self, pair: Pair) -> None:
        before = list(self._slots)
        slots = self._slots
        slots[0] = pair
        displaced, candidate_at = pair, 0
        for current in range(1, SLOTS):
            displaced, candidate_at = self._next_displaced(before, displaced, candidate_at, current)
            if _holds_b(slots[current - 1], slots[current], current - 1, current):
                return  # and so it does for all slots above
            slots[current] = displaced

    def _next_displaced(self, before: list[Pair], displaced: Pair, candidate_at: int, current: int) -> tuple[Pair, int]:
        """The sync that would take slot `current`: the latest of those before it that keeps B and C on both sides.

        `candidate_at` moves past syncs that no higher slot can use either: copies of the next slot's, and those too
        close to the slot below.
        """
        below = self._slots[current - 1]
        while True:
            candidate = before[candidate_at]
            is_apart_from_below = _holds_c(below, candidate, current - 1)
            is_fitting = (
                is_apart_from_below
                and _holds_b(below, candidate, current - 1, current)
                and (current + 1 >= SLOTS or _holds_c(candidate, self._slots[current + 1], current))
            )
            if is_fitting:
                displaced = candidate
            is_copy = candidate_at + 1 < SLOTS and candidate is before[candidate_at + 1]
            is_passed = is_copy or not is_apart_from_below
            if is_fitting or is_passed:
                candidate_at += 1
            if candidate_at >= current or not is_passed:
                return displaced, candidate_at


def _holds_b(low: Pair, high: Pair, i: int, j: int) -> bool:
    return low.upstream <= high.upstream + (1 << j) - (1 << i)


def _holds_c(low: Pair, high: Pair, i: int) -> bool:
    return low is high or low.upstream >= high.upstream + (1 << max(i - 2, 0))

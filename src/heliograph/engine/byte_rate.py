"""A limit of bytes per second: a bucket that fills with time and may be overdrawn by the last answer taken from it."""

from __future__ import annotations

_MOST_SAVED_S = 0.25


class ByteRate:
    """How many bytes may be asked for now; a rate of 0 is no limit."""

    def __init__(self, bytes_per_s: int, least_saved: int, now: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._most_saved = max(float(least_saved), bytes_per_s * _MOST_SAVED_S)
        self._saved = self._most_saved
        self._at = now

    def allowed_bytes(self, now: float, wanted: int) -> int:
        """Of `wanted`, what may be asked for."""
        if not self._bytes_per_s:
            return wanted
        self._saved = min(self._most_saved, self._saved + (now - self._at) * self._bytes_per_s)
        self._at = now
        return max(0, min(wanted, int(self._saved)))

    def spend(self, size: int) -> None:
        """Bytes have come."""
        self._saved -= size

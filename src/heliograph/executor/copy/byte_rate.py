"""A limit of bytes per second: a bucket that fills with time and may be overdrawn by the last answer taken from it."""

from __future__ import annotations

_MOST_SAVED_S = 0.25
_ANSWERS_PER_S = 8
_LEAST_ANSWER_BYTES = 64 * 1024


class ByteRate:
    """How many bytes may be asked for now; a rate of 0 is no limit. An answer has at most `most_answer_bytes`."""

    def __init__(self, bytes_per_s: int, most_answer_bytes: int, now: float) -> None:
        self.answer_bytes = most_answer_bytes
        self._most_answer_bytes = most_answer_bytes
        self._at = now
        self._set(bytes_per_s)
        self._saved = self._most_saved

    def _set(self, bytes_per_s: int) -> None:
        self.bytes_per_s = bytes_per_s
        if bytes_per_s:
            self.answer_bytes = max(_LEAST_ANSWER_BYTES, min(self._most_answer_bytes, bytes_per_s // _ANSWERS_PER_S))
        self._most_saved = max(float(self.answer_bytes), bytes_per_s * _MOST_SAVED_S)

    def change(self, bytes_per_s: int, now: float) -> None:
        """Another limit from now on; what was saved or overdrawn under the last one still counts."""
        self._fill(now)
        self._set(bytes_per_s)
        self._saved = min(self._most_saved, self._saved)

    def _fill(self, now: float) -> None:
        self._saved = min(self._most_saved, self._saved + (now - self._at) * self.bytes_per_s)
        self._at = now

    def allowed_bytes(self, now: float, wanted: int) -> int:
        """Of `wanted`, what may be asked for."""
        if not self.bytes_per_s:
            return wanted
        self._fill(now)
        return max(0, min(wanted, int(self._saved)))

    def spend(self, size: int) -> None:
        """Bytes have come."""
        if self.bytes_per_s:
            self._saved -= size

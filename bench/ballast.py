"""Keeps the memory the brokers write into warm, the same way for every copier.

Some virtual machines hand free memory back to their host within seconds; the first touch of a page that was handed
back then costs several times the copy into it (seen: 0.5 against 2.9 GB/s), and a benchmark measures the host instead
of the copier. So before a copy as much memory as it will fill is touched, and given free bit by bit, just ahead of
what the target has written.
"""

from __future__ import annotations

from pathlib import Path

_CHUNK_BYTES = 32 << 20
_AHEAD_BYTES = 256 << 20


class Ballast:
    """Files in memory that are deleted as the target grows."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self._freed_bytes = 0
        chunk = bytes(_CHUNK_BYTES)
        self._files: list[Path] = []
        for number in range(size_bytes // _CHUNK_BYTES + 1):
            file = folder / f"ballast-{number}"
            file.write_bytes(chunk)
            self._files.append(file)

    def keep_ahead_of(self, written_bytes: int) -> None:
        """Free memory up to a little beyond what has been written."""
        while self._files and self._freed_bytes < written_bytes + _AHEAD_BYTES:
            self._files.pop().unlink()
            self._freed_bytes += _CHUNK_BYTES

    def drop(self) -> None:
        """Free the rest."""
        self.keep_ahead_of(1 << 60)

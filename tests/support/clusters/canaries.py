"""Secrets that occur nowhere else, and the search for them: in texts, in files as they come and go, in command lines.

A canary is looked for as it is and as machines write bytes: in UTF-16, hexadecimal, URL-encoded, and in Base64 wherever
it begins in a group of three bytes.
"""

from __future__ import annotations

import base64
import os
import secrets
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Self
from urllib.parse import quote

_POLL_S = 0.1


def needles(canary: str) -> list[bytes]:
    """Every way a canary may be written."""
    plain = canary.encode()
    shifted = [base64.b64encode(b"\0" * shift + plain) for shift in range(3)]
    # The first and last group of four letters also depend on the neighbours.
    in_base64 = [text[4:-4] for text in shifted]
    return [plain, canary.encode("utf-16-le"), plain.hex().encode(), quote(canary).encode(), *in_base64]


class Canaries:
    """The secrets of a test by their names; a name that is asked for is made."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._needles: dict[str, list[bytes]] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._values:
            self.add(name, f"c4nary/{secrets.token_hex(12)}")
        return self._values[name]

    def add(self, name: str, value: str) -> None:
        """A secret that is made elsewhere."""
        self._values[name] = value
        self._needles[name] = needles(value)

    def found(self, data: bytes) -> list[str]:
        """Names of those in the data."""
        return [name for name, ways in self._needles.items() if any(way in data for way in ways)]

    def check(self, where: str, *texts: str | bytes) -> None:
        """Fail where a text has one."""
        for text in texts:
            data = text if isinstance(text, bytes) else text.encode(errors="surrogateescape")
            names = self.found(data)
            assert not names, f"{where} shows these secrets: {', '.join(names)}"


class Watch:
    """Looks into folders and at all command lines of the machine, again and again, until it is closed."""

    def __init__(self, canaries: Canaries, folders: Iterable[Path]) -> None:
        self.leaks: set[str] = set()
        self.file_names: set[str] = set()
        self._canaries = canaries
        self._folders = tuple(folders)
        self._seen: dict[Path, tuple[int, int]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_POLL_S):
            self._look()
        self._look()

    def _look(self) -> None:
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            self._search(file, "a command line")
        for folder in self._folders:
            for place, _folders, names in os.walk(folder):  # which passes over what is removed or renamed meanwhile
                for name in names:
                    self._search_changed(Path(place, name))

    def _search_changed(self, file: Path) -> None:
        try:
            stat = file.stat()
            state = (stat.st_mtime_ns, stat.st_size)
            if not file.is_file() or self._seen.get(file) == state:
                return
        except OSError:  # gone already
            return
        self._seen[file] = state
        self.file_names.add(file.name)
        self._search(file, f"the file {file}")

    def _search(self, file: Path, where: str) -> None:
        try:
            data = file.read_bytes()
        except OSError:
            return
        self.leaks |= {f"{name} in {where}" for name in self._canaries.found(data)}

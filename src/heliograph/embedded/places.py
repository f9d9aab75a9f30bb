"""Folders Heliograph keeps outside of the project: downloaded jars and the embedded clusters' data."""

from __future__ import annotations

import os
from pathlib import Path

from heliograph.errors import EmbeddedError

CACHE_VARIABLE = "HELIOGRAPH_CACHE"
LIBS_VARIABLE = "HELIOGRAPH_KAFKA_LIBS"


def cache_folder() -> Path:
    """`$HELIOGRAPH_CACHE`, or `heliograph` in the user's cache folder."""
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heliograph"


def private_folder(folder: Path) -> Path:
    """The folder, made where it is not there, and closed to other users: it holds data, logs and passwords.

    Raises EmbeddedError where another user has put it there, or a link in its place: he would choose what is run.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if {folder.lstat().st_uid, folder.stat().st_uid} != {os.geteuid()}:
        raise EmbeddedError(f"{folder} belongs to another user; delete it, or choose another folder with --data.")
    folder.chmod(0o700)
    return folder

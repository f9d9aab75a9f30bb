"""Removes the folders that earlier runs left where this one makes its own.

A run that was killed cannot remove its folder, and one that failed keeps it for Spark's log, which may be the only
record of the reason. So a folder whose process is gone is kept for a day, and of more than ten such folders the newest
ten are kept: a service that fails at each start would otherwise fill the disk within that day.

Folders of others, and links, are not touched: anyone may create names in the temporary folder. The process of a folder
is gone if none has its id, or if that one was started after the folder was made. In a container each run may have the
same id, so this is asked of our own as well.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import time
from typing import TYPE_CHECKING, NamedTuple

import psutil

if TYPE_CHECKING:
    from pathlib import Path


log = logging.getLogger(__name__)

PREFIX = "heliograph-spark-"
KEPT_S = 86_400.0
MOST_KEPT = 10
_NAME = re.compile(rf"{PREFIX}(\d{{1,10}})-[0-9a-f]{{8}}")
_CLOCK_STEP_S = 2.0  # file systems and the kernel round differently


class _Left(NamedTuple):
    made_at: float
    path: Path


def remove_old_folders(folder: Path) -> None:
    """Remove the folders of runs that are gone; a failure is not worth more than a line, and only for debugging."""
    left = sorted(_left_in(folder), reverse=True)
    oldest = time.time() - KEPT_S
    for number, (made_at, path) in enumerate(left):
        if number >= MOST_KEPT or made_at < oldest:
            log.debug("removing %s, which an earlier run left", path)
            shutil.rmtree(path, ignore_errors=True)


def _left_in(folder: Path) -> list[_Left]:
    found = []
    try:
        paths = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return []
    for path in paths:
        try:
            status = path.lstat()
        except OSError:
            continue
        named = _NAME.fullmatch(path.name)
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        if named is not None and is_ours and _is_gone(int(named[1]), status.st_mtime):
            found.append(_Left(status.st_mtime, path))
    return found


def _is_gone(pid: int, changed_at: float) -> bool:
    """Return whether the process that made a folder has ended; when in doubt it has not."""
    try:
        return bool(psutil.Process(pid).create_time() > changed_at + _CLOCK_STEP_S)
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, OverflowError):
        return False

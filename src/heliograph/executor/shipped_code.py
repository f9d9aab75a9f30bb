"""The first code of ours that runs on an executor: unpacks the driver's code and kernels, then runs the task with them.

The driver ships one archive: this package, and the machine code of its kernels. Python imports this module from inside
it. It needs nothing but the standard library, so it can name a package that the executor lacks. It unpacks the archive
into a folder that is named by the archive's digest and shared by all Python workers of the machine, because compiled
kernels are loaded from files only.

Machine code is run without further checks, and the temporary folder is everyone's. So:
A. The archive must have the digest that came with the task, over Spark's authenticated connection.
B. Code is taken only from a folder below one that belongs to us and is closed to all other users.
C. The unpacked files are compared with the archive before each first use by a process, also after a crash half-way.

A folder is removed after a day without use, by the next process that unpacks another one. A process that uses a folder
holds a shared lock of it until its end.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import ZipFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_PACKAGE = __name__.partition(".")[0]
_TASK_MODULE = f"{_PACKAGE}.executor.copy.copy_task"
_CACHE_VARIABLE = "NUMBA_CACHE_DIR"
_KEPT_S = 86_400.0
_used_locks: list[int] = []  # held until the process ends

REMEDIES = (
    "Run `heliograph pack` and start with --conf spark.archives=ARCHIVE, or install Heliograph's requirements.txt on"
    " every executor, or in its image."
)


class ShippedTask(NamedTuple):
    """A task as it is sent: the digest of its code, the driver's version of Spark, and the spec in Spark's encoding."""

    digest: str
    spark_version: str
    payload: bytes

    def __repr__(self) -> str:
        return f"ShippedTask({self.digest[:12]})"  # the payload holds credentials


def shipped_function(task: ShippedTask) -> Callable[[Iterable[object]], Iterator[str]]:
    """Return the function for a Spark partition on another machine; it yields the task's outcome as JSON."""
    return partial(_run, task)


def _run(task: ShippedTask, rows: Iterable[object]) -> Iterator[str]:
    refusal = _refusal_of_versions(task.spark_version)
    if refusal is not None:
        yield json.dumps({"error": refusal})
        return
    try:
        _use_code(task.digest)
        module: Any = importlib.import_module(_TASK_MODULE)
        serializers: Any = importlib.import_module("pyspark.serializers")
        spec = serializers.CPickleSerializer().loads(task.payload)  # as Spark would, but with our code unpacked
    except ImportError as error:
        yield json.dumps({"error": _missing(error)})
        return
    except (OSError, ShippedCodeError) as error:
        yield json.dumps({"error": f"The executor on {_host()} cannot unpack Heliograph's code: {error}."})
        return
    yield from module.task_function(spec)(rows)


class ShippedCodeError(Exception):
    """The archive is not the driver's."""


def _refusal_of_versions(of_driver: str) -> str | None:
    """Return why this executor's Spark cannot run tasks of the driver's; its patch release may differ."""
    pyspark: Any = importlib.import_module("pyspark")
    ours, theirs = (version.split(".")[:2] for version in (str(pyspark.__version__), of_driver))
    if ours == theirs:
        return None
    return (
        f"The executor on {_host()} has Spark {pyspark.__version__}, the driver {of_driver}: install pyspark"
        f" {pyspark.__version__} beside Heliograph, or that Spark on the cluster."
    )


def _missing(error: ImportError) -> str:
    name = (error.name or str(error)).partition(".")[0]
    python = f"{sys.executable}, Python {sys.version_info[0]}.{sys.version_info[1]}"
    if isinstance(error, ModuleNotFoundError):
        return f"The executor on {_host()} has no Python package '{name}' ({python}). {REMEDIES}"
    return f"The executor on {_host()} cannot load the Python package '{name}' ({python}): {error}. {REMEDIES}"


def _host() -> str:
    return socket.gethostname()


# --- the archive ------------------------------------------------------------------------------------------------------


def _use_code(digest: str) -> None:
    """Import this package from the unpacked archive from now on; do nothing if that is done already."""
    archive = _own_archive()
    if archive is None:
        return
    folder = unpack(archive, digest)
    os.environ.setdefault(_CACHE_VARIABLE, str(folder.parent / "kernels"))  # for another processor or Python
    sys.path.insert(0, str(folder))
    for name in [name for name in sys.modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def _own_archive() -> Path | None:
    """Return the archive that this module was imported from; None if it was imported from a folder."""
    return next((parent for parent in Path(__file__).parents if parent.suffix == ".zip" and parent.is_file()), None)


def unpack(archive: Path, digest: str) -> Path:
    """Return the folder of an archive's content; raises ShippedCodeError or OSError."""
    if hashlib.sha256(archive.read_bytes()).hexdigest() != digest:
        raise ShippedCodeError(f"{archive} is not the archive that the driver has sent")
    failures = []
    for parent in _parents(archive):
        try:
            return _unpacked(parent, archive, digest)
        except OSError as error:  # no room, or another user's: the next may do
            failures.append(f"{parent}: {error.strerror or error}")
    raise OSError("; ".join(failures))


def _parents(archive: Path) -> Iterator[Path]:
    """Yield folders for code: that of the machine, which outlives applications, and that of Spark, which does not."""
    name = f"heliograph-executors-{os.geteuid()}"
    with suppress(FileNotFoundError):
        yield Path(tempfile.gettempdir()) / name
    yield archive.resolve().parent / name


def _unpacked(parent: Path, archive: Path, digest: str) -> Path:
    _make_private(parent)
    folder = parent / f"code-{digest[:32]}"
    with _locked(folder.with_suffix(".build")):
        if not _is_intact(folder, archive):
            partial_folder = Path(tempfile.mkdtemp(prefix="partial-", dir=parent))
            with ZipFile(archive) as files:
                files.extractall(partial_folder)
            shutil.rmtree(folder, ignore_errors=True)
            partial_folder.rename(folder)
        _used_locks.append(_lock(folder.with_suffix(".used"), fcntl.LOCK_SH))
    os.utime(folder)
    _remove_unused(parent)
    return folder


def _make_private(folder: Path) -> None:
    """Create a folder that only we can enter; raises OSError if it is another user's, or open to others."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status, parent = folder.lstat(), folder.parent.stat()
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    is_replaceable = bool(parent.st_mode & stat.S_IWOTH) and not parent.st_mode & stat.S_ISVTX
    if not is_ours or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or is_replaceable:
        raise PermissionError(f"{folder} can be changed by other users")


def _is_intact(folder: Path, archive: Path) -> bool:
    try:
        with ZipFile(archive) as files:
            return all((folder / name).read_bytes() == files.read(name) for name in files.namelist())
    except OSError:
        return False


def _remove_unused(parent: Path) -> None:
    """Remove the code of other versions that no process has used for a day, and what crashed half-way."""
    for folder in [*parent.glob("code-*"), *parent.glob("partial-*")]:
        with suppress(OSError):
            if not folder.is_dir() or time.time() - folder.stat().st_mtime < _KEPT_S:
                continue
            with (
                _locked(folder.with_suffix(".build"), fcntl.LOCK_NB),
                _locked(folder.with_suffix(".used"), fcntl.LOCK_NB),
            ):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(path: Path, more: int = 0) -> Iterator[None]:
    """Hold a file's lock alone; with LOCK_NB raises OSError instead of waiting."""
    lock = _lock(path, fcntl.LOCK_EX | more)
    try:
        yield
    finally:
        os.close(lock)


def _lock(path: Path, how: int) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, how)
    except OSError:
        os.close(lock)
        raise
    return lock

"""Keeps the machine code of kernels on disk, in a folder for each state of everything that it depends on.

numba's own cache compares a kernel with the file that defines it. But a kernel contains functions and constants of
other files, so an upgrade that changed only those would leave the old machine code in use. Here the name of the folder
is a digest of all modules of this package and of the versions of numba, LLVM, NumPy and Python; numba itself
distinguishes processors inside of it. Two versions that share a folder's parent never meet.

Machine code is loaded first from beside the sources, where an installation or a driver has put it (that may be
read-only), then from a folder of our own: below `NUMBA_CACHE_DIR`, beside the sources, in the user's cache, or in the
temporary folder. Files that cannot be read or written only cost a compilation.

Invariant: a folder is used only if it belongs to us, and no other user can write there. The folder beside the sources
is as trustworthy as they are.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_PACKAGE = __name__.rpartition(".")[0]
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@cache
def cache_key() -> str:
    """Return the digest of everything that machine code depends on, except the processor."""
    python = (sys.implementation.cache_tag, getattr(sys, "abiflags", ""))
    versions = (*python, numba.__version__, llvmlite.__version__, np.__version__)
    digest = hashlib.sha256(repr(versions).encode())
    for source in sorted(resources.files(_PACKAGE).iterdir(), key=lambda each: each.name):
        if source.name.endswith(".py"):
            content = source.read_bytes()
            digest.update(f"{source.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def folder_name() -> str:
    """Return the name of the folder that has the machine code of this state."""
    return f"heliograph-kernels-{cache_key()[:24]}"


def installed_folder() -> Path:
    """Return the folder beside the sources; it may not exist, or be inside an archive."""
    return Path(__file__).parent / "__pycache__" / folder_name()


@cache
def own_folder() -> Path | None:
    """Return the folder for what is compiled here, made if it is missing; None if there is no safe place for it."""
    return next((folder for folder in _candidates() if _is_usable(folder)), None)


def compiled_files() -> list[Path]:
    """Return the files that hold the machine code of this state, to ship them along with the sources."""
    folders = dict.fromkeys(folder for folder in (installed_folder(), own_folder()) if folder is not None)
    found = {path.name: path for folder in reversed(folders) if folder.is_dir() for path in folder.glob("*.nb[ic]")}
    return [found[name] for name in sorted(found)]


def _candidates() -> Iterator[Path]:
    if numba.config.CACHE_DIR:
        yield Path(numba.config.CACHE_DIR) / folder_name()
    if installed_folder().parent.is_dir():
        yield installed_folder()
    with suppress(RuntimeError):  # a user without a home
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        yield Path(os.environ.get("HELIOGRAPH_CACHE") or Path(caches) / "heliograph") / folder_name()
    yield Path(tempfile.gettempdir()) / f"{folder_name()}-{os.geteuid()}"


def _is_usable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        parent, status = folder.parent.stat(), folder.lstat()
    except OSError:
        return False
    # In a folder where everyone may write, only the sticky bit keeps others from replacing ours.
    is_replaceable = bool(parent.st_mode & stat.S_IWOTH) and not parent.st_mode & stat.S_ISVTX
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_ours and not status.st_mode & _WRITABLE_BY_OTHERS and not is_replaceable and os.access(folder, os.W_OK)


class KernelCache:
    """The machine code of one kernel, as numba's dispatcher uses it; `compiled` counts compilations of all kernels."""

    compiled = 0

    def __init__(self, function: Callable[..., Any]) -> None:
        folders = dict.fromkeys((installed_folder(), own_folder()))
        self._folders = [_Folder(function, folder) for folder in folders if folder is not None]
        self._saves = own_folder() is not None

    @property
    def cache_path(self) -> str:
        """The folder where new machine code is written."""
        return str(self._folders[-1].cache_path)

    def load_overload(self, signature: object, target_context: object) -> object | None:
        """Return the compiled function for a signature and this processor; None if there is none."""
        for folder in self._folders:
            with suppress(Exception):  # damaged, or of a numba that writes it otherwise: it is compiled again
                found: object | None = folder.load_overload(signature, target_context)
                if found is not None:
                    return found
        return None

    def save_overload(self, signature: object, compiled: object) -> None:
        """Keep a compiled function."""
        KernelCache.compiled += 1
        if self._saves:
            with suppress(OSError):
                self._folders[-1].save_overload(signature, compiled)


class _Folder(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, in a given folder."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._impl_class = lambda own: _Implementation(own, folder)
        super().__init__(function)


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    """Names the files; numba's constructor would look for a folder by rules of its own."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(folder, function)
        module = function.__module__.rpartition(".")[2]
        self._filename_base = self.get_filename_base(f"{module}.{function.__qualname__}", getattr(sys, "abiflags", ""))


class _Locator:
    """Answers numba's questions about the place and the freshness of a cache."""

    def __init__(self, folder: Path, function: Callable[..., Any]) -> None:
        self._folder = folder
        self._py_file = function.__code__.co_filename  # numba names it in warnings
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return the state of the sources; numba ignores an index of another."""
        return cache_key()

    def get_disambiguator(self) -> str:
        """Return a text that distinguishes functions of one name."""
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Do nothing: a folder that is written to exists."""

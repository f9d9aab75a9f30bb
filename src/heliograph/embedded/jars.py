"""Downloads Apache Kafka's jars from Maven into the user's cache, with the Ivy that ships inside PySpark.

Ivy knows the repositories; no host is named here. `HELIOGRAPH_KAFKA_LIBS` names an existing Kafka `libs` folder
instead. A folder is complete only if it has its marker file, so an interrupted download is repeated. Before its first
use every jar must have the SHA-256 that is pinned for it (`jar_hashes.txt`); jars of a version without pins, with which
we do not test, are used unchecked, with a warning.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.embedded.java import LIBS_VARIABLE, cache_folder, java_command
from heliograph.embedded.layouts import layout_of
from heliograph.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


DEFAULT_VERSION = "4.3.1"
_MARKER = ".complete"
_CHECKED = ".checked"
_HASHES = Path(__file__).with_name("jar_hashes.txt")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JarSet:
    """The artifacts that a program needs."""

    name: str
    artifacts: tuple[tuple[str, str, str], ...]
    overrides: tuple[tuple[str, str, str], ...] = ()
    hashes: Path | None = None  # of a set that is not in ours


def broker_jars(version: str = DEFAULT_VERSION) -> JarSet:
    """Return the jars of a broker, and of its ZooKeeper if it has one."""
    layout = layout_of(version)
    kafka = ("org.apache.kafka", f"kafka_{layout.scala}", version)
    return JarSet(f"kafka-{version}", (kafka, layout.log_binding), layout.overrides)


def connect_jars(version: str = DEFAULT_VERSION) -> JarSet:
    """Return the jars of Java MirrorMaker 2 and Kafka's own tools, for comparisons and compatibility tests."""
    layout = layout_of(version)
    if not layout.has_mirror_maker_2:
        raise EmbeddedError(f"Kafka {version} has no MirrorMaker 2; it came with 2.4.")
    names = (f"kafka_{layout.scala}", "connect-mirror", "connect-runtime", "kafka-tools")
    artifacts = tuple(("org.apache.kafka", name, version) for name in names)
    return JarSet(f"connect-{version}", (*artifacts, layout.log_binding), layout.overrides)


def ensure_jars(jars: JarSet, on_progress: Callable[[int, int], None] = lambda _done, _all: None) -> Path:
    """Return the folder with the jars; downloads them if they are missing. `on_progress` gets (fetched, found)."""
    own = os.environ.get(LIBS_VARIABLE)
    if own:
        return _existing(Path(own))
    folder = cache_folder() / "jars" / jars.name
    if not (folder / _CHECKED).exists():
        with _locked(folder.parent):
            if not (folder / _MARKER).exists():  # another process may have fetched them meanwhile
                _fetch(jars, folder, on_progress)
            _check(jars, folder)
            (folder / _CHECKED).touch()
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process of the user download at a time: Ivy's cache is made for one, and brokers use the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _existing(folder: Path) -> Path:
    if not any(folder.glob("kafka-clients-*.jar")):
        raise EmbeddedError(f"{LIBS_VARIABLE}={folder}: there is no kafka-clients jar in this folder.")
    return folder


def _fetch(jars: JarSet, folder: Path, on_progress: Callable[[int, int], None]) -> None:
    work = Path(tempfile.mkdtemp(prefix=f"{jars.name}-", dir=folder.parent))
    try:
        (work / "ivy.xml").write_text(_ivy_file(jars))
        _run_ivy(jars, work, on_progress)
        (work / "libs" / _MARKER).touch()
        shutil.rmtree(folder, ignore_errors=True)
        (work / "libs").rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run_ivy(jars: JarSet, work: Path, on_progress: Callable[[int, int], None]) -> None:
    command = [java_command(), "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    command += ["-cache", str(cache_folder() / "ivy"), "-ivy", str(work / "ivy.xml"), "-confs", "default"]
    command += ["-retrieve", f"{work}/libs/[artifact]-[revision].[ext]", "-types", "jar", "bundle"]
    found = fetched = 0
    tail: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            found += line.strip().startswith("found ")
            fetched += "[SUCCESSFUL ]" in line
            tail = [*tail[-200:], line]
            on_progress(fetched, found)
    output = "".join(tail)
    if ivy.returncode != 0 or "UNRESOLVED DEPENDENCIES" in output or not any((work / "libs").glob("*.jar")):
        first = next((line.strip() for line in tail if "not found" in line or "Exception" in line), "no reason given")
        raise EmbeddedError(
            f"The jars of {jars.name} could not be fetched ({first}). Check the connection to the Maven repository,"
            f" or point {LIBS_VARIABLE} at the libs folder of a Kafka you have."
        )


def pinned_hashes(jars: JarSet) -> dict[str, str]:
    """Return the SHA-256 by the jar's file name; empty for a set that has no pins."""
    rows = (line.split() for line in (jars.hashes or _HASHES).read_text().splitlines())
    return {path.partition("/")[2]: pin for pin, path in rows if path.startswith(f"{jars.name}/")}


def _check(jars: JarSet, folder: Path) -> None:
    pins = pinned_hashes(jars)
    found = {jar.name: jar for jar in folder.glob("*.jar")}
    if not pins:
        log.warning("No hashes are pinned for the jars of %s: %d files are used unchecked.", jars.name, len(found))
        return
    for name in sorted(pins.keys() | found.keys()):
        if name not in found:
            what = "is missing"
        elif name not in pins:
            what = "does not belong to it"
        elif hashlib.sha256(found[name].read_bytes()).hexdigest() != pins[name]:
            what = "does not have the SHA-256 that is pinned for it"
        else:
            continue
        raise EmbeddedError(
            f"The jars of {jars.name} are refused: {name} {what}. Delete {folder} and {cache_folder() / 'ivy'}, and"
            " fetch them again, from a Maven repository that delivers what Apache Kafka has released."
        )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else None
    jar = next(folder.glob("ivy-*.jar"), None) if folder else None
    if jar is None:
        raise EmbeddedError("PySpark's jars folder has no Ivy to fetch Kafka with; reinstall pyspark.")
    return jar


def _ivy_file(jars: JarSet) -> str:
    wanted = [
        f'    <dependency org="{org}" name="{name}" rev="{version}" conf="default->default"/>'
        for org, name, version in jars.artifacts
    ]
    replaced = [f'    <override org="{org}" module="{name}" rev="{version}"/>' for org, name, version in jars.overrides]
    rows = "\n".join(wanted + replaced)
    return (
        '<ivy-module version="2.0">\n  <info organisation="heliograph" module="embedded"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{rows}\n  </dependencies>\n</ivy-module>\n"
    )

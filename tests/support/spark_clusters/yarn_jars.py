"""The jars of YARN's ResourceManager and NodeManager, fetched as `heliograph.embedded.jars` fetches Kafka's.

Only tests need them, so their hashes are pinned here: `python -m tests.support.spark_clusters.yarn_jars` fetches them
and writes the list.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from heliograph.embedded import jars
from heliograph.embedded.java import cache_folder

VERSION = "3.4.2"
_NAMES = (
    "hadoop-common",
    "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager",
    "hadoop-yarn-server-timelineservice",  # without it the ResourceManager lacks a class at its start
)
_JARS = jars.JarSet(f"yarn-{VERSION}", tuple(("org.apache.hadoop", name, VERSION) for name in _NAMES))
_HASHES = Path(__file__).with_name("yarn_jar_hashes.txt")


def ensure_yarn_jars() -> Path:
    """Return the folder with the jars; downloads them if they are missing."""
    folder = cache_folder() / "jars" / _JARS.name
    with jars._locked(folder.parent):
        if not (folder / jars._MARKER).exists():
            jars._fetch(_JARS, folder, lambda _done, _all: None)
    pins = dict(reversed(line.split()) for line in _HASHES.read_text().splitlines())
    found = _hashes(folder)
    assert found == pins, f"{folder} does not have the pinned jars: {sorted(set(found.items()) ^ set(pins.items()))}"
    return folder


def _hashes(folder: Path) -> dict[str, str]:
    return {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in sorted(folder.glob("*.jar"))}


if __name__ == "__main__":
    _HASHES.write_text("")
    _HASHES.touch()
    try:
        ensure_yarn_jars()
    except AssertionError:  # the list was empty
        found = _hashes(cache_folder() / "jars" / _JARS.name)
        _HASHES.write_text("".join(f"{digest}  {name}\n" for name, digest in found.items()))

"""Document 001 as its reader has it: the script `mm2.sh`, unchanged, three JSON files per source cluster, and the file
of its workers.

The script calls `localhost:8083`. curl's own settings file leads that address to the worker under test, so that neither
the script nor the port of a machine is touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

FOLDER = Path(__file__).parents[2] / "documents" / "001"
CODES = ("cpc", "hbc", "msc")
_SOURCE_SERVERS, _TARGET_SERVERS = "kafka-source-0:9092,kafka-source-1:9092", "kafka-target-0:9092,kafka-target-1:9092"


def lay_out(folder: Path, sources: Mapping[str, str], target: str) -> None:
    """Write the script and the files of each source cluster (its name and its servers) into a folder."""
    shutil.copy(FOLDER / "mm2.sh", folder)
    (folder / "mm2").mkdir()
    for name, servers in sources.items():
        for code in CODES:
            text = (FOLDER / "mm2" / f"mm2-{code}-source-0.json").read_text()
            text = (
                text.replace(_SOURCE_SERVERS, servers).replace(_TARGET_SERVERS, target).replace('source-0"', f'{name}"')
            )
            (folder / "mm2" / f"mm2-{code}-{name}.json").write_text(text)


def worker_file(folder: Path, target: str, port: int) -> Path:
    """The document's connect-distributed.properties, with a port of its own: there each worker has a machine."""
    text = (FOLDER / "connect-distributed.properties").read_text()
    file = folder / f"connect-distributed-{port}.properties"
    file.write_text(text.replace(_TARGET_SERVERS, target).replace("rest.port=8083", f"rest.port={port}"))
    return file


def run_script(folder: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`bash mm2.sh ...` against a worker's URL; it needs curl and jq on the PATH."""
    worker = urlsplit(url)
    (folder / ".curlrc").write_text(f'connect-to = "localhost:8083:{worker.hostname}:{worker.port}"\n')
    return subprocess.run(
        ["bash", "mm2.sh", *arguments],  # noqa: S607  (the user's own bash)
        cwd=folder,
        env={**os.environ, "CURL_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

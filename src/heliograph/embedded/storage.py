"""Formats the storage of a KRaft node, as `kafka-storage format` does.

The format sets the levels of the cluster's features (group, share and transaction version, ...), which depend on the
version of Kafka and would stay 0 in a storage without them. They are the same for every node and cluster of a version,
so `StorageTool` runs once for a set of jars and its file is kept, which saves a JVM start per broker.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from heliograph.embedded.java import cache_folder, java_command
from heliograph.errors import EmbeddedError

_FEATURES_FILE = "bootstrap.checkpoint"
_QUICK_JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
_ANY_NODE = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
log.dirs={data}
"""


def format_storage(data: Path, cluster_id: str, node_id: int, libs: Path) -> None:
    """Format an empty folder as the storage of one node; a formatted folder stays as it is."""
    meta = data / "meta.properties"
    if meta.exists():
        return
    shutil.copyfile(_features_file(cluster_id, libs), data / _FEATURES_FILE)
    meta.write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n")


def _features_file(cluster_id: str, libs: Path) -> Path:
    jars = "\n".join(sorted(jar.name for jar in libs.glob("*.jar")))
    kept = cache_folder() / "formats" / f"{hashlib.sha256(jars.encode()).hexdigest()[:16]}.checkpoint"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as work:
            _run_storage_tool(Path(work), cluster_id, libs).replace(kept)
    return kept


def _run_storage_tool(work: Path, cluster_id: str, libs: Path) -> Path:
    properties, data = work / "server.properties", work / "data"
    properties.write_text(_ANY_NODE.format(data=data))
    command = [java_command(), *_QUICK_JVM, "-cp", f"{libs}{os.sep}*", "kafka.tools.StorageTool"]
    command += ["format", "--config", str(properties), "--cluster-id", cluster_id]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    written = data / _FEATURES_FILE
    if done.returncode != 0 or not written.exists():
        output = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        raise EmbeddedError(
            f"Kafka's StorageTool in {libs} did not format a storage: {output[-1] if output else 'it printed nothing'}"
        )
    return written

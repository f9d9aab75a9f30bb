"""The programs under test, each started as a user would start it, each with an alias and topics of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.request import urlopen

from tests.interop.java_mm2 import mirror_maker_command

from bench.workloads import Workload

_COMMON = """\
clusters = {alias}, target
{alias}.bootstrap.servers = {source}
target.bootstrap.servers = {target}
{alias}->target.enabled = true
{alias}->target.topics = {topics}
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
"""
_SCRAPE_INTERVAL_S = 1.0
# The settings of the design's measurements: the best found for Java MM2 on this kind of machine.
_TUNED = """\
tasks.max = 4
target.producer.batch.size = 524288
target.producer.linger.ms = 20
{alias}.consumer.max.poll.records = 20000
"""


@dataclass(frozen=True)
class Copier:
    """One program and its settings."""

    name: str
    alias: str
    is_java: bool
    extra: str = ""
    python: str = sys.executable  # of the installation of Heliograph
    metrics_port: int | None = None  # its metrics are scraped every second

    def for_row(self, number: int, workload: Workload) -> Copier:
        """The same program for one row: what the row needs on top, and an alias that has no past."""
        extra = workload.java_extra if self.is_java else workload.our_extra
        return replace(self, alias=f"{self.alias}{number}", extra=self.extra + extra)

    def remote(self, topic: str) -> str:
        """Name of a topic's copy."""
        return f"{self.alias}.{topic}"

    @contextmanager
    def running(self, folder: Path, source: str, target: str, topics: str) -> Iterator[subprocess.Popen[bytes]]:
        """The running program between two bootstrap servers; stopped by SIGTERM, and killed if that does not help."""
        file = folder / f"{self.alias}.properties"
        text = _COMMON.format(alias=self.alias, source=source, target=target, topics=topics)
        file.write_text(text + self.extra.format(alias=self.alias))
        with (folder / f"{self.alias}.log").open("ab") as log:
            process = subprocess.Popen(self._command(file), stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ))
        try:
            with nullcontext() if self.metrics_port is None else _scraped(self.metrics_port):
                yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _command(self, file: Path) -> list[str]:
        if not self.is_java:
            metrics = [] if self.metrics_port is None else ["--metrics", str(self.metrics_port)]
            return [self.python, "-m", "heliograph", "run", str(file), *metrics]
        return mirror_maker_command(file)


@contextmanager
def _scraped(port: int) -> Iterator[None]:
    """Read the page of metrics every second, as Prometheus does."""
    over = threading.Event()

    def scrape() -> None:
        while not over.wait(_SCRAPE_INTERVAL_S):
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
                page.read()

    scraper = threading.Thread(target=scrape)
    scraper.start()
    try:
        yield
    finally:
        over.set()
        scraper.join()


JAVA_DEFAULTS = Copier("Java MM2, defaults", "jd", is_java=True)
JAVA_TUNED = Copier("Java MM2, tuned", "jt", is_java=True, extra=_TUNED)
OURS = Copier("Heliograph", "he", is_java=False)
OTHER = Copier("other Heliograph", "ot", is_java=False)
COPIERS = (JAVA_DEFAULTS, JAVA_TUNED, OURS)

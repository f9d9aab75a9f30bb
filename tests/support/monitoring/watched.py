"""A flow between two clusters of its own, under load, watched by a real Prometheus: for tests that ask Prometheus."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.embedded.process import free_ports
from tests.support.monitoring.exposition import Metrics, scrape
from tests.support.monitoring.load import Load
from tests.support.monitoring.servers import Prometheus
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running

FLOW = "A->B"
TOPIC, GROUP, PARTITIONS = "orders", "shop", 4
QUICKLY = (
    "replication.factor = 1",
    "refresh.topics.interval.seconds = 1",
    "refresh.groups.interval.seconds = 1",
    "emit.checkpoints.interval.seconds = 1",
    "offset.flush.interval.ms = 1000",
)


class Watched(NamedTuple):
    """A flow from `source` to `target` with everything around it."""

    source: EmbeddedCluster
    target: EmbeddedCluster
    load: Load
    running: Running
    url: str
    prometheus: Prometheus

    def page(self) -> Metrics:
        """Return the page of the process, as of now."""
        return scrape(f"{self.url}/metrics")

    def wait_for_value(self, expression: str, value: float, *, timeout_s: float = 180) -> None:
        """Wait until an expression has a value."""
        seen: list[float | None] = []

        def is_equal() -> bool:
            seen[:] = [self.prometheus.value(expression)]
            return seen[0] == value

        try:
            wait_for(is_equal, timeout_s, pause_s=0.3)
        except AssertionError:
            raise AssertionError(f"{expression} is {seen[0]} and not {value}") from None


def flow_file(folder: Path, source: EmbeddedCluster, target: EmbeddedCluster, topics: str, *lines: str) -> Path:
    """Return a dedicated-mode file of one flow, with heartbeats written on its source."""
    file = folder / "mm2.properties"
    text = (
        "clusters = A, B",
        f"A.bootstrap.servers = {source.bootstrap}",
        f"B.bootstrap.servers = {target.bootstrap}",
        "A->B.enabled = true",
        f"A->B.topics = {topics}",
        "B->A.emit.heartbeats.enabled = true",
        *QUICKLY,
        *lines,
    )
    file.write_text("\n".join(text) + "\n")
    return file


@contextmanager
def running_with_metrics(file: Path, *options: str) -> Iterator[tuple[Running, str]]:
    """Run a file with metrics on a port of their own; yields it with the address once that answers."""
    port = free_ports(1)[0]
    url = f"http://127.0.0.1:{port}"
    with Running(file, "--metrics", str(port), *options) as running:
        wait_for(lambda: answers(f"{url}/metrics", running))
        yield running, url


def answers(url: str, running: Running) -> bool:
    """Return whether a page is there; the process must live."""
    assert running.process.poll() is None, running.output()
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310  (our own URL)
            return True
    except (urllib.error.URLError, OSError):
        return False


def without_data(prometheus: Prometheus, expressions: list[str], until: Callable[[], bool] = lambda: True) -> list[str]:
    """Return those expressions that never have a known value within a minute and a half."""
    missing = list(expressions)

    def nothing_is_missing() -> bool:
        missing[:] = [each for each in missing if not any(row.is_known for row in prometheus.query(each))]
        return not missing and until()

    try:
        wait_for(nothing_is_missing, 90, pause_s=1)
    except AssertionError:
        return missing
    return []

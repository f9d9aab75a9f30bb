"""`make monitoring`: a flow between two real clusters, watched by real Prometheus and Alertmanager, until Ctrl-C.

A producer writes, a consumer group reads and commits, `heliograph run` replicates. The rules are those of
deploy/monitoring with all durations divided by ten, so that an alert fires within a minute; what Slack would receive is
printed here.
"""

from __future__ import annotations

import html
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from heliograph.embedded.kafka_cluster import EmbeddedCluster, forget_cluster, start_cluster
from heliograph.embedded.process import free_ports
from tests.support.monitoring.exposition import scrape
from tests.support.monitoring.load import Load
from tests.support.monitoring.servers import Alertmanager, Prometheus, SlackReceiver
from tests.support.monitoring.stack import alertmanager_config, prometheus_config
from tests.support.monitoring.tools import MISSING, find_tools

SOURCE, TARGET, TOPIC, GROUP = "monitoring-src", "monitoring-tgt", "orders", "shop"
PARTITIONS, FASTER = 6, 10
_START_TIMEOUT_S = 300  # then the alerts show what is wrong


def main() -> int:
    """Start everything, print the addresses, and stop everything."""
    tools = find_tools()
    if tools is None:
        print(f"error: {MISSING}.", file=sys.stderr)
        return 1
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_arguments: stopping.set())
    with ExitStack() as cleanup, tempfile.TemporaryDirectory(prefix="heliograph-monitoring-") as name:
        folder = Path(name)
        source = _start(SOURCE, folder, cleanup.callback)
        target = _start(TARGET, folder, cleanup.callback)
        cleanup.enter_context(Load(source, TOPIC, PARTITIONS, group=GROUP))
        metrics, rest = free_ports(2)
        _replicate(_file(folder, source, target), metrics, rest, cleanup.callback)
        _wait_until_ready(f"http://127.0.0.1:{metrics}/metrics", stopping)
        slack = cleanup.enter_context(SlackReceiver())
        alertmanager = cleanup.enter_context(Alertmanager(tools, folder, alertmanager_config(folder, slack.url)))
        config = prometheus_config(folder, {"demo": [f"127.0.0.1:{metrics}"]}, alertmanager.address, faster=FASTER)
        prometheus = cleanup.enter_context(Prometheus(tools, folder, config))
        print(f"""
Metrics       http://127.0.0.1:{metrics}/metrics
Prometheus    {prometheus.url}/graph?g0.expr=heliograph_flow_lag_records&g0.tab=0
Alertmanager  {alertmanager.url}/api/v2/alerts
State         heliograph flows http://127.0.0.1:{rest}

For an alert stop the target's broker, and let it continue afterwards:
              kill -STOP {target.brokers[0].pid};  kill -CONT {target.brokers[0].pid}
All times of the rules are divided by {FASTER}: where a message says 5 minutes, it was half a minute.
Ctrl-C stops everything. Messages for Slack:
""")
        _print_messages(slack, stopping)
        print("Stopping ...")
    return 0


def _start(name: str, folder: Path, on_exit: Callable[..., object]) -> EmbeddedCluster:
    print(f"Starting the Kafka cluster {name} ...", flush=True)
    cluster = start_cluster(name, data=folder / name)
    on_exit(forget_cluster, name)
    on_exit(cluster.stop)
    return cluster


def _file(folder: Path, source: EmbeddedCluster, target: EmbeddedCluster) -> Path:
    file = folder / "mm2.properties"
    file.write_text(f"""\
clusters = src, tgt
src.bootstrap.servers = {source.bootstrap}
tgt.bootstrap.servers = {target.bootstrap}
src->tgt.enabled = true
src->tgt.topics = {TOPIC}
tgt->src.emit.heartbeats.enabled = true
replication.factor = 1
refresh.groups.interval.seconds = 5
emit.checkpoints.interval.seconds = 5
""")
    return file


def _replicate(file: Path, metrics: int, rest: int, on_exit: Callable[..., object]) -> None:
    command = [sys.executable, "-m", "heliograph", "run", str(file), "--metrics", str(metrics), "--rest", str(rest)]
    with file.with_suffix(".log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    on_exit(running.wait, 60)
    on_exit(running.terminate)


def _wait_until_ready(url: str, stopping: threading.Event) -> None:
    """Wait until the flow runs: its start takes longer than a tenth of what the rules allow for it."""
    print("Waiting for the flow ...", flush=True)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not stopping.wait(0.5) and time.monotonic() < deadline:
        with suppress(OSError):
            page = scrape(url)
            if [row.value for row in page.of("heliograph_flow_ready")] == [1]:
                return


def _print_messages(slack: SlackReceiver, stopping: threading.Event) -> None:
    shown = 0
    while not stopping.wait(0.5):
        for text in slack.texts()[shown:]:
            print(f"{time.strftime('%H:%M:%S')}  {html.unescape(text)}", flush=True)
            shown += 1


if __name__ == "__main__":
    sys.exit(main())

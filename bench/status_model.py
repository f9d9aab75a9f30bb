"""Measures the model of state at 10,000 partitions: CPU of reports and snapshots, memory, and the size of each answer.

`python -m bench.status_model [PARTITIONS]`. No cluster is needed: reports are made as two tasks send them.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import Flow, TopicPartition
from heliograph.status.json_views import flow_json, partition_json
from heliograph.status.windows import Stat

TASKS = 2
ROUNDS = 20
PAGE = 1_000
PARTITIONS_OF_A_TOPIC = 10


def report(tps: list[TopicPartition], second: int, *, measures: bool) -> TaskReport:
    """Return what a task reports of its partitions; one that copied nothing in the last minute measures nothing."""
    rows = [
        PartitionReport(
            *tp,
            next_offset=1_000_000 + 500 * second,
            committed_offset=1_000_000 + 500 * second - 100,
            log_end=1_000_100 + 500 * second,
            log_end_age_ms=200,
            acked_age_ms=20,
            copied_ms=int(time.time() * 1000) - 300,
            records=500 * second,
            bytes=250_000 * second,
            age_ms=Stat(120, 20, 900, 250) if measures else None,
            latency_ms=Stat(150, 30, 1_100, 300) if measures else None,
        )
        for tp in tps
    ]
    return TaskReport(rows)


def cpu_ms(work: Callable[[], Any]) -> float:
    """Return the CPU time of a call, the median of several."""
    times = []
    for _round in range(ROUNDS):
        began = time.process_time()
        work()
        times.append((time.process_time() - began) * 1000)
    return sorted(times)[ROUNDS // 2]


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for measures in (False, True):
        measure(count, measures=measures)


def measure(count: int, *, measures: bool) -> None:
    """Measure with partitions that are all idle, or all busy."""
    tps = [TopicPartition(f"orders-{n // PARTITIONS_OF_A_TOPIC:05}", n % PARTITIONS_OF_A_TOPIC) for n in range(count)]
    shares = [tps[number::TASKS] for number in range(TASKS)]
    reports = [report(share, 1, measures=measures) for share in shares]
    texts = [json.dumps(each.to_json()) for each in reports]

    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    status = FlowStatus(Flow("A", "B"))
    status.state = "RUNNING"
    status.partitions.set_replicated({tp: f"A.{tp.topic}" for tp in tps})

    def take_all() -> None:
        for number, text in enumerate(texts):
            status.take(f"A->B-{number}", TaskReport.from_json(json.loads(text)))

    take_all()
    model_bytes = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    snapshot = status.snapshot("A->B", "A->B.MirrorSourceConnector", ())
    page = {"partitions": [partition_json(each) for each in snapshot.partitions[:PAGE]]}
    print(f"{count:,} {'busy' if measures else 'idle'} partitions, {TASKS} tasks; CPU is the median of {ROUNDS} calls")
    rows = [
        ("reports of a second, decoded and taken", f"{cpu_ms(take_all):.1f} ms"),
        ("a snapshot", f"{cpu_ms(lambda: status.snapshot('A->B', 'c', ())):.1f} ms"),
        ("GET /heliograph/v1/flows, rendered", f"{cpu_ms(lambda: json.dumps(flow_json(snapshot))):.1f} ms"),
        ("GET .../partitions, a page of 1,000, rendered", f"{cpu_ms(lambda: json.dumps(page)):.1f} ms"),
        ("memory of the model", f"{model_bytes / 1e6:.1f} MB"),
        ("size of a report", f"{len(texts[0]) / 1e6:.2f} MB"),
        ("size of /heliograph/v1/flows", f"{len(json.dumps(flow_json(snapshot))):,} bytes"),
        ("size of a page of 1,000 partitions", f"{len(json.dumps(page)) / 1e3:.0f} kB"),
    ]
    for name, value in rows:
        print(f"  {name:<48}{value:>12}")


if __name__ == "__main__":
    main()

"""The metrics of the JVM that dashboards of Java MM2 show: here that of Spark's driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heliograph.metrics.metric import CountAndSum, Labels, Metric, MetricType, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.metrics.shown import Shown
    from heliograph.status.process_snapshot import JvmSnapshot


def _areas(shown: Shown) -> Iterator[tuple[Labels, int | None]]:
    jvm = shown.snapshot.engine.jvm
    yield ("heap",), None if jvm is None else jvm.heap_bytes
    yield ("nonheap",), None if jvm is None else jvm.other_bytes


def _collectors(shown: Shown) -> Iterator[tuple[Labels, JvmSnapshot]]:
    if shown.snapshot.engine.jvm is not None:
        yield ("all",), shown.snapshot.engine.jvm


def _jvm(shown: Shown) -> Iterator[tuple[Labels, JvmSnapshot | None]]:
    yield (), shown.snapshot.engine.jvm


JVM_METRICS: tuple[Metric[Any], ...] = (
    Metric(
        "jvm_memory_used_bytes",
        MetricType.GAUGE,
        Subject(("area",), _areas),
        "Memory that the JVM of Spark's driver uses; NaN if it does not answer.",
        lambda used: used,
        "bytes",
    ),
    Metric(
        "jvm_gc_collection_seconds",
        MetricType.SUMMARY,
        Subject(("gc",), _collectors),
        "Garbage collections of the JVM of Spark's driver.",
        lambda jvm: CountAndSum(jvm.gc_count, jvm.gc_seconds),
        "seconds",
    ),
    Metric(
        "jvm_threads_current",
        MetricType.GAUGE,
        Subject((), _jvm),
        "Threads of the JVM of Spark's driver; NaN if it does not answer.",
        lambda jvm: None if jvm is None else jvm.threads,
    ),
)
"""All of them. The process that serves the page adds its own `process_` metrics."""

"""The page of metrics for any snapshot: parsers read it, no two series are the same, the unknown is never a number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import exposition, parser
from prometheus_client.metrics_core import Metric as ClientMetric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.utils import floatToGoString

from heliograph.metrics.dialects import Dialect
from heliograph.metrics.families import Family, families
from heliograph.metrics.label_values import LabelValues
from heliograph.metrics.metric import MetricType
from heliograph.metrics.page import OPENMETRICS, TEXT, MetricOptions, number, render
from heliograph.metrics.shown import Shown
from heliograph.model import Flow, TopicPartition
from heliograph.status.flow_snapshot import Counts, FlowSnapshot, LossTotal, Rates
from heliograph.status.group_status import CheckpointsSnapshot, GroupPartition, GroupStatus
from heliograph.status.losses import LossCause
from heliograph.status.partition_status import PartitionState, PartitionStatus
from heliograph.status.process_snapshot import (
    Certificate,
    ConnectorRow,
    ConnectorTask,
    EngineSnapshot,
    HeartbeatsSnapshot,
    JvmSnapshot,
    ProcessSnapshot,
    WorkerSnapshot,
)
from heliograph.status.task_status import RestartReason, TaskCounts, TaskGauges, TaskRow
from heliograph.status.windows import LATENCY_BOUNDS_S, LatencyHistogram, PartitionWindow, Stat

SECRET = "hunter2hunter2"
HOSTILE = [
    '"',
    "\\",
    "\n",
    "\r",
    "\x00",
    "\x85",
    "\u2028",
    "\ud800",
    "é",
    "{",
    "}",
    ",",
    "=",
    "#",
    " ",
    "*",
    "?",
    SECRET,
]
TEXT_PARTS = st.lists(st.sampled_from(["a", "b", "1", *HOSTILE]), max_size=4).map("".join)
NAME = st.one_of(st.sampled_from(["a", "b", "0", "a.b"]), TEXT_PARTS)
COUNT = st.integers(0, 2**63 - 1)
TIME = st.floats(0, 4e9)
MS = st.floats(0, 1e9)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


STAT = st.builds(Stat, MS, maybe(MS), maybe(MS), maybe(MS))
FLOW = st.builds(Flow, NAME, NAME)
TP = st.builds(TopicPartition, NAME, st.integers(0, 3))
PARTITION = st.builds(
    PartitionStatus,
    tp=TP,
    remote_topic=maybe(NAME),
    state=st.sampled_from(PartitionState),
    since=TIME,
    reason=st.none(),
    next_offset=maybe(COUNT),
    log_end=maybe(COUNT),
    log_end_at=maybe(TIME),
    lag_records=maybe(COUNT),
    lag_seconds=maybe(TIME),
    acked_at=maybe(TIME),
    records=COUNT,
    bytes=COUNT,
    stopped_since=maybe(TIME),
    window=maybe(st.builds(PartitionWindow, MS, MS, maybe(STAT), maybe(STAT))),
    copied_ms=maybe(COUNT),
)
HISTOGRAM = st.builds(
    LatencyHistogram,
    st.lists(st.integers(0, 9), min_size=len(LATENCY_BOUNDS_S) + 1, max_size=len(LATENCY_BOUNDS_S) + 1).map(tuple),
    MS,
)
STATE = st.sampled_from(["RUNNING", "FAILED", "PAUSED", "UNASSIGNED"])
TASK = st.builds(
    TaskRow,
    st.integers(0, 3),
    STATE,
    st.none(),
    st.frozensets(TP, max_size=3),
    st.builds(TaskCounts, *[COUNT] * 9, HISTOGRAM),
    st.builds(TaskGauges, *[COUNT] * 5, maybe(MS), maybe(MS)),
    st.dictionaries(st.sampled_from(RestartReason), COUNT),
)
SNAPSHOT = st.builds(
    FlowSnapshot,
    name=NAME,
    connector=NAME,
    flow=FLOW,
    state=STATE,
    since=TIME,
    at=TIME,
    issues=st.tuples(st.just(SECRET)),
    unready=st.just(()) | st.just((SECRET,)),
    partitions=st.lists(PARTITION, max_size=5).map(tuple),
    tasks=st.lists(TASK, max_size=2).map(tuple),
    counts=st.builds(Counts, *[COUNT] * 5),
    rates=st.just(Rates()),
    loss_totals=st.dictionaries(st.sampled_from(LossCause), st.builds(LossTotal, COUNT, COUNT)),
    latency=HISTOGRAM,
    catch_up_seconds=maybe(TIME | st.just(math.inf)),
    throttle_bytes_per_s=COUNT,
    heartbeat_paths=st.dictionaries(NAME, st.lists(NAME, min_size=1, max_size=3).map(tuple), max_size=2),
)
GROUP_PARTITION = st.builds(GroupPartition, TP, TP, COUNT, maybe(COUNT), maybe(COUNT), maybe(TIME), maybe(STAT))
GROUP = st.builds(GroupStatus, NAME, st.lists(GROUP_PARTITION, max_size=3).map(tuple), maybe(TIME))
CHECKPOINTS = st.builds(
    CheckpointsSnapshot, NAME, NAME, FLOW, TIME, maybe(TIME), maybe(TIME), COUNT, st.lists(GROUP, max_size=3).map(tuple)
)
CONNECTOR = st.builds(
    ConnectorRow,
    NAME,
    NAME,
    st.sampled_from(["source", "sink"]),
    NAME,
    STATE,
    st.lists(st.builds(ConnectorTask, st.integers(0, 2), STATE), max_size=2).map(tuple),
)
PROCESS = st.builds(
    ProcessSnapshot,
    TIME,
    st.lists(SNAPSHOT, max_size=2).map(tuple),
    st.lists(CHECKPOINTS, max_size=2).map(tuple),
    st.lists(st.builds(HeartbeatsSnapshot, NAME, FLOW, COUNT, maybe(TIME)), max_size=2).map(tuple),
    st.lists(CONNECTOR, max_size=2).map(tuple),
    st.builds(
        EngineSnapshot,
        maybe(COUNT),
        COUNT,
        COUNT,
        maybe(st.builds(JvmSnapshot, COUNT, COUNT, MS, COUNT, COUNT)),
    ),
    maybe(st.builds(WorkerSnapshot, st.booleans(), st.booleans(), COUNT, COUNT, maybe(TIME))),
    st.lists(st.builds(Certificate, NAME, NAME, NAME, TIME), max_size=2).map(tuple),
)
OPTIONS = st.builds(
    MetricOptions.of,
    st.sampled_from(["jmx-exporter", "metrics-reporter"]),
    st.sampled_from([["legacy"], ["new"], ["legacy", "new"]]),
    st.integers(0, 6),
)


def hide(text: str) -> str:
    return text.replace(SECRET, "[hidden]")


def lines(body: bytes) -> list[str]:
    return [line for line in body.decode().split("\n") if line and not line.startswith("#")]


@given(PROCESS, OPTIONS)
@settings(max_examples=100)
def test_parsers_read_every_page_and_no_two_series_are_the_same(
    process: ProcessSnapshot, options: MetricOptions
) -> None:
    text = render(process, TEXT, options, hide)
    found = list(parser.text_string_to_metric_families(text.body.decode()))
    series = [(sample.name, tuple(sorted(sample.labels.items()))) for each in found for sample in each.samples]
    assert len(series) == len(set(series)) == len(lines(text.body))
    assert len({each.name for each in found}) == len(found)
    page = render(process, OPENMETRICS, options, hide)
    read = list(openmetrics_parser.text_string_to_metric_families(page.body.decode()))
    assert sum(len(each.samples) for each in read) == len(series)
    assert (text.content_type, page.content_type) == (TEXT, OPENMETRICS)


@given(PROCESS, OPTIONS)
@settings(max_examples=50)
def test_no_secret_is_in_any_label(process: ProcessSnapshot, options: MetricOptions) -> None:
    assert SECRET not in render(process, TEXT, options, hide).body.decode()


@given(PROCESS, OPTIONS)
@settings(max_examples=50)
def test_the_output_is_that_of_prometheus_client(process: ProcessSnapshot, options: MetricOptions) -> None:
    """Samples are written here for speed; prometheus-client writes the same for the same samples."""
    collected = Collected(process, options)
    assert render(process, TEXT, options, hide).body == exposition.generate_latest(collected)
    assert render(process, OPENMETRICS, options, hide).body == openmetrics.generate_latest(collected)


class Collected:
    """The families of a page, made as prometheus-client takes them, in the simplest way."""

    def __init__(self, process: ProcessSnapshot, options: MetricOptions) -> None:
        self._shown = Shown(process, options.partitions_max)
        self._families = families(
            options.dialects, has_legacy_names=options.has_legacy_names, is_worker=process.worker is not None
        )
        self._plain, self._jmx = LabelValues(hide, is_jmx=False), LabelValues(hide, is_jmx=True)

    def collect(self) -> Iterable[ClientMetric]:
        for family in self._families:
            kind = "unknown" if family.type is MetricType.UNTYPED else family.type.value
            metric = ClientMetric(family.name, family.metric.help, kind, family.unit)
            seen = set()
            for labels, item in family.metric.subject.series(self._shown):
                values = self._jmx if family.dialect is Dialect.JMX_EXPORTER else self._plain
                named = {
                    name: unescaped(values(raw))
                    for name, raw in zip(family.labels, labels, strict=True)
                    if raw is not None
                }
                if tuple(named.items()) not in seen:
                    seen.add(tuple(named.items()))
                    for suffix, more, value in samples(family, item, self._plain):
                        metric.add_sample(family.name + suffix, {**named, **more}, value)
            if metric.samples:
                yield metric


def samples(family: Family, item: Any, plain: LabelValues) -> Iterator[tuple[str, dict[str, str], float]]:
    value = family.metric.value(item)
    match family.type:
        case MetricType.HISTOGRAM:
            bounds = [floatToGoString(bound) for bound in (*LATENCY_BOUNDS_S, math.inf)]
            for bound, count in zip(bounds, accumulate(value.counts), strict=True):
                yield "_bucket", {"le": bound}, count
            yield "_count", {}, value.records
            yield "_sum", {}, value.sum_s
        case MetricType.SUMMARY:
            yield "_count", {}, value.events
            yield "_sum", {}, value.total
        case _ if family.text_label is not None:
            yield family.shown_name.removeprefix(family.name), {family.text_label: unescaped(plain(value))}, 1
        case MetricType.COUNTER if value is None:
            return
        case _ if value is not None or not family.metric.omits_unknown:
            yield family.shown_name.removeprefix(family.name), {}, math.nan if value is None else value


def unescaped(text: str) -> str:
    return text.replace("\\\\", "\x00").replace('\\"', '"').replace("\\n", "\n").replace("\x00", "\\")


@given(st.floats() | st.integers(-(2**70), 2**70) | st.booleans())
def test_a_number_is_written_as_prometheus_client_does(value: float) -> None:
    assert number(value) == floatToGoString(value)


@given(st.lists(st.text(), max_size=20), st.booleans())
def test_different_texts_have_different_values_that_utf8_can_contain(texts: list[str], is_jmx: bool) -> None:
    values = LabelValues(lambda text: text[:1], is_jmx=is_jmx)
    shown = {text: values(text) for text in texts}
    assert len(set(shown.values())) == len(shown)
    assert all(value.encode() and not set(value) & {"\n", "\x00"} for value in shown.values() if value)
    assert shown == {text: values(text) for text in texts}


@given(PROCESS)
@settings(max_examples=50)
def test_an_unknown_value_is_never_a_number(process: ProcessSnapshot) -> None:
    """What is None in every partition has no sample with a number on the page."""
    unknown = process._replace(
        flows=tuple(
            replace(
                flow,
                catch_up_seconds=None,
                partitions=tuple(
                    each._replace(
                        lag_records=None, lag_seconds=None, next_offset=None, log_end=None, window=None, copied_ms=None
                    )
                    for each in flow.partitions
                ),
            )
            for flow in process.flows
            if flow.partitions
        ),
        engine=EngineSnapshot(None, 0, 0, None),
    )
    body = render(unknown, TEXT, MetricOptions(), hide).body
    known = [line for line in lines(body) if line.startswith(OF_UNKNOWN) and not line.endswith(" NaN")]
    assert known == []


OF_UNKNOWN = (
    "heliograph_flow_lag_records",
    "heliograph_flow_lag_seconds",
    "heliograph_flow_catch_up",
    "heliograph_topic_lag_",
    "heliograph_partition_lag_",
    "heliograph_partition_log_end",
    "heliograph_partition_position",
    "heliograph_heartbeat_age",
    "heliograph_spark_slots",
    "kafka_connect_mirror_mirrorsourceconnector_record_age",
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency",
    "kafka_connect_mirror_mirrorsourceconnector_record_rate",
    "kafka_consumer_fetch_manager_records_lag",
    "jvm_",
)

"""Writes the dashboard from the table of metrics: `python deploy/monitoring/grafana/make_dashboard.py`.

Each expression is checked against the table: a panel cannot name a metric, or select by a label, that does not exist.
A test compares the written file with this module.
"""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.metrics.dialects import Dialect
from heliograph.metrics.families import families

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILE = Path(__file__).parent / "dashboards" / "heliograph.json"
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_LABELS = {
    name: set(family.all_labels)
    for family in families((Dialect.JMX_EXPORTER,), has_legacy_names=True, is_worker=True)
    for name in family.sample_names
} | {"process_cpu_seconds_total": set[str](), "process_resident_memory_bytes": set[str]()}
_OF_SCRAPE = {"job", "instance"}
_UNKNOWN = {"type": "special", "options": {"match": "null+nan", "result": {"text": "unknown", "color": "purple"}}}

# What must be the case for an expression to have data.
WORKER = "a Connect worker"
CERTIFICATES = "a certificate: TLS to a cluster, or of REST"
STOPPED = "a partition that is not copied"
LOSSES = "losses that were read"
GROUPS = "a group with committed offsets"
LARGE = "more partitions than `heliograph.metrics.partitions.max`"


class Query(NamedTuple):
    """One expression of a panel. `needs` is what must be the case for it to have data; empty: only a flow."""

    expr: str
    legend: str = ""
    needs: str = ""


class Expression(NamedTuple):
    """An expression of the dashboard without variables, for tests that ask Prometheus."""

    panel: str
    expr: str
    needs: str


class Panel(NamedTuple):
    """One panel; `width` is in the 24 columns of Grafana."""

    title: str
    kind: str
    queries: tuple[Query, ...]
    unit: str = "short"
    width: int = 8
    text: str = ""
    steps: tuple[tuple[float | None, str], ...] = ((None, "green"),)
    columns: tuple[tuple[str, str], ...] = ()  # of a table: title and unit of each query
    is_stacked: bool = False
    shows_legend: bool = False  # of a number: the legend instead of the value
    mappings: tuple[tuple[str, str, str], ...] = ()  # value, text, colour


class Row(NamedTuple):
    """A section with its panels."""

    title: str
    panels: tuple[Panel, ...]
    is_collapsed: bool = False


def _stat(title: str, query: Query, unit: str = "short", *, text: str, **more: Any) -> Panel:
    return Panel(title, "stat", (query,), unit, more.pop("width", 4), text, **more)


def _graph(title: str, *queries: Query, unit: str = "short", **more: Any) -> Panel:
    return Panel(title, "timeseries", queries, unit, **more)


_FLOW = '{flow=~"$flow"}'
_TOPIC = '{flow=~"$flow",topic=~"$topic"}'
_GROUP = '{flow=~"$flow",group=~"$group"}'
_GREEN_RED = ((None, "green"), (1, "red"))
_SECONDS = ((None, "green"), (60, "orange"), (300, "red"))
_RATE = "[$__rate_interval]"


def _quantile(share: str) -> Query:
    buckets = f"rate(heliograph_flow_latency_seconds_bucket{_FLOW}{_RATE})"
    return Query(f"histogram_quantile({share}, sum by (flow, le) ({buckets}))", f"{{{{flow}}}} {share}")


_OVERVIEW = Row(
    "Flows",
    (
        _stat(
            "Flows not ready",
            Query(f"sum(1 - heliograph_flow_ready{_FLOW})"),
            text="A flow is not ready if it cannot reach a cluster, or copies nothing of what is behind.",
            steps=_GREEN_RED,
        ),
        _stat(
            "Partitions not copied",
            Query('sum(heliograph_flow_partitions{flow=~"$flow",state=~"failed|retrying|waiting"})'),
            text="Failed, retrying or waiting, also under tasks that are RUNNING.",
            steps=((None, "green"), (1, "orange"), (10, "red")),
        ),
        _stat(
            "Lag",
            Query(f"sum(heliograph_flow_lag_records{_FLOW})"),
            text="Records that are not known to be on the target; unknown if that of any partition is.",
        ),
        _stat(
            "Lag in time",
            Query(f"max(heliograph_flow_lag_seconds{_FLOW})"),
            "s",
            text="Age of the oldest record that is not copied.",
            steps=_SECONDS,
        ),
        _stat(
            "Caught up in",
            Query(f"max(heliograph_flow_catch_up_seconds{_FLOW})"),
            "s",
            text="Estimated at the present rates.",
            mappings=(("+Inf", "never at this rate", "red"), ("Infinity", "never at this rate", "red")),
        ),
        _stat(
            "Records lost",
            Query(f"sum(heliograph_lost_records_total{_FLOW})", needs=LOSSES),
            text="All losses on record; `heliograph losses` lists them.",
            steps=_GREEN_RED,
        ),
        Panel(
            "Flows",
            "table",
            (
                Query(f"heliograph_flow_state{_FLOW}"),
                Query(f"heliograph_flow_ready{_FLOW}"),
                Query(f"heliograph_flow_lag_records{_FLOW}"),
                Query(f"heliograph_flow_lag_seconds{_FLOW}"),
                Query(f"heliograph_flow_unknown_lag_partitions{_FLOW}"),
                Query(f"sum by (flow) (rate(heliograph_flow_records_total{_FLOW}{_RATE}))"),
                Query(f"heliograph_flow_issues{_FLOW}"),
                Query(f"time() - heliograph_flow_state_since_timestamp_seconds{_FLOW}"),
            ),
            width=24,
            columns=(
                ("", "short"),
                ("Ready", "bool_yes_no"),
                ("Lag", "locale"),
                ("Lag in time", "s"),
                ("Partitions with unknown lag", "short"),
                ("Records per second", "short"),
                ("Issues", "short"),
                ("In this state for", "s"),
            ),
            text="What each flow cannot do at the moment is listed by `heliograph flows`.",
        ),
        _graph(
            "Lag in records",
            Query(f"heliograph_flow_known_lag_records{_FLOW}", "{{flow}}"),
            Query(
                f"heliograph_flow_unknown_lag_partitions{_FLOW} > 0", "{{flow}}: partitions with unknown lag", STOPPED
            ),
            text="Of the partitions whose lag is known.",
        ),
        _graph("Lag in time", Query(f"heliograph_flow_lag_seconds{_FLOW}", "{{flow}}"), unit="s", steps=_SECONDS),
        _graph(
            "Partitions by state",
            Query(f"sum by (state) (heliograph_flow_partitions{_FLOW})", "{{state}}"),
            is_stacked=True,
        ),
        _graph(
            "Records per second",
            Query(f"rate(heliograph_flow_records_total{_FLOW}{_RATE})", "{{flow}}"),
            unit="rowsps",
        ),
        _graph(
            "Bytes per second",
            Query(f"rate(heliograph_flow_bytes_total{_FLOW}{_RATE})", "{{flow}}"),
            Query(f"heliograph_flow_throttle_bytes_per_second{_FLOW} > 0", "{{flow}}: configured limit", "a limit"),
            unit="Bps",
        ),
        _graph(
            "End-to-end latency",
            _quantile("0.5"),
            _quantile("0.95"),
            _quantile("0.99"),
            unit="s",
            text="From a record's timestamp to its acknowledgement by the target.",
        ),
        _graph(
            "Losses by cause",
            Query(f"sum by (cause) (increase(heliograph_lost_records_total{_FLOW}{_RATE}))", "{{cause}}", LOSSES),
            Query(
                f"sum by (cause) (increase(heliograph_loss_events_total{_FLOW}{_RATE}))", "{{cause}}: events", LOSSES
            ),
            width=12,
        ),
        _graph(
            "Age of the newest heartbeat along each path",
            Query(f"heliograph_heartbeat_age_seconds{_FLOW}", "{{path}}"),
            unit="s",
            width=12,
            steps=_SECONDS,
            text="A heartbeat passes all clusters of its path; its age is that of the whole path.",
        ),
    ),
)
_TOPICS = Row(
    "Topics and partitions",
    (
        Panel(
            "Topics most behind",
            "table",
            (
                Query(f"topk(50, heliograph_topic_known_lag_records{_TOPIC})"),
                Query(f"heliograph_topic_lag_seconds{_TOPIC}"),
                Query(f"heliograph_topic_partitions{_TOPIC}"),
                Query(f"heliograph_topic_not_copied_partitions{_TOPIC}"),
                Query(f"sum by (flow, topic) (rate(heliograph_topic_records_total{_TOPIC}{_RATE}))"),
                Query(f"sum by (flow, topic) (rate(heliograph_topic_bytes_total{_TOPIC}{_RATE}))"),
                Query(f"heliograph_topic_lag_records{_TOPIC}"),
            ),
            width=24,
            columns=(
                ("Lag, at least", "locale"),
                ("Lag in time", "s"),
                ("Partitions", "short"),
                ("Not copied", "short"),
                ("Records per second", "short"),
                ("Bytes per second", "Bps"),
                ("Lag", "locale"),
            ),
        ),
        Panel(
            "Partitions that stand still",
            "table",
            (
                Query(
                    f"heliograph_partition_stopped_seconds{_TOPIC} * on (flow, topic, partition, instance) "
                    f"group_left (state, task) heliograph_partition_state{_TOPIC} > 0",
                    needs=STOPPED,
                ),
                Query(
                    f"heliograph_partition_lag_records{_TOPIC} and heliograph_partition_stopped_seconds > 0",
                    needs=STOPPED,
                ),
                Query(
                    f"heliograph_partition_lag_seconds{_TOPIC} and heliograph_partition_stopped_seconds > 0",
                    needs=STOPPED,
                ),
            ),
            width=24,
            columns=(("Stopped for", "s"), ("Lag", "locale"), ("Lag in time", "s")),
            text="REST has the reasons: `heliograph flows --flow FLOW`.",
        ),
        _graph(
            "Lag of partitions",
            Query(f"topk(20, heliograph_partition_lag_records{_TOPIC})", "{{topic}}-{{partition}}"),
            text="The 20 partitions most behind.",
        ),
        _graph(
            "Lag of partitions in time",
            Query(f"topk(20, heliograph_partition_lag_seconds{_TOPIC})", "{{topic}}-{{partition}}"),
            unit="s",
        ),
        _graph(
            "End of the source's log, and position",
            Query(f"sum by (flow, topic) (heliograph_partition_log_end_offset{_TOPIC})", "{{topic}}: end"),
            Query(f"sum by (flow, topic) (heliograph_partition_position_offset{_TOPIC})", "{{topic}}: position"),
            text="Sums over partitions; choose a topic.",
        ),
        _graph(
            "Records per second by partition",
            Query(f"topk(20, rate(heliograph_partition_records_total{_TOPIC}{_RATE}))", "{{topic}}-{{partition}}"),
            unit="rowsps",
            width=12,
        ),
        _graph(
            "Without series of their own",
            Query(f"heliograph_left_out_series{_FLOW}", "{{flow}}: {{kind}}"),
            width=12,
            text="Above the limit of series a flow shows topics, and the partitions that are not copied.",
        ),
    ),
)
_GROUPS = Row(
    "Groups and failover readiness",
    (
        _stat(
            "Groups",
            Query(f"sum(heliograph_checkpoints_groups{_FLOW})"),
            text="Groups whose offsets are translated.",
        ),
        _stat(
            "Groups that would read again",
            Query(f"count(heliograph_group_read_again_records{_GROUP} > 0) or vector(0)"),
            text="If they continued on the target now.",
        ),
        _stat(
            "Records read again",
            Query(f"sum(heliograph_group_read_again_records{_GROUP})", needs=GROUPS),
            text="By all groups; unknown if that of any group is.",
        ),
        _stat(
            "Partitions without a checkpoint",
            Query(f"sum(heliograph_group_untranslated_partitions{_GROUP})", needs=GROUPS),
            text="Their groups would begin as new ones do.",
            steps=((None, "green"), (1, "orange")),
        ),
        _stat(
            "All checkpoints current",
            Query(f"max(heliograph_checkpoints_complete_age_seconds{_FLOW})"),
            "s",
            text="Time since every checkpoint was that of its group's committed offset.",
            steps=_SECONDS,
        ),
        _stat(
            "Oldest heartbeat",
            Query(f"max(heliograph_heartbeat_age_seconds{_FLOW})"),
            "s",
            text="The largest of all paths.",
            steps=_SECONDS,
        ),
        Panel(
            "Groups",
            "table",
            (
                Query(f"heliograph_group_translation_lag_seconds{_GROUP}", needs=GROUPS),
                Query(f"heliograph_group_read_again_records{_GROUP}", needs=GROUPS),
                Query(f"heliograph_group_partitions{_GROUP}", needs=GROUPS),
                Query(f"heliograph_group_untranslated_partitions{_GROUP}", needs=GROUPS),
            ),
            width=24,
            columns=(
                ("Checkpoints behind for", "s"),
                ("Would read again", "locale"),
                ("Partitions", "short"),
                ("Without a checkpoint", "short"),
            ),
        ),
        _graph(
            "Checkpoints behind for",
            Query(f"topk(20, heliograph_group_translation_lag_seconds{_GROUP})", "{{group}}", GROUPS),
            unit="s",
            steps=_SECONDS,
        ),
        _graph(
            "Records read again",
            Query(f"topk(20, heliograph_group_read_again_records{_GROUP})", "{{group}}", GROUPS),
        ),
        _graph(
            "Checkpoints",
            Query(f"rate(heliograph_checkpoints_written_total{_FLOW}{_RATE})", "{{flow}}: written per second"),
            Query(f"heliograph_checkpoints_newest_age_seconds{_FLOW}", "{{flow}}: age of the newest in seconds"),
        ),
    ),
)
_ENGINE = Row(
    "Engine",
    (
        _stat("Spark slots", Query("sum(heliograph_spark_slots)"), text="Tasks that Spark can run at the same time."),
        _stat(
            "Tasks waiting for a slot",
            Query("sum(heliograph_spark_waiting_tasks)"),
            text="Started, and without a report yet.",
            steps=((None, "green"), (1, "orange")),
        ),
        _stat(
            "Tasks not RUNNING",
            Query('count(heliograph_task_state{flow=~"$flow",state!="RUNNING"}) or vector(0)'),
            text="In Connect's words: FAILED, RESTARTING, UNASSIGNED, PAUSED.",
            steps=_GREEN_RED,
        ),
        _stat(
            "Leaders",
            Query("sum(heliograph_worker_leader)", needs=WORKER),
            text="One in a group of workers.",
            steps=((None, "red"), (1, "green"), (2, "red")),
        ),
        _stat(
            "First certificate to expire",
            Query("min(heliograph_certificate_expiry_timestamp_seconds) - time()", needs=CERTIFICATES),
            "s",
            text="Of a cluster, or of the REST listener.",
            steps=((None, "red"), (604_800, "orange"), (2_592_000, "green")),
        ),
        _stat(
            "Version",
            Query("count by (version) (heliograph_build_info)", "{{version}}"),
            text="Of Heliograph, by process.",
            shows_legend=True,
        ),
        _graph(
            "Tasks",
            Query("sum(heliograph_spark_slots)", "slots"),
            Query("sum(heliograph_spark_running_tasks)", "running"),
            Query("sum(heliograph_spark_waiting_tasks)", "waiting"),
        ),
        _graph(
            "Restarts by reason",
            Query(f"sum by (reason) (increase(heliograph_task_restarts_total{_FLOW}{_RATE}))", "{{reason}}"),
        ),
        _graph(
            "Commit of source offsets",
            Query(
                f"sum by (flow) (rate(heliograph_task_commit_seconds_sum{_FLOW}{_RATE})) / "
                f"sum by (flow) (rate(heliograph_task_commit_seconds_count{_FLOW}{_RATE}))",
                "{{flow}}: mean",
            ),
            Query(f"max by (flow) (heliograph_task_longest_commit_seconds{_FLOW})", "{{flow}}: longest"),
            unit="s",
        ),
        _graph(
            "Buffers in use",
            Query(
                f"heliograph_task_buffer_used_bytes{_FLOW} / (heliograph_task_buffer_limit_bytes{_FLOW} > 0)",
                "{{flow}}-{{task}}",
            ),
            unit="percentunit",
        ),
        _graph(
            "Throttled by the clusters",
            Query(f"rate(heliograph_task_throttled_seconds_total{_FLOW}{_RATE})", "{{flow}}-{{task}}"),
            unit="percentunit",
            text="The share of time for which quotas throttle a task.",
        ),
        _graph(
            "Traffic of tasks",
            Query(f"sum by (flow) (rate(heliograph_task_received_bytes_total{_FLOW}{_RATE}))", "{{flow}}: received"),
            Query(f"sum by (flow) (rate(heliograph_task_sent_bytes_total{_FLOW}{_RATE}))", "{{flow}}: sent"),
            unit="Bps",
        ),
        _graph("Records in flight", Query(f"heliograph_task_unacknowledged_records{_FLOW}", "{{flow}}-{{task}}")),
        _graph(
            "Memory of the driver",
            Query("sum by (area) (jvm_memory_used_bytes)", "JVM: {{area}}"),
            Query("sum(process_resident_memory_bytes)", "Python"),
            unit="bytes",
        ),
        _graph(
            "CPU of the driver",
            Query(f"sum(rate(process_cpu_seconds_total{_RATE}))", "Python"),
            Query(f"sum(rate(jvm_gc_collection_seconds_sum{_RATE}))", "JVM: garbage collection"),
            unit="percentunit",
        ),
    ),
    is_collapsed=True,
)
ROWS = (_OVERVIEW, _TOPICS, _GROUPS, _ENGINE)
VARIABLES = (
    ("source", "Source", "heliograph_flow_info", "source"),
    ("target", "Target", 'heliograph_flow_info{source=~"$source"}', "target"),
    ("flow", "Flow", 'heliograph_flow_info{source=~"$source",target=~"$target"}', "flow"),
    ("topic", "Topic", f"heliograph_topic_partitions{_FLOW}", "topic"),
    ("group", "Group", f"heliograph_group_partitions{_FLOW}", "group"),
)


def check(expr: str) -> None:
    """Raise ValueError if an expression names a metric that does not exist, or selects by a label it does not have."""
    found = re.findall(r"\b((?:heliograph|kafka|jvm|process)_\w+)(?:\{([^}]*)\})?", expr)
    if not found:
        raise ValueError(f"no metric in {expr}")
    for name, matchers in found:
        if name not in _LABELS:
            raise ValueError(f"{name} is not a metric: {expr}")
        labels = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers))
        if labels - _LABELS[name] - _OF_SCRAPE:
            raise ValueError(f"{name} has no label {labels - _LABELS[name]}: {expr}")


def expressions(rate_interval: str = "1m") -> list[Expression]:
    """Return every expression of panels and variables, with each variable replaced by `.*`."""
    found = [
        Expression(panel.title, _without_variables(query.expr, rate_interval), query.needs)
        for row in ROWS
        for panel in row.panels
        for query in panel.queries
    ]
    found += [
        Expression(f"Variable {name}", _without_variables(series, rate_interval), GROUPS if name == "group" else "")
        for name, _title, series, _label in VARIABLES
    ]
    return found


def _without_variables(expr: str, rate_interval: str) -> str:
    plain = expr.replace("$__rate_interval", rate_interval)
    return re.sub(r"\$(source|target|flow|topic|group)\b", ".*", plain)


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    return {
        "uid": "heliograph",
        "title": "Heliograph",
        "description": "Replication by Heliograph: flows, topics and partitions, groups, engine.",
        "tags": ["heliograph", "kafka", "mirrormaker"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [_datasource_variable(), *map(_variable, VARIABLES)]},
        "panels": list(_laid_out(ROWS)),
    }


def _datasource_variable() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}


def _variable(row: tuple[str, str, str, str]) -> dict[str, Any]:
    name, label, series, of = row
    check(series)
    query = f"label_values({series}, {of})"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 5,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _laid_out(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield rows and panels with their places; panels of a collapsed row are inside it."""
    ids, y = count(1), 0
    for row in rows:
        head: dict[str, Any] = {"id": next(ids), "type": "row", "title": row.title, "collapsed": row.is_collapsed}
        head["gridPos"] = {"x": 0, "y": y, "w": 24, "h": 1}
        x, y, height = 0, y + 1, 0
        panels = []
        for panel in row.panels:
            if x + panel.width > 24:
                x, y, height = 0, y + height, 0
            own_height = 4 if panel.kind == "stat" else 8
            place = {"x": x, "y": y, "w": panel.width, "h": own_height}
            panels.append({"id": next(ids), "gridPos": place, **_rendered(panel)})
            x, height = x + panel.width, max(height, own_height)
        y += height
        head["panels"] = panels if row.is_collapsed else []
        yield head
        if not row.is_collapsed:
            yield from panels


def _rendered(panel: Panel) -> dict[str, Any]:
    for query in panel.queries:
        check(query.expr)
    is_graph = panel.kind == "timeseries"
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": _DATASOURCE,
            "expr": query.expr,
            "legendFormat": query.legend or "__auto",
            "instant": not is_graph,
            "range": is_graph,
            "format": "table" if panel.kind == "table" else "time_series",
        }
        for number, query in enumerate(panel.queries)
    ]
    found: dict[str, Any] = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": _DATASOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": {**_OPTIONS[panel.kind], **({"textMode": "name"} if panel.shows_legend else {})},
    }
    if panel.kind == "table":
        found["fieldConfig"]["overrides"] = [
            {"matcher": {"id": "byName", "options": title}, "properties": [{"id": "unit", "value": unit}]}
            for title, unit in panel.columns
            if title
        ]
        found["transformations"] = _transformations(panel)
    return found


# `last` and not `lastNotNull`, which would show the last known value while it is unknown.
_OPTIONS: dict[str, dict[str, Any]] = {
    "stat": {
        "reduceOptions": {"calcs": ["last"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
        "textMode": "auto",
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
    "timeseries": {
        "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["last", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
}


def _defaults(panel: Panel) -> dict[str, Any]:
    values = {value: {"text": text, "color": color} for value, text, color in panel.mappings}
    steps = [{"value": value, "color": color} for value, color in panel.steps]
    found: dict[str, Any] = {
        "unit": panel.unit,
        "mappings": [_UNKNOWN, *([{"type": "value", "options": values}] if values else [])],
        "thresholds": {"mode": "absolute", "steps": steps},
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
        "noValue": "no data",
    }
    if panel.kind == "timeseries":
        found["min"] = 0
        found["custom"] = {
            "spanNulls": False,
            "fillOpacity": 30 if panel.is_stacked else 5,
            "showPoints": "auto",
            "stacking": {"mode": "normal" if panel.is_stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "line" if len(panel.steps) > 1 else "off"},
        }
    return found


def _transformations(panel: Panel) -> list[dict[str, Any]]:
    """Return the steps that make one table of several queries: a column for each, without columns of the scrape."""
    number = len(panel.queries)
    values = [f"Value #{chr(ord('A') + index)}" if number > 1 else "Value" for index in range(number)]
    titles = {value: title for value, (title, _unit) in zip(values, panel.columns, strict=True) if title}
    hidden = ["Time", "__name__", "job", "instance", *(value for value in values if value not in titles)]
    return [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {"excludeByName": dict.fromkeys(hidden, True), "indexByName": {}, "renameByName": titles},
        },
    ]


def text() -> str:
    """Return the file."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")

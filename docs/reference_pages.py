"""Writes the generated reference pages: `python docs/reference_pages.py`; tests compare them with the tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.config.effective.key_origins import shown_value
from heliograph.config.keys import TABLE
from heliograph.config.keys.table import Key, Scope
from heliograph.config.resolve.overlays import DROPPED_AT_TOP, WORKER_PREFIXES_AT_TOP
from heliograph.metrics.dialects import Dialect
from heliograph.metrics.families import exported_names
from heliograph.metrics.jvm_metrics import JVM_METRICS
from heliograph.metrics.kafka_metrics import KAFKA_METRICS, NEW_GROUP, WITHOUT_MEANING, KafkaMetric
from heliograph.metrics.metric import Metric, MetricType
from heliograph.metrics.own_metrics import OWN_METRICS
from heliograph.web.endpoints.routes import ROUTES
from heliograph.web.error_responses import all_refusals

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECTIONS = (
    ("Top of the file", Scope.FILE),
    ("All connectors", Scope.CONNECTOR),
    ("Source connector", Scope.SOURCE),
    ("Checkpoint connector", Scope.CHECKPOINT),
    ("Heartbeat connector", Scope.HEARTBEAT),
    ("Worker", Scope.WORKER),
    ("Connection and security of every Kafka client", Scope.CLIENT),
    ("Consumer of the source", Scope.CONSUMER),
    ("Producer of the target", Scope.PRODUCER),
    ("Administrators of both clusters", Scope.ADMIN),
)
_CONFIGURATION_HEAD = """\
# Configuration reference

Generated from the table in `src/heliograph/config/keys` by `make docs`; do not edit.

Keys are MirrorMaker 2's, with its defaults; **own** marks keys or defaults that are Heliograph's
([why](../decisions/0005-defaults-that-differ.md)). Places of keys in a dedicated-mode file:

| keys | at the top | with the prefix | precedence |
|---|---|---|---|
| connectors' | yes | `A->B.` | `A->B.` |
| worker's | only {worker} | of the target, `B.` | the top |
| security | yes | `A.`, `A.consumer.`, `A->B.source.consumer.` and so on | the longest prefix |
| consumer's, producer's, admin's | no | `A.consumer.`, `A->B.source.consumer.` and so on | the longest prefix |

Connector keys that Java MM2, and so Heliograph, ignores at the top of the file: {dropped}.

*Since* is the version of Kafka that introduced a key, if known. *Ignored* keys are accepted without effect, and the
reason is logged; *refused* keys are an error unless they have the default value. `heliograph validate FILE` reports the
mistakes of a file, `heliograph explain FILE KEY` the origin of a value.
"""
_COLUMNS = "\n## {title}\n\n| key | type | default | importance | since | meaning |\n|---|---|---|---|---|---|\n"


def configuration_page() -> str:
    """Return the whole page."""
    worker = ", ".join(f"`{prefix}*`" for prefix in WORKER_PREFIXES_AT_TOP)
    dropped = ", ".join(f"`{name}`" for name in sorted(DROPPED_AT_TOP))
    parts = [_CONFIGURATION_HEAD.format(worker=worker, dropped=dropped)]
    shown: set[str] = set()
    for title, scope in _SECTIONS:
        rows = [row for row in TABLE.values() if row.name not in shown and _belongs(row, scope)]
        shown.update(row.name for row in rows)
        if rows:
            parts.append(_COLUMNS.format(title=title))
            parts += [_key_line(row) for row in sorted(rows, key=_is_inert)]
    return "".join(parts)


def _is_inert(row: Key[object]) -> bool:
    return row.support.kind != "full" or row.replaced_by is not None


def _belongs(row: Key[object], scope: Scope) -> bool:
    return scope in row.scope if scope is Scope.CONNECTOR else bool(row.scope & scope)


def _key_line(row: Key[object]) -> str:
    default = shown_value(row, row.default)
    cells = (
        f"`{row.name}`",
        row.type.name.lower(),
        f"`{default}`" if default else "",
        row.importance.value,
        row.since,
        _meaning(row),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _meaning(row: Key[object]) -> str:
    parts = ["**own**"] if row.ours else []
    parts.append(row.doc)
    if row.mm2_default is not None:
        parts.append(f"MM2: `{shown_value(row, row.mm2_default)}`.")
    if row.check is not None:
        parts.append(f"Must be {row.check.phrase}.")
    if row.replaced_by is not None:
        parts.append(f"Read as `{row.replaced_by}`.")
    if row.support.kind == "ignored":
        parts.append(f"*Ignored*: {row.support.reason}.")
    if row.support.kind == "rejected":
        parts.append(f"*Refused*: {row.support.reason}")
    return " ".join(parts)


_REST_HEAD = """\
# REST reference

Generated from the tables in `src/heliograph/web` by `make docs`; do not edit.

The API is Kafka Connect 4.3.1's: same paths, status codes, bodies and errors
([differences](../decisions/0010-rest-on-this-machine.md)). Bodies are JSON. Call any worker of a group; the leader
answers everything that is not marked *local*. *needs* is what a rule must grant a caller if there are
[rules](../guides/security-rest.md#rules).

| method | path | answers | needs | meaning |
|---|---|---|---|---|
"""
_ERRORS = """
`HEAD` responds as `GET` without the body, `OPTIONS` returns the methods of a path. In `heliograph run` the file defines
the connectors, and requests that change them are refused.

## Errors

Every error is `{"error_code": STATUS, "message": TEXT}`.

| status | message | when |
|---|---|---|
"""


def rest_page() -> str:
    """Return the whole page."""
    lines = [_REST_HEAD]
    for row in ROUTES:
        doc = f"{row.doc} (*local*)" if row.is_local else row.doc
        lines.append(_table_line(row.method, f"`{row.path}`", row.answers, row.access.value, doc))
    lines.append(_ERRORS)
    lines += [_table_line(str(row.status), " ".join(row.text.split()), row.when) for row in all_refusals()]
    return "".join(lines)


def _table_line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("{{", "{").replace("}}", "}").replace("|", "\\|") for cell in cells) + " |\n"


_METRICS_HEAD = """\
# Metrics reference

Generated from the tables in `src/heliograph/metrics` by `make docs`; do not edit. The
[guide](../guides/monitoring.md) shows how to scrape, alert and look at them,
[decision 0019](../decisions/0019-one-page-of-metrics.md) explains the design.

`GET /metrics` returns Prometheus text 0.0.4, or OpenMetrics 1.0 if the client prefers it. All values are those of REST
and of `heliograph flows`.

- **Unknown is `NaN`,** never 0 and never the last value. A counter that is not known has no series.
- **Counters** begin at 0 when a process starts, or when a worker becomes the leader, and survive the restart of a task.
  Losses are counted from their record on the target: they have no series until it was read, and do not begin at 0.
- **`flow`** is `A->B`, or the name of the source connector in a worker. `heliograph_flow_info` has its clusters.
- **Series are limited.** A flow with more partitions than `heliograph.metrics.partitions.max` shows its topics, and the
  partitions that are failed, retrying or waiting; a flow whose groups have more partitions shows its groups, and the
  partitions whose checkpoints are behind. Of partitions, topics and groups at most as many as the limit are shown,
  those first that need attention. `heliograph_left_out_series` counts the others. Sums of Kafka's metrics stay the
  same: their series are of topics, without `partition`, and one without `topic` for all topics that are left out.

## Heliograph's own

| metric | type | labels | meaning |
|---|---|---|---|
"""
_KAFKA_HEAD = """
## Kafka's, as Java MM2 has them

`heliograph.metrics.dialect` chooses the exporter whose names the page has:

- `jmx-exporter` (default): the names of the JMX exporter with Strimzi's rules. Label names are in lower case
  (`clientid`), and a value with a special character has literal quotes, as in the name of a bean:
  `clientid="\\"A->B|A->B.MirrorSourceConnector-0|replication-consumer\\""`.
- `metrics-reporter`: the names of Strimzi's Metrics Reporter: `client_id`, no quotes, everything is a gauge.

`kafka_connect_connector_status` has two meanings in Strimzi's rules. `heliograph run` has that of the rules for MM2:
the state of a task, with the label `task`. `heliograph worker` has that of the rules for Kafka Connect: the state of a
connector. `kafka_connect_connector_task_status` is the state of a task in both.

The client ids are those of Java MM2: `A->B|CONNECTOR-TASK|replication-consumer` (a partition without a task has `?` for
its number), `connector-producer-CONNECTOR-TASK`, `A->B|CONNECTOR|replication-source-admin`. The topic of a consumer is
that of the source with its dots (KIP-1109), the topic of MM2's own metrics is the remote topic. Record and byte counts
are of batches on the wire, with keys and headers; Java counts only values.

| bean | attribute | JMX exporter | Metrics Reporter | labels | meaning |
|---|---|---|---|---|---|
"""
_NEW_HEAD = """
### KIP-1280

With `metric.names.formats=new` MM2's own metrics have the names of KIP-1280 instead, with `legacy,new` both. The
attributes and values are the same; the exporters name them in the same way.

| metric | labels |
|---|---|
"""
_JVM_HEAD = """
## JVM and process

The JVM is that of Spark's driver. `process_*` (CPU, memory, file descriptors) are of the Python process that serves the
page, as prometheus-client collects them.

| metric | type | labels | meaning |
|---|---|---|---|
"""
_WITHOUT_HEAD = """
## Without a counterpart

| Java MM2's | attributes | why |
|---|---|---|
"""
_SHOWN_TYPES = {MetricType.SUMMARY: ("_count", "_sum"), MetricType.HISTOGRAM: ("_bucket", "_count", "_sum")}


def metrics_page() -> str:
    """Return the whole page."""
    old = [metric for metric in KAFKA_METRICS if metric.name.group != NEW_GROUP]
    new = [metric for metric in KAFKA_METRICS if metric.name.group == NEW_GROUP]
    parts = [_METRICS_HEAD, *map(_metric_line, OWN_METRICS), _KAFKA_HEAD, *map(_kafka_line, old), _NEW_HEAD]
    for metric in new:
        (name,) = exported_names(Dialect.KIP_1280, metric, is_worker=False)
        parts.append(_table_line(f"`{name.name}`", _names(name.labels)))
    parts += [_JVM_HEAD, *map(_metric_line, JVM_METRICS), _WITHOUT_HEAD]
    parts += [_table_line(f"`{row.bean}`", row.attributes.replace("*", "\\*"), row.reason) for row in WITHOUT_MEANING]
    return "".join(parts)


def _metric_line(metric: Metric[object]) -> str:
    suffixes = _SHOWN_TYPES.get(metric.type) or (
        {MetricType.COUNTER: "_total", MetricType.INFO: "_info"}.get(metric.type, ""),
    )
    return _table_line(
        _names(metric.name + suffix for suffix in suffixes), metric.type, _names(metric.subject.labels), metric.help
    )


def _kafka_line(metric: KafkaMetric[object]) -> str:
    jmx = {
        name.name + ("_total" if name.type is MetricType.COUNTER else ""): name
        for is_worker in (False, True)
        for name in exported_names(Dialect.JMX_EXPORTER, metric, is_worker=is_worker)
    }
    (reporter,) = exported_names(Dialect.METRICS_REPORTER, metric, is_worker=False)
    info = "_info" if reporter.type is MetricType.INFO else ""
    labels = dict.fromkeys((*(label for name in jmx.values() for label in name.labels), *reporter.labels))
    text = (reporter.text_label,) if reporter.text_label else ()
    return _table_line(
        f"`{metric.name.domain}:type={metric.name.group}`",
        f"`{metric.name.attribute}`",
        _names(jmx) or "not kept",
        f"`{reporter.name}{info}`",
        _names((*labels, *text)),
        metric.help,
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    folder = Path(__file__).parent / "reference"
    (folder / "configuration.md").write_text(configuration_page(), encoding="utf-8")
    (folder / "rest.md").write_text(rest_page(), encoding="utf-8")
    (folder / "metrics.md").write_text(metrics_page(), encoding="utf-8")

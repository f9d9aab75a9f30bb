"""The page that `GET /metrics` returns: Prometheus text 0.0.4 or OpenMetrics 1.0, as the client accepts.

Its samples are written here, not by prometheus-client, which takes several times as long for a thousand partitions. Its
output is the same.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable  # noqa: TC003  (of values of this module)
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import exposition, utils
from prometheus_client.openmetrics import exposition as openmetrics

from heliograph.metrics.dialects import Dialect
from heliograph.metrics.families import Family, families
from heliograph.metrics.label_values import LabelValues, escaped
from heliograph.metrics.metric import Labels, MetricType, Subject
from heliograph.metrics.shown import Shown
from heliograph.status.windows import LATENCY_BOUNDS_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client import Metric as ClientMetric

    from heliograph.status.process_snapshot import ProcessSnapshot

TEXT = exposition.CONTENT_TYPE_PLAIN_0_0_4
OPENMETRICS = openmetrics.CONTENT_TYPE_LATEST
_FORMATS = {
    **dict.fromkeys([("application/openmetrics-text", ""), ("application/openmetrics-text", "1.0.0")], OPENMETRICS),
    **dict.fromkeys(itertools.product(("text/plain", "text/*", "*/*"), ("", "0.0.4")), TEXT),
}
_LONGEST_ACCEPT = 2_048
_WEIGHT = re.compile(r"(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", re.ASCII)
_go_string: Callable[[float], str] = utils.floatToGoString
_generators: dict[bool, Callable[[Any], bytes]] = {True: openmetrics.generate_latest, False: exposition.generate_latest}
_BOUNDS = tuple(_go_string(bound) for bound in (*LATENCY_BOUNDS_S, float("inf")))


class MetricOptions(NamedTuple):
    """The options of a page.

    With `metric.names.formats=new` there are no legacy names of MM2's own metrics, and `Dialect.KIP_1280` is one of the
    dialects; the first dialect is that of all other metrics of Kafka.
    """

    dialects: tuple[Dialect, ...] = (Dialect.JMX_EXPORTER,)
    partitions_max: int = 1_000
    has_legacy_names: bool = True

    @classmethod
    def of(cls, dialect: str, formats: Iterable[str], partitions_max: int) -> MetricOptions:
        """Return the options for the values of the three keys; `formats` are `legacy` and `new`."""
        chosen = set(formats)
        new = (Dialect.KIP_1280,) if "new" in chosen else ()
        return cls((Dialect(dialect), *new), partitions_max, chosen != {"new"})


class Page(NamedTuple):
    """A response to a scrape."""

    body: bytes
    content_type: str


class _Series(NamedTuple):
    """One series of a subject: its labels as pairs, as the page shows them, and the item of its values."""

    pairs: tuple[tuple[str, str], ...]
    shown: str
    item: Any


def render(
    snapshot: ProcessSnapshot,
    content_type: str,
    options: MetricOptions,
    hide: Callable[[str], str],
    extra_families: Iterable[ClientMetric] = (),
) -> Page:
    """Return the page of a snapshot in a format of `choose_format`. `hide` replaces secrets in labels.

    `extra_families` are appended; the caller must know their labels to be harmless.
    """
    is_openmetrics = content_type == OPENMETRICS
    lines = _Samples(Shown(snapshot, options.partitions_max), hide)
    found = families(options.dialects, has_legacy_names=options.has_legacy_names, is_worker=snapshot.worker is not None)
    parts: list[str] = []
    for family in found:
        samples = lines.of(family)
        if samples:
            parts.append(_head(family, is_openmetrics=is_openmetrics))
            parts += samples
    body = "".join(parts).encode() + _extra(extra_families, is_openmetrics=is_openmetrics)
    return Page(body, content_type)


def choose_format(accept: str) -> str:
    """Return the content type for an Accept header; the text that every scraper reads if it names no known format.

    Of formats with the same weight the first counts. A client that accepts neither gets a page nevertheless, as from
    Prometheus's own libraries.
    """
    best, best_weight = TEXT, 0.0
    for accepted in accept.split(",") if len(accept) <= _LONGEST_ACCEPT else ():
        kind, *parameters = (part.strip() for part in accepted.lower().split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        format_ = _FORMATS.get((kind, given.get("version", "")))
        weight = given.get("q", "1")
        if format_ is not None and _WEIGHT.fullmatch(weight) and float(weight) > best_weight:
            best, best_weight = format_, float(weight)
    return best


def _head(family: Family, *, is_openmetrics: bool) -> str:
    if is_openmetrics:
        kind = "unknown" if family.type is MetricType.UNTYPED else family.type.value
        unit = f"# UNIT {family.name} {family.unit}\n" if family.unit else ""
        return f"# HELP {family.name} {escaped(family.metric.help)}\n# TYPE {family.name} {kind}\n{unit}"
    kind = "gauge" if family.type is MetricType.INFO else family.type.value
    name, text = family.shown_name, family.metric.help.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _extra(extra: Iterable[ClientMetric], *, is_openmetrics: bool) -> bytes:
    return _generators[is_openmetrics](_Collected(tuple(extra)))


class _Collected(NamedTuple):
    """Families as prometheus-client takes them."""

    families: tuple[ClientMetric, ...]

    def collect(self) -> Iterable[ClientMetric]:
        """Return all."""
        return self.families


def number(value: float) -> str:
    """Return a value as prometheus-client writes it."""
    if type(value) is int and 0 <= value < 1_000_000:
        return f"{value}.0"
    return _go_string(value)


class _Samples:
    """The lines of a page. The labels of a subject are written once, and used by all its families."""

    def __init__(self, shown: Shown, hide: Callable[[str], str]) -> None:
        self._shown = shown
        self._plain = LabelValues(hide, is_jmx=False)
        self._jmx = LabelValues(hide, is_jmx=True)
        self._series: dict[tuple[Subject[Any], tuple[str, ...], bool], list[_Series]] = {}

    def of(self, family: Family) -> list[str]:
        """Return the lines of a family."""
        series = self._of_subject(family.metric.subject, family.labels, self._values(family))
        if family.type is MetricType.HISTOGRAM:
            return _histograms(family, series)
        if family.type is MetricType.SUMMARY:
            return _summaries(family, series)
        if family.text_label is not None:
            return _texts(family, series, self._plain)
        return _numbers(family, series)

    def _values(self, family: Family) -> LabelValues:
        return self._jmx if family.dialect is Dialect.JMX_EXPORTER else self._plain

    def _of_subject(self, subject: Subject[Any], names: tuple[str, ...], values: LabelValues) -> list[_Series]:
        key = subject, names, values is self._jmx
        found = self._series.get(key)
        if found is None:
            found = self._series[key] = list(_labelled(subject.series(self._shown), names, values))
        return found


def _labelled(rows: Iterator[tuple[Labels, Any]], names: Sequence[str], values: LabelValues) -> Iterator[_Series]:
    """Yield the series of a subject, each once: two connectors that copy one topic have the same labels."""
    order = sorted(range(len(names)), key=lambda index: names[index])
    sorted_names = [(index, names[index]) for index in order]
    seen: set[str] = set()
    for labels, item in rows:
        pairs = tuple([(name, values(raw)) for index, name in sorted_names if (raw := labels[index]) is not None])
        shown = _shown(pairs)
        if shown not in seen:
            seen.add(shown)
            yield _Series(pairs, shown, item)


def _shown(pairs: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join([f'{name}="{value}"' for name, value in pairs]) + "}" if pairs else ""


def _with(series: _Series, name: str, value: str) -> str:
    return _shown(sorted((*series.pairs, (name, value))))


def _numbers(family: Family, series: Iterable[_Series]) -> list[str]:
    name, value_of = family.shown_name, family.metric.value
    is_omitted = family.type is MetricType.COUNTER or family.metric.omits_unknown
    lines = []
    for _pairs, labels, item in series:
        value = value_of(item)
        if value is not None:
            lines.append(f"{name}{labels} {number(value)}\n")
        elif not is_omitted:
            lines.append(f"{name}{labels} NaN\n")
    return lines


def _texts(family: Family, series: Iterable[_Series], values: LabelValues) -> list[str]:
    label = family.text_label or ""
    return [f"{family.shown_name}{_with(each, label, values(family.metric.value(each.item)))} 1.0\n" for each in series]


def _summaries(family: Family, series: Iterable[_Series]) -> list[str]:
    lines = []
    for each in series:
        events, total = family.metric.value(each.item)
        lines.append(f"{family.name}_count{each.shown} {number(events)}\n")
        lines.append(f"{family.name}_sum{each.shown} {number(total)}\n")
    return lines


def _histograms(family: Family, series: Iterable[_Series]) -> list[str]:
    lines = []
    for each in series:
        histogram = family.metric.value(each.item)
        for bound, count in zip(_BOUNDS, itertools.accumulate(histogram.counts), strict=True):
            lines.append(f"{family.name}_bucket{_with(each, 'le', bound)} {number(count)}\n")
        lines.append(f"{family.name}_count{each.shown} {number(histogram.records)}\n")
        lines.append(f"{family.name}_sum{each.shown} {number(histogram.sum_s)}\n")
    return lines

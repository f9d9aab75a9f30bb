"""A row of the table of metrics, and the subjects that rows describe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heliograph.metrics.shown import Shown

T = TypeVar("T")

Value = float | None
"""The value of a sample; None is not known, and NaN on the page."""

Labels = tuple[str | int | None, ...]
"""The values of the labels of a series, in the order of its subject; a label that is None is left out."""


class MetricType(StrEnum):
    """The types of Prometheus that occur."""

    GAUGE = "gauge"
    COUNTER = "counter"
    UNTYPED = "untyped"
    INFO = "info"  # always 1; its labels are the information
    SUMMARY = "summary"  # without quantiles: a count and a sum
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, eq=False)
class Subject(Generic[T]):
    """The subject of several metrics, such as each partition of each flow: the names of its labels, and its series.

    Each metric of a subject has one sample for each series, taken from its item.
    """

    labels: tuple[str, ...]
    series: Callable[[Shown], Iterator[tuple[Labels, T]]]


class CountAndSum(NamedTuple):
    """The value of a summary."""

    events: int
    total: float


@dataclass(frozen=True, slots=True)
class Metric(Generic[T]):
    """One metric. `name` is without the suffix of its type (`_total`, `_info`), which the page adds.

    A counter that is not known has no sample: counters cannot be NaN. `omits_unknown` does the same for a gauge.
    `value` returns a `CountAndSum` for a summary, a `LatencyHistogram` for a histogram.
    """

    name: str
    type: MetricType
    subject: Subject[T]
    help: str
    value: Callable[[T], Any]
    unit: str = ""
    omits_unknown: bool = False

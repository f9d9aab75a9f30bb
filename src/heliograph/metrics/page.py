"""A stand-in for the page of metrics."""

# ruff: noqa: D101, D102, D103
from collections.abc import Callable, Iterable
from typing import NamedTuple

from heliograph.metrics.dialects import Dialect
from heliograph.status.process_snapshot import ProcessSnapshot


class Page(NamedTuple):
    body: bytes
    content_type: str


class MetricOptions(NamedTuple):
    dialects: tuple[Dialect, ...] = (Dialect.JMX_EXPORTER,)
    partitions_max: int = 1_000
    has_legacy_names: bool = True

    @classmethod
    def of(cls, dialect: str, formats: Iterable[str], partitions_max: int) -> "MetricOptions":
        new = (Dialect.KIP_1280,) if "new" in (chosen := set(formats)) else ()
        return cls((Dialect(dialect), *new), partitions_max, chosen != {"new"})


def render(snapshot: ProcessSnapshot, accept: str, options: MetricOptions, hide: Callable[[str], str]) -> Page:
    body = "".join(f"# {hide(repr(each))}\n" for each in (options, *snapshot)) + "up 1\n# EOF\n"
    return Page(body.encode(), f"{accept.partition(';')[0]}; version=0.0.4; charset=utf-8")

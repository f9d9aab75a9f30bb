"""A stand-in for the page of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.metrics.dialects import Dialect
    from heliograph.status.process_snapshot import ProcessSnapshot


class MetricOptions(NamedTuple):
    """The options of a page."""

    dialects: tuple[Dialect, ...]
    partitions_max: int


class Page(NamedTuple):
    """A rendered page."""

    body: bytes
    content_type: str


def render(snapshot: ProcessSnapshot, accept: str, options: MetricOptions, hide: Callable[[str], str]) -> Page:
    """Render a page."""
    kind = accept.partition(";")[0]
    known = [*snapshot.flows, *(c.name for c in snapshot.connectors), *snapshot.certificates]
    lines = [f"# {options.dialects} {options.partitions_max}", *(hide(f"# {each!r}") for each in known)]
    more = [f"# {c!r}" for c in (*snapshot.checkpoints, *snapshot.heartbeats, snapshot.engine, snapshot.worker)]
    return Page("\n".join([*lines, *more, "up 1", "# EOF\n"]).encode(), f"{kind}; version=0.0.4; charset=utf-8")

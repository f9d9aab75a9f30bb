"""Output of the commands: the live table of `run` (log lines without a terminal), tables, JSON, progress bars."""

from __future__ import annotations

import json
import logging
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click
from rich.console import Console
from rich.live import Live
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from heliograph.cli.log_output import PlainLines, hide_secrets_in_logs
from heliograph.config.resolve.redaction import unexpected
from heliograph.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from heliograph.driver.flow.flow_status import FlowStatus, TopicRow


log = logging.getLogger("heliograph")

_LOG_INTERVAL_S = 10.0
_MOST_ROWS = 30


class Screen(Protocol):
    """Shows the flows' states."""

    def show(self, statuses: Sequence[FlowStatus]) -> None:
        """Show the newest state; called about twice a second."""

    def close(self) -> None:
        """Leave the terminal as it was."""


def make_screen(*, verbose: bool) -> Screen:
    """Return a live table on a terminal, log lines otherwise; configure logging for it."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    level = logging.DEBUG if verbose else logging.INFO
    log.setLevel(level)
    log.propagate = False
    if sys.stdout.isatty():
        console = Console()
        shown = RichHandler(console=console, show_path=False, markup=False)
        shown.setFormatter(PlainLines("%(message)s"))
        log.handlers = [shown]
        hide_secrets_in_logs(log)
        return LiveTable(console)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(PlainLines("%(asctime)s %(levelname)s %(message)s"))
    log.handlers = [handler]
    hide_secrets_in_logs(log)
    return LogLines()


def close_screen(screen: Screen) -> None:
    """Close the screen; log a failure instead of raising it, because the flows must still be stopped."""
    try:
        screen.close()
    except Exception as error:  # noqa: BLE001  (whatever the terminal does, source offsets must be committed)
        log.warning("The terminal could not be restored: %s", unexpected(error))


def format_bytes(size: float) -> str:
    """`12.3 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.1f} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1000
    raise AssertionError


def _latency(row: TopicRow) -> str:
    return "-" if row.latency_ms is None else f"{row.latency_ms:,.0f} ms"


class LiveTable:
    """A rich table that is drawn again in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=4)
        self._live.start()

    def show(self, statuses: Sequence[FlowStatus]) -> None:
        """Draw all topics of all flows."""
        self._live.update(self._table(statuses))

    def close(self) -> None:
        """Leave the last table on the screen."""
        self._live.stop()

    def _table(self, statuses: Sequence[FlowStatus]) -> Table:
        """Build the table. Outside text is `Text`: in a plain string `[fd00::1]` would be rich's markup."""
        table = Table(box=None, header_style="bold")
        for name in ("flow", "topic"):
            table.add_column(name)
        for name in ("partitions", "records/s", "MB/s", "records", "lag", "latency"):
            table.add_column(name, justify="right")
        rows = [row for status in statuses for row in status.rows()]
        for row in sorted(rows, key=lambda r: -r.records_per_s)[:_MOST_ROWS]:
            failed = f" ({row.failed_partitions} failed)" if row.failed_partitions else ""
            table.add_row(
                Text(row.flow),
                Text(row.topic),
                f"{row.partitions}{failed}",
                f"{row.records_per_s:,.0f}",
                f"{row.bytes_per_s / 1e6:,.1f}",
                f"{row.records:,}",
                f"{row.lag:,}",
                _latency(row),
            )
        if len(rows) > _MOST_ROWS:
            table.add_row("", f"and {len(rows) - _MOST_ROWS} more topics")
        for status in statuses:
            if not status.rows():
                table.add_row(Text(str(status.flow)), Text(status.state.lower()))
            if status.issue:
                table.add_row(Text(str(status.flow)), Text(status.issue, style="yellow"))
        return table


class LogLines:
    """A line per active topic every ten seconds. An issue of a flow is logged when it begins and ends, not here."""

    def __init__(self) -> None:
        self._next_at = time.monotonic() + _LOG_INTERVAL_S
        self._shown: dict[tuple[str, str], tuple[int, int]] = {}

    def show(self, statuses: Sequence[FlowStatus]) -> None:
        """Log what has moved since the last time."""
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + _LOG_INTERVAL_S
        for status in statuses:
            for row in status.rows():
                if self._shown.get((row.flow, row.topic)) != (row.records, row.lag):
                    self._shown[row.flow, row.topic] = (row.records, row.lag)
                    log.info("%s", describe_row(row))

    def close(self) -> None:
        """Nothing to leave."""


def describe_row(row: TopicRow) -> str:
    """One topic in one line."""
    return (
        f"{row.flow} {row.topic}: {counted(row.partitions, 'partition')}, {counted(row.records, 'record')}"
        f" ({row.records_per_s:,.0f}/s, {row.bytes_per_s / 1e6:,.1f} MB/s), lag {row.lag:,}, latency {_latency(row)}"
    )


EXIT_REFUSED = 1  # a group was not moved, or not shown
EXIT_UNREACHABLE = 3  # a cluster that the command needs is unreachable


def show_json(data: Any) -> None:
    """Print plain values."""
    click.echo(json.dumps(data, indent=2))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Columns as wide as their widest value; what is not known is a dash."""
    cells = [list(header), *([_shown(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _shown(value: object) -> str:
    return "-" if value is None else str(value)


@contextmanager
def fetch_progress() -> Iterator[Callable[[int, int], None]]:
    """A bar while jars are fetched; on a terminal only, and only if there is something to fetch."""
    if not sys.stderr.isatty():
        reported: list[int] = []

        def report(_done: int, _found: int) -> None:
            if not reported:
                reported.append(1)
                click.echo("Fetching Apache Kafka's jars (once) ...", err=True)

        yield report
        return
    columns = (
        TextColumn("Fetching Apache Kafka's jars"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task("jars", total=None, visible=False)

        def show(done: int, found: int) -> None:
            progress.update(task, visible=True, completed=done, total=max(found, 1))

        yield show

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

from heliograph.cli.log_output import JsonLines, PlainLines, hide_secrets_in_logs
from heliograph.config.resolve.redaction import unexpected
from heliograph.driver.flow.flow_status import ProgressLines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from heliograph.driver.flow.flow_status import FlowStatus, TopicRow


log = logging.getLogger("heliograph")

_MOST_ROWS = 30


class Screen(Protocol):
    """Shows the flows' states."""

    def show(self, statuses: Sequence[FlowStatus]) -> None:
        """Show the newest state; called about twice a second."""

    def close(self) -> None:
        """Leave the terminal as it was."""


_VERBOSE, _JSON = f"{__name__}.verbose", f"{__name__}.json"


def _remember_verbose(context: click.Context, _option: click.Parameter, value: bool) -> None:
    context.meta[_VERBOSE] = value


def _remember_format(context: click.Context, _option: click.Parameter, value: str) -> None:
    context.meta[_JSON] = value == "json"


# Not arguments of the commands: only `make_screen` and `say` read them.
verbose_option = click.option(
    "--verbose", is_flag=True, expose_value=False, callback=_remember_verbose, help="Log debug messages."
)
log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    expose_value=False,
    callback=_remember_format,
    help="json: one JSON object per line, also on a terminal.",
)


def _wants(what: str) -> bool:
    context = click.get_current_context(silent=True)
    return bool(context is not None and context.meta.get(what))


def say(text: str, *, is_error: bool = False) -> None:
    """Print a result of a command that has ended; in a log of JSON lines it is one of them."""
    if _wants(_JSON):
        log.log(logging.ERROR if is_error else logging.INFO, "%s", text)
    else:
        click.echo(f"error: {text}" if is_error else text, err=is_error)


def make_screen() -> Screen:
    """Return a live table on a terminal, log lines otherwise; configure logging for it."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    log.setLevel(logging.DEBUG if _wants(_VERBOSE) else logging.INFO)
    log.propagate = False
    is_json = _wants(_JSON)
    if sys.stdout.isatty() and not is_json:
        console = Console()
        shown = RichHandler(console=console, show_path=False, markup=False)
        shown.setFormatter(PlainLines("%(message)s"))
        log.handlers = [shown]
        hide_secrets_in_logs(log)
        return LiveTable(console)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines() if is_json else PlainLines("%(asctime)s %(levelname)s %(message)s"))
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
                str(row.lag),
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
    """A few lines for each flow. An issue of a flow's step is logged when it begins and ends, not here."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: dict[FlowStatus, ProgressLines] = {}

    def show(self, statuses: Sequence[FlowStatus]) -> None:
        """Log what has moved or changed since the last time."""
        self._lines = {
            status: self._lines.get(status) or ProgressLines(str(status.flow), status, self._clock)
            for status in statuses
        }
        for lines in self._lines.values():
            lines.report()

    def close(self) -> None:
        """Nothing to leave."""


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

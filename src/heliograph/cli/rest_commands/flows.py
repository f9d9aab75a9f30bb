"""`heliograph flows [URL]`: the flows of a running process, their lag, and the partitions that are not well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.connect_client import FlowsClient, address_argument, connect_options
from heliograph.cli.output import show_json, table
from heliograph.model import counted

if TYPE_CHECKING:
    from heliograph.cli.connect_client import ConnectClient


EXIT_NOT_READY = 1

_MOST_PARTITIONS = 20
_UNWELL = ("failed", "retrying", "waiting")


@click.command()
@address_argument
@click.option("--flow", "name", metavar="FLOW", help="Only this flow, with all its partitions.")
@click.option("--json", "as_json", is_flag=True, help="Print what /heliograph/v1/flows returns.")
@connect_options
@click.pass_context
def flows(context: click.Context, client: ConnectClient, name: str | None, *, as_json: bool) -> None:
    """Show the flows of a running `heliograph run --rest` or `heliograph worker`, at URL.

    Without --flow only partitions that fail, retry or wait are listed. A value that is not known is a dash; a lag of
    which only a part is known is "at least" that. Exits with 1 if a flow is not ready.
    """
    reader = FlowsClient(client)
    found = reader.flows() if name is None else [reader.flow(name)]
    if as_json:
        show_json({"flows": found} if name is None else {**found[0], "partitions": reader.partitions(name)})
    else:
        _show(reader, found, has_all=name is not None)
    context.exit(0 if all(flow["ready"] for flow in found) else EXIT_NOT_READY)


def _show(reader: FlowsClient, found: list[dict[str, Any]], *, has_all: bool) -> None:
    for line in table(
        ("FLOW", "STATE", "READY", "PARTITIONS", "LAG", "SECONDS", "RECORDS/S", "MB/S"), map(_flow_row, found)
    ):
        click.echo(line)
    for flow in found:
        for reason in dict.fromkeys((*flow["unready_reasons"], *flow["issues"])):
            click.echo(f"{flow['name']}: {reason}")
        rows = reader.partitions(flow["name"]) if has_all else _unwell(reader, flow)
        if rows:
            click.echo("")
            for line in table(
                ("TOPIC", "PARTITION", "STATE", "SINCE", "POSITION", "LOG END", "LAG", "SECONDS", "REASON"),
                map(_partition_row, rows if has_all else rows[:_MOST_PARTITIONS]),
            ):
                click.echo(line)
        if not has_all and len(rows) > _MOST_PARTITIONS:
            click.echo(f"and {counted(len(rows) - _MOST_PARTITIONS, 'more partition')}; --flow shows all")


def _unwell(reader: FlowsClient, flow: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the partitions that are not well, failed ones first; asks only for states that the flow has."""
    return [row for state in _UNWELL if flow["partitions"][state] for row in reader.partitions(flow["name"], state)]


def _flow_row(flow: dict[str, Any]) -> tuple[object, ...]:
    lag = flow["lag_records"]
    if lag is None and flow["lag_records_at_least"]:
        lag = f"at least {flow['lag_records_at_least']:,}"
    counts = ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in flow["partitions"].items() if n)
    return (
        flow["name"],
        flow["state"],
        "yes" if flow["ready"] else "no",
        counts.replace(" total,", ":", 1),
        f"{lag:,}" if isinstance(lag, int) else lag,
        _seconds(flow["lag_seconds"]),
        f"{flow['records_per_second']:,.0f}",
        f"{flow['bytes_per_second'] / 1e6:,.1f}",
    )


def _partition_row(row: dict[str, Any]) -> tuple[object, ...]:
    return (
        row["topic"],
        row["partition"],
        row["state"].replace("_", " "),
        row["since"],
        row["position"],
        row["log_end"],
        row["lag_records"],
        _seconds(row["lag_seconds"]),
        row["reason"],
    )


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:,.1f}"

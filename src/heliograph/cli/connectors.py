"""`heliograph connectors`: every connector of a Connect cluster with its state and its tasks'."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.connect_options import connect_options
from heliograph.cli.deploy import failures_of
from heliograph.cli.flows import show_json, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.cli.connect_client import ConnectClient

_HEADER = ("CONNECTOR", "TYPE", "STATE", "TASKS", "WORKER")


@click.command()
@connect_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def connectors(client: ConnectClient, *, as_json: bool) -> None:
    """List the connectors of a Connect cluster, Heliograph's or Java's, with their states."""
    statuses = client.statuses()
    if as_json:
        show_json(statuses)
        return
    if not statuses:
        click.echo("no connectors")
        return
    header, *rows = table(_HEADER, [_row(status) for status in statuses])
    click.echo(header)
    for row, status in zip(rows, statuses, strict=True):
        click.echo(row)
        for line in failures_of(status):
            click.echo(f"  {line}")


def _row(status: Mapping[str, Any]) -> tuple[Any, ...]:
    connector = status.get("connector", {})
    counts = Counter(task.get("state") for task in status.get("tasks", ()))
    tasks = ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none"
    return status.get("name"), status.get("type"), connector.get("state"), tasks, connector.get("worker_id")

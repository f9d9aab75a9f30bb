"""`heliograph restart [URL]`: restarts the tasks of a flow, or a topic or partition of it, maybe at another offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.connect_client import FlowsClient, address_argument, connect_options
from heliograph.cli.output import show_json, table
from heliograph.errors import ConfigError
from heliograph.model import counted

if TYPE_CHECKING:
    from heliograph.cli.connect_client import ConnectClient


_STARTS = ("beginning", "end", "committed")
_MOST_DIGITS = 18
_MOST_ROWS = 50


@click.command()
@address_argument
@click.option("--flow", metavar="FLOW", help="The flow; needed if the process has several.")
@click.option("--topic", metavar="TOPIC", help="Only this topic of the source; the others continue.")
@click.option("--partition", metavar="N", type=click.IntRange(min=0), help="Only this partition of the topic.")
@click.option(
    "--from",
    "start",
    metavar="START",
    help="beginning, end, committed, or an offset of the source to continue at.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what the endpoint returns.")
@connect_options
def restart(
    client: ConnectClient,
    flow: str | None,
    topic: str | None,
    partition: int | None,
    start: str | None,
    *,
    as_json: bool,
) -> None:
    """Restart the tasks of a flow of a running `heliograph worker` or `heliograph run --rest-actions`, at URL.

    With --topic only its partitions are restarted, inside their tasks: try failed ones again now. With --from they
    continue at another offset: at the beginning everything is copied again, after what the target has; at the end, what
    was not copied is left out, and recorded as a loss. Without --topic, --from moves every partition of the flow. The
    offset is committed, so it holds after a restart of the process.
    """
    if partition is not None and topic is None:
        raise ConfigError("--partition needs --topic.")
    request = {"topic": topic, "partition": partition, "from": _start(start)}
    flows = FlowsClient(client)
    restarted = flows.restart_partitions(flow or _only_flow(flows), request)
    if as_json:
        show_json({"restarted": restarted})
        return
    rows = [(row["topic"], row["partition"], row["from"], row["skipped"]) for row in restarted]
    for line in table(("TOPIC", "PARTITION", "FROM", "SKIPPED"), rows[:_MOST_ROWS]):
        click.echo(line)
    if len(rows) > _MOST_ROWS:
        click.echo(f"and {counted(len(rows) - _MOST_ROWS, 'more partition')}")


def _start(text: str | None) -> Any:
    if text is None or text in _STARTS:
        return text
    if not text.isdecimal() or not text.isascii() or len(text) > _MOST_DIGITS:
        raise ConfigError("--from: write beginning, end, committed or an offset.")
    return int(text)


def _only_flow(flows: FlowsClient) -> str:
    names = [str(flow["name"]) for flow in flows.flows()]
    if not names:
        raise ConfigError("The process has no flow.")
    if len(names) > 1:
        raise ConfigError(f"Name one flow with --flow; the process has {', '.join(names)}.")
    return names[0]

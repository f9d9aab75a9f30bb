"""`heliograph losses FILE`: the recorded losses of a file's flows, read from their targets; no process needs to run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.inputs import load_file, parse_flow, secrets_option
from heliograph.cli.output import EXIT_UNREACHABLE, show_json, table
from heliograph.errors import ClusterError
from heliograph.operations.recorded_losses import recorded_losses
from heliograph.status.json_views import loss_json

if TYPE_CHECKING:
    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.model import Flow


_HEADER = ("TIME", "TOPIC", "PARTITION", "FIRST OFFSET", "LAST OFFSET", "COUNT", "CAUSE")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--flow", "flow_text", metavar="A->B", help="Only this flow.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@secrets_option
@click.pass_context
def losses(context: click.Context, file: Path, flow_text: str | None, as_json: bool) -> None:
    """Show the records that source and target of FILE's flows do not both have: when, which, how many and why.

    The losses are read from the target of each flow, the newest first. Offsets are the source's. Changes nothing. Exits
    with 3 if the target of a flow is unavailable; the other flows are shown.
    """
    config = load_file(file)
    flows = config.flows if flow_text is None else (parse_flow(config, flow_text),)
    reports = [_report(config, flow) for flow in flows]
    if as_json:
        show_json({"flows": reports})
    else:
        click.echo("\n".join(line for report in reports for line in _lines(report)))
    context.exit(EXIT_UNREACHABLE if any(report["issue"] for report in reports) else 0)


def _report(config: MirrorMakerConfig, flow: Flow) -> dict[str, Any]:
    try:
        found = recorded_losses(config, flow)
    except ClusterError as error:
        return {"flow": str(flow), "issue": str(error), "total": None, "losses": []}
    listed = [loss_json(str(flow), loss) for loss in found.newest]
    return {"flow": str(flow), "issue": None, "total": found.total, "losses": listed}


def _lines(report: dict[str, Any]) -> list[str]:
    if report["issue"]:
        return [report["flow"], f"  its losses are not known: {report['issue']}"]
    rows = [
        (
            *(row["at"], row["topic"], row["partition"], row["first_offset"], row["last_offset"]),
            f"{row['count']:,}" if row["count_is_exact"] else f"about {row['count']:,}",
            row["cause"].replace("_", " "),
        )
        for row in report["losses"]
    ]
    lines = [f"  {line}" for line in table(_HEADER, rows)] if rows else ["  no loss is recorded"]
    older = report["total"] - len(rows)
    return [report["flow"], *lines, *([f"  and {older:,} older"] if older else [])]

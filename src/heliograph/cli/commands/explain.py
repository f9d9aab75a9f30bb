"""`heliograph explain FILE [KEY]`: the value a key has for each flow, and which line and rule it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.cli.inputs import MachineLookup, read_mirror_file, secrets_option
from heliograph.config.effective import key_origins as explaining
from heliograph.config.effective.key_origins import shown_value
from heliograph.config.keys.connector_keys import ENABLED
from heliograph.config.resolve.overlays import parse_name
from heliograph.config.validate.dedicated_file import examine
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.config.keys.table import Key


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("key", required=False)
@click.option("--flow", "flow_name", metavar="A->B", help="Only this flow; it need not be enabled.")
@secrets_option
def explain(file: Path, key: str | None, flow_name: str | None) -> None:
    """Show where the value of KEY comes from in FILE, for each flow; without KEY, show all its keys. Hides secrets."""
    report = examine(read_mirror_file(file), MachineLookup())
    if report.config is None:
        raise ConfigError(report.problems)
    for problem in report.problems:
        click.echo(f"error: {problem}", err=True)
    if key is None:
        _show_all(report.config)
        return
    row = explaining.find_row(report.config, key)
    _show_row(row)
    for found in explaining.explain(report.config, row, _flows(report.config, row, key, flow_name)):
        click.echo(f"{found.where}: {found.value or '(empty)'}")
        for reason in found.problems:
            click.echo(f"    but {reason}")
        click.echo(f"    from {found.source}")
        for loser in found.losers:
            click.echo(f"    over {loser}")


def _show_all(config: MirrorMakerConfig) -> None:
    for line, name, value, problems in explaining.set_keys(config):
        click.echo(f"{line:>5}  {name} = {value}")
        for problem in problems:
            click.echo(f"{'':>5}      but {problem}")


def _show_row(row: Key[object]) -> None:
    default = shown_value(row, row.default) or "(none)"
    mm2 = f" (MM2: {shown_value(row, row.mm2_default)})" if row.mm2_default is not None else ""
    since = f", since {row.since}" if row.since else ""
    click.echo(f"{row.name}: {row.doc}")
    click.echo(f"    {row.type.name.lower()}, default {default}{mm2}, importance {row.importance.value}{since}")
    if row.check is not None:
        click.echo(f"    must be {row.check.phrase}")
    if row.support.kind != "full":
        click.echo(f"    {row.support.kind}: {row.support.reason}")


def _flows(config: MirrorMakerConfig, row: Key[object], key: str, flow_name: str | None) -> tuple[Flow, ...]:
    """Return the flows to show: the one of `--flow`, the one in the key's name, or all enabled flows.

    `enabled` itself is shown for every pair of clusters, and so is any key if no flow is enabled.
    """
    if flow_name is None:
        flow = parse_name(key, config.clusters).flow
        if flow is not None:
            return (flow,)
        pairs = tuple(Flow(source, target) for source in config.clusters for target in config.clusters)
        every = tuple(pair for pair in pairs if pair.source != pair.target)
        return every if row is ENABLED else config.flows or every
    source, arrow, target = flow_name.partition("->")
    if not arrow or source not in config.clusters or target not in config.clusters or source == target:
        raise ConfigError(f"--flow {flow_name}: write it as A->B with two of {', '.join(config.clusters)}.")
    return (Flow(source, target),)

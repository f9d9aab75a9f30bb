"""`heliograph translate`: a group's offsets on this cluster by its checkpoints, with nothing but the target at hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.cli.flows import show_json, table
from heliograph.cli.machine import MachineLookup, read_config_file
from heliograph.client import MirrorClient
from heliograph.config.placeholders import Resolver
from heliograph.config.properties import as_map, parse_properties

if TYPE_CHECKING:
    from heliograph.client.mirror_client import Offsets

EXIT_NOT_FOUND = 1


@click.command()
@click.option("--bootstrap", metavar="HOST:PORT", required=True, help="The target, where the checkpoints are.")
@click.option("--source", metavar="ALIAS", required=True, help="Alias of the cluster the group has read on.")
@click.option("--group", "names", metavar="G", multiple=True, help="A group; may be repeated.")
@click.option("--all", "is_all", is_flag=True, help="All groups that have checkpoints.")
@click.option("--config", "file", type=click.Path(path_type=Path), help="Client properties: security, naming policy.")
@click.option("--timeout", "timeout_s", metavar="SECONDS", default=30.0, show_default=True, help="Time to read.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def translate(
    context: click.Context,
    bootstrap: str,
    source: str,
    names: tuple[str, ...],
    is_all: bool,
    file: Path | None,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Print where groups of another cluster go on here, by their newest checkpoints. Changes nothing.

    Ends with 1 where a group has no checkpoint.
    """
    if bool(names) == is_all:
        raise click.UsageError("Give --group, or --all for every group that has checkpoints.")
    properties = _properties(file) | {"bootstrap.servers": bootstrap}
    with MirrorClient(properties) as client:
        topic = client.replication_policy.checkpoints_topic(source)
        is_there = topic in client.checkpoint_topics()
        found = client.remote_consumer_offsets(re.compile(".*", re.DOTALL), source, timeout_s)
    wanted = {group: found.get(group, {}) for group in (names or sorted(found))}
    if as_json:
        show_json({"source": source, "groups": [_as_data(group, offsets) for group, offsets in wanted.items()]})
    elif any(wanted.values()):
        rows = [(group, tp, place.offset) for group, offsets in wanted.items() for tp, place in sorted(offsets.items())]
        click.echo("\n".join(table(("GROUP", "PARTITION", "OFFSET"), rows)))
    missing = [group for group, offsets in wanted.items() if not offsets]
    why = "" if is_there else f": there is no topic {topic}; does a flow from '{source}' write checkpoints here?"
    for group in missing:
        click.echo(f"error: the group '{group}' has no checkpoint from '{source}'{why}", err=True)
    if is_all and not found:
        click.echo(f"error: no group has a checkpoint from '{source}'{why}", err=True)
    context.exit(EXIT_NOT_FOUND if missing or not found else 0)


def _properties(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    raw = as_map(parse_properties(read_config_file(file)))
    resolver = Resolver(MachineLookup(), raw)
    return {name: resolver.resolve(name, value) for name, value in raw.items()}


def _as_data(group: str, offsets: Offsets) -> dict[str, object]:
    return {
        "group": group,
        "offsets": [
            {"topic": tp.topic, "partition": tp.partition, "offset": place.offset, "metadata": place.metadata}
            for tp, place in sorted(offsets.items())
        ],
    }

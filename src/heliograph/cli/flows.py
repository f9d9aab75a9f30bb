"""What the commands about groups share: which flow is meant, which groups, and how numbers and tables are shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.machine import MachineLookup, read_mirror_file
from heliograph.config.dedicated import MirrorMakerConfig, load
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

EXIT_REFUSED = 1  # for some group: it was not done, or not shown
EXIT_UNREACHABLE = 3  # as where a command can tell nothing at all: a cluster that it must ask does not answer


def load_file(file: Path) -> MirrorMakerConfig:
    """The user's file, understood; its warnings go to standard error."""
    config = load(read_mirror_file(file), MachineLookup())
    for warning in config.warnings:
        click.echo(f"warning: {warning}", err=True)
    return config


def parse_flow(config: MirrorMakerConfig, text: str | None) -> Flow:
    """The flow that `--flow A->B` names; the only one of the file where nothing is given."""
    names = ", ".join(map(str, config.flows))
    if text is None:
        if len(config.flows) == 1:
            return config.flows[0]
        raise ConfigError(f"--flow: the file has several flows; name one of {names}.")
    source, _, target = (part.strip() for part in text.partition("->"))
    flow = Flow(source, target)
    if flow not in config.flows:
        raise ConfigError(f"--flow {text}: the file enables no such flow; it enables {names}.")
    return flow


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

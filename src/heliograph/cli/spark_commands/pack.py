"""`heliograph pack`: an archive for `spark.archives` with Python, every package and the kernels that executors need."""

from __future__ import annotations

from pathlib import Path

import click

from heliograph.cli.output import format_bytes
from heliograph.operations.environment_pack import DEFAULT_NAME, write_environment


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), default=DEFAULT_NAME)
def pack(file: Path) -> None:
    """Write FILE, an archive for spark.archives: executors then need nothing but Spark.

    It has this Python, the packages that tasks import, and their compiled kernels. Executors need the operating system
    and the processor architecture of this machine. Spark itself is not in it: executors have their own.
    """
    environment = write_environment(file)
    click.echo(
        f"{file}: Python {environment.python}, {environment.packages} packages, {format_bytes(environment.bytes)}"
    )
    click.echo(f"heliograph run MM2.PROPERTIES --master MASTER --conf spark.archives={file.resolve()}#environment")

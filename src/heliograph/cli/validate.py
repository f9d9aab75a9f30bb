"""`heliograph validate FILE`: everything that is wrong, doubtful or without effect in a file, touching no cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.cli.machine import MachineLookup, read_mirror_file, secrets_option
from heliograph.worker.checks import examine_all

if TYPE_CHECKING:
    from heliograph.config.dedicated import Report

EXIT_NOT_USABLE = 2


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("more", nargs=-1, metavar="")
@click.option("--clusters", "targets", metavar="TARGET ...", multiple=True, help="Only flows into these clusters.")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@secrets_option
@click.pass_context
def validate(
    context: click.Context, file: Path, more: tuple[str, ...], targets: tuple[str, ...], *, strict: bool
) -> None:
    """Say whether FILE can be run, and what in it is not as its author may think. Exit code 2: it cannot."""
    if more and not targets:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    report = examine_all(read_mirror_file(file), MachineLookup(), (*targets, *more))
    for kind, sentences in (("error", report.problems), ("warning", report.warnings), ("note", report.notes)):
        for sentence in sentences:
            click.echo(f"{kind}: {sentence}")
    is_usable = not report.problems and not (strict and report.warnings)
    click.echo(_verdict(file, report, is_usable=is_usable))
    context.exit(0 if is_usable else EXIT_NOT_USABLE)


def _verdict(file: Path, report: Report, *, is_usable: bool) -> str:
    counts = f"{len(report.problems)} error(s), {len(report.warnings)} warning(s), {len(report.notes)} note(s)"
    if not is_usable or report.config is None:
        return f"{file}: not usable; {counts}."
    return f"{file}: usable; {', '.join(map(str, report.config.flows))}; {counts}."

"""`heliograph validate FILE`: everything that is wrong, doubtful or without effect in a file, touching no cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.cli.machine import MachineLookup, read_mirror_file, secrets_option
from heliograph.cli.rest_checks import rest_problems
from heliograph.config.listeners import file_listeners, rest_listeners
from heliograph.config.places import in_order, located
from heliograph.config.strimzi import is_resource
from heliograph.config.worker_file import is_worker_file
from heliograph.errors import ConfigError
from heliograph.worker.checks import examine_all, examine_worker_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.config.dedicated import Report
    from heliograph.config.forms import ConfigText
    from heliograph.config.worker_file import WorkerReport

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
    """Say whether FILE can be run, and what in it is not as its author may think. Exit code 2: it cannot.

    FILE is what `run` takes, or the properties file of a Connect worker. The files that it names are looked at too.
    """
    if more and not targets:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    text = read_mirror_file(file)
    is_worker = not is_resource(text.text, text.name) and is_worker_file(text.text)
    problems, warnings, notes, flows = _of_worker(text) if is_worker else _of_flows(text, (*targets, *more))
    for kind, sentences in (("error", problems), ("warning", warnings), ("note", notes)):
        for sentence in sentences:
            click.echo(f"{kind}: {sentence}")
    is_usable = not problems and not (strict and warnings)
    counts = counted(error=len(problems), warning=len(warnings), note=len(notes))
    what = f"{'a Connect worker, ' if is_worker else ''}{'usable' if is_usable else 'not usable'}"
    click.echo(f"{file}: {'; '.join(filter(None, (what, flows if is_usable else '', counts)))}.")
    context.exit(0 if is_usable else EXIT_NOT_USABLE)


def counted(**counts: int) -> str:
    """`1 error, 2 warnings`; errors are also told where there are none, the others only where there are some."""
    errors, *others = counts.items()
    told = [errors, *((word, count) for word, count in others if count)]
    return ", ".join(f"{count or 'no'} {word}{'' if count == 1 else 's'}" for word, count in told)


_Told = tuple["Sequence[str]", "Sequence[str]", "Sequence[str]", str]


def _of_flows(text: ConfigText, targets: tuple[str, ...]) -> _Told:
    report = examine_all(text, MachineLookup(), targets, with_files=True)
    flows = ", ".join(map(str, report.config.flows)) if report.config is not None else ""
    return report.problems, in_order((*report.warnings, *_rest_warnings(report))), report.notes, flows


def _of_worker(text: ConfigText) -> _Told:
    report = examine_worker_all(text.text, MachineLookup())
    problems = in_order(dict.fromkeys((*report.problems, *_rest_problems(report))))
    return problems, report.warnings, report.notes, ""


def _rest_warnings(report: Report) -> list[str]:
    """What keeps `run` from serving REST, which does not keep it from copying."""
    config = report.sound
    if config is None:
        return []
    try:
        listeners = file_listeners(config.raw, config.resolver)
        found = rest_problems(config.raw, config.resolver, listeners) if listeners else []
    except ConfigError as error:
        found = list(error.problems)
    return [
        located(f"{problem.rstrip('.')}; REST is not served.", config.lines, config.paths)
        for problem in found
        if problem.partition(": ")[0] not in report.settled
    ]


def _rest_problems(report: WorkerReport) -> list[str]:
    worker = report.sound
    if worker is None:
        return []
    try:
        listeners = rest_listeners(worker.settings)
    except ConfigError:  # which the report has
        return []
    found = rest_problems(worker.raw, worker.resolver, listeners)
    return [located(problem, worker.lines, {}) for problem in found if problem.partition(": ")[0] not in report.settled]

"""`heliograph validate FILE ...`: what is wrong, doubtful or without effect in a file, touching no cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from heliograph.cli.connector_files import PARTS
from heliograph.cli.inputs import MachineLookup, read_config_file, read_mirror_file, secrets_option
from heliograph.cli.rest_checks import rest_problems
from heliograph.config.effective.rest_config import file_listeners, rest_listeners
from heliograph.config.formats.connector_text import is_connector_text, read_connector_texts
from heliograph.config.formats.strimzi_reader import is_resource
from heliograph.config.resolve.diagnostics import in_order, located
from heliograph.config.validate.worker_file import is_worker_file, load_worker
from heliograph.errors import ConfigError
from heliograph.operations.configuration_checks import examine_all, examine_connector, examine_worker_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.config.formats.connector_text import ConnectorText
    from heliograph.config.formats.conversion import ConfigText
    from heliograph.config.validate.dedicated_file import Report
    from heliograph.config.validate.worker_file import WorkerReport


EXIT_NOT_USABLE = 2


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("more", nargs=-1, metavar="[FILE]...")
@click.option(
    "--clusters", "targets", metavar="TARGET", multiple=True, help="Only flows into this cluster; may be repeated."
)
@click.option(
    "--worker",
    "worker_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The properties file of the worker that connectors are for: what it declares and allows counts.",
)
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@secrets_option
@click.pass_context
def validate(
    context: click.Context,
    file: Path,
    more: tuple[str, ...],
    targets: tuple[str, ...],
    worker_file: Path | None,
    *,
    strict: bool,
) -> None:
    """Say whether FILE can be run, and what in it is not as its author may think. Exit code 2: it cannot.

    FILE is what `run` takes, the properties file of a Connect worker, or a connector in JSON. The files that it names
    are looked at too; no cluster is asked. Of several files each gets its verdict.
    """
    worker = None if worker_file is None else _load_worker(worker_file)
    if targets:
        files, targets = [file], (*targets, *more)
    else:
        files = [file, *map(Path, more)]
    is_every_usable = True
    for each in files:
        verdict = _verdict(each, targets, worker, is_only=len(files) == 1)
        is_usable = not verdict.problems and not (strict and verdict.warnings)
        _show(verdict, f"{each}", is_usable=is_usable, start="" if len(files) == 1 else f"{each}: ")
        is_every_usable = is_every_usable and is_usable
    context.exit(0 if is_every_usable else EXIT_NOT_USABLE)


def _load_worker(file: Path) -> WorkerConfig:
    try:
        return load_worker(read_config_file(file), MachineLookup())
    except ConfigError as error:
        raise ConfigError([f"--worker {file}: {each.removeprefix(f'{file}: ')}" for each in error.problems]) from None


class _Verdict(NamedTuple):
    """What there is to say about a file: what it is, where it is not of flows, and which flows it has."""

    problems: Sequence[str]
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    what: str = ""
    flows: str = ""


def _verdict(file: Path, targets: tuple[str, ...], worker: WorkerConfig | None, *, is_only: bool) -> _Verdict:
    try:
        text = read_mirror_file(file)
    except ConfigError as error:
        if is_only:
            raise
        return _Verdict([problem.removeprefix(f"{file}: ") for problem in error.problems])
    if is_connector_text(text.text, text.name):
        unused = ["--clusters: it has no effect here: it chooses among flows, and this is a connector."]
        return _with_notes(_of_connectors(text, worker), unused if targets else [])
    unused = ["--worker: it has no effect here: it is for connectors in JSON."] if worker is not None else []
    if not is_resource(text.text, text.name) and is_worker_file(text.text):
        unused += ["--clusters: it has no effect here: this is a Connect worker."] if targets else []
        return _with_notes(_of_worker(text), unused)
    return _with_notes(_of_flows(text, targets), unused)


def _with_notes(verdict: _Verdict, notes: list[str]) -> _Verdict:
    return verdict._replace(notes=(*notes, *verdict.notes))


def _show(verdict: _Verdict, file: str, *, is_usable: bool, start: str) -> None:
    reported = {"error": verdict.problems, "warning": verdict.warnings, "note": verdict.notes}
    for kind, sentences in reported.items():
        for sentence in sentences:
            click.echo(f"{kind}: {start}{sentence}")
    words = [
        ", ".join(filter(None, (verdict.what, "usable" if is_usable else "not usable"))),
        verdict.flows if is_usable else "",
        counted(**{kind: len(sentences) for kind, sentences in reported.items()}),
    ]
    click.echo(f"{file}: {'; '.join(filter(None, words))}.")


def counted(**counts: int) -> str:
    """`1 error, 2 warnings`; errors are also told where there are none, the others only where there are some."""
    errors, *others = counts.items()
    reported = [errors, *((word, count) for word, count in others if count)]
    return ", ".join(f"{count or 'no'} {word}{'' if count == 1 else 's'}" for word, count in reported)


def _of_flows(text: ConfigText, targets: tuple[str, ...]) -> _Verdict:
    report = examine_all(text, MachineLookup(), targets, with_files=True)
    flows = ", ".join(map(str, report.config.flows)) if report.config is not None else ""
    warnings = in_order((*report.warnings, *_rest_warnings(report)))
    return _Verdict(report.problems, warnings, report.notes, flows=flows)


def _of_connectors(text: ConfigText, worker: WorkerConfig | None) -> _Verdict:
    """Every connector of the file; a sentence says whose it is where there are several."""
    try:
        connectors = read_connector_texts(text.text)
    except ConfigError as error:
        return _Verdict(error.problems, what="a connector")
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    flows: dict[str, None] = {}
    for number, each in enumerate(connectors, 1):
        report = examine_connector(each, MachineLookup(), worker, name=Path(text.name).stem)
        whose = f"connector {number}: " if len(connectors) > 1 else ""
        for kept, reported in zip(found, (report.problems, report.warnings, report.notes), strict=True):
            kept += [f"{whose}{sentence}" for sentence in reported]
        flows |= {} if report.flow is None else {str(report.flow): None}
    found[0].extend(_repeated_names(connectors))
    found[1].extend(_deploy_warnings(text, connectors))
    what = "a connector" if len(connectors) == 1 else f"{len(connectors)} connectors"
    return _Verdict(*found, what=what, flows=", ".join(flows))


def _repeated_names(connectors: Sequence[ConnectorText]) -> Iterator[str]:
    """A worker has one connector of a name: it would refuse to create the second."""
    owners: dict[str, list[str]] = {}
    for number, each in enumerate(connectors, 1):
        name = (each.name or each.config.get("name") or "").strip()
        owners.setdefault(name, []).append(f"{number}")
    for name, numbers in owners.items():
        if name and len(numbers) > 1:
            listed = f"{', '.join(numbers[:-1])} and {numbers[-1]}"
            yield f"name: connectors {listed} are called '{name}'; give each its own name."


def _deploy_warnings(text: ConfigText, connectors: Sequence[ConnectorText]) -> list[str]:
    """A file that is named for `deploy` holds one config alone, and is put under that name."""
    file, connector = Path(text.name), connectors[0]
    if file.suffix != ".json" or not file.name.startswith(tuple(part.name_for("") for part in PARTS)):
        return []
    if connector.name is not None or text.text.lstrip().startswith("["):
        return ["'heliograph deploy' will refuse this file: it takes one connector's config alone, without its name."]
    name = connector.config.get("name")
    if name is None or name == file.stem:
        return []
    line = connector.lines["name"]
    return [f"line {line}: name: 'heliograph deploy' puts this file as '{file.stem}', which the worker will refuse."]


def _of_worker(text: ConfigText) -> _Verdict:
    report = examine_worker_all(text.text, MachineLookup())
    problems = in_order(dict.fromkeys((*report.problems, *_rest_problems(report))))
    return _Verdict(problems, report.warnings, report.notes, "a Connect worker")


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

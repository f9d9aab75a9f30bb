"""`heliograph validate FILE ...`: what is wrong, doubtful or without effect in a file, touching no cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.cli.connector_files import PARTS
from heliograph.cli.inputs import MachineLookup, read_config_file, read_mirror_file, secrets_option
from heliograph.cli.rest_checks import rest_problems
from heliograph.config.effective.metrics_config import metrics_config
from heliograph.config.effective.rest_config import file_listeners, rest_listeners
from heliograph.config.formats.connector_text import is_connector_text, read_connector_texts
from heliograph.config.formats.strimzi_reader import is_resource
from heliograph.config.resolve.key_places import KeyPlaces
from heliograph.config.validate.worker_file import is_worker_file, load_worker
from heliograph.diagnostics import Diagnosed, Diagnostic, Place, in_order, note, problem, warning
from heliograph.errors import ConfigError
from heliograph.operations.configuration_checks import examine_all, examine_connector, examine_worker_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.config.effective.rest_config import RestListener
    from heliograph.config.formats.connector_text import ConnectorText
    from heliograph.config.formats.conversion import ConfigText
    from heliograph.config.resolve.placeholders import Resolver
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
    help="Properties file of the worker that will run the connectors, whose settings apply to them.",
)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
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
    """Report every error in FILE, and every setting that may not do what was intended. Exits with 2 on an error.

    FILE is a file for `run`, the properties file of a Connect worker, or a connector in JSON. Files that it refers to
    are checked too; no cluster is contacted. Several files are reported separately.
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
        raise ConfigError(each.within(f"--worker {file}") for each in error.problems) from None


@dataclass(frozen=True, slots=True)
class _Verdict(Diagnosed):
    """The diagnostics about a file, what it is if it is not of flows, and its flows."""

    diagnostics: tuple[Diagnostic, ...]
    what: str = ""
    flows: str = ""


def _verdict(file: Path, targets: tuple[str, ...], worker: WorkerConfig | None, *, is_only: bool) -> _Verdict:
    try:
        text = read_mirror_file(file)
    except ConfigError as error:
        if is_only:
            raise
        return _Verdict(tuple(each.within("") for each in error.problems))
    if is_connector_text(text.text, text.name):
        unused = [note("it has no effect here: it chooses among flows, and this is a connector.", "--clusters")]
        return _with_notes(_of_connectors(text, worker), unused if targets else [])
    unused = []
    if worker is not None:
        unused.append(note("it has no effect here: it is for connectors in JSON.", "--worker"))
    if not is_resource(text.text, text.name) and is_worker_file(text.text):
        if targets:
            unused.append(note("it has no effect here: this is a Connect worker.", "--clusters"))
        return _with_notes(_of_worker(text), unused)
    return _with_notes(_of_flows(text, targets), unused)


def _with_notes(verdict: _Verdict, notes: list[Diagnostic]) -> _Verdict:
    return replace(verdict, diagnostics=(*notes, *verdict.diagnostics))


def _show(verdict: _Verdict, file: str, *, is_usable: bool, start: str) -> None:
    reported = {"error": verdict.problems, "warning": verdict.warnings, "note": verdict.notes}
    for kind, diagnostics in reported.items():
        for each in diagnostics:
            click.echo(f"{kind}: {start}{each}")
    words = [
        ", ".join(filter(None, (verdict.what, "usable" if is_usable else "not usable"))),
        verdict.flows if is_usable else "",
        counted(**{kind: len(diagnostics) for kind, diagnostics in reported.items()}),
    ]
    click.echo(f"{file}: {'; '.join(filter(None, words))}.")


def counted(**counts: int) -> str:
    """Return `1 error, 2 warnings`; warnings and notes only if there are some."""
    errors, *others = counts.items()
    reported = [errors, *((word, count) for word, count in others if count)]
    return ", ".join(f"{count or 'no'} {word}{'' if count == 1 else 's'}" for word, count in reported)


def _of_flows(text: ConfigText, targets: tuple[str, ...]) -> _Verdict:
    report = examine_all(text, MachineLookup(), targets, with_files=True)
    flows = ", ".join(map(str, report.config.flows)) if report.config is not None else ""
    return _Verdict(in_order((*report.diagnostics, *_rest_warnings(report))), flows=flows)


def _of_connectors(text: ConfigText, worker: WorkerConfig | None) -> _Verdict:
    """Check every connector of the file; a diagnostic names its connector if there are several."""
    try:
        connectors = read_connector_texts(text.text)
    except ConfigError as error:
        return _Verdict(error.diagnostics, what="a connector")
    found: list[Diagnostic] = []
    flows: dict[str, None] = {}
    for number, each in enumerate(connectors, 1):
        report = examine_connector(each, MachineLookup(), worker, name=Path(text.name).stem)
        whose = f"connector {number}" if len(connectors) > 1 else ""
        found += [diagnostic.within(whose) for diagnostic in report.diagnostics]
        flows |= {} if report.flow is None else {str(report.flow): None}
    found += [*_repeated_names(connectors), *_deploy_warnings(text, connectors)]
    what = "a connector" if len(connectors) == 1 else f"{len(connectors)} connectors"
    return _Verdict(tuple(found), what=what, flows=", ".join(flows))


def _repeated_names(connectors: Sequence[ConnectorText]) -> Iterator[Diagnostic]:
    """Yield a problem for each name of several connectors: a worker would refuse to create the second."""
    owners: dict[str, list[str]] = {}
    for number, each in enumerate(connectors, 1):
        name = (each.name or each.config.get("name") or "").strip()
        owners.setdefault(name, []).append(f"{number}")
    for name, numbers in owners.items():
        if name and len(numbers) > 1:
            listed = f"{', '.join(numbers[:-1])} and {numbers[-1]}"
            yield problem(f"connectors {listed} are called '{name}'; give each its own name.", "name")


def _deploy_warnings(text: ConfigText, connectors: Sequence[ConnectorText]) -> Iterator[Diagnostic]:
    """Yield why `deploy` would refuse a file that is named for it: it holds one config, and is put under that name."""
    file, connector = Path(text.name), connectors[0]
    if file.suffix != ".json" or not file.name.startswith(tuple(part.name_for("") for part in PARTS)):
        return
    if connector.name is not None or text.text.lstrip().startswith("["):
        yield warning(
            "'heliograph deploy' will refuse this file: it takes one connector's config alone, without its name."
        )
        return
    name = connector.config.get("name")
    if name is not None and name != file.stem:
        message = f"'heliograph deploy' puts this file as '{file.stem}', which the worker will refuse."
        yield warning(message, "name", Place(connector.lines["name"]))


def _of_worker(text: ConfigText) -> _Verdict:
    report = examine_worker_all(text.text, MachineLookup())
    return _Verdict(in_order((*report.diagnostics, *_rest_problems(report))), "a Connect worker")


def _rest_warnings(report: Report) -> tuple[Diagnostic, ...]:
    """Return what keeps `run` from serving REST or metrics, which does not keep it from copying."""
    config = report.sound
    if config is None:
        return ()
    found = []
    servers = {"REST is": file_listeners, "metrics are": _metrics_listeners}
    for what, listeners_of in servers.items():
        try:
            listeners = listeners_of(config.raw, config.resolver)
            problems = rest_problems(config.raw, config.resolver, listeners) if listeners else []
        except ConfigError as error:
            problems = list(error.problems)
        found += [
            warning(f"{str(each.message).removesuffix('.')}; {what} not served.", each.key)
            for each in problems
            if each.key not in report.settled
        ]
    return KeyPlaces(config.lines, config.paths).located(found)


def _metrics_listeners(raw: Mapping[str, str], resolver: Resolver) -> tuple[RestListener, ...]:
    return metrics_config(raw, resolver).listeners


def _rest_problems(report: WorkerReport) -> tuple[Diagnostic, ...]:
    worker = report.sound
    if worker is None:
        return ()
    try:
        listeners = (*rest_listeners(worker.settings), *_metrics_listeners(worker.raw, worker.resolver))
    except ConfigError:  # the report has it
        return ()
    found = rest_problems(worker.raw, worker.resolver, listeners)
    return KeyPlaces(worker.lines).located(each for each in found if each.key not in report.settled)

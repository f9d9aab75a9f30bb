"""`heliograph convert FILE --to FORM`: properties, connectors' JSON and KafkaMirrorMaker2 resources into each other."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections import Counter
from pathlib import Path

import click

from heliograph.cli.inputs import MachineLookup, mounted_secrets, read_config_file, secrets_option
from heliograph.config.formats.conversion import FORMS, Converted, convert, read_form
from heliograph.config.formats.strimzi_fields import API_VERSIONS
from heliograph.errors import ConfigError

_OWNER_ONLY = 0o600


@click.command("convert")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--to", "form", required=True, type=click.Choice(FORMS), help="Output format.")
@click.option(
    "--output", metavar="PATH", type=click.Path(path_type=Path), help="Output file; for connectors, a directory."
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option(
    "--api-version",
    type=click.Choice(API_VERSIONS),
    default="kafka.strimzi.io/v1beta2",
    show_default=True,
    help="Version of the resource, with --to strimzi.",
)
@secrets_option
def convert_command(files: tuple[Path, ...], form: str, output: Path | None, api_version: str, *, force: bool) -> None:
    """Write FILE in another form: properties for connect-mirror-maker.sh, connectors for Connect, or a resource.

    FILE has any of the three forms. For connectors, give several files, or a directory with them and the properties of
    their worker. Reports what the other form cannot express. Without --output, prints the result; connectors are
    printed as one JSON list.
    """
    reading = read_form(_texts(files), mounted_secrets())
    converted = convert(reading, MachineLookup(), form, api_version)
    for warning in converted.warnings:
        click.echo(f"warning: {warning}", err=True)
    # The printed text has the notes at its top, except for JSON, which has no comments.
    if output is not None or form == "connectors" or not _shows_both():
        for note in converted.notes:
            click.echo(f"note: {note}", err=True)
    if output is None:
        click.echo(_printed(converted, form), nl=False)
        return
    for path in _write(converted, output, is_folder=form == "connectors", force=force):
        click.echo(f"{path} written", err=True)


def _shows_both() -> bool:
    """Return whether stdout and stderr are shown on the same terminal."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def _texts(paths: tuple[Path, ...]) -> dict[str, str]:
    """Return the files by name, or by path if names repeat; of a folder, its JSON and properties files."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(file for file in path.iterdir() if file.suffix in (".json", ".properties"))
            if not found:
                raise ConfigError(f"{path}: there is no connector's .json file in this folder.")
            files += found
        else:
            files.append(path)
    once = {file.resolve(): file for file in files}.values()
    names = Counter(file.name for file in once)
    return {file.name if names[file.name] == 1 else str(file): read_config_file(file) for file in once}


def _printed(converted: Converted, form: str) -> str:
    if form != "connectors":
        return "".join(converted.files.values())
    connectors = [json.loads(text) for name, text in converted.files.items() if name.endswith(".json")]
    return json.dumps([{"name": each["name"], "config": each} for each in connectors], indent=2) + "\n"


def _write(converted: Converted, output: Path, *, is_folder: bool, force: bool) -> list[Path]:
    places = {output / name if is_folder else output: text for name, text in converted.files.items()}
    there = [str(path) for path in places if path.exists()]
    if there and not force:
        raise ConfigError(f"--output: {', '.join(there)} exists; use --force to overwrite.")
    try:
        (output if is_folder else output.parent).mkdir(parents=True, exist_ok=True)
        for path, text in places.items():
            opener = _open_for_owner if converted.secrets else None
            with open(path, "w", encoding="utf-8", opener=opener) as file:
                file.write(text)
    except OSError as error:
        raise ConfigError(f"--output {output}: cannot be written: {error.strerror}.") from None
    return list(places)


def _open_for_owner(path: str, flags: int) -> int:
    """Write a file that only its owner can read, also if it replaces one that others could."""
    number = os.open(path, flags & ~os.O_TRUNC, _OWNER_ONLY)
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        # Before it is emptied: what is another user's stays as it was.
        os.fchmod(number, mode & _OWNER_ONLY)
        os.ftruncate(number, 0)
    return number

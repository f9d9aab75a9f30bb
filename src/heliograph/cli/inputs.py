"""Input of the commands: the user's files, environment variables, mounted secrets, and options that commands share."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.config.formats.conversion import ConfigText
from heliograph.config.validate.dedicated_file import load
from heliograph.diagnostics import Diagnostic, Place
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from heliograph.config.effective.mirror_config import MirrorMakerConfig


log = logging.getLogger("heliograph")


class MachineLookup:
    """Placeholders resolved from the process's environment and its file system."""

    def variable(self, name: str) -> str | None:
        """Return the environment variable's value, or None if it is not set."""
        return os.environ.get(name)

    def read_text(self, path: str) -> str | None:
        """Return the file's text, or None if it cannot be read."""
        try:
            return Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def read_config_file(path: Path) -> str:
    """Return the text of the user's file; raise ConfigError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError("there is no such file.", place=Place(document=str(path))) from None
    except IsADirectoryError:
        raise ConfigError("this is a folder, not a file.", place=Place(document=str(path))) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}.", place=Place(document=str(path))) from None


def log_findings(file: Path | None, warnings: Iterable[Diagnostic], notes: Iterable[Diagnostic]) -> None:
    """Log the warnings and notes about a configuration, with the name of its file."""
    prefix = "" if file is None else f"{file}: "
    for warning in warnings:
        log.warning("%s%s", prefix, warning)
    for note in notes:
        log.info("%s%s", prefix, note)


class MountedSecrets:
    """A folder with one sub-folder per secret, as Kubernetes mounts them."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder.absolute())

    def names(self, secret: str) -> list[str] | None:
        """Return the file names of a secret; None if it does not exist."""
        try:
            names = [file.name for file in (Path(self.path) / secret).iterdir()]
        except OSError:
            return None
        # Kubernetes keeps earlier versions of a mounted secret in the same folder, in folders that begin with two dots.
        return sorted(name for name in names if not name.startswith(".."))


_SECRETS = "heliograph.secrets"


def _remember_secrets(context: click.Context, _parameter: click.Parameter, folder: Path | None) -> None:
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"--secrets {folder}: there is no such folder.")
    context.meta[_SECRETS] = folder


# Not an argument of the commands: none of them does anything with it but read its file.
secrets_option = click.option(
    "--secrets",
    metavar="DIR",
    type=click.Path(path_type=Path),
    expose_value=False,
    callback=_remember_secrets,
    help="Directory with the secrets of a KafkaMirrorMaker2 resource: one subdirectory per secret.",
)


def read_mirror_file(path: Path, *, needs_secrets: bool = True) -> ConfigText:
    """The user's file of clusters and flows, in any form, with the folder that `--secrets` names."""
    return ConfigText(read_config_file(path), path.name, mounted_secrets(), needs_secrets)


def mounted_secrets() -> MountedSecrets | None:
    """The folder that `--secrets` names."""
    context = click.get_current_context(silent=True)
    folder = context.meta.get(_SECRETS) if context is not None else None
    return MountedSecrets(folder) if folder is not None else None


def load_file(file: Path) -> MirrorMakerConfig:
    """The user's file, understood; its warnings go to standard error."""
    config = load(read_mirror_file(file), MachineLookup())
    for warning in config.warnings:
        click.echo(f"warning: {warning}", err=True)
    return config


def parse_flow(config: MirrorMakerConfig, text: str | None) -> Flow:
    """Return the flow that `--flow A->B` names, by default the only flow of the file."""
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


_SECRET_CONF = re.compile(r"(?i)(password|secret|token|(access|secret)[._]?key)$")


def spark_pairs(confs: Sequence[str]) -> dict[str, str]:
    """The pairs of `--conf`."""
    pairs = {}
    for conf in confs:
        name, equals, value = conf.partition("=")
        if not equals or not name.startswith("spark."):
            raise ConfigError(f"--conf {name}: write it as spark.name=value.")
        if name == "spark.master":
            raise ConfigError("--conf spark.master: name the master with --master.")
        if _SECRET_CONF.search(name):
            raise ConfigError(
                f"--conf {name}: everyone on this machine can read a command line; write it into spark-defaults.conf"
                " in the folder that SPARK_CONF_DIR names."
            )
        pairs[name] = value
    return pairs

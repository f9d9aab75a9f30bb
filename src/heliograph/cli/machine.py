"""What a configuration file may ask of this machine: environment variables and files."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.config.forms import ConfigText
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

log = logging.getLogger("heliograph")


class MachineLookup:
    """Placeholders resolved from the process's environment and its file system."""

    def variable(self, name: str) -> str | None:
        """The environment variable's value, or None where it is not set."""
        return os.environ.get(name)

    def read_text(self, path: str) -> str | None:
        """The file's text, or None where it cannot be read."""
        try:
            return Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def read_config_file(path: Path) -> str:
    """The text of the user's file; a ConfigError where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: this is a folder, not a file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}.") from None


def log_findings(file: Path | None, warnings: Iterable[str], notes: Iterable[str]) -> None:
    """Log what there is to say about a configuration, with the file that its lines are counted in."""
    where = "" if file is None else f"{file}: "
    for warning in warnings:
        log.warning("%s%s", where, warning)
    for note in notes:
        log.info("%s%s", where, note)


class MountedSecrets:
    """A folder with one sub-folder per secret, as Kubernetes mounts them."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder.absolute())

    def names(self, secret: str) -> list[str] | None:
        """The files of a secret; None where it is not there."""
        try:
            names = [file.name for file in (Path(self.path) / secret).iterdir()]
        except OSError:
            return None
        # Kubernetes keeps earlier versions of a mounted secret beside it, in folders that begin with two dots.
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
    help="Folder of the secrets that a KafkaMirrorMaker2 resource names: one sub-folder per secret.",
)


def read_mirror_file(path: Path, *, needs_secrets: bool = True) -> ConfigText:
    """The user's file of clusters and flows, in any form, with the folder that `--secrets` names."""
    return ConfigText(read_config_file(path), path.name, mounted_secrets(), needs_secrets)


def mounted_secrets() -> MountedSecrets | None:
    """The folder that `--secrets` names."""
    context = click.get_current_context(silent=True)
    folder = context.meta.get(_SECRETS) if context is not None else None
    return MountedSecrets(folder) if folder is not None else None

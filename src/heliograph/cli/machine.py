"""What a configuration file may ask of this machine: environment variables and files."""

from __future__ import annotations

import os
from pathlib import Path

from heliograph.errors import ConfigError


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

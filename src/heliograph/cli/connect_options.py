"""Options of the commands that call a Connect worker: its URL, who calls, and whom to trust.

A password comes from a file or from a variable, never from the command line: every user of a machine can read that.
"""

from __future__ import annotations

import functools
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import click

from heliograph.cli.connect_client import ConnectClient, Login
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_URL = "http://localhost:8083"
PASSWORD_VARIABLE = "HELIOGRAPH_REST_PASSWORD"  # noqa: S105  (the name of a variable)
_file = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--url", default=DEFAULT_URL, show_default=True, help="REST of any worker of the cluster."),
    click.option("--user", metavar="NAME", help=f"Log in as this user; the password is in {PASSWORD_VARIABLE}."),
    click.option("--password-file", metavar="FILE", type=_file, help="File of the password, in place of the variable."),
    click.option("--ca-file", metavar="FILE", type=_file, help="PEM file of the certificates to trust, for https."),
    click.option("--cert-file", metavar="FILE", type=_file, help="PEM file of our own certificate, for mutual TLS."),
    click.option("--key-file", metavar="FILE", type=_file, help="PEM file of its key, where that is not in the same."),
)


def connect_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options, and in place of their values a `client`."""

    @functools.wraps(command)
    def with_client(*args: Any, **values: Any) -> None:
        url, user, password_file, ca_file, cert_file, key_file = (
            values.pop(name) for name in ("url", "user", "password_file", "ca_file", "cert_file", "key_file")
        )
        files = (ca_file, cert_file, key_file)
        # The certificates a system trusts take longer to read than all that a command does over plain HTTP.
        tls = _tls(*files) if any(files) or url.lower().startswith("https:") else None
        command(*args, client=ConnectClient(url, _login(url, user, password_file), tls), **values)

    for option in reversed(_OPTIONS):
        with_client = option(with_client)
    return with_client


def _login(url: str, user: str | None, password_file: Path | None) -> Login | None:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.password is not None:
        raise ConfigError(
            "--url: a password does not belong on a command line, where others can read it; use --user with"
            f" --password-file or the variable {PASSWORD_VARIABLE}."
        )
    name = user or (unquote(parts.username) if parts.username else None)
    if name is None:
        if password_file is not None:
            raise ConfigError("--password-file: whose password is it? Add --user.")
        return None
    return Login(name, _password(password_file))


def _password(file: Path | None) -> str:
    if file is None:
        found = os.environ.get(PASSWORD_VARIABLE)
        if found is None:
            raise ConfigError(f"--user: set its password in the variable {PASSWORD_VARIABLE}, or use --password-file.")
        return found
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"--password-file {file}: the file cannot be read.") from None


def _tls(ca_file: Path | None, cert_file: Path | None, key_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        _load(f"--ca-file {ca_file}", lambda: context.load_verify_locations(ca_file))
    if cert_file is not None:
        _load(f"--cert-file {cert_file}", lambda: context.load_cert_chain(cert_file, key_file))
    elif key_file is not None:
        raise ConfigError("--key-file: whose key is it? Add --cert-file.")
    return context


def _load(what: str, load: Callable[[], None]) -> None:
    try:
        load()
    except ssl.SSLError:
        raise ConfigError(f"{what}: it holds no PEM that can be used.") from None
    except OSError as error:
        raise ConfigError(f"{what}: the file cannot be read: {error.strerror}.") from None

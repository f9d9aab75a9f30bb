"""A client of a Connect worker's REST API, Heliograph's or Java's, and the command-line options that configure it.

Invariants:
A. Every failure is a RestError whose sentence names the worker, or carries Connect's own message.
B. Credentials are sent and never shown. A password comes from a file or a variable, never from the command line, which
   every user of a machine can read.
"""

from __future__ import annotations

import base64
import functools
import http.client
import json
import os
import ssl
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import click

from heliograph.errors import ConfigError, RestError
from heliograph.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable


_CONNECT_TIMEOUT_S = 10.0
_RESPONSE_TIMEOUT_S = 100.0  # a worker itself gives up after 90 s
_REBALANCE_TIMEOUT_S = 60.0
_REBALANCE_PAUSE_S = 0.5
_NOT_FOUND, _NOT_ALLOWED, _CONFLICT = 404, 405, 409


class ConnectCredentials(NamedTuple):
    """A user of REST and its password."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"ConnectCredentials({self.user})"


class ConnectClient:
    """One worker of a Connect cluster; any will do, because workers forward to their leader."""

    def __init__(self, url: str, login: ConnectCredentials | None = None, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme not in ("http", "https") or not host:
            raise ConfigError("--url: this is not the URL of a worker; write it as http://localhost:8083.")
        self._is_https = parts.scheme == "https"
        self._host, self._port = host, port
        self._path = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json"}
        self._tls = tls
        if login is not None:
            credentials = f"{login.user}:{login.password}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(credentials).decode()}"
        shown_host = f"[{host}]" if ":" in host else host
        self.url = f"{parts.scheme}://{shown_host}{f':{port}' if port else ''}{self._path}"

    def status(self, name: str) -> dict[str, Any] | None:
        """Return the state of a connector and its tasks; None if the cluster has no such connector.

        A removed connector may keep its last state for a moment.
        """
        return self._found(f"/connectors/{quote(name, safe='')}/status")

    def is_there(self, name: str) -> bool:
        """Return whether the cluster has such a connector now."""
        return self._found(f"/connectors/{quote(name, safe='')}") is not None

    def _found(self, path: str) -> dict[str, Any] | None:
        try:
            found = self.call("GET", path)
        except RestError as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        return found if isinstance(found, dict) else None

    def statuses(self) -> list[dict[str, Any]]:
        """The status of every connector, by name."""
        found = self.call("GET", "/connectors?expand=status")
        if isinstance(found, dict):
            return [found[name]["status"] for name in sorted(found) if "status" in found[name]]
        # A worker older than 2.3 does not know `expand` and returns the names.
        each = (self.status(name) for name in sorted(found or ()))
        return [status for status in each if status is not None]

    def problems_of(self, config: dict[str, Any]) -> list[str]:
        """Return why a worker would refuse a connector's configuration; nothing if it cannot validate."""
        plugin = quote(str(config["connector.class"]), safe="")
        try:
            found = self.call("PUT", f"/connector-plugins/{plugin}/config/validate", config)
        except RestError as error:
            if error.status in (_NOT_FOUND, _NOT_ALLOWED):
                return []
            raise
        if not isinstance(found, dict) or not found.get("error_count"):
            return []
        values = [each.get("value") or {} for each in found.get("configs") or ()]
        reported = [f"{value.get('name')}: {error}" for value in values for error in value.get("errors") or ()]
        return reported or [f"the worker found {counted(found['error_count'], 'error')} in its configuration"]

    def put_config(self, name: str, config: dict[str, Any]) -> None:
        """Create a connector, or give it this configuration."""
        self.call("PUT", f"/connectors/{quote(name, safe='')}/config", config)

    def delete(self, name: str) -> bool:
        """Remove a connector; False if there was none."""
        try:
            self.call("DELETE", f"/connectors/{quote(name, safe='')}")
        except RestError as error:
            if error.status == _NOT_FOUND:
                return False
            raise
        return True

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the response; retry while the workers rebalance and refuse every request."""
        deadline = time.monotonic() + _REBALANCE_TIMEOUT_S
        while True:
            try:
                return self._call_once(method, path, body)
            except RestError as error:
                if error.status != _CONFLICT or time.monotonic() > deadline:
                    raise
                time.sleep(_REBALANCE_PAUSE_S)

    def _call_once(self, method: str, path: str, body: Any = None) -> Any:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with closing(self._connect()) as connection:
                connection.request(method, self._path + path, data, headers)
                response = connection.getresponse()
                text = response.read()
        except TimeoutError:
            raise RestError(f"{self.url} did not answer {method} {path} in time.") from None
        except (OSError, http.client.HTTPException) as error:
            raise RestError(f"{self.url} broke off {method} {path}: {_reason(error)}.") from None
        if response.status >= 300:
            raise RestError(_refusal(response.status, response.reason, text), response.status)
        return _read_json(text)

    def _connect(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._is_https:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=_CONNECT_TIMEOUT_S, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=_CONNECT_TIMEOUT_S)
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise RestError(
                f"{self.url} cannot be trusted: {error.verify_message}. Name the certificate that has signed the"
                " worker's in --ca-file."
            ) from None
        except OSError as error:
            raise RestError(
                f"{self.url} cannot be reached: {_reason(error)}. Is the worker running, and is --url its address?"
            ) from None
        connection.sock.settimeout(_RESPONSE_TIMEOUT_S)
        return connection


class FlowsClient:
    """The API of Heliograph's own processes, beside Connect's."""

    def __init__(self, client: ConnectClient) -> None:
        self._client = client

    def flows(self) -> list[dict[str, Any]]:
        """The flows of a process of ours."""
        return list(self._ours("/flows")["flows"])

    def flow(self, name: str) -> dict[str, Any]:
        """Return one flow."""
        return self._ours(f"/flows/{quote(name, safe='')}")

    def partitions(self, flow: str, state: str | None = None) -> list[dict[str, Any]]:
        """Return the partitions of a flow, all or those in a state, from as many pages as there are."""
        found: list[dict[str, Any]] = []
        start: int | None = 0
        while start is not None:
            query = f"start={start}" + (f"&state={state}" if state else "")
            page = self._ours(f"/flows/{quote(flow, safe='')}/partitions?{query}")
            found += page["partitions"]
            start = page["next"]
        return found

    def restart_partitions(self, flow: str, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Restart partitions of a flow; return those that are restarted."""
        return list(self._ours(f"/flows/{quote(flow, safe='')}/restart", "POST", request)["restarted"])

    def _ours(self, path: str, method: str = "GET", body: Any = None) -> dict[str, Any]:
        try:
            found = self._client.call(method, f"/heliograph/v1{path}", body)
        except RestError as error:
            if error.status == _NOT_FOUND and path == "/flows":
                raise RestError(
                    f"{self._client.url} has no /heliograph/v1: it is no process of Heliograph, or the address of its"
                    " metrics; name that of its REST API (--rest).",
                    404,
                ) from None
            raise
        if not isinstance(found, dict):
            raise RestError(f"{self._client.url}: the answer to {method} /heliograph/v1{path} is not Heliograph's.")
        return found


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _refusal(status: int, reason: str, text: bytes) -> str:
    """Return Connect's own message, or the HTTP reason if the response is not Connect's."""
    body = _read_json(text)
    message = body.get("message") if isinstance(body, dict) else None
    return f"{message or reason} (HTTP {status})"


def _read_json(text: bytes) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


DEFAULT_URL = "http://localhost:8083"
PASSWORD_VARIABLE = "HELIOGRAPH_REST_PASSWORD"  # noqa: S105  (the name of a variable)
_file = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--url", default=DEFAULT_URL, show_default=True, help="REST URL of any worker of the cluster."),
    click.option("--user", metavar="NAME", help=f"Log in as this user; the password is in {PASSWORD_VARIABLE}."),
    click.option(
        "--password-file", metavar="FILE", type=_file, help="File with the password, instead of the variable."
    ),
    click.option("--ca-file", metavar="FILE", type=_file, help="PEM file with the trusted certificates, for https."),
    click.option(
        "--cert-file", metavar="FILE", type=_file, help="PEM file with the client certificate, for mutual TLS."
    ),
    click.option("--key-file", metavar="FILE", type=_file, help="PEM file with its key, if it is a separate file."),
)


address_argument = click.argument("address", required=False, metavar="[URL]")
"""For commands that take the URL as an argument, too; to be written above `connect_options`."""


def connect_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options, and in place of their values a `client`."""

    @functools.wraps(command)
    def with_client(*args: Any, **values: Any) -> None:
        url, user, password_file, ca_file, cert_file, key_file = (
            values.pop(name) for name in ("url", "user", "password_file", "ca_file", "cert_file", "key_file")
        )
        url = values.pop("address", None) or url
        files = (ca_file, cert_file, key_file)
        # The certificates a system trusts take longer to read than all that a command does over plain HTTP.
        tls = _tls(*files) if any(files) or url.lower().startswith("https:") else None
        command(*args, client=ConnectClient(url, _login(url, user, password_file), tls), **values)

    for option in reversed(_OPTIONS):
        with_client = option(with_client)
    return with_client


def _login(url: str, user: str | None, password_file: Path | None) -> ConnectCredentials | None:
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
    return ConnectCredentials(name, _password(password_file))


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

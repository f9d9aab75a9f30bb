"""Checks the files that a client's settings name: stores, a Kerberos key tab, a token.

They are opened as a connection would open them, so a wrong password is found, too. A path that comes from a placeholder
is not shown, nor is any content.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.config.keys import client_keys, security_keys
from heliograph.config.resolve.jaas import parse_jaas
from heliograph.diagnostics import Diagnostic, Text, problem
from heliograph.errors import ConfigError, KeyStoreError
from heliograph.kafka.security.keystores import Stores, load_key_material
from heliograph.kafka.security.security_settings import named_stores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.config.resolve.settings import Settings


_TOKEN_URL = security_keys.OAUTH_TOKEN_ENDPOINT_URL
_JAAS = client_keys.SASL_JAAS_CONFIG
_TRUSTED, _OWN_KEY = client_keys.SSL_TRUSTSTORE_LOCATION, client_keys.SSL_KEYSTORE_LOCATION
_FILE_URL = "file://"
_STORE_FIELDS = {
    _TRUSTED.name: ("trusted_file", "trusted_password", "trusted_pem"),
    _OWN_KEY.name: ("key_file", "key_store_password", "key_password", "key_pem", "chain_pem"),
}
# Of a login module, beside the stores: `oauth.` is how the operator's Java library begins its names.
_FILE_OPTIONS = (
    *("keyTab", "ssl.truststore.location", "ssl.keystore.location"),
    *("oauth.ssl.truststore.location", "oauth.ssl.keystore.location"),
)


def check_files(settings: Settings) -> None:
    """Try every file; raises one ConfigError with those that cannot be used, by their keys and paths."""
    problems = [*_stores(settings), *_login_files(settings)]
    if problems:
        raise ConfigError(problems)


def unreadable(path: str) -> str | None:
    """Return why a file cannot be read; None if it can."""
    try:
        with Path(path).open("rb") as file:
            file.read(1)
    except OSError as error:
        return error.strerror or "it cannot be opened"
    except ValueError:  # a path with a NUL in it
        return "it is no path"
    return None


def _stores(settings: Settings) -> Iterator[Diagnostic]:
    """Yield the problems of truststore and keystore, each by itself."""
    all_stores = named_stores(settings)
    for key in (_TRUSTED, _OWN_KEY):
        location, *others = _STORE_FIELDS[key.name]
        path = getattr(all_stores, location)
        name, shown = settings.written_as(key), settings.raw.get(key.name, path)
        reason = unreadable(path) if path else None
        if reason is not None:
            yield problem(f"the file {shown} cannot be read: {reason}.", name)
            continue
        given = {field: getattr(all_stores, field) for field in (location, *others)}
        if any("${" in given[field] for field in others):  # a variable that is not set, which has a diagnostic
            continue
        try:
            load_key_material(Stores(**given, written=all_stores.written))
        except KeyStoreError as error:
            yield _unusable(error, name, path, shown)


def _unusable(error: KeyStoreError, key: str, path: str, shown: str) -> Diagnostic:
    """Return the problem of a store; its path is shown as it was written."""
    if error.store != f"{key}={path}":
        return problem(error.reason, error.store)
    reason = error.reason.parts if isinstance(error.reason, Text) else (error.reason,)
    return problem(Text.of(f"{shown}: ", *reason), key)


def _login_files(settings: Settings) -> Iterator[Diagnostic]:
    if not settings[client_keys.SECURITY_PROTOCOL].upper().startswith("SASL_"):
        return
    url = settings[_TOKEN_URL]
    if url.startswith(_FILE_URL):
        yield from _missing(
            settings.written_as(_TOKEN_URL), url.removeprefix(_FILE_URL), settings.raw.get(_TOKEN_URL.name)
        )
    is_held_by_placeholder = _JAAS.name in settings.raw
    for option, value in _jaas_options(settings[_JAAS]).items():
        path = value.removeprefix(_FILE_URL)
        if option in _FILE_OPTIONS or (option == "oauth.token.endpoint.uri" and path != value):
            hidden = f"named by {option}" if is_held_by_placeholder else None
            yield from _missing(settings.written_as(_JAAS), path, hidden)


def _missing(name: str, path: str, shown: str | None = None) -> Iterator[Diagnostic]:
    reason = unreadable(path)
    if reason is not None:
        yield problem(f"the file {shown or path} cannot be read: {reason}.", name)


def _jaas_options(text: str) -> Mapping[str, str]:
    """Return the options of the login modules; one that cannot be read is reported with the login."""
    try:
        return {name: value for module in parse_jaas(text) for name, value in module.options.items()}
    except ConfigError:
        return {}

"""What a connector's config takes from the worker's machine: files, variables, identities and classes.

A caller who may change some connectors could otherwise name another one's key store, or send another one's password to
a server of his own. So where rules hold, whatever a config takes must be named in a rule. Values that are parsed later
(logins, URLs) are parsed here by the same parser; every other value is looked through for what reads like a path. When
in doubt it counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from heliograph.config import client_keys
from heliograph.config.connector import ConnectorConfig
from heliograph.config.jaas import LoginModule, parse_jaas
from heliograph.config.names import ROLES
from heliograph.config.placeholder_text import replace_placeholders
from heliograph.errors import ConfigError
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.config.placeholders import Resolver

_PATH = re.compile(
    r"""(?:^|[\s"'=,;])(?:file:(?://(?:localhost)?)?)?(?P<path>/[^\s"',;]*)|:(?P<behind_a_colon>/(?!/)[^\s"',;]*)"""
)
_FILE_KEYS = (".location", ".file", ".path", ".dir")
_FILE_OPTIONS = (*_FILE_KEYS, "keyTab", "ticketCache")
_URL_KEYS = (".url", ".uri")
_UNREADABLE = "jaas:unreadable"
_CANNOT_BE_READ = LoginModule("", "", {})
# Logins that take an identity of the machine's unless they name one.
_OWN_IDENTITIES = {"AWS_MSK_IAM": ("awsProfileName", "aws:default"), "GSSAPI": ("keyTab", "kerberos:default")}


class Taken(NamedTuple):
    """A path, `env:NAME`, `aws:PROFILE`, `kerberos:default` or `class:module:Class`, and the key that takes it."""

    key: str
    source: str


def taken_by(config: Mapping[str, str | None], resolver: Resolver) -> Iterator[Taken]:
    """Everything a config takes from the machine."""
    for key, value in config.items():
        text = (value or "").strip()
        yield from (Taken(key, source) for source in resolver.sources(text))
        yield from (Taken(key, source) for source in dict.fromkeys(_named(key, text)))
    yield from _own_identities(config)


def _named(key: str, text: str) -> Iterator[str]:
    if key.endswith(_FILE_KEYS):  # also where a placeholder holds the path: nobody knows what it will hold
        yield from [text] if text else []
        return
    plain = _without_placeholders(text)
    yield from (found["path"] or found["behind_a_colon"] for found in _PATH.finditer(plain))
    if key.endswith("sasl.jaas.config"):
        yield from (source for module in _modules(plain) for source in _of_module(module))
    elif key.endswith(_URL_KEYS):
        yield from _of_url(plain)
    elif key.endswith(".class") and ":" in plain:
        yield f"class:{plain}"


def _without_placeholders(text: str) -> str:
    return replace_placeholders(text, lambda _found: "_")


def _modules(text: str) -> tuple[LoginModule, ...]:
    """A login that is all placeholder is what its source says, and the source is judged."""
    try:
        return parse_jaas(text) if text.strip("_ ") else ()
    except ConfigError:
        return (_CANNOT_BE_READ,)


def _of_module(module: LoginModule) -> Iterator[str]:
    if module is _CANNOT_BE_READ:
        yield _UNREADABLE
    for name, value in module.options.items():
        if name.endswith(_FILE_OPTIONS):
            yield value
        elif name.endswith(_URL_KEYS):
            yield from _of_url(value)
        elif name == "awsProfileName":
            yield f"aws:{value}"


def _of_url(text: str) -> Iterator[str]:
    if text.lower().startswith("file:"):
        yield unquote(urlsplit(text).path)


class _AsWritten:
    """Resolves nothing: the config is judged as it is written, and again when its clients are made."""

    def declared_only(self) -> _AsWritten:
        return self

    def looked_up(self, _key: str, value: str) -> str:
        return value


def _own_identities(config: Mapping[str, str | None]) -> Iterator[Taken]:
    """Per client, since the login of another one says nothing about it; a client with SASL has GSSAPI by default."""
    given = {key: value for key, value in config.items() if value is not None}
    connector = ConnectorConfig("", given, {}, cast("Resolver", _AsWritten()), is_limited=False)
    sides = Flow("source", "target")
    clients = [connector.client(alias, role, sides) for alias in sides for role in ROLES]
    for client in (*clients, connector.records_client(sides)):
        mechanism = client.values.get("sasl.mechanism", "").strip().upper()
        uses_sasl = client.values.get("security.protocol", "").strip().upper().startswith("SASL_")
        if not mechanism and uses_sasl and not client.written("sasl.mechanism").startswith("producer."):
            mechanism = client_keys.SASL_MECHANISM.default
        needed, own = _OWN_IDENTITIES.get(mechanism, ("", ""))
        jaas = _without_placeholders(client.values.get("sasl.jaas.config", ""))
        is_judged_later = bool(jaas) and not jaas.strip("_ ")
        if own and not is_judged_later and needed not in {name for each in _modules(jaas) for name in each.options}:
            yield Taken(client.written("sasl.mechanism"), own)

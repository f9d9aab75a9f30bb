"""What a connector's config takes from the worker's machine: files, variables, identities and classes.

A caller who may change some connectors could otherwise name another one's key store, or send another one's password to
a server of his own. So where rules hold, whatever a config takes must be named in a rule. Values that are parsed later
(logins, URLs) are parsed here by the same parser; every other value is looked through for what reads like a path. When
in doubt it counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from heliograph.config.jaas import LoginModule, parse_jaas
from heliograph.config.placeholder_text import replace_placeholders
from heliograph.errors import ConfigError

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


def _own_identities(config: Mapping[str, str | None]) -> Iterator[Taken]:
    jaas = [value or "" for key, value in config.items() if key.endswith("sasl.jaas.config")]
    options = {name for text in jaas for module in _modules(_without_placeholders(text)) for name in module.options}
    for key, value in config.items():
        needed, own = _OWN_IDENTITIES.get((value or "").strip().upper(), ("", ""))
        if key.endswith("sasl.mechanism") and own and needed not in options:
            yield Taken(key, own)

"""The rules of `heliograph.rest.rules.file`: which caller may see and change which connectors, with which secrets.

    - users: [payments]
      certificates: ["CN=payments-deploy,O=Example"]
      see: payments-.*
      change: [payments-.*, shared-heartbeat]
      secrets: [/etc/secrets/payments/.*, "env:PAYMENTS_.*"]
    - users: [platform]
      change: .*
      secrets: .*
      worker: change

Patterns are Java's, as those of topics, and match a whole name. A caller has the permissions of all rules that name it;
a caller that no rule names is refused everywhere. A caller may see what it may change. `secrets` are the files and
variables of the worker's machine that a config may name. `worker` is for loggers: `see` or `change`.

`taken_by` finds everything that a config takes from the worker's machine: files, variables, identities and classes. A
caller who may change some connectors could otherwise name the key store of another one, or send another one's password
to a server of his own. Values that are parsed later (logins, URLs) are parsed here by the same parser; all other values
are searched for paths. When in doubt it counts.

Invariant: a rule never depends on whether a connector exists, so no response can disclose that to a caller who may not
see it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from heliograph.config.effective.connect_config import ConnectorConfig
from heliograph.config.keys import client_keys
from heliograph.config.resolve.jaas import LoginModule, parse_jaas
from heliograph.config.resolve.overlays import ROLES
from heliograph.config.secrets.placeholder_text import replace_placeholders
from heliograph.config.syntax.java_regex import PatternLimitError, compile_java
from heliograph.config.syntax.java_translation import JavaRegexError
from heliograph.config.syntax.yaml_tree import Tree, parse_yaml
from heliograph.diagnostics import Place
from heliograph.errors import ConfigError
from heliograph.model import Flow
from heliograph.web.access.callers import CallerIdentity, subject_written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.config.syntax.java_regex import JavaPattern


_log = logging.getLogger(__name__)

_USERS, _CERTIFICATES, _SEE, _CHANGE, _SECRETS, _WORKER = "users", "certificates", "see", "change", "secrets", "worker"
_FIELDS = (_USERS, _CERTIFICATES, _SEE, _CHANGE, _SECRETS, _WORKER)
_LARGEST_FILE_CHARACTERS = 1 << 20

_PATH = re.compile(
    r"""(?:^|[\s"'=,;])(?:file:(?://(?:localhost)?)?)?(?P<path>/[^\s"',;]*)|:(?P<after_a_colon>/(?!/)[^\s"',;]*)"""
)
_FILE_KEYS = (".location", ".file", ".path", ".dir")
_FILE_OPTIONS = (*_FILE_KEYS, "keyTab", "ticketCache")
_URL_KEYS = (".url", ".uri")
_UNREADABLE = "jaas:unreadable"
_CANNOT_BE_READ = LoginModule("", "", {})
# Logins that use an identity of the machine unless they name one.
_OWN_IDENTITIES = {"AWS_MSK_IAM": ("awsProfileName", "aws:default"), "GSSAPI": ("keyTab", "kerberos:default")}


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions of one caller; `secret_texts` are the patterns of `secrets` as they are written."""

    sees: tuple[JavaPattern, ...] = ()
    changes: tuple[JavaPattern, ...] = ()
    secrets: tuple[JavaPattern, ...] = ()
    sees_worker: bool = False
    changes_worker: bool = False
    secret_texts: tuple[str, ...] = ()

    def may_see(self, connector: str) -> bool:
        """Return whether the caller may see a connector."""
        return _matches(self.sees, connector) or self.may_change(connector)

    def may_change(self, connector: str) -> bool:
        """Return whether the caller may create, change and delete a connector."""
        return _matches(self.changes, connector)

    def may_take(self, source: str) -> bool:
        """Return whether a config may name a file or a variable of the worker's machine."""
        return ".." not in source.split("/") and _matches(self.secrets, source)

    @property
    def changes_any(self) -> bool:
        """Return whether the caller may change any connector at all."""
        return bool(self.changes)


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The rules of a file."""

    _by_principal: dict[CallerIdentity, list[Permissions]] = field(default_factory=dict)

    def permissions(self, principal: CallerIdentity) -> Permissions | None:
        """Return the permissions of a caller; None for one that no rule names."""
        found = self._by_principal.get(principal)
        if found is None:
            return None
        return Permissions(
            tuple(pattern for each in found for pattern in each.sees),
            tuple(pattern for each in found for pattern in each.changes),
            tuple(pattern for each in found for pattern in each.secrets),
            any(each.sees_worker for each in found),
            any(each.changes_worker for each in found),
            tuple(text for each in found for text in each.secret_texts),
        )


def parse_rules(text: str, file: str) -> AccessRules:
    """Parse the text of a file; raise ConfigError with every problem, each with its line."""
    if len(text) > _LARGEST_FILE_CHARACTERS:
        raise ConfigError("this file of rules is too large.", place=Place(document=file))
    try:
        documents = parse_yaml(text)
    except ConfigError as error:
        raise ConfigError(each.within(file) for each in error.problems) from None
    if len(documents) != 1 or documents[0].kind != "list":
        message = "it must be a list of rules, each beginning with '- users:' or '- certificates:'."
        raise ConfigError(message, place=Place(document=file))
    by_principal: dict[CallerIdentity, list[Permissions]] = {}
    problems = []
    for rule in documents[0].items:
        try:
            permissions = _permissions(rule)
            for principal in _principals(rule):
                by_principal.setdefault(principal, []).append(permissions)
        except ConfigError as error:
            problems += [each.within(file) for each in error.problems]
    if problems:
        raise ConfigError(problems)
    return AccessRules(by_principal)


def _matches(patterns: tuple[JavaPattern, ...], name: str) -> bool:
    return any(_matches_one(pattern, name) for pattern in patterns)


def _matches_one(pattern: JavaPattern, name: str) -> bool:
    """Return whether a pattern covers a name; one that cannot be decided within the limit covers nothing."""
    try:
        return pattern.fullmatch(name) is not None
    except PatternLimitError as error:
        _log.warning("A rule does not hold for a name: %s", error)
        return False


def _permissions(rule: Tree) -> Permissions:
    unknown = [tree for name, tree in rule.fields.items() if name not in _FIELDS]
    if rule.kind != "map" or unknown:
        found = f"'{unknown[0].path.rpartition('.')[2]}' is" if unknown else "this is"
        raise ConfigError(f"{found} no part of a rule; it has {', '.join(_FIELDS)}.", place=Place(rule.line))
    worker = rule.get(_WORKER)
    if worker is not None and worker.text not in (_SEE, _CHANGE):
        raise ConfigError(f"it must be {_SEE} or {_CHANGE}.", _WORKER, Place(worker.line))
    return Permissions(
        tuple(_patterns(rule, _SEE)),
        tuple(_patterns(rule, _CHANGE)),
        tuple(_patterns(rule, _SECRETS)),
        sees_worker=worker is not None,
        changes_worker=worker is not None and worker.text == _CHANGE,
        secret_texts=tuple(tree.text for tree in _texts(rule, _SECRETS)),
    )


def _principals(rule: Tree) -> Iterator[CallerIdentity]:
    users, certificates = list(_texts(rule, _USERS)), list(_texts(rule, _CERTIFICATES))
    if not users and not certificates:
        raise ConfigError(f"the rule is for nobody; add {_USERS} or {_CERTIFICATES}.", place=Place(rule.line))
    yield from (CallerIdentity("user", tree.text) for tree in users)
    for tree in certificates:
        try:
            yield subject_written(tree.text)
        except ValueError:
            raise ConfigError(
                f"'{tree.text}' is not the subject of a certificate; write it as CN=orders,O=Example.",
                place=Place(tree.line),
            ) from None


def _patterns(rule: Tree, name: str) -> Iterator[JavaPattern]:
    for tree in _texts(rule, name):
        try:
            yield compile_java(tree.text, f"line {tree.line}: {name}: '{tree.text}'")
        except JavaRegexError as error:
            raise ConfigError(f"'{tree.text}' is not a pattern: {error}.", name, Place(tree.line)) from None


def _texts(rule: Tree, name: str) -> Iterator[Tree]:
    """Yield a text, or each of a list."""
    found = rule.get(name)
    for tree in () if found is None else found.items if found.kind == "list" else (found,):
        if not tree.is_scalar:
            raise ConfigError("it must be a text or a list of texts.", name, Place(tree.line))
        yield tree


class Taken(NamedTuple):
    """A path, `env:NAME`, `aws:PROFILE`, `kerberos:default` or `class:module:Class`, and the key that takes it."""

    key: str
    source: str


def taken_by(config: Mapping[str, str | None], resolver: Resolver) -> Iterator[Taken]:
    """Yield everything that a config takes from the machine."""
    for key, value in config.items():
        text = (value or "").strip()
        yield from (Taken(key, source) for source in resolver.sources(text))
        yield from (Taken(key, source) for source in dict.fromkeys(_named(key, text)))
    yield from _own_identities(config)


def _named(key: str, text: str) -> Iterator[str]:
    if key.endswith(_FILE_KEYS):  # also a placeholder: nobody knows which path it will hold
        yield from [text] if text else []
        return
    plain = _without_placeholders(text)
    yield from (found["path"] or found["after_a_colon"] for found in _PATH.finditer(plain))
    if key.endswith("sasl.jaas.config"):
        yield from (source for module in _modules(plain) for source in _of_module(module))
    elif key.endswith(_URL_KEYS):
        yield from _of_url(plain)
    elif key.endswith(".class") and ":" in plain:
        yield f"class:{plain}"


def _without_placeholders(text: str) -> str:
    return replace_placeholders(text, lambda _found: "_")


def _modules(text: str) -> tuple[LoginModule, ...]:
    """Parse a login; for one that is a placeholder as a whole its source is checked instead."""
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
    """Resolves nothing: the config is checked as it is written, and again when its clients are made."""

    def declared_only(self) -> _AsWritten:
        return self

    def looked_up(self, _key: str, value: str) -> str:
        return value


def _own_identities(config: Mapping[str, str | None]) -> Iterator[Taken]:
    """Yield the identities of the machine that a client uses, for each client apart; SASL's default is GSSAPI."""
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
        is_checked_later = bool(jaas) and not jaas.strip("_ ")
        if own and not is_checked_later and needed not in {name for each in _modules(jaas) for name in each.options}:
            yield Taken(client.written("sasl.mechanism"), own)

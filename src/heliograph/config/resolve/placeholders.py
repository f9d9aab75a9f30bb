"""Placeholders `${...}` in values: environment variables and Kafka's config providers (env, file, dir).

Users' files have two forms. `${NAME}` is what container images substitute before MM2 sees the file (document 002);
`${provider:key}` and `${provider:path:key}` are Kafka's own (KIP-297, KIP-421). Both are resolved late, by
`Resolver.resolve`, so that a secret never has to be stored. `Lookup` is the access to the machine.

The author of a file may name any variable and file: who can write the one can read the other. A connector comes from
any caller of REST, so it gets `declared_only`: what the worker's file declares, within its `allowed.paths` and
`allowlist.pattern`.

Values of a connector's placeholders are kept in `known_secrets`; those of a file only if the key or entry is named like
a secret, since its author chooses what its log shows.

Invariants: a value without `${` is returned as it is; an unknown variable or provider is an error, never the text
itself; no message holds what a placeholder stands for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from heliograph.config.keys.table import split_list
from heliograph.config.resolve.redaction import is_secret
from heliograph.config.resolve.settings import Unresolved
from heliograph.config.secrets.known_secrets import remember_secret
from heliograph.config.secrets.placeholder_text import placeholders, replace_placeholders
from heliograph.config.syntax.java_regex import compile_java
from heliograph.config.syntax.java_translation import JavaRegexError
from heliograph.config.syntax.properties import as_map, parse_properties
from heliograph.diagnostics import Diagnostic, problem
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.config.secrets.placeholder_text import Placeholder


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PACKAGE = "org.apache.kafka.common.config.provider."
PROVIDER_CLASSES = {
    kind: f"org.apache.kafka.common.config.provider.{name}"
    for kind, name in (
        ("file", "FileConfigProvider"),
        ("dir", "DirectoryConfigProvider"),
        ("env", "EnvVarConfigProvider"),
    )
}
_ALLOWLIST = "allowlist.pattern"
_KINDS_BY_CLASS = {
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "dir",
    "EnvVarConfigProvider": "env",
}


class Lookup(Protocol):
    """Access to the machine's variables and files."""

    def variable(self, name: str) -> str | None:
        """Return the environment variable's value, or None if it is not set."""

    def read_text(self, path: str) -> str | None:
        """Return the file's text, or None if it cannot be read."""


@dataclass(frozen=True, slots=True)
class _Provider:
    kind: str
    params: Mapping[str, str] = field(default_factory=dict)

    def allows(self, variable: str) -> bool:
        pattern = self.params.get(_ALLOWLIST)
        return pattern is None or compile_java(pattern, _ALLOWLIST).fullmatch(variable) is not None


_FREE = {kind: _Provider(kind) for kind in ("env", "file", "dir")}


class Resolver:
    """Replaces placeholders by the machine's values at the time of the call.

    Kafka wants providers declared; env, file and dir also work here without a declaration. `problems` are the
    declarations that cannot be used; a placeholder of theirs is refused with the same message. A patient resolver
    serves callers that need few values of a file: only those have to be there.
    """

    def __init__(
        self,
        lookup: Lookup,
        properties: Mapping[str, str],
        *,
        declared_only: bool = False,
        is_patient: bool = False,
        keeps_unresolved: bool = False,
    ) -> None:
        self._lookup = lookup
        self._properties = properties
        self._ways = {
            "declared_only": declared_only,
            "is_patient": is_patient,
            "keeps_unresolved": keeps_unresolved,
        }
        self.is_patient = is_patient
        self._keeps_unresolved = keeps_unresolved
        declared, self._refused = _declared_providers(properties)
        self.problems = tuple(self._refused.values())
        self._providers = declared if declared_only else _FREE | declared
        variables = declared.values() if declared_only else (_FREE["env"],)
        self._variables = next((each for each in variables if each.kind == "env"), None)

    def declared_only(self) -> Resolver:
        """Return the resolver for a connector: only declared providers may be used."""
        return self._with(declared_only=True)

    def tolerant(self) -> Resolver:
        """Return the resolver for further checks: a value whose placeholder cannot be resolved stays as it is."""
        return self._with(is_patient=False, keeps_unresolved=True)

    def _with(self, **changes: bool) -> Resolver:
        return Resolver(self._lookup, self._properties, **(self._ways | changes))

    def resolve(self, key: str, value: str) -> str:
        """Return the value of `key` with every placeholder replaced; raises a ConfigError with each that cannot be."""
        text, problems = self._replaced(key, value)
        if problems and not self._keeps_unresolved:
            raise ConfigError(problems)
        return value if problems else text

    def looked_up(self, key: str, value: str) -> str:
        """Do as `resolve`; a patient resolver returns what it cannot replace as an `Unresolved`."""
        if not self.is_patient:
            return self.resolve(key, value)
        text, problems = self._replaced(key, value)
        return Unresolved.of(text, problems[0]) if problems else text

    def _replaced(self, key: str, value: str) -> tuple[str, list[Diagnostic]]:
        """Return the value with what can be replaced, and a problem for each placeholder that cannot be."""
        problems: dict[Diagnostic, None] = {}

        def replacement(found: Placeholder) -> str:
            try:
                replaced = self._replacement(key, found.body)
            except ConfigError as error:
                problems.update(dict.fromkeys(error.problems))
                return found.written
            if self._ways["declared_only"] or is_secret(key) or is_secret(found.body.rpartition(":")[2]):
                remember_secret(replaced, found.written)
            return replaced

        text = replace_placeholders(value, replacement)
        return text, list(problems)

    def sources(self, value: str) -> Iterator[str]:
        """Yield what the value's placeholders would read from the machine: paths of files, and `env:NAME`."""
        for _before, body in placeholders(value):
            name, colon, rest = body.partition(":")
            provider = self._providers.get(name) if colon else _Provider("env")
            path, _, entry = rest.rpartition(":")
            if provider is None:
                yield body
            elif provider.kind == "env":
                yield f"env:{entry if colon else name}"
            else:
                yield path if provider.kind == "file" else f"{path.rstrip('/')}/{entry}"

    def _replacement(self, key: str, body: str) -> str:
        name, colon, rest = body.partition(":")
        if not colon:
            if not _VARIABLE.fullmatch(name):
                raise ConfigError(f"${{{body}}} is not a variable name.", key)
            if self._variables is None:
                raise ConfigError(f"${{{body}}} cannot be used: {_declaration('env')}.", key)
            return self._variable(key, name, self._variables)
        if name in self._refused:
            raise ConfigError([self._refused[name]])
        provider = self._providers.get(name)
        if provider is None and name in _FREE:
            raise ConfigError(f"${{{body}}} cannot be used: {_declaration(name)}.", key)
        if provider is None:
            known = ", ".join(sorted(self._providers)) or "declared"
            raise ConfigError(f"${{{body}}} names the config provider '{name}', which is not one of {known}.", key)
        if provider.kind == "env":
            return self._variable(key, rest.rpartition(":")[2], provider)
        path, _, entry = rest.rpartition(":")
        return self._from_path(key, provider, path, entry)

    def _variable(self, key: str, name: str, provider: _Provider) -> str:
        value = self._lookup.variable(name)
        if value is None or not provider.allows(name):
            raise ConfigError(f"the environment variable {name} is not set.", key)
        return value

    def _from_path(self, key: str, provider: _Provider, path: str, entry: str) -> str:
        _check_allowed(key, provider, path)
        if provider.kind == "dir":
            if "/" in entry:
                raise ConfigError(f"'{entry}' is not the name of a file in the folder {path}.", key)
            text = self._lookup.read_text(f"{path.rstrip('/')}/{entry}")
            if text is None:
                raise ConfigError(f"there is no readable file '{entry}' in the folder {path}.", key)
            return text
        text = self._lookup.read_text(path)
        if text is None:
            raise ConfigError(f"the file {path} cannot be read.", key)
        values = as_map(parse_properties(text))
        if entry not in values:
            raise ConfigError(f"the file {path} has no entry '{entry}'.", key)
        return values[entry]


def _check_allowed(key: str, provider: _Provider, path: str) -> None:
    allowed = provider.params.get("allowed.paths")
    if not allowed:
        return
    folders = [folder.strip().rstrip("/") for folder in allowed.split(",")]
    inside = any(path == folder or path.startswith(folder + "/") for folder in folders)
    if ".." in path.split("/") or not inside:
        raise ConfigError(f"{path} is outside of the provider's allowed.paths.", key)


def _declaration(kind: str) -> str:
    class_name = next(name for name, each in _KINDS_BY_CLASS.items() if each == kind)
    return (
        f"a connector may use what its worker declares; add 'config.providers = {kind}' and"
        f" 'config.providers.{kind}.class = {_PACKAGE}{class_name}' to the worker's file"
    )


def _declared_providers(properties: Mapping[str, str]) -> tuple[dict[str, _Provider], dict[str, Diagnostic]]:
    """Return the providers by name, and by name the problems of those that cannot be used."""
    providers: dict[str, _Provider] = {}
    refused: dict[str, Diagnostic] = {}
    for name in split_list(properties.get("config.providers", "")):
        if not name:
            continue
        class_key = f"config.providers.{name}.class"
        class_name = properties.get(class_key, "").rpartition(".")[2]
        if class_name not in _KINDS_BY_CLASS:
            known = ", ".join(sorted(_KINDS_BY_CLASS))
            message = f"'{class_name}' is not a config provider Heliograph has; it has {known}."
            refused[name] = problem(message, class_key)
            continue
        prefix = f"config.providers.{name}.param."
        params = {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}
        provider = _Provider(_KINDS_BY_CLASS[class_name], params)
        why_not = _pattern_problem(provider)
        if why_not is None:
            providers[name] = provider
        else:
            refused[name] = problem(why_not, f"{prefix}{_ALLOWLIST}")
    return providers, refused


def _pattern_problem(provider: _Provider) -> str | None:
    if provider.kind == "env":
        try:
            provider.allows("")
        except JavaRegexError as error:
            return f"'{provider.params[_ALLOWLIST]}' cannot be read as a Java regular expression: {error}."
    return None

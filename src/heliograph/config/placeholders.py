"""`${...}` in values: the environment and Kafka's config providers (env, file, dir).

Two forms meet in users' files. `${NAME}` is what container images substitute before MM2 sees the file (document 002);
`${provider:key}` and `${provider:path:key}` are Kafka's own (KIP-297, KIP-421). Both are resolved late, by
`Resolver.resolve`, so that a secret never has to be stored. The outside world comes in through `Lookup`.

Invariants: a value without `${` is returned as it is; an unknown variable or provider is an error, never the text
itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from heliograph.config.properties import as_map, parse_properties
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KINDS_BY_CLASS = {
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "dir",
    "EnvVarConfigProvider": "env",
}


class Lookup(Protocol):
    """What a placeholder may ask of the machine."""

    def variable(self, name: str) -> str | None:
        """The environment variable's value, or None where it is not set."""

    def read_text(self, path: str) -> str | None:
        """The file's text, or None where it cannot be read."""


@dataclass(frozen=True, slots=True)
class _Provider:
    kind: str
    params: Mapping[str, str] = field(default_factory=dict)


class Resolver:
    """Replaces placeholders by what the machine says at the time of the call."""

    def __init__(self, lookup: Lookup, properties: Mapping[str, str]) -> None:
        self._lookup = lookup
        self._providers = _declared_providers(properties)

    def resolve(self, key: str, value: str) -> str:
        """The value of `key` with every placeholder replaced."""
        return _PLACEHOLDER.sub(lambda found: self._replacement(key, found[1]), value)

    def sources(self, value: str) -> Iterator[str]:
        """What the value's placeholders would take from the machine: paths of files, and `env:NAME`."""
        for body in _PLACEHOLDER.findall(value):
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
                raise ConfigError(f"{key}: ${{{body}}} is not a variable name.")
            return self._variable(key, name, _Provider("env"))
        provider = self._providers.get(name)
        if provider is None:
            known = ", ".join(sorted(self._providers))
            raise ConfigError(f"{key}: ${{{body}}} names the config provider '{name}', which is not one of {known}.")
        if provider.kind == "env":
            return self._variable(key, rest.rpartition(":")[2], provider)
        path, _, entry = rest.rpartition(":")
        return self._from_path(key, provider, path, entry)

    def _variable(self, key: str, name: str, provider: _Provider) -> str:
        allowed = provider.params.get("allowlist.pattern")
        value = self._lookup.variable(name)
        if value is None or (allowed is not None and not re.fullmatch(allowed, name)):
            raise ConfigError(f"{key}: the environment variable {name} is not set.")
        return value

    def _from_path(self, key: str, provider: _Provider, path: str, entry: str) -> str:
        _check_allowed(key, provider, path)
        if provider.kind == "dir":
            text = self._lookup.read_text(f"{path.rstrip('/')}/{entry}")
            if text is None:
                raise ConfigError(f"{key}: there is no readable file '{entry}' in the folder {path}.")
            return text
        text = self._lookup.read_text(path)
        if text is None:
            raise ConfigError(f"{key}: the file {path} cannot be read.")
        values = as_map(parse_properties(text))
        if entry not in values:
            raise ConfigError(f"{key}: the file {path} has no entry '{entry}'.")
        return values[entry]


def _check_allowed(key: str, provider: _Provider, path: str) -> None:
    allowed = provider.params.get("allowed.paths")
    if not allowed:
        return
    folders = [folder.strip().rstrip("/") for folder in allowed.split(",")]
    inside = any(path == folder or path.startswith(folder + "/") for folder in folders)
    if ".." in path.split("/") or not inside:
        raise ConfigError(f"{key}: {path} is outside of the provider's allowed.paths.")


def _declared_providers(properties: Mapping[str, str]) -> dict[str, _Provider]:
    """Kafka wants providers declared; env, file and dir also work here without a declaration."""
    providers = {kind: _Provider(kind) for kind in ("env", "file", "dir")}
    for name in re.split(r"\s*,\s*", properties.get("config.providers", "").strip()):
        if not name:
            continue
        class_key = f"config.providers.{name}.class"
        class_name = properties.get(class_key, "").rpartition(".")[2]
        if class_name not in _KINDS_BY_CLASS:
            known = ", ".join(sorted(_KINDS_BY_CLASS))
            raise ConfigError(f"{class_key}: '{class_name}' is not a config provider Heliograph has; it has {known}.")
        prefix = f"config.providers.{name}.param."
        params = {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}
        providers[name] = _Provider(_KINDS_BY_CLASS[class_name], params)
    return providers

"""Secrets of a resource: references to `Secret`s become `${dir:FOLDER/SECRET:KEY}`, which is resolved late.

A secret is in the resource's own file (a `Secret` document) or in a folder that has one sub-folder per secret, as
Kubernetes mounts them. Placeholders that only the operator's pods could resolve (its own config providers, mounted
`externalConfiguration`) are rewritten to the same form. Invariant: no secret's value is part of an entry.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.formats.reading import Reading
    from heliograph.config.resolve.placeholders import Lookup
    from heliograph.config.syntax.yaml_tree import Tree


UNNAMED_FOLDER = "secrets"
_MOUNT_ROOT = "/opt/kafka/external-configuration"
_OPERATORS_PROVIDERS = {"strimzienv": "env", "strimzifile": "file", "strimzidir": "dir", "directory": "dir"}
_KUBERNETES_PROVIDERS = ("KubernetesSecretConfigProvider", "KubernetesConfigMapConfigProvider")
_PLACEHOLDER = re.compile(r"\$\{([^}:]*):([^}]*)\}")


class SecretsFolder(Protocol):
    """A folder with one sub-folder per secret."""

    path: str

    def names(self, secret: str) -> list[str] | None:
        """The files of a secret; None where it is not there."""


@dataclass
class Secrets:
    """The places of a resource's secrets. `documents` are those of its own file: secret, key, value.

    A caller that only writes their names does not require that they `must_exist`; one without logins needs none.
    """

    folder: SecretsFolder | None = None
    documents: dict[str, dict[str, str]] = field(default_factory=dict)
    must_exist: bool = True
    is_needed: bool = True
    _mounts: dict[str, str] = field(default_factory=dict)
    _variables: dict[str, tuple[str, str]] = field(default_factory=dict)
    _providers: set[str] = field(default_factory=lambda: {"strimzisecrets"})

    @property
    def path(self) -> str:
        """The folder that placeholders name."""
        return self.folder.path if self.folder is not None else UNNAMED_FOLDER

    def add_document(self, reading: Reading, tree: Tree) -> None:
        """Remember a `Secret` or `ConfigMap` of the file."""
        metadata = tree.get("metadata")
        name = metadata.get("name") if metadata is not None else None
        if name is None:
            reading.warn(tree, "it has no metadata.name, so nothing can refer to it.")
            return
        values: dict[str, str] = {}
        is_secret = tree.fields["kind"].text == "Secret"
        for section in ("data", "stringData"):
            part = tree.get(section)
            for key, value in (part.fields if part is not None else {}).items():
                text = _decoded(value.text) if is_secret and section == "data" else value.text
                if text is not None:  # a key store beside the certificates is a problem for who refers to it
                    values[key] = text
        self.documents[name.text] = values

    def reference(self, reading: Reading, tree: Tree, secret: str, key: str) -> str | None:
        """The placeholder of a secret's key; None, and a problem, where there is no such thing."""
        if secret in self.documents:
            if key not in self.documents[secret]:
                reading.problem(tree, f"the Secret '{secret}' in this file has no '{key}'.")
                return None
        elif self.must_exist and not self._is_there(reading, tree, secret, key):
            return None
        return f"${{dir:{self.path}/{secret}:{key}}}"

    def matching(self, reading: Reading, tree: Tree, secret: str, pattern: str) -> list[str]:
        """The keys of a secret that a file pattern such as `*.crt` means."""
        names: list[str] | None = list(self.documents.get(secret, ())) or None
        if names is None and self.folder is not None:
            names = self.folder.names(secret)
        if names is None and not self.is_needed:
            return [pattern]
        if names is None:
            reading.problem(tree, f"{self._unknown(secret)}; its files that match '{pattern}' are asked for.")
            return []
        found = sorted(name for name in names if fnmatchcase(name, pattern))
        if not found:
            reading.problem(tree, f"no file of the secret '{secret}' matches '{pattern}'.")
        return found

    def add_external(self, tree: Tree) -> None:
        """Remember what `externalConfiguration` would mount into pods, or set in their environment."""
        for volume in _items(tree, "volumes"):
            name, secret = volume.get("name"), _source_name(volume, "secret", "secretName")
            secret = secret or _source_name(volume, "configMap", "name")
            if name is not None and secret:
                self._mounts[f"{_MOUNT_ROOT}/{name.text}"] = secret
        for variable in _items(tree, "env"):
            name, source = variable.get("name"), variable.get("valueFrom")
            chosen = source and (source.get("secretKeyRef") or source.get("configMapKeyRef"))
            if name is not None and chosen and chosen.get("name") and chosen.get("key"):
                self._variables[name.text] = (chosen.fields["name"].text, chosen.fields["key"].text)

    def add_provider(self, name: str, class_name: str) -> None:
        """Remember a config provider that asks Kubernetes; others are the file's own."""
        if class_name.rpartition(".")[2] in _KUBERNETES_PROVIDERS:
            self._providers.add(name)

    def knows_provider(self, name: str) -> bool:
        """Return whether a provider's placeholders are rewritten, so that it need not be declared."""
        return name in self._providers

    def rewritten(self, value: str) -> str:
        """A value whose placeholders can be resolved outside of the operator's pods."""
        return _PLACEHOLDER.sub(lambda found: self._placeholder(found[1], found[2]), value)

    def lookup(self, lookup: Lookup) -> Lookup:
        """The machine, and the secrets of the file."""
        return _WithDocuments(lookup, self.path, self.documents) if self.documents else lookup

    def _placeholder(self, provider: str, rest: str) -> str:
        if provider in self._providers:  # ${secrets:namespace/name:key}
            path, _, key = rest.rpartition(":")
            return f"${{dir:{self.path}/{path.rpartition('/')[2]}:{key}}}"
        known = _OPERATORS_PROVIDERS.get(provider, provider)
        if known == "env" and rest in self._variables:
            secret, key = self._variables[rest]
            return f"${{dir:{self.path}/{secret}:{key}}}"
        for mount, secret in self._mounts.items():
            if rest.startswith((f"{mount}/", f"{mount}:")):
                rest = f"{self.path}/{secret}{rest.removeprefix(mount)}"
        return f"${{{known}:{rest}}}"

    def _is_there(self, reading: Reading, tree: Tree, secret: str, key: str) -> bool:
        names = self.folder.names(secret) if self.folder is not None else None
        if names is None:
            reading.problem(tree, f"{self._unknown(secret)}.")
        elif key not in names:
            reading.problem(tree, f"the secret '{secret}' has no file '{key}' in {self.path}/{secret}.")
        return names is not None and key in names

    def _unknown(self, secret: str) -> str:
        if self.folder is None:
            return f"the secret '{secret}' is not known; name the folder of the mounted secrets with --secrets DIR"
        return f"there is no folder of the secret '{secret}' in {self.path}"


class _WithDocuments:
    """A machine that also has the files of secrets that stand in the resource's file."""

    def __init__(self, lookup: Lookup, folder: str, documents: Mapping[str, Mapping[str, str]]) -> None:
        self._lookup = lookup
        self._files = {f"{folder}/{name}/{key}": text for name, keys in documents.items() for key, text in keys.items()}

    def variable(self, name: str) -> str | None:
        """The environment variable's value, or None where it is not set."""
        return self._lookup.variable(name)

    def read_text(self, path: str) -> str | None:
        """The file's text, or None where it cannot be read."""
        return self._files.get(path) or self._lookup.read_text(path)


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _items(tree: Tree, name: str) -> tuple[Tree, ...]:
    found = tree.get(name)
    return found.items if found is not None else ()


def _source_name(tree: Tree, kind: str, field_name: str) -> str:
    source = tree.get(kind)
    name = source.get(field_name) if source is not None else None
    return name.text if name is not None else ""

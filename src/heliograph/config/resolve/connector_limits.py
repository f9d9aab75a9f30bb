"""Limits of a connector: the URLs, files and Python packages that its worker lets it name.

Everyone who reaches REST writes connectors; only its operator writes the worker's file. So the worker's file lists the
URLs and files of OAuth, under the names of Kafka's JVM properties (KIP-1139), and the packages whose classes may be
loaded. A connector that was accepted under access rules also keeps their patterns of `secrets`. All limits are checked
when a client or a class is made, on values whose placeholders are resolved: a file may change after the config was
accepted.

Invariant: messages show what was written, never what a placeholder stands for.
"""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.config.keys import worker_keys
from heliograph.config.syntax.java_regex import compile_java
from heliograph.errors import NotAllowedError

_OURS = "heliograph.mirror"


@dataclass(frozen=True, slots=True)
class ConnectorLimits:
    """The lists of a worker; `secrets` are Java patterns of the rules, None where no rules held for the config."""

    urls: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    secrets: tuple[str, ...] | None = None

    def check_url(self, name: str, url: str) -> None:
        """Raise unless the worker lists the URL, letter by letter as Java compares it."""
        if url not in self.urls:
            raise NotAllowedError(
                f"the worker allows connectors no such URL; its operator lists URLs in"
                f" {worker_keys.OAUTH_ALLOWED_URLS.name} of the worker's file.",
                name,
            )

    def check_file(self, name: str, path: str) -> None:
        """Raise unless the worker lists the file."""
        if path not in self.files:
            raise NotAllowedError(
                f"the worker allows connectors no such file; its operator lists files in"
                f" {worker_keys.OAUTH_ALLOWED_FILES.name} of the worker's file.",
                name,
            )

    def check_class(self, name: str, class_name: str, shown: str) -> None:
        """Raise unless a class `package.module:Class` is of a package that may be loaded."""
        module = class_name.partition(":")[0]
        if not any(module == package or module.startswith(f"{package}.") for package in self.packages):
            raise NotAllowedError(
                f"the worker allows connectors no package for '{shown}'; its operator lists packages in"
                f" {worker_keys.PLUGIN_PACKAGES.name} of the worker's file.",
                name,
            )
        self.check_taken(name, f"class:{class_name}", f"class:{shown}")

    def check_taken(self, name: str, source: str, shown: str) -> None:
        """Raise where rules hold and none of their `secrets` matches a path, `aws:PROFILE` and the like."""
        if self.secrets is None:
            return
        if ".." in source.split("/") or not any(compile_java(text).fullmatch(source) for text in self.secrets):
            raise NotAllowedError(
                f"the `secrets` in {worker_keys.REST_RULES_FILE.name} do not let the writer of this connector"
                f" name {shown}.",
                name,
            )

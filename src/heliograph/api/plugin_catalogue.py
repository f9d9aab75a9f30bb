"""What the REST API asks of whoever knows the plugins: their names, their keys, and what is wrong with a config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class PluginCatalogue(Protocol):
    """The plugins of a worker; a plugin is named by its class."""

    def connector_classes(self) -> Sequence[str]:
        """Full names of all connector classes."""

    def resolve(self, name: str) -> str | None:
        """The full name of a class that is given by it or by one of Connect's aliases; None if it is not there."""

    def definitions(self, plugin: str) -> list[dict[str, Any]]:
        """The keys of a plugin, each with the members of Connect's ConfigKeyInfo."""

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> dict[str, Any]:
        """What becomes of a config, with the members of Connect's ConfigInfos; errors are in it, not raised."""

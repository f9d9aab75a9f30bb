"""A view of a configuration with its placeholders resolved, made at the moment somebody needs it and not kept.

Invariant: what came out of a placeholder can be used and not shown: the view keeps the text it came from for messages.
What a patient resolver could not look up is an `Unresolved`: it raises where it is read as a setting, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.overlays import origins
from heliograph.config.types import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.config.connector_limits import ConnectorLimits
    from heliograph.config.overlays import Layer
    from heliograph.config.placeholders import Resolver


def resolved_view(
    raw: Mapping[str, str],
    layers: Iterable[Layer],
    resolver: Resolver,
    prefix: str = "",
    limits: ConnectorLimits | None = None,
) -> Settings:
    """What the layers take of a map, the last one winning, placeholders resolved; `limits` hold for all of it."""
    written_as = {key: places[-1].name for key, places in origins(raw, layers).items()}
    values = {key: resolver.looked_up(name, raw[name]) for key, name in written_as.items()}
    before = {key: raw[name] for key, name in written_as.items() if raw[name] != values[key]}
    return Settings(values, prefix, written_as, before, {} if limits is None else dict.fromkeys(values, limits))

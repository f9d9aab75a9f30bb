"""The configuration of `/metrics`: its own listeners, the names of its metrics, the limit of its series."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.effective.rest_config import RestListener, parse_listener
from heliograph.config.resolve.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.resolve.placeholders import Resolver


_ROWS = (keys.METRICS_LISTENERS, keys.METRICS_DIALECT, keys.METRICS_PARTITIONS_MAX)


class MetricsConfig(NamedTuple):
    """The configuration of one process; without `listeners` only the REST server has the page."""

    listeners: tuple[RestListener, ...]
    dialect: str
    partitions_max: int


def metrics_settings(raw: Mapping[str, str], resolver: Resolver) -> Settings:
    """Return the keys of metrics at the top of a file, with placeholders resolved."""
    written = {row.name: raw[row.name] for row in _ROWS if row.name in raw}
    values = {name: resolver.looked_up(name, text) for name, text in written.items()}
    return Settings(values, raw={name: text for name, text in written.items() if text != values[name]})


def metrics_config(raw: Mapping[str, str], resolver: Resolver) -> MetricsConfig:
    """Return the configuration; raises ConfigError for an invalid value."""
    settings = metrics_settings(raw, resolver)
    name = keys.METRICS_LISTENERS.name
    listeners = tuple(parse_listener(name, text) for text in settings[keys.METRICS_LISTENERS])
    return MetricsConfig(listeners, settings[keys.METRICS_DIALECT], settings[keys.METRICS_PARTITIONS_MAX])

"""Checks that a connector's keys name classes that a worker can use, before the connector is stored.

A name that is none of MM2's or ours gets the error message of Kafka's ConfigDef. A Python class is imported and its
methods are checked, but no object is created, as in Kafka's ConfigDef. `plugins.custom_class` decides which modules may
be imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.errors import ConfigError
from heliograph.mirror.policy.filters import FILTERS
from heliograph.mirror.policy.plugins import custom_class, is_custom, known_class
from heliograph.mirror.policy.replication_policy import POLICIES, POLICY_METHODS, STRIMZI_IDENTITY

if TYPE_CHECKING:
    from heliograph.config.keys.table import Key
    from heliograph.config.resolve.settings import Settings


_KAFKA = "org.apache.kafka."
# Converters of Kafka by the names that Connect accepts; Heliograph refuses them with an error of its own.
_CONVERTERS = ("Boolean", "ByteArray", "Double", "Float", "Integer", "Json", "Long", "Short", "Simple", "String")


def class_error(row: Key[str], settings: Settings) -> str | None:
    """Return the error of the class that a key names, without the name of the key; None if it can be used."""
    written = settings.values[row.name].strip()
    if not is_custom(written):
        return java_class_error(row, settings)
    methods = POLICY_METHODS if row == keys.POLICY_CLASS else FILTERS[row][1:] if row in FILTERS else None
    if methods is None:
        return _not_found(settings.values[row.name])
    try:
        custom_class(row, settings, methods)
    except ConfigError as error:
        return str(error.problems[0].message)
    return None


def java_class_error(row: Key[str], settings: Settings) -> str | None:
    """Return the same for Java class names; a Python class is not checked."""
    written = settings.values[row.name].strip()
    if is_custom(written):
        return None
    try:
        if row == keys.POLICY_CLASS:
            known_class(row, settings, POLICIES, also=[STRIMZI_IDENTITY])
        elif row in FILTERS:
            known_class(row, settings, FILTERS[row][:1])
        elif not _is_of_kafka(written):
            return _not_found(settings.values[row.name])
    except ConfigError:
        return _not_found(settings.values[row.name])
    return None


def _is_of_kafka(name: str) -> bool:
    simple = name.removesuffix("HeaderConverter").removesuffix("Converter")
    return name.startswith(_KAFKA) or simple in _CONVERTERS


def _not_found(text: str) -> str:
    return f"Class {text} could not be found."

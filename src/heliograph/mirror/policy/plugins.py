"""Loads the class that a key names: one of MM2's by its Java name, a custom one by `package.module:Class`.

A custom class is created without arguments; if it has a method `configure`, that is called once with the flow's
settings as a map of strings, as Java's Configurable. Errors name the key, because the file is the place to fix them.
docs/guides/custom-policies-and-filters.md shows how to write such a class.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from heliograph.config.resolve.suggestions import did_you_mean
from heliograph.config.secrets.known_secrets import hide_known
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from heliograph.config.keys.table import Key
    from heliograph.config.resolve.settings import Settings


_GUIDE = "docs/guides/custom-policies-and-filters.md"
_APACHE = "org.apache.kafka.connect.mirror."


def is_custom(class_name: str) -> bool:
    """Return whether the name is that of a Python class, written `package.module:Class`."""
    return ":" in class_name


def known_class(key: Key[str], settings: Settings, known: Iterable[str], also: Sequence[str] = ()) -> str:
    """Return the simple name of one of `known`, written so or as Apache's Java class; `also` has further Java names."""
    written = settings[key]
    name = written.rpartition(".")[2] if written in also else written.removeprefix(_APACHE)
    choices = tuple(known)
    if name in choices:
        return name
    shown = settings.shown(key)
    if "." in written:
        raise ConfigError(
            f"'{shown}' is a Java class, which Heliograph cannot load; write it in Python and name it"
            f" as package.module:Class ({_GUIDE}).",
            key.name,
        )
    suggestion = "" if key.name in settings.raw else did_you_mean(name, choices)
    hint = suggestion or f" There is {' and '.join(choices)}; your own is named package.module:Class."
    raise ConfigError(f"there is no '{shown}'.{hint}", key.name)


def custom_class(key: Key[str], settings: Settings, methods: Sequence[str]) -> type[Any]:
    """Import the class that the key names, and check that it has all of `methods`.

    Nothing is imported for a connector whose worker does not allow it to load the class: an import runs code.
    """
    written = settings[key]
    shown = settings.shown(key)
    if key.name in settings.limits:
        settings.limits[key.name].check_class(key.name, written, shown)
    module_name, _, class_name = written.partition(":")
    shown_module, _, shown_class = shown.rpartition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's module may fail in any way
        raise ConfigError(
            f"the module '{shown_module}' cannot be imported ({_reported(error, written, shown)});"
            " is it installed, or is its folder in PYTHONPATH?",
            key.name,
        ) from error
    made = getattr(module, class_name, None)
    if not isinstance(made, type):
        raise ConfigError(f"the module '{shown_module}' has no class '{shown_class}'.", key.name)
    abstract: frozenset[str] = getattr(made, "__abstractmethods__", frozenset())
    lacking = [method for method in methods if method in abstract or not callable(getattr(made, method, None))]
    if lacking:
        raise ConfigError(f"'{shown}' needs the method {' and '.join(lacking)} ({_GUIDE}).", key.name)
    return made


def load_custom(key: Key[str], settings: Settings, methods: Sequence[str]) -> Any:
    """Return a configured object of the class that the key names; it has all of `methods`."""
    made = custom_class(key, settings, methods)
    written, shown = settings[key], settings.shown(key)
    try:
        plugin = made()
        if callable(getattr(plugin, "configure", None)):
            plugin.configure(dict(settings.values))
    except (Exception, SystemExit) as error:
        raise ConfigError(f"'{shown}' cannot be created: {_reported(error, written, shown)}.", key.name) from error
    return plugin


def _reported(error: BaseException, written: str, shown: str) -> str:
    """Return the error's type and message; only its type if the message may repeat the value of a placeholder."""
    message = "" if written != shown else hide_known(str(error), lambda: shown)
    return f"{type(error).__name__}: {message}".rstrip(".: ")

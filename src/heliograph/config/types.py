"""The shape of a row in the table of keys, and the value types a row can have.

A `Key[T]` carries its Python type, so `settings[KEY]` is typed without a second declaration. Parsing follows Kafka's
ConfigDef: values are trimmed, booleans are `true`/`false` in any case, lists are split at commas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING, Generic, TypeVar

from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


class Scope(Flag):
    """Where a key may stand: which prefixes it takes is decided by the reader of the file, not by the row."""

    FILE = auto()  # top of a dedicated-mode file only
    SOURCE = auto()  # MirrorSourceConnector
    CHECKPOINT = auto()  # MirrorCheckpointConnector
    HEARTBEAT = auto()  # MirrorHeartbeatConnector
    WORKER = auto()  # Connect worker
    CLIENT = auto()  # connection and security of any Kafka client
    CONSUMER = auto()  # source consumer
    PRODUCER = auto()  # target producer
    CONNECTOR = SOURCE | CHECKPOINT | HEARTBEAT


@dataclass(frozen=True, slots=True)
class ValueType(Generic[T]):
    """How text becomes a value; `name` is Kafka's ConfigDef type."""

    name: str
    parse: Callable[[str], T]
    noun: str


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in {"true", "false"}:
        raise ValueError
    return lowered == "true"


def split_list(text: str) -> tuple[str, ...]:
    """Kafka's LIST: split at commas with the blanks around them; an empty text is an empty list."""
    stripped = text.strip()
    return tuple(re.split(r"\s*,\s*", stripped)) if stripped else ()


BOOLEAN = ValueType("BOOLEAN", _boolean, "true or false")
INT = ValueType("INT", lambda text: int(text.strip()), "a whole number")
SHORT = ValueType("SHORT", lambda text: int(text.strip()), "a whole number")
LONG = ValueType("LONG", lambda text: int(text.strip()), "a whole number")
STRING = ValueType("STRING", lambda text: text.strip(), "text")
PASSWORD = ValueType("PASSWORD", lambda text: text, "text")
LIST = ValueType("LIST", split_list, "a list separated by commas")
CLASS = ValueType("CLASS", lambda text: text.strip(), "a class name")


@dataclass(frozen=True, slots=True)
class Check(Generic[T]):
    """A rule for a value and the words that tell it."""

    holds: Callable[[T], bool]
    words: str


def at_least(lowest: int) -> Check[int]:
    """Not below `lowest`."""
    return Check(lambda value: value >= lowest, f"at least {lowest}")


def one_of(*choices: str) -> Check[str]:
    """One of the given words."""
    return Check(lambda value: value in choices, "one of " + ", ".join(choices))


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """One configuration key, written once: parsing, checks, docs and warnings all come from here."""

    name: str
    type: ValueType[T]
    default: T
    scope: Scope
    doc: str
    check: Check[T] | None = None
    ours: bool = False
    replaced_by: str | None = None

    def parse(self, text: str, written_as: str | None = None) -> T:
        """The typed value, or a ConfigError that names the key as the user wrote it."""
        name = written_as or self.name
        shown = "(hidden)" if self.type is PASSWORD else f"'{text}'"
        try:
            value = self.type.parse(text)
        except ValueError:
            raise ConfigError(f"{name}: {shown} is not {self.type.noun}.") from None
        if self.check is not None and not self.check.holds(value):
            raise ConfigError(f"{name}: {shown} must be {self.check.words}.")
        return value


class Settings:
    """A typed view of a string map: `settings[KEY]` parses, checks and falls back to the key's default."""

    def __init__(self, values: Mapping[str, str], prefix: str = "") -> None:
        self.values = dict(values)
        self._prefix = prefix

    def __getitem__(self, key: Key[T]) -> T:
        text = self.values.get(key.name)
        return key.default if text is None else key.parse(text, self._prefix + key.name)

    def __contains__(self, key: Key[T]) -> bool:
        return key.name in self.values

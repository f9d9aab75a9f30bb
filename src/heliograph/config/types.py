"""The shape of a row in the table of keys, and the value types a row can have.

A `Key[T]` carries its Python type, so `settings[KEY]` is typed without a second declaration. Parsing follows Kafka's
ConfigDef: values are trimmed, booleans are `true`/`false` in any case, lists are split at commas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from heliograph.config.known_secrets import remember_secret
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from heliograph.config.connector_limits import ConnectorLimits

T = TypeVar("T")
V_co = TypeVar("V_co", covariant=True)

HIDDEN = "[hidden]"  # as Kafka shows a secret


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
    ADMIN = auto()  # admin client of either side
    CONNECTOR = SOURCE | CHECKPOINT | HEARTBEAT
    ROLES = CONSUMER | PRODUCER | ADMIN


class Importance(Enum):
    """Kafka's word for how likely a user needs a key."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Support:
    """What Heliograph does with a key: acts on it, ignores it, or refuses a value that is not the default."""

    kind: Literal["full", "ignored", "rejected"]
    reason: str = ""
    accepted: tuple[str, ...] = ()


FULL = Support("full")


def ignored(reason: str) -> Support:
    """Accepted without effect; the reason is told where a user has set the key."""
    return Support("ignored", reason)


def rejected(reason: str, *accepted: str) -> Support:
    """An error where it is set to anything but its default or an accepted value: obeying would change what arrives."""
    return Support("rejected", reason, accepted)


@dataclass(frozen=True, slots=True)
class ValueType(Generic[V_co]):
    """How text becomes a value; `name` is Kafka's ConfigDef type."""

    name: str
    parse: Callable[[str], V_co]
    noun: str


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in {"true", "false"}:
        raise ValueError
    return lowered == "true"


def _whole(bits: int) -> Callable[[str], int]:
    """A whole number as Java parses it: decimal digits and a sign, within the type's range."""

    def parse(text: str) -> int:
        stripped = text.strip()
        if not _JAVA_NUMBER.fullmatch(stripped) or not -(1 << bits - 1) <= int(stripped) < 1 << bits - 1:
            raise ValueError
        return int(stripped)

    return parse


_JAVA_NUMBER = re.compile(r"[+-]?[0-9]+")


def split_list(text: str) -> tuple[str, ...]:
    """Kafka's LIST: split at commas with the blanks around them; an empty text is an empty list."""
    stripped = text.strip()
    return tuple(each.strip() for each in stripped.split(",")) if stripped else ()


BOOLEAN = ValueType("BOOLEAN", _boolean, "true or false")
INT = ValueType("INT", _whole(32), "a whole number of at most 32 bits")
SHORT = ValueType("SHORT", _whole(16), "a whole number of at most 16 bits")
LONG = ValueType("LONG", _whole(64), "a whole number of at most 64 bits")
DOUBLE = ValueType("DOUBLE", lambda text: float(text.strip()), "a number")
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


REPLICATION_FACTOR_CHECK: Check[int] = Check(lambda value: value >= 1 or value == -1, "at least 1, or -1")


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """One configuration key, written once: parsing, checks, docs and warnings all come from here.

    `default` is ours; where MM2 has another, `mm2_default` holds it. `since` is the version of Kafka (or of Heliograph,
    for its own keys) that brought the key; empty where it has been there from the beginning or is not known.
    """

    name: str
    type: ValueType[T]
    default: T
    scope: Scope
    doc: str
    check: Check[T] | None = None
    ours: bool = False
    replaced_by: str | None = None
    importance: Importance = Importance.LOW
    since: str = ""
    support: Support = FULL
    mm2_default: T | None = None

    def parse(self, text: str, written_as: str | None = None, shown_as: str | None = None) -> T:
        """The typed value, or a ConfigError with the name and the value (`shown_as`) that the user wrote."""
        name = written_as or self.name
        if self.type is PASSWORD:
            remember_secret(text, HIDDEN)
        shown = HIDDEN if self.type is PASSWORD else f"'{shown_as or text}'"
        try:
            value = self.type.parse(text)
        except ValueError:
            raise ConfigError(f"{name}: {shown} is not {self.type.noun}.") from None
        if self.check is not None and not self.check.holds(value):
            raise ConfigError(f"{name}: {shown} must be {self.check.words}.")
        if self.support.kind == "rejected" and value != self.default and value not in self.support.accepted:
            raise ConfigError(f"{name}: {self.support.reason}")
        return value


class Unresolved(str):
    """A value with placeholders that could not be looked up, as they were written; `why` is the sentence about it."""

    __slots__ = ("why",)
    why: str

    @classmethod
    def of(cls, text: str, why: str) -> Unresolved:
        """The value and the sentence."""
        made = cls(text)
        made.why = why
        return made


class Settings:
    """A typed view of a string map: `settings[KEY]` parses, checks and falls back to the key's default.

    `written_as` maps a key to the name it has in the user's file, for messages; `prefix` is used where it has none.
    `raw` has the values that came out of placeholders as they were before: only those are fit for a message. `limits`
    has by key what holds for values that a connector has set; a value of an operator's file has none.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        prefix: str = "",
        written_as: Mapping[str, str] | None = None,
        raw: Mapping[str, str] | None = None,
        limits: Mapping[str, ConnectorLimits] | None = None,
    ) -> None:
        self.values = dict(values)
        self.raw = dict(raw or {})
        self.limits = dict(limits or {})
        self._prefix = prefix
        self._written_as = written_as or {}

    def __getitem__(self, key: Key[T]) -> T:
        text = self.values.get(key.name)
        if isinstance(text, Unresolved):
            raise ConfigError(text.why)
        return key.default if text is None else key.parse(text, self.written_as(key), self.raw.get(key.name))

    def __contains__(self, key: Key[T]) -> bool:
        return key.name in self.values

    def written_as(self, key: Key[T]) -> str:
        """The key's name for a message: as the user wrote it, or as it would be written for this view."""
        return self.written(key.name)

    def shown(self, key: Key[T]) -> str:
        """The key's value for a message: as the user wrote it."""
        return self.raw.get(key.name, self.values.get(key.name, str(key.default)))

    def written(self, name: str) -> str:
        """The same for a key of any name."""
        return self._written_as.get(name) or self._prefix + name

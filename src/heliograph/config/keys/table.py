"""The table of configuration keys, and how a row is written; the rows are in `keys` and its neighbours.

The shape of a row in the table of keys, and the value types a row can have.

A `Key[T]` carries its Python type, so `settings[KEY]` is typed without a second declaration. Parsing follows Kafka's
ConfigDef: values are trimmed, booleans are `true`/`false` in any case, lists are split at commas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from heliograph.config.secrets.known_secrets import HIDDEN, remember_secret
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")
V_co = TypeVar("V_co", covariant=True)


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
    """A rule for a value, the phrase for it, and the choices if it is one of several."""

    holds: Callable[[T], bool]
    phrase: str
    choices: tuple[str, ...] = ()


def at_least(lowest: int) -> Check[int]:
    """Not below `lowest`."""
    return Check(lambda value: value >= lowest, f"at least {lowest}")


def one_of(*choices: str) -> Check[str]:
    """One of the given words."""
    return Check(lambda value: value in choices, "one of " + ", ".join(choices), choices)


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
            raise ConfigError(f"{shown} is not {self.type.noun}.", name) from None
        if self.check is not None and not self.check.holds(value):
            raise ConfigError(f"{shown} must be {self.check.phrase}.", name)
        if self.support.kind == "rejected" and value != self.default and value not in self.support.accepted:
            raise ConfigError(f"{self.support.reason}", name)
        return value


Row = tuple[str, ValueType[Any], Any, Importance, str, str]  # name, type, default, importance, since, doc
TABLE: dict[str, Key[Any]] = {}

NO_STRINGS: tuple[str, ...] = ()

FILE, SOURCE, CHECKPOINT, HEARTBEAT = Scope.FILE, Scope.SOURCE, Scope.CHECKPOINT, Scope.HEARTBEAT
WORKER, CLIENT, CONSUMER, PRODUCER, ADMIN, CONNECTOR, ROLES = (
    Scope.WORKER,
    Scope.CLIENT,
    Scope.CONSUMER,
    Scope.PRODUCER,
    Scope.ADMIN,
    Scope.CONNECTOR,
    Scope.ROLES,
)
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


def define(  # noqa: PLR0913  (a row of a table has as many fields as the table has columns)
    name: str,
    type_: ValueType[T],
    default: T,
    scope: Scope,
    doc: str,
    check: Check[T] | None = None,
    *,
    ours: bool = False,
    replaced_by: str | None = None,
    importance: Importance = LOW,
    since: str = "",
    support: Support = FULL,
    mm2_default: T | None = None,
) -> Key[T]:
    """Add a row; a name stands in the table once."""
    row = Key(name, type_, default, scope, doc, check, ours, replaced_by, importance, since, support, mm2_default)
    if name in TABLE:
        raise ValueError(f"{name} stands twice in the table")
    TABLE[name] = row
    return row


def define_all(scope: Scope, support: Support, *rows: Row) -> None:
    """Add rows that share where they stand and what becomes of them."""
    for name, type_, default, importance, since, doc in rows:
        define(name, type_, default, scope, doc, importance=importance, since=since, support=support)

"""A row of the table of keys, its value types and checks, and the functions that add rows.

A `Key[T]` carries its Python type, so `settings[KEY]` is typed without a second declaration. Parsing follows Kafka's
ConfigDef: values are trimmed, booleans are `true`/`false` in any case, lists are split at commas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from heliograph.config.secrets.known_secrets import HIDDEN, remember_secret
from heliograph.diagnostics import problem
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")
V_co = TypeVar("V_co", covariant=True)
_JAVA_NUMBER = re.compile(r"[+-]?[0-9]+")


class Scope(Flag):
    """The parts of a configuration that a key may be for; the reader of a file decides which prefixes that means."""

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
    """Kafka's rating of how likely a user needs a key."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Support:
    """Heliograph's treatment of a key: it acts on it, ignores it, or refuses a value that is not the default.

    `is_workers` marks a key that is ignored in a dedicated-mode file and that a Connect worker acts on.
    """

    kind: Literal["full", "ignored", "rejected"]
    reason: str = ""
    accepted: tuple[str, ...] = ()
    is_workers: bool = False

    @property
    def is_ignored_by_workers(self) -> bool:
        """Return whether the key has no effect in a Connect worker's file."""
        return self.kind == "ignored" and not self.is_workers


FULL = Support("full")


def ignored(reason: str, *, except_by_workers: bool = False) -> Support:
    """Return the support of a key without effect; a user who sets the key gets a note with the reason."""
    return Support("ignored", reason, is_workers=except_by_workers)


def rejected(reason: str, *accepted: str) -> Support:
    """Return the support of a key that must keep its default or an accepted value: another would change records."""
    return Support("rejected", reason, accepted)


@dataclass(frozen=True, slots=True)
class ValueType(Generic[V_co]):
    """A parser of values; `name` is Kafka's ConfigDef type, `noun` describes a valid value."""

    name: str
    parse: Callable[[str], V_co]
    noun: str


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in {"true", "false"}:
        raise ValueError
    return lowered == "true"


def _whole(bits: int) -> Callable[[str], int]:
    """Return a parser of whole numbers like Java's: decimal digits and a sign, within the type's range."""

    def parse(text: str) -> int:
        stripped = text.strip()
        if not _JAVA_NUMBER.fullmatch(stripped) or not -(1 << bits - 1) <= int(stripped) < 1 << bits - 1:
            raise ValueError
        return int(stripped)

    return parse


def split_list(text: str) -> tuple[str, ...]:
    """Split Kafka's LIST at commas and strip blanks; an empty text is an empty list."""
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
    """A rule for a value, the phrase for it, and the choices if it is one of several.

    `mistakes` returns a sentence for each part of a value that breaks the rule, if a value has parts.
    """

    holds: Callable[[T], bool]
    phrase: str
    choices: tuple[str, ...] = ()
    mistakes: Callable[[T], tuple[str, ...]] = lambda _value: ()


def at_least(lowest: int) -> Check[int]:
    """Return the check that a value is not below `lowest`."""
    return Check(lambda value: value >= lowest, f"at least {lowest}")


def one_of(*choices: str) -> Check[str]:
    """Return the check that a value is one of the choices."""
    return Check(lambda value: value in choices, "one of " + ", ".join(choices), choices)


REPLICATION_FACTOR_CHECK: Check[int] = Check(lambda value: value >= 1 or value == -1, "at least 1, or -1")


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """One configuration key, written once: parsing, checks, docs and warnings all come from here.

    `default` is ours; where MM2 has another, `mm2_default` holds it. `since` is the version of Kafka (or of Heliograph,
    for its own keys) that brought the key; empty if it has been there from the beginning or is not known. `is_live`: a
    running source connector takes over a change without a restart of its tasks, because only its driver reads the key
    (and may send its tasks what follows from it).
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
    is_live: bool = False

    def parse(self, text: str, written_as: str | None = None, shown_as: str | None = None) -> T:
        """Return the typed value; raises a ConfigError with the name and the value (`shown_as`) that the user wrote."""
        name = written_as or self.name
        if self.type is PASSWORD:
            remember_secret(text, HIDDEN)
        shown = HIDDEN if self.type is PASSWORD else f"'{shown_as or text}'"
        try:
            value = self.type.parse(text)
        except ValueError:
            raise ConfigError(f"{shown} is not {self.type.noun}.", name) from None
        if self.check is not None and not self.check.holds(value):
            mistakes = () if shown_as else self.check.mistakes(value)  # they repeat parts of the value
            raise ConfigError(problem(each, name) for each in mistakes or (f"{shown} must be {self.check.phrase}.",))
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
    is_live: bool = False,
) -> Key[T]:
    """Add a row; a name stands in the table once."""
    row = Key(
        name, type_, default, scope, doc, check, ours, replaced_by, importance, since, support, mm2_default, is_live
    )
    if name in TABLE:
        raise ValueError(f"{name} stands twice in the table")
    TABLE[name] = row
    return row


def define_all(scope: Scope, support: Support, *rows: Row) -> None:
    """Add rows of the same scope and support."""
    for name, type_, default, importance, since, doc in rows:
        define(name, type_, default, scope, doc, importance=importance, since=since, support=support)

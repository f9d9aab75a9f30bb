"""Parses the bodies of requests: JSON text to the values of a herder, as lenient and as strict as Connect's Jackson.

If Connect expects text, a number or a boolean is accepted as it was written (`1.50` stays `1.50`); a list or an object
is refused. The last of repeated members counts. Unknown members are refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import unquote_plus

from heliograph.config.input_limits import LONGEST_CONFIG_NAME, LONGEST_CONFIG_VALUE, MOST_CONFIG_KEYS
from heliograph.connect.contract.refusals import NO_OFFSETS, NULL_PARTITION
from heliograph.model import RestartRequest
from heliograph.web.error_responses import NO_BODY, NOT_JSON, TOO_LONG, TOO_MANY_VALUES, WRONG_SHAPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.connect.contract.herder import ConnectOffset
    from heliograph.wire.records.connect_configs import TargetState


_SHOWN = 60
_DEEPEST = 50
_LARGEST_OFFSET = (1 << 63) - 1
_INITIAL_STATES: dict[str, TargetState] = {"RUNNING": "STARTED", "PAUSED": "PAUSED", "STOPPED": "STOPPED"}
MOST_VALUES = 400_000
"""Values of a body, counted by the mark before each; marks inside texts, such as lists of topics, are counted too."""


class CreateRequest(NamedTuple):
    """The body of `POST /connectors`."""

    name: str
    config: dict[str, str | None]
    initial_state: TargetState | None


def config_map(body: bytes) -> dict[str, str | None]:
    """Return a map of keys to text or null."""
    return _string_map(_load(body, "a JSON object of configuration keys", as_text=True), "the body")


def create_request(body: bytes) -> CreateRequest:
    """Return a connector's name, config and initial state."""
    expected = 'a JSON object with "name" and "config"'
    members = _members(_load(body, expected, as_text=True), "the body", {"name", "config", "initial_state"})
    if members.get("config") is None:
        raise NO_BODY.error(expected=expected)
    name = _text(members.get("name"), '"name"')
    return CreateRequest(
        _name((name or "").strip()),
        _string_map(members["config"], '"config"'),
        _initial_state(members.get("initial_state")),
    )


def offsets(body: bytes) -> list[ConnectOffset]:
    """Return partitions with their new offsets; an offset of null is to be removed."""
    members = _members(_load(body, 'a JSON object with "offsets"'), "the body", {"offsets"})
    entries = members.get("offsets")
    if entries is not None and not isinstance(entries, list):
        raise WRONG_SHAPE.error(reason='"offsets" must be a list')
    if not entries:
        raise NO_OFFSETS.error()
    return [_offset(entry) for entry in entries]


def restart_request(body: bytes) -> RestartRequest:
    """Return the partitions to restart and where they continue; without a body all, where they are."""
    if not body.strip():
        return RestartRequest()
    members = _members(_load(body, "a JSON object"), "the body", {"topic", "partition", "from"})
    topic, partition, start = (members.get(name) for name in ("topic", "partition", "from"))
    if not isinstance(topic, str | None):
        raise WRONG_SHAPE.error(reason='"topic" must be text')
    if partition is not None and (not _is_count(partition) or topic is None):
        raise WRONG_SHAPE.error(reason='"partition" must be a number, beside a "topic"')
    if _is_count(start) or start in (None, "beginning", "end"):
        return RestartRequest(topic, partition, start)
    if start != "committed":
        raise WRONG_SHAPE.error(reason='"from" must be "beginning", "end", "committed" or an offset')
    return RestartRequest(topic, partition)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_OFFSET


def texts_of(path: Mapping[str, str], query: str, body: bytes) -> str:
    """Return every text in a request, as a handler sees it: its escapes resolved."""
    texts = [*path.values(), unquote_plus(query)]
    try:
        values = [json.loads(body, parse_int=str, parse_float=str)] if body else []
    except (ValueError, RecursionError):
        values = [body.decode(errors="replace")]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            texts += value
            values += value.values()
        elif isinstance(value, list):
            values += value
        elif isinstance(value, str):
            texts.append(value)
    return "\n".join(texts)


def _offset(entry: object) -> ConnectOffset:
    members = _members(entry, 'an entry of "offsets"', {"partition", "offset"})
    partition, offset = members.get("partition"), members.get("offset")
    if partition is None:
        raise NULL_PARTITION.error()
    if not isinstance(partition, dict) or not isinstance(offset, dict | None):
        raise WRONG_SHAPE.error(reason='"partition" and "offset" must be objects')
    if not _is_flat((partition, offset)):
        raise WRONG_SHAPE.error(reason="it is nested too deeply")
    return partition, offset


def _is_flat(value: object) -> bool:
    """Return whether no value is nested deeper than a message about it can show."""
    level = [value]
    for _depth in range(_DEEPEST):
        level = [
            below
            for each in level
            if isinstance(each, dict | list | tuple)
            for below in (each.values() if isinstance(each, dict) else each)
        ]
    return not level


def _initial_state(value: object) -> TargetState | None:
    state = _text(value, '"initial_state"')
    if state is not None and state.upper() not in _INITIAL_STATES:
        raise WRONG_SHAPE.error(reason=f'"initial_state" is {state}; it must be one of {", ".join(_INITIAL_STATES)}')
    return None if state is None else _INITIAL_STATES[state.upper()]


def _string_map(value: object, what: str) -> dict[str, str | None]:
    if not isinstance(value, dict):
        raise WRONG_SHAPE.error(reason=f"{what} must be an object")
    if len(value) > MOST_CONFIG_KEYS:
        raise TOO_LONG.error(what="The config", length=f"{len(value)} keys", most=MOST_CONFIG_KEYS)
    return {_name(key): _value(key, member) for key, member in value.items()}


def _name(name: str) -> str:
    if len(name) > LONGEST_CONFIG_NAME:
        start = f"The name that begins with {name[:_SHOWN]!r}"
        raise TOO_LONG.error(what=start, length=f"{len(name)} characters", most=LONGEST_CONFIG_NAME)
    return name


def _value(name: str, member: object) -> str | None:
    text = _text(member, f'"{name}"')
    if text is not None and len(text) > LONGEST_CONFIG_VALUE:
        raise TOO_LONG.error(what=f"The value of {name}", length=f"{len(text)} characters", most=LONGEST_CONFIG_VALUE)
    return text


def _text(value: object, what: str) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str):
        return value
    raise WRONG_SHAPE.error(reason=f"{what} must be text, a number, true or false")


def _members(value: object, what: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise WRONG_SHAPE.error(reason=f"{what} must be an object")
    unknown = sorted(value.keys() - known)
    if unknown:
        raise WRONG_SHAPE.error(reason=f'{what} has an unknown member "{unknown[0]}"')
    return value


def _load(body: bytes, expected: str, *, as_text: bool = False) -> object:
    """Return the value of the body; with `as_text` numbers stay as they were written."""
    if not body.strip():
        raise NO_BODY.error(expected=expected)
    # An empty object takes two bytes of the body and fifty times as much once it is decoded.
    if sum(body.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise TOO_MANY_VALUES.error(most=MOST_VALUES)
    numbers: dict[str, Any] = {"parse_int": str, "parse_float": str} if as_text else {}
    try:
        value = json.loads(body, parse_constant=_refuse_constant, **numbers)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair could not be stored
    except json.JSONDecodeError as error:
        raise NOT_JSON.error(reason=error.msg, line=error.lineno, column=error.colno) from None
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise NOT_JSON.error(reason=f"{error.reason}, which is no text", line=1, column=error.start + 1) from None
    except RecursionError:
        raise WRONG_SHAPE.error(reason="it is nested too deeply") from None
    except ValueError as error:
        raise WRONG_SHAPE.error(reason=str(error)) from None
    if value is None:
        raise NO_BODY.error(expected=expected)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")

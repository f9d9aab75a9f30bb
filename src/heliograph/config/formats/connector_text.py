"""A connector as one keeps it for Connect, in JSON: its name and its keys, with the lines they stand on.

A file is what one posts (`{"name": ..., "config": {...}}`), what one puts (the config alone), or a list of these. As in
Connect's REST, numbers and booleans are taken as text, as they were written, and of a key that is given twice the last
counts. Problems do not stop the reader; only a text that is no JSON is refused as a whole.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from heliograph.config.formats.reading import repeated_names
from heliograph.config.resolve.key_places import KeyPlaces
from heliograph.diagnostics import Diagnostic, Place, problem
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator


_RESOURCE_ENDS = (".yml", ".yaml")
_MEMBERS = frozenset({"name", "config", "initial_state"})
_STATES = ("RUNNING", "PAUSED", "STOPPED")
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}]|\n', re.DOTALL)


@dataclass
class ConnectorText:
    """One connector: `name` is what stands around its config, None where the config stands alone.

    `diagnostics` are about the form; the keys and values are checked elsewhere.
    """

    name: str | None = None
    config: dict[str, str | None] = field(default_factory=dict, repr=False)
    lines: dict[str, int] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def is_connector_text(text: str, name: str = "") -> bool:
    """Return whether a file is JSON, and so of connectors: a resource may be JSON, too, in a file of YAML."""
    lowered = name.lower()
    return lowered.endswith(".json") or (text.lstrip()[:1] in ("{", "[") and not lowered.endswith(_RESOURCE_ENDS))


def read_connector_texts(text: str) -> list[ConnectorText]:
    """Every connector of a file; a ConfigError where it is no JSON, or of something else."""
    closed = _closed_objects(text)

    def with_lines(pairs: list[tuple[str, Any]]) -> _Object:
        return _Object(dict(pairs), next(closed, {}))

    try:
        data = json.loads(
            text, object_pairs_hook=with_lines, parse_int=str, parse_float=str, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise ConfigError(f"this is not JSON: {error.msg}.", place=Place(error.lineno)) from None
    except RecursionError:
        raise ConfigError("this is no connector: it is nested too deeply.") from None
    each = data if isinstance(data, list) else [data]
    if not each or not all(isinstance(one, _Object) for one in each):
        raise ConfigError('a connector is a JSON object, as in {"name": ..., "config": {...}}.')
    return [_connector(one) for one in each]


class _Object(NamedTuple):
    """A JSON object, and the lines each of its keys stands on."""

    values: dict[str, Any]
    places: dict[str, list[int]]


def _closed_objects(text: str) -> Iterator[dict[str, list[int]]]:
    """The keys of every object with their lines, in the order in which objects end: so does the parser make them."""
    line = 1
    open_objects: list[dict[str, list[int]]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            open_objects.append({})
        elif token[0] == "}" and open_objects:
            yield open_objects.pop()
        elif token[2] is not None and open_objects:
            open_objects[-1].setdefault(json.loads(token[1]), []).append(line)
        line += token[0].count("\n")


def _refuse_constant(name: str) -> NoReturn:
    raise ConfigError(f"this is not JSON: {name} is no number in it.")


def _connector(data: _Object) -> ConnectorText:
    config = data.values.get("config")
    if not isinstance(config, _Object):
        found = ConnectorText()
        _read_config(found, data)
        return found
    found = ConnectorText(_name(data.values.get("name")))
    _read_config(found, config)
    for member, places in data.places.items():
        if member not in _MEMBERS:
            message = 'Connect takes "name", "config" and "initial_state"; leave this out.'
            found.diagnostics.append(problem(message, place=Place(places[-1], member)))
    state = data.values.get("initial_state")
    if state is not None and str(state).upper() not in _STATES:
        place = Place(data.places["initial_state"][-1], "initial_state")
        found.diagnostics.append(problem(f"it must be one of {', '.join(_STATES)}.", place=place))
    if not found.name:
        message = 'the connector has none; write it as in {"name": ..., "config": {...}}.'
        found.diagnostics.append(problem(message, place=Place(path="name")))
    return found


def _name(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _read_config(found: ConnectorText, config: _Object) -> None:
    found.lines = {key: places[-1] for key, places in config.places.items()}
    about_keys = list(repeated_names(config.places))
    for key, value in config.values.items():
        if isinstance(value, _Object | list):
            about_keys.append(problem("it must be text, a number, true or false.", key))
        else:
            found.config[key] = str(value).lower() if isinstance(value, bool) else value
    found.diagnostics += KeyPlaces(found.lines).located(about_keys)

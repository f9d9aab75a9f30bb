"""Origins of a key's value, for `heliograph explain`: per flow or client the value, its line, and the rule it won by.

Values are shown without secrets, and placeholders as they are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.keys import TABLE
from heliograph.config.keys.connector_keys import ENABLED
from heliograph.config.keys.table import BOOLEAN, PASSWORD, Key, Scope
from heliograph.config.resolve.key_places import shown
from heliograph.config.resolve.overlays import parse_name
from heliograph.config.resolve.redaction import redact_value
from heliograph.config.resolve.suggestions import did_you_mean
from heliograph.config.secrets.known_secrets import HIDDEN
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.config.resolve.overlays import Origin
    from heliograph.model import Flow


def shown_value(row: Key[object], value: object) -> str:
    """A typed value as it would be written in a file."""
    if isinstance(value, tuple):
        return ", ".join(value)
    if row.type is BOOLEAN:
        return str(value).lower()
    return "" if value is None else str(value)


class Explanation(NamedTuple):
    """One value of a key. `where` is a flow, a client of one, or the file; `losers` are places that did not count.

    `problems` say why the placeholders of the value mean nothing.
    """

    where: str
    value: str
    source: str
    losers: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class SetKey(NamedTuple):
    """One line of the file, without secrets; `problems` say why its placeholders mean nothing."""

    line: int
    name: str
    value: str
    problems: tuple[str, ...] = ()


def find_row(config: MirrorMakerConfig, name: str) -> Key[object]:
    """The table's row for a key, with or without the prefix it has in the file."""
    row = TABLE.get(name) or TABLE.get(parse_name(name, config.clusters).key)
    if row is None:
        raise ConfigError(f"there is no such key.{did_you_mean(name, TABLE)}", name)
    return TABLE[row.replaced_by] if row.replaced_by else row


def explain(config: MirrorMakerConfig, row: Key[object], flows: tuple[Flow, ...]) -> list[Explanation]:
    """Every value the key has, in the given flows."""
    if row.scope & Scope.FILE and not row.scope & ~(Scope.FILE | Scope.WORKER):
        return [_of_file(config, row)]
    if row is ENABLED:
        return [_switch(config, flow) for flow in flows]
    found: list[Explanation] = []
    for flow in flows:
        if row.scope & (Scope.CONNECTOR | Scope.WORKER):
            found.append(_made(config, row, str(flow), config.origins(flow)))
        for alias, role in _clients(row, flow):
            where = f"{flow}, {role} of {alias}"
            found.append(_made(config, row, where, config.client_origins(alias, role, flow)))
    return found


def set_keys(config: MirrorMakerConfig) -> list[SetKey]:
    """Everything the file says, in its order."""
    named = sorted((line, name) for name, line in config.lines.items() if name in config.raw)
    return [
        SetKey(line, shown(name, config.paths), redact_value(name, config.raw[name]), _unresolved(config, name))
        for line, name in named
    ]


def _clients(row: Key[object], flow: Flow) -> Iterator[tuple[str, str]]:
    """The clients of a flow that a key may mean: the two that move records, and the two administrators."""
    if row.scope & (Scope.CLIENT | Scope.CONSUMER):
        yield flow.source, "consumer"
    if row.scope & (Scope.CLIENT | Scope.PRODUCER):
        yield flow.target, "producer"
    if row.scope & (Scope.CLIENT | Scope.ADMIN):
        yield flow.source, "admin"
        yield flow.target, "admin"


def _of_file(config: MirrorMakerConfig, row: Key[object]) -> Explanation:
    if row.name not in config.raw:
        return Explanation("file", shown_value(row, row.default), "default")
    value, problems = redact_value(row.name, config.raw[row.name]), _unresolved(config, row.name)
    return Explanation("file", value, _place(config, row.name), problems=problems)


def _switch(config: MirrorMakerConfig, flow: Flow) -> Explanation:
    """Explain whether a flow is on: only `A->B.enabled` decides, the default of `enabled` is for connectors."""
    name = f"{flow}.{ENABLED.name}"
    if name not in config.raw:
        return Explanation(str(flow), "false", f"default: a flow is off until '{name} = true'")
    value = redact_value(name, config.raw[name])
    return Explanation(str(flow), value, _place(config, name), problems=_unresolved(config, name))


def _made(
    config: MirrorMakerConfig, row: Key[object], where: str, origins: dict[str, tuple[Origin, ...]]
) -> Explanation:
    places = origins.get(row.name, ())
    if not places:
        default = HIDDEN if row.type is PASSWORD and row.default else shown_value(row, row.default)
        source = "default" + (" of Heliograph" if row.mm2_default is not None else "")
        bends = row.name.endswith("replication.factor")
        return Explanation(where, default, f"{source}; fewer on a cluster of fewer brokers" if bends else source)
    reported = [_place(config, place.name) + (f" ({place.rule})" if not config.paths else "") for place in places]
    name = places[-1].name
    value = redact_value(name, config.raw[name])
    return Explanation(where, value, reported[-1], tuple(reversed(reported[:-1])), _unresolved(config, name))


def _unresolved(config: MirrorMakerConfig, name: str) -> tuple[str, ...]:
    try:
        config.resolver.resolve(name, config.raw[name])
    except ConfigError as error:
        return tuple(str(each.message) for each in error.problems)
    return ()


def _place(config: MirrorMakerConfig, name: str) -> str:
    return f"line {config.lines[name]}: {shown(name, config.paths)}"

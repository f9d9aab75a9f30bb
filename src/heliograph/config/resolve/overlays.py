"""The overlay rules of a dedicated-mode file: which of several places of a key wins.

A name is taken apart by the aliases of the file: `A->B.source.consumer.x` is the key `x` of a role of a flow. Aliases
may contain dots and begin with each other, so a name is compared with the known aliases, longest first.

The rules are lists of layers, later over earlier. Connector settings of A->B: top of the file, then `A->B.`. Worker
keys: `B.`, then the few that MM2 takes from the top, which win over `B.` in Java as well. Client settings: a flow's
general keys, then the top of the file (security only), `A.`, `A.consumer.`, `A->B.source.consumer.`, and for the
producer of records `A->B.producer.override.`. Java resolves the same way: the tests compare with a dump of its results.
A key that MM2 drops is not read here, either.

`resolved_view` makes the typed view with placeholders resolved, when it is needed. It is not kept.
Invariant: a value from a placeholder can be used and not shown: the view keeps the written text for messages. A value
that a patient resolver could not look up is an `Unresolved`: it raises when it is read, not before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.keys import TABLE
from heliograph.config.keys.table import Scope
from heliograph.config.resolve.settings import Settings
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.config.resolve.connector_limits import ConnectorLimits
    from heliograph.config.resolve.placeholders import Resolver


ROLES = ("consumer", "producer", "admin")
SIDES = ("source", "target")
# In the connectors' vocabulary, yet not copied from the top of the file by MM2 4.3.1.
DROPPED_AT_TOP = frozenset(
    {
        "use.defaults.from",
        "exactly.once.support",
        "transaction.boundary",
        "transaction.boundary.interval.ms",
        "topic.creation.groups",
        "offsets.storage.topic",
    }
)
# MM2 copies what begins so from the top of the file into the worker's configuration.
WORKER_PREFIXES_AT_TOP = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
    "config.providers",
)
_SCOPES = {"consumer": Scope.CONSUMER, "producer": Scope.PRODUCER, "admin": Scope.ADMIN}


@dataclass(frozen=True, slots=True)
class WrittenName:
    """`prefix` + `key` is the name; the rest says what the prefix means: nothing at the top of the file."""

    prefix: str
    key: str
    flow: Flow | None = None
    alias: str | None = None
    side: str = ""
    role: str = ""  # consumer, producer or admin; "cluster" after a side

    @property
    def name(self) -> str:
        """Return the name as it is written."""
        return self.prefix + self.key


def parse_name(name: str, clusters: tuple[str, ...]) -> WrittenName:
    """Take a name apart by the aliases of the file."""
    flow = flow_of(name, clusters)
    if flow is not None:
        return _with_role(WrittenName(f"{flow}.", name.removeprefix(f"{flow}."), flow=flow))
    for alias in sorted(clusters, key=len, reverse=True):
        if name.startswith(f"{alias}."):
            return _with_role(WrittenName(f"{alias}.", name.removeprefix(f"{alias}."), alias=alias))
    return _with_role(WrittenName("", name))


def flow_of(name: str, clusters: tuple[str, ...]) -> Flow | None:
    """The flow a name begins with, or None."""
    longest_first = sorted(clusters, key=len, reverse=True)
    for source in longest_first:
        for target in longest_first:
            if name.startswith(f"{source}->{target}."):
                return Flow(source, target)
    return None


def _with_role(written: WrittenName) -> WrittenName:
    if written.key in TABLE:  # `consumer.poll.timeout.ms` and `source.cluster.alias` only look like a role's
        return written
    prefixes = [(f"{role}.", "", role) for role in ROLES]
    if written.flow is not None:
        prefixes = [
            *((f"{side}.{role}.", side, role) for side in SIDES for role in (*ROLES, "cluster")),
            *((f"{role}.override.", "", role) for role in ROLES),
            *prefixes,
        ]
    for prefix, side, role in prefixes:
        if written.key.startswith(prefix):
            rest = written.key.removeprefix(prefix)
            return replace(written, prefix=written.prefix + prefix, key=rest, side=side, role=role)
    return written


class Origin(NamedTuple):
    """The origin of a value: the name in the file, and the rule by which it counts."""

    name: str
    rule: str


@dataclass(frozen=True, slots=True)
class Layer:
    """Names with a prefix, of which some count."""

    prefix: str
    rule: str
    takes: Callable[[str], bool]


def settings_layers(flow: Flow) -> tuple[Layer, ...]:
    """Connector and worker settings of a flow."""
    return (
        Layer("", "top of the file", _is_connector_key_at_top),
        Layer(f"{flow.target}.", f"worker key of the target, after '{flow.target}.'", _in(Scope.WORKER)),
        Layer("", "top of the file, before the target's worker keys", _is_worker_key_at_top),
        Layer(f"{flow}.", f"flow key, after '{flow}.'", _is_not_workers_alone),
    )


def client_layers(alias: str, role: str, flow: Flow | None) -> tuple[Layer, ...]:
    """Connection and client settings of a cluster in a role, within a flow or for the cluster alone."""
    security = _in(Scope.CLIENT)
    own = (
        Layer("", "top of the file, for every cluster", lambda key: security(key) and key != "bootstrap.servers"),
        Layer(f"{alias}.", f"key of the cluster, after '{alias}.'", security),
        Layer(f"{alias}.{role}.", f"client key, after '{alias}.{role}.'", _any),
    )
    general = Layer(f"{alias}.", f"key of the cluster's clients, after '{alias}.'", is_every_clients)
    if flow is None:
        return (general, *own)
    side = "source" if alias == flow.source else "target"
    layers = (
        general,
        Layer(f"{flow}.{side}.cluster.", f"flow key, after '{flow}.{side}.cluster.'", security),
        Layer(f"{flow}.{role}.", f"flow key of both sides, after '{flow}.{role}.'", is_own_client_key(role)),
        *own,
        Layer(f"{flow}.{side}.{role}.", f"flow key, after '{flow}.{side}.{role}.'", _any),
    )
    if (side, role) == ("target", "producer"):
        override = f"{flow}.producer.override."
        return (*layers, Layer(override, f"override of the connector's producer, after '{override}'", _any))
    return layers


def origins(raw: Mapping[str, str], layers: Iterable[Layer]) -> dict[str, tuple[Origin, ...]]:
    """Return for each key every place that sets it; the last one wins. An old name counts if the new one is not set."""
    found: dict[str, list[Origin]] = {}
    for layer in layers:
        new: dict[str, Origin] = {}
        for name in raw:
            key = name.removeprefix(layer.prefix)
            if not name.startswith(layer.prefix) or not layer.takes(key):
                continue
            row = TABLE.get(key)
            if row is None or row.replaced_by is None:
                new[key] = Origin(name, layer.rule)
            elif layer.prefix + row.replaced_by not in raw:
                new[row.replaced_by] = Origin(name, f"{layer.rule}, by its old name")
        for key, origin in new.items():
            found.setdefault(key, []).append(origin)
    return {key: tuple(places) for key, places in found.items()}


def role_scope(role: str) -> Scope:
    """The scope of the keys of a role."""
    return _SCOPES[role]


def is_read_at_top(key: str) -> bool:
    """Return whether anything reads a key at the top of the file."""
    row = TABLE.get(key)
    if row is None:
        return False
    if _is_connector_key_at_top(key) or _is_worker_key_at_top(key):
        return True
    return bool(row.scope & Scope.FILE) or (bool(row.scope & Scope.CLIENT) and key != "bootstrap.servers")


def is_every_clients(key: str) -> bool:
    """Return whether a key means the same to consumer, producer and admin, so that an alias may be its prefix."""
    return key in TABLE and TABLE[key].scope & Scope.ROLES == Scope.ROLES


def _in(scope: Scope) -> Callable[[str], bool]:
    return lambda key: key in TABLE and bool(TABLE[key].scope & scope)


def _any(_key: str) -> bool:
    return True


def _is_connector_key_at_top(key: str) -> bool:
    if key.startswith("replication.policy."):  # a policy of the user's may have keys of its own
        return True
    return _in(Scope.CONNECTOR)(key) and key not in DROPPED_AT_TOP


def _is_worker_key_at_top(key: str) -> bool:
    return _in(Scope.WORKER)(key) and key.startswith(WORKER_PREFIXES_AT_TOP)


def _is_not_workers_alone(key: str) -> bool:
    """Unknown keys pass: a filter or policy of the user's may read them."""
    return key not in TABLE or bool(TABLE[key].scope & Scope.CONNECTOR)


def is_own_client_key(role: str) -> Callable[[str], bool]:
    """Return a test for keys after `consumer.`: whether one is that client's, and no override or connector key."""
    return lambda key: not key.startswith("override.") and f"{role}.{key}" not in TABLE


def resolved_view(
    raw: Mapping[str, str],
    layers: Iterable[Layer],
    resolver: Resolver,
    prefix: str = "",
    limits: ConnectorLimits | None = None,
) -> Settings:
    """Return what the layers take of a map, the last one winning, placeholders resolved; `limits` apply to all."""
    written_as = {key: places[-1].name for key, places in origins(raw, layers).items()}
    values = {key: resolver.looked_up(name, raw[name]) for key, name in written_as.items()}
    before = {key: raw[name] for key, name in written_as.items() if raw[name] != values[key]}
    return Settings(values, prefix, written_as, before, {} if limits is None else dict.fromkeys(values, limits))

"""A Connect worker and its connectors as typed objects.

Which place of a connector's setting wins (later over earlier), as in Connect and MM2's connectors:

- settings: the worker's keys, then the connector's own;
- a client of the source or the target: `source.cluster.`, `consumer.`, `source.consumer.` of the connector;
- the producer of records: the worker's `bootstrap.servers` and `producer.`, then the connector's `producer.override.`;
- source offsets: the worker's own connection. With exactly-once they go with the records: one transaction holds both.

So if the worker's cluster is not the target, only `producer.override.bootstrap.servers` brings records there. Values
keep their placeholders until they are needed.

MM2 restarts every task for any change of a config. Here a flow takes over a change of keys whose effect its driver
decides (`is_live` in the table), and of keys that no source connector reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.effective.rest_config import RestAccess
from heliograph.config.keys import client_keys, worker_keys
from heliograph.config.keys.table import CLASS, Scope, split_list
from heliograph.config.resolve.connector_limits import _OURS, ConnectorLimits
from heliograph.config.resolve.overlays import ROLES, Layer, is_every_clients, is_own_client_key, resolved_view
from heliograph.config.resolve.settings import Settings
from heliograph.diagnostics import Diagnostic, problem
from heliograph.errors import ConfigError, NotAllowedError
from heliograph.model import ConnectorKind, Flow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from heliograph.config.resolve.placeholders import Resolver


LIMIT_KEYS = frozenset(
    row.name for row in (worker_keys.OAUTH_ALLOWED_URLS, worker_keys.OAUTH_ALLOWED_FILES, worker_keys.PLUGIN_PACKAGES)
)
_PACKAGE = "org.apache.kafka.connect.mirror."
_KINDS: dict[str, ConnectorKind] = {"Source": "source", "Checkpoint": "checkpoint", "Heartbeat": "heartbeat"}
CLASSES: dict[ConnectorKind, str] = {kind: f"{_PACKAGE}Mirror{word}Connector" for word, kind in _KINDS.items()}
_BY_NAME: dict[str, ConnectorKind] = {
    name: kind for word, kind in _KINDS.items() for name in (CLASSES[kind], f"Mirror{word}Connector", f"Mirror{word}")
}
# Connect's defaults where a dedicated-mode file has others.
_DEFAULTS = {keys.TASKS_MAX.name: "1", keys.ENABLED.name: "true"}
_PLUGIN_KEYS = (
    keys.POLICY_CLASS,
    keys.TOPIC_FILTER_CLASS,
    keys.GROUP_FILTER_CLASS,
    keys.CONFIG_PROPERTY_FILTER_CLASS,
)
_PRINCIPAL_KEYS = frozenset({"security.protocol", "sasl.mechanism", "sasl.jaas.config"})
_CONVERTERS = tuple(
    f"{internal}{part}.converter" for internal in ("", "internal.") for part in ("key", "value", "header")
)
_OWN = Scope.WORKER | Scope.CLIENT | Scope.FILE


def worker_limits(
    settings: Settings, worker: Mapping[str, str], secrets: tuple[str, ...] | None = None
) -> ConnectorLimits:
    """The limits that a worker's file sets; `settings` are its `LIMIT_KEYS`, resolved."""
    urls, files = settings[worker_keys.OAUTH_ALLOWED_URLS], settings[worker_keys.OAUTH_ALLOWED_FILES]
    packages = settings[worker_keys.PLUGIN_PACKAGES] or tuple(_named_packages(worker))
    return ConnectorLimits(frozenset(urls), frozenset(files), frozenset((_OURS, *packages)), secrets)


def _named_packages(worker: Mapping[str, str]) -> Iterator[str]:
    """The packages of classes that the worker's own file names."""
    for name, value in worker.items():
        row = keys.TABLE.get(name)
        module, colon, _class = value.strip().partition(":")
        if row is not None and row.type is CLASS and colon and "${" not in module:
            yield module.partition(".")[0]


def kind_of(class_name: str | None) -> ConnectorKind | None:
    """Return the kind of connector of a class, by its full name or one of Connect's aliases; None for another class."""
    return _BY_NAME.get(class_name or "")


@dataclass(frozen=True)
class ConnectorConfig:
    """A connector and the worker it runs in; both maps as they were written.

    `secrets` are the patterns of the rules that the connector was accepted under; None where no rules held. A connector
    whose worker is not known is not limited.
    """

    name: str
    raw: Mapping[str, str] = field(repr=False)
    worker: Mapping[str, str] = field(repr=False)
    resolver: Resolver
    secrets: tuple[str, ...] | None = None
    is_limited: bool = True

    @property
    def limits(self) -> ConnectorLimits | None:
        """Return the limits of the values that the connector itself sets."""
        if not self.is_limited:
            return None
        return worker_limits(self._view(self.worker, [_own("", LIMIT_KEYS.__contains__)]), self.worker, self.secrets)

    @property
    def kind(self) -> ConnectorKind:
        """Return the connector's kind; raises ConfigError if it is none of MM2's."""
        class_name = self.raw.get("connector.class")
        kind = kind_of(class_name)
        if kind is None:
            raise ConfigError(f"'{class_name}' is not a connector of MirrorMaker 2.", "connector.class")
        return kind

    @cached_property
    def flow(self) -> Flow:
        """The pair of clusters, by their aliases."""
        view = self._view(self.raw, [_own("", lambda key: key in {keys.SOURCE_ALIAS.name, keys.TARGET_ALIAS.name})])
        if not view[keys.SOURCE_ALIAS]:
            raise ConfigError("the connector does not name its source; add the source's alias.", "source.cluster.alias")
        return Flow(view[keys.SOURCE_ALIAS], view[keys.TARGET_ALIAS])

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The connector's flow."""
        return (self.flow,)

    @property
    def paths(self) -> Mapping[str, str]:
        """Keys are called as they are written."""
        return {}

    @property
    def enabled_flows(self) -> tuple[Flow, ...]:
        """The connector's flow, unless it is switched off."""
        return (self.flow,) if self.settings(self.flow)[keys.ENABLED] else ()

    @property
    def heartbeat_flows(self) -> tuple[Flow, ...]:
        """The connector's flow, where it is one of heartbeats and they are wanted."""
        is_beating = self.kind == "heartbeat" and self.settings(self.flow)[keys.EMIT_HEARTBEATS_ENABLED]
        return (self.flow,) if is_beating else ()

    @property
    def notes_offsets(self) -> bool:
        """Connect lists them."""
        return True

    def source_connector(self, flow: Flow) -> str:  # noqa: ARG002
        """Return the connector's name: source offsets are kept by it."""
        return self.name

    def label(self, flow: Flow) -> str:  # noqa: ARG002
        """A connector is called by its name: many may have the same clusters."""
        return self.name

    def settings(self, flow: Flow) -> Settings:
        """The connector's settings over the worker's."""
        of_worker = self._view(self.worker, [_own("", _is_workers)])
        own = self._view(self.raw, [_own("", _is_connectors)])
        aliases = {keys.SOURCE_ALIAS.name: flow.source, keys.TARGET_ALIAS.name: flow.target}
        values = {**_DEFAULTS, **of_worker.values, **own.values, **aliases}
        return Settings(values, raw=_raw_of(of_worker, own), limits=own.limits)

    def client(self, alias: str, role: str, flow: Flow | None = None) -> Settings:
        """A client of the source's or the target's cluster, as the connector's own clients are made."""
        side = "source" if alias == (flow or self.flow).source else "target"
        return self._view(
            self.raw,
            [
                _own(f"{side}.cluster.", is_every_clients),
                _own(f"{side}.cluster.", _is_connection),
                _own(f"{role}.", is_own_client_key(role)),
                _own(f"{side}.{role}.", _any),
            ],
            f"{side}.cluster.",
        )

    def records_client(self, flow: Flow) -> Settings:  # noqa: ARG002
        """The worker's producer with what the connector may override."""
        of_worker = self._view(self.worker, [_own("", "bootstrap.servers".__eq__), _own("producer.", _any)])
        allowed = override_policy(self.worker)
        own = self._view(self.raw, [_own("producer.override.", allowed)])
        names = {key: f"producer.override.{key}" for key in own.values}
        is_elsewhere = _connection(own)[0] != _connection(of_worker)[0]
        return Settings(
            {**of_worker.values, **own.values},
            "producer.",
            {"bootstrap.servers": "bootstrap.servers"} | names,
            _raw_of(of_worker, own),
            {key: each for key, each in own.limits.items() if key != "bootstrap.servers" or is_elsewhere},
        )

    def offsets_client(self, flow: Flow) -> Settings | None:
        """The worker's own connection, where records are not written by the same."""
        if self.settings(flow)[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled":
            return None
        own = worker_client(self.worker, self.resolver)
        return None if _connection(own) == _connection(self.records_client(flow)) else own

    def refused_overrides(self) -> Iterator[Diagnostic]:
        """Yield Connect's message for each client key that the worker's policy does not let the connector set."""
        allowed = override_policy(self.worker)
        for role in ROLES:
            prefix = f"{role}.override."
            for key in (name.removeprefix(prefix) for name in self.raw if name.startswith(prefix)):
                if not allowed(key):
                    refusal = f"The '{policy_name(self.worker)}' policy does not allow '{key}' to be overridden"
                    yield problem(f"{refusal} in the connector configuration.", prefix + key)

    def refused_classes(self) -> Iterator[Diagnostic]:
        """Yield a problem for each Python class of a package that the worker does not let connectors load."""
        limits = self.limits
        for key in _PLUGIN_KEYS if limits is not None else ():
            try:
                view = self._view(self.raw, [_own("", key.name.__eq__)])
                if limits is not None and ":" in view[key]:
                    limits.check_class(key.name, view[key], view.shown(key))
            except NotAllowedError as error:
                yield from error.problems
            except ConfigError:  # a placeholder that stands for nothing is reported with its key
                continue

    def _view(self, raw: Mapping[str, str], layers: Iterable[Layer], prefix: str = "") -> Settings:
        # The worker's file is its operator's; a connector comes from any caller of REST.
        if raw is self.worker:
            return resolved_view(raw, layers, self.resolver, prefix)
        return resolved_view(raw, layers, self.resolver.declared_only(), prefix, self.limits)


def worker_client(worker: Mapping[str, str], resolver: Resolver) -> Settings:
    """Return a worker's connection to its own cluster, which has its three topics."""
    return resolved_view(worker, [_own("", is_every_clients), _own("", _is_connection)], resolver)


def policy_name(worker: Mapping[str, str]) -> str:
    """Connect's word for which client keys a connector may set: All, None or Principal."""
    text = worker.get("connector.client.config.override.policy", "").strip() or "All"
    name = text.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
    if name not in {"All", "None", "Principal"}:
        raise ConfigError(
            f"'{text}' is not a policy; there are All, None and Principal.", "connector.client.config.override.policy"
        )
    return name


def override_policy(worker: Mapping[str, str]) -> Callable[[str], bool]:
    """Return a test whether a connector may override a client key."""
    policy = policy_name(worker)
    return {"All": _any, "None": lambda _key: False, "Principal": _PRINCIPAL_KEYS.__contains__}[policy]


def _connection(client: Settings) -> tuple[frozenset[str], dict[str, str]]:
    """Return what decides where a client connects and as whom."""
    servers = frozenset(split_list(client.values.get(client_keys.BOOTSTRAP_SERVERS.name, "")))
    others = {key: value for key, value in client.values.items() if _is_connection(key) and key != "bootstrap.servers"}
    return servers, others


def _raw_of(below: Settings, above: Settings) -> dict[str, str]:
    """Values as they were written, where one view lies over the other."""
    return {key: text for key, text in below.raw.items() if key not in above.values} | above.raw


def _own(prefix: str, takes: Callable[[str], bool]) -> Layer:
    return Layer(prefix, "", takes)


def _any(_key: str) -> bool:
    return True


def _is_connection(key: str) -> bool:
    return key in keys.TABLE and bool(keys.TABLE[key].scope & Scope.CLIENT)


def _is_workers(key: str) -> bool:
    """A connector inherits the worker's keys and ours, not its converters: those are for data, which stays as it is."""
    row = keys.TABLE.get(key)
    if key.startswith("heliograph."):
        return row is not None
    return row is not None and bool(row.scope & Scope.WORKER) and not row.scope & Scope.CONNECTOR


def _is_connectors(key: str) -> bool:
    """Unknown keys pass: a filter or policy of the user's may read them."""
    return key not in keys.TABLE or bool(keys.TABLE[key].scope & Scope.CONNECTOR)


def is_live_change(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Return whether a source connector can change its config without a restart of its tasks."""
    changed = {key for key in {*old, *new} if old.get(key) != new.get(key)}
    return all(map(is_live_key, changed))


def is_live_key(key: str) -> bool:
    """Return whether a running source connector adopts a change of this key, or does not read it."""
    row = keys.TABLE.get(key)
    if row is None:  # a client, a filter or a policy may read it
        return False
    row = keys.TABLE[row.replaced_by or row.name]
    is_others = bool(row.scope & Scope.CONNECTOR) and not row.scope & Scope.SOURCE
    return row.is_live or is_others


@dataclass(frozen=True)
class WorkerConfig:
    """A worker, understood. `raw` keeps its placeholders; `lines` says where each key stands."""

    raw: Mapping[str, str] = field(repr=False)
    resolver: Resolver
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    rest: RestAccess = field(default_factory=RestAccess)

    @property
    def settings(self) -> Settings:
        """The worker's own keys, typed, resolved."""
        return resolved_view(self.raw, [Layer("", "", _is_settings)], self.resolver)

    @property
    def client(self) -> Settings:
        """Return the worker's connection to the cluster of its topics."""
        return worker_client(self.raw, self.resolver)

    @property
    def group_id(self) -> str:
        """The group of workers this one belongs to."""
        return self.settings[keys.GROUP_ID]

    def connector(
        self, name: str, config: Mapping[str, str], secrets: tuple[str, ...] | None = None
    ) -> ConnectorConfig:
        """One connector in this worker; `secrets` are the patterns of the rules it was accepted under."""
        return ConnectorConfig(name, config, self.raw, self.resolver, secrets)


def _is_settings(key: str) -> bool:
    row = keys.TABLE.get(key)
    is_own = row is not None and (bool(row.scope & _OWN) or key.startswith("heliograph."))
    return is_own and key not in _CONVERTERS

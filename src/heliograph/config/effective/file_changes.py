"""The difference between two versions of a dedicated-mode file, and what follows from it for each flow.

Values are compared as they are written, with their placeholders: a secret that was rotated behind a placeholder is not
a change of the file. A source connector adopts a change if its tasks do not depend on the key, or get what follows
from it while they run (`is_live_key`); any other change of a key that it reads, and any change of its clients, restarts
it. Checkpoints and heartbeats run in the driver alone and are started again for every change that concerns them.

Cycles are found over the policies of all flows, so each flow depends on the policies of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from heliograph.config.effective.connect_config import is_live_key
from heliograph.config.effective.rest_config import HTTPS_PREFIX
from heliograph.config.keys import METRICS_LISTENERS, TABLE, worker_keys
from heliograph.config.keys.table import Scope
from heliograph.config.resolve.overlays import ROLES, client_layers, origins, settings_layers
from heliograph.config.resolve.redaction import is_secret, redact_value, shown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.config.resolve.overlays import Layer
    from heliograph.model import Flow


_PROVIDERS = "config.providers"
_POLICY_KEYS = ("replication.policy.", "heliograph.rename.")
_LONGEST_SHOWN = 200  # characters of a value in a log line
_REST_KEYS = frozenset(
    row.name
    for row in (
        worker_keys.LISTENERS,
        worker_keys.REST_PORT,
        worker_keys.REST_HOST_NAME,
        worker_keys.REST_ADVERTISED_HOST_NAME,
        worker_keys.REST_EXTENSION_CLASSES,
        worker_keys.REST_JAAS_CONFIG_FILE,
        worker_keys.REST_RULES_FILE,
        worker_keys.REST_ALLOWED_HOSTS,
        worker_keys.ACCESS_CONTROL_ALLOW_ORIGIN,
        worker_keys.SSL_CLIENT_AUTH,
        METRICS_LISTENERS,
    )
)


class Effect(Enum):
    """The effect of a new file on a flow that runs."""

    SAME = "unchanged"
    ADOPT = "adopts the change without a restart"
    RESTART = "is restarted"


@dataclass(frozen=True, slots=True)
class ChangedKey:
    """A key whose value in the file has changed, without its secrets; None where the file does not have it."""

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.name} was added" + (f": {_cut(self.after)}" if self.after else "")
        if self.after is None:
            return f"{self.name} was removed"
        if self.before == self.after:  # the difference is in what is not shown
            return f"{self.name} has changed"
        return f"{self.name} has changed from {_cut(self.before)} to {_cut(self.after)}"


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The changes between two versions of a file.

    `flows` has the effect on each flow that both versions enable. `checkpoints` and `heartbeats` are the flows whose
    loops have to be started again if they are wanted. `unapplied` are names that only a new process reads.
    """

    keys: tuple[ChangedKey, ...]
    flows: Mapping[Flow, Effect]
    added: tuple[Flow, ...]
    removed: tuple[Flow, ...]
    checkpoints: frozenset[Flow]
    heartbeats: frozenset[Flow]
    unapplied: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.keys or self.added or self.removed or self.restarted)

    @property
    def restarted(self) -> tuple[Flow, ...]:
        """The flows that must be restarted."""
        return tuple(flow for flow, effect in self.flows.items() if effect is Effect.RESTART)


def compare_files(old: MirrorMakerConfig, new: MirrorMakerConfig) -> FileChanges:
    """Compare what runs with a new version of the file."""
    names = [name for name in dict.fromkeys((*old.raw, *new.raw)) if old.raw.get(name) != new.raw.get(name)]
    has_other_providers = any(name.startswith(_PROVIDERS) for name in names)
    has_other_topology = _policies(old) != _policies(new)
    kept = [flow for flow in new.flows if flow in old.flows]
    effects: dict[Flow, Effect] = {}
    checkpoints: set[Flow] = set()
    for flow in kept:
        changed = _changed_settings(old, new, flow)
        is_connected_otherwise = (
            has_other_providers
            or old.source_connector(flow) != new.source_connector(flow)
            or any(_clients(old, alias, flow) != _clients(new, alias, flow) for alias in flow)
        )
        effects[flow] = _effect(changed, is_connected_otherwise=is_connected_otherwise, has_topology=has_other_topology)
        if is_connected_otherwise or has_other_topology or _concern(changed, Scope.CHECKPOINT):
            checkpoints.add(flow)
    beating = [flow for flow in new.heartbeat_flows if flow in old.heartbeat_flows]
    heartbeats = {
        flow
        for flow in beating
        if has_other_providers
        or _clients(old, flow.target, flow) != _clients(new, flow.target, flow)
        or _concern(_changed_settings(old, new, flow), Scope.HEARTBEAT)
    }
    return FileChanges(
        keys=tuple(_changed_key(name, old, new) for name in names),
        flows=effects,
        added=tuple(flow for flow in new.flows if flow not in old.flows),
        removed=tuple(flow for flow in old.flows if flow not in new.flows),
        checkpoints=frozenset(checkpoints),
        heartbeats=frozenset(heartbeats),
        unapplied=tuple(shown_name(name) for name in names if _is_rests(name, old)),
    )


def _effect(changed: Iterable[str], *, is_connected_otherwise: bool, has_topology: bool) -> Effect:
    read = [key for key in changed if _is_read(key, Scope.SOURCE)]
    if is_connected_otherwise or not all(map(is_live_key, read)):
        return Effect.RESTART
    return Effect.ADOPT if read or has_topology else Effect.SAME


def _concern(changed: Iterable[str], scope: Scope) -> bool:
    return any(_is_read(key, scope) for key in changed)


def _is_read(key: str, scope: Scope) -> bool:
    """Return whether a connector reads a key. An unknown one may be read by a filter or a policy of the user's."""
    row = TABLE.get(key)
    if row is None:
        return True
    if row.support.kind == "ignored":
        return False
    return bool(row.scope & scope) or not row.scope & Scope.CONNECTOR


def _changed_settings(old: MirrorMakerConfig, new: MirrorMakerConfig, flow: Flow) -> list[str]:
    before, after = (_written(config, settings_layers(flow)) for config in (old, new))
    return [key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key)]


def _clients(config: MirrorMakerConfig, alias: str, flow: Flow) -> list[dict[str, str]]:
    return [_written(config, client_layers(alias, role, flow)) for role in ROLES]


def _written(config: MirrorMakerConfig, layers: tuple[Layer, ...]) -> dict[str, str]:
    """Return each value that counts, as it is written."""
    return {key: config.raw[places[-1].name] for key, places in origins(config.raw, layers).items()}


def _policies(config: MirrorMakerConfig) -> dict[Flow, dict[str, str]]:
    """Return of each enabled flow the keys that its policy may read; one of the user's may read any unknown key."""
    return {
        flow: {
            key: value
            for key, value in _written(config, settings_layers(flow)).items()
            if key not in TABLE or key.startswith(_POLICY_KEYS)
        }
        for flow in config.enabled_flows
    }


def _is_rests(name: str, old: MirrorMakerConfig) -> bool:
    """Return whether the listeners of REST read a key: `ssl.*` only if none has their own prefix."""
    if name in _REST_KEYS or name.startswith(HTTPS_PREFIX):
        return True
    is_https = "https:" in old.raw.get(worker_keys.LISTENERS.name, "").lower()
    has_own = any(each.startswith(HTTPS_PREFIX) for each in old.raw)
    return name.startswith("ssl.") and is_https and not has_own


def _changed_key(name: str, old: MirrorMakerConfig, new: MirrorMakerConfig) -> ChangedKey:
    shown = new.paths.get(name) or old.paths.get(name) or name
    before, after = old.raw.get(name), new.raw.get(name)
    if is_secret(name):  # not even whether it was a placeholder
        return ChangedKey(shown_name(shown), None if before is None else "", None if after is None else "")
    hidden_before, hidden_after = (None if each is None else redact_value(name, each) for each in (before, after))
    return ChangedKey(shown_name(shown), hidden_before, hidden_after)


def _cut(text: str | None) -> str:
    shown = text or ""
    return f"'{shown if len(shown) <= _LONGEST_SHOWN else shown[:_LONGEST_SHOWN] + '...'}'"

"""What each endpoint asks of its caller, and the herder as a caller with few rights sees it.

The table of routes names an `Access` for every endpoint; `admit` holds the caller to it before the handler runs. What
the path does not tell is held by `GuardedHerder`: lists leave out what may not be seen, a name that comes in the body
is checked, and so is what a config takes from the worker's machine.

Who may not see a connector is answered as if there were none (404); who may see it and not change it is told so (403),
and gets its config with secrets hidden.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, cast

from heliograph.config.resolve.redaction import redact
from heliograph.connect.contract.refusals import NOT_FOUND
from heliograph.web.access.access_rules import taken_by
from heliograph.web.error_responses import MAY_NOT, NOT_LET_IN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.connect.contract.herder import ConnectorInfo, Herder
    from heliograph.web.access.access_rules import AccessRules, Permissions
    from heliograph.web.access.callers import CallerIdentity, Vouched
    from heliograph.web.exchange import PluginCatalogue, Worker
    from heliograph.wire.records.connect_configs import TargetState


class Access(Enum):
    """What a caller must be allowed to do; the value is how the reference page tells it."""

    NOTHING = "-"  # open also without a login, as in Connect: the endpoint refuses every call
    BE_KNOWN = "any rule"  # lists are cut to what the caller may see
    SEE_CONNECTOR = "`see`"
    CHANGE_CONNECTOR = "`change`"
    CREATE_CONNECTOR = "`change`, of the name in the body"
    WRITE_CONFIGS = "`change`, of any connector"
    SEE_WORKER = "`worker: see`"
    CHANGE_WORKER = "`worker: change`"


class RestCaller:
    """One caller and its rights; `permissions` is None where no rules hold, `vouched` where it came by itself."""

    def __init__(
        self,
        principal: CallerIdentity | None = None,
        permissions: Permissions | None = None,
        resolver: Resolver | None = None,
        vouched: Vouched | None = None,
    ) -> None:
        self.principal = principal
        self._permissions = permissions
        self._resolver = resolver
        self._vouched = vouched

    def check_body(self, body: bytes) -> None:
        """Raise where another worker has passed on another body than this."""
        if self._vouched is not None:
            self._vouched.check_body(body)

    def admit(self, access: Access, path: Mapping[str, str]) -> None:
        """Raise the refusal of a call that this caller may not make."""
        may = self._permissions
        if may is None:
            return
        connector = path.get("connector", "")
        if access in (Access.SEE_CONNECTOR, Access.CHANGE_CONNECTOR) and not may.may_see(connector):
            raise NOT_FOUND.error(name=connector)
        if access is Access.CHANGE_CONNECTOR:
            self.check_change(connector)
        refused = {
            Access.CREATE_CONNECTOR: not may.changes_any and "create connectors",
            Access.WRITE_CONFIGS: not may.changes_any and "validate configs",
            Access.SEE_WORKER: not may.sees_worker and "see the worker's loggers",
            Access.CHANGE_WORKER: not may.changes_worker and "change the worker's loggers",
        }
        if what := refused.get(access):
            raise MAY_NOT.error(who=self.principal, what=what)

    def view(self, worker: Worker) -> Worker:
        """The worker as this caller may use it."""
        if self._permissions is None:
            return worker
        herder = cast("Herder", GuardedHerder(worker.herder, self))
        return worker._replace(herder=herder, plugins=cast("PluginCatalogue", _GuardedPlugins(worker.plugins, self)))

    def may_see(self, connector: str) -> bool:
        """Whether there is such a connector, to this caller."""
        return self._permissions is None or self._permissions.may_see(connector)

    def may_change(self, connector: str) -> bool:
        """Whether the caller may change it."""
        return self._permissions is None or self._permissions.may_change(connector)

    def check_change(self, connector: str) -> None:
        """Raise where the caller may not change a connector."""
        if not self.may_change(connector):
            raise MAY_NOT.error(who=self.principal, what=f"change the connector {connector}")

    @property
    def secrets(self) -> tuple[str, ...] | None:
        """The patterns that a connector of this caller is held to while it runs; None where no rules hold."""
        return None if self._permissions is None else self._permissions.secret_texts

    def check_config(self, config: Mapping[str, str | None]) -> None:
        """Raise where a config takes what no rule of the caller's names."""
        if self._permissions is None:
            return
        assert self._resolver is not None
        for key, source in taken_by(config, self._resolver):
            if not self._permissions.may_take(source):
                raise MAY_NOT.error(who=self.principal, what=f"name {source} in {key}")


def caller_of(
    principal: CallerIdentity, rules: AccessRules, resolver: Resolver | None, vouched: Vouched | None
) -> RestCaller:
    """A caller with what the rules give it; raises the refusal of one that no rule names."""
    permissions = rules.permissions(principal)
    if permissions is None:
        raise NOT_LET_IN.error(who=principal)
    return RestCaller(principal, permissions, resolver, vouched)


class GuardedHerder:
    """A herder whose lists, configs and new connectors are held to a caller's rights."""

    def __init__(self, herder: Herder, caller: RestCaller) -> None:
        self._herder = herder
        self._caller = caller

    def __getattr__(self, name: str) -> object:
        return getattr(self._herder, name)

    def connectors(self) -> list[str]:
        """The names that the caller may see."""
        return [name for name in self._herder.connectors() if self._caller.may_see(name)]

    def info(self, name: str) -> ConnectorInfo:
        """The config as it was written only for who could have written it."""
        found = self._herder.info(name)
        return found if self._caller.may_change(name) else found._replace(config=redact(found.config))

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """The same of the tasks."""
        found = self._herder.task_configs(name)
        return found if self._caller.may_change(name) else [redact(config) for config in found]

    def create(self, name: str, config: Mapping[str, str], initial_state: TargetState | None) -> ConnectorInfo:
        """A new connector, if the caller may have one of that name and with that config."""
        self._caller.check_change(name)
        self._caller.check_config(config)
        return self._herder.create(name, config, initial_state, self._caller.secrets)

    def put_config(self, name: str, config: Mapping[str, str]) -> tuple[bool, ConnectorInfo]:
        """The config replaced."""
        self._caller.check_config(config)
        return self._herder.put_config(name, config, self._caller.secrets)

    def patch_config(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        """Some keys replaced. The caller answers for the whole: another host could be sent what was there before."""
        self._caller.check_config({**self._herder.info(name).config, **patch})
        return self._herder.patch_config(name, patch, self._caller.secrets)


class _GuardedPlugins:
    """A catalogue that resolves only placeholders the caller may use: errors would tell what is behind others."""

    def __init__(self, plugins: PluginCatalogue, caller: RestCaller) -> None:
        self._plugins = plugins
        self._caller = caller

    def __getattr__(self, name: str) -> object:
        return getattr(self._plugins, name)

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> dict[str, object]:
        """What becomes of a config."""
        self._caller.check_config(config)
        return self._plugins.validate(plugin, config)

"""The permissions that each endpoint needs, and the herder as a caller with limited permissions sees it.

The table of routes names an `Access` for every endpoint; `admit` checks the caller against it before the handler runs.
`GuardedHerder` checks every call of a handler again, and what the path of a request does not contain: lists omit hidden
connectors, a name in the body is checked, and so are the files and variables that a config names.

A caller that may not see a connector gets the response for one that does not exist (404). A caller that may see but not
change it gets 403, and its config with secrets hidden.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from heliograph.config.resolve.redaction import redact
from heliograph.connect.contract.refusals import NO_SUCH_FLOW, NOT_FOUND
from heliograph.status.flow_snapshot import UnreadyFlow
from heliograph.web.access.access_rules import taken_by
from heliograph.web.error_responses import MAY_NOT, NOT_LET_IN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.connect.contract.herder import ConnectOffset, ConnectorInfo, ConnectorStatus, Herder
    from heliograph.model import RestartedPartition, RestartRequest
    from heliograph.status.flow_snapshot import FlowLosses, FlowSnapshot
    from heliograph.status.process_snapshot import ProcessSnapshot
    from heliograph.web.access.access_rules import AccessRules, Permissions
    from heliograph.web.access.callers import CallerIdentity, Vouched
    from heliograph.web.exchange import PluginCatalogue, Worker
    from heliograph.wire.records.connect_configs import TargetState


class Access(Enum):
    """The permission that an endpoint needs; the value is its text on the reference page."""

    NOTHING = "-"  # open also without a login, as in Connect: the endpoint refuses every call
    BE_KNOWN = "any rule"  # lists omit what the caller may not see
    SEE_CONNECTOR = "`see`"
    SEE_FLOW = "`see`, of its connector"  # the herder finds the connector
    CHANGE_CONNECTOR = "`change`"
    CHANGE_FLOW = "`change`, of the flow's connector"
    CREATE_CONNECTOR = "`change`, of the name in the body"
    WRITE_CONFIGS = "`change`, of any connector"
    SEE_WORKER = "`worker: see`"
    CHANGE_WORKER = "`worker: change`"


class RestCaller:
    """One caller and its permissions (None: no rules); `vouched` is set if another worker forwarded the request."""

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
        """Raise if another worker has signed another body than this."""
        if self._vouched is not None:
            self._vouched.check_body(body)

    def admit(self, access: Access, path: Mapping[str, str]) -> None:
        """Raise the refusal of a call that this caller may not make."""
        may = self._permissions
        if may is None:
            return
        connector = path.get("connector", "")
        if access in (Access.SEE_CONNECTOR, Access.CHANGE_CONNECTOR):
            self.check_see(connector)
        if access is Access.CHANGE_CONNECTOR:
            self.check_change(connector)
        if access is Access.CHANGE_WORKER:
            self.check_change_worker()
        refused = {
            Access.CREATE_CONNECTOR: not may.changes_any and "create connectors",
            Access.WRITE_CONFIGS: not may.changes_any and "validate configs",
            Access.SEE_WORKER: not may.sees_worker and "see the worker's loggers",
        }
        if what := refused.get(access):
            raise MAY_NOT.error(who=self.principal, what=what)

    def view(self, worker: Worker) -> Worker:
        """Return the worker as this caller may use it."""
        if self._permissions is None:
            return worker
        herder, plugins = GuardedHerder(worker.herder, self), GuardedPlugins(worker.plugins, self)
        return worker._replace(herder=herder, plugins=plugins, viewer=self.principal)

    @property
    def sees_worker(self) -> bool:
        """Return whether the caller may see what belongs to the worker alone."""
        return self._permissions is None or self._permissions.sees_worker

    def may_see(self, connector: str) -> bool:
        """Return whether the caller may see a connector."""
        return self._permissions is None or self._permissions.may_see(connector)

    def may_change(self, connector: str) -> bool:
        """Return whether the caller may change a connector."""
        return self._permissions is None or self._permissions.may_change(connector)

    def check_see(self, connector: str) -> None:
        """Raise the refusal for an unknown connector if the caller may not see it."""
        if not self.may_see(connector):
            raise NOT_FOUND.error(name=connector)

    def check_change_worker(self) -> None:
        """Raise if the caller may not change the worker's loggers."""
        if self._permissions is not None and not self._permissions.changes_worker:
            raise MAY_NOT.error(who=self.principal, what="change the worker's loggers")

    def check_change(self, connector: str) -> None:
        """Raise if the caller may not change a connector."""
        if not self.may_change(connector):
            raise MAY_NOT.error(who=self.principal, what=f"change the connector {connector}")

    @property
    def secrets(self) -> tuple[str, ...] | None:
        """The patterns that limit a connector of this caller while it runs; None without rules."""
        return None if self._permissions is None else self._permissions.secret_texts

    def check_config(self, config: Mapping[str, str | None]) -> None:
        """Raise if a config takes something from the machine that no rule allows the caller."""
        if self._permissions is None:
            return
        assert self._resolver is not None
        for key, source in taken_by(config, self._resolver):
            if not self._permissions.may_take(source):
                raise MAY_NOT.error(who=self.principal, what=f"name {source} in {key}")


def caller_of(
    principal: CallerIdentity, rules: AccessRules, resolver: Resolver | None, vouched: Vouched | None
) -> RestCaller:
    """Return a caller with its permissions; raise the refusal of one that no rule names."""
    permissions = rules.permissions(principal)
    if permissions is None:
        raise NOT_LET_IN.error(who=principal)
    return RestCaller(principal, permissions, resolver, vouched)


class GuardedHerder:
    """A herder that holds each call to a caller's permissions.

    It implements `Herder` in full and passes nothing on by itself: a method that is added to the protocol fails the
    type check, and a test, until its guard is written here.
    """

    def __init__(self, herder: Herder, caller: RestCaller) -> None:
        self._herder = herder
        self._caller = caller

    # --- the worker: known to every caller that is let in -------------------------------------------------------------

    @property
    def leader_url(self) -> str | None:
        """None if this worker is the leader, else the REST address of the leader."""
        return self._herder.leader_url

    def is_ready(self) -> bool:
        """Return whether the worker serves requests."""
        return self._herder.is_ready()

    def cluster_id(self) -> str:
        """Return the id of the worker's Kafka cluster."""
        return self._herder.cluster_id()

    def session_keys(self) -> tuple[bytes, ...]:
        """Refuse: a caller never needs the keys with which workers sign."""
        raise MAY_NOT.error(who=self._caller.principal, what="read the session keys")

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        """Set a log level on every worker, if the caller may change workers."""
        self._caller.check_change_worker()
        self._herder.set_cluster_log_level(logger, level)

    def unready(self) -> Sequence[UnreadyFlow]:
        """Return why flows are not ready, without names and reasons of those that the caller may not see.

        A probe needs to see no connector to learn that one is not ready.
        """
        found = self._herder.unready()
        seen = [each for each in found if each.connector is None or self._caller.may_see(each.connector)]
        return seen if len(seen) == len(found) else [*seen, UnreadyFlow(None, None, "a flow is not ready")]

    # --- connectors that the caller may see ---------------------------------------------------------------------------

    def connectors(self) -> list[str]:
        """Return the names that the caller may see."""
        return [name for name in self._herder.connectors() if self._caller.may_see(name)]

    def info(self, name: str) -> ConnectorInfo:
        """Return the config, with secrets hidden unless the caller may change it."""
        self._caller.check_see(name)
        found = self._herder.info(name)
        return found if self._caller.may_change(name) else found._replace(config=redact(found.config))

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """Return the config of each task, with secrets hidden unless the caller may change the connector."""
        self._caller.check_see(name)
        found = self._herder.task_configs(name)
        return found if self._caller.may_change(name) else [redact(config) for config in found]

    def status(self, name: str) -> ConnectorStatus:
        """Return the states of a connector and its tasks."""
        self._caller.check_see(name)
        return self._herder.status(name)

    def topics(self, name: str) -> list[str]:
        """Return the topics that a connector has used."""
        self._caller.check_see(name)
        return self._herder.topics(name)

    def offsets(self, name: str) -> list[ConnectOffset]:
        """Return the source offsets of a connector."""
        self._caller.check_see(name)
        return self._herder.offsets(name)

    def flows(self) -> Sequence[FlowSnapshot]:
        """Return the flows of connectors that the caller may see, without issues of connectors that it may not see."""
        return self._seen(self._herder.flows())

    def _seen(self, flows: Sequence[FlowSnapshot]) -> list[FlowSnapshot]:
        seen = self._caller.may_see
        return [
            replace(flow, loop_issues=tuple(each for each in flow.loop_issues if seen(each.connector)))
            if flow.loop_issues
            else flow
            for flow in flows
            if seen(flow.connector)
        ]

    def process(self) -> ProcessSnapshot:
        """Return the process without the connectors that the caller may not see.

        A name is that of a connector, so the checkpoints of a flow that is hidden do not have its name. Certificates
        are those of all connectors: for callers who may see the worker.
        """
        found, seen = self._herder.process(), self._caller.may_see
        flows = self._seen(found.flows)
        names = {flow.name for flow in flows}
        return found._replace(
            flows=tuple(flows),
            checkpoints=tuple(
                each if each.name in names else each._replace(name=str(each.flow))
                for each in found.checkpoints
                if seen(each.connector)
            ),
            heartbeats=tuple(each for each in found.heartbeats if seen(each.connector)),
            connectors=tuple(each for each in found.connectors if seen(each.name)),
            certificates=found.certificates if self._caller.sees_worker else (),
        )

    def losses(self) -> Sequence[FlowLosses]:
        """Return the losses of flows of connectors that the caller may see."""
        return [losses for losses in self._herder.losses() if self._caller.may_see(losses.connector)]

    # --- connectors that the caller may change ------------------------------------------------------------------------

    def create(
        self,
        name: str,
        config: Mapping[str, str],
        initial_state: TargetState | None,
        secrets: tuple[str, ...] | None = None,  # noqa: ARG002  (the caller's own patterns hold)
    ) -> ConnectorInfo:
        """Create a connector, if the caller may have one of that name and with that config."""
        self._caller.check_change(name)
        self._caller.check_config(config)
        return self._herder.create(name, config, initial_state, self._caller.secrets)

    def put_config(
        self,
        name: str,
        config: Mapping[str, str],
        secrets: tuple[str, ...] | None = None,  # noqa: ARG002  (the caller's own patterns hold)
    ) -> tuple[bool, ConnectorInfo]:
        """Replace the config."""
        self._caller.check_change(name)
        self._caller.check_config(config)
        return self._herder.put_config(name, config, self._caller.secrets)

    def patch_config(
        self,
        name: str,
        patch: Mapping[str, str | None],
        secrets: tuple[str, ...] | None = None,  # noqa: ARG002  (the caller's own patterns hold)
    ) -> ConnectorInfo:
        """Replace some keys, if the caller may write the whole: a new host would be sent the old secrets."""
        self._caller.check_change(name)
        self._caller.check_config({**self._herder.info(name).config, **patch})
        return self._herder.patch_config(name, patch, self._caller.secrets)

    def delete(self, name: str) -> None:
        """Delete a connector."""
        self._caller.check_change(name)
        self._herder.delete(name)

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Pause, resume or stop a connector."""
        self._caller.check_change(name)
        self._herder.set_target_state(name, state)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Restart a connector."""
        self._caller.check_change(name)
        return self._herder.restart(name, include_tasks=include_tasks, only_failed=only_failed)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        self._caller.check_change(name)
        self._herder.restart_task(name, task)

    def restart_partitions(self, flow: str, request: RestartRequest) -> Sequence[RestartedPartition]:
        """Restart partitions of a flow, if the caller may change its connector."""
        connector = next((each.connector for each in self.flows() if each.name == flow), None)
        if connector is None:
            raise NO_SUCH_FLOW.error(name=flow)
        self._caller.check_change(connector)
        return self._herder.restart_partitions(flow, request)

    def reset_topics(self, name: str) -> None:
        """Reset the topics that a connector has used."""
        self._caller.check_change(name)
        self._herder.reset_topics(name)

    def alter_offsets(self, name: str, offsets: Sequence[ConnectOffset] | None) -> None:
        """Alter or reset the source offsets of a connector."""
        self._caller.check_change(name)
        self._herder.alter_offsets(name, offsets)


class GuardedPlugins:
    """A catalogue that resolves only the placeholders a caller may use: errors would disclose the values of others."""

    def __init__(self, plugins: PluginCatalogue, caller: RestCaller) -> None:
        self._plugins = plugins
        self._caller = caller

    def connector_classes(self) -> Sequence[str]:
        """Return the full names of all connector classes."""
        return self._plugins.connector_classes()

    def resolve(self, name: str) -> str | None:
        """Return the full name of a class; None if there is none."""
        return self._plugins.resolve(name)

    def definitions(self, plugin: str) -> list[dict[str, Any]]:
        """Return the keys of a plugin."""
        return self._plugins.definitions(plugin)

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> dict[str, Any]:
        """Validate a config, if the caller may name what it names."""
        self._caller.check_config(config)
        return self._plugins.validate(plugin, config)

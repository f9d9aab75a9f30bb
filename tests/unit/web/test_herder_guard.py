"""The guard around the herder and the plugins fails closed: every member of their protocols has a guard of its own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest

from heliograph.connect.contract.herder import Herder
from heliograph.errors import ConnectError
from heliograph.model import RestartRequest
from heliograph.status.flow_snapshot import FlowLosses
from heliograph.web.access.access_rules import AccessRules, parse_rules
from heliograph.web.access.callers import CallerIdentity
from heliograph.web.access.guard import GuardedHerder, GuardedPlugins, RestCaller, caller_of
from heliograph.web.exchange import PluginCatalogue

RULES = """
- users: [nothing]
- users: [reader]
  see: .*
- users: [owner]
  change: .*
  secrets: .*
  worker: change
"""
ARGUMENTS: dict[str, Any] = {
    "name": "c",
    "config": {},
    "patch": {},
    "initial_state": None,
    "secrets": (".*",),
    "state": "PAUSED",
    "include_tasks": True,
    "only_failed": False,
    "task": 0,
    "offsets": None,
    "logger": "root",
    "level": "INFO",
    "flow": "f",
    "request": RestartRequest(),
}
CHANGES = {
    *("create", "put_config", "patch_config", "delete", "set_target_state"),
    *("restart", "restart_task", "restart_partitions", "reset_topics", "alter_offsets"),
}
# Lists omit what is hidden.
OPEN_TO_ALL = {"leader_url", "is_ready", "unready", "cluster_id", "connectors", "flows", "losses", "process"}
FOR_WORKERS = {"session_keys"}


def members_of(protocol: type) -> Iterator[str]:
    for base in protocol.__mro__:
        if getattr(base, "_is_protocol", False) and base.__module__.startswith("heliograph."):
            yield from (name for name in vars(base) if not name.startswith("_"))


MEMBERS = sorted(set(members_of(Herder)))
METHODS = [name for name in MEMBERS if callable(getattr(Herder, name))]


def caller(user: str) -> RestCaller:
    rules: AccessRules = parse_rules(RULES, "rules.yaml")
    return caller_of(CallerIdentity("user", user), rules, MagicMock(), None)


def call(user: str, method: str) -> MagicMock:
    """Call a method of the guarded herder as a user; returns the herder behind the guard."""
    herder = MagicMock()
    flow = MagicMock(connector="c")
    flow.name, flow.loop_issues = "f", ()
    herder.flows.return_value = [flow]
    bound = getattr(GuardedHerder(herder, caller(user)), method)
    bound(**{name: ARGUMENTS[name] for name in inspect.signature(bound).parameters})
    return herder


@pytest.mark.parametrize(("guard", "protocol"), [(GuardedHerder, Herder), (GuardedPlugins, PluginCatalogue)])
def test_every_member_of_a_protocol_is_guarded_explicitly(guard: type, protocol: type) -> None:
    assert set(members_of(protocol)) == {name for name in vars(guard) if not name.startswith("_")}
    assert not hasattr(guard, "__getattr__"), "a member without a guard must not be reachable"


def test_losses_are_those_of_connectors_that_the_caller_may_see() -> None:
    herder = MagicMock()
    herder.losses.return_value = [FlowLosses("c", "c", ())]
    assert GuardedHerder(herder, caller("reader")).losses() == [FlowLosses("c", "c", ())]
    assert GuardedHerder(herder, caller("nothing")).losses() == []


def test_a_member_that_the_guard_does_not_know_is_not_reachable() -> None:
    with pytest.raises(AttributeError):
        _ = GuardedHerder(MagicMock(), caller("owner")).a_new_method  # type: ignore[attr-defined]


def test_every_method_about_a_connector_is_listed_as_a_read_or_as_a_change() -> None:
    """A new method fails here until somebody has decided what it needs."""
    about_one = {
        name for name in METHODS if inspect.signature(getattr(Herder, name)).parameters.keys() & {"name", "flow"}
    }
    assert about_one >= CHANGES
    assert about_one - CHANGES == {"info", "status", "task_configs", "topics", "offsets"}
    assert set(MEMBERS) - about_one == {*OPEN_TO_ALL, *FOR_WORKERS, "set_cluster_log_level"}


@pytest.mark.parametrize("method", [name for name in METHODS if name not in OPEN_TO_ALL])
def test_a_caller_without_permissions_reaches_nothing_behind_the_guard(method: str) -> None:
    with pytest.raises(ConnectError) as caught:
        call("nothing", method)
    assert caught.value.status in (403, 404)


@pytest.mark.parametrize("method", sorted(CHANGES))
def test_a_caller_that_may_only_see_changes_nothing(method: str) -> None:
    with pytest.raises(ConnectError) as caught:
        call("reader", method)
    assert caught.value.status == 403


@pytest.mark.parametrize("method", [name for name in METHODS if name not in FOR_WORKERS])
def test_a_caller_with_all_permissions_reaches_the_herder(method: str) -> None:
    herder = call("owner", method)
    assert getattr(herder, method).called


@pytest.mark.parametrize("method", ["create", "put_config", "patch_config"])
def test_a_config_is_stored_with_the_patterns_of_its_writer(method: str) -> None:
    herder = MagicMock()
    guarded = GuardedHerder(herder, caller("owner"))
    arguments = {"create": ("c", {}, None)}.get(method, ("c", {}))
    getattr(guarded, method)(*arguments, secrets=("/etc/shadow",))
    assert getattr(herder, method).call_args.args[-1] == (".*",)

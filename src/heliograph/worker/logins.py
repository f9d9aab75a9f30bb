"""What many clients need, put together by those who grant it: each cluster and principal once, each ACL once.

Aliases are what a file or a connector calls a cluster. Two that have a bootstrap server in common are one cluster, and
a Connect worker's own is often one of its connectors' targets; an ACL is told once for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.mirror.permissions import Acl, least

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from heliograph.worker.principals import Principal

WORKER = "worker"  # what a Connect worker's own cluster is called


class Login(NamedTuple):
    """A principal on a cluster; `others` are what else the cluster is called."""

    cluster: str
    bootstrap: tuple[str, ...]
    principal: str
    others: tuple[str, ...] = ()


class Granted(NamedTuple):
    """What a principal needs on a cluster; `doubt` is about who it is, where that is not certain or not known."""

    login: Login
    acls: tuple[Acl, ...]
    doubt: str = ""
    is_known: bool = True


class Use(NamedTuple):
    """An ACL that one client needs."""

    alias: str
    servers: tuple[str, ...]
    principal: Principal
    acl: Acl

    @property
    def places(self) -> tuple[str, ...]:
        """What two clients have in common where they reach the same cluster."""
        return self.servers or (self.alias,)


def put_together(uses: Sequence[Use]) -> tuple[Granted, ...]:
    """Each cluster and principal with the fewest ACLs that say what its clients need."""
    clusters = _clusters(uses)
    found: dict[tuple[int, tuple[str, str]], list[Use]] = {}
    for use in uses:
        found.setdefault((clusters[use.places[0]], use.principal.identity), []).append(use)
    taken: set[tuple[int, str]] = set()
    granted = []
    for (cluster, _identity), group in found.items():
        name = _free_name(group[0].principal, cluster, taken)
        taken.add((cluster, name))
        granted.append(_granted(group, name))
    return tuple(sorted(granted, key=lambda each: each.login))


def _granted(uses: list[Use], principal: str) -> Granted:
    aliases = dict.fromkeys(use.alias for use in uses)
    cluster, *others = sorted(aliases, key=WORKER.__eq__)
    servers = dict.fromkeys(server for use in uses for server in use.servers)
    login = Login(cluster, tuple(servers), principal, tuple(others))
    return Granted(login, least(use.acl for use in uses), uses[0].principal.doubt, uses[0].principal.is_known)


def _clusters(uses: Iterable[Use]) -> dict[str, int]:
    """The number of the cluster that a server belongs to."""
    groups: list[set[str]] = []
    for places in dict.fromkeys(use.places for use in uses):
        joined = set(places)
        joined.update(*(group for group in groups if group & joined))
        groups = [*(group for group in groups if not group & joined), joined]
    return {place: number for number, group in enumerate(groups) for place in group}


def _free_name(principal: Principal, cluster: int, taken: set[tuple[int, str]]) -> str:
    """The principal's name. Logins that are not known, and differ, may stand at keys of the same name."""
    name, count = principal.name, 1
    while not principal.is_known and (cluster, name) in taken:
        count += 1
        name = f"{principal.name.removesuffix('>')}, number {count}>"
    return name

"""Finds the coordinators of groups and sends them requests, again while they move or load.

Many groups take few requests: one to find all coordinators (from Kafka 3.0 on), then one for each coordinator. A found
coordinator is remembered until it is not the coordinator any more.

Invariants:
A. `ask_about` returns a result for every group, or raises an error that names the groups without one.
B. `ask_each` returns a result or a refusal for every group, so that one group that is forbidden, or has no coordinator,
   affects no other.
C. Both return no other group: one that a broker names without being asked would bypass the group filter.
D. A group that was waited for in vain is tried once per call until it answers, so that the others do not wait for it
   each time.
"""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from heliograph.errors import BrokerError, UnreachableError
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    NO_COORDINATOR,
    NOT_COORDINATOR,
    UNSUPPORTED_VERSION,
    describe,
)
from heliograph.model import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from heliograph.errors import ClusterError
    from heliograph.kafka.admin.admin import Admin


T = TypeVar("T")

_GROUP_KEY = 0
_MANY_KEYS_VERSION = 4
_GROUPS_PER_REQUEST = 500
_MAX_REMEMBERED = 100_000  # coordinators; their groups may be gone


class GroupAnswer(NamedTuple):
    """A coordinator's result for one group: an error code or a value."""

    code: int
    value: Any = None


class GroupAnswers(NamedTuple, Generic[T]):
    """The results of coordinators by group, and their refusals: one for each reason, which names its groups.

    `refused` has the refusals by group. `unsupported` are the groups that are refused because the cluster does not
    support the request.
    """

    of: dict[str, T]
    refusals: tuple[ClusterError, ...] = ()
    refused: Mapping[str, str] = MappingProxyType({})
    unsupported: frozenset[str] = frozenset()

    @property
    def issues(self) -> tuple[str, ...]:
        """The messages of the refusals."""
        return tuple(str(refusal) for refusal in self.refusals)

    def joined(self, other: GroupAnswers[T]) -> GroupAnswers[T]:
        """Return these results with those of other groups."""
        return GroupAnswers(
            self.of | other.of,
            (*self.refusals, *other.refusals),
            {**self.refused, **other.refused},
            self.unsupported | other.unsupported,
        )

    def of_all(self) -> dict[str, T]:
        """Return the results if there is one for every group; raise the first refusal otherwise."""
        if self.refusals:
            raise self.refusals[0]
        return self.of


class Coordinators:
    """The coordinators of a cluster's groups. Not thread-safe, like its admin client."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._known: dict[str, Address] = {}
        self._late: set[str] = set()

    def ask_about(
        self, groups: Collection[str], ask: Callable[[Address, list[str]], dict[str, GroupAnswer]], *, needs: str
    ) -> dict[str, Any]:
        """Send requests to groups' coordinators, many groups at a time; `needs` is the permission that errors name."""
        return self.ask_each(groups, ask, needs=needs).of_all()

    def ask_each(
        self, groups: Collection[str], ask: Callable[[Address, list[str]], dict[str, GroupAnswer]], *, needs: str
    ) -> GroupAnswers[Any]:
        """Do the same, but return the results of the other groups if one is refused."""
        found: dict[str, Any] = {}
        refused: dict[str, int] = {}
        waiting = list(dict.fromkeys(groups))
        deadline, backoff = time.monotonic() + self._admin.timeout_s, Backoff(most_s=1.0)
        while waiting:
            results = self._round(waiting, ask)
            found |= {group: result.value for group, result in results.items() if not result.code}
            refused |= {
                group: result.code
                for group, result in results.items()
                if result.code and result.code not in NO_COORDINATOR
            }
            waiting = [group for group in waiting if group not in found and group not in refused]
            if time.monotonic() > deadline or self._late.issuperset(waiting):
                refused |= {group: results.get(group, GroupAnswer(COORDINATOR_NOT_AVAILABLE)).code for group in waiting}
                break
            time.sleep(backoff.next_pause_s())
        late = self._late if len(self._late) <= _MAX_REMEMBERED else frozenset[str]()
        self._late = {*late.difference(groups), *waiting}
        refusals = tuple(self._refusals(refused, needs))
        sentences = {group: self._sentence([group], code, needs) for group, code in refused.items()}
        unsupported = frozenset(group for group, code in refused.items() if code == UNSUPPORTED_VERSION)
        return GroupAnswers(found, refusals, sentences, unsupported)

    def _round(
        self, groups: list[str], ask: Callable[[Address, list[str]], dict[str, GroupAnswer]]
    ) -> dict[str, GroupAnswer]:
        if len(self._known) > _MAX_REMEMBERED:
            self._known.clear()
        results = self._find([group for group in groups if group not in self._known])
        by_coordinator: dict[Address, list[str]] = {}
        for group in groups:
            if group in self._known:
                by_coordinator.setdefault(self._known[group], []).append(group)
        for coordinator, theirs in by_coordinator.items():
            for chunk in _chunks(theirs):
                try:
                    found = ask(coordinator, chunk)
                    results |= {group: found[group] for group in chunk if group in found}
                except UnreachableError:
                    results |= dict.fromkeys(chunk, GroupAnswer(COORDINATOR_NOT_AVAILABLE))
        for group, result in results.items():
            if result.code in (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR):
                self._known.pop(group, None)
        return results

    def _find(self, groups: list[str]) -> dict[str, GroupAnswer]:
        """Look up coordinators; return the error of each group whose coordinator is unknown now."""
        unknown: dict[str, GroupAnswer] = {}
        at = 0
        while at < len(groups):
            chunk = groups[at : at + _GROUPS_PER_REQUEST]
            response = self._find_coordinators(chunk)
            if response.API_VERSION < _MANY_KEYS_VERSION:
                found = [(chunk[0], response)]
            else:
                asked = frozenset(chunk)
                found = [(each.key, each) for each in response.coordinators if each.key in asked]
            for group, coordinator in found:
                if coordinator.error_code:
                    unknown[group] = GroupAnswer(coordinator.error_code)
                else:
                    self._known[group] = Address(coordinator.host, coordinator.port)
            at += max(1, len(found))
        return unknown

    def _find_coordinators(self, groups: list[str]) -> Any:
        def build(version: int) -> Any:
            if version < _MANY_KEYS_VERSION:
                return FindCoordinatorRequest(version=version, key=groups[0], key_type=_GROUP_KEY)
            return FindCoordinatorRequest(version=version, key_type=_GROUP_KEY, coordinator_keys=groups)

        return self._admin.ask_any(FindCoordinatorRequest, FindCoordinatorResponse, build, newest=4)

    def _refusals(self, refused: dict[str, int], needs: str) -> Iterator[BrokerError]:
        for code in dict.fromkeys(refused.values()):
            groups = [group for group, why in refused.items() if why == code]
            yield BrokerError(self._sentence(groups, code, needs), code)

    def _sentence(self, groups: list[str], code: int, needs: str) -> str:
        names = some_of(groups)
        if code == GROUP_AUTHORIZATION_FAILED:
            return f"'{self._admin.alias}' does not let us use the group {names}; the principal needs {needs} on it."
        if code == UNSUPPORTED_VERSION:  # only requests about share groups are newer than the brokers we support
            return (
                f"'{self._admin.alias}' does not support offsets of share groups, so those of {names} are not synced;"
                " Kafka 4.1 or newer does, with the feature share.version at 1 or higher."
            )
        if code in NO_COORDINATOR:
            return (
                f"The cluster '{self._admin.alias}' has had no coordinator for the group {names} for"
                f" {self._admin.timeout_s:.0f} s or more: {describe(code)}."
            )
        return f"The cluster '{self._admin.alias}' refused the request for the group {names}: {describe(code)}."


def some_of(groups: Iterable[str], most: int = 3) -> str:
    """Return a few names, and how many more there are."""
    names = [f"'{group}'" for group in groups]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _chunks(groups: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(groups), _GROUPS_PER_REQUEST):
        yield groups[at : at + _GROUPS_PER_REQUEST]

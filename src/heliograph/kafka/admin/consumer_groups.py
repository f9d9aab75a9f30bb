"""The groups of a cluster: their names, types and states, and the committed offsets of consumer groups.

Works from Kafka 1.1 to 4.x, with classic groups and those of KIP-848: only requests that treat both alike are used (a
new broker describes a KIP-848 group as dead in response to the old request). Share groups have requests of their own
for offsets (`share_groups`). Blocking; not thread-safe.

Invariant: `commit` moves offsets only of a group without members. The broker guarantees this: if a member joins between
our look at the group and our commit, the commit fails.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse, ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse

from heliograph.errors import BrokerError, ClusterError, UnreachableError
from heliograph.kafka.admin.coordinators import (
    Coordinators,
    GroupAnswer,
    GroupAnswers,
)
from heliograph.kafka.admin.share_groups import ShareGroups, active_error, by_topic, reason_of
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.error_codes import (
    CONCERNS_WHOLE_GROUP,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_HAS_MEMBERS,
    GROUP_ID_NOT_FOUND,
    NO_ERROR,
    describe,
)
from heliograph.model import Address, CommittedOffset, GroupType, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from heliograph.kafka.admin.admin import Admin


DEAD = "Dead"
EMPTY = "Empty"

_CONSUMER_PROTOCOLS = frozenset({"", "consumer"})  # empty: offsets are committed without a member
_TYPES = {  # brokers before 3.8 name no type, and have consumer groups only
    **dict.fromkeys(("", "classic", "consumer"), GroupType.CONSUMER),
    **{type_.value: type_ for type_ in GroupType},
}
_MANY_GROUPS_VERSION = 8


class ListedGroup(NamedTuple):
    """A group as a broker lists it."""

    type: GroupType
    state: str


class ListedGroups(NamedTuple):
    """The consumer groups that brokers list, each with its state, and the reason if the list is incomplete.

    `others` are share and streams groups.
    """

    groups: dict[str, str]
    issue: ClusterError | None = None
    others: dict[str, ListedGroup] = {}  # noqa: RUF012  (never changed)

    @property
    def types(self) -> dict[str, GroupType]:
        """The type of each group."""
        consumers = dict.fromkeys(self.groups, GroupType.CONSUMER)
        return consumers | {group: other.type for group, other in self.others.items()}


class GroupAdmin:
    """Reads and moves the groups of one cluster."""

    def __init__(self, admin: Admin, needs: str = "DESCRIBE") -> None:
        """`needs` is the permission that errors name if a group may not be described; moving groups needs READ."""
        self._admin = admin
        self._needs = needs
        self._coordinators = Coordinators(admin)
        self._shares = ShareGroups(admin, self._coordinators, needs)
        self._silent: set[Address] = set()

    def list_groups(self) -> dict[str, str]:
        """Return every consumer group that we may describe, with its state; "" from brokers before 2.6.

        Groups without members that only have committed offsets are among them; Connect's, share and streams groups
        are not.
        """
        listed = self.groups_answered()
        if listed.issue is not None:
            raise listed.issue
        return listed.groups

    def groups_answered(self) -> ListedGroups:
        """Return the groups of those brokers that list theirs in time; one that did not last time is tried once."""
        found: dict[str, ListedGroup] = {}
        listed: set[Address] = set()
        deadline, backoff = time.monotonic() + self._admin.timeout_s, Backoff(most_s=1.0)
        while True:
            brokers = set(self._admin.view([]).brokers.values())
            failures: dict[Address, ClusterError] = {}
            for broker in brokers - listed:
                try:
                    found |= self._groups_at(broker)
                    listed.add(broker)
                except (UnreachableError, _NotReadyError) as error:
                    failures[broker] = error
            if time.monotonic() > deadline or self._silent.issuperset(failures):
                self._silent = set(failures)
                consumers = {name: each.state for name, each in found.items() if each.type is GroupType.CONSUMER}
                others = {name: each for name, each in found.items() if name not in consumers}
                return ListedGroups(consumers, self._incomplete(failures.values()), others)
            time.sleep(backoff.next_pause_s())

    def _incomplete(self, failures: Iterable[ClusterError]) -> ClusterError | None:
        for failure in failures:
            reason = str(failure).rstrip(".")
            return ClusterError(f"The cluster '{self._admin.alias}' does not list all its consumer groups: {reason}.")
        return None

    def _groups_at(self, broker: Address) -> dict[str, ListedGroup]:
        response = self._admin.ask_at(
            broker,
            ListGroupsRequest,
            ListGroupsResponse,
            lambda version: ListGroupsRequest(version=version, states_filter=[], types_filter=[]),
            newest=5,
        )
        code = response.error_code
        if code in (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE):
            raise _NotReadyError(f"{broker} does not list its consumer groups: {describe(code)}")
        if code:
            raise BrokerError(
                f"The cluster '{self._admin.alias}' does not list its consumer groups: {describe(code)}."
                f" The principal needs {self._needs} on the groups, or DESCRIBE on the cluster.",
                code,
            )
        return {
            group.group_id: ListedGroup(type_, group.group_state or "")
            for group in response.groups
            if (type_ := _TYPES.get((group.group_type or "").lower())) is not None
            if type_ is not GroupType.CONSUMER or group.protocol_type in _CONSUMER_PROTOCOLS
        }

    def states(self, groups: Collection[str]) -> dict[str, str]:
        """Return the state of each group, as Kafka spells it ("Stable", "Empty", ...); "Dead" if it does not exist."""
        return self.states_answered(groups).of_all()

    def states_answered(self, groups: Collection[str], all_groups: ListedGroups | None = None) -> GroupAnswers[str]:
        """Return the states of those groups that we may describe, share and streams groups among them.

        It lists all groups of the cluster unless `all_groups` has them: call it once for many groups.
        """
        if not groups:
            return GroupAnswers({})
        consumers, issue, of_other_types = all_groups or self.groups_answered()
        listed = consumers | {group: other.state for group, other in of_other_types.items()}
        known = {group: listed[group] for group in groups if listed.get(group)}
        # Another broker would describe a KIP-848 group as dead that an unreachable broker would have listed.
        unsure = {group: str(issue) for group in groups if group not in listed} if issue is not None else {}
        others = [group for group in groups if group not in known and group not in unsure]
        described = self._coordinators.ask_each(others, self._describe_at, needs=self._needs)
        why = (issue,) if issue is not None and unsure else ()
        return GroupAnswers(known | described.of, (*why, *described.refusals), {**unsure, **described.refused})

    def _describe_at(self, broker: Address, groups: list[str]) -> dict[str, GroupAnswer]:
        response = self._admin.ask_at(
            broker,
            DescribeGroupsRequest,
            DescribeGroupsResponse,
            lambda version: DescribeGroupsRequest(version=version, groups=groups, include_authorized_operations=False),
            newest=5,
        )
        return {
            group.group_id: GroupAnswer(NO_ERROR, DEAD)
            if group.error_code == GROUP_ID_NOT_FOUND
            else GroupAnswer(group.error_code, group.group_state)
            for group in response.groups
        }

    def committed(self, groups: Collection[str]) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        """Return the committed offsets of each group; none for a group that does not exist.

        Partitions without a committed offset are left out; the broker leaves out topics that we may not describe.
        """
        return self.committed_answered(groups).of_all()

    def committed_answered(self, groups: Collection[str]) -> GroupAnswers[dict[TopicPartition, CommittedOffset]]:
        """Return the committed offsets of those groups that we may describe."""
        return self._coordinators.ask_each(groups, self._committed_at, needs=self._needs)

    def offsets_of(
        self, groups: Collection[str], types: Mapping[str, GroupType]
    ) -> GroupAnswers[dict[TopicPartition, CommittedOffset]]:
        """Return the offsets of each group, by the request for its type; without a type it is a consumer group."""
        shares = [group for group in groups if types.get(group) is GroupType.SHARE]
        others = [group for group in groups if types.get(group) is not GroupType.SHARE]
        return self.committed_answered(others).joined(self._shares.start_offsets(shares))

    def set_offsets(
        self, group: str, type_: GroupType, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, str]:
        """Set a group's offsets as `commit` does, by the request for its type."""
        return self._shares.set_offsets(group, offsets) if type_ is GroupType.SHARE else self.commit(group, offsets)

    def _committed_at(self, broker: Address, groups: list[str]) -> dict[str, GroupAnswer]:
        results: dict[str, GroupAnswer] = {}
        while len(results) < len(groups):
            rest = groups[len(results) :]
            response = self._fetch_offsets(broker, rest)
            if response.API_VERSION < _MANY_GROUPS_VERSION:
                results[rest[0]] = _offsets_of(response)
            else:
                results |= {group.group_id: _offsets_of(group) for group in response.groups}
                results |= {group: GroupAnswer(COORDINATOR_NOT_AVAILABLE) for group in rest if group not in results}
        return results

    def _fetch_offsets(self, broker: Address, groups: list[str]) -> Any:
        def build(version: int) -> Any:
            if version < _MANY_GROUPS_VERSION:
                return OffsetFetchRequest(version=version, group_id=groups[0], topics=None, require_stable=False)
            each = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
            return OffsetFetchRequest(version=version, groups=each, require_stable=False)

        # Version 2 is the first that lists all partitions; from 9 on a group that does not exist would be an error.
        return self._admin.ask_at(broker, OffsetFetchRequest, OffsetFetchResponse, build, newest=8, oldest=2)

    def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, str]:
        """Set the offsets of a group without members; return the reason for each partition that was refused.

        Raises GroupActiveError if the group has members.
        """
        if not offsets:
            return {}

        def ask(broker: Address, _groups: list[str]) -> dict[str, GroupAnswer]:
            return {group: self._commit_at(broker, group, offsets)}

        codes: dict[TopicPartition, int] = self._coordinators.ask_about([group], ask, needs="READ")[group]
        return {tp: reason_of(tp, code) for tp, code in codes.items() if code}

    def _commit_at(self, broker: Address, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> GroupAnswer:
        response = self._admin.ask_at(
            broker,
            OffsetCommitRequest,
            OffsetCommitResponse,
            lambda version: _commit_request(version, group, offsets),
            newest=8,
            oldest=2,
        )
        codes = {
            TopicPartition(topic.name, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }
        if GROUP_HAS_MEMBERS.intersection(codes.values()):
            raise active_error(group, self._admin.alias)
        of_the_group = next((code for code in codes.values() if code in CONCERNS_WHOLE_GROUP), NO_ERROR)
        return GroupAnswer(of_the_group, codes)


class _NotReadyError(ClusterError):
    """A broker is still loading its groups."""


def _offsets_of(group: Any) -> GroupAnswer:
    committed = {
        TopicPartition(topic.name, partition.partition_index): CommittedOffset(
            partition.committed_offset,
            partition.metadata or "",
            getattr(partition, "committed_leader_epoch", -1),  # since Kafka 2.1
        )
        for topic in group.topics
        for partition in topic.partitions
        if not partition.error_code and partition.committed_offset >= 0
    }
    return GroupAnswer(NO_ERROR if group.error_code == GROUP_ID_NOT_FOUND else group.error_code, committed)


def _commit_request(version: int, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> Any:
    topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
    partition_class = topic_class.OffsetCommitRequestPartition
    return OffsetCommitRequest(
        version=version,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[
            topic_class(
                name=topic,
                partitions=[
                    partition_class(
                        partition_index=tp.partition,
                        committed_offset=offsets[tp].offset,
                        committed_leader_epoch=-1,
                        committed_metadata=offsets[tp].metadata,
                    )
                    for tp in tps
                ],
            )
            for topic, tps in by_topic(offsets).items()
        ],
    )

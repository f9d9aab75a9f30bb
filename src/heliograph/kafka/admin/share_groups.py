"""Offsets of share groups (KIP-932): the start offset of a group in each partition, read and set.

Everything before the *start offset* of a share group in a partition is done: acknowledged, rejected or given up.
Records after it may be done as well, in any order, and only the leader of the partition knows which. Kafka also writes
the start offset late, with the next acknowledgement. So a group that continues at a start offset loses nothing and may
get records again, as share groups do anyway. If Kafka reports a lag of 0 (from 4.2 on) and the log has not grown
meanwhile, the group is at the end of the log. kafka-python lacks these messages; they are made from `schemas`.

Invariant: `set_offsets` changes only a group without members; the broker guarantees this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.api_message import ApiMessage

from heliograph.errors import BrokerError, GroupActiveError
from heliograph.kafka.admin.coordinators import (
    Coordinators,
    GroupAnswer,
    GroupAnswers,
)
from heliograph.kafka.error_codes import (
    CONCERNS_WHOLE_GROUP,
    GROUP_ID_NOT_FOUND,
    NO_ERROR,
    NON_EMPTY_GROUP,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
    describe,
)
from heliograph.kafka.request_options import LATEST
from heliograph.model import CommittedOffset, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import Address


_make_class: Any = type(ApiMessage)


def _message(name: str) -> Any:
    return _make_class(name, (ApiMessage,), {}, load_json="heliograph.kafka.admin.schemas")


DescribeShareGroupOffsetsRequest = _message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = _message("DescribeShareGroupOffsetsResponse")
AlterShareGroupOffsetsRequest = _message("AlterShareGroupOffsetsRequest")
AlterShareGroupOffsetsResponse = _message("AlterShareGroupOffsetsResponse")

_FOR_COORDINATORS = CONCERNS_WHOLE_GROUP | {UNSUPPORTED_VERSION}
_NOT_CREATED = (
    "the cluster has no share group of this name and does not create one; start a share consumer of the group there"
    " once, and stop it"
)
_Starts = dict[TopicPartition, tuple[int, int]]  # start offset and lag, which is -1 if it is unknown


class ShareGroups:
    """Reads and moves the share groups of one cluster. Not thread-safe, like its admin client."""

    def __init__(self, admin: Admin, coordinators: Coordinators, needs: str) -> None:
        self._admin = admin
        self._coordinators = coordinators
        self._needs = needs

    def start_offsets(self, groups: Collection[str]) -> GroupAnswers[dict[TopicPartition, CommittedOffset]]:
        """Return the offset at which each group continues; partitions that a group has not read yet are left out."""
        found = self._starts(groups)
        idle = {tp for starts in found.of.values() for tp, (_start, lag) in starts.items() if lag == 0}
        ends = self._admin.known_offsets(list(idle), LATEST) if idle else {}
        drained = [group for group, starts in found.of.items() if _begins_before(starts, ends)]
        # Nothing was written between two equal ends, so a lag of 0 in between is one of the whole log.
        again = self._starts(drained).of if drained else {}
        later = self._admin.known_offsets(list(idle), LATEST) if again else {}
        stable = {tp: end for tp, end in ends.items() if later.get(tp) == end}
        offsets = {
            group: _offsets(again.get(group, starts), stable if group in again else {})
            for group, starts in found.of.items()
        }
        return GroupAnswers(offsets, found.refusals, found.refused, found.unsupported)

    def _starts(self, groups: Collection[str]) -> GroupAnswers[_Starts]:
        return self._coordinators.ask_each(groups, self._starts_at, needs=self._needs)

    def _starts_at(self, broker: Address, groups: list[str]) -> dict[str, GroupAnswer]:
        each = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup

        def build(version: int) -> Any:
            requested = [each(group_id=group, topics=None) for group in groups]
            return DescribeShareGroupOffsetsRequest(version=version, groups=requested)

        try:
            response = self._admin.ask_at(
                broker, DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse, build, newest=1
            )
        except BrokerError as error:
            return dict.fromkeys(groups, GroupAnswer(error.code))
        results = {group.group_id: GroupAnswer(group.error_code, _starts_of(group)) for group in response.groups}
        return results | {
            group: GroupAnswer(NO_ERROR, {}) for group, result in results.items() if result.code == GROUP_ID_NOT_FOUND
        }

    def set_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, str]:
        """Set the start offsets of a group without members; return the reason for each partition that was refused.

        Kafka 4.3 and newer create the group if it does not exist. Raises GroupActiveError if it has members.
        """
        if not offsets:
            return {}

        def ask(broker: Address, _groups: list[str]) -> dict[str, GroupAnswer]:
            return {group: self._set_at(broker, group, offsets)}

        codes: dict[TopicPartition, int] = self._coordinators.ask_about([group], ask, needs="READ")[group]
        return {
            tp: _NOT_CREATED if code == GROUP_ID_NOT_FOUND else reason_of(tp, code)
            for tp, code in codes.items()
            if code
        }

    def _set_at(self, broker: Address, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> GroupAnswer:
        topic_class = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
        each = topic_class.AlterShareGroupOffsetsRequestPartition

        def build(version: int) -> Any:
            topics = [
                topic_class(
                    topic_name=topic,
                    partitions=[each(partition_index=tp.partition, start_offset=offsets[tp].offset) for tp in tps],
                )
                for topic, tps in by_topic(offsets).items()
            ]
            return AlterShareGroupOffsetsRequest(version=version, group_id=group, topics=topics)

        try:
            response = self._admin.ask_at(
                broker, AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, build, newest=0
            )
        except BrokerError as error:
            return GroupAnswer(error.code)
        if response.error_code == NON_EMPTY_GROUP:
            raise active_error(group, self._admin.alias)
        if response.error_code in _FOR_COORDINATORS:
            return GroupAnswer(response.error_code)
        if response.error_code:
            return GroupAnswer(NO_ERROR, dict.fromkeys(offsets, response.error_code))
        codes = {
            TopicPartition(topic.topic_name, partition.partition_index): partition.error_code
            for topic in response.responses
            for partition in topic.partitions
        }
        return GroupAnswer(NO_ERROR, codes)


def _starts_of(group: Any) -> _Starts:
    return {
        TopicPartition(topic.topic_name, partition.partition_index): (partition.start_offset, partition.lag)
        for topic in group.topics
        for partition in topic.partitions
        if not partition.error_code and partition.start_offset >= 0
    }


def _begins_before(starts: _Starts, ends: Mapping[TopicPartition, int]) -> bool:
    """Return whether a group without lag begins before the end of a log."""
    return any(lag == 0 and start < ends.get(tp, start) for tp, (start, lag) in starts.items())


def _offsets(starts: _Starts, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, CommittedOffset]:
    return {
        tp: CommittedOffset(max(start, ends.get(tp, start)) if lag == 0 else start)
        for tp, (start, lag) in starts.items()
    }


def active_error(group: str, alias: str) -> GroupActiveError:
    """Return the error for a group whose offsets only its members may move."""
    return GroupActiveError(
        f"The group '{group}' on '{alias}' has active members, so its offsets stay as they are; stop its consumers"
        " first."
    )


def by_topic(tps: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """Return the partitions of each topic."""
    found: dict[str, list[TopicPartition]] = {}
    for tp in tps:
        found.setdefault(tp.topic, []).append(tp)
    return found


def reason_of(tp: TopicPartition, code: int) -> str:
    """Return why an offset was refused."""
    if code == TOPIC_AUTHORIZATION_FAILED:
        return f"the principal needs READ on the topic {tp.topic}"
    return describe(code)

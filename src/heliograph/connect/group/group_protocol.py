"""The four requests of Kafka's group protocol, blocking, to whichever broker coordinates the group.

A coordinator that moves or still loads is looked for again, for as long as the admin client's time-out. Error codes
that belong to a member's life come back with the answer; any other is a BrokerError whose sentence says what to do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka.protocol.consumer import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from heliograph.connect.group.leadership import JoinedMember, decode_claim
from heliograph.errors import BrokerError
from heliograph.kafka.admin.coordinators import Coordinators, GroupAnswer
from heliograph.kafka.error_codes import (
    CONCERNS_WHOLE_GROUP,
    FENCED_INSTANCE_ID,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    NO_ERROR,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    describe,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import Address


# Not Connect's: a Java worker with the same group.id is refused by the broker, and so are we in its group.
PROTOCOL_TYPE = "heliograph"
PROTOCOL_NAME = "leader"

EXPELLED = frozenset({UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID})
REFUSALS = frozenset(  # which no second try helps
    {
        INCONSISTENT_GROUP_PROTOCOL,
        INVALID_GROUP_ID,
        INVALID_SESSION_TIMEOUT,
        GROUP_AUTHORIZATION_FAILED,
        GROUP_MAX_SIZE_REACHED,
    }
)

_OF_A_MEMBERS_LIFE = EXPELLED | {ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED}


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A group, and how patient its coordinator shall be."""

    group: str
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 1_000  # a change is known to all after this; Connect's default is 3 s
    rebalance_timeout_ms: int = 60_000


class Joined(NamedTuple):
    """The answer to a JoinGroup; with an error code only the first three parts count."""

    code: int
    sent_at: float
    member_id: str = ""
    generation: int = -1
    assigner_id: str = ""
    members: tuple[JoinedMember, ...] = ()  # only the assigner is told


class MemberResponse(NamedTuple):
    """The answer to a heartbeat or a SyncGroup."""

    code: int
    sent_at: float
    assignment: bytes = b""


class GroupProtocol:
    """Speaks for one member. Not thread-safe, as its admin client, which it owns."""

    def __init__(self, admin: Admin, settings: GroupSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._admin = admin
        self._settings = settings
        self._clock = clock
        self._coordinators = Coordinators(admin)

    def close(self) -> None:
        """Close the connections."""
        self._admin.close()

    def join(self, member_id: str, metadata: bytes) -> Joined:
        """Ask to be in the next generation; blocks while the others join."""

        def build(version: int) -> Any:
            return JoinGroupRequest(
                version=version,
                group_id=self._settings.group,
                session_timeout_ms=self._settings.session_timeout_ms,
                rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
                member_id=member_id,
                group_instance_id=None,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=PROTOCOL_NAME, metadata=metadata)],
            )

        answer, sent_at = self._ask(JoinGroupRequest, JoinGroupResponse, build, newest=5, oldest=1)
        if answer.error_code:
            return Joined(answer.error_code, sent_at, answer.member_id or member_id)
        members = tuple(JoinedMember(m.member_id, decode_claim(bytes(m.metadata))) for m in answer.members)
        return Joined(0, sent_at, answer.member_id, answer.generation_id, answer.leader, members)

    def sync(self, member_id: str, generation: int, assignments: Mapping[str, bytes]) -> MemberResponse:
        """Get our assignment; the assigner brings everyone's."""

        def build(version: int) -> Any:
            each = SyncGroupRequest.SyncGroupRequestAssignment
            return SyncGroupRequest(
                version=version,
                group_id=self._settings.group,
                generation_id=generation,
                member_id=member_id,
                group_instance_id=None,
                assignments=[each(member_id=member, assignment=data) for member, data in assignments.items()],
            )

        answer, sent_at = self._ask(SyncGroupRequest, SyncGroupResponse, build, newest=3)
        return MemberResponse(answer.error_code, sent_at, bytes(answer.assignment or b""))

    def heartbeat(self, member_id: str, generation: int) -> MemberResponse:
        """Say that we live."""

        def build(version: int) -> Any:
            return HeartbeatRequest(
                version=version,
                group_id=self._settings.group,
                generation_id=generation,
                member_id=member_id,
                group_instance_id=None,
            )

        answer, sent_at = self._ask(HeartbeatRequest, HeartbeatResponse, build, newest=3)
        return MemberResponse(answer.error_code, sent_at)

    def leave(self, member_id: str) -> None:
        """Give the place up at once."""
        self._ask(
            LeaveGroupRequest,
            LeaveGroupResponse,
            lambda version: LeaveGroupRequest(version=version, group_id=self._settings.group, member_id=member_id),
            newest=2,
        )

    def _ask(
        self, request_class: Any, response_class: Any, build: Any, *, newest: int, oldest: int = 0
    ) -> tuple[Any, float]:
        """The coordinator's answer, and when at the earliest the request was sent."""
        group = self._settings.group

        def ask(broker: Address, _groups: list[str]) -> dict[str, GroupAnswer]:
            sent_at = self._clock()
            answer = self._admin.ask_at(broker, request_class, response_class, build, newest=newest, oldest=oldest)
            code = answer.error_code
            return {
                group: GroupAnswer(code) if code in CONCERNS_WHOLE_GROUP else GroupAnswer(NO_ERROR, (answer, sent_at))
            }

        answer, sent_at = self._coordinators.ask_about([group], ask, needs="READ")[group]
        code = answer.error_code
        if code and code not in _OF_A_MEMBERS_LIFE:
            raise BrokerError(self._sentence(code), code)
        return answer, sent_at

    def _sentence(self, code: int) -> str:
        group, cluster = self._settings.group, self._admin.alias
        if code == INCONSISTENT_GROUP_PROTOCOL:
            return (
                f"The group '{group}' on '{cluster}' has members that are not Heliograph's workers (Java's Connect, or"
                " consumers); stop them, or give this worker a group.id of its own."
            )
        if code == INVALID_SESSION_TIMEOUT:
            return (
                f"'{cluster}' does not take session.timeout.ms={self._settings.session_timeout_ms} for the group"
                f" '{group}'; its brokers set the limits with group.min.session.timeout.ms and"
                " group.max.session.timeout.ms."
            )
        if code == INVALID_GROUP_ID:
            return f"'{cluster}' does not take '{group}' as the name of a group; set group.id."
        if code == GROUP_MAX_SIZE_REACHED:
            return f"The group '{group}' on '{cluster}' has as many members as its group.max.size allows."
        return f"'{cluster}' refused us in the group '{group}': {describe(code)}."

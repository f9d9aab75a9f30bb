"""The group coordinator of a `ScriptedCluster`: a group of one member at a time, which leads and assigns itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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

# Request class: response class, oldest and newest version.
GROUP_APIS: dict[Any, tuple[Any, int, int]] = {
    JoinGroupRequest: (JoinGroupResponse, 2, 5),
    SyncGroupRequest: (SyncGroupResponse, 0, 3),
    HeartbeatRequest: (HeartbeatResponse, 0, 3),
    LeaveGroupRequest: (LeaveGroupResponse, 0, 2),
}


class ScriptedGroup:
    """A generation for every join; a name for who has none."""

    def __init__(self) -> None:
        self.generation = 0
        self._names = 0

    def join(self, request: Any, code: int | None) -> Any:
        name = request.member_id or self._new_name()
        if code:
            return JoinGroupResponse(
                error_code=code, generation_id=-1, protocol_name="", leader="", member_id=name, members=[]
            )
        self.generation += 1
        protocol = request.protocols[0]
        member = JoinGroupResponse.JoinGroupResponseMember(
            member_id=name, group_instance_id=None, metadata=protocol.metadata
        )
        return JoinGroupResponse(
            error_code=0,
            generation_id=self.generation,
            protocol_name=protocol.name,
            leader=name,
            member_id=name,
            members=[member],
        )

    def _new_name(self) -> str:
        self._names += 1
        return f"member-{self._names}"

    def sync(self, request: Any, code: int | None) -> Any:
        assignment = next((a.assignment for a in request.assignments if a.member_id == request.member_id), b"")
        return SyncGroupResponse(error_code=code or 0, assignment=b"" if code else assignment)


GROUP_ANSWERS: dict[Any, Callable[[ScriptedGroup, Any, int | None], Any]] = {
    JoinGroupRequest: ScriptedGroup.join,
    SyncGroupRequest: ScriptedGroup.sync,
    HeartbeatRequest: lambda _group, _request, code: HeartbeatResponse(error_code=code or 0),
    LeaveGroupRequest: lambda _group, _request, code: LeaveGroupResponse(error_code=code or 0),
}

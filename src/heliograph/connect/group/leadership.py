"""The rules of leadership in a group of workers: who leads, and for how long. Without sockets or clocks.

The members of a Kafka group agree on one leader. In each rebalance Kafka picks one member to assign; it gives the same
assignment to all: the leader, and the address of its REST. A member that leads now says so when it joins (its *claim*)
and stays the leader: a new member takes nothing over.

**Why two members never lead at once.** Another member is assigned only when the leader is not in the new generation,
or is in it without a claim. The coordinator drops a member in three cases:

1. It was silent for `session.timeout.ms`. The coordinator counts from when it *received* the last request, the member
   from when it *sent* the last request that was answered: earlier. The lease ends after two thirds of that time, so the
   member has stopped leading a third of the time-out before any other can start.
2. A rebalance continued without it for `rebalance.timeout.ms`, though it sent heartbeats. No rebalance was under way at
   the last settled request, so it started later; the lease ends two thirds of that time-out after that request.
3. It left, or an administrator removed it. It leaves when it has stopped; a member that was removed learns it with its
   next heartbeat.

A member that joins without a claim gives up its assignment first, so that a late heartbeat does not restore it. This
holds as long as the coordinator keeps what it has acknowledged (`__consumer_offsets` with enough replicas) and clocks
run at about the same rate.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from heliograph.wire.records.connect_json import load_object

if TYPE_CHECKING:
    from collections.abc import Iterable


LEASE_SHARE = 2 / 3  # of a time-out; the rest is for stopping what only a leader may do


class Claim(NamedTuple):
    """The metadata of a member when it joins."""

    url: str
    leads_since: int | None = None  # the generation in which it became the leader; None if it does not lead


class JoinedMember(NamedTuple):
    """A member of the generation that is being formed."""

    member_id: str
    claim: Claim | None  # None if its metadata cannot be decoded


class GroupAssignment(NamedTuple):
    """The assignment, the same for all members of a generation."""

    leader_id: str
    leader_url: str
    generation: int


def encode_claim(claim: Claim) -> bytes:
    """Encode a claim as the metadata of a JoinGroup request."""
    return json.dumps({"url": claim.url, "leads_since": claim.leads_since}).encode()


def decode_claim(metadata: bytes) -> Claim | None:
    """Decode the claim in a member's metadata; None if it is not one."""
    data = load_object(metadata) or {}
    url, since = data.get("url"), data.get("leads_since")
    if not isinstance(url, str) or not (since is None or type(since) is int):
        return None
    return Claim(url, since)


def encode_assignment(assignment: GroupAssignment) -> bytes:
    """Encode an assignment for SyncGroup."""
    data = {
        "leader": assignment.leader_url,
        "leader_id": assignment.leader_id,
        "generation": assignment.generation,
    }
    return json.dumps(data).encode()


def decode_assignment(data: bytes) -> GroupAssignment | None:
    """Decode the assignment in a SyncGroup response; None if there is none."""
    found = load_object(data) or {}
    url, leader_id, generation = found.get("leader"), found.get("leader_id"), found.get("generation")
    if not isinstance(url, str) or not isinstance(leader_id, str) or type(generation) is not int:
        return None
    return GroupAssignment(leader_id, url, generation)


def choose_leader(members: Iterable[JoinedMember], first: str) -> JoinedMember | None:
    """Return the member that leads already, else `first` (which Kafka picked to assign); None without valid claims.

    Of several claims the latest is true: a leader since an earlier generation was replaced without knowing it.
    """
    known = sorted((member for member in members if member.claim is not None), key=lambda member: member.member_id)
    leading = [member for member in known if member.claim and member.claim.leads_since is not None]
    if leading:
        return max(leading, key=_leads_since)
    return next((member for member in known if member.member_id == first), known[0] if known else None)


def _leads_since(member: JoinedMember) -> int:
    return -1 if member.claim is None or member.claim.leads_since is None else member.claim.leads_since


@dataclass(slots=True)
class LeadershipLease:
    """The time until which a member may rely on its assignment. All times are of one monotonic clock."""

    session_timeout_s: float
    rebalance_timeout_s: float
    heard_at: float = -math.inf  # when the last request was sent that the coordinator answered as to a member
    settled_at: float = -math.inf  # the same, of requests in a generation that no rebalance was ending

    def renew(self, sent_at: float, *, is_settled: bool) -> None:
        """Extend the lease: a request sent at that time was answered as to a member."""
        self.heard_at = max(self.heard_at, sent_at)
        if is_settled:
            self.settled_at = max(self.settled_at, sent_at)

    def end(self) -> None:
        """End the lease: we are no member any more."""
        self.heard_at = self.settled_at = -math.inf

    @property
    def until(self) -> float:
        """The end of the lease, unless it is renewed."""
        return min(
            self.heard_at + LEASE_SHARE * self.session_timeout_s,
            self.settled_at + LEASE_SHARE * self.rebalance_timeout_s,
        )

"""Who leads a group of workers, and for how long one may believe it: the rules, without sockets or clocks.

The members of a Kafka group agree on one leader. In each rebalance Kafka makes one member assign; it gives the same
assignment to all: who leads, and where its REST is. A member that leads now says so when it joins (its *claim*) and
stays: a newcomer takes nothing over.

**Why two members never lead at once.** Another member is assigned only when the leader is not in the new generation,
or is in it without a claim. The coordinator drops a member in three cases:

1. It was silent for `session.timeout.ms`. The coordinator counts from when it *received* the last word, the member from
   when it *sent* the last word that was answered: earlier. The lease ends after two thirds of that time, so the
   member has stopped leading a third of the time-out before anyone else can begin.
2. A rebalance went on without it for `rebalance.timeout.ms`, though it was heard. No rebalance was under way at the
   last settled word, so it began later; the lease ends two thirds of that time-out after that word.
3. It left, or an administrator removed it. It leaves when it has stopped; one that was removed learns it with its
   next heartbeat.

A member that joins without a claim gives up its assignment first, so that a late heartbeat does not bring it back. This
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


LEASE_SHARE = 2 / 3  # of a time-out: what is left is for ending what only a leader may do


class Claim(NamedTuple):
    """What a member says of itself when it joins."""

    url: str
    leads_since: int | None = None  # the generation in which it began to lead, where it leads now


class JoinedMember(NamedTuple):
    """A member of the generation that is being formed."""

    member_id: str
    claim: Claim | None  # None where its words are not understood


class GroupAssignment(NamedTuple):
    """What all members of a generation are told."""

    leader_id: str
    leader_url: str
    generation: int


def encode_claim(claim: Claim) -> bytes:
    """A claim as the metadata of a JoinGroup request."""
    return json.dumps({"url": claim.url, "leads_since": claim.leads_since}).encode()


def decode_claim(metadata: bytes) -> Claim | None:
    """The claim in a member's metadata; None where it is not one."""
    data = load_object(metadata) or {}
    url, since = data.get("url"), data.get("leads_since")
    if not isinstance(url, str) or not (since is None or type(since) is int):
        return None
    return Claim(url, since)


def encode_assignment(assignment: GroupAssignment) -> bytes:
    """An assignment as SyncGroup carries it."""
    data = {
        "leader": assignment.leader_url,
        "leader_id": assignment.leader_id,
        "generation": assignment.generation,
    }
    return json.dumps(data).encode()


def decode_assignment(data: bytes) -> GroupAssignment | None:
    """The assignment in a SyncGroup answer; None where there is none."""
    found = load_object(data) or {}
    url, leader_id, generation = found.get("leader"), found.get("leader_id"), found.get("generation")
    if not isinstance(url, str) or not isinstance(leader_id, str) or type(generation) is not int:
        return None
    return GroupAssignment(leader_id, url, generation)


def choose_leader(members: Iterable[JoinedMember], first: str) -> JoinedMember | None:
    """The member that leads already, or else `first` (whom Kafka made assign); None where nobody is understood.

    Of several claims the latest is true: who leads since an earlier generation has been replaced without knowing it.
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
    """Until when a member may believe in its place. All times are of one clock that only goes forward."""

    session_timeout_s: float
    rebalance_timeout_s: float
    heard_at: float = -math.inf  # when the last word was sent that the coordinator answered as to a member
    settled_at: float = -math.inf  # the same, of words answered in a generation that no rebalance was ending

    def renew(self, sent_at: float, *, is_settled: bool) -> None:
        """A word sent at that time was answered as to a member."""
        self.heard_at = max(self.heard_at, sent_at)
        if is_settled:
            self.settled_at = max(self.settled_at, sent_at)

    def end(self) -> None:
        """The coordinator does not know us any more, or we have gone."""
        self.heard_at = self.settled_at = -math.inf

    @property
    def until(self) -> float:
        """The end of the lease, if nothing more is heard."""
        return min(
            self.heard_at + LEASE_SHARE * self.session_timeout_s,
            self.settled_at + LEASE_SHARE * self.rebalance_timeout_s,
        )

"""The membership of a worker in the group of its workers, and the leader of the group.

Three threads, so that none waits for another: one joins (Kafka answers only when all members have joined), one sends
heartbeats meanwhile, and one reports changes and the end of the lease to the worker, whatever the network does.
`standing` is computed from the lease and the clock at each call, not remembered.

The rules, and why two members never lead at once, are in `leadership`.

Invariants: `on_change` is called on one thread, in order, never with the same standing twice in a row. A leader sees
`is_leader` become false before another member can learn that it leads.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from heliograph.connect.group.group_protocol import (
    EXPELLED,
    REFUSALS,
    GroupProtocol,
    GroupSettings,
    Joined,
    MemberResponse,
)
from heliograph.connect.group.leadership import (
    Claim,
    GroupAssignment,
    LeadershipLease,
    choose_leader,
    decode_assignment,
    encode_assignment,
    encode_claim,
)
from heliograph.errors import AuthenticationError, BrokerError, ClusterError
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.error_codes import ILLEGAL_GENERATION, MEMBER_ID_REQUIRED, NO_ERROR, REBALANCE_IN_PROGRESS
from heliograph.status.process_snapshot import WorkerSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.kafka.admin.admin import Admin


log = logging.getLogger(__name__)

_LEAVE_TIMEOUT_S = 5.0
_RETRY_HEARTBEAT_S = 0.3
_STOP_POLL_S = 0.5
_NO_GENERATION = -1


class Standing(NamedTuple):
    """The position of a worker in its group."""

    is_leader: bool = False
    leader_url: str | None = None  # our own if we lead; None while it is unknown
    generation: int = _NO_GENERATION  # grows with every rebalance; all members of one have the same leader; -1: none
    leads_since: int | None = None  # if we lead: the generation since which no other member can have led


class Membership:
    """One member. `make_admin` makes a client with a time-out in seconds; `url` is the address of our REST.

    `on_change` should return soon: heartbeats continue while it runs, but of several changes meanwhile it gets only the
    last. A lead that was lost and won again is a new one if `leads_since` differs. If `on_change` raises, we leave.
    """

    def __init__(
        self,
        make_admin: Callable[[float], Admin],
        settings: GroupSettings,
        url: str,
        on_change: Callable[[Standing], None] = lambda _standing: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        session_s = settings.session_timeout_ms / 1000
        self._settings = settings
        self._url = url
        self._on_change = on_change
        self._clock = clock
        # A member that died delays a join for one session. A join that takes longer is repeated: that costs nothing,
        # and finds a coordinator that has moved.
        self._joining = GroupProtocol(make_admin(2 * session_s), settings, clock)
        self._beating = GroupProtocol(make_admin(session_s / 3), settings, clock)
        self._changed = threading.Condition()
        self._lease = LeadershipLease(session_s, settings.rebalance_timeout_ms / 1000)
        self._member_id = ""
        self._generation = _NO_GENERATION
        self._assignment: GroupAssignment | None = None
        self._leads_since: int | None = None
        self._is_joining = True
        self._stopping = False
        self._leaves = True
        self._failure: ClusterError | None = None
        self._rebalances = 0
        self._rebalanced_at: float | None = None
        loops = {"join": self._join_loop, "heartbeat": self._heartbeat_loop, "report": self._report_loop}
        self._threads = [
            threading.Thread(target=loop, name=f"group-{settings.group}-{name}", daemon=True)
            for name, loop in loops.items()
        ]

    # --- for the worker -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to join, in the background."""
        for thread in self._threads:
            thread.start()

    def wait_until_joined(self, timeout_s: float, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """Wait until the leader is known; raise the reason if it is not, at once for a permanent one."""
        deadline = time.monotonic() + timeout_s

        def is_decided() -> bool:
            is_out_of_time = time.monotonic() >= deadline
            return self.standing.leader_url is not None or _is_permanent(self._failure) or is_out_of_time

        with self._changed:
            while not is_decided() and not is_stopping():
                self._changed.wait(min(_STOP_POLL_S, max(0.0, deadline - time.monotonic())))
            if self.standing.leader_url is None and not is_stopping():
                raise self._failure or ClusterError(
                    f"The group '{self._settings.group}' has named no leader within {timeout_s:.0f} s."
                )

    def stop(self, *, leave: bool = True) -> None:
        """Leave, so that another can lead at once. Everything that only a leader may do must have ended before.

        Without `leave` the others notice it after the session time-out, as after a crash.
        """
        with self._changed:
            self._leaves = self._leaves and leave
            self._stopping = True
            self._changed.notify_all()
        joining, *others = self._threads
        for thread in others:
            if thread is not threading.current_thread() and thread.ident is not None:
                thread.join(_LEAVE_TIMEOUT_S)
        if joining.ident is not None:
            joining.join(_RETRY_HEARTBEAT_S)  # a join that still waits ends without us

    def resign(self) -> None:
        """Give the lead up, if we have it, and join without a claim: another worker acts as the leader."""
        with self._changed:
            if self._assignment is not None and self._assignment.leader_id == self._member_id:
                self._assignment = self._leads_since = None
                self._is_joining = True
                self._changed.notify_all()

    @property
    def standing(self) -> Standing:
        """Our position now."""
        with self._changed:
            assignment = self._assignment
            if assignment is None or self._stopping or self._clock() >= self._lease.until:
                return Standing()
            is_leader = assignment.leader_id == self._member_id
            return Standing(is_leader, assignment.leader_url, assignment.generation, self._leads_since)

    def snapshot(self) -> WorkerSnapshot:
        """Return our position, and what rebalances there have been."""
        with self._changed:
            standing, is_joining = self.standing, self._is_joining
            rebalances, rebalanced_at = self._rebalances, self._rebalanced_at
        return WorkerSnapshot(standing.is_leader, is_joining, standing.generation, rebalances, rebalanced_at)

    @property
    def is_leader(self) -> bool:
        """Return whether we are the leader now."""
        return self.standing.is_leader

    @property
    def leader_url(self) -> str | None:
        """The address of the leader's REST; our own if we lead, None while it is unknown."""
        return self.standing.leader_url

    @property
    def generation(self) -> int:
        """The generation of the group in which the leader was assigned; -1 while it is unknown."""
        return self.standing.generation

    @property
    def issue(self) -> str | None:
        """The reason why we are not in the group; None if we are."""
        with self._changed:
            return None if self._failure is None else str(self._failure)

    # --- joining ------------------------------------------------------------------------------------------------------

    def _join_loop(self) -> None:
        backoff = Backoff(first_s=0.1, most_s=5.0)
        while not self._stopping:
            try:
                is_settled = self._join_once()
            except ClusterError as error:
                self._fail(error)
                is_settled = False
            with self._changed:
                if is_settled:
                    backoff.reset()
                    self._changed.wait_for(lambda: self._is_joining or self._stopping)
                else:
                    self._changed.wait_for(lambda: self._stopping, backoff.next_pause_s())
        self._joining.close()

    def _join_once(self) -> bool:
        """Join and learn the leader; return False if it is to be tried again."""
        joined = self._joining.join(self._member_id, self._make_claim())
        if joined.code == MEMBER_ID_REQUIRED and not self._stopping:
            with self._changed:
                self._member_id = joined.member_id
            joined = self._joining.join(joined.member_id, self._make_claim())
        if joined.code:
            return self._not_joined(joined.code)
        with self._changed:
            self._member_id, self._generation = joined.member_id, joined.generation
            self._lease.renew(joined.sent_at, is_settled=False)
        reported = self._joining.sync(joined.member_id, joined.generation, _assignments(joined))
        if reported.code:
            return self._not_joined(reported.code)
        return self._accept(reported, joined)

    def _make_claim(self) -> bytes:
        """Return our metadata. A leader whose lease is over gives the lead up, so that no heartbeat restores it."""
        with self._changed:
            if not self.standing.is_leader:
                self._leads_since = None
                if self._assignment is not None and self._assignment.leader_id == self._member_id:
                    self._assignment = None
                self._changed.notify_all()
            return encode_claim(Claim(self._url, self._leads_since))

    def _not_joined(self, code: int) -> bool:
        if code in EXPELLED:
            with self._changed:
                self._reset_membership()
        return False

    def _accept(self, reported: MemberResponse, joined: Joined) -> bool:
        assignment = decode_assignment(reported.assignment)
        if assignment is None:
            message = f"The group '{self._settings.group}' was given an assignment that is not understood."
            raise ClusterError(message)
        with self._changed:
            if joined.member_id != self._member_id:
                return False  # expelled meanwhile
            leads = assignment.leader_id == joined.member_id
            self._assignment = assignment
            if not leads:
                self._leads_since = None
            elif self._leads_since is None:
                self._leads_since = joined.generation
            self._lease.renew(reported.sent_at, is_settled=True)
            self._is_joining = False
            self._rebalances += 1
            self._rebalanced_at = time.time()
            self._failure = None
            self._changed.notify_all()
        return True

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def _heartbeat_loop(self) -> None:
        interval_s = self._settings.heartbeat_interval_ms / 1000
        pause_s = interval_s
        while not self._wait_for_stop(pause_s):
            with self._changed:
                member_id, generation = self._member_id, self._generation
            if generation == _NO_GENERATION:
                pause_s = min(interval_s, _RETRY_HEARTBEAT_S)
                continue
            started_at = self._clock()
            try:
                reported = self._beating.heartbeat(member_id, generation)
            except ClusterError as error:
                self._fail(error)
                pause_s = min(interval_s, _RETRY_HEARTBEAT_S)
            else:
                self._heard(reported, member_id, generation)
                pause_s = max(0.0, started_at + interval_s - self._clock())
        self._leave()

    def _wait_for_stop(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._stopping, timeout_s)

    def _heard(self, reported: MemberResponse, member_id: str, generation: int) -> None:
        with self._changed:
            if member_id != self._member_id:
                return  # a response to our former member id
            if reported.code in (NO_ERROR, REBALANCE_IN_PROGRESS):
                is_settled = reported.code == NO_ERROR and not self._is_joining and generation == self._generation
                self._lease.renew(reported.sent_at, is_settled=is_settled)
                self._failure = None if not self._is_joining else self._failure
                self._is_joining = self._is_joining or reported.code == REBALANCE_IN_PROGRESS
            elif reported.code in EXPELLED:
                self._reset_membership()
            elif reported.code == ILLEGAL_GENERATION and not self._is_joining and generation == self._generation:
                # Only while we join may the group be ahead of us; else it has a new generation, maybe another leader.
                self._assignment = self._leads_since = None
                self._lease.end()
                self._is_joining = True
            self._changed.notify_all()

    def _reset_membership(self) -> None:
        self._member_id, self._generation = "", _NO_GENERATION
        self._assignment = self._leads_since = None
        self._lease.end()
        self._is_joining = True
        self._changed.notify_all()

    def _leave(self) -> None:
        with self._changed:
            member_id = self._member_id
        if self._leaves and member_id:
            with suppress(ClusterError):  # the session time-out removes us
                self._beating.leave(member_id)
        self._beating.close()

    # --- reporting ----------------------------------------------------------------------------------------------------

    def _report_loop(self) -> None:
        reported = Standing()
        try:
            while True:
                with self._changed:
                    standing = self.standing
                    if standing == reported:
                        if self._stopping:
                            return
                        self._changed.wait(self._lease_left_s())
                        continue
                reported = standing
                self._on_change(standing)
        finally:
            with self._changed:
                self._stopping = True
                self._changed.notify_all()

    def _lease_left_s(self) -> float | None:
        left_s = self._lease.until - self._clock()
        return left_s if left_s > 0 else None

    def _fail(self, error: ClusterError) -> None:
        with self._changed:
            if str(error) != self.issue and not self._stopping:
                log.warning("%s", error)
            self._failure = error
            self._changed.notify_all()


def _assignments(joined: Joined) -> dict[str, bytes]:
    """Return everyone's assignment if we are the assigner; else nothing."""
    leader = choose_leader(joined.members, first=joined.assigner_id)
    if joined.assigner_id != joined.member_id or leader is None or leader.claim is None:
        return {}
    data = encode_assignment(GroupAssignment(leader.member_id, leader.claim.url, joined.generation))
    return {member.member_id: data for member in joined.members}


def _is_permanent(failure: ClusterError | None) -> bool:
    is_refusal = isinstance(failure, BrokerError) and failure.code in REFUSALS
    return is_refusal or isinstance(failure, AuthenticationError)

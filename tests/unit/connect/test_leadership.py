"""The choice of the leader, and the end of its lease."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.connect.group.leadership import (
    Claim,
    GroupAssignment,
    JoinedMember,
    LeadershipLease,
    choose_leader,
    decode_assignment,
    decode_claim,
    encode_assignment,
    encode_claim,
)

SESSION_S, REBALANCE_S = 10.0, 60.0

claims = st.builds(Claim, st.text(), st.none() | st.integers(0, 2**31 - 1))


@given(claims)
def test_a_claim_is_read_as_it_was_written(claim: Claim) -> None:
    assert decode_claim(encode_claim(claim)) == claim


@given(st.builds(GroupAssignment, st.text(), st.text(), st.integers(0, 2**31 - 1)))
def test_an_assignment_is_read_as_it_was_written(assignment: GroupAssignment) -> None:
    assert decode_assignment(encode_assignment(assignment)) == assignment


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"7", b"{}", b'{"url": 1}', b'{"url": "u", "leads_since": "x"}'])
def test_words_of_others_are_neither_claims_nor_assignments(data: bytes) -> None:
    assert decode_claim(data) is None
    assert decode_assignment(data) is None


members = st.dictionaries(st.text(min_size=1), st.none() | claims, min_size=1).map(
    lambda found: [JoinedMember(name, claim) for name, claim in found.items()]
)


@given(members, st.data())
def test_the_leader_stays_and_all_would_choose_the_same(joined: list[JoinedMember], data: st.DataObject) -> None:
    first = data.draw(st.sampled_from(joined)).member_id
    chosen = choose_leader(joined, first)
    assert choose_leader(joined[::-1], first) == chosen
    leading = [member.claim.leads_since for member in joined if member.claim and member.claim.leads_since is not None]
    if leading:
        assert chosen is not None
        assert chosen.claim is not None
        assert chosen.claim.leads_since == max(leading)
    elif any(member.member_id == first and member.claim for member in joined):
        assert chosen is not None
        assert chosen.member_id == first
    elif not any(member.claim for member in joined):
        assert chosen is None


def test_a_lease_that_was_never_renewed_is_over() -> None:
    assert LeadershipLease(SESSION_S, REBALANCE_S).until == -math.inf


def test_a_lease_that_was_ended_is_over() -> None:
    lease = LeadershipLease(SESSION_S, REBALANCE_S)
    lease.renew(5.0, is_settled=True)
    assert lease.until > 5.0
    lease.end()
    assert lease.until == -math.inf


# A word to the coordinator: the pause before it, its way there, its way back, whether the answer arrives at all.
ways = st.floats(0, 30)
words = st.lists(st.tuples(st.floats(0.1, 20), ways, ways, st.booleans()), max_size=30)


@given(words, st.floats(0, 100))
def test_a_lease_is_over_before_the_coordinator_gives_the_place_away(
    words: list[tuple[float, float, float, bool]], rebalance_at: float
) -> None:
    """Requests may be slow, lost, or answered late; from `rebalance_at` on there is a rebalance that we never join."""
    lease = LeadershipLease(SESSION_S, REBALANCE_S)
    sent_at = last_received_at = 0.0
    answers: list[tuple[float, float, bool]] = [(0.0, 0.0, True)]  # when it arrives, when it was sent, settled
    for pause, there, back, is_answered in words:
        sent_at += pause
        received_at = max(last_received_at, sent_at + there)
        if received_at > last_received_at + SESSION_S or received_at > rebalance_at + REBALANCE_S:
            break  # the coordinator has given us up; what it answers now is no renewal
        last_received_at = received_at
        if is_answered:
            answers.append((received_at + back, sent_at, received_at < rebalance_at))
    given_away_at = min(last_received_at + SESSION_S, rebalance_at + REBALANCE_S)
    for _arrives_at, word_sent_at, is_settled in sorted(answers):
        lease.renew(word_sent_at, is_settled=is_settled)
        assert lease.until < given_away_at

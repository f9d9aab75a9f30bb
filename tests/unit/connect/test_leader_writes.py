"""The config topic is written only by a worker that leads at that moment and that no other has fenced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from heliograph.connect.storage import leader_writes
from heliograph.connect.storage.leader_writes import LeaderWrites, refusal_cause
from heliograph.errors import ClusterError, ConnectError, FencedError
from heliograph.kafka.own_records import OwnRecord
from heliograph.model import TopicPartition

CONFIGS = TopicPartition("configs", 0)
RECORD = OwnRecord(b"k", b"v")


class FakeFenced:
    """A transactional id of which the test decides who holds it."""

    def __init__(self) -> None:
        self.claims = 0
        self.written: list[OwnRecord] = []
        self.fails: Exception | None = None
        self.on_claim: Callable[[], None] = lambda: None

    def claim(self) -> None:
        self.claims += 1
        self.on_claim()

    def write(self, _tp: TopicPartition, records: Sequence[OwnRecord]) -> None:
        if self.fails is not None:
            raise self.fails
        self.written += records

    def close(self) -> None:
        self.claims = 0


class Leader:
    """A worker's writes, its lead, and how often it gave that up."""

    def __init__(self, fenced: FakeFenced | None = None) -> None:
        self.since: int | None = 1
        self.resigned = 0
        self.writes = LeaderWrites(lambda: self.since, self.resign, cast("Any", fenced))

    def resign(self) -> None:
        self.since = None
        self.resigned += 1

    def write(self) -> None:
        self.writes.claim()
        self.put()

    def put(self) -> None:
        self.writes.put(cast("Any", None), CONFIGS, [RECORD])

    def refused(self, step: Callable[[], object]) -> int:
        with pytest.raises(ConnectError) as caught:
            step()
        return caught.value.status


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[OwnRecord]:
    """What was sent without transactions; a broker takes it at the second try."""
    sent: list[OwnRecord] = []

    def write_twice(_admin: Any, _tp: Any, records: list[OwnRecord], before_try: Callable[[], None]) -> None:
        for _try in range(2):
            before_try()
            sent.extend(records)

    monkeypatch.setattr(leader_writes, "write_records", write_twice)
    return sent


def test_a_lead_is_claimed_once_and_the_next_one_again() -> None:
    fenced = FakeFenced()
    leader = Leader(fenced)
    assert [leader.writes.claim(), leader.writes.claim()] == [True, False]
    leader.since = 5
    assert leader.writes.claim()
    leader.put()
    assert (fenced.claims, fenced.written) == (2, [RECORD])


def test_a_worker_that_does_not_lead_claims_nothing() -> None:
    fenced = FakeFenced()
    leader = Leader(fenced)
    leader.since = None
    assert leader.refused(leader.writes.claim) == 409
    assert leader.refused(leader.put) == 409
    assert (fenced.claims, fenced.written) == (0, [])


@pytest.mark.parametrize("now", [None, 2])
def test_a_lead_that_was_lost_since_its_claim_writes_nothing(requests: list[OwnRecord], now: int | None) -> None:
    for fenced in (None, FakeFenced()):
        leader = Leader(fenced)
        leader.writes.claim()
        leader.since = now
        assert leader.refused(leader.put) == 409
        assert fenced is None or not fenced.written
    assert requests == []


def test_a_lead_that_is_lost_between_two_tries_ends_them(requests: list[OwnRecord]) -> None:
    leader = Leader()
    left = iter([1, 1, 1, None])  # two looks for the claim, one for each try
    leader.writes = LeaderWrites(lambda: next(left))
    assert leader.refused(leader.write) == 409
    assert requests == [RECORD]


def test_a_worker_that_wakes_up_in_its_claim_writes_nothing() -> None:
    fenced = FakeFenced()
    leader = Leader(fenced)
    fenced.on_claim = lambda: setattr(leader, "since", None)
    assert leader.refused(leader.write) == 409
    leader.since = 9  # whatever it leads next is another lead
    fenced.on_claim = lambda: None
    leader.write()
    assert (fenced.claims, fenced.written) == (2, [RECORD])


def test_a_fenced_leader_gives_the_lead_up(caplog: pytest.LogCaptureFixture) -> None:
    fenced = FakeFenced()
    leader = Leader(fenced)
    leader.writes.claim()
    fenced.fails = FencedError("taken over")
    with pytest.raises(ConnectError) as caught:
        leader.put()
    assert caught.value.status == 500
    assert caught.value.message == (
        "Failed to write to config topic; this may be due to a transient error and the request can be safely retried"
    )
    assert "has fenced this one: configs was not written" in caplog.text
    assert (leader.resigned, leader.refused(leader.write), fenced.claims) == (1, 409, 1)


def test_a_transaction_that_failed_is_logged_once_and_claimed_again(caplog: pytest.LogCaptureFixture) -> None:
    fenced = FakeFenced()
    leader = Leader(fenced)
    fenced.fails = ClusterError("the coordinator is gone")
    assert [leader.refused(leader.write) for _try in range(2)] == [500, 500]
    assert caplog.text.count("the coordinator is gone") == 1
    fenced.fails = None
    leader.write()
    assert (leader.resigned, fenced.claims, fenced.written) == (0, 3, [RECORD])


@pytest.mark.parametrize(
    ("why", "is_refusal"), [(ClusterError("the records are too large"), True), (FencedError("taken over"), False)]
)
def test_a_refused_write_is_distinguished_from_a_lost_lead(why: Exception, is_refusal: bool) -> None:
    fenced = FakeFenced()
    leader = Leader(fenced)
    fenced.fails = why
    with pytest.raises(ConnectError) as caught:
        leader.write()
    assert refusal_cause(caught.value) is (why if is_refusal else None)
    leader.since = None
    with pytest.raises(ConnectError) as caught:
        leader.write()
    assert refusal_cause(caught.value) is None


def test_an_id_that_was_refused_is_not_asked_for_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fenced = FakeFenced()
    leader = Leader(fenced)

    def refuse() -> None:
        raise ClusterError("no coordinator")

    fenced.on_claim = refuse
    clock = [100.0]
    monkeypatch.setattr(leader_writes.time, "monotonic", lambda: clock[0])
    for _tick in range(5):
        with pytest.raises(ClusterError, match="no coordinator"):
            leader.writes.claim()
    assert fenced.claims == 1
    clock[0] += 60
    fenced.on_claim = lambda: None
    assert leader.writes.claim()


def test_after_a_write_that_ended_in_any_way_the_id_is_taken_anew() -> None:
    fenced = FakeFenced()
    leader = Leader(fenced)
    leader.write()
    fenced.fails = RuntimeError("nobody has thought of it")
    with pytest.raises(RuntimeError):
        leader.put()
    fenced.fails = None
    leader.write()
    assert (fenced.claims, fenced.written) == (2, [RECORD, RECORD])

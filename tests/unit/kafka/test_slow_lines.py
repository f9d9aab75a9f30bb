"""A line that is long and narrow, and one that stands still: when a connection is given up. Time is the test's."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse

from heliograph.kafka.net import connection
from heliograph.kafka.net.buffers import BufferPool
from heliograph.kafka.net.connection import Connection
from heliograph.kafka.net.event_loop import Network
from heliograph.model import Address

SECOND_BYTES, ANSWER_BYTES = 40_000, 8 << 20
DEADLINE = 1030.0


class Line:
    """A connection of ours, the broker at its other end, and what became of the requests."""

    def __init__(self) -> None:
        ours, self.broker = socket.socketpair()
        ours.setblocking(False)
        self.answers: list[int] = []
        self.lost: list[str] = []
        self.network = Network(BufferPool(1 << 20), "test", 5.0)
        self.connection = Connection(ours, Address("far", 9092), "test", {})
        self.network._adopt(self.connection, lambda _connection: None, lambda why: self.lost.append(str(why)))
        self.now = 1000.0

    def ask(self, deadline: float = DEADLINE) -> None:
        self.connection.request(
            FetchRequest(version=4),
            FetchResponse,
            lambda answer, _buffer: self.answers.append(answer),
            lambda _why: None,
            deadline,
            decode=lambda view, _version: len(view),
            pooled=True,
        )
        self.network.flush(self.connection)

    def second(self, sent: bytes = b"") -> None:
        """Another second, in which these bytes come from the broker."""
        self.broker.sendall(sent)
        self.network.poll(0)
        self.now += 1
        self.network.maintain(self.now)


@pytest.fixture
def line() -> Iterator[Line]:
    opened = Line()
    yield opened
    opened.network.close()
    opened.broker.close()


def answer_of(size: int, correlation_id: int = 1) -> bytes:
    return size.to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + bytes(size - 4)


def pieces(answer: bytes) -> Iterator[bytes]:
    for at in range(0, len(answer), SECOND_BYTES):
        yield answer[at : at + SECOND_BYTES]


def test_an_answer_that_keeps_coming_is_taken_long_after_its_deadline(line: Line) -> None:
    line.ask()
    for piece in pieces(answer_of(ANSWER_BYTES)):
        line.second(piece)
    assert line.now > DEADLINE + 100
    assert (line.answers, line.lost) == ([ANSWER_BYTES - 4], [])


def test_requests_after_a_slow_response_get_their_time(line: Line) -> None:
    line.ask()
    line.ask()
    for piece in pieces(answer_of(ANSWER_BYTES)):
        line.second(piece)
    for _second in range(5):
        line.second()
    line.second(answer_of(100, correlation_id=2))
    assert (line.answers, line.lost) == ([ANSWER_BYTES - 4, 96], [])


def test_a_broker_that_says_nothing_is_given_up_at_the_deadline(line: Line) -> None:
    line.ask()
    while not line.lost:
        line.second()
    assert line.now == DEADLINE + 1
    assert line.lost == ["far:9092 did not answer a Fetch request in time"]


def test_a_broker_is_silent_since_its_last_answer_and_not_since_the_request_was_sent(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: line.now))
    for _request in range(5):
        line.ask()
    for number in range(1, 5):
        line.second(answer_of(100, correlation_id=number))
        assert line.connection.unanswered_api(line.now, 3.0) is None, "it answers one each second"
    line.second()
    assert line.connection.unanswered_api(line.now, 3.0) is None
    line.second()
    line.second()
    assert line.connection.unanswered_api(line.now, 3.0) == "Fetch"
    line.connection.throttled_until = line.now
    assert line.connection.unanswered_api(line.now, 3.0) is None, "a broker reads no request while it throttles"


def test_an_answer_that_stops_coming_is_given_up(line: Line) -> None:
    line.ask()
    half = answer_of(ANSWER_BYTES)[: ANSWER_BYTES // 2]
    for piece in pieces(half):
        line.second(piece)
    stopped = line.now
    while not line.lost:
        line.second()
    assert DEADLINE < line.now <= stopped + 11


@pytest.mark.parametrize("dribble", [1, 1000])
def test_a_broker_that_dribbles_is_given_up(line: Line, dribble: int) -> None:
    line.ask()
    line.second(answer_of(ANSWER_BYTES)[:100])
    while not line.lost:
        line.second(bytes(dribble))
    assert line.now <= DEADLINE + 20


def test_a_request_that_keeps_leaving_has_its_answer_waited_for(line: Line) -> None:
    """A produce request over the same line: its bytes need longer than the deadline to leave."""
    line.broker.setblocking(False)
    line.connection.send([bytes(ANSWER_BYTES)], _pending(line))
    line.network.flush(line.connection)
    while line.connection.wants_write:
        taken = 0
        while taken < SECOND_BYTES and line.connection.wants_write:
            line.network.poll(0)
            with suppress(BlockingIOError):
                taken += len(line.broker.recv(SECOND_BYTES - taken))
        line.second()
    assert line.now > DEADLINE + 100
    assert line.lost == []


def _pending(line: Line) -> Any:
    line.ask()
    return line.connection.pending.pop()

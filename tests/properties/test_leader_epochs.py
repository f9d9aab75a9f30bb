"""A reader that follows leaders through clean and unclean elections never holds records that its leader does not have.

The model: replicas with logs of (epoch, identity), a leader, followers that truncate and copy as Kafka's do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.wire.batches.forward import prepare
from heliograph.wire.batches.leader_epochs import Doubt, EpochHistory, Finding, doubt_at, epoch_at, judge
from tests.support.brokers.batches import Record, encode

REPLICAS = 3


@dataclass
class Model:
    logs: list[list[tuple[int, int]]] = field(default_factory=lambda: [[] for _ in range(REPLICAS)])
    leader: int = 0
    epoch: int = 0
    led_from: int = 0
    written: int = 0

    @property
    def log(self) -> list[tuple[int, int]]:
        return self.logs[self.leader]

    def append(self, count: int) -> None:
        for _ in range(count):
            self.log.append((self.epoch, self.written))
            self.written += 1

    def replicate(self, follower: int, most: int) -> None:
        """Cut what the leader does not have, then copy some of the rest."""
        log = self.logs[follower]
        same = next((k for k, pair in enumerate(zip(log, self.log, strict=False)) if pair[0] != pair[1]), None)
        same = min(len(log), len(self.log)) if same is None else same
        log[same:] = self.log[same : max(same, min(len(self.log), same + most))]

    def elect(self, replica: int) -> None:
        self.leader, self.epoch, self.led_from = replica, self.epoch + 1, len(self.logs[replica])

    def epoch_end(self, asked: int) -> tuple[int, int]:
        starts: dict[int, int] = {}
        for offset, (epoch, _identity) in enumerate(self.log):
            starts.setdefault(epoch, offset)
        starts.setdefault(self.epoch, self.led_from)
        if asked == self.epoch:
            return asked, len(self.log)
        newer = [start for epoch, start in starts.items() if epoch > asked]
        if not newer:
            return -1, -1
        return max((epoch for epoch in starts if epoch <= asked), default=asked), min(newer)


@dataclass
class Reader:
    copied: list[tuple[int, int]] = field(default_factory=list)
    history: EpochHistory = field(default_factory=EpochHistory)
    cut_off: int = 0
    is_unsure: bool = False

    def read(self, model: Model, most: int) -> None:
        """One answer's worth, as `continuity` and the copy go about it."""
        checked = None
        while True:
            position = len(self.copied)
            if position > len(model.log):
                doubt: Doubt | None = Doubt(position, self.history.before(position), None)
            elif position == len(model.log):
                return
            else:
                seen = model.log[position][0]
                doubt = None if seen == checked else doubt_at(self.history, position, seen)
            if doubt is None:
                break
            finding, cut = judge(doubt, self.history, model.epoch, *model.epoch_end(doubt.epoch))
            assert finding is not Finding.ANOTHER_LOG
            if finding is Finding.CUT:
                assert cut < position
                self.cut_off += position - cut
                del self.copied[cut:]
            else:
                self.is_unsure = self.is_unsure or finding is Finding.UNKNOWN
                checked = doubt.seen
        for record in model.log[len(self.copied) : len(self.copied) + most]:
            self.history.note(record[0], len(self.copied))
            self.copied.append(record)


replicas = st.integers(0, REPLICAS - 1)
counts = st.integers(1, 4)
steps = st.lists(
    st.tuples(st.just("append"), replicas, counts)
    | st.tuples(st.just("replicate"), replicas, counts)
    | st.tuples(st.just("elect"), replicas, counts)
    | st.tuples(st.just("read"), replicas, counts),
    max_size=25,
)


@settings(max_examples=500)
@given(steps)
def test_what_was_read_is_what_the_leader_has_or_it_was_told(todo: list[tuple[str, int, int]]) -> None:
    model, reader = Model(), Reader()
    for what, replica, count in todo:
        if what == "append":
            model.append(count)
        elif what == "replicate" and replica != model.leader:
            model.replicate(replica, count)
        elif what == "elect" and replica != model.leader:
            model.elect(replica)
        elif what == "read":
            reader.read(model, count)
    # Where the new log ends just where we are, only the next record can tell.
    model.append(1 + max(0, len(reader.copied) - len(model.log)))
    reader.read(model, len(model.log))
    assert reader.is_unsure or reader.copied == model.log


@settings(max_examples=300)
@given(steps)
def test_nothing_is_called_cut_where_every_election_is_clean(todo: list[tuple[str, int, int]]) -> None:
    model, reader = Model(), Reader()
    for what, replica, count in todo:
        if what == "append":
            model.append(count)
            for follower in range(REPLICAS):
                model.replicate(follower, len(model.log))
        elif what == "elect" and replica != model.leader:
            model.elect(replica)
        elif what == "read":
            reader.read(model, count)
    reader.read(model, len(model.log))
    assert (reader.cut_off, reader.is_unsure) == (0, False)
    assert reader.copied == model.log


@given(st.lists(st.tuples(st.integers(0, 5), counts), max_size=20), st.integers(0, 60))
def test_a_history_knows_the_epoch_before_any_place_that_it_remembers(
    runs: list[tuple[int, int]], position: int
) -> None:
    history, epochs = EpochHistory(), []
    for epoch, count in sorted(runs):
        history.note(epoch, len(epochs))
        epochs += [epoch] * count
    position = min(position, len(epochs))
    assert history.before(position) == (epochs[position - 1] if position else -1)
    assert EpochHistory(history.up_to(position - 1)).before(position) == history.before(position)


def test_a_format_without_epochs_makes_the_past_unknown() -> None:
    history = EpochHistory([(3, 0), (4, 10)])
    history.note(-1, 20)
    assert history.before(30) == -1


def test_only_the_last_epochs_are_remembered() -> None:
    history = EpochHistory()
    for epoch in range(100):
        history.note(epoch, epoch * 10)
    known = history.up_to(10_000)
    assert len(known) == 8
    assert known[-1] == (99, 990)


def test_what_is_read_again_is_noted_anew() -> None:
    history = EpochHistory([(3, 0), (4, 10), (5, 20)])
    assert (history.before(15), history.before(10)) == (4, 3)
    history.note(6, 12)
    assert history.up_to(100) == ((3, 0), (4, 10), (6, 12))


def batches_of(*epochs: int) -> bytearray:
    """Batches of two records each, one behind the other."""
    data = bytearray()
    for number, epoch in enumerate(epochs):
        batch = encode([Record(None, b"v", (), 0)] * 2, base_offset=2 * number)
        batch[12:16] = epoch.to_bytes(4, "big", signed=True)
        data += batch
    return data


def test_the_epochs_of_a_fetched_range_begin_where_the_batch_before_ended() -> None:
    assert prepare(memoryview(batches_of(3, 3, 4, 6, 6)), 1).epochs == [(3, 1), (4, 4), (6, 6)]
    assert prepare(memoryview(batches_of(3, 3)), 0).epochs == [(3, 0)]
    assert prepare(memoryview(bytearray()), 0).epochs == []


def test_the_epoch_of_a_damaged_batch_does_not_count() -> None:
    data = batches_of(3, 4)
    data[-1] ^= 1
    assert prepare(memoryview(data), 0).epochs == [(3, 0)]


def test_a_batch_before_our_position_says_nothing() -> None:
    records = memoryview(batches_of(3, 4, 5))
    assert [epoch_at(records, position) for position in range(7)] == [3, 3, 4, 4, 5, 5, -1]
    assert epoch_at(records[:40], 0) == -1

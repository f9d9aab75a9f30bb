"""The losses of a flow are written once each, however many there are, and however often they are reported."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from heliograph.config.validate.dedicated_file import load
from heliograph.driver.losses import loss_log
from heliograph.driver.losses.loss_log import LossLog
from heliograph.errors import BrokerError, UnreachableError
from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED
from heliograph.kafka.own_records import OwnRecord
from heliograph.model import Flow
from heliograph.status.flow_snapshot import LossTotal
from heliograph.status.losses import KEPT, Loss, LossCause, NewestLosses, decode_loss
from tests.support.config_files import FakeLookup, minimal

FLOW = Flow("A", "B")


def losses(count: int, first: int = 0) -> list[Loss]:
    return [
        Loss(1_700_000_000_000 + n, FLOW, "t", n, 0, 9, 10, LossCause.TARGET_DELETED, "id")
        for n in range(first, first + count)
    ]


class Topic:
    """Stands for the losses topic."""

    def __init__(self) -> None:
        self.recorded: list[Loss] = []
        self.is_reachable = True
        self.refusal: int | None = None

    def write(self, _admin: object, _tp: object, records: list[OwnRecord], **_options: object) -> None:
        if not self.is_reachable:
            raise UnreachableError("it does not answer")
        self.recorded += [loss for record in records if (loss := decode_loss(record.value)) is not None]

    def read(self, _admin: object, topic: str, _flow: Flow) -> Iterator[Loss]:
        if self.refusal is not None:
            raise BrokerError(topic, self.refusal)
        return iter(list(self.recorded))


@pytest.fixture(autouse=True)
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    topic = Topic()
    monkeypatch.setattr(loss_log, "write_records", topic.write)
    monkeypatch.setattr(loss_log, "read_losses", topic.read)
    monkeypatch.setattr(loss_log, "ensure_internal_topic", lambda *_args, **_more: None)
    return topic


@pytest.fixture
def log() -> LossLog:
    return LossLog(load(minimal(), FakeLookup()), FLOW)


def test_all_losses_that_wait_at_the_start_are_written(log: LossLog, topic: Topic) -> None:
    topic.recorded = losses(500)
    log.add(losses(3 * KEPT))
    assert list(log.begin()) == []
    assert list(log.write()) == []
    assert topic.recorded == losses(3 * KEPT)
    assert log.newest_first == tuple(reversed(losses(3 * KEPT)))[:KEPT]


def test_losses_that_are_reported_again_and_again_are_written_once(log: LossLog, topic: Topic) -> None:
    for _retry in range(4):
        log.add(losses(2 * KEPT))
        assert list(log.write()) == []
    assert topic.recorded == losses(2 * KEPT)


def test_losses_that_a_restart_finds_in_the_topic_are_not_written_again(log: LossLog, topic: Topic) -> None:
    topic.recorded = losses(2 * KEPT)
    log.begin()
    log.add(losses(2 * KEPT))
    assert list(log.write()) == []
    assert topic.recorded == losses(2 * KEPT)


def test_the_end_writes_all_that_waits(log: LossLog, topic: Topic) -> None:
    log.add(losses(2 * KEPT))
    log.close()
    assert topic.recorded == losses(2 * KEPT)


def test_the_end_names_what_could_not_be_written(log: LossLog, topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    topic.is_reachable = False
    log.add(losses(2 * KEPT))
    with caplog.at_level(logging.ERROR):
        log.close()
    assert caplog.messages == ["A->B: losses of 20,000 records are not recorded: it does not answer"]


def test_the_keys_that_are_known_are_bounded_and_those_reported_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.status.losses.KNOWN", 3)
    newest = NewestLosses()
    one, two, three, four = losses(4)
    newest.add_all([one, two, three, one, four])
    assert newest.add_all([one, three, four]) == []
    assert newest.add_all([two]) == [two]


def test_totals_count_each_loss_once_also_those_that_are_not_kept(log: LossLog, topic: Topic) -> None:
    topic.recorded = losses(2 * KEPT)
    assert log.totals == {}, "not known before the topic was read"
    log.begin()
    log.add(losses(3 * KEPT))
    assert log.totals[LossCause.TARGET_DELETED] == LossTotal(3 * KEPT, 30 * KEPT)
    assert log.totals[LossCause.SOURCE_CUT] == LossTotal(0, 0)


def test_totals_never_fall_from_run_to_run(log: LossLog, topic: Topic) -> None:
    before = {cause: LossTotal(7, 70) for cause in LossCause}
    log.show(losses(3), before)
    assert log.totals == before
    topic.recorded = losses(3)
    log.begin()
    assert log.totals == before, "those that were not written are gone from memory, not from the count"
    log.add(losses(10))
    assert log.totals[LossCause.TARGET_DELETED] == LossTotal(10, 100)


def test_of_a_topic_that_may_not_be_read_only_the_losses_of_this_process_are_counted(
    log: LossLog, topic: Topic
) -> None:
    """It may have any number of earlier ones: no cause is known to have none."""
    topic.refusal = TOPIC_AUTHORIZATION_FAILED
    log.show(losses(3), {})
    assert list(log.begin()) == []
    assert log.totals == {}
    log.add(losses(5))
    assert log.totals == {LossCause.TARGET_DELETED: LossTotal(2, 20)}
    assert list(log.write()) == []
    assert topic.recorded == losses(5)[3:]


def test_the_next_run_counts_on_where_the_topic_may_not_be_read(log: LossLog, topic: Topic) -> None:
    topic.refusal = TOPIC_AUTHORIZATION_FAILED
    log.show(losses(3), {LossCause.TARGET_DELETED: LossTotal(3, 30)})
    log.begin()
    log.add(losses(4))
    assert log.totals == {LossCause.TARGET_DELETED: LossTotal(4, 40)}

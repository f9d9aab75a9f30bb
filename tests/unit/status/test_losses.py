"""A loss as a record: its bytes never change, foreign bytes are no loss, and the same event counts once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.executor.contract.task_report import TaskEvents, TaskReport
from heliograph.model import Flow
from heliograph.status.json_views import loss_json
from heliograph.status.losses import Loss, LossCause, NewestLosses, decode_loss, encode_loss, loss_members, loss_of

LOSS = Loss(
    1_700_000_000_123,
    Flow("A", "B"),
    "orders",
    3,
    10,
    19,
    10,
    LossCause.SOURCE_TRUNCATED,
    "7b1c0a52-0000-0000-0000-000000000001",
)
KEY = b'["A","B","orders",3]'
VALUE = (
    b'{"at_ms":1700000000123,"source":"A","target":"B","topic":"orders","partition":3,"first_offset":10,'
    b'"last_offset":19,"count":10,"count_is_exact":true,"cause":"source_truncated",'
    b'"topic_id":"7b1c0a52-0000-0000-0000-000000000001"}'
)

LATEST_MS = 253_402_300_799_999

offsets = st.none() | st.integers(0, 2**63 - 1)
losses = st.builds(
    Loss,
    at_ms=st.integers(0, LATEST_MS),
    flow=st.builds(Flow, st.text(max_size=20), st.text(max_size=20)),
    topic=st.from_regex(r"[a-zA-Z0-9_-]{1,249}", fullmatch=True),
    partition=st.integers(0, 2**31 - 1),
    first_offset=offsets,
    last_offset=offsets,
    count=st.integers(0, 2**63 - 1),
    cause=st.sampled_from(LossCause),
    topic_id=st.none() | st.uuids().map(str),
    is_exact=st.booleans(),
)


def test_the_record_has_these_bytes() -> None:
    assert encode_loss(LOSS) == (KEY, VALUE)
    assert decode_loss(VALUE) == LOSS


def test_the_causes_have_these_names() -> None:
    assert [cause.value for cause in LossCause] == [
        "source_truncated",
        "source_cut",
        "source_recreated",
        "record_too_large",
        "left_out",
        "target_deleted",
        "target_cut",
    ]


@given(losses)
def test_every_loss_is_read_as_it_was_written(loss: Loss) -> None:
    assert decode_loss(encode_loss(loss)[1]) == loss
    assert loss_of(loss_members(loss)) == loss
    assert loss_json("A->B", loss)["at"].endswith("Z")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_loss_or_none(value: bytes) -> None:
    assert decode_loss(value) is None or isinstance(decode_loss(value), Loss)


@pytest.mark.parametrize(
    "change",
    [
        {"cause": "unknown"},
        {"partition": -1},
        {"count": True},
        {"count": 2**63},
        {"topic": None},
        {"topic": "t" * 250},
        {"topic": "orders\x1b[2J"},
        {"topic": ""},
        {"source": "A" * 1001},
        {"at_ms": "now"},
        {"at_ms": LATEST_MS + 1},
        {"first_offset": 1.5},
        {"topic_id": 7},
    ],
)
def test_a_member_that_cannot_be_one_makes_no_loss(change: dict[str, object]) -> None:
    assert loss_of({**loss_members(LOSS), **change}) is None


@pytest.mark.parametrize("value", [None, b"", b"[]", b"7", b"null", b"[" * 10_000])
def test_other_bytes_are_no_loss(value: bytes | None) -> None:
    assert decode_loss(value) is None


def test_the_end_of_a_log_of_which_nothing_was_copied_is_not_known() -> None:
    events = TaskEvents(Flow("A", "B"))
    events.lose(LOSS.tp, LossCause.TARGET_DELETED, (0, -1), 74_600)
    (loss,) = TaskReport.from_json(TaskReport(losses=events.take_losses()).to_json()).losses
    assert (loss.first_offset, loss.last_offset, loss.count) == (0, None, 74_600)


def test_a_loss_that_is_reported_again_counts_once() -> None:
    newest = NewestLosses()
    assert newest.add_all([LOSS, replace(LOSS, at_ms=LOSS.at_ms + 5)]) == [LOSS]
    further = replace(LOSS, first_offset=20, last_offset=29)
    assert newest.add_all([further]) == [further]


def test_a_deleted_topic_is_lost_once_whatever_is_known_of_its_size() -> None:
    gone = replace(LOSS, cause=LossCause.TARGET_DELETED)
    newest = NewestLosses()
    assert newest.add_all([gone, replace(gone, last_offset=25, count=16)]) == [gone]
    other = replace(gone, topic_id="another")
    assert newest.add_all([other]) == [other]
    without_id = replace(gone, topic_id=None)
    assert len(newest.add_all([without_id, replace(without_id, last_offset=25)])) == 2


def test_only_the_newest_are_kept_and_come_first() -> None:
    newest = NewestLosses(kept=2)
    three = [replace(LOSS, at_ms=at, first_offset=at) for at in (1, 2, 3)]
    newest.add_all(three)
    assert newest.newest_first == (three[2], three[1])
    assert newest.add_all([three[0]]) == [], "one that is not kept is still known"

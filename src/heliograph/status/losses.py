"""Records that source and target do not both have: one `Loss` for each event, with its record format and JSON.

A loss is detected by a task, travels in its reports, and is appended by the driver to the losses topic of its source on
the target. Delivery is at least once: `key` identifies a loss, and readers keep the first of those with the same key.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from heliograph.config.input_limits import is_topic_name
from heliograph.model import Flow, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT = 1_000
"""The number of losses of a flow that a process keeps in memory: the newest."""

KNOWN = 100_000
"""The number of losses of a flow that a process recognizes when they are reported again; at most 45 MB."""

_MOST_TEXT = 1_000
_MOST_NUMBER = 2**63 - 1
_LATEST_MS = 253_402_300_799_999  # the end of the year 9999


class LossCause(StrEnum):
    """The events after which source and target do not have the same records."""

    SOURCE_TRUNCATED = "source_truncated"  # retention deleted records before they were copied
    SOURCE_CUT = "source_cut"  # the target has records that an unclean election removed from the source
    SOURCE_RECREATED = "source_recreated"  # what was not copied of the deleted topic is gone
    RECORD_TOO_LARGE = "record_too_large"  # left out, by errors.tolerance=all
    LEFT_OUT = "left_out"  # by a user, who moved a partition past what was not copied
    TARGET_DELETED = "target_deleted"  # the remote topic was deleted with the records that were copied to it
    TARGET_CUT = "target_cut"  # the target's log ends before the last record that it acknowledged


_OF_WHOLE_TOPICS = (LossCause.SOURCE_RECREATED, LossCause.TARGET_DELETED)


@dataclass(frozen=True, slots=True)
class Loss:
    """One event. Topic, partition and offsets are the source's; None is not known.

    `topic_id` is the id of the topic that has lost records, on the source or on the target. `is_exact` is False if
    `count` is an estimate: what is known of it.
    """

    at_ms: int
    flow: Flow
    topic: str
    partition: int
    first_offset: int | None
    last_offset: int | None
    count: int
    cause: LossCause
    topic_id: str | None = None
    is_exact: bool = True

    @property
    def tp(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def key(self) -> tuple[object, ...]:
        """The identity of the event, the same in all its reports: a topic that has an id is lost once."""
        event = self.flow, self.topic, self.partition, self.cause, self.topic_id
        if self.cause in _OF_WHOLE_TOPICS and self.topic_id is not None:
            return event
        return *event, self.first_offset, self.last_offset


def encode_loss(loss: Loss) -> tuple[bytes, bytes]:
    """Return key and value of a record of the losses topic."""
    key = json.dumps([*loss.flow, *loss.tp], separators=(",", ":"), ensure_ascii=False)
    return key.encode(), json.dumps(loss_members(loss), separators=(",", ":"), ensure_ascii=False).encode()


def decode_loss(value: bytes | None) -> Loss | None:
    """Return the loss of a record; None if it has another format."""
    try:
        return loss_of(json.loads(value or b""))
    except (ValueError, RecursionError):
        return None


def loss_of(members: Any) -> Loss | None:
    """Return the loss of decoded JSON; None if a member is missing or cannot be one. Unknown members are ignored."""
    try:
        flow = Flow(_text(members["source"]), _text(members["target"]))
        topic_id = members.get("topic_id")
        return Loss(
            _number(members["at_ms"], _LATEST_MS),
            flow,
            _topic(members["topic"]),
            _number(members["partition"]),
            _number_or_none(members["first_offset"]),
            _number_or_none(members["last_offset"]),
            _number(members["count"]),
            LossCause(members["cause"]),
            None if topic_id is None else _text(topic_id),
            members.get("count_is_exact") is not False,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def loss_members(loss: Loss) -> dict[str, Any]:
    """Return the JSON members from which `loss_of` makes the loss again."""
    return {
        "at_ms": loss.at_ms,
        "source": loss.flow.source,
        "target": loss.flow.target,
        "topic": loss.topic,
        "partition": loss.partition,
        "first_offset": loss.first_offset,
        "last_offset": loss.last_offset,
        "count": loss.count,
        "count_is_exact": loss.is_exact,
        "cause": loss.cause.value,
        "topic_id": loss.topic_id,
    }


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        raise ValueError("not a text")
    return value


def _topic(value: object) -> str:
    topic = _text(value)
    if not is_topic_name(topic):
        raise ValueError("not a topic")
    return topic


def _number(value: object, most: int = _MOST_NUMBER) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError("not a number")
    return value


def _number_or_none(value: object) -> int | None:
    return None if value is None else _number(value)


class NewestLosses:
    """The newest losses of a flow, each once. Not thread-safe.

    A loss is known by its key. Of these there are many more than losses that are kept: a flow of many partitions may
    report the same losses again and again. Beyond `KNOWN` the keys that were reported least recently are forgotten, and
    such a loss would count as a new one.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._losses: deque[Loss] = deque(maxlen=kept)
        self._keys: dict[tuple[object, ...], None] = {}
        self._totals = dict.fromkeys(LossCause, (0, 0))

    def add(self, loss: Loss) -> bool:
        """Add a loss, in the order of their times; return whether it was not known."""
        key = loss.key
        is_new = key not in self._keys
        if is_new:
            self._losses.append(loss)
            events, records = self._totals[loss.cause]
            self._totals[loss.cause] = events + 1, records + loss.count
        else:
            del self._keys[key]
        self._keys[key] = None
        if len(self._keys) > KNOWN:
            del self._keys[next(iter(self._keys))]
        return is_new

    def add_all(self, losses: Iterable[Loss]) -> list[Loss]:
        """Add losses in the order of their times; return those that were not known."""
        return [loss for loss in losses if self.add(loss)]

    @property
    def totals(self) -> dict[LossCause, tuple[int, int]]:
        """The numbers of events and records of each cause, also of losses that are no longer kept."""
        return dict(self._totals)

    @property
    def newest_first(self) -> tuple[Loss, ...]:
        """All that are kept, the newest first."""
        return tuple(sorted(self._losses, key=lambda loss: loss.at_ms, reverse=True))

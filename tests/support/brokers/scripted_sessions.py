"""Fetch sessions (KIP-227) as a broker keeps them, for the scripted one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka.protocol.consumer import FetchResponse

if TYPE_CHECKING:
    from tests.support.brokers.scripted_broker import ScriptedCluster

_NOT_LEADER, _SESSION_NOT_FOUND, _INVALID_EPOCH = 6, 70, 71
_OUT_OF_RANGE, _FENCED_LEADER_EPOCH, _UNKNOWN_LEADER_EPOCH = 1, 74, 75
_Topic = FetchResponse.FetchableTopicResponse


def epoch_refusal(named: int, current: int) -> int:
    """What a leader says to somebody who takes it for the leader of an epoch (-1: of whichever)."""
    if named in (-1, current):
        return 0
    return _FENCED_LEADER_EPOCH if named < current else _UNKNOWN_LEADER_EPOCH


@dataclass
class _Session:
    node_id: int
    epoch: int = 0
    places: dict[tuple[str, int], int] = field(default_factory=dict)
    leader_epochs: dict[tuple[str, int], int] = field(default_factory=dict)
    reported: set[tuple[str, int]] = field(default_factory=set)


class FetchSessions:
    """All sessions of a cluster; `grants` False is a broker whose memory for them is full.

    `refusals` are error codes a broker answers for a partition as long as they are there.
    """

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.grants = True
        self.refusals: dict[tuple[int, tuple[str, int]], int] = {}
        self.open: dict[int, _Session] = {}
        self._cluster = cluster
        self._next_id = 100

    def forget_all(self) -> None:
        self.open.clear()

    def answer(self, node_id: int, request: Any, code: int | None) -> Any:
        if code:
            return _response(code, 0, {})
        session_id, session = self._session(node_id, request)
        if session is None:
            return _response(session_id, 0, {})
        for topic in request.topics:
            for p in topic.partitions:
                session.places[topic.topic, p.partition] = p.fetch_offset
                session.leader_epochs[topic.topic, p.partition] = p.current_leader_epoch
        for topic in request.forgotten_topics_data or ():
            for number in topic.partitions:
                session.places.pop((topic.topic, number), None)
                session.reported.discard((topic.topic, number))
        deadline = time.monotonic() + request.max_wait_ms / 1000
        while not (snapshot := self._news(session, request.rack_id)) and time.monotonic() < deadline:
            time.sleep(0.002)
        session.reported.update(snapshot)
        return _response(0, session_id, snapshot)

    def _session(self, node_id: int, request: Any) -> tuple[int, _Session | None]:
        """The session of a request and its id; without one, an error code."""
        if request.session_epoch <= 0:
            self.open.pop(request.session_id, None)
            session = _Session(node_id)
            if not self.grants:
                return 0, session
            self._next_id += 1
            self.open[self._next_id] = session
            return self._next_id, session
        known = self.open.get(request.session_id)
        if known is None or known.node_id != node_id:
            return _SESSION_NOT_FOUND, None
        if request.session_epoch != known.epoch + 1:
            return _INVALID_EPOCH, None
        known.epoch += 1
        return request.session_id, known

    def _news(self, session: _Session, rack: str) -> dict[tuple[str, int], Any]:
        found = {}
        for tp, offset in session.places.items():
            data = self._data(session, tp, offset, rack)
            if tp not in session.reported or data.records or data.error_code or data.preferred_read_replica >= 0:
                found[tp] = data
        return found

    def _data(self, session: _Session, tp: tuple[str, int], offset: int, rack: str) -> Any:
        cluster, node_id = self._cluster, session.node_id
        with cluster.lock:
            leader, replica = cluster.leaders.get(tp), cluster.read_replicas.get(tp, -1) if rack else -1
            records, end = cluster.logs[tp].since(offset), cluster.logs[tp].end
            refusal = epoch_refusal(session.leader_epochs[tp], cluster.leader_epochs[tp])
        is_sent_away = node_id == leader and replica not in (-1, node_id)
        refusal = refusal or (_OUT_OF_RANGE if offset > end else 0)
        code = self.refusals.get((node_id, tp), refusal if node_id in (leader, replica) else _NOT_LEADER)
        is_sent_away = is_sent_away and not code
        return _Topic.PartitionData(
            partition_index=tp[1],
            error_code=code,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=0,
            aborted_transactions=None,
            preferred_read_replica=replica if is_sent_away else -1,
            records=None if code or is_sent_away else records,
        )


def _response(code: int, session_id: int, snapshot: dict[tuple[str, int], Any]) -> Any:
    by_topic: dict[str, list[Any]] = {}
    for (topic, _p), data in snapshot.items():
        by_topic.setdefault(topic, []).append(data)
    return FetchResponse(
        throttle_time_ms=0,
        error_code=code,
        session_id=session_id,
        responses=[_Topic(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()],
    )

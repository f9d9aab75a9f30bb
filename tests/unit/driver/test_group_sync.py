"""Moving many groups on the target: few requests, one forbidden group harms no other, and none in use is touched."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from heliograph.config.validate.dedicated_file import load
from heliograph.driver.loops import checkpoint_sync
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.errors import BrokerError, UnreachableError
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.admin.coordinators import GroupAnswers
from heliograph.kafka.request_options import EARLIEST
from heliograph.mirror.groups.checkpoints import WrittenCheckpoints
from heliograph.mirror.groups.moved_offsets import MovedOffsets
from heliograph.model import Address, Checkpoint, CommittedOffset, Flow, OffsetSync, TopicPartition
from heliograph.wire.batches.log_records import LogRecord
from heliograph.wire.records.mirror_records import encode_offset_sync
from tests.support.config_files import FakeLookup, minimal

REMOTE = TopicPartition("A.t", 0)
NAMES = [f"group-{n}" for n in range(250)]
BROKERS = [Address("b", n) for n in range(3)]
FORBIDDEN, UNKNOWN_MEMBER, NO_COORDINATOR = 30, 25, 15
LOG_END = 100


class Target:
    """Stands for the admin client of a cluster of three brokers whose groups have offsets in one partition."""

    def __init__(self, alias: str = "B", tp: TopicPartition = REMOTE, names: Sequence[str] = NAMES) -> None:
        self.alias, self.tp, self.timeout_s = alias, tp, 1.0
        self.committed = dict.fromkeys(names, 10)
        self.log_start = 0
        self.lists_forbidden = False  # as a cluster does for those who may describe it
        self.forbidden: set[str] = set()
        self.lost: set[str] = set()  # no broker coordinates them now, so that none lists them
        self.silent: set[Address] = set()
        self.active: set[str] = set()
        self.asked: Counter[Any] = Counter()
        self.searches = 0  # for coordinators
        self.before: dict[Any, Callable[[], None]] = {}

    def view(self, _topics: object) -> Any:
        return SimpleNamespace(brokers=dict(enumerate(BROKERS)), topic_ids={})

    def known_offsets(self, tps: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        self.asked["starts" if timestamp == EARLIEST else "ends"] += 1
        return dict.fromkeys(tps, self.log_start if timestamp == EARLIEST else LOG_END)

    def ask_any(self, _request: Any, _response: Any, build: Any, *, newest: int) -> Any:
        found = [
            SimpleNamespace(
                key=group, error_code=NO_COORDINATOR if group in self.lost else 0, host="b", port=self.port_of(group)
            )
            for group in build(newest).coordinator_keys
        ]
        self.searches += 1
        return SimpleNamespace(API_VERSION=newest, coordinators=found)

    @staticmethod
    def broker_of(group: str) -> Address:
        return BROKERS[int(group.rpartition("-")[2]) % len(BROKERS)]

    def port_of(self, group: str) -> int:
        return self.broker_of(group).port

    def ask_at(self, broker: Address, kind: Any, _response: Any, build: Any, *, newest: int, oldest: int = 0) -> Any:
        assert oldest <= newest
        self.asked[kind] += 1
        if broker in self.silent:
            raise UnreachableError(f"{broker} stopped answering")
        self.before.pop(kind, lambda: None)()
        request = build(newest)
        if kind is ListGroupsRequest:
            return self._list(broker)
        if kind is DescribeGroupsRequest:
            states = [
                SimpleNamespace(group_id=group, error_code=self._code(group), group_state=self._state(group))
                for group in request.groups
            ]
            return SimpleNamespace(groups=states)
        if kind is OffsetFetchRequest:
            groups = [self._offsets(asked.group_id) for asked in request.groups]
            return SimpleNamespace(API_VERSION=newest, groups=groups)
        assert kind is OffsetCommitRequest
        return self._commit(request)

    def _code(self, group: str) -> int:
        return FORBIDDEN if group in self.forbidden else 0

    def _state(self, group: str) -> str:
        return "Stable" if group in self.active else "Empty"

    def _list(self, broker: Address) -> Any:
        shown = [
            SimpleNamespace(
                group_id=group, group_state=self._state(group), protocol_type="consumer", group_type="classic"
            )
            for group in self.committed
            if self.broker_of(group) == broker and group not in self.lost
            if self.lists_forbidden or group not in self.forbidden
        ]
        return SimpleNamespace(error_code=0, groups=shown)

    def _offsets(self, group: str) -> Any:
        partition = SimpleNamespace(
            partition_index=0, error_code=0, committed_offset=self.committed.get(group, -1), metadata=""
        )
        topics = [] if group in self.forbidden else [SimpleNamespace(name=self.tp.topic, partitions=[partition])]
        return SimpleNamespace(group_id=group, error_code=self._code(group), topics=topics)

    def _commit(self, request: Any) -> Any:
        code = UNKNOWN_MEMBER if request.group_id in self.active else self._code(request.group_id)
        if not code:
            self.committed[request.group_id] = request.topics[0].partitions[0].committed_offset
        partition = SimpleNamespace(partition_index=0, error_code=code)
        return SimpleNamespace(topics=[SimpleNamespace(name=self.tp.topic, partitions=[partition])])


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
def sync(target: Target) -> CheckpointSync:
    """Every group has a checkpoint at 50, and reads the partition at the source."""
    made = CheckpointSync(load(minimal("sync.group.offsets.enabled=true"), FakeLookup()), Flow("A", "B"))
    made.close()
    made.groups = tuple(NAMES)
    made._known = WrittenCheckpoints(Checkpoint(group, REMOTE, 55, 50) for group in NAMES)
    made._read = {group: {REMOTE} for group in NAMES}
    made._target = target  # type: ignore[assignment]
    made._target_groups = GroupAdmin(target, "READ")  # type: ignore[arg-type]
    return made


def test_groups_are_listed_once_however_many_are_moved(target: Target, sync: CheckpointSync) -> None:
    assert list(sync.sync_groups()) == []
    assert target.committed == dict.fromkeys(NAMES, 50)
    chunks = 3  # of a hundred groups each
    assert target.asked == {
        ListGroupsRequest: len(BROKERS),
        OffsetFetchRequest: chunks * len(BROKERS),
        "starts": chunks,
        "ends": chunks,
        OffsetCommitRequest: len(NAMES),
    }


def test_a_forbidden_group_is_reported_by_name_and_the_others_are_moved(target: Target, sync: CheckpointSync) -> None:
    target.forbidden = {"group-7"}
    assert list(sync.sync_groups()) == ["'B' does not let us use the group 'group-7'; the principal needs READ on it."]
    assert target.committed == dict.fromkeys(NAMES, 50) | {"group-7": 10}
    assert target.asked[ListGroupsRequest] == len(BROKERS)
    assert target.asked[DescribeGroupsRequest] == 1


def test_committed_offsets_of_the_others_are_returned_if_one_group_is_forbidden(target: Target) -> None:
    target.forbidden = {"group-7", "group-8"}
    reported = GroupAdmin(target).committed_answered(NAMES)  # type: ignore[arg-type]
    assert set(reported.of) == set(NAMES) - target.forbidden
    (issue,) = reported.issues
    assert "'group-7', 'group-8'" in issue
    assert target.asked == {OffsetFetchRequest: len(BROKERS)}
    with pytest.raises(BrokerError, match="'group-7', 'group-8'; the principal needs DESCRIBE"):
        GroupAdmin(target).committed(NAMES)  # type: ignore[arg-type]


def test_a_group_in_use_is_not_touched(target: Target, sync: CheckpointSync) -> None:
    target.active = {"group-7"}
    assert list(sync.sync_groups()) == []
    assert target.committed == dict.fromkeys(NAMES, 50) | {"group-7": 10}
    assert target.asked[OffsetCommitRequest] == len(NAMES) - 1


def test_a_group_that_gets_members_meanwhile_keeps_its_offsets(
    target: Target, sync: CheckpointSync, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker refuses; that is no trouble, but it is told."""
    caplog.set_level(logging.INFO)
    target.before[OffsetCommitRequest] = lambda: target.active.add("group-7")
    assert list(sync.sync_groups()) == []
    assert target.committed == dict.fromkeys(NAMES, 50) | {"group-7": 10}
    assert "A->B: the group 'group-7' is in use on 'B'; it keeps its offsets" in caplog.messages


def test_a_group_that_went_on_while_others_were_moved_is_not_set_back(target: Target, sync: CheckpointSync) -> None:
    target.before[OffsetCommitRequest] = lambda: target.committed.update({"group-249": 70})
    assert list(sync.sync_groups()) == []
    assert target.committed == dict.fromkeys(NAMES, 50) | {"group-249": 70}


def test_an_offset_past_the_end_of_the_log_is_replaced(target: Target, sync: CheckpointSync) -> None:
    target.committed |= {"group-7": LOG_END + 1, "group-8": LOG_END}
    assert list(sync.sync_groups()) == []
    assert target.committed == dict.fromkeys(NAMES, 50) | {"group-8": LOG_END}


@pytest.mark.parametrize("mark", [(), None])
def test_a_group_at_the_start_of_the_log_is_moved_again_after_a_restart_and_an_upgrade(
    target: Target, sync: CheckpointSync, mark: tuple[int, ...] | None
) -> None:
    written = [Checkpoint(group, REMOTE, 55, 50, "", mark) for group in NAMES]
    target.log_start, target.committed = 60, dict.fromkeys(NAMES, 60)
    target.active = {NAMES[1]}
    sync._known, sync._moved = WrittenCheckpoints(written), MovedOffsets(written)
    assert list(sync.sync_groups()) == []
    target.active = set()
    sync._known = WrittenCheckpoints(each._replace(downstream=70) for each in written)
    assert list(sync.sync_groups()) == []
    assert target.committed == dict.fromkeys(NAMES, 70)


def test_a_checkpoint_before_the_start_of_the_log_moves_groups_to_its_start(
    target: Target, sync: CheckpointSync
) -> None:
    """An offset before it would send consumers to `auto.offset.reset`: by default past every record."""
    target.log_start = 60
    assert list(sync.sync_groups()) == []
    assert target.committed == dict.fromkeys(NAMES, 60)


class StoppedError(Exception):
    """The loop was stopped."""


class Stop:
    """Lets a work go on until the test stops it."""

    def __init__(self) -> None:
        self.is_set = False

    def check(self) -> None:
        if self.is_set:
            raise StoppedError


def test_a_loop_that_is_stopped_moves_no_further_group(target: Target, sync: CheckpointSync) -> None:
    stop = Stop()
    sync.check_before_writes(stop.check)
    target.before[OffsetCommitRequest] = lambda: setattr(stop, "is_set", True)
    with pytest.raises(StoppedError):
        list(sync.sync_groups())
    assert target.asked[OffsetCommitRequest] == 1, "the one that was under way"


@pytest.mark.parametrize("stopped_in", ["reading offsets", "reading syncs", "writing"])
def test_a_loop_that_is_stopped_writes_no_checkpoint(
    sync: CheckpointSync, monkeypatch: pytest.MonkeyPatch, stopped_in: str
) -> None:
    stop, done = Stop(), list[str]()
    tp = TopicPartition("t", 0)
    syncs = [LogRecord(n, *encode_offset_sync(OffsetSync(tp, n, n)), []) for n in (50, 60)]

    def reach(what: str) -> None:
        done.append(what)
        stop.is_set = stop.is_set or what == stopped_in

    def committed_answered(groups: list[str]) -> GroupAnswers[Any]:
        reach("reading offsets")
        return GroupAnswers({group: {tp: CommittedOffset(55, "")} for group in groups})

    def read_new() -> Iterator[LogRecord]:
        for record in syncs:
            reach("reading syncs")
            yield record

    def write(_admin: Any, _tp: Any, records: list[Any], before_try: Callable[[], None], **_limits: float) -> None:
        before_try()
        done.append(f"{len(records)} written")
        reach("writing")

    sync.groups = ("new",)
    sync.check_before_writes(stop.check)
    sync._source_groups = SimpleNamespace(committed_answered=committed_answered)  # type: ignore[assignment]
    sync._syncs._tail = SimpleNamespace(read_new=read_new, recreations=0)  # type: ignore[assignment]
    sync._noted = SimpleNamespace(note=lambda _partitions: reach("noting"))  # type: ignore[assignment]
    monkeypatch.setattr(checkpoint_sync, "write_records", write)
    with pytest.raises(StoppedError):
        sync.emit()
    in_order = ["reading offsets", "reading syncs", "reading syncs", "1 written", "writing", "noting"]
    ends_at = {"reading offsets": 2, "reading syncs": 2, "writing": 5}  # after the chunk that was being read
    assert done == in_order[: ends_at[stopped_in]]


def test_a_round_in_which_no_group_moves_sets_nothing(target: Target, sync: CheckpointSync) -> None:
    target.committed = dict.fromkeys(NAMES, 50)
    assert list(sync.sync_groups()) == []
    assert target.asked == {ListGroupsRequest: len(BROKERS), OffsetFetchRequest: 3 * len(BROKERS)}

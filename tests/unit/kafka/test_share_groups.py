"""Groups of all types: share groups are followed, and a name that a group of another type has is not free."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kafka.protocol.consumer import OffsetCommitRequest

from heliograph.cli.main import cli
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.steps.issues import log_change
from heliograph.errors import BrokerError, GroupActiveError, UnreachableError
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.admin.share_groups import AlterShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequest
from heliograph.kafka.error_codes import UNSUPPORTED_VERSION
from heliograph.mirror.groups.checkpoints import WrittenCheckpoints
from heliograph.mirror.groups.group_view import STREAMS_NOT_FOLLOWED
from heliograph.model import (
    Address,
    Checkpoint,
    CommittedOffset,
    Flow,
    GroupType,
    OffsetRun,
    OffsetSync,
    TopicPartition,
)
from heliograph.wire.batches.log_records import LogRecord
from heliograph.wire.records.mirror_records import encode_checkpoint, encode_offset_sync, encode_runs
from tests.support.config_files import FakeLookup, minimal
from tests.unit.driver.test_group_sync import LOG_END, REMOTE, Target

log = logging.getLogger(__name__)

SOURCE = TopicPartition("t", 0)
NOT_EMPTY, NOT_FOUND, NO_PERMISSION = 68, 69, 30


class Cluster(Target):
    """A cluster that has groups of all types; `starts` are those of share groups, each with its lag."""

    def __init__(self, alias: str, tp: TopicPartition) -> None:
        super().__init__(alias, tp, [])
        self.starts: dict[str, tuple[int, int]] = {}
        self.streams: set[str] = set()
        self.has_share_groups = True
        self.share_version = 1
        self.refuses = 0  # the code with which it answers a request to set a start offset
        self.end = LOG_END
        self.grows = False

    def known_offsets(self, tps: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        found = super().known_offsets(tps, timestamp)
        if timestamp == -2:
            return found
        self.end += self.grows
        return dict.fromkeys(found, self.end)

    def ask_at(self, broker: Address, kind: Any, response: Any, build: Any, *, newest: int, oldest: int = 0) -> Any:
        if kind in (DescribeShareGroupOffsetsRequest, AlterShareGroupOffsetsRequest):
            self.asked[kind] += 1
            if not self.has_share_groups:
                raise BrokerError(f"the broker {broker} does not speak {kind.__name__}", UNSUPPORTED_VERSION)
            request = build(newest)
            return self._alter(request) if kind is AlterShareGroupOffsetsRequest else self._describe(request)
        return super().ask_at(broker, kind, response, build, newest=newest, oldest=oldest)

    def _list(self, broker: Address) -> Any:
        answer = super()._list(broker)
        for type_, groups in (("share", self.starts), ("streams", self.streams)):
            answer.groups += [
                SimpleNamespace(
                    group_id=group, group_state=self._state(group), protocol_type=type_, group_type=type_.title()
                )
                for group in groups
                if self.broker_of(group) == broker
            ]
        return answer

    def _state(self, group: str) -> str:
        is_here = group in {*self.committed, *self.starts, *self.streams}
        return super()._state(group) if is_here else "Dead"

    def _describe(self, request: Any) -> Any:
        return SimpleNamespace(groups=[self._described(asked.group_id) for asked in request.groups])

    def _described(self, group: str) -> Any:
        start, lag = self.starts.get(group, (-1, -1))
        partition = SimpleNamespace(
            partition_index=self.tp.partition, start_offset=start, lag=lag, error_code=0, error_message=None
        )
        topics = [SimpleNamespace(topic_name=self.tp.topic, partitions=[partition])]
        code = self._code(group) if self.share_version else UNSUPPORTED_VERSION
        return SimpleNamespace(group_id=group, error_code=code, topics=[] if code else topics)

    def _alter(self, request: Any) -> Any:
        group = request.group_id
        code = self.refuses or (NOT_EMPTY if group in self.active else 0)
        code = code or (NOT_FOUND if group in {*self.committed, *self.streams} else 0)
        if not code:
            self.starts[group] = (request.topics[0].partitions[0].start_offset, -1)
        partition = SimpleNamespace(partition_index=self.tp.partition, error_code=0)
        topics = [SimpleNamespace(topic_name=self.tp.topic, partitions=[partition])]
        return SimpleNamespace(error_code=code, error_message=None, responses=[] if code else topics)

    def close(self) -> None:
        """Stay open."""


@pytest.fixture
def source() -> Cluster:
    return Cluster("A", SOURCE)


@pytest.fixture
def target() -> Cluster:
    return Cluster("B", REMOTE)


def admin_of(cluster: Cluster) -> GroupAdmin:
    return GroupAdmin(cluster, "READ")  # type: ignore[arg-type]


# --- what the brokers are asked ---------------------------------------------------------------------------------------


def test_groups_of_each_type_are_listed_by_their_type(source: Cluster) -> None:
    source.committed, source.starts, source.streams = {"c-0": 1}, {"s-0": (1, 0)}, {"streams-0"}
    listed = admin_of(source).groups_answered()
    assert listed.groups == {"c-0": "Empty"}
    assert listed.types == {"c-0": GroupType.CONSUMER, "s-0": GroupType.SHARE, "streams-0": GroupType.STREAMS}


def test_a_partition_in_which_a_share_group_did_nothing_has_no_offset(source: Cluster) -> None:
    source.starts = {"s-0": (-1, -1), "s-1": (7, 3)}
    reported = admin_of(source).offsets_of(["s-0", "s-1", "s-2"], dict.fromkeys(("s-0", "s-1", "s-2"), GroupType.SHARE))
    assert reported.of == {"s-0": {}, "s-1": {SOURCE: CommittedOffset(7)}, "s-2": {}}
    assert source.asked["ends"] == 0


def start_of(cluster: Cluster, group: str) -> int:
    return admin_of(cluster).offsets_of([group], {group: GroupType.SHARE}).of[group][SOURCE].offset


def test_a_share_group_that_has_done_all_is_at_the_end_of_the_log(source: Cluster) -> None:
    """Kafka writes its start offset down with the next acknowledgement, which may never come."""
    source.starts = {"s-0": (40, 0)}
    assert start_of(source, "s-0") == LOG_END


def test_a_lag_of_0_in_a_log_that_grows_says_nothing_about_its_end(source: Cluster) -> None:
    source.starts, source.grows = {"s-0": (40, 0)}, True
    assert start_of(source, "s-0") == 40


def test_a_share_group_that_lags_again_is_not_at_the_end(source: Cluster) -> None:
    source.starts = {"s-0": (40, 0)}
    ends, known = iter([0]), source.known_offsets

    def known_offsets(tps: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        for _first in ends:
            source.starts["s-0"] = (40, 3)
        return known(tps, timestamp)

    source.known_offsets = known_offsets  # type: ignore[method-assign]
    assert start_of(source, "s-0") == 40


def test_offsets_of_a_share_group_with_members_are_not_set(target: Cluster) -> None:
    target.starts, target.active = {"s-0": (5, 1)}, {"s-0"}
    with pytest.raises(GroupActiveError, match="active members"):
        admin_of(target).set_offsets("s-0", GroupType.SHARE, {REMOTE: CommittedOffset(9)})
    assert target.starts == {"s-0": (5, 1)}


def test_a_cluster_that_creates_no_share_group_is_named_with_the_remedy(target: Cluster) -> None:
    target.refuses = NOT_FOUND
    refused = admin_of(target).set_offsets("s-0", GroupType.SHARE, {REMOTE: CommittedOffset(9)})
    assert refused[REMOTE].startswith("the cluster has no share group of this name and does not create one; start")


def test_a_share_group_that_is_forbidden_is_named_with_the_permission(target: Cluster) -> None:
    target.starts, target.forbidden = {"s-0": (5, 1), "s-1": (6, 1)}, {"s-0"}
    reported = admin_of(target).offsets_of(["s-0", "s-1"], dict.fromkeys(target.starts, GroupType.SHARE))
    assert reported.issues == ("'B' does not let us use the group 's-0'; the principal needs READ on it.",)
    assert reported.of == {"s-1": {REMOTE: CommittedOffset(6)}}
    target.refuses = NO_PERMISSION
    with pytest.raises(BrokerError, match="the principal needs READ on it"):
        admin_of(target).set_offsets("s-1", GroupType.SHARE, {REMOTE: CommittedOffset(9)})


# --- `run` ------------------------------------------------------------------------------------------------------------


class Flows:
    """A checkpoint sync of A->B between two such clusters; everything on A has been copied to the same offsets."""

    def __init__(self, source: Cluster, target: Cluster, *lines: str) -> None:
        text = minimal("sync.group.offsets.enabled=true", "A->B.topics=t", *lines)
        self.sync = CheckpointSync(load(text, FakeLookup()), Flow("A", "B"))
        self.sync.close()
        self.sync._source, self.sync._target = source, target  # type: ignore[assignment]
        self.sync._source_groups, self.sync._target_groups = admin_of(source), admin_of(target)
        self.sync._syncs._tail = SimpleNamespace(read_new=lambda: iter(()), recreations=0)  # type: ignore[assignment]
        self.sync._syncs.known.take(OffsetSync(SOURCE, LOG_END - 1, LOG_END - 1, (OffsetRun(0, 0, LOG_END),)))
        self.status = FlowStatus(self.sync.flow)

    def round(self) -> list[str]:
        """One round of the loop, logged as `run` does."""
        issues = [*self.sync.refresh_groups(), *self.sync.sync_groups()]
        log_change(log, self.status.note("group offsets", issues), "A->B", issues)
        return issues


CLASH = (
    "'B' has a {there} group of this name, and this is a {here} group; delete that one with kafka-{there}-groups.sh, or"
    " give one of the two another name"
)

UNSUPPORTED = (
    "'B' does not support offsets of share groups, so those of 's-0' are not synced; Kafka 4.1 or newer does, with the"
    " feature share.version at 1 or higher."
)


def test_share_groups_on_the_target_follow_only_forward(source: Cluster, target: Cluster) -> None:
    flows = Flows(source, target)
    source.starts = {"s-0": (40, 3), "s-1": (40, 3), "s-2": (-1, -1)}
    target.starts = {"s-1": (60, 3)}
    assert flows.round() == []
    assert flows.sync.share_groups == ("s-0", "s-1", "s-2")
    assert target.starts == {"s-0": (40, -1), "s-1": (60, 3)}
    source.starts["s-0"] = (45, 2)
    assert flows.round() == []
    assert target.starts["s-0"] == (45, -1)
    source.starts["s-0"] = (30, 17)
    assert flows.round() == []
    assert target.starts["s-0"] == (45, -1)


def test_no_share_group_passes_what_is_not_copied(source: Cluster, target: Cluster) -> None:
    flows = Flows(source, target)
    source.starts, target.end = {"s-0": (90, 1)}, 80  # a copy that was made again, shorter
    assert flows.round() == []
    assert target.starts == {}


def test_a_share_group_in_use_on_the_target_is_not_touched(source: Cluster, target: Cluster) -> None:
    flows = Flows(source, target)
    source.starts, target.starts, target.active = {"s-0": (40, 3)}, {"s-0": (5, 9)}, {"s-0"}
    assert flows.round() == []
    assert target.starts == {"s-0": (5, 9)}
    assert target.asked[AlterShareGroupOffsetsRequest] == 0


def test_share_groups_have_no_checkpoints(source: Cluster, target: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    monkeypatch.setattr(
        "heliograph.driver.loops.checkpoint_sync.write_records",
        lambda _writer, _tp, records, *_check, **_limits: written.extend(records),
    )
    flows = Flows(source, target)
    source.starts = {"s-0": (40, 3)}
    assert flows.round() == []
    assert list(flows.sync.emit()) == []
    assert written == []


@pytest.mark.parametrize("line", ["heliograph.share.groups.enabled=false", "A->B.groups.exclude=s-.*"])
def test_share_groups_that_are_not_wanted_are_not_followed(source: Cluster, target: Cluster, line: str) -> None:
    flows = Flows(source, target, line)
    source.starts, source.committed = {"s-0": (40, 3)}, {"c-0": 1}
    assert flows.round() == []
    assert target.starts == {}
    assert source.asked[DescribeShareGroupOffsetsRequest] == 0


@pytest.mark.parametrize("there", ["share", "streams"])
def test_a_consumer_group_whose_name_another_type_has_is_reported_once_with_the_cause(
    source: Cluster, target: Cluster, caplog: pytest.LogCaptureFixture, there: str
) -> None:
    caplog.set_level(logging.INFO)
    flows = Flows(source, target)
    source.committed = {"g-0": 50, "g-1": 50}
    flows.sync._known = WrittenCheckpoints(Checkpoint(group, REMOTE, 50, 50) for group in source.committed)
    flows.sync._read = {group: {REMOTE} for group in source.committed}
    if there == "share":
        target.starts = {"g-0": (5, 9)}
    else:
        target.streams = {"g-0"}
    sentence = f"the consumer group 'g-0' is not moved: {CLASH.format(there=there, here='consumer')}"
    for _round in range(3):
        assert flows.round() == [sentence]
    assert target.committed == {"g-1": 50}, "the other group is moved"
    assert flows.status.issues == {"group offsets": (sentence,)}
    target.starts, target.streams = {}, set()
    for _round in range(2):
        assert flows.round() == []
    assert target.committed == {"g-0": 50, "g-1": 50}
    assert [message for message in caplog.messages if "following" not in message] == [
        f"A->B: {sentence} (will be tried again)",
        "A->B: recovered",
    ]


def test_a_share_group_whose_name_a_consumer_group_has_is_reported(source: Cluster, target: Cluster) -> None:
    flows = Flows(source, target)
    source.starts, target.committed = {"s-0": (40, 3)}, {"s-0": 7}
    assert flows.round() == [f"the share group 's-0' is not moved: {CLASH.format(there='consumer', here='share')}"]
    assert (target.starts, target.committed) == ({}, {"s-0": 7})


def test_a_share_group_of_other_topics_is_no_concern_of_the_flow(source: Cluster, target: Cluster) -> None:
    flows = Flows(source, target, "A->B.topics.exclude=t")
    source.starts, target.committed = {"s-0": (40, 3)}, {"s-0": 7}
    assert flows.round() == []


@pytest.mark.parametrize("old", ["A", "B"])
@pytest.mark.parametrize("lacks", ["has_share_groups", "share_version"])
def test_a_cluster_without_share_groups_is_reported_once_and_is_no_failure(
    source: Cluster, target: Cluster, caplog: pytest.LogCaptureFixture, old: str, lacks: str
) -> None:
    """Its brokers do not know the requests, or know them and have the feature switched off."""
    flows = Flows(source, target)
    source.starts = {"s-0": (40, 3)}
    setattr(source if old == "A" else target, lacks, 0)
    for _round in range(3):
        assert flows.round() == []
    (warning,) = (record.message for record in caplog.records if record.levelno == logging.WARNING)
    assert warning == f"A->B: {UNSUPPORTED.replace('B', old)}"


# --- the commands -----------------------------------------------------------------------------------------------------


class Site:
    """The commands between two such clusters."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.checkpointed: tuple[str, ...] = ()

    def records(self, _admin: object, topic: str) -> Iterator[LogRecord]:
        if "checkpoints" in topic:
            for group in self.checkpointed:
                yield LogRecord(0, *encode_checkpoint(Checkpoint(group, REMOTE, 40, 40, "")), [])
        else:
            sync = encode_offset_sync(OffsetSync(SOURCE, LOG_END - 1, LOG_END - 1))
            yield LogRecord(0, *sync, [encode_runs([0, 0, LOG_END])])

    def run(self, command: str, *arguments: str) -> Result:
        return CliRunner().invoke(cli, [command, str(self.file), *arguments])

    def json(self, command: str, *arguments: str, code: int = 0) -> Any:
        result = self.run(command, *arguments, "--json")
        assert result.exit_code == code, (result.output, result.exception)
        return json.loads(result.output)

    def rows(self, *arguments: str) -> dict[str, dict[str, Any]]:
        (flow,) = self.json("groups", *arguments)["flows"]
        return {row["group"]: row for row in flow["groups"]}

    def left_out(self, *arguments: str) -> dict[str, str]:
        (flow,) = self.json("groups", *arguments)["flows"]
        return {each["group"]: each["why"] for each in flow["left_out"]}

    def moved(self, command: str, *arguments: str, code: int) -> dict[str, dict[str, Any]]:
        return {each["group"]: each for each in self.json(command, *arguments, code=code)["groups"]}


@pytest.fixture
def site(tmp_path: Path, source: Cluster, target: Cluster, monkeypatch: pytest.MonkeyPatch) -> Site:
    file = tmp_path / "mm2.properties"
    file.write_text(minimal("A->B.topics=t", "sync.group.offsets.enabled=true"))
    site = Site(file)
    at = "heliograph.operations.flow_groups"
    written = SimpleNamespace(target=target, source_offsets=target, close=lambda: None)
    monkeypatch.setattr(f"{at}.make_admin", lambda *_of: source)
    monkeypatch.setattr(f"{at}.TargetClients", lambda *_of: written)
    monkeypatch.setattr(f"{at}.read_topic", site.records)
    monkeypatch.setattr(f"{at}.read_offsets", lambda *_of: {})
    return site


def test_groups_and_failover_cover_share_groups(site: Site, source: Cluster, target: Cluster) -> None:
    source.starts, source.committed = {"s-0": (40, 3)}, {"c-0": 50}
    site.checkpointed = ("c-0", "s-0")  # the latter of a consumer group that had the name before
    row = site.rows()["s-0"]
    assert (row["type"], row["source_offset"], row["translated_offset"], row["target_offset"]) == (
        "share",
        40,
        40,
        None,
    )
    assert row["checkpoint_offset"] is None
    assert row["why_not"] == "the group's offset on the target is set next (sync.group.offsets.interval.seconds)"
    assert "  s-0 (share)  t-0 " in site.run("groups").output
    assert site.moved("failover", "--all", "--dry-run", code=0)["s-0"]["moved"]
    assert target.starts == {}
    moved = site.moved("failover", "--all", code=0)
    assert {group: (each["type"], each["moved"]) for group, each in moved.items()} == {
        "c-0": ("consumer", True), "s-0": ("share", True),
    }  # fmt: skip
    assert (target.starts, target.committed) == ({"s-0": (40, -1)}, {"c-0": 50})
    assert site.rows()["s-0"]["in_sync"]


def test_a_share_group_goes_home(site: Site, source: Cluster, target: Cluster) -> None:
    source.starts, target.starts = {"s-0": (40, 3)}, {"s-0": (70, 3)}
    assert site.moved("failback", "--all", code=0)["s-0"]["moved"]
    assert source.starts == {"s-0": (70, -1)}


@pytest.mark.parametrize(("there", "here"), [("share", "consumer"), ("streams", "consumer"), ("consumer", "share")])
def test_a_name_clash_is_shown_and_the_dry_run_refuses_what_the_run_refuses(
    site: Site, source: Cluster, target: Cluster, there: str, here: str
) -> None:
    for cluster, type_ in ((source, here), (target, there)):
        if type_ == "consumer":
            cluster.committed = {"g-0": 50}
        elif type_ == "share":
            cluster.starts = {"g-0": (50, 3)}
        else:
            cluster.streams = {"g-0"}
    site.checkpointed = ("g-0",) if here == "consumer" else ()
    why = CLASH.format(there=there, here=here)
    assert site.rows()["g-0"]["why_not"] == why
    dry = site.moved("failover", "--all", "--dry-run", code=1)
    assert dry == site.moved("failover", "--all", code=1)
    assert (dry["g-0"]["refused"], dry["g-0"]["state"], dry["g-0"]["partitions"]) == (why, "Empty", [])
    assert target.asked[AlterShareGroupOffsetsRequest] + target.asked[OffsetCommitRequest] == 0
    refused = site.moved("failback", "--group", "g-0", code=1)["g-0"]["refused"]
    back = CLASH.format(there=here, here=there).replace("'B'", "'A'")
    assert refused == (STREAMS_NOT_FOLLOWED if there == "streams" else back)


def test_groups_says_why_groups_of_other_types_are_left_out(site: Site, source: Cluster) -> None:
    source.starts, source.streams = {"s-0": (40, 3)}, {"app-0"}
    assert site.left_out() == {"app-0": STREAMS_NOT_FOLLOWED}
    site.file.write_text(site.file.read_text() + "\nheliograph.share.groups.enabled=false\n")
    share = "it is a share group, and heliograph.share.groups.enabled is false"
    assert site.left_out() == {"app-0": STREAMS_NOT_FOLLOWED, "s-0": share}
    assert f"  left out: s-0: {share}\n" in site.run("groups").output
    assert site.left_out("--group", "s-0") == {"s-0": share}
    assert site.moved("failover", "--group", "app-0", code=1)["app-0"]["refused"] == STREAMS_NOT_FOLLOWED


def test_a_target_without_share_groups_refuses_them_in_the_dry_run_too(
    site: Site, source: Cluster, target: Cluster
) -> None:
    source.starts, source.committed, target.has_share_groups = {"s-0": (40, 3)}, {"c-0": 50}, False
    assert site.left_out() == {"s-0": UNSUPPORTED}
    assert list(site.rows()) == ["c-0"]
    dry = site.moved("failover", "--all", "--dry-run", code=1)
    assert (dry["s-0"]["refused"], dry["c-0"]["moved"]) == (UNSUPPORTED, True)
    assert site.moved("failover", "--all", code=1)["s-0"]["refused"] == UNSUPPORTED


def test_a_share_group_cannot_move_by_checkpoints_where_the_source_is_gone(
    site: Site, source: Cluster, target: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_topics: object) -> None:
        raise UnreachableError("a:1 cannot be reached")

    monkeypatch.setattr(source, "view", refuse)
    target.starts = {"s-0": (40, 3)}
    refused = site.moved("failover", "--group", "s-0", code=1)["s-0"]["refused"]
    assert refused == "share groups have no checkpoints, and 'A' is unavailable"

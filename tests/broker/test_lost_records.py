"""Losses on real brokers: each is counted as a client counts it, decided as configured, and listed after a restart."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition as KafkaTopicPartition

from heliograph.cli.commands.losses import losses as losses_command
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.copy import log_changes, resume
from heliograph.kafka.request_options import READ_COMMITTED
from tests.conftest import running_cluster
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import wait_for
from tests.support.runs.day import Day, day

pytestmark = pytest.mark.broker

EXACTLY_ONCE = "target.exactly.once.source.support=enabled"
COMMITTED = {"isolation.level": "read_committed"}


@pytest.fixture(scope="module")
def own_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    yield from running_cluster("loss-source", tmp_path_factory.mktemp("loss-source"))


@pytest.fixture(scope="module")
def own_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    yield from running_cluster("loss-target", tmp_path_factory.mktemp("loss-target"))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, is_as_shipped: bool) -> None:
    if not is_as_shipped:
        for module in (log_changes, resume):
            monkeypatch.setattr(module, "_MISSING_TOPIC_TIMEOUT_S", 3.0)
        monkeypatch.setattr(log_changes, "_IDS_INTERVAL_S", 1.0)


@pytest.fixture
def is_as_shipped() -> bool:
    """Whether a deleted topic counts as deleted as late as for users."""
    return False


def delete_topic(cluster: EmbeddedCluster, topic: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    client.delete_topics([topic])
    client.close()
    wait_for(lambda: not list(Path(cluster.folder).glob(f"node-*/data/{topic}-[0-9]")))


def delete_before(cluster: EmbeddedCluster, topic: str, offset: int, partitions: int = 2) -> None:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    client.delete_records({KafkaTopicPartition(topic, p): offset for p in range(partitions)})
    client.close()


def recorded(flow: Day, cause: str | None = None) -> list[dict[str, Any]]:
    found = flow.get("/heliograph/v1/losses")[1]["losses"]
    return sorted((row for row in found if cause in (None, row["cause"])), key=lambda row: row["partition"])


def listed(source: EmbeddedCluster, target: EmbeddedCluster, alias: str, folder: Path) -> list[dict[str, Any]]:
    """The losses that the command reads from the target, without a process."""
    file = folder / "mm2.properties"
    file.write_text(
        f"clusters={alias}, target\n{alias}.bootstrap.servers={source.bootstrap}\n"
        f"target.bootstrap.servers={target.bootstrap}\n{alias}->target.enabled=true\n"
    )
    outcome = CliRunner().invoke(losses_command, [str(file), "--json"])
    assert outcome.exit_code == 0, outcome.output
    (flow,) = json.loads(outcome.stdout)["flows"]
    assert flow["total"] == len(flow["losses"])
    return sorted(flow["losses"], key=lambda row: row["partition"])


@contextmanager
def load(cluster: EmbeddedCluster, topic: str) -> Iterator[Callable[[], int]]:
    """Write records to both partitions until left; the function stops and returns how many each partition has."""
    stopping, counts = threading.Event(), [0]

    def run() -> None:
        while not stopping.is_set():
            first = counts[0]
            write(cluster, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(2 * first, 2 * first + 400)))
            counts[0] = first + 200
            time.sleep(0.02)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def stop() -> int:
        stopping.set()
        thread.join()
        return counts[0]

    try:
        yield stop
    finally:
        stop()


def deleted_under_load(flow: Day, remote: str, *, is_as_shipped: bool = False) -> tuple[int, list[int]]:
    """Delete the remote topic while records are copied; return the number written, and the ends before the deletion."""
    with load(flow.source, flow.topic) as stop:
        wait_for(lambda: min(flow.end(flow.target, remote, p, READ_COMMITTED) for p in range(2)) > 1000)
        ends = [flow.end(flow.target, remote, p) for p in range(2)]
        since = flow.begin_fault()
        delete_topic(flow.target, remote)
        if is_as_shipped:
            missing = f"the target has no topic {remote}"
            flow.noticed(
                "remote topic deleted",
                since,
                state=lambda: flow.state() == "retrying" and missing in flow.partition()["reason"],
                lag=lambda: flow.partition()["lag_records"],
                sums=lambda: flow.whole()["lag_records"],
                ready=lambda: flow.ready()[0] == 503 and missing in flow.ready()[1],
                trace=lambda: missing in flow.trace(),
                log=lambda: flow.log(f"^WARNING .*{missing}"),
            )
        flow.await_all("deletion recorded", since, 60.0, losses=lambda: len(recorded(flow, "target_deleted")) == 2)
        return stop(), ends


DELETIONS = [("recopy", (), True), ("continue", (), False)]
DELETIONS += [(on_deleted, (EXACTLY_ONCE,), False) for on_deleted in ("recopy", "continue")]


@pytest.mark.parametrize(
    ("on_deleted", "lines", "is_as_shipped"), DELETIONS, ids=lambda value: "exactly-once" if value else None
)
def test_a_remote_topic_deleted_under_load_is_an_error_with_the_number_of_records(
    own_source: EmbeddedCluster,
    own_target: EmbeddedCluster,
    topic: str,
    alias: str,
    on_deleted: str,
    lines: tuple[str, ...],
    is_as_shipped: bool,
    tmp_path: Path,
) -> None:
    make_topic(own_source, topic)
    remote = f"{alias}.{topic}"
    with day(own_source, own_target, alias, topic, f"heliograph.on.target.deleted={on_deleted}", *lines) as flow:
        written, ends = deleted_under_load(flow, remote, is_as_shipped=is_as_shipped)
        flow.cleared("remote topic deleted", "^ERROR .* are gone; (copying again|continuing)")
        rows = recorded(flow)
        for partition, row in enumerate(rows):
            told = f"{topic}-{partition}: the remote topic {remote} was deleted on the target: {row['count']:,} records"
            assert len(flow.log(f"^ERROR {flow.name} {told}")) == 1
        wait_for(lambda: listed(own_source, own_target, alias, tmp_path) == rows)
    copied = read(own_target, remote, 2, **COMMITTED)
    source = read(own_source, topic, 2)
    gone = [row["count"] for row in rows]
    assert [len(records) for records in source.values()] == [written, written]
    assert [(row["cause"], row["first_offset"], row["count_is_exact"]) for row in rows] == [
        ("target_deleted", 0, True)
    ] * 2
    assert [row["last_offset"] + 1 for row in rows] == gone
    if not lines:  # the ends of transactions have offsets, too
        assert all(count >= end for count, end in zip(gone, ends, strict=True))
    if on_deleted == "recopy":
        assert copied == source
    else:
        assert copied == {p: source[p][gone[p] :] for p in range(2)}, "what is gone and what is there is everything"
    with day(own_source, own_target, alias, topic, f"heliograph.on.target.deleted={on_deleted}", *lines) as flow:
        flow.write(5)
        flow.wait_until_caught_up()
        wait_for(lambda: recorded(flow) == rows)
    again = read(own_target, remote, 2, **COMMITTED)
    assert (again[0][:-5], again[1]) == (copied[0], copied[1]), "a restart repeats nothing"


def test_a_partition_can_stop_after_its_remote_topic_was_deleted_until_another_setting_lets_it_go_on(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(own_source, topic)
    remote = f"{alias}.{topic}"
    with day(own_source, own_target, alias, topic, "heliograph.on.target.deleted=fail") as flow:
        written, ends = deleted_under_load(flow, remote)
        wait_for(lambda: [flow.state(p) for p in range(2)] == ["failed", "failed"])
        rows = recorded(flow)
        assert all(row["count"] >= end for row, end in zip(rows, ends, strict=True))
        reason = flow.partition()["reason"]
        assert f"the remote topic {remote} was deleted on the target: {rows[0]['count']:,} records" in reason
        assert "heliograph.on.target.deleted=fail" in reason
        assert flow.trace().count(reason) == 1
        assert len(flow.log(f"^ERROR .*the remote topic {remote} was deleted")) == 2, "however often it is tried"
        wait_for(lambda: remote in admin_of(own_target).view().partition_counts)
        assert [flow.end(own_target, remote, p) for p in range(2)] == [0, 0]
        wait_for(lambda: all(flow.lag_is(0, flow.outside_lag(remote, p), p) for p in range(2)))
        wait_for(flow.sums_fit)
    with day(own_source, own_target, alias, topic, "heliograph.on.target.deleted=fail") as flow:
        wait_for(lambda: [flow.state(p) for p in range(2)] == ["failed", "failed"])
        assert recorded(flow) == rows, "it is the same loss"
    with day(own_source, own_target, alias, topic) as flow:
        flow.wait_until_caught_up()
        assert [len(records) for records in read(own_target, remote, 2).values()] == [written, written]
        assert recorded(flow) == rows
    assert read(own_target, remote, 2) == read(own_source, topic, 2)
    assert listed(own_source, own_target, alias, tmp_path) == rows


@pytest.mark.parametrize("lines", [(), (EXACTLY_ONCE,)], ids=["", "exactly-once"])
@pytest.mark.parametrize("is_running", [True, False], ids=["idle", "stopped"])
def test_a_topic_deleted_and_created_again_between_two_looks_is_noticed(
    own_source: EmbeddedCluster,
    own_target: EmbeddedCluster,
    topic: str,
    alias: str,
    is_running: bool,
    lines: tuple[str, ...],
) -> None:
    make_topic(own_source, topic, 3)  # nothing is written to the last one
    remote = f"{alias}.{topic}"

    def replace() -> None:
        delete_topic(own_target, remote)
        make_topic(own_target, remote, 3)

    with day(own_source, own_target, alias, topic, *lines) as flow:
        flow.write(300)
        flow.write(70, partition=1)
        flow.wait_until_caught_up()
        if is_running:
            since = flow.begin_fault()
            replace()
            flow.noticed(
                "remote topic replaced",
                since,
                losses=lambda: len(recorded(flow)) == 2,
                log=lambda: (
                    len(flow.log("^ERROR .* was deleted on the target: (300|70) records .* copying again")) == 2
                ),
            )
    if not is_running:
        replace()
    with day(own_source, own_target, alias, topic, *lines) as flow:
        wait_for(lambda: [row["count"] for row in recorded(flow)] == [300, 70])
        flow.wait_until_caught_up()
        flow.write(5)
        flow.wait_until_caught_up()
        assert len(recorded(flow)) == 2
    assert read(own_target, remote, 3, **COMMITTED) == read(own_source, topic, 3)


def test_records_gone_by_retention_while_nothing_ran_are_listed_after_every_restart(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(own_source, topic)
    with day(own_source, own_target, alias, topic) as flow:
        flow.write(10)
        flow.write(10, partition=1)
        flow.wait_until_caught_up()
        assert recorded(flow) == []
    write(own_source, topic, ({"value": b"x", "partition": n % 2} for n in range(40)))
    delete_before(own_source, topic, 25)
    for is_first in (True, False):
        with day(own_source, own_target, alias, topic) as flow:
            retention_loss_is_noticed(flow, is_first=is_first)
            rows = recorded(flow)
            wait_for(lambda: listed(own_source, own_target, alias, tmp_path) == recorded(flow))
        for row in rows:
            assert (row["first_offset"], row["last_offset"], row["count"]) == (10, 24, 15)
            assert (row["cause"], row["topic"], row["flow"]) == ("source_truncated", topic, f"{alias}->target")
    assert [len(records) for records in read(own_target, f"{alias}.{topic}", 2).values()] == [15, 15]


def retention_loss_is_noticed(flow: Day, *, is_first: bool) -> None:
    """Offsets 10 to 24 of both partitions are gone; it is reported by the first start after it, and listed for ever."""
    words = r"^ERROR .*offsets 10 to 24 are gone from the source before they were copied \(15 lost\)"
    flow.noticed(
        "retention loss",
        flow.begin_fault(),
        state=flow.is_caught_up,
        sums=lambda: flow.whole()["lag_records"] == 0 and flow.whole()["lost_offsets"] == (30 if is_first else 0),
        trace=lambda: flow.traces_are_empty,
        ready=lambda: flow.ready() == (200, ""),
        log=lambda: len(flow.log(words)) == (2 if is_first else 0),
        losses=lambda: len(recorded(flow)) == 2,
    )


ONLY_ITS_TOPIC = "heartbeats.replication.enabled=false"


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "stopped"])
@pytest.mark.parametrize("on_recreated", ["fail", "restart"])
def test_a_source_topic_that_was_created_again_is_a_loss(
    own_source: EmbeddedCluster,
    own_target: EmbeddedCluster,
    topic: str,
    alias: str,
    on_recreated: str,
    is_running: bool,
) -> None:
    make_topic(own_source, topic)
    remote = f"{alias}.{topic}"

    def replace() -> None:
        delete_topic(own_source, topic)
        make_topic(own_source, topic)
        write(own_source, topic, ({"value": b"new", "partition": n % 2} for n in range(50)))

    lines = (ONLY_ITS_TOPIC, f"heliograph.on.recreated={on_recreated}")
    with day(own_source, own_target, alias, topic, *lines) as flow:
        flow.write(20)
        flow.write(20, partition=1)
        flow.wait_until_caught_up()
        if is_running:
            since = flow.begin_fault()
            replace()
            recreated_is_noticed(flow, since, on_recreated)
    if not is_running:
        replace()
    with day(own_source, own_target, alias, topic, *lines) as flow:
        recreated_is_noticed(
            flow, flow.begin_fault(), on_recreated, is_new=not (is_running and on_recreated == "restart")
        )
        for row in recorded(flow):
            assert (row["cause"], row["first_offset"], row["count_is_exact"]) == ("source_recreated", 20, False)
    with day(own_source, own_target, alias, topic, ONLY_ITS_TOPIC, "heliograph.on.recreated=restart") as flow:
        flow.wait_until_caught_up()
        assert len(recorded(flow)) == 2, "it is the same loss"
    assert [len(records) for records in read(own_target, remote, 2).values()] == [45, 45], "after what was there"


def test_an_empty_topic_that_was_created_again_is_caught_up_and_a_restart_finds_it_as_it_was(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(own_source, topic)
    lines = (ONLY_ITS_TOPIC, "heliograph.on.recreated=restart")
    with day(own_source, own_target, alias, topic, *lines) as flow:
        flow.write(20)
        flow.write(20, partition=1)
        flow.wait_until_caught_up()
        delete_topic(own_source, topic)
        make_topic(own_source, topic)
        wait_for(lambda: len(recorded(flow)) == 2)
        wait_for(lambda: all(flow.state(p) == "caught_up" and flow.partition(p)["log_end"] == 0 for p in range(2)))
        assert flow.whole()["lag_records"] == 0
    with day(own_source, own_target, alias, topic, *lines) as flow:
        wait_for(lambda: all(flow.state(p) == "caught_up" for p in range(2)))
        assert flow.log("created again") == []
        write(own_source, topic, ({"value": b"new", "partition": n % 2} for n in range(10)))
        wait_for(lambda: [len(each) for each in read(own_target, f"{alias}.{topic}", 2).values()] == [25, 25])
        assert len(recorded(flow)) == 2


def recreated_is_noticed(flow: Day, since: float, on_recreated: str, *, is_new: bool = True) -> None:
    """The new topic has 25 records in each partition; `is_new`: nobody has decided about it yet."""
    words = "it was deleted and created again, or truncated"
    if on_recreated == "restart":
        flow.noticed(
            f"topic created again, {on_recreated}",
            since,
            state=flow.is_caught_up,
            sums=lambda: flow.whole()["lag_records"] == 0,
            trace=lambda: flow.traces_are_empty,
            ready=lambda: flow.ready() == (200, ""),
            log=lambda: len(flow.log(f"^WARNING .*{words}; copying it from its start")) == (2 if is_new else 0),
            losses=lambda: len(recorded(flow)) == 2,
        )
        return
    flow.noticed(
        f"topic created again, {on_recreated}",
        since,
        state=lambda: all(flow.state(p) == "failed" and words in flow.partition(p)["reason"] for p in range(2)),
        lag=lambda: all(flow.lag_is(0, flow.end(flow.source, flow.topic, p), p) for p in range(2)),
        sums=lambda: flow.whole()["partitions"]["failed"] == 2 and flow.whole()["lag_records"] == 50,
        trace=lambda: flow.is_any("Source", "FAILED") and words in flow.trace(),
        ready=lambda: flow.ready()[0] == 503 and words in flow.ready()[1],
        log=lambda: len(flow.log(f"^ERROR .*{words}")) == 2,
        losses=lambda: len(recorded(flow)) == 2,
    )


@pytest.mark.parametrize("lines", [(), (EXACTLY_ONCE,)], ids=["", "exactly-once"])
def test_of_two_recreated_topics_one_restarts_and_the_other_fails_until_its_rule_changes(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str, lines: tuple[str, ...]
) -> None:
    staging, billing = f"staging.{topic}", f"billing.{topic}"
    both = f"{staging},{billing}"

    def create(value: bytes) -> None:
        for name in (staging, billing):
            make_topic(own_source, name, 1)
            write(own_source, name, ({"value": value, "partition": 0} for _ in range(20)))

    def values(name: str) -> list[bytes]:
        return [record.value for record in read(own_target, f"{alias}.{name}", 1, **COMMITTED)[0]]

    def states() -> dict[str, str]:
        rows = flow.get(f"{flow.flow}/partitions")[1]["partitions"]
        return {row["topic"]: row["state"] for row in rows if row["topic"] in (staging, billing)}

    create(b"old")
    with day(own_source, own_target, alias, both, *lines) as flow:
        wait_for(lambda: states() == {staging: "caught_up", billing: "caught_up"})
    for name in (staging, billing):
        delete_topic(own_source, name)
    create(b"new")
    rules = "heliograph.on.recreated=staging[.].*=restart, fail"
    with day(own_source, own_target, alias, both, rules, *lines) as flow:
        wait_for(lambda: states() == {staging: "caught_up", billing: "failed"})
        assert values(staging) == [b"old"] * 20 + [b"new"] * 20
        assert values(billing) == [b"old"] * 20
        running = flow.process.flows
        flow.becomes(f"{rules.replace('fail', '')}{billing}=restart", *lines)
        wait_for(lambda: states() == {staging: "caught_up", billing: "caught_up"})
        assert values(billing) == [b"old"] * 20 + [b"new"] * 20
        assert flow.process.flows == running, "the flow was not restarted"
    assert values(staging) == [b"old"] * 20 + [b"new"] * 20, "nothing is copied twice"


def test_a_record_that_is_left_out_is_a_loss_of_one(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(own_source, topic)
    make_topic(own_target, f"{alias}.{topic}", max_message_bytes="2000")
    lines = ("sync.topic.configs.enabled=false", "errors.tolerance=all")
    with day(own_source, own_target, alias, topic, *lines) as flow:
        flow.write(7)
        flow.write(1, size=5000)
        flow.write(3)
        flow.wait_until_caught_up()
        wait_for(lambda: len(recorded(flow)) == 1)
        (row,) = recorded(flow)
        assert (row["cause"], row["first_offset"], row["last_offset"], row["count"]) == ("record_too_large", 7, 7, 1)
    assert len(read(own_target, f"{alias}.{topic}", 2)[0]) == 10


def test_a_loss_waits_in_memory_and_is_an_issue_until_it_can_be_recorded(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(own_source, topic)
    with day(own_source, own_target, alias, topic) as flow:
        flow.write(10)
        flow.write(10, partition=1)
        flow.wait_until_caught_up()
    delete_before(own_source, topic, 10)
    write(own_source, topic, ({"value": b"x", "partition": n % 2} for n in range(10)))
    delete_before(own_source, topic, 15)
    make_topic(own_target, f"heliograph-losses.{alias}.internal", 1, max_message_bytes="50")
    with day(own_source, own_target, alias, topic) as flow:
        wait_for(lambda: len(recorded(flow)) == 2)
        wait_for(lambda: any("are not recorded" in issue for issue in flow.get(flow.flow)[1]["issues"]))
        assert listed(own_source, own_target, alias, tmp_path) == []
        delete_topic(own_target, f"heliograph-losses.{alias}.internal")
        wait_for(lambda: listed(own_source, own_target, alias, tmp_path) == recorded(flow))
        wait_for(lambda: flow.get(flow.flow)[1]["issues"] == [])

"""The ACLs that `heliograph acls` prints, on real authorizers: they are enough, and none of them is too many."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from heliograph.cli.main import cli
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.kafka.admin.acl_admin import topic_acls
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import TopicPartition
from heliograph.operations.flow_plan import plan_flow
from tests.support.clusters.clients import make_topic, read, wait_for_markers
from tests.support.clusters.guarded import Guarded
from tests.support.clusters.least_privilege import OTHERS, RECORDS, Grant, GuardedFlow, config_of, words_for
from tests.support.runs.copying import wait_for
from tests.support.runs.day import day_of
from tests.support.runs.thread_engine import thread_engine

pytestmark = pytest.mark.broker

EXACTLY_ONCE = ("{target}.exactly.once.source.support=enabled", "{flow}.offset-syncs.topic.location=target")
_numbers = itertools.count()


def new_flow(here: Guarded, there: Guarded, tmp_path: Path, *lines: str) -> GuardedFlow:
    flow = GuardedFlow(next(_numbers), here, there, tmp_path)
    flow.add_lines(*(line.format(flow=flow.flow, target=flow.target) for line in lines))
    return flow


def without(flow: GuardedFlow, number: int) -> list[str]:
    """What is told where one ACL of those printed is missing, in two passes at most."""
    removed = flow.printed[number]
    flow.prepare()
    flow.grant([grant for grant in flow.printed if grant != removed])
    wanted = words_for(removed)
    missing = [str(each.acl) for each in plan_flow(flow.config, flow.flow).missing_acls]
    assert len(missing) == 1, f"without {removed} the plan says {missing}"
    assert missing[0].startswith(f"{removed.fields['operation']} on "), f"without {removed} the plan says {missing}"
    if removed.fields["resource_name"].startswith("heliograph-losses"):
        return missing  # a run needs it only for a loss
    reported = flow.run_once(wanted)
    if not any(map(wanted.search, reported)):
        flow.change()
        reported += flow.run_once(wanted)
    return [words for words in reported if wanted.search(words)] or [f"not named: {removed}: {reported}"]


def test_any_acl_that_is_missing_is_named(here: Guarded, there: Guarded, tmp_path: Path) -> None:
    """Each ACL is taken away once, each time from another flow."""
    count = len(new_flow(here, there, tmp_path).printed)
    cases = [(flow, number) for number in range(count) if (flow := new_flow(here, there, tmp_path)).printed]
    # Whoever is first makes the topic of heartbeats for all: to be without CREATE, it must not be there yet.
    makes = [case for case in cases if _makes_heartbeats(*case)]
    others = [case for case in cases if not _makes_heartbeats(*case)]
    assert len(makes) == 2
    reported = []
    for case in makes:
        reported.append(without(*case))
        forget_heartbeats(here, there)
    with ThreadPoolExecutor(4) as pool:
        reported += pool.map(lambda case: without(*case), others)
    assert len(reported) == count >= 30
    assert [words for words in reported if words[0].startswith("not named")] == []


def forget_heartbeats(*clusters: Guarded) -> None:
    for guarded in clusters:
        admin = guarded.admin()
        if "heartbeats" in admin.view().partition_counts:
            remover = AdminClient({"bootstrap.servers": guarded.cluster.bootstrap})
            remover.delete_topics(["heartbeats"])["heartbeats"].result()
        wait_for(lambda admin=admin: "heartbeats" not in admin.view().partition_counts)
        admin.close()


def _makes_heartbeats(flow: GuardedFlow, number: int) -> bool:
    fields = flow.printed[number].fields
    return (fields["operation"], fields["resource_name"]) == ("CREATE", "heartbeats")


@pytest.mark.parametrize("lines", [(), EXACTLY_ONCE], ids=["at least once", "exactly once"])
def test_the_printed_acls_are_enough(here: Guarded, there: Guarded, tmp_path: Path, lines: tuple[str, ...]) -> None:
    flow = new_flow(here, there, tmp_path, *lines)
    flow.prepare()
    flow.grant(flow.printed)
    assert_all_works(flow)


def test_they_are_enough_for_a_login_per_role(here: Guarded, there: Guarded, tmp_path: Path) -> None:
    flow = new_flow(here, there, tmp_path)
    flow.users = ("r", "w")
    flow.use_a_login_per_role()
    grants = flow.printed
    assert {grant.principal for grant in grants} == {
        "User:r-admin",
        "User:r-consumer",
        "User:r-producer",
        "User:w-admin",
        "User:w-producer",
    }
    flow.prepare()
    flow.grant(grants)
    assert_all_works(flow)


def assert_all_works(flow: GuardedFlow) -> None:
    """Two passes without a word about permissions, and everything a flow does is done."""
    assert plan_flow(flow.config, flow.flow).missing_acls == []
    assert _about_permissions(flow.run_once()) == []
    flow.change()
    assert _about_permissions(flow.run_once()) == []
    wait_for_markers(flow.there.cluster, flow.remote, 3)
    copied = read(flow.there.cluster, flow.remote, 3, **{"isolation.level": "read_committed"})
    assert sum(record.value != OTHERS for records in copied.values() for record in records) == 2 * RECORDS
    there = flow.there.admin()
    # A controller answers before the broker knows.
    wait_for(lambda: config_of(there, flow.remote, "retention.ms") == "123456789")
    wait_for(lambda: (flow.remote, "User:reader") in [(acl.topic, acl.principal) for acl in topic_acls(there)])
    committed = GroupAdmin(there).committed([flow.group])[flow.group]
    assert committed[TopicPartition(flow.remote, 0)].offset > 0
    heartbeats = TopicPartition(f"{flow.source}.heartbeats", 0)
    assert there.end_offsets([heartbeats])[heartbeats] > 0
    there.close()


def _about_permissions(reported: list[str]) -> list[str]:
    return [words for words in reported if "needs" in words or "AUTHORIZATION" in words]


def test_a_missing_transactional_id_is_named(here: Guarded, there: Guarded, tmp_path: Path) -> None:
    flow = new_flow(here, there, tmp_path, *EXACTLY_ONCE)
    kinds = [grant.fields["resource_type"] for grant in flow.printed]
    (words, *_more) = without(flow, kinds.index("TRANSACTIONAL_ID"))
    assert f"WRITE and DESCRIBE on the transactional id {flow.source}-mm2-MirrorSourceConnector-" in words


def states_of(flow: SourceFlow) -> list[tuple[str, str | None]]:
    return [flow.connector_state, *((task.state, task.trace) for task in flow.task_states)]


def permission_to_copy(flow: GuardedFlow, operation: str) -> Grant:
    """READ on the topic, or WRITE on its copy."""
    cluster, topic = (flow.source, flow.topic) if operation == "READ" else (flow.target, flow.remote)
    (found,) = [
        grant
        for grant in flow.printed
        if (grant.cluster, grant.fields["resource_type"], grant.fields["operation"]) == (cluster, "TOPIC", operation)
        and topic.startswith(grant.fields["resource_name"])
    ]
    return found


@pytest.mark.parametrize("operation", ["READ", "WRITE"])
def test_a_flow_goes_on_by_itself_once_it_has_what_was_missing(
    here: Guarded, there: Guarded, tmp_path: Path, operation: str
) -> None:
    lines = ("heliograph.restart.backoff.max.ms=200", "heartbeats.replication.enabled=false")
    flow = new_flow(here, there, tmp_path, *lines)
    flow.prepare()
    missing = permission_to_copy(flow, operation)
    flow.grant([grant for grant in flow.printed if grant != missing])
    running = SourceFlow(flow.config, flow.flow, thread_engine(), flow_count=1, keeps_trying=True)
    running.start()
    try:
        wait_for(lambda: words_for(missing).search(dict(states_of(running)).get("FAILED") or ""))
        flow.grant([missing])
        wait_for(lambda: running.status.counts.records == RECORDS)
        wait_for(lambda: dict(states_of(running)) == {"RUNNING": None})
    finally:
        running.stop()
        assert running.join(180)


@pytest.mark.parametrize("operation", ["READ", "WRITE"])
def test_a_permission_that_is_taken_away_while_records_are_copied_is_named_until_it_is_back(
    here: Guarded, there: Guarded, tmp_path: Path, operation: str
) -> None:
    lines = ("refresh.topics.interval.seconds=2", "heliograph.restart.backoff.max.ms=1000")
    guarded = new_flow(here, there, tmp_path, "heartbeats.replication.enabled=false", *lines)
    make_topic(here.cluster, guarded.topic)
    guarded.grant(guarded.printed)
    needed = permission_to_copy(guarded, operation)
    fault, words = f"ACL {operation} removed", f"the principal needs {operation} on"
    with day_of(guarded.file.read_text(), here.cluster, there.cluster, guarded.topic) as flow:
        for partition in range(2):
            flow.write(10, partition=partition)
        flow.wait_until_caught_up()
        (here if operation == "READ" else there).revoke_printed(needed.principal, needed.fields)
        since = flow.begin_fault()
        if operation == "WRITE":
            flow.write(30)
            flow.write(5, partition=1)
        # Without READ nobody may ask for the end of a log either.
        lags = (None, None) if operation == "READ" else (30, 5)
        flow.noticed(
            fault,
            since,
            state=lambda: all(flow.state(p) == "failed" and words in flow.partition(p)["reason"] for p in range(2)),
            lag=lambda: all(flow.lag_is(10, lag, partition) for partition, lag in enumerate(lags)),
            sums=lambda: flow.whole()["lag_records"] == (None if operation == "READ" else 35),
            ready=lambda: flow.ready()[0] == 503 and words in flow.ready()[1],
            trace=lambda: flow.is_any("Source", "FAILED") and words in flow.trace(),
            log=lambda: len(flow.log(f"^ERROR .*{words}")) == 2,
        )
        if operation == "WRITE":
            assert [flow.outside_lag(guarded.remote, p) for p in range(2)] == [30, 5]
        else:
            flow.write(30)
            wait_for(lambda: any("does not show us" in issue for issue in flow.whole()["issues"]))
        assert flow.whole()["partitions"]["failed"] == 2, "what is hidden is not gone"
        guarded.grant([needed])
        flow.cleared(fault, "no longer held up")
        assert len(flow.log(f"^ERROR .*{words}")) == 2, "however often it was tried"
    assert read(there.cluster, guarded.remote, 2) == read(here.cluster, guarded.topic, 2)


def test_a_plan_warns_about_what_is_missing(here: Guarded, there: Guarded, tmp_path: Path) -> None:
    flow = new_flow(here, there, tmp_path)
    flow.prepare()
    ended = CliRunner().invoke(cli, ["plan", str(flow.file)])
    assert ended.exit_code == 1
    needed = f"READ on the topics that begin with '{flow.source}-' of '{flow.source}'"
    assert f"  missing  ACL: {needed}: its records are copied" in ended.output
    flow.grant(flow.printed)
    ended = CliRunner().invoke(cli, ["plan", str(flow.file)])
    assert "missing" not in ended.output
    assert ended.exit_code == 0, ended.output

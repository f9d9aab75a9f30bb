"""A worker that lost its lead and does not know it: with exactly-once nothing of it reaches the config topic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from heliograph.cli.inputs import MachineLookup
from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.connect_worker import ConnectWorker
from heliograph.connect.storage.config_store import ConfigStore
from heliograph.connect.storage.leader_writes import LeaderWrites
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.errors import ClusterError, ConnectError, FencedError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.produce.fenced_writer import FencedWriter
from heliograph.kafka.security.connection_spec import Security, parse_bootstrap
from heliograph.model import TopicPartition
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.connect.connect_worker import connector, worker_file
from tests.support.runs.copying import wait_for
from tests.support.runs.thread_engine import thread_engine

pytestmark = pytest.mark.broker

COMMITTED = {"isolation.level": "read_committed"}


@pytest.fixture
def admin(target: EmbeddedCluster) -> Iterator[Admin]:
    opened = admin_of(target)
    yield opened
    opened.close()


def writer_of(target: EmbeddedCluster, group: str) -> FencedWriter:
    bootstrap = parse_bootstrap((target.bootstrap,), "bootstrap.servers")
    return FencedWriter("target", bootstrap, Security, f"connect-cluster-{group}", timeout_s=60)


def values(target: EmbeddedCluster, topic: str, **config: str) -> list[bytes | None]:
    return [seen.value for seen in read(target, topic, 1, **config).get(0, [])]


@pytest.mark.usefixtures("both_protocols")
def test_what_a_fenced_holder_writes_does_not_reach_the_topic(target: EmbeddedCluster, topic: str, alias: str) -> None:
    make_topic(target, topic, 1)
    tp = TopicPartition(topic, 0)
    with closing(writer_of(target, alias)) as former, closing(writer_of(target, alias)) as next_one:
        former.claim()
        for number in (b"1", b"2"):
            former.write(tp, [OwnRecord(b"a", number), OwnRecord(b"b", number)])
        next_one.claim()
        with pytest.raises(FencedError):
            former.write(tp, [OwnRecord(b"a", b"late")])
        next_one.write(tp, [OwnRecord(b"a", b"3")])
        with pytest.raises(ClusterError, match="must be claimed first"):
            former.write(tp, [OwnRecord(b"a", b"later")])
    wait_for(lambda: values(target, topic, **COMMITTED) == [b"1", b"1", b"2", b"2", b"3"])
    assert b"late" not in values(target, topic, **{"isolation.level": "read_uncommitted"})


@pytest.mark.usefixtures("both_protocols")
def test_what_it_had_begun_is_aborted(
    target: EmbeddedCluster, topic: str, alias: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(target, topic, 1)
    tp = TopicPartition(topic, 0)
    with closing(writer_of(target, alias)) as former, closing(writer_of(target, alias)) as next_one:
        former.claim()
        assert former._transactions is not None
        session = former._transactions._session
        end = session.end
        monkeypatch.setattr(session, "end", lambda on_ended: (next_one.claim(), end(on_ended)))
        with pytest.raises(FencedError):
            former.write(tp, [OwnRecord(b"a", b"half")])
        next_one.write(tp, [OwnRecord(b"a", b"whole")])
    wait_for(lambda: values(target, topic, **COMMITTED) == [b"whole"])
    assert values(target, topic, **{"isolation.level": "read_uncommitted"}) == [b"half", b"whole"]


def test_a_new_leader_has_read_what_the_one_before_wrote(
    target: EmbeddedCluster, admin: Admin, topic: str, alias: str
) -> None:
    """A transaction that a dead worker left open hides nothing that is decided, and holds nobody up."""
    make_topic(target, topic, 1, cleanup_policy="compact")
    with ExitStack() as stack:
        writers = [stack.enter_context(closing(writer_of(target, alias))) for _worker in range(2)]
        stores = [
            ConfigStore(stack.enter_context(closing(admin_of(target))), topic, LeaderWrites(lambda: 1, fenced=writer))
            for writer in writers
        ]
        for store in stores:
            store.load()
        stores[0].put_connector("a", {"name": "a"}, "PAUSED")
        assert stores[0].connectors["a"].target_state == "PAUSED"
        dead = writers[0]._transactions
        assert dead is not None
        dead.enqueue(TopicPartition(topic, 0), [OwnRecord(b"connector-b", b'{"properties":{}}')])
        dead.run_until(dead.is_written, 120)
        assert sorted(stores[1].connectors) == []
        stores[1].refresh()
        assert sorted(stores[1].connectors) == ["a"]
        stores[1].put_tasks("a", [{"t": "0"}])
        assert stores[1].connectors["a"].task_configs == ({"t": "0"},)
        with pytest.raises(ConnectError):
            stores[0].put_connector("late", {"name": "late"})
        stores[1].refresh()
        assert sorted(stores[1].connectors) == ["a"]
    late = ConfigStore(admin, topic, LeaderWrites(lambda: None))
    late.load()
    assert sorted(late.connectors) == ["a"]
    with pytest.raises(ConnectError, match="conflicting operation"):
        late.put_connector("follower", {"name": "follower"})


def test_a_restart_is_given_out_once_unless_it_is_from_before(
    target: EmbeddedCluster, admin: Admin, topic: str
) -> None:
    make_topic(target, topic, 1, cleanup_policy="compact")

    def ask(value: bytes) -> None:
        write(target, topic, [{"key": b"restart-connector-m", "value": value, "partition": 0}])

    ask(b'{"include-tasks":true,"only-failed":false}')
    store = ConfigStore(admin, topic, LeaderWrites(lambda: 1))
    store.load()
    assert store.take_restarts() == []
    ask(b'{"include-tasks":true,"only-failed":true}')
    store.put_connector("other", {"name": "other"})  # whoever reads it
    assert [tuple(asked) for asked in store.take_restarts()] == [("m", True, True)]
    store.refresh()
    assert store.take_restarts() == []


def test_a_worker_that_wakes_up_after_another_leads_changes_nothing(
    source: EmbeddedCluster, target: EmbeddedCluster, alias: str, tmp_path: Path
) -> None:
    text = worker_file(tmp_path, target, alias, 0, "exactly.once.source.support=enabled").read_text()
    config = connector("Heartbeat", source, target, alias)
    with ExitStack() as stack:
        former, now = (
            ConnectWorker(load_worker(text, MachineLookup()), thread_engine(), f"http://w{n}:1", LogLevels())
            for n in range(2)
        )
        for worker in (former, now):
            stack.callback(worker.stop)
            worker.start()
        former.herder.create("kept", {**config, "name": "kept"}, "PAUSED")
        since = former._leads_since()
        former._writes._leads_since = lambda: since  # it sleeps, and will believe what it knew
        former._membership.stop()
        wait_for(lambda: now._leads_since() is not None)
        now.herder.create("new", {**config, "name": "new"}, "PAUSED")
        with pytest.raises(ConnectError) as caught:
            former.herder.put_config("kept", {**config, "name": "kept", "tasks.max": "7"})
        assert caught.value.status == 500
        now.herder.set_target_state("new", "STOPPED")
        assert now.herder.connectors() == ["kept", "new"]
        assert "tasks.max" not in now.herder.info("kept").config
        former._writes._leads_since = former._leads_since  # it looks at its clock
        with pytest.raises(ConnectError) as caught:
            former.herder.restart("kept", include_tasks=True, only_failed=False)
        assert caught.value.status == 409

"""Documents 001 and 004 replayed against `heliograph worker`; its leader killed; a restart with 50 connectors."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.conftest import running_cluster
from tests.spark.test_run import count
from tests.support.clusters.clients import Seen, admin_of, make_topic, read, write
from tests.support.connect.connect_worker import RunningWorker, connector, free_port, worker_file
from tests.support.runs import document_001, document_004
from tests.support.runs.copying import wait_for

pytestmark = pytest.mark.spark

needs_curl = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("jq")), reason="the script needs curl and jq"
)
PATIENCE_S = 200.0  # for what takes seconds on an idle machine
RUNNING = 'Checkpoint connector: "RUNNING"\nHeartbeat connector: "RUNNING"\nSource connector: "RUNNING"\n'


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """The target: a cluster of its own, since the documents write heartbeats that other tests would count."""
    yield from running_cluster("hub", tmp_path_factory.mktemp("hub"))


@pytest.fixture(scope="module")
def pair(hub: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningWorker]]:
    """Document 001's two workers of one group. Whoever kills one starts it again."""
    folder = tmp_path_factory.mktemp("connect")
    ports = [free_port(), free_port()]
    workers = [RunningWorker(document_001.worker_file(folder, hub.bootstrap, port), port) for port in ports]
    try:
        for worker in workers:
            worker.wait_until_ready()
        yield workers
    finally:
        for worker in workers:
            worker.__exit__()


def values(seen: dict[int, list[Seen]]) -> dict[int, list[bytes]]:
    return {p: [record.value or b"" for record in records] for p, records in seen.items()}


def copied(cluster: EmbeddedCluster, topic: str, partitions: int = 1) -> dict[int, list[bytes]]:
    """What is in a topic, by partition; nothing while there is no such topic."""
    admin = admin_of(cluster)
    is_there = topic in admin.view([topic]).partition_counts
    admin.close()
    return values(read(cluster, topic, partitions)) if is_there else {}


# --- the documents ----------------------------------------------------------------------------------------------------


@needs_curl
def test_document_001s_script_brings_two_clusters_together_through_two_workers(
    source: EmbeddedCluster, target: EmbeddedCluster, hub: EmbeddedCluster, pair: list[RunningWorker], tmp_path: Path
) -> None:
    sources = {"source-0": source, "source-1": target}
    for name, cluster in sources.items():
        make_topic(cluster, "test", 5)
        write(cluster, "test", ({"value": f"{name} {n}".encode(), "partition": n % 5} for n in range(500)))
    document_001.lay_out(tmp_path, {name: cluster.bootstrap for name, cluster in sources.items()}, hub.bootstrap)

    for worker, name in zip(pair, sources, strict=True):  # one of the two forwards
        said = document_001.run_script(tmp_path, worker.url, "deploy", name).stdout
        assert said.splitlines()[0] == f"Deploying cluster {name}", said
        assert "ERROR" not in said
    names = [f"mm2-{code}-{name}" for code in document_001.CODES for name in sources]
    for worker in pair:
        assert worker.ask("GET", "/connectors") == (200, sorted(names))
        for name in sources:
            wait_for(
                lambda w=worker, n=name: document_001.run_script(tmp_path, w.url, "status", n).stdout == RUNNING,
                pause_s=0.5,
            )
    wait_for(lambda: holds_both(hub, sources), PATIENCE_S, 0.3)

    again = document_001.run_script(tmp_path, pair[0].url, "deploy", "source-0").stdout
    assert again.count("already deployed") == 3
    redeployed = document_001.run_script(tmp_path, pair[1].url, "redeploy", "source-0").stdout
    assert redeployed.count("undeployed") == redeployed.count("Deploying ") == 3
    for name, cluster in sources.items():
        write(cluster, "test", ({"value": f"{name} {n}".encode(), "partition": n % 5} for n in range(500, 1000)))
    wait_for(lambda: holds_both(hub, sources), PATIENCE_S, 0.3)

    for worker, name in zip(pair, sources, strict=True):
        assert document_001.run_script(tmp_path, worker.url, "undeploy", name).stdout.count("undeployed") == 3
    wait_for(lambda: pair[0].ask("GET", "/connectors") == (200, []))
    assert holds_both(hub, sources)


def holds_both(hub: EmbeddedCluster, sources: dict[str, EmbeddedCluster]) -> bool:
    """Whether the target's topic of the same name has each source's records, each once and in order, and no others."""
    merged = copied(hub, "test", 5)
    for name, cluster in sources.items():
        own = {p: [value for value in found if value.startswith(name.encode())] for p, found in merged.items()}
        if own != values(read(cluster, "test", 5)):
            return False
    return sum(map(len, merged.values())) == sum(len(v) for c in sources.values() for v in read(c, "test", 5).values())


def test_document_004s_container_fills_the_other_cluster_because_of_its_override(
    source: EmbeddedCluster, hub: EmbeddedCluster, tmp_path: Path
) -> None:
    port = free_port()
    make_topic(source, "to_replicate", 1)
    write(source, "to_replicate", ({"value": b"%d" % n} for n in range(100)))
    with RunningWorker(tmp_path / "document-004", port, document_004.variables(source.bootstrap, port)) as worker:
        worker.wait_until_ready()
        body = document_004.posted(source.bootstrap, hub.bootstrap)
        code, answer = worker.ask("POST", "/connectors", body)
        assert (code, answer["config"]) == (201, body["config"])
        assert worker.ask("GET", "/connectors") == (200, ["test_mirror"])
        everything = copied(source, "to_replicate")
        wait_for(lambda: copied(hub, "source.to_replicate") == everything, PATIENCE_S, 0.3)
        write(source, "to_replicate", ({"value": b"%d" % n} for n in range(100, 200)))
        everything = copied(source, "to_replicate")
        wait_for(lambda: copied(hub, "source.to_replicate") == everything, PATIENCE_S, 0.3)
        wait_for(lambda: worker.states() == {"test_mirror": ("RUNNING", f"localhost:{port}", ["RUNNING"])})
        admin = admin_of(source)
        topics = set(admin.view().partition_counts)
        admin.close()
        assert {"quickstart_config", "quickstart_offsets", "quickstart_status"} <= topics
        assert "source.to_replicate" not in topics
        assert worker.stop() == 0, worker.output()


# --- the leader dies --------------------------------------------------------------------------------------------------


def test_a_killed_leader_is_replaced_under_load_and_nothing_is_lost_or_repeated(
    source: EmbeddedCluster, hub: EmbeddedCluster, pair: list[RunningWorker], topic: str, alias: str
) -> None:
    make_topic(source, topic, 2)
    config = connector("Source", source, hub, alias, topics=topic, tasks_max="2")
    assert pair[0].ask("PUT", f"/connectors/{alias}/config", config)[0] == 201
    leads = wait_until_led(pair, alias, [worker.id for worker in pair])
    leader, follower = (pair[n] for n in (leads, 1 - leads))
    for worker in pair:
        worker.wait_for_state(alias, "RUNNING", "RUNNING")
        assert worker.ask("GET", f"/connectors/{alias}")[1]["config"]["topics"] == topic
    remote = f"{alias}.{topic}"
    with load(source, topic) as written:
        wait_for(lambda: count(hub, remote, 2) > 1000, PATIENCE_S, 0.1)
        killed_at = time.monotonic()
        leader.kill()
        wait_until_led([follower], alias, [follower.id])
        took_s = time.monotonic() - killed_at
        follower.wait_for_state(alias, "RUNNING", "RUNNING")
        runs_s = time.monotonic() - killed_at
        at_least = written[0]
        wait_for(lambda: count(hub, remote, 2) > at_least, PATIENCE_S, 0.1)
    print(f"the other worker led after {took_s:.1f} s; its tasks ran after {runs_s:.1f} s")
    wait_for(lambda: count(hub, remote, 2) >= written[0], PATIENCE_S, 0.1)
    assert copied(hub, remote, 2) == copied(source, topic, 2)

    pair[leads] = back = RunningWorker(leader.file, leader.port)
    back.wait_until_ready()
    for worker, word, state in ((back, "pause", "PAUSED"), (follower, "resume", "RUNNING")):
        assert worker.ask("PUT", f"/connectors/{alias}/{word}")[0] == 202
        for asked in pair:
            asked.wait_for_state(alias, state, state)
            assert asked.states()[alias][1] == follower.id
    assert back.ask("DELETE", f"/connectors/{alias}")[0] == 204
    wait_for(lambda: follower.ask("GET", f"/connectors/{alias}/status")[0] == 404)


@contextmanager
def load(cluster: EmbeddedCluster, topic: str) -> Iterator[list[int]]:
    """A producer that never rests; how many records it has written."""
    ended, written = threading.Event(), [0]

    def produce() -> None:
        while not ended.wait(0.05):
            numbers = range(written[0], written[0] + 200)
            write(cluster, topic, ({"value": f"{n:08}".encode(), "partition": n % 2} for n in numbers))
            written[0] += 200

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield written
    finally:
        ended.set()
        thread.join()


def wait_until_led(workers: list[RunningWorker], name: str, ids: list[str]) -> int:
    """Until a connector's state is told by one of the ids, whichever worker is asked; which of them it is."""
    reported: list[str] = []

    def is_reported() -> bool:
        reported[:] = {worker.states().get(name, ("", "", []))[1] for worker in workers}
        return len(reported) == 1 and reported[0] in ids

    wait_for(is_reported, PATIENCE_S, 0.1)
    return ids.index(reported[0])


# --- a restart --------------------------------------------------------------------------------------------------------

Wanted = dict[str, tuple[str, list[str]]]


@pytest.mark.slow
def test_a_restart_brings_fifty_connectors_back_in_their_states(
    source: EmbeddedCluster, hub: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, 1)
    write(source, topic, [{"value": b"before"}])
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections and never says a word
        configs, wanted = fifty_connectors(source, hub, topic, alias, silent.getsockname()[1])
        assert len(configs) == 50
        ports = [free_port(), free_port()]
        files = [worker_file(tmp_path, hub, f"{alias}-connect", port) for port in ports]
        with RunningWorker(files[0], ports[0]) as worker:
            worker.wait_until_ready()
            for name, (config, state) in configs.items():
                body = {"name": name, "config": config, "initial_state": state}
                assert worker.ask("POST", "/connectors", body)[0] == 201
            wait_until_all(
                worker, {**wanted, "later-paused": ("RUNNING", ["RUNNING"]), "later-stopped": ("RUNNING", ["RUNNING"])}
            )
            for name in ("running-0", "running-1", "later-paused"):
                wait_for(lambda n=name: copied(hub, f"{alias}-{n}.{topic}") == {0: [b"before"]})
            assert worker.ask("PUT", "/connectors/later-paused/pause")[0] == 202
            assert worker.ask("PUT", "/connectors/later-stopped/stop")[0] == 204
            wait_until_all(worker, wanted)
            assert worker.stop() == 0, worker.output()
        write(source, topic, [{"value": b"after"}])
        with RunningWorker(files[1], ports[1]) as worker:
            worker.wait_until_ready()
            started_at = time.monotonic()
            wait_until_all(worker, wanted)
            print(f"50 connectors were back {time.monotonic() - started_at:.1f} s after REST answered")
            for number in range(2):
                remote = f"{alias}-running-{number}.{topic}"
                wait_for(lambda r=remote: copied(hub, r) == {0: [b"before", b"after"]})
            assert copied(hub, f"{alias}-later-paused.{topic}") == {0: [b"before"]}
            refused = worker.ask("GET", "/connectors/refused/status")[1]["connector"]["trace"]
            assert "did not answer within" in refused
            assert worker.stop() == 0, worker.output()


def fifty_connectors(
    source: EmbeddedCluster, hub: EmbeddedCluster, topic: str, alias: str, silent_port: int
) -> tuple[dict[str, tuple[dict[str, str], str]], Wanted]:
    """Configs with their first states, and what is to become of them. Few copy: each such task is a process."""
    configs: dict[str, tuple[dict[str, str], str]] = {}
    wanted: Wanted = {}

    def add(name: str, kind: str, becomes: str, tasks: list[str], state: str = "RUNNING", **settings: str) -> None:
        config = connector(kind, source, hub, f"{alias}-{name}", **settings)
        configs[name] = (config, state)
        wanted[name] = (becomes, tasks)

    copies = {"topics": topic, "heartbeats_replication_enabled": "false"}
    for number in range(2):
        add(f"running-{number}", "Source", "RUNNING", ["RUNNING"], **copies)
    add("later-paused", "Source", "PAUSED", ["PAUSED"], **copies)
    add("later-stopped", "Heartbeat", "STOPPED", [])
    nowhere = f"127.0.0.1:{free_port()}"
    quick = {"heliograph_connect_timeout_ms": "1000", "source_cluster_bootstrap_servers": nowhere}
    add("refused", "Source", "FAILED", [], **copies, **quick)
    patient = {"heliograph_connect_timeout_ms": "600000"}
    add(
        "silent",
        "Source",
        "UNASSIGNED",
        [],
        **copies,
        **patient,
        source_cluster_bootstrap_servers=f"127.0.0.1:{silent_port}",
    )
    for number in range(14):
        add(f"beating-{number}", "Heartbeat", "RUNNING", ["RUNNING"])
    for number in range(10):
        add(f"checking-{number}", "Checkpoint", "RUNNING", ["RUNNING"])
    for kind in ("Source", "Checkpoint", "Heartbeat"):
        for number in range(5):
            add(f"paused-{kind}-{number}", kind, "PAUSED", [], "PAUSED")
        for number in range(5 if kind == "Source" else 0):
            add(f"stopped-{kind}-{number}", kind, "STOPPED", [], "STOPPED")
    return configs, wanted


def wait_until_all(worker: RunningWorker, wanted: Wanted) -> None:
    """Until every connector is as wanted, told by this worker."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        states = worker.states()
        differs = {
            name: states.get(name)
            for name, (state, tasks) in wanted.items()
            if states.get(name) != (state, worker.id, tasks)
        }
        if not differs:
            return
        assert time.monotonic() < deadline, f"{differs}\n{worker.output()}"
        time.sleep(0.2)

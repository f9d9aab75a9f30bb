"""`heliograph run --watch` and SIGHUP on real clusters and real Spark: a changed file is applied to what runs."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.interop.rest_story import ask
from tests.spark.test_run import count
from tests.support.clusters.clients import make_topic, read, write
from tests.support.connect.connect_worker import free_port
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running, write_file

pytestmark = pytest.mark.spark


class Watched:
    """A running process with REST, its file, and what it copies."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, alias: str, port: int) -> None:
        self.source, self.target, self.alias, self.port = source, target, alias, port

    def copy(self, topic: str, records: int, alias: str | None = None) -> None:
        """Write records, and wait until the target has all of the topic."""
        write(self.source, topic, ({"value": f"{n}".encode(), "partition": n % 2} for n in range(records)))
        self.wait_until_copied(topic, alias)

    def wait_until_copied(self, topic: str, alias: str | None = None) -> None:
        remote = f"{alias or self.alias}.{topic}"
        wait_for(lambda: count(self.target, remote) == count(self.source, topic))

    def asked(self, path: str) -> Any:
        _status, _headers, body = ask(f"http://127.0.0.1:{self.port}", "GET", path)
        return json.loads(body)

    def connectors(self) -> list[str]:
        found: list[str] = self.asked("/connectors")
        return [name for name in found if name.endswith("MirrorSourceConnector")]

    def shown_topics(self) -> str:
        name = quote(f"{self.alias}->target.MirrorSourceConnector")
        shown: str = self.asked(f"/connectors/{name}/config")["topics"]
        return shown


def test_a_watched_file_changes_what_runs_and_leaves_the_rest_alone(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    first, second, other = f"{topic}-a", f"{topic}-b", f"{alias}x"
    for name in (first, second):
        make_topic(source, name)
    file = write_file(tmp_path, source, target, alias, first, f"{alias}.ssl.key.password=hunter-one")
    before = file.read_text()
    watched = Watched(source, target, alias, free_port())
    with Running(file, "--watch", "--rest", str(watched.port)) as heliograph:
        watched.copy(first, 100)
        workers = {worker.pid for worker in heliograph.python_workers()}

        def becomes(text: str, *lines: str) -> None:
            file.write_text(text)
            for line in lines:
                wait_for(lambda line=line: line in heliograph.output())

        more = before.replace(f"topics={first}", f"topics={first},{second}")
        becomes(more, f"{alias}->target: adopts the change without a restart")
        watched.copy(second, 50)
        watched.copy(first, 50)
        assert watched.shown_topics() == f"{first},{second}"
        assert {worker.pid for worker in heliograph.python_workers()} == workers
        assert heliograph.output().count("task 0 begins with") == 1, "its task was not started again"
        assert f"{alias}->target.topics has changed from '{first}' to '{first},{second}'" in heliograph.output()

        becomes(
            more.replace("topics=", "topics=(") + "tasks.max=many\n",
            "tasks.max: 'many' is not a whole number",
            "the changed file is not applied; the configuration before it stays in effect",
        )
        watched.copy(first, 50)
        assert watched.shown_topics() == f"{first},{second}"

        added = [f"clusters={alias}, target, {other}", f"{other}.bootstrap.servers={source.bootstrap}"]
        flow = [f"{other}->target.enabled=true", f"{other}->target.topics={second}"]
        becomes("\n".join([more, *added, *flow]) + "\n", f"{other}->target: was added and is started")
        watched.wait_until_copied(second, other)
        assert watched.connectors() == sorted(f"{each}->target.MirrorSourceConnector" for each in (alias, other))
        assert workers <= {worker.pid for worker in heliograph.python_workers()}

        becomes(more, f"{other}->target: was removed and is stopped")
        wait_for(lambda: watched.connectors() == [f"{alias}->target.MirrorSourceConnector"])

        restarted = more.replace("hunter-one", "hunter-two")
        becomes(restarted, f"{alias}.ssl.key.password has changed\n", f"{alias}->target: started with the new")
        watched.copy(first, 50)
        assert "hunter" not in heliograph.output()
        assert heliograph.stop() == 0
    for name in (first, second):
        assert read(target, f"{alias}.{name}", 2) == read(source, name, 2), "nothing is lost or repeated"


def test_sighup_and_the_swapped_link_of_a_mounted_config_map_are_noticed(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    names = [f"{topic}-{letter}" for letter in "abc"]
    for name in names:
        make_topic(source, name)
        write(source, name, [{"value": b"1", "partition": 0}])
    file = write_file(tmp_path, source, target, alias, names[0])
    mounted = config_map(tmp_path / "mounted", file.read_text())
    watched = Watched(source, target, alias, 0)

    def with_topics(topics: list[str]) -> str:
        return file.read_text().replace(f"topics={names[0]}", f"topics={','.join(topics)}")

    link = tmp_path / "mounted" / "mm2.properties"
    with Running(link) as heliograph:
        watched.wait_until_copied(names[0])
        mounted(with_topics(names[:2]))
        heliograph.process.send_signal(signal.SIGHUP)
        watched.wait_until_copied(names[1])
        heliograph.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "read again; nothing has changed" in heliograph.output())
        assert heliograph.stop() == 0
    with Running(link, "--watch", "--log-format", "json") as heliograph:
        wait_for(lambda: '"message": "Replicating' in heliograph.output())
        mounted(with_topics(names))
        watched.wait_until_copied(names[2])
        assert heliograph.stop() == 0
    begun = [line for line in heliograph.output().splitlines() if line.startswith("{")]
    lines = [json.loads(line) for line in begun]
    assert any(line.get("flow") == f"{alias}->target" and line.get("task") == 0 for line in lines)


def config_map(folder: Path, text: str) -> Callable[[str], None]:
    """A folder as Kubernetes mounts a ConfigMap; returns how its content is replaced: in one step, by a link."""
    folder.mkdir()
    (folder / "mm2.properties").symlink_to("..data/mm2.properties")
    versions = 0

    def replace(newer: str) -> None:
        nonlocal versions
        versions += 1
        version = folder / f"..version-{versions}"
        version.mkdir()
        (version / "mm2.properties").write_text(newer)
        (folder / "..data_tmp").symlink_to(version.name)
        (folder / "..data_tmp").rename(folder / "..data")

    replace(text)
    return replace

"""Runs `heliograph worker` as a user does, and asks its REST API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import psutil

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.embedded.process import free_ports
from tests.support.runs.copying import PATIENCE_S, wait_for

MIRROR = "org.apache.kafka.connect.mirror"


def free_port() -> int:
    return free_ports(1)[0]


def worker_file(folder: Path, cluster: EmbeddedCluster, name: str, port: int, *lines: str) -> Path:
    """A connect-distributed.properties of the shape of document 001's."""
    file = folder / f"{name}-{port}.properties"
    text = [
        f"bootstrap.servers={cluster.bootstrap}",
        f"group.id={name}",
        "key.converter=org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter=org.apache.kafka.connect.converters.ByteArrayConverter",
        f"offset.storage.topic={name}-offsets",
        f"config.storage.topic={name}-configs",
        f"status.storage.topic={name}-status",
        *(f"{store}.storage.replication.factor=1" for store in ("offset", "config", "status")),
        f"listeners=http://127.0.0.1:{port}",
        *lines,
    ]
    file.write_text("\n".join(text) + "\n")
    return file


def connector(
    kind: str, source: EmbeddedCluster, target: EmbeddedCluster, alias: str, **settings: str
) -> dict[str, str]:
    """A connector (Source, Checkpoint, Heartbeat) between two clusters of one broker; `_` in a key stands for a dot."""
    return {
        "connector.class": f"{MIRROR}.Mirror{kind}Connector",
        "source.cluster.alias": alias,
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": source.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }


class RunningWorker:
    """`heliograph worker FILE` in the background; with `variables` they configure it, and `file` names its log."""

    def __init__(self, file: Path, port: int, variables: Mapping[str, str] | None = None) -> None:
        self.file, self.port = file, port
        self.id = f"127.0.0.1:{port}"
        self.url = f"http://{self.id}"
        self.log = file.with_suffix(".log")
        command = [sys.executable, "-m", "heliograph", "worker", *([] if variables else [str(file)])]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **(variables or {})}
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def output(self) -> str:
        return self.log.read_text()

    def wait_until_ready(self) -> Self:
        def is_ready() -> bool:
            assert self.process.poll() is None, self.output()
            try:
                return self.ask("GET", "/health")[0] == 200
            except OSError:
                return False

        wait_for(is_ready)
        return self

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=100) as answer:  # noqa: S310
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text else None

    def wait_for_state(self, name: str, state: str, task_state: str | None = None) -> None:
        """Until a connector, and where given all its tasks, are in a state."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            code, status = self.ask("GET", f"/connectors/{name}/status")
            tasks = {task["state"] for task in status.get("tasks", ())} if code == 200 else set()
            if code == 200 and status["connector"]["state"] == state and (task_state is None or tasks == {task_state}):
                return
            assert time.monotonic() < deadline, f"{name}: {status}\n{self.output()}"
            time.sleep(0.2)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """kill -9 the process; what it started must end by itself."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        _gone, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
        assert not alive, f"left behind by a killed worker: {alive}"

    def states(self) -> dict[str, tuple[str, str, list[str]]]:
        """Of every connector its state, who told it, and the states of its tasks; empty while nobody answers."""
        code, answer = self.ask("GET", "/connectors?expand=status")
        if code != 200:
            return {}
        reported = {name: entry["status"] for name, entry in answer.items() if "status" in entry}
        return {
            name: (s["connector"]["state"], s["connector"]["worker_id"], [task["state"] for task in s["tasks"]])
            for name, s in reported.items()
        }

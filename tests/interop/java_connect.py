"""A real Java Kafka Connect worker (4.3.1), as `connect-distributed.sh FILE` starts it, on a port of this machine.

    with JavaConnect.on(target, tmp_path, "offset.flush.interval.ms=1000") as connect:
        connect.wait_until_ready()
        urllib.request.urlopen(f"{connect.url}/connectors")

It needs about 10 s until it answers: share one among the tests of a module where they do not disturb each other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from heliograph.embedded.jars import connect_jars, ensure_jars
from heliograph.embedded.java import java_command
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.embedded.process import free_ports
from tests.interop.java_mm2 import LOG_CONFIG

_HEAP = ("-Xms128M", "-Xmx512M", "-XX:TieredStopAtLevel=1")
_READY_TIMEOUT_S = 240.0
_STOP_TIMEOUT_S = 180.0


def free_port() -> int:
    """A port nobody listens on now."""
    return free_ports(1)[0]


def worker_lines(cluster: EmbeddedCluster, port: int, group: str) -> list[str]:
    """A connect-distributed.properties as document 001's, for one broker: JSON converters, three topics of its own."""
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    return [
        f"bootstrap.servers={cluster.bootstrap}",
        f"group.id={group}",
        f"key.converter={json_converter}",
        f"value.converter={json_converter}",
        "key.converter.schemas.enable=true",
        "value.converter.schemas.enable=true",
        f"offset.storage.topic={group}-offsets",
        "offset.storage.replication.factor=1",
        "offset.storage.partitions=1",
        f"config.storage.topic={group}-configs",
        "config.storage.replication.factor=1",
        f"status.storage.topic={group}-status",
        "status.storage.replication.factor=1",
        "status.storage.partitions=1",
        "offset.flush.interval.ms=1000",
        f"listeners=http://127.0.0.1:{port}",
        "rest.advertised.host.name=127.0.0.1",
        f"rest.advertised.port={port}",
        "plugin.discovery=service_load",  # a scan of all classes would take three times as long
    ]


class JavaConnect:
    """A Connect worker on a properties file, in the background; `port` is the one its file listens on."""

    def __init__(self, file: Path, port: int, jvm_options: Sequence[str] = ()) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.file = file
        self.log = file.with_suffix(".java.log")
        log_config = file.with_suffix(".log4j2.properties")
        log_config.write_text(LOG_CONFIG)
        command = [java_command(), *_HEAP, "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={log_config}", *jvm_options]
        command += ["-cp", f"{ensure_jars(connect_jars())}/*"]
        command += ["org.apache.kafka.connect.cli.ConnectDistributed", str(file)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ))

    @classmethod
    def on(
        cls,
        cluster: EmbeddedCluster,
        folder: Path,
        *lines: str,
        group: str = "java-connect",
        jvm_options: Sequence[str] = (),
    ) -> Self:
        """A worker on a free port that keeps its topics in `cluster`; later lines win over `worker_lines`."""
        port = free_port()
        file = folder / f"{group}-{port}.properties"
        file.write_text("\n".join([*worker_lines(cluster, port, group), *lines]) + "\n")
        return cls(file, port, jvm_options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.is_running:
            self.kill()

    def wait_until_ready(self, timeout_s: float = _READY_TIMEOUT_S) -> Self:
        """Wait until it has joined its group and answers (GET /health is 200)."""
        deadline = time.monotonic() + timeout_s
        while not self._is_healthy():
            assert self.is_running, f"Java Connect has ended:\n{self.output()[-3000:]}"
            assert time.monotonic() < deadline, f"Java Connect does not answer:\n{self.output()[-3000:]}"
            time.sleep(0.2)
        return self

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=15) as answer:  # noqa: S310  (our own URL)
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> None:
        """A clean stop: SIGTERM and the wait for its end."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(_STOP_TIMEOUT_S)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()

    @property
    def is_running(self) -> bool:
        """Whether the process lives; a failed start ends it."""
        return self.process.poll() is None

    def output(self) -> str:
        """What it logged: warnings and errors."""
        return self.log.read_text()

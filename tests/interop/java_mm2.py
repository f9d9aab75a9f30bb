"""Java's own MirrorMaker 2 in dedicated mode, as `connect-mirror-maker.sh FILE` starts it; also for the benchmark."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Self

from heliograph.embedded.jars import connect_jars, ensure_jars
from heliograph.embedded.java import java_command

LOG_CONFIG = """\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
"""
SCRIPT_HEAP = ("-Xms256M", "-Xmx2G")  # what connect-mirror-maker.sh sets
_SMALL_HEAP = ("-Xms128M", "-Xmx512M", "-XX:TieredStopAtLevel=1")
_STOP_TIMEOUT_S = 180


def mirror_maker_command(file: Path, heap: tuple[str, ...] = SCRIPT_HEAP, options: tuple[str, ...] = ()) -> list[str]:
    """The command that runs Java MM2 on a properties file; its log settings stand beside the file."""
    log_config = file.with_suffix(".log4j2.properties")
    log_config.write_text(LOG_CONFIG)
    return [
        java_command(),
        *heap,
        "-server",
        "-XX:+UseG1GC",
        *options,
        f"-Dlog4j2.configurationFile={log_config}",
        "-cp",
        f"{ensure_jars(connect_jars())}/*",
        "org.apache.kafka.connect.mirror.MirrorMaker",
        str(file),
    ]


def small_cluster_lines(alias: str, target: str = "target") -> list[str]:
    """What Java MM2 needs in a file beside what ours needs: topics on one broker, one herder only, short intervals.

    On a busy machine its tasks may need more than the 5 s it gives them to stop, and to commit, cleanly.
    """
    factors = ("offset-syncs.topic", "checkpoints.topic", "heartbeats.topic", "offset.storage", "status.storage")
    return [
        "replication.factor=1",
        *(f"{name}.replication.factor=1" for name in (*factors, "config.storage")),
        f"{target}->{alias}.emit.heartbeats.enabled=false",
        "emit.checkpoints.interval.seconds=1",
        "refresh.groups.interval.seconds=1",
        "refresh.topics.interval.seconds=1",
        "sync.topic.acls.enabled=false",
        f"{target}.task.shutdown.graceful.timeout.ms=30000",
        f"{target}.offset.flush.timeout.ms=30000",
    ]


class JavaMirrorMaker:
    """Java MM2 on a file, in the background."""

    def __init__(self, file: Path, *jvm_options: str) -> None:
        self.log = file.with_suffix(".java.log")
        command = mirror_maker_command(file, _SMALL_HEAP, jvm_options)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.process.poll() is None:
            self.kill()

    def stop(self) -> None:
        """A clean stop: SIGTERM, on which Java flushes and commits its offsets, and the wait for its end."""
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

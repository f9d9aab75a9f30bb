"""Starts Spark for long-lived copy tasks.

The JVM only schedules; data never passes through it. So it gets a small heap, the first-tier compiler and, by default,
no web UI, and its output goes to a file. Only the classic RDD API is used: it needs neither pandas nor Arrow on the
executors.

Secrets pass through the JVM in the payloads of tasks. So its ports authenticate every peer, files that Spark writes are
encrypted, our own files are in a folder that only our user can enter, and no process leaves a core dump. Spark and its
Python processes connect through sockets in that folder: on TCP any local user could make Spark's daemon fork processes
without limit, and block Spark's scheduler with one silent connection.
"""

from __future__ import annotations

import logging
import os
import resource
import secrets
import shutil
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliograph.config.resolve.redaction import shown_error
from heliograph.driver.spark.executor_code import write_code_archive
from heliograph.driver.spark.old_folders import PREFIX, remove_old_folders
from heliograph.driver.spark.secret_transport import OPEN_PORTS, authenticates, authentication, encrypts, is_local
from heliograph.embedded.java import java_home
from heliograph.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.driver.spark.executor_code import CodeArchive


log = logging.getLogger(__name__)

_LOG_CONFIG = """\
status = OFF
rootLogger.level = WARN
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
"""
_REASON_SIGNS = ("Python worker exited", "Caused by", "SparkException", "IllegalArgumentException")
_DEFAULTS = {
    "spark.app.name": "heliograph",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    "spark.python.worker.reuse": "true",
    "spark.task.maxFailures": "1",  # we start a lost task again, from its newest committed offsets
    "spark.speculation": "false",  # a second run of a task would be a second writer of its partitions
    "spark.scheduler.mode": "FAIR",
    "spark.io.encryption.enabled": "true",  # a payload that is large, or finds no memory, is written to a file
    "spark.hadoop.hadoop.security.groups.cache.background.reload": "false",
}
_PYTHON_SOCKETS = "spark.python.unix.domain.socket"
_LONGEST_SOCKET_PATH = 103  # the least that a system has room for, in bytes
_SOCKET_NAME_BYTES = len("/.01234567-89ab-cdef-0123-456789abcdef.sock")
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -XX:-UsePerfData"


def _own_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"


@dataclass(slots=True)
class SparkSettings:
    """Settings to start Spark with: its master, and the user's `--conf` pairs, which override ours.

    `folder` is made when Spark starts.
    """

    master: str
    conf: Mapping[str, str] = field(default_factory=dict)
    folder: Path = field(default_factory=_own_folder)
    code: CodeArchive | None = None  # that executors on other machines got

    @property
    def log_file(self) -> Path:
        """The JVM's log."""
        return self.folder / "spark.log"

    @property
    def log_config_file(self) -> Path:
        """The JVM's log configuration."""
        return self.folder / "log4j2.properties"

    @property
    def socket_folder(self) -> Path:
        """The folder of the sockets of Spark's Python processes: ours, or one in /tmp if that path is too long."""
        is_short = len(os.fsencode(self.folder)) + _SOCKET_NAME_BYTES <= _LONGEST_SOCKET_PATH
        return self.folder if is_short else Path("/tmp") / self.folder.name  # noqa: S108  (made by us, or not used)

    def remove_files(self) -> None:
        """Delete the log of a run that went well."""
        for folder in (self.folder, self.socket_folder):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def is_local(self) -> bool:
        """Return whether executors are on this machine, inside the driver's JVM."""
        return is_local(self.master)

    @property
    def is_on_this_machine(self) -> bool:
        """Return whether executors are on this machine, in any process."""
        return self.is_local or self.master.startswith("local-cluster[")


class SparkDriver:
    """A Spark context that is being started in the background."""

    def __init__(self, settings: SparkSettings) -> None:
        self.settings = settings
        self._context: Any = None
        self._error: EngineError | None = None
        self._is_stopped = False
        self._thread = threading.Thread(target=self._start, name="spark-start", daemon=True)
        self._thread.start()

    def context(self) -> Any:
        """Wait for the context and return it; raise EngineError if Spark did not start."""
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self._context

    @property
    def error(self) -> EngineError | None:
        """The reason why Spark does not run: it did not start, or its JVM has ended; None if it runs."""
        if self._error is None and self._context is not None and not self._is_stopped:
            jvm = getattr(self._context._gateway, "proc", None)  # noqa: SLF001  (PySpark has no public access to it)
            if jvm is not None and jvm.poll() is not None:
                self._error = EngineError(f"Spark's JVM has ended (its log: {self.settings.log_file})")
        return self._error

    @property
    def slots(self) -> int:
        """The number of tasks that can run at the same time."""
        return int(self.context().defaultParallelism)

    @property
    def encrypts_secrets(self) -> bool:
        """Return whether a task's payload, with the credentials of its clients, is safe from others on its way."""
        return self.settings.is_local or encrypts(self.context().getConf().get)

    def stop(self) -> None:
        """Stop Spark."""
        self._thread.join()
        self._is_stopped = True
        if self._context is not None:
            self._context.stop()

    def _start(self) -> None:
        try:
            self._context = _start_context(self.settings)
        except Exception as error:  # noqa: BLE001  (raised by `context`)
            self._error = EngineError(
                f"Spark could not be started: {spark_error_line(error)} (its log: {self.settings.log_file})"
            )


def _start_context(settings: SparkSettings) -> Any:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  (half a second that other commands save)
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1" if settings.is_local else "")
    if not os.environ["SPARK_LOCAL_IP"]:
        del os.environ["SPARK_LOCAL_IP"]
    _forbid_core_dumps()
    _make_folder(settings)
    settings.log_config_file.write_text(_LOG_CONFIG.format(log=settings.log_file))
    conf = SparkConf().setMaster(settings.master)
    java_options = f"{_QUICK_JVM} -Dlog4j2.configurationFile=file:{settings.log_config_file}"
    ours = {**_DEFAULTS, **_python_sockets(settings), "spark.driver.extraJavaOptions": java_options}
    for name, value in {**ours, **settings.conf}.items():
        conf.set(name, value)
    with settings.log_file.open("ab") as output:
        gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
    # Only now: with the site's spark-defaults.conf read, and off the command line, which everyone can read.
    site = SparkConf(_jvm=gateway.jvm)
    for name, value in authentication(settings.master, site.get).items():
        conf.set(name, value)
    context = SparkContext(conf=conf, gateway=gateway)
    if not authenticates(context.getConf().get):
        log.warning("%s", OPEN_PORTS)
    if not settings.is_local:
        settings.code = write_code_archive(settings.folder)
        context.addPyFile(str(settings.code.path))
    return context


def _make_folder(settings: SparkSettings) -> None:
    """Make the folder of this run, and remove those of earlier ones; their sockets may have been in another place."""
    for parent in {settings.folder.parent, settings.socket_folder.parent}:
        remove_old_folders(parent)
    settings.folder.mkdir(mode=0o700)


def _python_sockets(settings: SparkSettings) -> dict[str, str]:
    """Return settings by which Spark's Python processes on this machine listen in a folder that only we can enter."""
    if not settings.is_on_this_machine:
        return {}
    folder = settings.socket_folder
    try:
        if folder != settings.folder:
            folder.mkdir(mode=0o700)
    except OSError as error:
        log.warning(
            "No folder for the sockets of Spark's Python processes (%s): they listen on TCP ports of this machine,"
            " where other users can disturb them. Set TMPDIR to a folder with a short path.",
            error,
        )
        return {}
    return {f"{_PYTHON_SOCKETS}.enabled": "true", f"{_PYTHON_SOCKETS}.dir": str(folder)}


def _forbid_core_dumps() -> None:
    """Forbid core dumps, here and in child processes: they hold every secret in plain text."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def spark_error_line(error: Exception) -> str:
    """Return the line of Spark's long error message that names the reason, with secrets hidden."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()]
    reasons = [line for line in lines if any(sign in line for sign in _REASON_SIGNS)]
    return shown_error((reasons or lines or [type(error).__name__])[0])[:300]

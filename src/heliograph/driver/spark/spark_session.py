"""Starts Spark for long-lived copy tasks.

The JVM only schedules; data never passes through it. So it gets a small heap and the first-tier compiler, and its
output goes to a file. Only the classic RDD API is used: it needs neither pandas nor Arrow on the executors.

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
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliograph.config.resolve.redaction import trace_of
from heliograph.driver.spark.executor_code import write_code_archive
from heliograph.driver.spark.executor_watch import ExecutorWatch, is_stopped, read_executors
from heliograph.driver.spark.jvm_samples import JvmSamples, ask_jvm
from heliograph.driver.spark.old_folders import PREFIX, remove_old_folders
from heliograph.driver.spark.secret_transport import OPEN_PORTS, authenticates, authentication, encrypts, is_local
from heliograph.driver.spark.spark_defaults import PYTHON, our_settings, packed_python, site_settings
from heliograph.driver.spark.spark_errors import spark_error_line
from heliograph.embedded.java import java_home
from heliograph.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark import SparkConf

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
_PYTHON_SOCKETS = "spark.python.unix.domain.socket"
_LONGEST_SOCKET_PATH = 103  # the least that a system has room for, in bytes
_SOCKET_NAME_BYTES = len("/.01234567-89ab-cdef-0123-456789abcdef.sock")
_JVM_OPTIONS = "SPARK_SUBMIT_OPTS"
_PYTHON_VARIABLE = "PYSPARK_PYTHON"
_WATCH_INTERVAL_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 60.0
_LONGEST_START_S = 120.0
_LASTING_S = 60.0
_MOST_ATTEMPTS = 8  # over some six minutes, and the time that each takes
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
    buffer_bytes: int = 64 << 20  # the largest of a task
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
    """Starts Spark in the background, and again if Spark itself ends: a context may be stopped by its cluster.

    A driver may be stopped and started any number of times; its JVM remains until the process ends.
    """

    def __init__(self, settings: SparkSettings, *, starts: bool = True) -> None:
        """Start at once, or by `start`."""
        self.settings = settings
        self.executors = ExecutorWatch()
        self._changed = threading.Condition()
        self._is_wanted = False
        self.samples: JvmSamples | None = None  # of the JVM, while an application runs
        self._context: Any = None
        self._error: EngineError | None = None
        self._jvm: SparkJvm | None = None
        self._encrypts = True if settings.is_local else None  # not known before the first start
        self._thread: threading.Thread | None = None
        if starts:
            self.start()

    def start(self) -> None:
        """Start Spark in the background; do nothing if it is started, or is being started."""
        with self._changed:
            if self._is_wanted:
                return
            self._is_wanted, self._error = True, None
            before = self._thread
            self._thread = threading.Thread(target=self._run, args=(before,), name="spark", daemon=True)
            self._thread.start()

    def stop(self, *, is_awaited: bool = True) -> None:
        """Stop Spark, and wait until it has ended unless the caller cannot."""
        with self._changed:
            self._is_wanted = False
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and is_awaited:
            thread.join()

    def context(self, gives_up: Callable[[], bool] = lambda: False) -> Any:
        """Wait for the context and return it; raise EngineError if Spark does not start, or is stopped.

        Returns None if the caller gives up meanwhile.
        """
        with self._changed:
            while self._context is None:
                if self.error is not None:
                    raise self.error
                if not self._is_wanted:
                    raise EngineError("Spark is stopped.")
                if gives_up():
                    return None
                self._changed.wait(_WATCH_INTERVAL_S)
            return self._context

    def drop(self, context: Any) -> None:
        """Note that Spark has stopped a context, earlier than the next look at it."""
        with self._changed:
            if self._context is context:
                self._context = None

    def current_context(self) -> Any:
        """Return the context, or None if there is none now."""
        return self._context

    @property
    def error(self) -> EngineError | None:
        """The reason why Spark does not run and will not: it did not start, or its JVM has ended; None otherwise."""
        if self._error is None and self._is_wanted and self._jvm is not None and self._jvm.has_ended:
            self._error = EngineError(f"Spark's JVM has ended (its log: {self.settings.log_file})")
        return self._error

    @property
    def slots(self) -> int:
        """The number of tasks that can run at the same time; waits for Spark and its executors, but not for long."""
        deadline = time.monotonic() + _LONGEST_START_S
        self.context(lambda: time.monotonic() > deadline)
        self.executors.wait_until_settled()
        return self.executors.slots

    @property
    def encrypts_secrets(self) -> bool:
        """Return whether a task's payload, with the credentials of its clients, is safe from others on its way."""
        if self._encrypts is None:
            self.context()
        return bool(self._encrypts)

    # --- the thread of Spark ------------------------------------------------------------------------------------------

    def _run(self, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        attempts = 0  # since an application lasted
        while self._is_wanted and self.error is None:
            attempts += 1
            try:
                context = self._start_context()
            except Exception as error:  # noqa: BLE001  (raised by `context`)
                self._not_started(error, attempts)
            else:
                began_at = time.monotonic()
                self._run_context(context)
                if time.monotonic() - began_at >= _LASTING_S:
                    attempts = 0
            self._pause(attempts)

    def _run_context(self, context: Any) -> None:
        with self._changed:
            self._context = context
            self._changed.notify_all()
        self.samples = samples = JvmSamples(lambda: ask_jvm(context))
        self._watch(context)
        samples.stop()
        with self._changed:
            self._context = None
        with suppress(Exception):  # a context that Spark has stopped may refuse to be stopped
            context.stop()

    def _start_context(self) -> Any:
        if self._jvm is None:
            self._jvm = start_jvm(self.settings)
        self._jvm.new_log_text()
        context = start_context(self.settings, self._jvm)
        conf = context.getConf().get
        self._encrypts = self.settings.is_local or encrypts(conf)
        if self.settings.is_local:
            self.executors.settle_local(int(context.defaultParallelism))
        else:
            self.executors.begin(conf)
        return context

    def _not_started(self, error: Exception, attempts: int) -> None:
        """Try again later if Spark ran before, otherwise give up: the settings may be wrong."""
        log_text = self._jvm.new_log_text() if self._jvm is not None else ""
        reason = f"{spark_error_line(error, log_text)} (its log: {self.settings.log_file})"
        log.debug("%s", trace_of(error))
        if self._jvm is None or not self._jvm.has_had_context or attempts >= _MOST_ATTEMPTS:
            with self._changed:
                self._error = EngineError(f"Spark could not be started: {reason}")
                self._changed.notify_all()
        else:
            log.error("Spark could not be started again: %s. It is tried again.", reason)

    def _pause(self, attempts: int) -> None:
        """Wait before the next start, longer after each application that did not last; give up after many."""
        with self._changed:
            if attempts >= _MOST_ATTEMPTS and self._is_wanted and self.error is None:
                self._error = EngineError(
                    f"Spark has stopped {attempts} applications within a minute each (its log:"
                    f" {self.settings.log_file})"
                )
            if attempts and self._error is None:
                pause_s = min(_FIRST_PAUSE_S * 2 ** (attempts - 1), _LONGEST_PAUSE_S)
                self._changed.wait_for(lambda: not self._is_wanted, pause_s)

    def _watch(self, context: Any) -> None:
        """Follow the executors until the driver is stopped, the JVM ends, or Spark has stopped the context."""
        while self._is_wanted and self.error is None:
            try:
                if is_stopped(context):
                    log.error(
                        "Spark has stopped the application: its log, %s, has the reason. Starting it again.",
                        self.settings.log_file,
                    )
                    return
                if not self.settings.is_local:
                    self.executors.take(read_executors(context))
            except Exception as error:  # noqa: BLE001  (the context is being stopped, or the JVM has ended: seen above)
                log.debug("%s", trace_of(error))
            with self._changed:
                self._changed.wait_for(lambda: not self._is_wanted, _WATCH_INTERVAL_S)


class SparkJvm:
    """The JVM of Spark, and what was read of its log."""

    def __init__(self, gateway: Any, conf: SparkConf, log_file: Path) -> None:
        self.gateway = gateway
        self.conf = conf
        self.has_had_context = False
        self._log_file = log_file
        self._log_at = 0

    @property
    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        process = getattr(self.gateway, "proc", None)  # PySpark has no public access to it
        return process is not None and process.poll() is not None

    def new_log_text(self) -> str:
        """Return what was logged since the last call."""
        with suppress(OSError), self._log_file.open("rb") as log_file:
            log_file.seek(self._log_at)
            text = log_file.read()
            self._log_at += len(text)
            return text.decode(errors="replace")
        return ""


def start_jvm(settings: SparkSettings) -> SparkJvm:
    """Start the JVM with the settings that concern itself; those of the site are in it."""
    from pyspark import SparkConf  # noqa: PLC0415  (half a second that other commands save)
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1" if settings.is_local else "")
    if not os.environ["SPARK_LOCAL_IP"]:
        del os.environ["SPARK_LOCAL_IP"]
    _forbid_core_dumps()
    _make_folder(settings)
    settings.log_config_file.write_text(_LOG_CONFIG.format(log=settings.log_file))
    site = site_settings(Path(_find_spark_home()))
    ours = our_settings(settings.master, site, settings.conf, settings.buffer_bytes)
    conf = SparkConf().setMaster(settings.master)
    for name, value in {**ours, **_python_sockets(settings), **settings.conf}.items():
        conf.set(name, value)
    # Not as spark.driver.extraJavaOptions: these are the site's, or the user's, and come later on the command line.
    options = f"{_QUICK_JVM} -Dlog4j2.configurationFile=file:{settings.log_config_file}"
    options = f"{options} {os.environ.get(_JVM_OPTIONS, '')}".strip()
    with _variable(_JVM_OPTIONS, options), settings.log_file.open("ab") as output:
        gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
    # Only now: with the site's spark-defaults.conf read, and off the command line, which everyone can read.
    effective = SparkConf(_jvm=gateway.jvm)
    for name, value in authentication(settings.master, effective.get).items():
        conf.set(name, value)
    return SparkJvm(gateway, conf, settings.log_file)


def start_context(settings: SparkSettings, jvm: SparkJvm) -> Any:
    """Start an application in the JVM, and ship our code to its executors; blocks until its master answers."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    effective = SparkConf(_jvm=jvm.gateway.jvm)
    chosen = {**dict(effective.getAll()), **dict(jvm.conf.getAll())}
    python = chosen.get(PYTHON) or os.environ.get(_PYTHON_VARIABLE) or packed_python(chosen.get("spark.archives", ""))
    with _variable(_PYTHON_VARIABLE, python or sys.executable):
        context = SparkContext(conf=jvm.conf, gateway=jvm.gateway)
    jvm.has_had_context = True
    if not authenticates(context.getConf().get):
        log.warning("%s", OPEN_PORTS)
    if not settings.is_local:
        if settings.code is None:
            settings.code = write_code_archive(settings.folder)
        context.addPyFile(str(settings.code.path))
        if context.uiWebUrl:
            log.info("Spark's UI is at %s", context.uiWebUrl)
    return context


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


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

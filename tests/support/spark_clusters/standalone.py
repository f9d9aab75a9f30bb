"""A standalone Spark cluster from PySpark's own jars: a master beside the driver, each worker on a machine of its own.

Workers get an empty home and none of this process's variables, so that an executor has what a fresh host would have.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

from heliograph.embedded.java import java_home
from heliograph.embedded.process import free_ports
from tests.support.runs.copying import wait_for
from tests.support.runs.running import is_python_daemon
from tests.support.spark_clusters.machines import Machine, MachineNetwork, is_alive, kill_all

_DAEMON_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_YARN_EXECUTOR = "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend"
_DAEMON_HEAP = "256m"
_LOG_CONFIG = """\
status = OFF
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%ex
logger.spark.name = org.sparkproject
logger.spark.level = WARN
"""


class SparkWorker:
    """One worker and its machine."""

    def __init__(self, cluster: StandaloneCluster, machine: Machine, number: int) -> None:
        self.machine = machine
        self.folder = cluster.folder / f"worker-{number}"
        self.log = cluster.folder / f"worker-{number}.log"
        self._cluster = cluster
        self.start()

    def start(self) -> None:
        """Start the worker process; again after its machine was lost."""
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        cluster, address = self._cluster, self.machine.address
        options = ["--host", address, "--cores", str(cluster.cores), "--memory", cluster.memory, "--webui-port", "0"]
        command = _spark_class("worker.Worker", *options, cluster.master_url)
        variables = {"HOME": str(home), "SPARK_WORKER_DIR": str(self.folder), "SPARK_LOCAL_DIRS": str(self.folder)}
        self.process = self.machine.launch(command, self.log, cluster.daemon_variables(address) | variables)

    def executors(self) -> list[psutil.Process]:
        """The JVMs of its executors."""
        return executors_among(self.machine.processes())

    def python_workers(self) -> list[psutil.Process]:
        """The Python processes of its executors that run tasks: children of their daemons."""
        return python_workers_among(self.machine.processes())

    def kill_executors(self) -> int:
        """Kill -9 the JVMs of its executors, and return their number; the worker starts others."""
        executors = self.executors()
        kill_all(executors)
        return len(executors)


@dataclass(frozen=True, slots=True)
class Registered:
    """The workers and cores of the cluster, as its master counts them."""

    workers: int
    cores: int
    cores_used: int
    applications: int


class StandaloneCluster:
    """A master, and workers that come and go."""

    def __init__(
        self,
        network: MachineNetwork,
        folder: Path,
        *,
        workers: int = 2,
        cores: int = 2,
        memory: str = "2g",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Start it and wait until its workers are registered; `settings` are a site's spark-defaults.conf."""
        self.network, self.folder, self.cores, self.memory = network, folder, cores, memory
        self.workers: list[SparkWorker] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._conf = folder / "conf"
        self._conf.mkdir()
        (self._conf / "log4j2.properties").write_text(_LOG_CONFIG)
        lines = [f"{name} {value}\n" for name, value in (settings or {}).items()]
        (self._conf / "spark-defaults.conf").write_text("".join(lines))
        self._port, self._ui_port = free_ports(2)
        self._master: psutil.Process | None = None
        try:
            self.start_master()
            for _ in range(workers):
                self.add_worker(is_awaited=False)
            self.wait_for_workers(workers)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def master_url(self) -> str:
        """The value of `--master`."""
        return f"spark://{self.network.address}:{self._port}"

    @property
    def driver_settings(self) -> dict[str, str]:
        """The Spark settings of a driver beside the master: the address by which executors reach it."""
        return {"spark.driver.host": self.network.address, "spark.driver.bindAddress": self.network.address}

    @property
    def driver_options(self) -> list[str]:
        """The options of `heliograph run` and `worker` for this cluster."""
        pairs = [f"{name}={value}" for name, value in self.driver_settings.items()]
        return ["--master", self.master_url, *(word for pair in pairs for word in ("--conf", pair))]

    @property
    def driver_variables(self) -> dict[str, str]:
        """The variables of a driver beside the master: the site's spark-defaults.conf."""
        address = self.network.address
        return {"SPARK_CONF_DIR": str(self._conf), "SPARK_LOCAL_IP": address, "SPARK_LOCAL_HOSTNAME": address}

    def daemon_variables(self, address: str) -> dict[str, str]:
        """The variables of masters and workers."""
        recovery = {"recoveryMode": "FILESYSTEM", "recoveryDirectory": self.folder / "recovery"}
        options = [f"-Dspark.deploy.{name}={value}" for name, value in recovery.items()]
        return {
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONF_DIR": str(self._conf),
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_HOSTNAME": address,  # without it Spark asks name servers for its own address
            "SPARK_DAEMON_MEMORY": _DAEMON_HEAP,
            "SPARK_DAEMON_JAVA_OPTS": " ".join([_DAEMON_JVM, self.network.mark, *options]),
            "PYSPARK_PYTHON": sys.executable,
        }

    def start_master(self) -> None:
        """Start the master; after `stop_master` it recovers its workers and applications from its files."""
        address = self.network.address
        options = ["--host", address, "--port", str(self._port), "--webui-port", str(self._ui_port)]
        log = self.folder / "master.log"
        variables = self.daemon_variables(address) | {"HOME": str(self.folder)}
        self._master = self.network.here.launch(_spark_class("master.Master", *options), log, variables)
        master = self._master
        wait_for(lambda: self._is_up() or not is_alive(master), pause_s=0.1)
        assert self._is_up(), f"the master ended at its start: {log.read_text()[-2000:]}"

    def stop_master(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the master's process."""
        assert self._master is not None
        self._master.send_signal(how)
        psutil.wait_procs([self._master], timeout=20)

    def add_worker(self, *, is_awaited: bool = True) -> SparkWorker:
        """Add a machine with a worker."""
        before = self.registered().workers
        worker = SparkWorker(self, self.network.add_machine(), len(self.workers) + 1)
        self.workers.append(worker)
        if is_awaited:
            self.wait_for_workers(before + 1)
        return worker

    def registered(self) -> Registered:
        """Ask the master, in its state ALIVE, for what it counts."""
        answer = self._ask()
        return Registered(
            int(answer["aliveworkers"]), int(answer["cores"]), int(answer["coresused"]), len(answer["activeapps"])
        )

    def wait_for_workers(self, count: int) -> None:
        """Wait until the master counts this number of workers."""
        wait_for(lambda: self._is_up() and self.registered().workers >= count, pause_s=0.2)

    def close(self) -> None:
        """Kill everything; applications that still run lose their executors."""
        for worker in self.workers:
            worker.machine.kill()
        if self._master is not None:
            kill_all([self._master])

    def _is_up(self) -> bool:
        with suppress(OSError, ValueError, http.client.HTTPException):
            return bool(self._ask()["status"] == "ALIVE")
        return False

    def _ask(self) -> Any:
        connection = http.client.HTTPConnection(self.network.address, self._ui_port, timeout=5)
        try:
            connection.request("GET", "/json/")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


def spark_home() -> Path:
    """Return the folder of PySpark, which has Spark's jars and scripts."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _spark_class(name: str, *arguments: str) -> list[str]:
    return [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]


def executors_among(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the JVMs of executors; YARN starts each by a shell with the same words."""
    commands = [(each, _command(each)) for each in processes]
    return [
        each
        for each, words in commands
        if words[:1] and words[0].endswith("java") and {_EXECUTOR, _YARN_EXECUTOR} & {*words}
    ]


def python_workers_among(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the children of the executors' Python daemons, which run tasks."""
    daemons = [each for each in processes if is_python_daemon(each)]
    pids = {daemon.pid for daemon in daemons}
    return [each for each in daemons if each.ppid() in pids]


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []

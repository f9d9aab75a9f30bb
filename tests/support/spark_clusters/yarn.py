"""A YARN cluster from Hadoop's jars: a ResourceManager beside the driver, each NodeManager on a machine of its own.

Java gets a hosts file with every address as its own name, so that no process asks a name server. Containers inherit
nothing from the test's process. Spark's jars are taken from PySpark's folder: uploading them would take a minute.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from xml.sax.saxutils import escape

from heliograph.embedded.java import java_command, java_home
from heliograph.embedded.process import free_ports
from tests.support.runs.copying import wait_for
from tests.support.spark_clusters.machines import Machine, MachineNetwork, is_alive, kill_all
from tests.support.spark_clusters.standalone import executors_among, python_workers_among, spark_home
from tests.support.spark_clusters.yarn_jars import ensure_yarn_jars

if TYPE_CHECKING:
    import psutil

_JVM = ["-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
_OPEN = ["--add-opens=java.base/java.lang=ALL-UNNAMED"]
_OPEN += [f"--add-exports=java.base/sun.net.{name}=ALL-UNNAMED" for name in ("dns", "util")]
_LOG_CONFIG = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""
_COMMAND = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
_QUEUE = "yarn.scheduler.capacity"


class NodeManager:
    """One NodeManager and its machine."""

    def __init__(self, cluster: YarnCluster, machine: Machine, number: int) -> None:
        self.machine = machine
        self.folder = cluster.folder / f"node-{number}"
        self.log = cluster.folder / f"node-{number}.log"
        (self.folder / "home").mkdir(parents=True)
        address, ports = machine.address, free_ports(3)
        names = ("address", "localizer.address", "webapp.address")
        conf = self.folder / "conf"
        cluster.write_conf(
            conf,
            {
                "yarn.nodemanager.hostname": address,
                "yarn.nodemanager.bind-host": address,
                "yarn.nodemanager.local-dirs": str(self.folder / "local"),
                "yarn.nodemanager.log-dirs": str(self.folder / "logs"),
                "yarn.nodemanager.user-home-dir": str(self.folder / "home"),
                "yarn.nodemanager.admin-env": f"SPARK_LOCAL_IP={address},SPARK_LOCAL_HOSTNAME={address}",
                **{f"yarn.nodemanager.{name}": f"{address}:{port}" for name, port in zip(names, ports, strict=True)},
            },
        )
        self.process = machine.launch(
            cluster.java("nodemanager.NodeManager", conf), self.log, cluster.daemon_variables(conf)
        )

    def executors(self) -> list[psutil.Process]:
        """The JVMs of executors in its containers."""
        return executors_among(self.machine.processes())

    def python_workers(self) -> list[psutil.Process]:
        """The Python processes that run tasks."""
        return python_workers_among(self.machine.processes())

    def kill_executors(self) -> int:
        """Kill -9 the JVMs of executors, and return their number."""
        executors = self.executors()
        kill_all(executors)
        return len(executors)


class YarnCluster:
    """A ResourceManager and NodeManagers."""

    def __init__(
        self,
        network: MachineNetwork,
        folder: Path,
        *,
        node_managers: int = 2,
        memory_mb: int = 4096,
        cores: int = 4,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Start it and wait until its nodes are registered; `settings` are a site's spark-defaults.conf."""
        self.network, self.folder = network, folder
        self.nodes: list[NodeManager] = []
        self._limits = {"memory-mb": memory_mb, "cpu-vcores": cores}
        self._ports = free_ports(5)
        self._libs = ensure_yarn_jars()
        self._conf = folder / "conf"
        folder.mkdir(parents=True, exist_ok=True)
        self._hosts = folder / "hosts"
        self._name_hosts([])
        self.write_conf(self._conf, {})
        self._write_spark_conf(settings or {})
        try:
            log = folder / "resource-manager.log"
            command = self.java("resourcemanager.ResourceManager", self._conf)
            self._manager = network.here.launch(command, log, self.daemon_variables(self._conf))
            wait_for(lambda: self._is_up() or not is_alive(self._manager), pause_s=0.2)
            assert self._is_up(), f"the ResourceManager ended at its start: {log.read_text()[-3000:]}"
            machines = [network.add_machine() for _ in range(node_managers)]
            self._name_hosts(machines)
            self.nodes = [NodeManager(self, machine, number) for number, machine in enumerate(machines, 1)]
            wait_for(lambda: self._metrics()["activeNodes"] == node_managers, pause_s=0.2)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def driver_options(self) -> list[str]:
        """The options of `heliograph run` and `worker` for this cluster."""
        address = self.network.address
        pairs = [f"spark.driver.host={address}", f"spark.driver.bindAddress={address}"]
        return ["--master", "yarn", *(word for pair in pairs for word in ("--conf", pair))]

    @property
    def driver_variables(self) -> dict[str, str]:
        """The variables of a driver beside the ResourceManager, and of Hadoop's commands."""
        address = self.network.address
        return {
            "HADOOP_CONF_DIR": str(self._conf),
            "SPARK_CONF_DIR": str(self._conf),
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_HOSTNAME": address,
            "JDK_JAVA_OPTIONS": f"-Djdk.net.hosts.file={self._hosts}",
        }

    def kill_application(self) -> None:
        """Kill the newest running application, as `yarn application -kill` does; Spark's jars have this command."""
        command = [java_command(), "-cp", f"{self._conf}:{spark_home()}/jars/*", _COMMAND, "-kill"]
        command.append(str(self.applications("RUNNING")[0]["id"]))
        done = subprocess.run(command, env={**os.environ, **self.driver_variables}, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()

    def applications(self, *states: str) -> list[dict[str, Any]]:
        """The applications in these states, newest first."""
        found = (self._ask(f"apps?states={','.join(states)}") or {}).get("apps") or {}
        return sorted(found.get("app", []), key=lambda each: -int(each["startedTime"]))

    def java(self, name: str, conf: Path) -> list[str]:
        """Return the command line of a daemon."""
        options = [*_JVM, *_OPEN, self.network.mark, f"-Djdk.net.hosts.file={self._hosts}"]
        return [java_command(), *options, "-cp", f"{conf}:{self._libs}/*", f"org.apache.hadoop.yarn.server.{name}"]

    def daemon_variables(self, conf: Path) -> dict[str, str]:
        """The variables of daemons."""
        return {"JAVA_HOME": str(java_home()), "HADOOP_CONF_DIR": str(conf), "HOME": str(self.folder)}

    def write_conf(self, folder: Path, more: Mapping[str, str]) -> None:
        """Write Hadoop's configuration: the cluster's, and more for one node."""
        folder.mkdir(parents=True)
        address = self.network.address
        names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
        ports = zip(names, self._ports, strict=True)
        scheduler = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
        yarn = {
            "yarn.resourcemanager.hostname": address,
            **{f"yarn.resourcemanager.{name}": f"{address}:{port}" for name, port in ports},
            "yarn.resourcemanager.scheduler.class": scheduler,
            **{f"yarn.nodemanager.resource.{name}": str(value) for name, value in self._limits.items()},
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.delete.debug-delay-sec": "600",  # the test deletes the folder; logs are read before
            "yarn.nodemanager.disk-health-checker.enable": "false",
            **more,
        }
        queues = {
            f"{_QUEUE}.root.queues": "default",
            f"{_QUEUE}.root.default.capacity": "100",
            f"{_QUEUE}.maximum-am-resource-percent": "1",
            f"{_QUEUE}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        }
        core = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(self.folder / "tmp")}
        for name, values in (("core", core), ("yarn", yarn), ("capacity", queues)):
            file = "capacity-scheduler.xml" if name == "capacity" else f"{name}-site.xml"
            (folder / file).write_text(_xml(values))
        (folder / "log4j.properties").write_text(_LOG_CONFIG)

    def _write_spark_conf(self, settings: Mapping[str, str]) -> None:
        site = {
            "spark.yarn.jars": f"local:{spark_home()}/jars/*",
            "spark.yarn.stagingDir": f"file://{self.folder}/staging",
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
            **settings,
        }
        (self._conf / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in site.items()))

    def _name_hosts(self, machines: list[Machine]) -> None:
        addresses = [self.network.address, *(machine.address for machine in machines)]
        own = f"{self.network.address} {socket.gethostname()} localhost\n"
        self._hosts.write_text("".join(f"{address} {address}\n" for address in addresses) + own)

    def close(self) -> None:
        """Kill everything."""
        for machine in self.network.machines:
            machine.kill()
        self.network.here.kill()

    def _metrics(self) -> Any:
        return (self._ask("metrics") or {}).get("clusterMetrics", {"activeNodes": -1})

    def _is_up(self) -> bool:
        return self._ask("info") is not None

    def _ask(self, path: str) -> Any:
        connection = http.client.HTTPConnection(self.network.address, self._ports[-1], timeout=5)
        with suppress(OSError, ValueError, http.client.HTTPException):
            connection.request("GET", f"/ws/v1/cluster/{path}", headers={"Accept": "application/json"})
            answer = connection.getresponse()
            return json.loads(answer.read()) if answer.status == 200 else None
        connection.close()
        return None


def _xml(values: Mapping[str, str]) -> str:
    rows = (f"<property><name>{k}</name><value>{escape(v)}</value></property>\n" for k, v in values.items())
    return f"<configuration>\n{''.join(rows)}</configuration>\n"

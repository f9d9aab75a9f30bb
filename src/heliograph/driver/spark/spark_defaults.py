"""Spark's settings that we choose, unless the site or the user has chosen: what a long-lived copy needs.

The site's settings are those of `spark-defaults.conf`. They must be known before the JVM starts, since a setting on the
command line of `spark-submit` overrides that file. Precedence: the user's `--conf`, what replication relies on, the
site, our defaults.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heliograph.config.syntax.properties import as_map, parse_leniently
from heliograph.driver.spark.secret_transport import is_local

if TYPE_CHECKING:
    from collections.abc import Mapping


_REQUIRED: Final = {
    "spark.task.maxFailures": "1",  # we start a lost task again, from its newest committed offsets
    "spark.speculation": "false",  # a second run of a task would be a second writer of its partitions
    "spark.io.encryption.enabled": "true",  # a payload that is large, or finds no memory, is written to a file
}
_DEFAULTS: Final = {
    "spark.app.name": "heliograph",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    "spark.python.worker.reuse": "true",
    "spark.scheduler.mode": "FAIR",
    "spark.hadoop.hadoop.security.groups.cache.background.reload": "false",
}
_OF_A_CLUSTER: Final = {
    "spark.ui.enabled": "true",
    "spark.ui.killEnabled": "false",  # the UI has no login; a task that is killed there would start again
    "spark.decommission.enabled": "true",  # tasks leave an executor before it is taken away
    # The application lasts for months: failures of executors must not add up over its life.
    "spark.executor.failuresValidityInterval": "10m",
    "spark.executor.maxNumFailures": "100",
    "spark.yarn.am.attemptFailuresValidityInterval": "1h",
}
# Spark may give a restarted task to a machine that is cut off until it notices, by default after two to three minutes.
# Now it does within one. The values depend on each other, and Spark refuses some combinations.
_OF_LOST_MACHINES: Final = {
    "spark.executor.heartbeatInterval": "5s",
    "spark.network.timeout": "40s",
    "spark.network.timeoutInterval": "5s",
}
_MIB: Final = 1 << 20
_EXECUTOR_OVERHEAD_MIB: Final = 384  # the JVM itself, as Spark reckons
_TASK_MIB: Final = 128  # a Python worker beside its buffers: it was measured at 100 to 146
_PACKED_NAME: Final = "environment"

PYTHON = "spark.pyspark.python"


def site_settings(spark_home: Path) -> dict[str, str]:
    """Return the settings of the site's spark-defaults.conf; none if there is no such file."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf")
    try:
        text = (folder / "spark-defaults.conf").read_text()
    except OSError:
        return {}
    return {name: value.strip() for name, value in as_map(parse_leniently(text).entries).items()}


def our_settings(master: str, site: Mapping[str, str], user: Mapping[str, str], buffer_bytes: int) -> dict[str, str]:
    """Return the settings to pass to Spark besides the user's; `buffer_bytes` is the largest buffer of a task."""
    known = {**site, **user}
    ours = dict(_DEFAULTS)
    if is_local(master):
        ours["spark.ui.enabled"] = "false"
    else:
        ours |= _OF_A_CLUSTER
        if not known.keys() & _OF_LOST_MACHINES.keys():
            ours |= _OF_LOST_MACHINES
    if master == "yarn" or master.startswith("k8s://"):
        ours["spark.executor.memoryOverhead"] = f"{memory_overhead_mib(known, buffer_bytes)}m"
    if "spark.executor.memoryOverheadFactor" in known:
        ours.pop("spark.executor.memoryOverhead", None)
    chosen = {name: value for name, value in ours.items() if name not in known}
    return {**chosen, **{name: value for name, value in _REQUIRED.items() if name not in user}}


def memory_overhead_mib(settings: Mapping[str, str], buffer_bytes: int) -> int:
    """Return the memory beside the JVM's heap that the Python workers of an executor need, with all its slots taken."""
    slots = max(1, _whole(settings, "spark.executor.cores") // _whole(settings, "spark.task.cpus"))
    return _EXECUTOR_OVERHEAD_MIB + slots * (_TASK_MIB + -(-buffer_bytes // _MIB))


def _whole(settings: Mapping[str, str], name: str) -> int:
    value = settings.get(name, "1")
    return max(1, int(value)) if value.isdecimal() else 1  # Spark refuses anything else with its own message


def packed_python(archives: str) -> str | None:
    """Return the Python of an environment archive among `spark.archives`, as executors reach it; None if none is one.

    Spark unpacks an archive below the executor's working folder, under the name after `#`, or its own.
    """
    for archive in archives.split(","):
        path, _mark, alias = archive.strip().partition("#")
        folder = alias or path.rpartition("/")[2]
        if _PACKED_NAME in folder:
            return f"./{folder}/bin/python"
    return None

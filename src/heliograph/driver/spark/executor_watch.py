"""Tracks the executors of a Spark application: how many tasks they can run, and which of them are leaving.

A local master has its slots at once. On a cluster executors register one by one, seconds after the start, and come and
go later, so the slots are counted from what has registered: `spark.task.cpus` cores each. `SparkDriver` refreshes this
about once a second; all else reads the last count and never waits for the JVM.

With dynamic allocation Spark adds executors for tasks that wait, so the registered ones do not limit a flow that names
its own `tasks.max`.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from heliograph.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable


log = logging.getLogger(__name__)

_SETTLED_AFTER_S: Final = 3.0  # without a further executor
_LONGEST_WAIT_S: Final = 30.0  # for the first executor
_DRIVER: Final = "driver"


class Executor(NamedTuple):
    """An executor that is registered: how many tasks it runs at the same time, and whether it is decommissioned."""

    executor_id: str
    host: str
    slots: int
    is_leaving: bool = False


class ExecutorWatch:
    """The executors of one application; thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._settled = threading.Event()
        self._executors: tuple[Executor, ...] = ()
        self._is_dynamic = False
        self._expected: int | None = None
        self._began_at = self._changed_at = clock()
        self._logged_slots: int | None = None

    def begin(self, setting: Callable[[str, str], str]) -> None:
        """Expect the executors of a new application; `setting` takes a name and a default."""
        self._settled.clear()
        self._executors = ()
        self._is_dynamic = setting("spark.dynamicAllocation.enabled", "false") == "true"
        self._expected = None if self._is_dynamic else expected_slots(setting)
        self._began_at = self._changed_at = self._clock()

    def settle_local(self, slots: int) -> None:
        """Take the slots of a local master."""
        self._executors = (Executor(_DRIVER, "", slots),)
        self._settled.set()

    def take(self, executors: tuple[Executor, ...]) -> None:
        """Take what is registered now; log a change."""
        now = self._clock()
        if executors != self._executors:
            self._executors, self._changed_at = executors, now
        slots, waited_s = self.slots, now - self._began_at
        is_complete = self._expected is not None and slots >= self._expected
        is_quiet = bool(slots) and now - self._changed_at >= _SETTLED_AFTER_S
        longest_s = _SETTLED_AFTER_S if self._is_dynamic else _LONGEST_WAIT_S
        if is_complete or is_quiet or waited_s >= longest_s:
            if not self._settled.is_set() and not slots and not self._is_dynamic:
                log.warning(
                    "Spark has started no executor in %.0f s; tasks wait. Look at the cluster's own pages or logs:"
                    " other applications may have all of its cores, or executors fail at their start.",
                    waited_s,
                )
            self._settled.set()
        if self._settled.is_set() and slots != self._logged_slots:
            count = len([each for each in executors if not each.is_leaving])
            log.info("Spark has %s on %s", counted(slots, "slot"), counted(count, "executor"))
            self._logged_slots = slots

    def wait_until_settled(self) -> None:
        """Wait until the count no longer grows, for a bounded time."""
        self._settled.wait(_LONGEST_WAIT_S + _SETTLED_AFTER_S)

    @property
    def slots(self) -> int:
        """The number of tasks that the registered executors can run at the same time."""
        return sum(each.slots for each in self._executors if not each.is_leaving)

    @property
    def grows_for_tasks(self) -> bool:
        """Return whether Spark adds executors for tasks that wait for a slot."""
        return self._is_dynamic

    @property
    def leaving(self) -> frozenset[str]:
        """The ids of executors that are decommissioned: their tasks have a grace period to move."""
        return frozenset(each.executor_id for each in self._executors if each.is_leaving)


def expected_slots(setting: Callable[[str, str], str]) -> int | None:
    """Return the slots that an application will have by its settings; None if they do not say."""

    def whole(name: str) -> int:
        value = setting(name, "0")
        return int(value) if value.isdecimal() else 0

    cpus = max(1, whole("spark.task.cpus"))
    of_executor = whole("spark.executor.cores")
    if whole("spark.cores.max") and not whole("spark.executor.instances"):
        return whole("spark.cores.max") // cpus or None
    if not whole("spark.executor.instances"):
        return None
    is_standalone = setting("spark.master", "").startswith("spark://")
    if is_standalone and not of_executor:
        return None
    return whole("spark.executor.instances") * (max(1, of_executor) // cpus) or None


def is_stopped(context: Any) -> bool:
    """Return whether an application has ended; PySpark's own state is that of its last call."""
    java = context._jsc  # noqa: SLF001
    return java is None or bool(java.sc().isStopped())


def read_executors(context: Any) -> tuple[Executor, ...]:
    """Ask Spark's status store and its scheduler; PySpark has no public access to either."""
    scala = context._jsc.sc()  # noqa: SLF001
    scheduler, found = scala.taskScheduler(), []
    summaries = scala.statusStore().executorList(True)
    for number in range(summaries.size()):
        summary = summaries.apply(number)
        name = str(summary.id())
        if name != _DRIVER:
            is_leaving = bool(scheduler.getExecutorDecommissionState(name).isDefined())
            found.append(Executor(name, str(summary.hostPort()), int(summary.maxTasks()), is_leaving))
    return tuple(sorted(found))


def executor_of(context: Any, job_group: str) -> str | None:
    """Return the id of the executor that runs the task of a job group; None if none does yet."""
    jobs = context.statusTracker().getJobIdsForGroup(job_group)
    job = context.statusTracker().getJobInfo(max(jobs)) if jobs else None
    if job is None or not job.stageIds:
        return None
    tasks = context._jsc.sc().statusStore().taskList(job.stageIds[-1], 0, 1)  # noqa: SLF001
    return str(tasks.apply(0).executorId()) if tasks.size() else None

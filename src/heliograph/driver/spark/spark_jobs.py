"""The Spark jobs of copy tasks: one job with one partition for each start of a task.

Spark's UI shows a job by its group and its description: flow, task and partitions.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from heliograph.driver.spark.executor_watch import executor_of, is_stopped
from heliograph.errors import EngineError
from heliograph.executor.copy.copy_task import task_function
from heliograph.executor.shipped_code import ShippedTask, shipped_function
from heliograph.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from heliograph.driver.spark.spark_session import SparkDriver, SparkSettings
    from heliograph.executor.contract.task_spec import TaskSpec


_MOST_SHOWN = 8
STOPPED = "the Spark application was stopped; the task continues in the next one."


class SparkJobs:
    """Runs and cancels the jobs of tasks, in whichever context the driver has at the time."""

    def __init__(self, driver: SparkDriver) -> None:
        self._driver = driver

    def run(self, spec: TaskSpec, gives_up: Callable[[], bool]) -> dict[str, Any] | None:
        """Run a task to its end and return its outcome; raise what Spark raises.

        Waits for a context if there is none; returns None if the caller gives up meanwhile.
        """
        context = self._driver.context(gives_up)
        if context is None:
            return None
        try:
            context.setJobGroup(job_group(spec), job_description(spec), interruptOnCancel=True)
            function = _function(spec, self._driver.settings)
            outcome: dict[str, Any] = json.loads(context.parallelize([0], 1).mapPartitions(function).collect()[0])
        except Exception:
            if is_stopped(context):
                self._driver.drop(context)  # the next start of the task waits for the next application
                raise EngineError(STOPPED) from None
            raise
        return outcome

    def cancel(self, spec: TaskSpec) -> None:
        """Cancel the job of a task, if there is one: Spark kills the Python worker within seconds."""
        context = self._driver.current_context()
        if context is not None:
            with suppress(Exception):  # if Spark has ended, so has the job
                context.cancelJobGroup(job_group(spec))

    def executor_of(self, spec: TaskSpec) -> str | None:
        """Return the id of the executor that runs a task; None if none does."""
        context = self._driver.current_context()
        if context is not None:
            with suppress(Exception):  # if Spark has ended, so has the task
                return executor_of(context, job_group(spec))
        return None


def job_group(spec: TaskSpec) -> str:
    """Return the name of a task's job group; each start has its own."""
    return f"heliograph-{spec.task_id}-{spec.attempt}"


def job_description(spec: TaskSpec) -> str:
    """Return what Spark's UI shows of a task's job: its flow, its id, and the first of its partitions."""
    shown = ", ".join(str(partition.tp) for partition in spec.partitions[:_MOST_SHOWN])
    more = ", ..." if len(spec.partitions) > _MOST_SHOWN else ""
    partitions = counted(len(spec.partitions), "partition")
    return f"{spec.flow}, task {spec.task_id}: {partitions}{': ' if shown else ''}{shown}{more}"


def _function(spec: TaskSpec, settings: SparkSettings) -> Callable[[Iterable[object]], Iterator[str]]:
    """Return the function that Spark runs; a machine other than this gets the code along with it."""
    if settings.is_local or settings.code is None:
        return task_function(spec)
    from pyspark import __version__  # noqa: PLC0415  (loaded with the context)
    from pyspark.serializers import CPickleSerializer  # noqa: PLC0415

    return shipped_function(ShippedTask(settings.code.digest, __version__, CPickleSerializer().dumps(spec)))

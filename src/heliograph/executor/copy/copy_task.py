"""The function that Spark calls in its Python worker: run the copy loop, return the outcome as JSON.

Errors are returned as values: a Spark stack trace helps nobody. Only a worker that dies makes the Spark job fail.

Invariant: a spec is run once. If an executor is lost for a reason that is not the task's (a lost machine, a preempted
container), Spark runs the same function again whatever `spark.task.maxFailures` says. Its spec is as old as the first
run: source offsets and partitions have changed since. So a second run only reports that it is one, and the driver
starts the task anew.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.config.secrets.known_secrets import HIDDEN, hide_known, remember_secret
from heliograph.errors import FencedError, HeliographError
from heliograph.executor.contract.task_spec import secrets_of
from heliograph.executor.copy.copy_loop import run_copy
from heliograph.executor.copy.lease_client import LeaseClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from heliograph.executor.contract.task_spec import TaskSpec


STARTED_TWICE = "Spark has started the task a second time; it restarts from its newest source offsets."


def task_function(spec: TaskSpec) -> Callable[[Iterable[object]], Iterator[str]]:
    """Return the function for a Spark partition. It holds the spec: data of `parallelize` passes through a file."""
    return partial(_run, spec)


def _run(spec: TaskSpec, _rows: Iterable[object]) -> Iterator[str]:
    yield json.dumps(_outcome(spec))


def _outcome(spec: TaskSpec) -> dict[str, object]:
    if spec.lease is None:
        return {"error": "the task has no lease."}
    if _is_further_run():
        return {"error": STARTED_TWICE}
    for secret in secrets_of(spec):  # hidden in what this process logs and reports
        remember_secret(secret, HIDDEN)
    lease = LeaseClient(spec.lease, spec.task_id, spec.attempt)
    try:
        return {"report": run_copy(spec, lease), "stopped": lease.stop_reason}
    except HeliographError as error:
        return {"error": hide_known(str(error)), "fenced": isinstance(error, FencedError)}
    except Exception as error:  # noqa: BLE001  (the boundary of a task: whatever it is, the driver must know)
        return {"error": unexpected(error), "trace": trace_of(error)}
    finally:
        lease.close()


def _is_further_run() -> bool:
    from pyspark import TaskContext  # noqa: PLC0415  (a worker of Spark has it loaded; the driver need not wait for it)

    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0

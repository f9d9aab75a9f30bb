"""What Spark calls in its Python worker: unpack the spec, run the copy loop, hand the outcome back as JSON.

Errors come back as values: a Spark stack trace helps nobody. Only a worker that dies makes the Spark job fail.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from heliograph.engine.copy_loop import run_copy
from heliograph.engine.crash_report import trace_of, unexpected
from heliograph.engine.lease import LeaseClient
from heliograph.errors import FencedError, HeliographError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from heliograph.engine.spec import TaskSpec


def task_function(spec: TaskSpec) -> Callable[[Iterable[object]], Iterator[str]]:
    """The function for a Spark partition. It holds the spec: data for `parallelize` would pass through a file."""
    return partial(_run, spec)


def _run(spec: TaskSpec, _rows: Iterable[object]) -> Iterator[str]:
    yield json.dumps(_outcome(spec))


def _outcome(spec: TaskSpec) -> dict[str, object]:
    if spec.lease is None:
        return {"error": "the task has no lease."}
    lease = LeaseClient(spec.lease, spec.task_id, spec.attempt)
    try:
        return {"report": run_copy(spec, lease), "stopped": lease.stop_reason}
    except HeliographError as error:
        return {"error": str(error), "fenced": isinstance(error, FencedError)}
    except Exception as error:  # noqa: BLE001  (the boundary of a task: whatever it is, the driver must be told)
        return {"error": unexpected(error), "trace": trace_of(error)}
    finally:
        lease.close()

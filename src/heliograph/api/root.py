"""`/` and `/health`: which worker this is, and whether it works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import heliograph
from heliograph.api.errors import INTERNAL_ONLY
from heliograph.api.exchange import Answer, json_answer
from heliograph.worker.connect_types import CONNECT_VERSION

if TYPE_CHECKING:
    from heliograph.api.exchange import Call


def describe_worker(call: Call) -> Answer:
    """The version is the one of Connect whose API this is; what built it stands where Connect tells its commit."""
    commit = f"heliograph-{heliograph.__version__}"
    return json_answer(
        {"version": CONNECT_VERSION, "commit": commit, "kafka_cluster_id": call.herder.cluster_id()},
    )


def health(call: Call) -> Answer:
    """Ready, or still starting."""
    if call.herder.is_ready():
        return _health(200, "healthy", "Worker has completed startup and is ready to handle requests.")
    return _health(503, "starting", "Worker is still starting up.")


def unhealthy() -> Answer:
    """What is said when the worker did not say in time whether it is ready."""
    words = "Worker was unable to handle this request and may be unable to handle other requests."
    return _health(500, "unhealthy", words)


def refuse_internal(call: Call) -> Answer:  # noqa: ARG001
    """Java's workers tell each other tasks and fences here, signed; ours need neither."""
    raise INTERNAL_ONLY.error()


def _health(status: int, word: str, message: str) -> Answer:
    return json_answer({"status": word, "message": message}, status)

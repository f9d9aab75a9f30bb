"""What a source connector tells of itself: the steps of its loop by name, and its state in Connect's words.

Java's MM2 is RUNNING while it may not even see its topics, and says so in a log alone. Here a connector that has
nothing to copy because its topics are in trouble is FAILED; any other trouble stands as a trace beside RUNNING.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heliograph.worker.connect_types import State
    from heliograph.worker.source_flow import SourceFlow

TASK_STEP = "task "  # and its number


class SourceStep(StrEnum):
    """A step of a source connector's loop."""

    START = "start"
    TOPICS = "topics"
    ACLS = "ACLs"
    CONFIGS = "configs"
    SYNCS = "offset syncs"
    RESTARTS = "restarts"


_STATES: dict[str, State] = {"STARTING": "UNASSIGNED", "RUNNING": "RUNNING", "FAILED": "FAILED"}  # else it has ended


def source_state(flow: SourceFlow) -> tuple[State, str | None]:
    """The state of the connector itself, and what troubles it; its tasks have their own."""
    if flow.error is not None:
        return "FAILED", str(flow.error)
    state = _STATES.get(flow.status.state, "STOPPED")
    told = flow.status.control_troubles
    trace = "\n".join(words for step in SourceStep for words in told.get(step, ())) or None
    if state == "RUNNING" and SourceStep.TOPICS in told and not flow.task_states:
        return "FAILED", trace
    return state, trace

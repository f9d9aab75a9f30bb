"""The life cycle of a flow: its phases, the allowed transitions, and the error that keeps it from running."""

from __future__ import annotations

import threading
from enum import Enum, auto
from typing import TYPE_CHECKING

from heliograph.states import StateMachine

if TYPE_CHECKING:
    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.errors import HeliographError


class FlowPhase(Enum):
    """The phases of a flow."""

    WAITING_FOR_CLUSTERS = auto()  # has changed nothing yet
    BEGINNING = auto()  # creates topics, starts tasks
    CANNOT_BEGIN = auto()  # a cluster refused; tried again after a pause
    RUNNING = auto()
    STOPPING = auto()  # its tasks flush, commit and end
    ABANDONED = auto()  # stopped before it began; its thread may still wait for a cluster
    STOPPED = auto()
    DONE = auto()  # has copied everything once
    FAILED = auto()


FLOW_PHASES = StateMachine(
    FlowPhase.WAITING_FOR_CLUSTERS,
    {
        FlowPhase.WAITING_FOR_CLUSTERS: {
            FlowPhase.BEGINNING,
            FlowPhase.CANNOT_BEGIN,
            FlowPhase.ABANDONED,
            FlowPhase.FAILED,
        },
        FlowPhase.BEGINNING: {FlowPhase.RUNNING, FlowPhase.CANNOT_BEGIN, FlowPhase.STOPPING, FlowPhase.FAILED},
        FlowPhase.CANNOT_BEGIN: {
            FlowPhase.BEGINNING,
            FlowPhase.CANNOT_BEGIN,
            FlowPhase.ABANDONED,
            FlowPhase.FAILED,
        },
        FlowPhase.RUNNING: {FlowPhase.STOPPING, FlowPhase.FAILED},
        FlowPhase.STOPPING: {FlowPhase.STOPPED, FlowPhase.DONE, FlowPhase.FAILED},
        FlowPhase.ABANDONED: (),
        FlowPhase.STOPPED: (),
        FlowPhase.DONE: (),
        FlowPhase.FAILED: (),
    },
)

_NOTHING_CHANGED = frozenset({FlowPhase.WAITING_FOR_CLUSTERS, FlowPhase.CANNOT_BEGIN})
_SHOWN = {  # BEGINNING keeps the word before it: a flow that could not begin is FAILED until it runs
    FlowPhase.CANNOT_BEGIN: "FAILED",
    FlowPhase.RUNNING: "RUNNING",
    FlowPhase.STOPPING: "STOPPING",
    FlowPhase.ABANDONED: "STOPPED",
    FlowPhase.STOPPED: "STOPPED",
    FlowPhase.DONE: "DONE",
    FlowPhase.FAILED: "FAILED",
}


class FlowLifeCycle:
    """The phase of one flow, shown in its status. The flow's thread moves it on; `stop` may be called from any thread.

    Once `stopping` is set no flow begins: one that has changed nothing on its clusters is ABANDONED at once, and its
    thread leaves when the cluster it waits for has answered.
    """

    def __init__(self, status: FlowStatus) -> None:
        self.phase = FLOW_PHASES.initial
        self.error: HeliographError | None = None
        self.stopping = threading.Event()
        self._status = status
        self._lock = threading.Lock()

    @property
    def is_abandoned(self) -> bool:
        """Return whether the flow was stopped before it began."""
        return self.phase is FlowPhase.ABANDONED

    @property
    def is_running(self) -> bool:
        """Return whether the flow has begun and does not end."""
        return self.phase is FlowPhase.RUNNING and not self.stopping.is_set()

    @property
    def has_failed(self) -> bool:
        """Return whether the flow has failed for good: it takes no requests, and nothing starts it again by itself."""
        return self.phase is FlowPhase.FAILED and self.error is not None

    def stop(self) -> None:
        """Ask the flow to stop."""
        with self._lock:
            self.stopping.set()
            if self.phase in _NOTHING_CHANGED:
                self.enter(FlowPhase.ABANDONED)

    def begin(self) -> bool:
        """Return whether the flow may begin: not if it was stopped."""
        with self._lock:
            if not self.stopping.is_set():
                self.enter(FlowPhase.BEGINNING)
            return not self.stopping.is_set()

    def cannot_begin(self, error: HeliographError) -> bool:
        """Note why the flow could not begin; return whether it is tried again: not if it was stopped."""
        with self._lock:
            if not self.stopping.is_set():
                self.error = error
                self.enter(FlowPhase.CANNOT_BEGIN)
            return not self.stopping.is_set()

    def fail(self, error: HeliographError) -> bool:
        """Note why the flow has failed for good; return whether that matters: not if it was abandoned."""
        with self._lock:
            if not self.is_abandoned:
                self.error = error
                self.enter(FlowPhase.FAILED)
            return not self.is_abandoned

    def enter(self, phase: FlowPhase) -> None:
        """Enter a phase that the table allows now."""
        self.phase = FLOW_PHASES.step(self.phase, phase)
        self._status.state = _SHOWN.get(phase, self._status.state)

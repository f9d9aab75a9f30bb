"""The flows and loops of a dedicated-mode file in this process, and their change to a new version of the file.

A flow adopts a change that no running task depends on. Any other change stops the flow (it flushes and commits) and
starts a new one with the new configuration after it has ended, in the same Spark session: two runs of a flow at once
would write every record twice. Other flows are not affected.

Used in one thread, which calls `look_after` now and then; `config`, `flows` and `control` may be read from any. `flows`
is replaced, never changed. While another thread holds `starting`, no flow is started again: that thread suspends a flow
or alters the source offsets of one.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.effective.file_changes import Effect, compare_files
from heliograph.driver.flow.flow_status import FlowStatus, SourceStep
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.loops.file_loops import Control
from heliograph.driver.spark.spark_engine import LaunchOptions
from heliograph.driver.steps.issues import Change
from heliograph.errors import HeliographError
from heliograph.mirror.policy.change_rules import ChangeRules
from heliograph.mirror.topics.topic_rules import topic_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from heliograph.config.effective.file_changes import FileChanges
    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.driver.spark.spark_engine import SparkEngine
    from heliograph.model import Flow


log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 60.0
_TRY_AGAIN_S = 5.0


class MirrorProcess:
    """Everything that runs for a file. `slots` returns how many of Spark's slots the flows of a file share."""

    def __init__(
        self,
        config: MirrorMakerConfig,
        engine: SparkEngine,
        *,
        once: bool = False,
        slots: Callable[[MirrorMakerConfig], int] | None = None,
    ) -> None:
        self.config = config
        self.starting = threading.Lock()
        self.has_changed = False
        self.engine, self._once, self._slots = engine, once, slots
        self._share_slots()
        self._statuses: dict[Flow, FlowStatus] = {}
        self.flows: Mapping[Flow, SourceFlow] = {flow: self._make(flow) for flow in config.flows}
        self.control = Control(config, self._statuses)
        self._ending: dict[Flow, SourceFlow] = {}
        self._waiting: set[Flow] = set()  # to start as soon as its last run has ended
        self._try_at = 0.0

    def start(self) -> None:
        """Start every flow, and the loops unless the flows copy once."""
        for flow in self.flows.values():
            flow.start()
        if not self._once:
            self.control.start()

    @property
    def is_over(self) -> bool:
        """Return whether every flow has ended, and none is to be started again."""
        return not self._waiting and all(flow.join(0) for flow in self.flows.values())

    @property
    def cannot_run(self) -> bool:
        """Return whether none of the flows could begin since the process started with this file.

        After a change the process stays: its operator is there to correct the file.
        """
        return not self.has_changed and all(flow.error is not None for flow in self.flows.values())

    def apply(self, config: MirrorMakerConfig) -> FileChanges:
        """Continue with a new version of the file; raises HeliographError, and changes nothing, if it is unusable."""
        changes = compare_files(self.config, config)
        for flow in config.flows:
            topic_rules(config, flow)
            ChangeRules.of(config.settings(flow))
        loops = self.control.prepare(config, changes)
        self.has_changed = self.has_changed or bool(changes)
        self.config = config
        self._share_slots()
        for flow, effect in changes.flows.items():
            self._change(flow, effect)
        for flow in changes.removed:
            self._end(flow)
        self._waiting.update(changes.added)
        for flow in changes.added:
            self._status(flow)
        self.control.change(loops, self._statuses)
        self.flows = {flow: running for flow, running in self.flows.items() if flow in config.flows}
        self.look_after()
        return changes

    def look_after(self) -> None:
        """Start the flows whose last run has ended."""
        self._ending = {flow: running for flow, running in self._ending.items() if not running.join(0)}
        if not self._waiting or time.monotonic() < self._try_at or not self.starting.acquire(blocking=False):
            return
        try:
            self._start_waiting()
        finally:
            self.starting.release()

    def _start_waiting(self) -> None:
        for flow in [flow for flow in self.config.flows if flow in self._waiting and flow not in self._ending]:
            try:
                running = self._make(flow)
            except HeliographError as error:  # a secret may be missing for a moment while it is rotated
                self._cannot_start(flow, f"cannot be started: {error}")
                continue
            self._status(flow).restart()
            last_run = self.flows.get(flow)
            if last_run is not None:
                running.continue_from(last_run)
            self._waiting.discard(flow)
            known = {**self.flows, flow: running}
            self.flows = {each: known[each] for each in self.config.flows if each in known}
            running.start()
            log.info("%s: started with the new configuration", flow, extra={"flow": str(flow)})

    def _cannot_start(self, flow: Flow, reason: str) -> None:
        status = self._status(flow)
        status.state = "FAILED"
        if status.note(SourceStep.START, (reason,)) is Change.NEW:
            log.error("%s: %s (will be tried again)", flow, reason, extra={"flow": str(flow)})
        self._try_at = time.monotonic() + _TRY_AGAIN_S

    def stop(self) -> None:
        """Stop every flow, and wait until it has flushed, committed and ended."""
        self._waiting.clear()
        ending = (*self._ending.values(), *self.flows.values())
        for flow in ending:
            flow.stop()
        for flow in ending:
            flow.join(_STOP_TIMEOUT_S)

    def _change(self, flow: Flow, effect: Effect) -> None:
        running = self.flows.get(flow)
        if running is None or flow in self._waiting:  # it starts with the newest configuration anyway
            return
        # One that cannot run is started again for any change: it may be what it needs.
        if effect is Effect.RESTART or (effect is Effect.ADOPT and running.error is not None):
            self._end(flow)
            self._waiting.add(flow)
        elif effect is Effect.ADOPT:
            running.adopt(self.config)

    def _end(self, flow: Flow) -> None:
        self._waiting.discard(flow)
        running = self.flows.get(flow)
        if running is not None and flow not in self._ending:
            running.stop()
            self._ending[flow] = running

    def _share_slots(self) -> None:
        if self._slots is not None:
            self.engine.shared_slots = self._slots(self.config)

    def _status(self, flow: Flow) -> FlowStatus:
        return self._statuses.setdefault(flow, FlowStatus(flow))

    def _make(self, flow: Flow) -> SourceFlow:
        config, settings = self.config, self.config.settings(flow)
        return SourceFlow(
            config,
            flow,
            self.engine,
            flow_count=len(config.flows),
            once=self._once,
            keeps_trying=not self._once,
            launch=LaunchOptions(settings[keys.LEASE_TIMEOUT_MS], settings[keys.UNENCRYPTED_SECRETS_ALLOWED]),
            status=self._status(flow),
        )

"""Asks for the ends of the source's logs that no task reports: of partitions that failed, wait, or have no task.

It runs in a thread of its own with a client of its own: a source that does not answer must hold up neither the flow's
thread nor the truth about the others.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from heliograph.driver.clusters.cluster_clients import make_admin
from heliograph.errors import ClusterError
from heliograph.kafka.request_options import LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.driver.steps.step_runner import Schedule
    from heliograph.model import Flow


_INTERVAL_S = 2.0
_FRESH_S = 3.0  # tasks report the ends of what they fetch every second


class LogEndWatch:
    """The steps of a control loop (`Work`) for one flow."""

    def __init__(self, config: MirrorConfig, flow: Flow, status: FlowStatus) -> None:
        self._status = status
        self._admin = make_admin(config, flow.source, flow)

    def begin(self) -> Iterable[str]:
        """Prepare nothing."""
        return ()

    def plan(self, schedule: Schedule) -> None:
        """Look at the partitions every few seconds."""
        schedule.repeat("log ends", self.look, _INTERVAL_S)

    def look(self) -> Iterable[str]:
        """Ask for the ends that are not known, or were read some time ago; none if a partition has no leader."""
        wanted = self._status.partitions.without_fresh_log_end(_FRESH_S)
        if wanted:
            asked_at = time.monotonic()
            with suppress(ClusterError):  # its tasks report an unavailable cluster, and an unknown end is shown as that
                self._status.partitions.set_log_ends(self._admin.known_offsets(wanted, LATEST), asked_at)
        return ()

    def close(self) -> None:
        """Close the client."""
        self._admin.close()

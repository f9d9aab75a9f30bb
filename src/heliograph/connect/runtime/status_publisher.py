"""Publishes the state of connectors: task configs to the config topic, states and used topics to the status topic.

A snapshot is compared with the contents of the topics, not with what was published before, so that records which an
earlier leader left there, or wrote late, are corrected.

Invariants:
A. A refused record of one connector keeps nothing else from being published; only a lost lead or an unreachable cluster
   ends it.
B. Task configs that were refused are not written again at once: with transactions each attempt takes the id over again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from heliograph.config.resolve.redaction import public_text
from heliograph.config.secrets.known_secrets import hide_known
from heliograph.connect.contract.herder import CONNECT_VERSION
from heliograph.connect.runtime.connector_run import RunState, state_summary
from heliograph.connect.storage.leader_writes import refusal_cause
from heliograph.errors import BrokerError, ClusterError, ConnectError, UnreachableError
from heliograph.kafka.backoff import Backoff
from heliograph.wire.records.connect_status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from heliograph.connect.storage.config_store import ConfigStore, StoredConnector
    from heliograph.connect.storage.status_store import StatusStore
    from heliograph.wire.records.connect_status import State


log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_LONGEST_TRACE = 1 << 16  # a trace may repeat a config, and must fit in a record
_NO_STATUS = RunState("UNASSIGNED", None, ())


class ConnectorSnapshot(NamedTuple):
    """The state of a connector to publish; `task_configs` is None if its tasks are unknown."""

    state: RunState
    task_configs: list[dict[str, str]] | None = None
    topics: tuple[str, ...] = ()


@dataclass(slots=True)
class _RefusedTasks:
    """Task configs that the config topic refused, why, and when they are written again."""

    configs: list[dict[str, str]]
    why: ClusterError
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=_FIRST_PAUSE_S, most_s=_LONGEST_PAUSE_S))


class StatusPublisher:
    """Publishes for one worker; `leads_since` returns the generation since which it leads, None if it does not.

    `publish_all` is for one thread; the other methods may be called from any.
    """

    def __init__(
        self, stores: tuple[ConfigStore, StatusStore], worker_id: str, leads_since: Callable[[], int | None]
    ) -> None:
        self._configs, self._statuses = stores
        self._worker_id = worker_id
        self._leads_since = leads_since
        self._refused: dict[str, _RefusedTasks] = {}

    def publish_all(self, snapshots: Mapping[str, ConnectorSnapshot], stored: Mapping[str, StoredConnector]) -> None:
        """Publish each connector; raise ClusterError at the end if a record was refused."""
        self._refused = {name: refused for name, refused in self._refused.items() if name in snapshots}
        refusals = []
        for name, snapshot in snapshots.items():
            # Configs before states: a reader that sees a running task finds its config, unless that was refused.
            why = self._publish_tasks(name, snapshot.task_configs, stored[name])
            try:
                self.report(name, snapshot.state)
                for topic in snapshot.topics:
                    self._statuses.put_topic(name, topic)
            except BrokerError as error:
                why = why or error
            if why is not None:
                refusals.append(ClusterError(f"connector {name}: {why}"))
        if refusals:
            raise refusals[0]

    def _publish_tasks(
        self, name: str, configs: list[dict[str, str]] | None, stored: StoredConnector
    ) -> ClusterError | None:
        """Write the task configs of a connector unless they are there; return why they are refused, if so."""
        if configs is None or [dict(config) for config in stored.task_configs] == configs:
            self._refused.pop(name, None)
            return None
        refused = self._refused.get(name)
        if refused is not None and refused.configs == configs and time.monotonic() < refused.retry_at:
            return refused.why
        why = self._put_tasks(name, configs)
        if why is None:
            self._refused.pop(name, None)
            return None
        if refused is None or refused.configs != configs:
            refused = self._refused[name] = _RefusedTasks(configs, why)
        refused.why, refused.retry_at = why, time.monotonic() + refused.backoff.next_pause_s()
        return why

    def _put_tasks(self, name: str, configs: list[dict[str, str]]) -> ClusterError | None:
        try:
            self._configs.put_tasks(name, configs)
        except UnreachableError:
            raise
        except ClusterError as error:  # the id could not be taken over after a refusal, or the record is refused
            return error
        except ConnectError as error:
            why = refusal_cause(error)
            if why is None:
                raise
            return why
        return None

    def report(self, name: str, state: RunState) -> None:
        """Write the state of a connector to the status topic unless it is there."""
        generation = self._leads_since()
        if generation is None:
            return
        stored = self._configs.connectors.get(name)

        def config_text() -> str:
            return "" if stored is None else public_text(stored.config)

        own, *tasks = (
            Status(
                *(each_state, self._worker_id, generation),
                None if trace is None else hide_known(trace, config_text, _LONGEST_TRACE),
                CONNECT_VERSION,
            )
            for each_state, trace in ((state.state, state.trace), *state.tasks)
        )
        numbered = dict(enumerate(tasks))
        before, tasks_before = self._statuses.connector(name), self._statuses.tasks(name)
        if (before, tasks_before) == (own, numbered):
            return
        summary = state_summary(own.state, (task.state for task in tasks))
        if before is None or summary != state_summary(before.state, (task.state for task in tasks_before.values())):
            log.info("Connector %s: %s", name, summary)
        self._statuses.put_all(name, own, numbered)

    def reported(self, name: str) -> RunState:
        """Return the state of a connector in the status topic."""
        own = self._statuses.connector(name)
        if own is None:
            return _NO_STATUS
        tasks = [task for _number, task in sorted(self._statuses.tasks(name).items())]
        states = tuple((cast("State", task.state), task.trace) for task in tasks)
        return RunState(cast("State", own.state), own.trace, states)

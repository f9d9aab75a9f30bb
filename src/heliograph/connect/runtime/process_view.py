"""Assembles the snapshot of a process that metrics show, from values that its parts have published already.

It waits neither for a cluster nor for Spark. `file_herder` does the same for a file.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from heliograph.config.effective.connect_config import CLASSES, kind_of
from heliograph.config.effective.metrics_config import metrics_config
from heliograph.config.effective.rest_config import rest_listeners
from heliograph.driver.clusters.certificates import Certificates, NamedClient, clients_of, listeners_of
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.loops.heartbeats import HeartbeatSource
from heliograph.errors import ConnectError, HeliographError
from heliograph.status.process_snapshot import ConnectorRow, ConnectorTask, ProcessSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.connect.contract.herder import ConnectorStatus
    from heliograph.connect.group.membership import Membership
    from heliograph.connect.runtime.connector_view import ConnectorView
    from heliograph.connect.runtime.reconciler import Reconciler
    from heliograph.connect.storage.config_store import StoredConnector
    from heliograph.model import Flow
    from heliograph.status.flow_snapshot import FlowSnapshot


class WorkerProcess:
    """A worker of a group. Its flows, connectors and loops are those that it runs: none unless it leads."""

    def __init__(
        self,
        worker: WorkerConfig,
        view: ConnectorView,
        reconciler: Reconciler,
        member: Membership,
    ) -> None:
        self._worker = worker
        self._view = view
        self._reconciler = reconciler
        self._member = member
        self._certificates = Certificates(self._clients)

    def snapshot(self) -> ProcessSnapshot:
        """Return the process at this moment."""
        position = self._member.snapshot()
        flows = self._reconciler.flows()
        names = flow_names(flows)
        works = [(run.config.name, run.work) for run in self._reconciler.runs()]
        return ProcessSnapshot(
            at=time.time(),
            flows=tuple(flows),
            checkpoints=tuple(
                work.status.snapshot(names.get(work.flow, str(work.flow)), connector)
                for connector, work in works
                if isinstance(work, CheckpointSync)
            ),
            heartbeats=tuple(
                work.snapshot(connector) for connector, work in works if isinstance(work, HeartbeatSource)
            ),
            connectors=tuple(self._rows()) if position.is_leader else (),
            engine=self._reconciler.engine.snapshot(),
            worker=position,
            certificates=self._certificates.latest(),
        )

    def _rows(self) -> Iterator[ConnectorRow]:
        for name in self._view.connectors():
            try:
                class_name = self._view.stored(name).config.get("connector.class", "")
            except ConnectError:  # deleted meanwhile
                continue
            try:
                yield connector_row(class_name, self._view.status(name))
            except ConnectError:  # its first state is not published yet
                yield ConnectorRow(name, full_class(class_name), "source", "", "UNASSIGNED", ())

    def _clients(self) -> Iterator[NamedClient]:
        worker = self._worker
        listeners = (*rest_listeners(worker.settings), *metrics_config(worker.raw, worker.resolver).listeners)
        yield NamedClient("worker", lambda: worker.client)
        yield from listeners_of(worker.raw, worker.resolver, listeners)
        if self._member.snapshot().is_leader:
            for name in self._view.connectors():
                yield from self._clients_of(name)

    def _clients_of(self, name: str) -> list[NamedClient]:
        try:
            stored: StoredConnector = self._view.stored(name)
            connector = self._worker.connector(name, stored.config, stored.secrets)
            return list(clients_of(connector, connector.flows))
        except HeliographError:  # a connector that cannot start, or was deleted meanwhile
            return []


def flow_names(flows: Iterable[FlowSnapshot]) -> Mapping[Flow, str]:
    """Return the names of flows by their clusters, where only one connector has these."""
    named: dict[Flow, set[str]] = {}
    for flow in flows:
        named.setdefault(flow.flow, set()).add(flow.name)
    return {flow: names.pop() for flow, names in named.items() if len(names) == 1}


def connector_row(class_name: str, status: ConnectorStatus) -> ConnectorRow:
    """Return the row of a connector by its status."""
    tasks = tuple(ConnectorTask(task.id, task.state) for task in status.tasks)
    return ConnectorRow(status.name, full_class(class_name), status.type, status.version or "", status.state, tasks)


def full_class(class_name: str) -> str:
    """Return the full name of a connector's class, for one of Connect's aliases too."""
    kind = kind_of(class_name)
    return class_name if kind is None else CLASSES[kind]

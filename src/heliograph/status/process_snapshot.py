"""A whole process at one moment: its flows and checkpoints, Spark, and its place in a Connect group."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from heliograph.model import Flow
    from heliograph.status.flow_snapshot import FlowSnapshot
    from heliograph.status.group_status import CheckpointsSnapshot


class JvmSnapshot(NamedTuple):
    """The JVM of Spark's driver, as it was last asked."""

    heap_bytes: int
    other_bytes: int  # that the JVM uses beside the heap
    gc_seconds: float  # since it started
    gc_count: int
    threads: int


class EngineSnapshot(NamedTuple):
    """Spark as the driver sees it; None is not known (it has not started, or has not answered for some time)."""

    slots: int | None
    running_tasks: int
    waiting_tasks: int  # started, and without a report yet
    jvm: JvmSnapshot | None = None


class WorkerSnapshot(NamedTuple):
    """The place of a worker in its Connect group."""

    is_leader: bool
    is_rebalancing: bool
    generation: int
    rebalances: int  # since the process started
    rebalanced_at: float | None


class ConnectorTask(NamedTuple):
    """One task of a connector, in Connect's words."""

    number: int
    state: str


class ConnectorRow(NamedTuple):
    """One connector, in Connect's words: `RUNNING`, `PAUSED`, `FAILED`."""

    name: str
    class_name: str
    kind: str  # source or sink
    version: str
    state: str
    tasks: tuple[ConnectorTask, ...]


class Certificate(NamedTuple):
    """A certificate that the process uses or trusts. `place` is a cluster's alias, `worker` or `rest`."""

    place: str
    role: str  # own, trusted
    subject: str
    not_after: float  # seconds since 1970


class HeartbeatsSnapshot(NamedTuple):
    """The heartbeats that this process writes for one pair of clusters; `written_at` is None before the first."""

    connector: str
    flow: Flow
    written: int
    written_at: float | None


class ProcessSnapshot(NamedTuple):
    """Everything that metrics show. `worker` is None under `run`; flows are empty in a worker that does not lead."""

    at: float
    flows: tuple[FlowSnapshot, ...]
    checkpoints: tuple[CheckpointsSnapshot, ...]
    heartbeats: tuple[HeartbeatsSnapshot, ...]
    connectors: tuple[ConnectorRow, ...]
    engine: EngineSnapshot
    worker: WorkerSnapshot | None
    certificates: tuple[Certificate, ...]

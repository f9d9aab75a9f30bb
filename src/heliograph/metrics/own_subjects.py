"""The subjects of Heliograph's own metrics: processes, flows, partitions, tasks and groups, with their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph import __version__
from heliograph.metrics.metric import Labels, Subject
from heliograph.status.task_status import RestartReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.metrics.shown import PartitionAt, Shown, ShownCheckpoints, ShownFlow, ShownGroup, TopicSum
    from heliograph.status.flow_snapshot import LossTotal
    from heliograph.status.group_status import GroupPartition
    from heliograph.status.process_snapshot import Certificate, HeartbeatsSnapshot, ProcessSnapshot, WorkerSnapshot
    from heliograph.status.task_status import TaskRow


def _process(shown: Shown) -> Iterator[tuple[Labels, ProcessSnapshot]]:
    yield (), shown.snapshot


def _version(_shown: Shown) -> Iterator[tuple[Labels, None]]:
    yield (__version__,), None


def _worker(shown: Shown) -> Iterator[tuple[Labels, WorkerSnapshot]]:
    if shown.snapshot.worker is not None:
        yield (), shown.snapshot.worker


def _flows(shown: Shown) -> Iterator[tuple[Labels, ShownFlow]]:
    return (((each.flow.name,), each) for each in shown.flows)


def _flow_identities(shown: Shown) -> Iterator[tuple[Labels, None]]:
    for each in shown.snapshot.flows:
        yield (each.name, each.connector, each.flow.source, each.flow.target), None


def _flow_states(shown: Shown) -> Iterator[tuple[Labels, None]]:
    return (((each.name, each.state), None) for each in shown.snapshot.flows)


def _partition_counts(shown: Shown) -> Iterator[tuple[Labels, int | None]]:
    for flow in shown.snapshot.flows:
        for state, count in flow.by_state.items():
            yield (flow.name, state.value), count if flow.has_found_partitions else None


def _losses(shown: Shown) -> Iterator[tuple[Labels, LossTotal]]:
    """Yield the causes that are known, also those without a loss, so that the first one is an increase."""
    for flow in shown.snapshot.flows:
        for cause, total in flow.loss_totals.items():
            yield (flow.name, cause.value), total


def _heartbeat_paths(shown: Shown) -> Iterator[tuple[Labels, float | None]]:
    """Yield the age of the newest heartbeat along each path; None if none has arrived in this process's time."""
    for flow in shown.snapshot.flows:
        newest: dict[str, int | None] = {"->".join(path): None for path in flow.heartbeat_paths.values()}
        if not newest:
            continue
        for partition in flow.partitions:
            clusters = flow.heartbeat_paths.get(partition.tp.topic)
            if clusters is not None and partition.copied_ms is not None:
                path = "->".join(clusters)
                newest[path] = max(newest[path] or 0, partition.copied_ms)
        for path, copied_ms in newest.items():
            yield (flow.name, path), None if copied_ms is None else max(0.0, flow.at - copied_ms / 1000)


def _left_out(shown: Shown) -> Iterator[tuple[Labels, int]]:
    for flow in shown.flows:
        for what, count in flow.left_out():
            yield (flow.flow.name, flow.flow.connector, what), count
    for each in shown.checkpoints:
        for what, count in each.left_out():
            yield (each.checkpoints.name, each.checkpoints.connector, what), count


def _topics(shown: Shown) -> Iterator[tuple[Labels, TopicSum]]:
    return (((each.flow.name, topic.topic), topic) for each in shown.flows for topic in each.topics)


def _partitions(shown: Shown) -> Iterator[tuple[Labels, PartitionAt]]:
    for flow in shown.flows:
        name = flow.flow.name
        for each in flow.partitions:
            yield (name, *each.status.tp), each


def _partition_states(shown: Shown) -> Iterator[tuple[Labels, None]]:
    for flow in shown.flows:
        name = flow.flow.name
        for each in flow.partitions:
            yield (name, *each.status.tp, each.status.state.value, each.task), None


def _tasks(shown: Shown) -> Iterator[tuple[Labels, TaskRow]]:
    return (((flow.name, task.number), task) for flow in shown.snapshot.flows for task in flow.tasks)


def _task_states(shown: Shown) -> Iterator[tuple[Labels, None]]:
    return (((flow.name, task.number, task.state), None) for flow in shown.snapshot.flows for task in flow.tasks)


def _restarts(shown: Shown) -> Iterator[tuple[Labels, int]]:
    """Yield all reasons, so that the first restart is an increase."""
    for flow in shown.snapshot.flows:
        for task in flow.tasks:
            for reason in RestartReason:
                yield (flow.name, task.number, reason.value), task.restarts.get(reason, 0)


def _checkpoints(shown: Shown) -> Iterator[tuple[Labels, ShownCheckpoints]]:
    """Yield the flow and the checkpoint connector: without a flow that has its name, the connector identifies them."""
    return (((each.checkpoints.name, each.checkpoints.connector), each) for each in shown.checkpoints)


def _groups(shown: Shown) -> Iterator[tuple[Labels, ShownGroup]]:
    for each in shown.checkpoints:
        for group in each.groups:
            yield (each.checkpoints.name, each.checkpoints.connector, group.status.group), group


def _group_partitions(shown: Shown) -> Iterator[tuple[Labels, GroupPartition]]:
    for each in shown.checkpoints:
        for group, partition in each.partitions:
            yield (each.checkpoints.name, each.checkpoints.connector, group, *partition.tp), partition


def _heartbeats(shown: Shown) -> Iterator[tuple[Labels, HeartbeatsSnapshot]]:
    for each in shown.snapshot.heartbeats:
        yield (each.connector, each.flow.source, each.flow.target), each


def _certificates(shown: Shown) -> Iterator[tuple[Labels, Certificate]]:
    """Yield the certificates; of several with the same subject that one which expires first."""
    for each in sorted(shown.snapshot.certificates, key=lambda each: each.not_after):
        yield (each.place, each.role, each.subject), each


PROCESS = Subject((), _process)
VERSION = Subject(("version",), _version)
WORKER = Subject((), _worker)
FLOW = Subject(("flow",), _flows)
FLOW_IDENTITY = Subject(("flow", "connector", "source", "target"), _flow_identities)
FLOW_STATE = Subject(("flow", "state"), _flow_states)
PARTITION_COUNT = Subject(("flow", "state"), _partition_counts)
LOSS = Subject(("flow", "cause"), _losses)
HEARTBEAT_PATH = Subject(("flow", "path"), _heartbeat_paths)
LEFT_OUT = Subject(("flow", "connector", "kind"), _left_out)
TOPIC = Subject(("flow", "topic"), _topics)
PARTITION = Subject(("flow", "topic", "partition"), _partitions)
PARTITION_STATE = Subject(("flow", "topic", "partition", "state", "task"), _partition_states)
TASK = Subject(("flow", "task"), _tasks)
TASK_STATE = Subject(("flow", "task", "state"), _task_states)
RESTART = Subject(("flow", "task", "reason"), _restarts)
CHECKPOINTS = Subject(("flow", "connector"), _checkpoints)
GROUP = Subject(("flow", "connector", "group"), _groups)
GROUP_PARTITION = Subject(("flow", "connector", "group", "topic", "partition"), _group_partitions)
HEARTBEATS = Subject(("connector", "source", "target"), _heartbeats)
CERTIFICATE = Subject(("place", "role", "subject"), _certificates)

"""The subjects of Kafka's metrics: partitions, clients, tasks and connectors, with the tags that Java gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.metrics.dialects import NEW_CHECKPOINT_TAGS, NEW_SOURCE_TAGS
from heliograph.metrics.metric import Labels, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.metrics.shown import Shown, ShownCheckpoints, ShownFlow
    from heliograph.model import Flow
    from heliograph.status.process_snapshot import ConnectorRow, ConnectorTask
    from heliograph.status.task_status import TaskRow
    from heliograph.status.windows import PartitionWindow, Stat

_COORDINATOR_CLIENT = "heliograph"


class Copied(NamedTuple):
    """Counts and measures of a partition, or of a part of a flow whose partitions have no series.

    Records and bytes are those that the target has acknowledged; None where another series has them. `window` are the
    measures of the last minute; None if no task measures it.
    """

    records: int | None
    bytes: int | None
    window: PartitionWindow | None


def consumer_id(flow: Flow, connector: str, task: int | None) -> str:
    """Return the client id of the consumer of a task; Kafka writes `?` where there is no task."""
    return f"{flow}|{connector}-{'?' if task is None else task}|replication-consumer"


def producer_id(connector: str, task: int) -> str:
    """Return the client id of the producer that a Connect worker creates for a task."""
    return f"connector-producer-{connector}-{task}"


def admin_id(flow: Flow, connector: str) -> str:
    """Return the client id of the administrator of a flow's source."""
    return f"{flow}|{connector}|replication-source-admin"


def _copied(flow: ShownFlow) -> Iterator[tuple[str | None, int | None, int | None, Copied]]:
    """Yield remote topic, partition and task, with what was copied; None has no label.

    If topics have no series, counts are one for the flow: the others change, and sums of their counts would fall.
    """
    if not flow.is_limited:
        for each in flow.partitions:
            status = each.status
            if status.remote_topic is not None:
                item = Copied(status.records, status.bytes, status.window)
                yield status.remote_topic, status.tp.partition, each.task, item
        return
    others = flow.other_topics
    for topic in flow.topics:
        if topic.remote_topic is not None:
            item = Copied(topic.records, topic.bytes, topic.window)
            yield topic.remote_topic, None, None, item if others is None else item._replace(records=None, bytes=None)
    if others is not None:
        total = flow.flow.counts
        yield None, None, None, Copied(total.records, total.bytes, others.window)


def _mirrored(shown: Shown) -> Iterator[tuple[Labels, Copied]]:
    for flow in shown.flows:
        source, target = flow.flow.flow
        for topic, partition, _task, item in _copied(flow):
            yield (source, target, topic, partition), item


def _mirrored_by_plugin(shown: Shown) -> Iterator[tuple[Labels, Copied]]:
    for flow in shown.flows:
        source, target = flow.flow.flow
        for topic, partition, task, item in _copied(flow):
            yield (flow.flow.connector, task, source, target, topic, partition), item


def _checkpointed(each: ShownCheckpoints) -> Iterator[tuple[Labels, Stat | None]]:
    """Yield group, remote topic and partition, with the latency; groups only, if the flow has too many partitions."""
    if each.is_limited:
        for group in each.groups:
            yield (group.status.group, None, None), group.slowest_checkpoint
    else:
        for name, partition in each.partitions:
            yield (name, *partition.remote_tp), partition.latency_ms


def _checkpoints(shown: Shown) -> Iterator[tuple[Labels, Stat | None]]:
    for each in shown.checkpoints:
        for labels, stat in _checkpointed(each):
            yield (*each.checkpoints.flow, *labels), stat


def _checkpoints_by_plugin(shown: Shown) -> Iterator[tuple[Labels, Stat | None]]:
    """Yield the same with the connector, which has one task."""
    for each in shown.checkpoints:
        for labels, stat in _checkpointed(each):
            yield (each.checkpoints.connector, 0, *each.checkpoints.flow, *labels), stat


def _consumed(shown: Shown) -> Iterator[tuple[Labels, int | None]]:
    """Yield the lags of partitions, by the consumer of their task, also of those without a task; or of topics."""
    for each in shown.flows:
        flow, connector = each.flow.flow, each.flow.connector
        if each.is_limited:
            client = consumer_id(flow, connector, None)
            others = [] if each.other_topics is None else [each.other_topics]
            for topic in (*each.topics, *others):
                yield (client, topic.topic, None), topic.lag_records
        else:
            clients = {task: consumer_id(flow, connector, task) for task in (None, *each.task_of.values())}
            for partition in each.partitions:
                yield (clients[partition.task], *partition.status.tp), partition.status.lag_records


def _consumers(shown: Shown) -> Iterator[tuple[Labels, TaskRow]]:
    for flow in shown.snapshot.flows:
        for task in flow.tasks:
            yield (consumer_id(flow.flow, flow.connector, task.number),), task


def _producers(shown: Shown) -> Iterator[tuple[Labels, TaskRow]]:
    for flow in shown.snapshot.flows:
        for task in flow.tasks:
            yield (producer_id(flow.connector, task.number),), task


def _admins(shown: Shown) -> Iterator[tuple[Labels, None]]:
    return (((admin_id(flow.flow, flow.connector),), None) for flow in shown.snapshot.flows)


def _worker(shown: Shown) -> Iterator[tuple[Labels, Shown]]:
    yield (), shown


def _coordinator(shown: Shown) -> Iterator[tuple[Labels, Shown]]:
    yield (_COORDINATOR_CLIENT,), shown


def _connectors(shown: Shown) -> Iterator[tuple[Labels, ConnectorRow]]:
    return (((connector.name,), connector) for connector in shown.connectors)


def _connector_tasks(shown: Shown) -> Iterator[tuple[Labels, ConnectorTask]]:
    return (((each.name, task.number), task) for each in shown.connectors for task in each.tasks)


def _source_tasks(shown: Shown) -> Iterator[tuple[Labels, TaskRow]]:
    return (((flow.connector, task.number), task) for flow in shown.snapshot.flows for task in flow.tasks)


def _all_tasks(shown: Shown) -> Iterator[tuple[Labels, TaskRow | None]]:
    """Yield every task of every connector, with its counters if it copies."""
    copying = dict(_source_tasks(shown))
    for labels, _task in _connector_tasks(shown):
        yield labels, copying.pop(labels, None)
    yield from copying.items()


MIRRORED = Subject(("source", "target", "topic", "partition"), _mirrored)
MIRRORED_BY_PLUGIN = Subject(NEW_SOURCE_TAGS, _mirrored_by_plugin)
CHECKPOINTED = Subject(("source", "target", "group", "topic", "partition"), _checkpoints)
CHECKPOINTED_BY_PLUGIN = Subject(NEW_CHECKPOINT_TAGS, _checkpoints_by_plugin)
CONSUMED = Subject(("client-id", "topic", "partition"), _consumed)
CONSUMER = Subject(("client-id",), _consumers)
PRODUCER = Subject(("client-id",), _producers)
ADMIN = Subject(("client-id",), _admins)
COORDINATOR = Subject(("client-id",), _coordinator)
WORKER = Subject((), _worker)
CONNECTOR = Subject(("connector",), _connectors)
CONNECTOR_TASK = Subject(("connector", "task"), _connector_tasks)
SOURCE_TASK = Subject(("connector", "task"), _source_tasks)
ANY_TASK = Subject(("connector", "task"), _all_tasks)

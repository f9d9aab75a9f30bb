"""One cluster as a copy task sees it: the leader of each partition, and connections to its brokers.

A broker handles one request of a connection at a time, so one connection leaves a busy broker's other threads idle, and
over a long round trip it limits the rate. A broker can therefore be reached over several *lanes*; a partition stays on
its lane, which keeps its order. Metadata is requested at the start, when a broker is not the leader we took it for, and
every `_MAX_AGE_S`; `version` counts the responses. Connections are opened on first use and reopened, with back-off,
after they are lost. Nothing here blocks. `refusal` is set if a broker rejects our credentials, or we its certificate:
the secrets may be out of date, and only the caller that passed them can renew them.

Invariants:
A. `issue` is set only while something waits for a connection or a response: a broker may close a connection that is not
   in use, or leave the cluster.
B. Metadata of a topic is requested only while the topic is watched: a deleted topic never has all its leaders, and
   would be requested forever.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from heliograph.errors import AuthenticationError
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from heliograph.model import Address, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from heliograph.errors import HeliographError
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network
    from heliograph.kafka.security.connection_spec import Security


_MAX_AGE_S = 60.0
_OUTDATED_EPOCH_GRACE_S = 30.0
_UNANSWERED_S = 3.0  # brokers answer within milliseconds
_STILL_WANTED_S = 10.0  # after its retry time; callers that want a connection never pause for longer
_NEWEST_METADATA, _OLDEST_METADATA = 12, 1  # topics have ids from version 10 on
_RELIABLE_EPOCHS = 9  # in older versions an epoch may be outdated while partitions are reassigned


class Traffic(NamedTuple):
    """The open connections to a cluster, and the bytes moved over all that there were, handshakes aside."""

    connections: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0

    @classmethod
    def sum_of(cls, traffics: Iterable[Traffic]) -> Traffic:
        """Return the sums over several clusters."""
        return cls(*map(sum, zip(cls(), *traffics, strict=True)))


@dataclass(slots=True)
class Link:
    """One lane to a broker: its connection, or the time of the next try."""

    connection: Connection | None = None
    is_connecting: bool = False
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=Backoff)

    def is_missed(self, now: float) -> bool:
        """Return whether it is not connected but wanted: no caller let the time of its next try pass unused."""
        return self.connection is None and (self.is_connecting or now < self.retry_at + _STILL_WANTED_S)


@dataclass(slots=True)
class Node:
    """A broker and the lanes to it."""

    address: Address
    lanes: dict[int, Link] = field(default_factory=dict)

    def link(self, lane: int) -> Link:
        """Return a lane, made on first use."""
        return self.lanes.setdefault(lane, Link())


class Cluster:
    """Leaders and connections of one cluster, on one `Network`."""

    def __init__(
        self,
        alias: str,
        bootstrap: tuple[Address, ...],
        security: Security,
        network: Network,
        request_timeout_s: float,
    ) -> None:
        self.alias = alias
        self.leaders: dict[TopicPartition, int] = {}
        self.leader_epochs: dict[TopicPartition, int] = {}
        self._outdated_since: dict[TopicPartition, float] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.hidden: set[str] = set()  # topics that we may not describe
        self.missing_since: dict[str, float] = {}  # topics that do not exist
        self.version = 0
        self.issue: str | None = None
        self.refusal: AuthenticationError | None = None
        self._bootstrap = bootstrap
        self._security = security
        self._network = network
        self._request_timeout_s = request_timeout_s
        self._watchers: Counter[str] = Counter()  # of each topic
        self._unwatched: set[str] = set()
        self._nodes: dict[int, Node] = {-1 - i: Node(address) for i, address in enumerate(bootstrap)}
        self._lost_traffic = Traffic()  # of connections that were closed
        self._metadata_wanted = True
        self._metadata_in_flight = False
        self._metadata_at = 0.0
        self._next_metadata_at = 0.0
        self._metadata_backoff = Backoff(first_s=0.1, most_s=2.0)

    @property
    def request_deadline(self) -> float:
        """The time at which a request sent now counts as lost."""
        return time.monotonic() + self._request_timeout_s

    @property
    def traffic(self) -> Traffic:
        """The connections of this moment, and the bytes moved since the start."""
        links = (link for node in self._nodes.values() for link in node.lanes.values())
        return Traffic.sum_of((self._lost_traffic, *(_traffic_of(link.connection) for link in links)))

    @property
    def is_unsettled(self) -> bool:
        """Return whether metadata is wanted or in flight, or a connection is being opened."""
        return self._metadata_wanted or self._metadata_in_flight or self._is_connecting()

    @property
    def next_version(self) -> int:
        """The version of the first metadata that is requested after now."""
        return self.version + 1 + self._metadata_in_flight

    def raise_refusal(self) -> None:
        """Raise if a broker has rejected us, or we it: the caller may have newer secrets."""
        if self.refusal is not None:
            raise self.refusal

    def watch(self, topics: Iterable[str]) -> None:
        """Request the leaders of these topics too, until as many calls of `unwatch`."""
        for topic in topics:
            if not self._watchers[topic]:
                self._unwatched.discard(topic)
                self.want_metadata()
            self._watchers[topic] += 1

    def unwatch(self, topic: str) -> None:
        """Undo one `watch` of a topic; after the last the topic is not requested any more."""
        self._watchers[topic] -= 1
        if self._watchers[topic] <= 0:
            del self._watchers[topic]
            self._unwatched.add(topic)
            self.topic_ids.pop(topic, None)  # when it is watched again, it may be another topic of that name

    def want_metadata(self) -> None:
        """Request metadata as soon as the back-off allows."""
        self._metadata_wanted = True

    def maintain(self, now: float) -> None:
        """Request metadata if it is wanted or old."""
        if self.issue is not None and not self._misses_a_link(now):
            self.issue = None
        is_old = now - self._metadata_at > _MAX_AGE_S
        if self._metadata_in_flight or now < self._next_metadata_at or not (self._metadata_wanted or is_old):
            return
        connection = self.any_connection()
        if connection is None:
            return
        version = connection.version_of(MetadataRequest, _NEWEST_METADATA, _OLDEST_METADATA)
        topics = [MetadataRequest.MetadataRequestTopic(name=name, version=version) for name in sorted(self._watchers)]
        request = MetadataRequest(version=version, topics=topics, allow_auto_topic_creation=False)
        self._metadata_in_flight, self._metadata_wanted = True, False
        self._next_metadata_at = now + self._metadata_backoff.next_pause_s()

        def on_response(response: Any, _buffer: Buffer) -> None:
            self._on_metadata(response, has_epochs=version >= _RELIABLE_EPOCHS)

        connection.request(request, MetadataResponse, on_response, self._on_metadata_lost, self.request_deadline)
        self._network.flush(connection)

    def _on_metadata_lost(self, _why: str) -> None:
        self._metadata_in_flight, self._metadata_wanted = False, True

    def _on_metadata(self, response: Any, *, has_epochs: bool) -> None:
        self._metadata_in_flight = False
        self._metadata_at = time.monotonic()
        self.version += 1
        self._take_brokers({broker.node_id: Address(broker.host, broker.port) for broker in response.brokers})
        self._forget_unwatched()
        topics = [topic for topic in response.topics if topic.name in self._watchers]
        self.hidden = {topic.name for topic in topics if topic.error_code == TOPIC_AUTHORIZATION_FAILED}
        missing = [topic.name for topic in topics if topic.error_code == UNKNOWN_TOPIC_OR_PARTITION]
        self.missing_since = {name: self.missing_since.get(name, self._metadata_at) for name in missing}
        are_complete = [self._take_topic(topic, has_epochs=has_epochs) for topic in topics]
        if all(are_complete):
            self._metadata_backoff.reset()
        else:
            self.want_metadata()

    def _take_brokers(self, addresses: dict[int, Address]) -> None:
        for node_id, address in addresses.items():
            node = self._nodes.get(node_id)
            if node is None or node.address != address:
                self._nodes[node_id] = Node(address)
                self._leave(node, "the broker has moved")
        for gone in [node_id for node_id in self._nodes if node_id >= 0 and node_id not in addresses]:
            self._leave(self._nodes.pop(gone), "the broker has left the cluster")

    def _leave(self, node: Node | None, why: str) -> None:
        for link in list(node.lanes.values()) if node is not None else ():
            if link.connection is not None:
                self._network.drop(link.connection, why)

    def _forget_unwatched(self) -> None:
        if self._unwatched:
            for known in (self.leaders, self.leader_epochs, self._outdated_since):
                for tp in [tp for tp in known if tp.topic in self._unwatched]:
                    del known[tp]
            self._unwatched.clear()

    def _take_topic(self, topic: Any, *, has_epochs: bool) -> bool:
        """Take the leaders of a topic; return whether it has all of them."""
        is_complete = not topic.error_code and bool(topic.partitions)
        is_known = topic.name in self.topic_ids and self.topic_ids[topic.name] == getattr(topic, "topic_id", None)
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            if is_known and has_epochs and self._is_outdated(tp, partition.leader_epoch):
                is_complete = False
            elif partition.leader_id < 0:
                is_complete = False
                self.leaders.pop(tp, None)
            else:
                self.leaders[tp] = partition.leader_id
                if has_epochs:
                    self.leader_epochs[tp] = partition.leader_epoch
                else:
                    self.leader_epochs.pop(tp, None)
        self._take_topic_id(topic)
        return is_complete

    def _is_outdated(self, tp: TopicPartition, leader_epoch: int) -> bool:
        """Return whether a broker does not know the current leader yet.

        If it keeps to the older epoch, the cluster was restored from an old copy.
        """
        if leader_epoch >= self.leader_epochs.get(tp, -1):
            self._outdated_since.pop(tp, None)
            return False
        since = self._outdated_since.setdefault(tp, self._metadata_at)
        return self._metadata_at - since < _OUTDATED_EPOCH_GRACE_S

    def _take_topic_id(self, topic: Any) -> None:
        topic_id = getattr(topic, "topic_id", None)
        if topic_id is not None and topic_id.int and not topic.error_code:
            self.topic_ids[topic.name] = topic_id

    def unanswered(self, now: float) -> str | None:
        """Return which broker has not answered which request for some time; None if all answer.

        A broker whose process is stopped keeps its connections open until the request's deadline. Requests to leaders
        come first: metadata is asked of any broker.
        """
        ids = {node.address: node_id for node_id, node in self._nodes.items()}  # of a bootstrap server too, once known
        for _id, node in sorted(self._nodes.items(), key=lambda each: each[0] < 0):
            for link in node.lanes.values():
                api = link.connection.unanswered_api(now, _UNANSWERED_S) if link.connection is not None else None
                if api is not None:
                    broker = f"broker {ids[node.address]}" if ids[node.address] >= 0 else "the broker"
                    return (
                        f"cluster '{self.alias}': {broker} at {node.address} has not answered a {api} request for"
                        f" {_UNANSWERED_S:.0f} s"
                    )
        return None

    def has_broker(self, node_id: int) -> bool:
        """Return whether the last metadata names this broker."""
        return node_id in self._nodes

    def connection_to(self, node_id: int, lane: int = 0) -> Connection | None:
        """Return the ready connection to a broker on a lane, or None and begin to open one."""
        node = self._nodes.get(node_id)
        if node is None:
            self.want_metadata()
            return None
        link = node.link(lane)
        if link.connection is None:
            self._start_connecting(node.address, link)
        return link.connection

    def is_connecting_to(self, node_id: int, lane: int = 0) -> bool:
        """Return whether a connection is being opened; if not, the broker is unknown or was just unreachable."""
        node = self._nodes.get(node_id)
        return node is not None and node.link(lane).is_connecting

    def any_connection(self) -> Connection | None:
        """Return a ready connection to any broker, or None and begin to open one, to another broker at each call."""
        for node in self._nodes.values():
            for link in node.lanes.values():
                if link.connection is not None:
                    return link.connection
        now = time.monotonic()
        waiting = [node for node in self._nodes.values() if node.link(0).retry_at <= now]
        if waiting and not self._is_connecting():
            node = min(waiting, key=lambda waiting_node: waiting_node.link(0).retry_at)
            self._start_connecting(node.address, node.link(0))
        return None

    def _start_connecting(self, address: Address, link: Link) -> None:
        if link.is_connecting or link.retry_at > time.monotonic():
            return
        link.is_connecting = True

        def opened(connection: Connection) -> None:
            link.connection, link.is_connecting = connection, False
            link.backoff.reset()
            self.issue = self.refusal = None

        def lost(why: HeliographError | str) -> None:
            self._lost_traffic = Traffic.sum_of(
                (self._lost_traffic, _traffic_of(link.connection)._replace(connections=0))
            )
            is_unused = link.connection is not None and not link.connection.is_awaited and isinstance(why, str)
            link.connection, link.is_connecting = None, False
            link.retry_at = time.monotonic() + link.backoff.next_pause_s()
            if not is_unused:
                self.issue = f"cluster '{self.alias}': {why}"
            if isinstance(why, AuthenticationError):
                self.refusal = AuthenticationError(f"The cluster '{self.alias}' cannot be used: {why}")
            self.want_metadata()

        self._network.connect(address, self._security, opened, lost)

    def _is_connecting(self) -> bool:
        return any(link.is_connecting for node in self._nodes.values() for link in node.lanes.values())

    def _misses_a_link(self, now: float) -> bool:
        return any(link.is_missed(now) for node in self._nodes.values() for link in node.lanes.values())


def _traffic_of(connection: Connection | None) -> Traffic:
    return Traffic() if connection is None else Traffic(1, connection.received_bytes, connection.sent_bytes)

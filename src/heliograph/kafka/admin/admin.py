"""The administration of one cluster: topics, configs and offsets, over connections that block.

Requests are kafka-python's schemas on our own connections, so that authentication, errors and time-outs are those of
the data path. Every error leaves here as a ClusterError whose message names the cluster. If the security is passed as a
function, it is called for each new connection, so that a changed secret is used. Not thread-safe.

Configs are altered one by one (IncrementalAlterConfigs, brokers from Kafka 2.3 on). Older brokers support only
AlterConfigs, which resets every config that the request does not name, even those set on the target on purpose; it is
never sent.
"""

from __future__ import annotations

import time
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from heliograph.config.input_limits import is_topic_name
from heliograph.errors import (
    AuthenticationError,
    BrokerError,
    ClusterError,
    ConfigError,
    HeliographError,
    UnreachableError,
)
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.error_codes import (
    INVALID_PARTITIONS,
    LEADER_NOT_AVAILABLE,
    NO_ERROR,
    NOT_CONTROLLER,
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
    BrokerRefusal,
    refusal_of,
)
from heliograph.kafka.net.connection import Connection, ConnectionLost, ask, open_connection
from heliograph.kafka.request_options import LATEST, READ_UNCOMMITTED
from heliograph.model import Address, ConfigEntry, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import AddPartitions, AlterConfigs, ConfigChange, CreateTopic


_TOPIC_RESOURCE = 2
_SET, _DELETE = 0, 1  # operations of IncrementalAlterConfigs
_SOURCE_TOPIC, _SOURCE_STATIC_BROKER, _SOURCE_DEFAULT = 1, 4, 5
_METADATA_WITH_IDS = 10
_TOPICS_PER_REQUEST = 200
_WEIGHT_PER_REQUEST = 5_000  # half of what KRaft accepts, in topics, partitions and configs together
_RETRY_PAUSE_S = 0.2
_UNANSWERED_S = 5.0
_RETRIABLE_TRIES = 50
_MAX_CONNECTIONS = 64  # kept open; a cluster may name any number of brokers, and file descriptors are limited
_Change = TypeVar("_Change", "CreateTopic", "AddPartitions")


class ClusterView(NamedTuple):
    """A cluster's metadata at one time."""

    brokers: dict[int, Address]
    controller_id: int
    partition_counts: dict[str, int]
    leaders: dict[TopicPartition, int]
    error_codes: dict[str, int]  # of requested topics that the cluster does not describe
    unusable: frozenset[str] = frozenset()  # invalid names, which are left out
    topic_ids: Mapping[str, UUID] = MappingProxyType({})  # empty if the brokers are older than 2.8


class EndOffsets(NamedTuple):
    """The end of each log, and the ids of the topics, by which a topic that was created again is recognised."""

    offsets: dict[TopicPartition, int]
    topic_ids: Mapping[str, UUID]


class Admin:
    """A blocking client that reads and changes one cluster."""

    def __init__(
        self,
        alias: str,
        bootstrap: tuple[Address, ...],
        security: Security | Callable[[], Security],
        client_id: str,
        *,
        timeout_s: float,
        title: str = "",
        connection_keys: tuple[str, ...] = ("bootstrap.servers", "security.protocol"),
    ) -> None:
        """`title` and `connection_keys` name the cluster, and the keys that say how to reach it, in messages."""
        self.alias = alias
        self._title = title or f"The cluster '{alias}'"
        self._connection_keys = connection_keys
        self._bootstrap = bootstrap
        self._security = security if callable(security) else lambda: security
        self._client_id = client_id
        self.timeout_s = timeout_s
        self._connections: dict[Address, Connection] = {}
        self._worked: set[Address] = set()  # addresses to which a connection was once open
        self._awaited: tuple[Address, str, float] | None = None

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.sock.close()
        self._connections.clear()

    # --- reading ------------------------------------------------------------------------------------------------------

    def wait_until_reachable(self, timeout_s: float, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """Try the bootstrap servers until one answers; raise the last error after the time-out."""
        deadline = time.monotonic() + timeout_s
        while not is_stopping():
            try:
                self.view([])
            except AuthenticationError:
                raise
            except ClusterError as error:
                if time.monotonic() > deadline:
                    servers = ",".join(map(str, self._bootstrap))
                    raise UnreachableError(
                        f"{self._title} did not answer within {timeout_s:.0f} s at {servers}: {error}."
                        f" Check {' and '.join(self._connection_keys)}."
                    ) from None
                time.sleep(_RETRY_PAUSE_S)
            else:
                return

    def view(self, topics: Iterable[str] | None = None) -> ClusterView:
        """Return the brokers, and the partitions of the given topics (None: of all)."""
        names = None if topics is None else list(topics)

        def build(version: int) -> Any:
            topic_class = MetadataRequest.MetadataRequestTopic
            wanted = None if names is None else [topic_class(name=name, version=version) for name in names]
            return MetadataRequest(version=version, topics=wanted, allow_auto_topic_creation=False)

        response = self.ask_any(MetadataRequest, MetadataResponse, build, newest=_METADATA_WITH_IDS)
        unusable = frozenset(topic.name for topic in response.topics if not is_topic_name(topic.name))
        shown = [topic for topic in response.topics if topic.name not in unusable]
        leaders = {
            TopicPartition(topic.name, partition.partition_index): partition.leader_id
            for topic in shown
            for partition in topic.partitions
        }
        counts = {topic.name: len(topic.partitions) for topic in shown if not topic.error_code}
        brokers = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        errors = {topic.name: topic.error_code for topic in response.topics if topic.error_code}
        ids = {topic.name: topic_id for topic in shown if (topic_id := getattr(topic, "topic_id", None)) is not None}
        known_ids = {name: topic_id for name, topic_id in ids.items() if topic_id.int}
        unusable -= errors.keys()
        return ClusterView(brokers, response.controller_id, counts, leaders, errors, unusable, known_ids)

    def topic_configs(self, topics: Iterable[str]) -> dict[str, tuple[ConfigEntry, ...]]:
        """Return every config of every topic, defaults included; raise for the first topic that is refused."""
        found, refused = self.described_configs(topics)
        for topic, refusal in refused.items():
            raise BrokerError(
                f"The cluster '{self.alias}' refused to describe the configs of topic {topic}: {refusal}.", refusal.code
            )
        return found

    def described_configs(
        self, topics: Iterable[str], needs: str = "DESCRIBE_CONFIGS on the topic"
    ) -> tuple[dict[str, tuple[ConfigEntry, ...]], dict[str, BrokerRefusal]]:
        """Return every config of every topic, defaults included, and the reason for each topic that was refused."""
        names = list(topics)
        found: dict[str, tuple[ConfigEntry, ...]] = {}
        refused: dict[str, BrokerRefusal] = {}
        for at in range(0, len(names), _TOPICS_PER_REQUEST):
            chunk = names[at : at + _TOPICS_PER_REQUEST]

            def build(version: int, chunk: list[str] = chunk) -> Any:
                resource = DescribeConfigsRequest.DescribeConfigsResource
                return DescribeConfigsRequest(
                    version=version,
                    resources=[
                        resource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
                        for name in chunk
                    ],
                    include_synonyms=False,
                    include_documentation=False,
                )

            response = self.ask_any(DescribeConfigsRequest, DescribeConfigsResponse, build, newest=4, oldest=1)
            for described in response.results:
                if described.error_code:
                    refused[described.resource_name] = refusal_of(described, needs)
                else:
                    found[described.resource_name] = tuple(_config_entry(config) for config in described.configs)
        return found, refused

    def end_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the high watermark of each partition."""
        return self.list_offsets(list(tps), timestamp=LATEST)

    def list_offsets(
        self, tps: list[TopicPartition], timestamp: int, isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, int]:
        """Return each partition's offset for a timestamp, such as EARLIEST or LATEST; wait for missing leaders."""
        return self._offsets_and_ids(tps, timestamp, isolation).offsets

    def log_ends(self, tps: list[TopicPartition], isolation: int = READ_UNCOMMITTED) -> EndOffsets:
        """Return the end of each partition's log, and the topics' ids as they were known just before."""
        return self._offsets_and_ids(tps, LATEST, isolation)

    def _offsets_and_ids(self, tps: list[TopicPartition], timestamp: int, isolation: int) -> EndOffsets:
        found: dict[TopicPartition, int] = {}
        ids: dict[str, UUID] = {}
        for _try in range(_RETRIABLE_TRIES):
            missing = [tp for tp in tps if tp not in found]
            if not missing:
                return EndOffsets(found, ids)
            view = self.view({tp.topic for tp in missing})
            ids |= view.topic_ids
            self._refuse_hidden(view)
            by_leader: dict[int, list[TopicPartition]] = {}
            for tp in missing:
                by_leader.setdefault(view.leaders.get(tp, -1), []).append(tp)
            for leader, theirs in by_leader.items():
                if leader in view.brokers:
                    found |= self._offsets_at(view.brokers[leader], theirs, timestamp, isolation)
            if len(found) < len(tps):
                time.sleep(_RETRY_PAUSE_S)
        lost = ", ".join(str(tp) for tp in tps if tp not in found)
        raise ClusterError(f"The cluster '{self.alias}' does not return the offsets of {lost}: no leader answered.")

    def _refuse_hidden(self, view: ClusterView) -> None:
        """Raise for a topic that we may not describe: it must not look like one whose leader is being elected."""
        hidden = [topic for topic, code in view.error_codes.items() if code == TOPIC_AUTHORIZATION_FAILED]
        if hidden:
            sentence = f"'{self.alias}' does not show us {hidden[0]}; the principal needs DESCRIBE on the topic."
            raise BrokerError(sentence, TOPIC_AUTHORIZATION_FAILED)

    def known_offsets(self, tps: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """Return offsets as `list_offsets` does, but try once and leave out partitions without a reachable leader."""
        view = self.view({tp.topic for tp in tps})
        by_leader: dict[int, list[TopicPartition]] = {}
        for tp in tps:
            by_leader.setdefault(view.leaders.get(tp, -1), []).append(tp)
        found: dict[TopicPartition, int] = {}
        for leader, theirs in by_leader.items():
            if leader in view.brokers:
                with suppress(UnreachableError):
                    found |= self._offsets_at(view.brokers[leader], theirs, timestamp, READ_UNCOMMITTED)
        return found

    def end_offsets_at(self, broker: Address, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the high watermarks of those partitions that this broker leads, in one request."""
        return self._offsets_at(broker, tps, LATEST, READ_UNCOMMITTED)

    def _offsets_at(
        self, broker: Address, tps: list[TopicPartition], timestamp: int, isolation: int
    ) -> dict[TopicPartition, int]:
        return {
            TopicPartition(topic.name, data.partition_index): data.offset
            for topic in self._list_offsets_at(broker, tps, timestamp, isolation).topics
            for data in topic.partitions
            if not data.error_code
        }

    def _list_offsets_at(self, broker: Address, tps: list[TopicPartition], timestamp: int, isolation: int) -> Any:
        def build(version: int) -> Any:
            topic_class = ListOffsetsRequest.ListOffsetsTopic
            partition_class = topic_class.ListOffsetsPartition
            by_topic: dict[str, list[Any]] = {}
            for tp in tps:
                by_topic.setdefault(tp.topic, []).append(
                    partition_class(partition_index=tp.partition, current_leader_epoch=-1, timestamp=timestamp)
                )
            topics = [topic_class(name=name, partitions=partitions) for name, partitions in by_topic.items()]
            return ListOffsetsRequest(version=version, replica_id=-1, isolation_level=isolation, topics=topics)

        return self.ask_at(broker, ListOffsetsRequest, ListOffsetsResponse, build, newest=5, oldest=1 + isolation)

    # --- changing -----------------------------------------------------------------------------------------------------

    def create_topics(self, topics: Iterable[CreateTopic]) -> dict[str, BrokerRefusal]:
        """Create topics; return the reason for each that was refused. A topic that exists already is no failure."""
        failures: dict[str, BrokerRefusal] = {}
        for chunk in _portions(topics, lambda topic: 1 + topic.partition_count + len(topic.configs)):

            def build(version: int, chunk: list[CreateTopic] = chunk) -> Any:
                topic_class = CreateTopicsRequest.CreatableTopic
                config_class = topic_class.CreatableTopicConfig
                return CreateTopicsRequest(
                    version=version,
                    topics=[
                        topic_class(
                            name=topic.name,
                            num_partitions=topic.partition_count,
                            replication_factor=topic.replication_factor,
                            assignments=[],
                            configs=[config_class(name=name, value=value) for name, value in topic.configs],
                        )
                        for topic in chunk
                    ],
                    timeout_ms=int(self.timeout_s * 1000),
                    validate_only=False,
                )

            classes, needs = (CreateTopicsRequest, CreateTopicsResponse), "CREATE on the topic or on the cluster"
            failures |= self._change(
                classes, build, newest=5, results="topics", harmless=TOPIC_ALREADY_EXISTS, needs=needs
            )
        return failures

    def add_partitions(self, topics: Iterable[AddPartitions]) -> dict[str, BrokerRefusal]:
        """Add partitions to topics; return the reason for each topic that was refused."""
        failures: dict[str, BrokerRefusal] = {}
        for chunk in _portions(topics, lambda topic: topic.partition_count):  # an upper bound of those added

            def build(version: int, chunk: list[AddPartitions] = chunk) -> Any:
                topic_class = CreatePartitionsRequest.CreatePartitionsTopic
                return CreatePartitionsRequest(
                    version=version,
                    topics=[
                        topic_class(name=each.name, count=each.partition_count, assignments=None) for each in chunk
                    ],
                    timeout_ms=int(self.timeout_s * 1000),
                    validate_only=False,
                )

            classes, needs = (CreatePartitionsRequest, CreatePartitionsResponse), "ALTER on the topic"
            failures |= self._change(
                classes, build, newest=1, results="results", harmless=INVALID_PARTITIONS, needs=needs
            )
        return failures

    def _change(
        self, classes: tuple[Any, Any], build: Any, *, newest: int, results: str, harmless: int, needs: str
    ) -> dict[str, BrokerRefusal]:
        """Have the controller change topics; return the reason for each refused one of the response's `results`."""
        response = self.ask_controller(
            *classes,
            build,
            newest=newest,
            codes=lambda response: [one.error_code for one in getattr(response, results)],
        )
        refused = [one for one in getattr(response, results) if one.error_code not in (NO_ERROR, harmless)]
        return {one.name: refusal_of(one, needs) for one in refused}

    def wait_for_leaders(self, partition_counts: dict[str, int]) -> dict[str, BrokerRefusal]:
        """Wait until all partitions of new topics have leaders; return the reason for each topic that lacks one."""
        deadline, backoff = time.monotonic() + self.timeout_s, Backoff(first_s=0.02, most_s=1.0)
        waiting, hidden = partition_counts, dict[str, BrokerRefusal]()
        while True:
            lacking = _lacking(self.view(waiting), waiting)
            hidden |= {topic: why for topic, why in lacking.items() if why.code == TOPIC_AUTHORIZATION_FAILED}
            waiting = {topic: waiting[topic] for topic in lacking if topic not in hidden}
            if not waiting or time.monotonic() > deadline:
                return hidden | lacking
            time.sleep(backoff.next_pause_s())

    # --- transport ----------------------------------------------------------------------------------------------------

    def ask_controller(self, request_class: Any, response_class: Any, build: Any, *, newest: int, codes: Any) -> Any:
        """Send a request to the controller, again if it has moved; `codes` returns the error codes of a response."""
        for _try in range(_RETRIABLE_TRIES):
            view = self.view([])
            broker = view.brokers.get(view.controller_id) or next(iter(view.brokers.values()), self._bootstrap[0])
            response = self.ask_at(broker, request_class, response_class, build, newest=newest)
            if NOT_CONTROLLER not in codes(response):
                return response
            time.sleep(_RETRY_PAUSE_S)
        raise ClusterError(f"The cluster '{self.alias}' has no reachable controller.")

    def ask_any(
        self,
        request_class: Any,
        response_class: Any,
        build: Any,
        *,
        newest: int,
        oldest: int = 0,
    ) -> Any:
        """Send a request to the first broker that answers: open connections first, then the bootstrap servers."""
        last: HeliographError | None = None
        for address in dict.fromkeys((*self._connections, *self._bootstrap)):
            try:
                return self.ask_at(address, request_class, response_class, build, newest=newest, oldest=oldest)
            except AuthenticationError:
                raise
            except ClusterError as error:
                last = error
        raise last or ClusterError(f"The cluster '{self.alias}' has no bootstrap servers.")

    def ask_at(
        self,
        address: Address,
        request_class: Any,
        response_class: Any,
        build: Any,
        *,
        newest: int,
        oldest: int = 0,
    ) -> Any:
        """Send a request to one broker, in a version that both support; reopen a stale connection once."""
        self._awaited = (address, request_class.__name__.removesuffix("Request"), time.monotonic())
        try:
            return self._ask_at(address, request_class, response_class, build, newest, oldest)
        finally:
            self._awaited = None

    @property
    def unanswered(self) -> str | None:
        """The broker that has not answered for some time, and the request; may be read from any thread."""
        awaited = self._awaited
        if awaited is None or time.monotonic() - awaited[2] < _UNANSWERED_S:
            return None
        return f"cluster '{self.alias}': {awaited[0]} has not answered a {awaited[1]} request for {_UNANSWERED_S:.0f} s"

    def _ask_at(
        self, address: Address, request_class: Any, response_class: Any, build: Any, newest: int, oldest: int
    ) -> Any:
        for is_fresh in (False, True):
            connection = None if is_fresh else self._usable(address)
            if connection is None:
                connection = self._open(address)
            try:
                request = build(connection.version_of(request_class, newest, oldest))
                return ask(connection, request, response_class, timeout_s=self.timeout_s)
            except (OSError, ConnectionLost) as error:
                connection.sock.close()
                self._connections.pop(address, None)
                if is_fresh:
                    raise UnreachableError(f"{address} stopped answering: {error}") from None
        raise AssertionError("unreachable")

    def _usable(self, address: Address) -> Connection | None:
        """Return the open connection, unless its session is about to end."""
        connection = self._connections.get(address)
        session = connection.session if connection is not None else None
        if connection is not None and session is not None and session.log_in_at <= time.monotonic():
            self._connections.pop(address).sock.close()
            return None
        return connection

    def _open(self, address: Address) -> Connection:
        try:
            connection = open_connection(
                address,
                self._security(),
                self._client_id,
                min(10.0, self.timeout_s),
                has_worked=address in self._worked,
            )
        except (AuthenticationError, ConfigError) as error:
            raise AuthenticationError(f"{self._title} cannot be used: {error}") from None
        while len(self._connections) >= _MAX_CONNECTIONS:
            self._connections.pop(next(iter(self._connections))).sock.close()
        self._connections[address] = connection
        self._worked.add(address)
        return connection


def cluster_id(admin: Admin) -> str:
    """Return the id that all brokers of a cluster share, which `GET /` of Connect's REST returns."""

    def build(version: int) -> Any:
        return MetadataRequest(version=version, topics=[], allow_auto_topic_creation=False)

    response = admin.ask_any(MetadataRequest, MetadataResponse, build, newest=8, oldest=2)
    return str(response.cluster_id)


def alter_topic_configs(admin: Admin, alters: Sequence[AlterConfigs]) -> dict[str, BrokerRefusal]:
    """Alter configs; return the reason for each topic that was refused, of which nothing was changed.

    Raises BrokerError with UNSUPPORTED_VERSION if the cluster cannot alter single configs.
    """
    refused: dict[str, BrokerRefusal] = {}
    for at in range(0, len(alters), _TOPICS_PER_REQUEST):
        response = _alter(admin, alters[at : at + _TOPICS_PER_REQUEST])
        refused |= {
            result.resource_name: refusal_of(result, "ALTER_CONFIGS on the topic")
            for result in response.responses
            if result.error_code
        }
    return refused


def can_alter_configs(admin: Admin) -> bool:
    """Return whether the cluster can alter single configs; a request without a topic finds out."""
    try:
        _alter(admin, (), validate_only=True)
    except BrokerError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        return False
    return True


def _alter(admin: Admin, alters: Sequence[AlterConfigs], *, validate_only: bool = False) -> Any:
    resource_class = IncrementalAlterConfigsRequest.AlterConfigsResource

    def build(version: int) -> Any:
        return IncrementalAlterConfigsRequest(
            version=version,
            resources=[
                resource_class(
                    resource_type=_TOPIC_RESOURCE,
                    resource_name=alter.topic,
                    configs=[_alterable(change) for change in alter.changes],
                )
                for alter in alters
            ],
            validate_only=validate_only,
        )

    try:
        return admin.ask_any(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, build, newest=1)
    except BrokerError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        raise BrokerError(
            f"The cluster '{admin.alias}' is older than Kafka 2.3 and cannot alter single configs of a topic;"
            " remote topics keep the configs they were created with.",
            error.code,
        ) from None


def _alterable(change: ConfigChange) -> Any:
    return IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(
        name=change.name, config_operation=_DELETE if change.new is None else _SET, value=change.new
    )


def _lacking(view: ClusterView, partition_counts: dict[str, int]) -> dict[str, BrokerRefusal]:
    lacking: dict[str, BrokerRefusal] = {}
    for topic, count in partition_counts.items():
        leaderless = next((n for n in range(count) if view.leaders.get(TopicPartition(topic, n), -1) < 0), None)
        if view.error_codes.get(topic) == TOPIC_AUTHORIZATION_FAILED:
            lacking[topic] = BrokerRefusal(TOPIC_AUTHORIZATION_FAILED, "the principal needs DESCRIBE on the topic")
        elif leaderless is not None:
            lacking[topic] = BrokerRefusal(LEADER_NOT_AVAILABLE, f"partition {leaderless} has no leader")
    return lacking


def _config_entry(config: Any) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        is_default=config.config_source == _SOURCE_DEFAULT,
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        is_static_broker_config=config.config_source == _SOURCE_STATIC_BROKER,
        is_topic_config=config.config_source == _SOURCE_TOPIC,
    )


def _portions(topics: Iterable[_Change], weight_of: Callable[[_Change], int]) -> Iterator[list[_Change]]:
    """Split changes into requests that a controller accepts: it refuses all of one too large. A huge topic is alone."""
    portion: list[_Change] = []
    weight = 0
    for topic in topics:
        weight += weight_of(topic)
        if portion and (len(portion) == _TOPICS_PER_REQUEST or weight > _WEIGHT_PER_REQUEST):
            yield portion
            portion, weight = [], weight_of(topic)
        portion.append(topic)
    if portion:
        yield portion

"""Reads and alters the source offsets of a connector, for `/connectors/{name}/offsets`.

The caller makes sure that the connector is stopped while its offsets change. A change is one record per partition, and
a null value removes an offset. If the key of a partition was once written with its members in another order, that key
is removed: otherwise two records would be about one partition.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.driver.clusters.cluster_clients import TargetClients
from heliograph.driver.clusters.internal_topic_creation import create_offsets_topic
from heliograph.kafka.topics.compacted_topic import StoredTopic
from heliograph.kafka.topics.record_writer import write_records
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.mirror.topics.internal_topics import offsets_topic
from heliograph.wire.records.connect_json import dump_json, load_object
from heliograph.wire.records.connect_offsets import check_offsets, decode_any_key, encode_any_key, ordered_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from heliograph.config.effective.connect_config import ConnectorConfig
    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.model import ConnectorKind, Flow
    from heliograph.wire.records.connect_offsets import Offset, Partition


ConnectOffset = tuple[dict[str, Any], dict[str, Any]]

_NO_RECORD_YET = -1


class _StoredOffset(NamedTuple):
    """A partition, its offset, and the keys under which it is stored."""

    partition: dict[str, Any]
    offset: dict[str, Any]
    keys: tuple[bytes, ...]

    @property
    def has_offset(self) -> bool:
        return self.offset.get("offset") != _NO_RECORD_YET


class ConnectorOffsets:
    """The source offsets of one connector, in its offsets topic; a context manager."""

    def __init__(self, config: MirrorConfig, flow: Flow, connector: str, kind: ConnectorKind) -> None:
        self._connector = connector
        self._kind = kind
        self._settings = config.settings(flow)
        self._clients = TargetClients(config, flow)
        self._topic = offsets_topic(self._settings).name

    @classmethod
    def of(cls, config: ConnectorConfig) -> Self:
        """Return the source offsets of a connector in a worker."""
        return cls(config, config.flow, config.name, config.kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._clients.close()

    def read(self) -> list[ConnectOffset]:
        """Return every partition with its offset, without those that have no record yet."""
        return [(dict(known.partition), dict(known.offset)) for known in self._known().values() if known.has_offset]

    def alter(
        self,
        offsets: Sequence[tuple[Partition | None, Offset | None]],
        before_try: Callable[[], None] = lambda: None,
    ) -> None:
        """Alter offsets, and remove those that are None; on invalid ones raise OffsetsRefusedError and alter none.

        `before_try` is called before each request that writes, and raises if we may not write any more.
        """
        check_offsets(self._kind, offsets)
        known = self._known()
        records: dict[bytes, bytes | None] = {}
        for partition, offset in offsets:
            if partition is None:  # as in Connect, this is not an error
                continue
            key = encode_any_key(self._connector, ordered_partition(self._kind, partition))
            if _identity(partition) in known:
                records |= dict.fromkeys(known[_identity(partition)].keys)
            records[key] = None if offset is None else dump_json({"offset": offset["offset"]})
        self._write(records, before_try)

    def reset(self, before_try: Callable[[], None] = lambda: None) -> None:
        """Remove all offsets."""
        self._write({key: None for known in self._known().values() for key in known.keys}, before_try)

    def _write(self, records: dict[bytes, bytes | None], before_try: Callable[[], None]) -> None:
        create_offsets_topic(self._clients.source_offsets, self._settings)
        put = partial(write_records, before_try=before_try)
        StoredTopic(self._clients.source_offsets, self._topic).write(records.items(), put)

    def _known(self) -> dict[bytes, _StoredOffset]:
        """Return all stored offsets by partition, whatever the order of its members."""
        newest: dict[bytes, bytes | None] = {}
        for record in read_topic(self._clients.source_offsets, self._topic):
            if record.key is not None:
                newest[record.key] = record.value
        found: dict[bytes, _StoredOffset] = {}
        for key, value in newest.items():
            decoded = decode_any_key(key)
            offset = load_object(value)
            if decoded is None or decoded[0] != self._connector or offset is None:
                continue
            partition = decoded[1]
            keys = found[_identity(partition)].keys if _identity(partition) in found else ()
            found[_identity(partition)] = _StoredOffset(partition, offset, (*keys, key))
        return found


def _identity(partition: Partition) -> bytes:
    return dump_json(dict(sorted(partition.items())))

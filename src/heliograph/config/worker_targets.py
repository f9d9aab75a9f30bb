"""A Connect worker's file as the keys of a dedicated-mode file: what it says to all connectors, said of each target.

In Connect a worker has one group, one topic of progress and one producer for whatever its connectors write, and keeps
them in its own cluster. A dedicated-mode file has these for each target, behind its alias, in the target's cluster. So
the keys are written once for every target alias; nothing is left out without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.keys import TABLE
from heliograph.config.properties import as_map, parse_properties
from heliograph.config.types import Scope, split_list
from heliograph.config.yaml_tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.config.reading import Reading
    from heliograph.model import Flow

CONVERTERS = ("key.converter", "value.converter", "header.converter")
BYTES_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
_SERVERS = "bootstrap.servers"


class WorkerFile:
    """Reads one worker's file, after its connectors."""

    def __init__(self, reading: Reading, file: str, flows: Iterable[Flow]) -> None:
        self._reading = reading
        self._file = file
        self._flows = tuple(flows)
        self._same: list[str] = []
        self._others: list[str] = []

    def read(self, text: str, *, is_only: bool) -> None:
        """Add its keys to its targets: the aliases of its own cluster, and where it is the only worker, all others."""
        values = as_map(parse_properties(text))
        servers = values.get(_SERVERS, "")
        targets = list(dict.fromkeys(flow.target for flow in self._flows))
        self._same = [alias for alias in targets if self._is_of(alias, servers)]
        self._others = [alias for alias in targets if alias not in self._same and is_only]
        place = Tree("map", self._file, 0)
        if not self._same and not self._others:
            words = f"the worker's cluster ({servers}) is the target of no connector here; its keys are left out."
            self._reading.warn(place, words)
            return
        for alias in self._others:
            words = (
                f"the worker's cluster ({servers}) is not that of {alias}: in a file the records, progress and group of"
                f" a flow into {alias} are in the cluster of {alias}."
            )
            self._reading.warn(place, words)
        self._tell_shared_progress(place)
        for key, value in values.items():
            self._read_key(key, Tree("text", f"{self._file}: {key}", 0, text=value))

    def _read_key(self, key: str, tree: Tree) -> None:
        row = TABLE.get(key)
        if key in CONVERTERS:
            if tree.text.strip() != BYTES_CONVERTER:
                self._reading.note(tree, "a dedicated MM2 has no converters, it copies bytes; it is left out.")
        elif row is not None and row.scope & Scope.CLIENT:
            self._tell_connection(key, tree)
        elif key.startswith("config.providers"):
            self._reading.add(key, tree.text, tree)
        elif key.startswith("producer."):
            self._read_producer_key(key, tree)
        elif row is not None and row.scope & Scope.WORKER:
            self._add(key, tree, [*self._same, *self._others])
        else:
            self._reading.note(tree, "a key of the worker that no flow reads; it is left out.")

    def _read_producer_key(self, key: str, tree: Tree) -> None:
        """The producer of all records. How it logs in is about the worker's cluster, and no other."""
        row = TABLE.get(key.removeprefix("producer."))
        if row is None or not row.scope & Scope.CLIENT:
            self._add(key, tree, [*self._same, *self._others])
            return
        self._add(key, tree, self._same)
        if self._others:
            names = ", ".join(self._others)
            self._reading.note(tree, f"it is about the worker's cluster; for {names} it is left out.")

    def _add(self, key: str, tree: Tree, aliases: Iterable[str]) -> None:
        for alias in aliases:
            self._reading.add(f"{alias}.{key}", tree.text, tree)

    def _tell_connection(self, key: str, tree: Tree) -> None:
        """The worker's own connection: a file has none but its clusters'."""
        unequal = [alias for alias in self._same if self._value(f"{alias}.{key}") != tree.text]
        if key != _SERVERS and (unequal or not self._same):
            self._reading.note(
                tree, "it is about the worker's own connection, and a file has only its clusters'; it is left out."
            )

    def _tell_shared_progress(self, place: Tree) -> None:
        for source in dict.fromkeys(flow.source for flow in self._flows):
            into = [flow.target for flow in self._flows if flow.source == source and flow.target in self._same]
            if len(into) > 1:
                words = (
                    f"{' and '.join(into)} are one cluster, where a file keeps the progress of {source} only once; give"
                    " each an offset.storage.topic of its own before you run it."
                )
                self._reading.warn(place, words)

    def _is_of(self, alias: str, servers: str) -> bool:
        return bool(set(split_list(self._value(f"{alias}.{_SERVERS}"))) & set(split_list(servers)))

    def _value(self, name: str) -> str:
        entry = self._reading.entry(name)
        return entry.value if entry is not None else ""

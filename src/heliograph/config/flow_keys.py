"""Keys of up to three connectors, put together into those of one flow.

A resource and a folder of connectors' JSON give the source, checkpoint and heartbeat connector a configuration each; a
dedicated-mode file has one for the flow. A key counts for every connector that knows it, whoever has it: Java needs the
replication policy on each, and quietly translates nothing where one was forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.keys import TABLE
from heliograph.config.types import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.reading import Reading
    from heliograph.config.yaml_tree import Tree
    from heliograph.model import Flow

EMIT_CHECKPOINTS = "emit.checkpoints.enabled"
EMIT_HEARTBEATS = "emit.heartbeats.enabled"


class FlowKeys:
    """Adds the keys of one flow to what is read."""

    def __init__(self, reading: Reading, flow: Flow) -> None:
        self._reading = reading
        self._flow = flow

    def add_of(self, scope: Scope, key: str, value: str, tree: Tree, owners: Mapping[Scope, str]) -> None:
        """A key that one connector has; one that is only another's is told, with the place it belongs to."""
        row = TABLE.get(key)
        if row is None or not row.scope & Scope.CONNECTOR or row.scope & scope:
            self.add(key, value, tree)
            return
        places = " or ".join(owner for other, owner in owners.items() if row.scope & other)
        self._reading.warn(
            tree, f"this connector does not have the key; it has no effect here. Write it into {places}."
        )

    def add(self, key: str, value: str, tree: Tree) -> None:
        """A key of the flow; where connectors differ, the first one's counts, which is told."""
        name = f"{self._flow}.{key}"
        earlier = self._reading.entry(name)
        if earlier is None:
            self._reading.add(name, value, tree)
        elif earlier.value != value:
            where = f"{earlier.place} on line {earlier.line}" if earlier.line else earlier.place
            self._reading.warn(tree, f"{where} says something else, and counts for the whole flow.")

    def add_own(self, key: str, value: str, tree: Tree) -> None:
        """A key that follows from a connector being there or not."""
        self._reading.add(f"{self._flow}.{key}", value, tree, f"{tree.path} ({key})")

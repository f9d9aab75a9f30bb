"""What the parts that replicate need to know of a configuration, whichever form it came in.

A dedicated-mode file (`mirror_maker`) speaks of many flows; a connector in a Connect worker (`connector`) is one. They
differ in where records go. In a file everything of a flow `A->B` is written to B. In Connect records are written by
the worker's producer, and progress is kept in the worker's cluster: neither need be the cluster of `target.cluster.*`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.types import Settings
    from heliograph.model import Flow

SOURCE_CONNECTOR_NAME = "MirrorSourceConnector"  # of a flow in a dedicated-mode file


class MirrorConfig(Protocol):
    """One file or one connector, understood."""

    @property
    def flows(self) -> tuple[Flow, ...]:
        """What replicates here."""

    @property
    def paths(self) -> Mapping[str, str]:
        """What its author calls each setting, where it was not written as properties."""

    @property
    def enabled_flows(self) -> tuple[Flow, ...]:
        """Every flow that replicates, here or elsewhere, as far as the configuration tells."""

    @property
    def heartbeat_flows(self) -> tuple[Flow, ...]:
        """Which flows heartbeats are written for."""

    @property
    def notes_offsets(self) -> bool:
        """Whether checkpoints and heartbeats are noted as progress, as Connect does for whatever a connector writes."""

    def source_connector(self, flow: Flow) -> str:
        """The name under which the connector of a flow keeps its progress; also part of its transactional ids."""

    def label(self, flow: Flow) -> str:
        """What tasks and log lines call a flow; no two that run at once share it."""

    def settings(self, flow: Flow) -> Settings:
        """Connector and worker settings of a flow, typed, resolved."""

    def client(self, alias: str, role: str, flow: Flow | None = None) -> Settings:
        """Connection and client settings of one cluster for one role (consumer, producer, admin), resolved."""

    def records_client(self, flow: Flow) -> Settings:
        """The producer of a flow's records: copies, checkpoints, heartbeats."""

    def progress_client(self, flow: Flow) -> Settings | None:
        """The client of the cluster that keeps progress; None where that is the one records are written to."""

"""What runs beside the copies of a file: Kafka's tests of its connectors where they count tasks."""

from __future__ import annotations

import pytest

from heliograph.config.validate.dedicated_file import load
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.loops.file_loops import Control
from heliograph.model import Flow
from tests.support.config_files import FakeLookup, minimal


def loops_of(*lines: str) -> set[str]:
    """The loops a file asks for; none of them is started."""
    control = Control(load(minimal(*lines), FakeLookup()), {})
    return {loop.name for loop in (*control._checkpoint_loops.values(), *control._heartbeat_loops.values())}


def test_mirror_checkpoint_connector_enabled() -> None:
    assert loops_of() == {"A->B checkpoints", "A->B heartbeats", "B->A heartbeats"}


@pytest.mark.parametrize("key", ["emit.checkpoints.enabled", "emit.offset-syncs.enabled"])
def test_mirror_checkpoint_connector_disabled(key: str) -> None:
    assert loops_of(f"A->B.{key}=false") == {"A->B heartbeats", "B->A heartbeats"}


def test_replication_disabled() -> None:
    """A flow that is off has no checkpoints; heartbeats are written all the same."""
    assert loops_of("B->A.enabled=false") == loops_of()
    assert "B->A checkpoints" in loops_of("B->A.enabled=true")


def test_mirror_heartbeat_connector_disabled() -> None:
    assert loops_of("emit.heartbeats.enabled=false") == {"A->B checkpoints"}


@pytest.mark.parametrize(("location", "cluster"), [("source", "A"), ("target", "B")])
def test_consumer_configs_for_offset_syncs_topic(location: str, cluster: str) -> None:
    """MirrorCheckpointConfigTest: syncs are read where they are held, as that cluster's admin."""
    file = minimal(f"offset-syncs.topic.location={location}")
    sync = CheckpointSync(load(file, FakeLookup()), Flow("A", "B"))
    assert sync._syncs_cluster.alias == cluster
    sync.close()

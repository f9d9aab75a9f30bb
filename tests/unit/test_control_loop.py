"""What runs beside the copies, and in which order: Kafka's MirrorCheckpointConnectorTest where it is about tasks."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from heliograph.config.dedicated import load
from heliograph.errors import ClusterError
from heliograph.model import Flow
from heliograph.worker.checkpoint_sync import CheckpointSync
from heliograph.worker.control import Control
from heliograph.worker.control_loop import ControlLoop
from heliograph.worker.schedule import Schedule
from tests.copying import wait_for
from tests.unit.test_dedicated_file import FakeLookup, minimal


def loops_of(*lines: str) -> set[str]:
    """The loops a file asks for; none of them is started."""
    control = Control(load(minimal(*lines), FakeLookup()), {})
    return {loop.name for loop in (*control._checkpoints, *control._heartbeats)}


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


@pytest.mark.parametrize(("location", "holder"), [("source", "A"), ("target", "B")])
def test_consumer_configs_for_offset_syncs_topic(location: str, holder: str) -> None:
    """MirrorCheckpointConfigTest: syncs are read where they are held, as that cluster's admin."""
    file = minimal(f"offset-syncs.topic.location={location}")
    sync = CheckpointSync(load(file, FakeLookup()), Flow("A", "B"))
    assert sync._holder.alias == holder
    sync.close()


class Work:
    """Fails to begin so many times; notes what is done."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.done: list[str] = []

    def begin(self) -> Iterable[str]:
        self.done.append("begin")
        if self.done.count("begin") <= self.failures:
            raise ClusterError("The cluster 'A' does not answer.")
        return ()

    def plan(self, schedule: Schedule) -> None:
        schedule.repeat("groups", lambda: self._note("groups"), 600)
        schedule.repeat("checkpoints", lambda: self._note("checkpoints"), 600)

    def close(self) -> None:
        self.done.append("close")

    def _note(self, step: str) -> Iterable[str]:
        self.done.append(step)
        return ()


def test_consumer_group_initialize_timeout() -> None:
    """Where the groups or earlier checkpoints cannot be learned, it is told, tried again, and nothing is written."""
    told: list[tuple[str, tuple[str, ...]]] = []
    work = Work(failures=1)
    loop = ControlLoop("A->B checkpoints", work, lambda step, troubles: told.append((step, troubles)))
    loop.start()
    wait_for(lambda: "checkpoints" in work.done, 20)
    loop.stop()
    assert loop.join(20)
    assert work.done == ["begin", "begin", "groups", "checkpoints", "close"]
    start = "A->B checkpoints: start"
    assert told[:2] == [(start, ("The cluster 'A' does not answer.",)), (start, ())]


def test_checkpoint_store_initialized() -> None:
    """One round only, as for `--once`: without its beginning there is no step."""
    work = Work(failures=1)
    ControlLoop("A->B checkpoints", work, lambda _step, _troubles: None).run_once()
    assert work.done == ["begin", "close"]

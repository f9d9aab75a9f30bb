"""Two clusters that replicate to each other, for a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.soak.active_active import Side, play

pytestmark = pytest.mark.spark


def test_a_minute_of_load_on_both_sides_neither_loops_nor_loses_nor_repeats(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    written = play(Side(f"{alias}a", source), Side(f"{alias}b", target), topic, tmp_path, 60)
    assert all(count > 1000 for count in written.values())

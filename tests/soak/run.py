"""`make soak`: ten minutes of active-active under load; MINUTES says how many."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from heliograph.embedded.kafka_cluster import forget_cluster, start_cluster
from tests.soak.active_active import Side, play


def main(minutes: float) -> None:
    with tempfile.TemporaryDirectory(prefix="heliograph-soak-") as folder:
        sides = [Side(name, start_cluster(f"soak-{name}", data=Path(folder) / name)) for name in ("a", "b")]
        try:
            written = play(sides[0], sides[1], "t", Path(folder), minutes * 60)
        finally:
            for side in sides:
                side.cluster.stop()
                forget_cluster(side.cluster.name)
    reported = ", ".join(f"{count:,} on {alias}" for alias, count in written.items())
    print(
        f"Active-active for {minutes:g} minutes: {reported} written; each once and in order on the other side, no loop."
    )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)

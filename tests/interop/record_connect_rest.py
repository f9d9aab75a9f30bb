"""Writes what a real Java Connect worker answers to `rest_calls`: `python -m tests.interop.record_connect_rest`.

The answers go to `tests/golden/connect_rest.json`, so that the API is compared with Java's in a second. Documentation
of keys is left out (ours is our own), what changes with every recording is masked; of Java's loggers a few are kept.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from heliograph.embedded.kafka_cluster import forget_cluster, start_cluster
from tests.interop.java_connect import JavaConnect
from tests.interop.rest_calls import CALLS
from tests.interop.rest_story import RestAnswer, in_short, report

GOLDEN = Path(__file__).parents[1] / "golden" / "connect_rest.json"
_CLUSTER = "record-connect-rest"
_KEPT_LOGGERS = 3
_MASKS = {"documentation": "left out", "kafka_cluster_id": "id", "last_modified": 1}


def main() -> None:
    """Start a broker and Java Connect, tell the story, write the answers."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = start_cluster(_CLUSTER, data=Path(folder) / "kafka")
        try:
            with JavaConnect.on(cluster, Path(folder)) as connect:
                answers = report(connect.wait_until_ready().url, cluster.bootstrap)
                connect.stop()
        finally:
            cluster.stop()
            forget_cluster(_CLUSTER)
    lines = [f"{json.dumps(note)}: {json.dumps(kept(note, answer))}" for note, answer in answers.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def kept(note: str, answer: RestAnswer) -> dict[str, Any]:
    """An answer as it is written down."""
    call = next(call for call in CALLS if call.note == note)
    body = in_short(call, answer.body)
    if call.any_names:
        body = {name: body[name] for name in [*list(body)[:_KEPT_LOGGERS], "root"]}
    return answer._replace(body=_masked(body))._asdict()


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(element) for element in value]
    if isinstance(value, dict):
        return {
            name: _MASKS[name] if name in _MASKS and member is not None else _masked(member)
            for name, member in value.items()
        }
    return value


def recorded() -> dict[str, RestAnswer]:
    """What was written down, by the calls' notes."""
    return {note: RestAnswer(**answer) for note, answer in json.loads(GOLDEN.read_text()).items()}


if __name__ == "__main__":
    main()

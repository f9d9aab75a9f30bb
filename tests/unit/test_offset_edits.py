"""Progress written by hand: what MM2's connectors take and refuse; the recorded REST calls have more."""

from __future__ import annotations

from typing import Any

import pytest

from heliograph.errors import ConnectError
from heliograph.mirror.offset_edits import check_offsets

PARTITIONS: dict[str, dict[str, Any]] = {
    "source": {"cluster": "A", "partition": 0, "topic": "t"},
    "checkpoint": {"group": "g", "partition": 0, "topic": "t"},
    "heartbeat": {"sourceClusterAlias": "A", "targetClusterAlias": "B"},
}


@pytest.mark.parametrize("kind", PARTITIONS)
def test_zero_is_always_taken_and_other_places_only_by_the_source_connector(kind: str) -> None:
    check_offsets(kind, [(PARTITIONS[kind], {"offset": 0})])
    if kind == "source":
        check_offsets(kind, [(PARTITIONS[kind], {"offset": 2**63 - 1})])
    else:
        with pytest.raises(ConnectError, match="for the 'offset' key; the only accepted value is 0"):
            check_offsets(kind, [(PARTITIONS[kind], {"offset": 1})])


@pytest.mark.parametrize("kind", PARTITIONS)
def test_removing_is_always_allowed(kind: str) -> None:
    check_offsets(kind, [({"whatever": [1]}, None)])


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, row in PARTITIONS.items() for name in row])
def test_a_partition_lacks_nothing(kind: str, name: str) -> None:
    partition = {key: value for key, value in PARTITIONS[kind].items() if key != name}
    with pytest.raises(ConnectError, match=f"is missing the '{name}' key, which is required") as caught:
        check_offsets(kind, [(PARTITIONS[kind], {"offset": 0}), (partition, {"offset": 0})])
    assert caught.value.status == 500


@pytest.mark.parametrize(
    ("partition", "rule"),
    [
        (True, "must be an integer"),
        (2**31, "must be an integer"),
        (None, "must be an integer"),
        (-1, "cannot be negative"),
    ],
)
def test_a_partition_is_a_number_from_zero(partition: object, rule: str) -> None:
    with pytest.raises(ConnectError, match=f"for the 'partition' key, which {rule}"):
        check_offsets("source", [({**PARTITIONS["source"], "partition": partition}, {"offset": 0})])


@pytest.mark.parametrize("position", [2**63, 1.5, True, None, "1", [1], {"a": False}])
def test_an_offset_is_a_whole_number_of_64_bits(position: object) -> None:
    with pytest.raises(ConnectError, match="for the 'offset' key, which must be an integer"):
        check_offsets("source", [(PARTITIONS["source"], {"offset": position})])

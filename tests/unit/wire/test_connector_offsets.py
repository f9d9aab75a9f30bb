"""Kafka's alterOffsets suites of the three connectors, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from heliograph.errors import OffsetsRefusedError
from heliograph.model import ConnectorKind
from heliograph.wire.records.connect_offsets import check_offsets, java_text, ordered_partition

PARTITIONS: dict[ConnectorKind, dict[str, Any]] = {
    "source": {"cluster": "A", "topic": "t", "partition": 3},
    "checkpoint": {"group": "g", "topic": "A.t", "partition": 3},
    "heartbeat": {"sourceClusterAlias": "A", "targetClusterAlias": "B"},
}
OFFSETS: dict[ConnectorKind, int] = {"source": 868, "checkpoint": 0, "heartbeat": 0}
KINDS = list(PARTITIONS)
MEMBERS = [(kind, member) for kind in KINDS for member in PARTITIONS[kind]]


def refused(kind: ConnectorKind, *offsets: tuple[Any, Any]) -> str:
    with pytest.raises(OffsetsRefusedError) as caught:
        check_offsets(kind, offsets)
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_alter_offsets_incorrect_partition_key(kind: ConnectorKind) -> None:
    wrong = {"unused_partition_key": "unused_partition_value"}
    assert refused(kind, (wrong, {"offset": 10})).startswith(
        "Source partition {unused_partition_key=unused_partition_value} is missing the '"
    )
    check_offsets(kind, [(wrong, None)])  # null offsets are allowed whatever the partition


@pytest.mark.parametrize(("kind", "member"), MEMBERS)
def test_alter_offsets_missing_partition_key(kind: ConnectorKind, member: str) -> None:
    partition = {name: value for name, value in PARTITIONS[kind].items() if name != member}
    words = refused(kind, (partition, {"offset": OFFSETS[kind]}))
    assert words == f"Source partition {java_text(partition)} is missing the '{member}' key, which is required"


@pytest.mark.parametrize(("kind", "member"), [(kind, member) for kind, member in MEMBERS if member != "partition"])
def test_a_name_must_be_a_string(kind: ConnectorKind, member: str) -> None:
    for value in (1, None, True, ["a"]):
        partition = PARTITIONS[kind] | {member: value}
        assert refused(kind, (partition, {"offset": OFFSETS[kind]})) == (
            f"Source partition {java_text(partition)} has an invalid value {java_text(value)} for the '{member}' key,"
            " which must be a string"
        )


@pytest.mark.parametrize("kind", ["source", "checkpoint"])
@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("a string", "must be an integer"),
        ("1", "must be an integer"),
        (1.5, "must be an integer"),
        (True, "must be an integer"),
        (None, "must be an integer"),
        (1 << 31, "must be an integer"),
        (-1, "cannot be negative"),
        (-2, "cannot be negative"),
    ],
)
def test_alter_offsets_invalid_partition_partition(kind: ConnectorKind, value: object, what: str) -> None:
    partition = PARTITIONS[kind] | {"partition": value}
    words = refused(kind, (partition, {"offset": OFFSETS[kind]}))
    assert words.endswith(f"has an invalid value {java_text(value)} for the 'partition' key, which {what}")


@pytest.mark.parametrize("kind", KINDS)
def test_alter_offsets_multiple_partitions(kind: ConnectorKind) -> None:
    one, other = PARTITIONS[kind], PARTITIONS[kind] | {next(iter(PARTITIONS[kind])): "other"}
    check_offsets(kind, [(one, {"offset": OFFSETS[kind]}), (other, {"offset": OFFSETS[kind]})])
    broken = {"cluster": "A"}
    assert "is missing the" in refused(kind, (one, {"offset": OFFSETS[kind]}), (broken, {"offset": 0}))


@pytest.mark.parametrize("kind", KINDS)
def test_alter_offsets_incorrect_offset_key(kind: ConnectorKind) -> None:
    for offset in ({"unused_offset_key": 0}, {}):
        assert refused(kind, (PARTITIONS[kind], offset)).endswith("is missing the 'offset' key, which is required")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", ["nan", None, [], {}, "10", True, 1.0, 1 << 63])
def test_an_offset_must_be_a_whole_number(kind: ConnectorKind, value: object) -> None:
    words = refused(kind, (PARTITIONS[kind], {"offset": value}))
    assert words.endswith(f"has an invalid value {java_text(value)} for the 'offset' key, which must be an integer")


def test_alter_offsets_offset_values_of_a_source_connector() -> None:
    for value in (0, 10, (1 << 31), (1 << 63) - 1):
        check_offsets("source", [(PARTITIONS["source"], {"offset": value})])
    assert refused("source", (PARTITIONS["source"], {"offset": -10})) == (
        "Source offset {offset=-10} for source partition {cluster=A, topic=t, partition=3} has an invalid value -10 for"
        " the 'offset' key, which cannot be negative"
    )


@pytest.mark.parametrize("kind", ["checkpoint", "heartbeat"])
def test_alter_offsets_offset_values_of_the_others(kind: ConnectorKind) -> None:
    check_offsets(kind, [(PARTITIONS[kind], {"offset": 0})])
    for value in (-1, 1, 1 << 40):
        words = refused(kind, (PARTITIONS[kind], {"offset": value}))
        assert words.endswith(f"has an invalid value {value} for the 'offset' key; the only accepted value is 0")


@pytest.mark.parametrize("kind", KINDS)
def test_alter_offsets_tombstones(kind: ConnectorKind) -> None:
    for partition in (None, {}, {"unused": 1}, PARTITIONS[kind], PARTITIONS[kind] | {"partition": -1}):
        check_offsets(kind, [(partition, None)])


@pytest.mark.parametrize("kind", KINDS)
def test_successful_alter_offsets(kind: ConnectorKind) -> None:
    check_offsets(kind, [(PARTITIONS[kind], {"offset": OFFSETS[kind]})])
    check_offsets(kind, [])


def test_a_partition_may_not_be_null() -> None:
    assert refused("source", (None, {"offset": 1})) == "Source partitions may not be null"


def test_a_partition_is_kept_with_its_members_in_javas_order() -> None:
    assert list(ordered_partition("source", PARTITIONS["source"])) == ["cluster", "partition", "topic"]
    assert list(ordered_partition("checkpoint", PARTITIONS["checkpoint"])) == ["partition", "topic", "group"]
    assert ordered_partition("source", {"garbage": 1}) == {"garbage": 1}


def test_values_are_shown_as_java_shows_them() -> None:
    assert java_text({"a": None, "b": [True, 1.5], "c": {"d": "e"}}) == "{a=null, b=[true, 1.5], c={d=e}}"

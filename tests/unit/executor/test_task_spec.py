"""The encoding of a task's partitions: the payload of a task and the lease carry every field."""

from __future__ import annotations

import json
import pickle
from dataclasses import MISSING, Field, fields
from typing import Any
from uuid import UUID

import pytest

from heliograph.executor.contract.lease import TaskAssignment, decode_assignment, encode_assignment
from heliograph.executor.contract.task_spec import PartitionSpec
from heliograph.model import ChangeActions, SourceOffset, TargetLog, TopicPartition

TP = TopicPartition("t", 3)
OFFSETS = SourceOffset(TP, 6, 9, UUID(int=5), 4, ((4, 0), (5, 3)), TargetLog(UUID(int=6), 3, 4, is_exact=False))
ACTIONS = ChangeActions("fail", "restart", "continue")
FULL = PartitionSpec(TP, "A.t", OFFSETS, 70, is_reset=True, opening=2, is_moved=True, actions=ACTIONS)


def default_of(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


@pytest.mark.parametrize("value", [FULL, OFFSETS], ids=lambda value: type(value).__name__)
def test_the_example_sets_every_field(value: Any) -> None:
    """Or a field that the encoding drops would come back as its default, unnoticed below."""
    assert [field.name for field in fields(value) if getattr(value, field.name) == default_of(field)] == []


@pytest.mark.parametrize("spec", [FULL, PartitionSpec(TP, "A.t"), PartitionSpec(TP, "A.t", SourceOffset(TP, 6))])
def test_a_partition_is_the_same_after_its_way_as_json_and_as_a_pickle(spec: PartitionSpec) -> None:
    assert PartitionSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec  # noqa: S301  (our own bytes)


def test_an_assignment_by_the_lease_says_all_that_the_payload_of_a_start_says() -> None:
    assignment = TaskAssignment(2, (FULL, PartitionSpec(TP, "A.t")), 5_000)
    assert decode_assignment(json.loads(json.dumps(encode_assignment(assignment)))) == assignment

"""Keys that are right one by one and wrong together."""

from __future__ import annotations

import pytest

from heliograph.config.validate.dedicated_file import examine
from heliograph.operations.configuration_checks import examine_all
from tests.support.config_files import FakeLookup, minimal
from tests.support.diagnostics import texts

NO_SYNCS = "A->B.emit.offset-syncs.enabled=false"
NO_CHECKPOINTS = "A->B.emit.checkpoints.enabled=false"
EXACTLY_ONCE = "B.exactly.once.source.support=enabled"
JAVAS_FLUSH = "B.offset.flush.interval.ms=60000"
DIRTY = "A.consumer.isolation.level=read_uncommitted"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            (NO_SYNCS, "offset-syncs.topic.location=target"),
            "line 6: offset-syncs.topic.location: A->B.emit.offset-syncs",
        ),
        ((NO_SYNCS, "A->B.offset-syncs.topic.replication.factor=1"), "so there is no offset-syncs topic"),
        ((NO_SYNCS, "A->B.offset-syncs.topic.something=1"), "A->B.offset-syncs.topic.something: "),
        ((NO_SYNCS, "emit.checkpoints.enabled=true"), "emit.checkpoints.enabled: it needs offset syncs"),
        ((NO_SYNCS, "A->B.sync.group.offsets.enabled=true"), "sync.group.offsets.enabled: it needs offset syncs"),
        ((NO_CHECKPOINTS, "sync.group.offsets.enabled=true"), "group offsets come from checkpoints"),
        (
            ("A->B.exactly.once.support=required", EXACTLY_ONCE, DIRTY),
            "A.consumer.isolation.level is not read_committed",
        ),
        (("A->B.exactly.once.support=required",), "add 'B.exactly.once.source.support = enabled'"),
    ],
)
def test_a_contradiction_is_one_problem_that_names_both_keys(lines: tuple[str, ...], words: str) -> None:
    (problem,) = texts(examine(minimal(*lines), FakeLookup()).problems)
    assert words in problem


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((NO_SYNCS,), "emit.offset-syncs.enabled: no checkpoints are written for A->B"),
        ((NO_CHECKPOINTS,), "emit.checkpoints.enabled: no checkpoints are written for A->B"),
        ((NO_SYNCS, NO_CHECKPOINTS), "no checkpoints are written for A->B"),
        ((EXACTLY_ONCE, DIRTY), "records of aborted transactions are copied"),
        (
            (EXACTLY_ONCE, JAVAS_FLUSH),
            "B.offset.flush.interval.ms: with exactly-once source offsets are committed every 20000",
        ),
        (
            (EXACTLY_ONCE, "B.producer.transaction.timeout.ms=2000"),
            "open for 2000 ms (B.producer.transaction.timeout.ms)",
        ),
        (("topics=",), "the list is empty, so A->B replicates no topic"),
        (("replication.policy.separator=A",), "the alias 'A' contains the separator 'A'"),
    ],
)
def test_what_mm2_accepts_and_few_mean_is_a_warning(lines: tuple[str, ...], words: str) -> None:
    report = examine(minimal(*lines), FakeLookup())
    assert texts(report.problems) == ()
    assert words in texts(report.warnings)[0]


def test_two_flows_that_keep_names_both_ways_are_warned_of() -> None:
    identity = "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    report = examine_all(minimal("B->A.enabled=true", identity), FakeLookup())
    assert texts(report.problems) == ()
    assert any("A->B" in warning and "B->A" in warning for warning in texts(report.warnings))


@pytest.mark.parametrize(
    "lines",
    [
        ("offset-syncs.topic.location=target", "sync.group.offsets.enabled=true"),
        ("A->B.exactly.once.support=required", EXACTLY_ONCE),
        (DIRTY,),
        (JAVAS_FLUSH,),
        (EXACTLY_ONCE, "B.offset.flush.interval.ms=20000"),
        ("A->B.exactly.once.support=requested",),
        ("replication.policy.class=IdentityReplicationPolicy",),
    ],
)
def test_keys_that_go_together_are_not_remarked_upon(lines: tuple[str, ...]) -> None:
    report = examine(minimal(*lines), FakeLookup())
    assert (texts(report.problems), texts(report.warnings)) == ((), ())


def test_a_flow_that_is_off_contradicts_nothing() -> None:
    """MirrorCheckpointConfigTest.testSkipValidationIfConnectorDisabled."""
    lines = ("B->A.enabled=false", "B->A.emit.checkpoints.enabled=false", "B->A.sync.group.offsets.enabled=true")
    report = examine(minimal(*lines), FakeLookup())
    assert (texts(report.problems), texts(report.warnings)) == ((), ())

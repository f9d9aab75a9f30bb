"""A short round of faults in each mode; `make chaos` plays longer ones, as many as asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from heliograph.wire.batches.forward import warm_up
from tests.chaos.rounds import Arena, arena

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

SEED = 7
SECONDS = 10


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    warm_up()  # compiling the kernels would take the processors from the first round
    with arena(tmp_path_factory.mktemp("chaos")) as made:
        yield made


def test_with_exactly_once_both_sides_are_equal_after_a_round_of_faults(clusters: Arena) -> None:
    outcome = clusters.play(SEED, exactly_once=True, seconds=SECONDS)
    print(outcome, dict(outcome.faults), outcome.notes)
    assert outcome.problems == []
    assert (outcome.lost, outcome.out_of_order, outcome.duplicates, outcome.strangers) == (0, 0, 0, 0)


@pytest.mark.slow
def test_without_it_nothing_is_lost_and_order_is_kept_in_a_round_of_faults(clusters: Arena) -> None:
    outcome = clusters.play(SEED, exactly_once=False, seconds=SECONDS)
    print(outcome, dict(outcome.faults), outcome.notes)
    assert outcome.problems == []
    assert (outcome.lost, outcome.out_of_order, outcome.strangers) == (0, 0, 0)

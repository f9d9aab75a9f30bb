"""What tests with a real Prometheus rely on: a reader of pages, and rules whose minutes last seconds."""

from __future__ import annotations

import math

import pytest

from tests.support.monitoring.exposition import parse
from tests.support.monitoring.stack import faster_rules


def test_a_page_is_read_with_odd_labels_and_unknown_values() -> None:
    page = parse(
        "# HELP a_total of a\n# TYPE a_total counter\n"
        'a_total{topic="x \\"y\\" \\\\ \\n, {z}",partition="0"} 3.0\n'
        "# TYPE b gauge\nb NaN\nb_unit 1e3 # {} 1\n# EOF\n"
    )
    assert page.value("a_total", partition="0") == 3
    assert page.of("a_total")[0].labels["topic"] == 'x "y" \\ \n, {z}'
    assert math.isnan(page.value("b"))
    assert (page.type_of("a_total"), page.type_of("b"), page.type_of("b_unit")) == ("counter", "gauge", "untyped")


@pytest.mark.parametrize("line", ["a{b=c} 1", 'a{b="c} 1', "a 1 2 3", '{b="c"} 1'])
def test_a_line_that_is_not_of_the_format_is_an_error(line: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        parse(line)


def test_faster_rules_have_shorter_windows_and_the_same_names_and_limits() -> None:
    rules = {
        rule.get("alert", rule.get("record")): rule for group in faster_rules(60)["groups"] for rule in group["rules"]
    }
    burns = rules["HeliographLagBudgetBurnsFast"]
    assert rules["HeliographFlowNotReady"]["for"] == "5000ms"
    assert "flow:heliograph_lag_slo_missed:ratio_1h > 14.4 * 0.01" in burns["expr"]
    assert rules["flow:heliograph_lag_slo_missed:ratio_3d"]["expr"].endswith("[4320000ms])")
    assert "offset 15000ms" in rules["HeliographRecordsLost"]["expr"]
    assert "> 60" in rules["HeliographLagNotFalling"]["expr"]

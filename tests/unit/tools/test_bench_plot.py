"""The picture of a benchmark run: well-formed, to scale, and nothing that only one program has copied."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from bench.copiers import COPIERS
from bench.plot import _BARS, PICTURE, newest_result, throughput_svg

_SVG = "{http://www.w3.org/2000/svg}"


def result(*figures: tuple[str, str, float]) -> dict[str, object]:
    rows = [{"workload": workload, "copier": copier, "mb_per_s": rate} for workload, copier, rate in figures]
    return {"at": "2026-01-02T0304", "machine": {"cores": 2, "brokers_data_in": "memory"}, "figures": rows}


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 our own text


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parsed(svg).iter(f"{_SVG}text")]


def test_bars_are_to_scale() -> None:
    svg = throughput_svg(result(("500B", "Java MM2, tuned", 100.0), ("500B", "Heliograph", 400.0)))
    bars = [rect for rect in parsed(svg).iter(f"{_SVG}rect") if rect.get("height") == "15"]
    tuned, ours = (float(bar.get("width", "")) for bar in bars)
    assert ours == pytest.approx(4 * tuned, abs=0.5)
    assert "400  (4.0x tuned)" in texts(svg)


def test_a_workload_that_one_program_did_not_copy_is_left_out() -> None:
    svg = throughput_svg(
        result(("a", "Java MM2, tuned", 1.0), ("a", "Heliograph", 2.0), ("b", "Heliograph", 900.0), ("c", "x", 1.0))
    )
    assert "a" in texts(svg)
    assert "b" not in texts(svg)


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(ValueError, match="no workload"):
        throughput_svg(result(("500B", "Heliograph", 400.0)))


def test_short_runs_are_not_drawn(tmp_path: Path) -> None:
    for name in ("2026-01-01T0000.json", "2026-01-02T0000-short.json"):
        (tmp_path / name).write_text("{}")
    assert newest_result(tmp_path).name == "2026-01-01T0000.json"


def test_every_copier_of_the_benchmark_has_a_bar() -> None:
    assert [copier.name for copier in COPIERS] == list(_BARS)


def test_the_picture_of_the_readme_is_of_a_recorded_run() -> None:
    recorded = [json.loads(file.read_text()) for file in sorted(newest_result().parent.glob("*.json"))]
    assert PICTURE.read_text() in [throughput_svg(run) for run in recorded if is_compared(run)]


def is_compared(run: dict[str, list[dict[str, str]]]) -> bool:
    return {"Java MM2, tuned", "Heliograph"} <= {row["copier"] for row in run["figures"]}


def test_the_picture_loads_nothing() -> None:
    assert not re.search(r"href|url\(|@import|<script", PICTURE.read_text())

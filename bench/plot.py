"""Draws the throughput of a benchmark run as an SVG: `python bench/plot.py [RESULT.json]`, default the newest run.

The picture has a background of its own and a dark variant, so it is readable on any page. It is plain text without
fonts, scripts or links.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
PICTURE = Path(__file__).resolve().parent.parent / "docs" / "assets" / "throughput.svg"

# Copiers of a result file, in the order of their bars, with the CSS class of a bar.
_BARS = {"Java MM2, defaults": "defaults", "Java MM2, tuned": "tuned", "Heliograph": "ours"}
_COMPARED = ("Java MM2, tuned", "Heliograph")

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 190, 140, 84, 34
_BAR_HEIGHT, _BAR_GAP, _ROW_GAP = 15, 3, 16
_STYLE = """\
    text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
    .title { font-size: 16px; font-weight: 600 }
    .small { font-size: 12px; fill: #59636e }
    .row, .value { dominant-baseline: central }
    .row { text-anchor: end }
    .card { fill: #ffffff; stroke: #d1d9e0 }
    .grid { stroke: #d1d9e0 }
    .ours { fill: #c2410c }
    .tuned { fill: #57606a }
    .defaults { fill: #afb8c1 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .small { fill: #9198a1 }
      .card { fill: #0d1117; stroke: #3d444d }
      .grid { stroke: #3d444d }
      .ours { fill: #fb923c }
      .tuned { fill: #9198a1 }
      .defaults { fill: #59636e }
    }"""


@dataclass(frozen=True)
class Bar:
    """One copier's throughput on one workload."""

    copier: str
    mb_per_s: float


def newest_result(folder: Path = RESULTS) -> Path:
    """Return the newest file of a full run; runs with fewer records end in `-short.json` and are not drawn."""
    full = [file for file in sorted(folder.glob("*.json")) if not file.stem.endswith("-short")]
    if not full:
        raise FileNotFoundError(f"no result of a full run in {folder}")
    return full[-1]


def throughput_svg(result: Mapping[str, Any]) -> str:
    """Return the SVG for a result file: one group of bars for each workload that both programs have copied."""
    rows = _rows(result)
    longest = max(bar.mb_per_s for bars in rows.values() for bar in bars)
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    body: list[str] = []
    top = _TOP
    for workload, bars in rows.items():
        body += _row_lines(workload, bars, top, scale)
        top += len(bars) * (_BAR_HEIGHT + _BAR_GAP) + _ROW_GAP
    height = top + _BOTTOM - _ROW_GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="title">',
        '  <title id="title">Throughput of Java MirrorMaker 2 and Heliograph in MB/s</title>',
        f"  <style>\n{_STYLE}\n  </style>",
        f'  <rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
        '  <text class="title" x="24" y="32">Throughput in MB/s (higher is better)</text>',
        *_legend_lines(rows),
        f'  <line class="grid" x1="{_LEFT}" y1="{_TOP - 6}" x2="{_LEFT}" y2="{height - _BOTTOM + 2}"/>',
        *body,
        f'  <text class="small" x="24" y="{height - 12}">{escape(_caption(result))}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def write_picture(result_file: Path, picture: Path = PICTURE) -> None:
    """Draw one result file."""
    picture.parent.mkdir(parents=True, exist_ok=True)
    result = json.loads(result_file.read_text(encoding="utf-8"))
    picture.write_text(throughput_svg(result), encoding="utf-8")


def _rows(result: Mapping[str, Any]) -> dict[str, list[Bar]]:
    """Bars by workload; a workload that only one of the compared programs has copied is left out."""
    found: dict[str, dict[str, Bar]] = {}
    for figures in result["figures"]:
        bar = Bar(figures["copier"], figures["mb_per_s"])
        found.setdefault(figures["workload"], {})[bar.copier] = bar
    rows = {
        workload: [bars[copier] for copier in _BARS if copier in bars]
        for workload, bars in found.items()
        if all(copier in bars for copier in _COMPARED)
    }
    if not rows:
        raise ValueError("no workload was copied by both programs")
    return rows


def _row_lines(workload: str, bars: list[Bar], top: int, scale: float) -> Iterator[str]:
    middle = top + len(bars) * (_BAR_HEIGHT + _BAR_GAP) / 2
    yield f'  <text class="row" x="{_LEFT - 12}" y="{middle:.1f}">{escape(workload)}</text>'
    tuned = next(bar.mb_per_s for bar in bars if bar.copier == "Java MM2, tuned")
    for number, bar in enumerate(bars):
        y = top + number * (_BAR_HEIGHT + _BAR_GAP)
        width = max(1.0, bar.mb_per_s * scale)
        text = f"{bar.mb_per_s:,.0f}"
        if bar.copier == "Heliograph":
            text += f"  ({bar.mb_per_s / tuned:.1f}x tuned)"
        yield f'  <rect class="{_BARS[bar.copier]}" x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR_HEIGHT}"/>'
        yield f'  <text class="value" x="{_LEFT + width + 6:.1f}" y="{y + _BAR_HEIGHT / 2}">{text}</text>'


def _legend_lines(rows: Mapping[str, list[Bar]]) -> Iterator[str]:
    shown = {bar.copier for bars in rows.values() for bar in bars}
    x = 24
    for copier in (copier for copier in _BARS if copier in shown):
        yield f'  <rect class="{_BARS[copier]}" x="{x}" y="46" width="12" height="12" rx="2"/>'
        yield f'  <text x="{x + 18}" y="57">{escape(copier)}</text>'
        x += 40 + 8 * len(copier)


def _caption(result: Mapping[str, Any]) -> str:
    machine = result["machine"]
    return (
        f"make bench of {result['at'].partition('T')[0]}: {machine['cores']} cores for both clusters, the load and the"
        f" copier; brokers' data in {machine['brokers_data_in']}"
    )


if __name__ == "__main__":
    write_picture(Path(sys.argv[1]) if len(sys.argv) > 1 else newest_result())

"""Renders the table of keys as a page: `python -m heliograph.config.reference FILE`. A test keeps the page fresh."""

from __future__ import annotations

import sys
from pathlib import Path

from heliograph.config.keys import TABLE
from heliograph.config.types import Key, Scope

_SECTIONS = (
    ("Top of the file", Scope.FILE),
    ("All connectors", Scope.CONNECTOR),
    ("Source connector", Scope.SOURCE),
    ("Checkpoint connector", Scope.CHECKPOINT),
    ("Heartbeat connector", Scope.HEARTBEAT),
    ("Worker", Scope.WORKER),
    ("Every Kafka client", Scope.CLIENT),
    ("Consumer of the source", Scope.CONSUMER),
    ("Producer of the target", Scope.PRODUCER),
)
_HEAD = """\
# Configuration reference

Generated from `src/heliograph/config/keys.py` by `make docs`; do not edit.

Keys are MirrorMaker 2's, with its defaults; **own** marks keys or defaults that are Heliograph's. Where a key may
stand in a dedicated-mode file: connector keys at the top or behind `A->B.`; worker keys at the top or behind the
target's alias `B.`; client keys behind an alias `A.`, and consumer or producer keys behind `A.consumer.` or
`B.producer.`.
"""


def render() -> str:
    """The whole page."""
    parts = [_HEAD]
    shown: set[str] = set()
    for title, scope in _SECTIONS:
        rows = [row for row in TABLE.values() if row.name not in shown and _belongs(row, scope)]
        shown.update(row.name for row in rows)
        if rows:
            parts.append(f"\n## {title}\n\n| key | type | default | meaning |\n|---|---|---|---|\n")
            parts += [_line(row) for row in rows]
    return "".join(parts)


def _belongs(row: Key[object], scope: Scope) -> bool:
    return scope in row.scope if scope is Scope.CONNECTOR else bool(row.scope & scope)


def _line(row: Key[object]) -> str:
    default = ", ".join(row.default) if isinstance(row.default, tuple) else str(row.default)
    shown = f"`{default}`" if default else ""
    own = "**own** " if row.ours else ""
    rule = f" Must be {row.check.words}." if row.check else ""
    old = f" Read as `{row.replaced_by}`." if row.replaced_by else ""
    cells = (f"`{row.name}`", row.type.name.lower(), shown, f"{own}{row.doc}{rule}{old}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
